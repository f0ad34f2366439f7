"""A command as words: its environment, its program and its options, and how a shell writes it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from planner.launch.replicas import Share

VISIBLE_DEVICES = {"nvidia": "CUDA_VISIBLE_DEVICES", "amd": "HIP_VISIBLE_DEVICES"}


@dataclass(frozen=True)
class Command:
    """What one node runs: `environment`, the words that name the program, and its options, each with its value as one tuple of words."""

    program: tuple[str, ...]
    options: tuple[tuple[str, ...], ...]
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> list[str]:
        """Program and options, without the environment."""
        return [*self.program, *(word for option in self.options for word in option)]


@dataclass(frozen=True, slots=True)
class Meeting:
    """Where the ranks of a replica meet: the address of the head as the target knows it, as a word that goes into a command as it is."""

    address: str


def devices(share: Share, vendor: str) -> dict[str, str]:
    """Variable that shows an engine the GPUs of a share, in the order of its ranks."""
    return {VISIBLE_DEVICES.get(vendor, "CUDA_VISIBLE_DEVICES"): ",".join(map(str, share.gpus))}


def option(name: str, value: object) -> tuple[str, ...]:
    """One option with its value."""
    return (name, str(value))


def quoted(word: str) -> str:
    """A word as a shell reads it back, variables and all else in it taken literally."""
    return shlex.quote(word)


def shell_lines(before: Iterable[str], command: Command, indent: str = "") -> list[str]:
    """Lines of a command for a shell, one option a line.

    Parameters
    ----------
    before
        Words before the environment (launchers), written as they are.
    command
        The command; its environment goes through `env`.
    indent
        What every line begins with.
    """
    head = [*before]
    if command.environment:
        head += ["env", *(f"{name}={quoted(value)}" for name, value in command.environment.items())]
    lines = [" ".join(head)] if head else []
    lines.append(" ".join(quoted(word) for word in command.program))
    lines += [" ".join(quoted(word) for word in words) for words in command.options]
    more = " \\"
    last = len(lines) - 1
    return [f"{indent}{'' if number == 0 else '  '}{line}{'' if number == last else more}" for number, line in enumerate(lines)]
