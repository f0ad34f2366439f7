"""The page of every command: usage, arguments, options, defaults and choices, as the command line itself has them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, get_args, get_origin

from cyclopts import App

from planner.cli.console import Common
from planner.cli.reference import cell, paragraphs

INTRODUCTION = """# Commands

`planner reference commands` prints this page from the commands themselves; `planner COMMAND --help` shows one of them on the terminal. The answer goes to stdout, everything
else to stderr. `-` in the place of a file is standard input. In a list, `--tp 1,2,4` and `--tp 1 --tp 2 --tp 4` say the same where a command takes several values.

| exit code | meaning |
| --- | --- |
"""

EXITS = (
    (0, "answered (warnings, a placement dearer than the best, and infeasible rows of a what-if included)"),
    (1, "a file or placement is invalid, or misses its target, load or efficiency"),
    (2, "wrong usage"),
    (3, "proved impossible"),
    (4, "a limit was reached without a plan"),
    (70, "the audit rejected the planner's own plan, or another internal fault"),
    (130, "interrupted; the best audited plan so far is printed"),
)

COMPLETION = """## Completion

`planner --install-completion` writes a completion script for the shell it is called from (bash, zsh, fish or PowerShell; `--shell` names another one, `--output FILE` another place), and for bash
and zsh adds a line to the shell's start-up file that loads it. Start a new shell afterwards. Commands, options and choices are completed; taking it back is deleting that line and the script.

    planner --install-completion
    planner --install-completion --shell zsh --output ~/.zfunc/_planner
"""


def commands_page() -> str:
    """Markdown page of all commands."""
    from planner.cli.app import app

    lines = [INTRODUCTION.rstrip(), *(f"| {code} | {meaning} |" for code, meaning in EXITS), ""]
    lines += ["## Options of every command\n", *_options(_common_rows())]
    for words, command in commands(app):
        lines.extend(_command(words, command))
    return "\n".join([*lines, COMPLETION]).rstrip() + "\n"


def commands(app: App, words: tuple[str, ...] = ("planner",)) -> Iterator[tuple[tuple[str, ...], App]]:
    """Every command with the words that call it, in the order of the help."""
    for name in app:
        if name.startswith("-"):
            continue
        command = app[name]
        if command.default_command is not None:
            yield (*words, name), command
        yield from commands(command, (*words, name))


def _arguments(command: App) -> list[Any]:
    return [argument for argument in command.assemble_argument_collection(parse_docstring=True) if argument.show]


def _is_common(argument: Any) -> bool:
    return set(argument.names) <= {"--json", "--quiet", "-q", "--verbose", "-v", "--no-color"}


def _common_rows() -> list[Any]:
    """Options that commands share, by themselves."""
    alone = App(result_action="return_value")
    alone.default(_with_common)
    return _arguments(alone)


def _with_common(*, common: Common = Common()) -> int:  # noqa: B008 - the class is frozen
    """Do nothing; its options are those of every command."""
    del common
    return 0


def _command(words: tuple[str, ...], command: App) -> Iterator[str]:
    arguments = _arguments(command)
    positional = [argument for argument in arguments if not argument.names[0].startswith("-")]
    named = [argument for argument in arguments if argument.names[0].startswith("-")]
    own = [argument for argument in named if not _is_common(argument)]
    common = len(own) < len(named)
    yield f"## {' '.join(words)}\n"
    yield from (f"{text}\n" for text in _description(command))
    usage = [*words, *("[OPTIONS]" if named else "",), *(_shown_positional(argument) for argument in positional)]
    yield f"    {' '.join(word for word in usage if word)}\n"
    if positional:
        yield "| argument | meaning |\n| --- | --- |"
        yield from (f"| `{argument.names[0]}` | {_meaning(argument)} |" for argument in positional)
        yield ""
    if own:
        yield from _options(own)
    if common:
        yield "Also the [options of every command](#options-of-every-command).\n"


def _shown_positional(argument: Any) -> str:
    name = argument.names[0]
    name += "..." if _repeats(argument) else ""
    return name if argument.required else f"[{name}]"


def _description(command: App) -> Iterator[str]:
    text = command.help or (command.default_command.__doc__ or "" if callable(command.default_command) else "")
    for paragraph in paragraphs(re.split(r"\n\s*(?:Parameters|Returns|Raises)\n\s*-+", text)[0]):
        yield _escaped(paragraph)


def _escaped(text: str) -> str:
    return cell(text).replace("\\|", "|")


def _options(arguments: list[Any]) -> Iterator[str]:
    yield "| option | value | default | meaning |\n| --- | --- | --- | --- |"
    for argument in arguments:
        names = ", ".join(f"`{name}`" for name in argument.names if not name.startswith("--no-") or name == "--no-color")
        yield f"| {names} | {_value(argument)} | {_default(argument)} | {_meaning(argument)} |"
    yield ""


def _meaning(argument: Any) -> str:
    return cell(argument.parameter.help or "")


def _repeats(argument: Any) -> bool:
    return any(get_origin(kind) in {tuple, list} for kind in _kinds(argument.hint))


def _kinds(hint: Any) -> list[Any]:
    """Plain types that a hint may stand for."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is None or origin in {Literal, tuple, list}:
        return [] if hint is type(None) else [hint]
    return [kind for one in inner for kind in _kinds(one)]


WORDS: Mapping[str, str] = {"str": "text", "Path": "file", "int": "whole number", "float": "number"}


def _word(kind: Any) -> str:
    return WORDS.get(getattr(kind, "__name__", ""), "text")


def _value(argument: Any) -> str:
    found: list[str] = []
    for kind in _kinds(argument.hint):
        if get_origin(kind) is Literal:
            found.extend(f"`{word}`" for word in get_args(kind))
        elif get_origin(kind) in {tuple, list}:
            inner = get_args(kind)[0]
            words = [f"`{word}`" for word in get_args(inner)] if get_origin(inner) is Literal else [_word(inner)]
            found.extend([*words, "several"])
        elif kind is not bool:
            found.append(_word(kind))
    return ", ".join(found) or "–"


def _default(argument: Any) -> str:
    if argument.required:
        return "required"
    shown = argument.parameter.show_default
    value = argument.field_info.default
    if callable(shown):
        return cell(str(shown(value)))
    if shown is False or value is None or value is False or value in {(), ""} or value is argument.field_info.empty:
        return "–"
    return f"`{value}`"
