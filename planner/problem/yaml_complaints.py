"""What the YAML parser complains about, in words that help to mend the file."""

from __future__ import annotations

import re
from typing import Any

from planner.diagnostics import Diagnostic, Place


def _at(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}"


def syntax_error(error: Exception, file: str | None, opened: tuple[int, int] | None) -> Diagnostic:
    """Diagnostic of a parser's error, at the place where it can be mended; `opened` is where the innermost open list or mapping begins."""
    problem = str(getattr(error, "problem", None) or error).strip().replace("'\\x00'", "the end of the file")
    context = str(getattr(error, "context", None) or "")
    begun = getattr(error, "context_mark", None)
    mark = getattr(error, "problem_mark", None) or begun
    message, hint = _words(problem, context, begun)
    if begun is not None and "never closed" in message:
        mark = begun
    if opened is not None and "the file ends" in message:
        return Diagnostic("YAML_SYNTAX", "the bracket opened here is never closed", hint, place=Place(file, *opened))
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (None, None)
    return Diagnostic("YAML_SYNTAX", message, hint, place=Place(file, line, column))


def _words(problem: str, context: str, begun: Any) -> tuple[str, str]:
    """Message and hint for what the parser says; `begun` marks where the part that it was reading begins."""
    if "'\\t' that cannot start" in problem or ("\\t" in problem and "indent" in problem):
        return "a tab stands where spaces are needed", "indent with spaces"
    if found := re.search(r"character '(.)' that cannot start", problem):
        return f"a value cannot begin with `{found[1]}`", "put the value in quotes"
    if "mapping values are not allowed" in problem:
        return "a `:` is not expected here", "put a text with `: ` in quotes, and indent the keys of one mapping alike"
    if found := re.search(r"expected ',' or '([\]}])'", problem):
        if "stream end" in problem or "document" in problem:
            return f"the bracket opened here is never closed by `{found[1]}`", f"add `{found[1]}`"
        return (
            f"a `,` or `{found[1]}` is missing before this",
            f"the bracket was opened at {_at(begun)}" if begun is not None else "check the brackets",
        )
    if "quoted scalar" in context and ("end of stream" in problem or "document separator" in problem):
        return "the quote opened here is never closed", "add the closing quote"
    if "expected the node content" in problem and "stream end" in problem:
        return "the file ends inside a bracket", "close the brackets"
    if "expected <block end>" in problem:
        where = f"; the part it would belong to begins at {_at(begun)}" if begun is not None else ""
        return (
            f"this does not fit the indentation of what stands above{where}",
            "indent the keys of one mapping, and the dashes of one list, alike",
        )
    if "expected '<document start>'" in problem:
        return "this does not belong to what stands above", "check its indentation and the brackets before it"
    if "could not find expected ':'" in problem:
        return "a key without `:`", "write `key: value`"
    if "unknown escape character" in problem:
        return "a backslash in double quotes begins an escape that does not exist", "write \\\\ for a backslash, or use single quotes"
    if "incompatible YAML" in problem:
        return "this YAML version is not known", "remove the line or write %YAML 1.2"
    return f"this is not YAML: {problem.splitlines()[0] if problem else 'it cannot be parsed'}", "check indentation, quotes and brackets"
