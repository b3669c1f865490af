"""What a model is told of a command that cannot do what was meant: nobody presses keys, and a tool is no command."""

from __future__ import annotations

import re
from collections.abc import Sequence

from constrained_agent.tools.shell import CommandResult

_EDITOR = r"((?:r|g|n)?vim?|r?view|vimdiff)"
"""Of the programs that want a terminal, those that go on without one; `nano`, `top` and `less` end at once."""

_ONLY_AN_EDITOR = re.compile(
    rf"\s*(?:cd\s+[^\s;&|<>()$`]+\s*(?:&&|;)\s*)?{_EDITOR}(?:\s+(?!-)[^\s;&|<>()$`]+)*\s*"
)
_AN_EDITOR_TOO = re.compile(rf"(?:^|[;&|(\n]|\b(?:do|then|else)\s)\s*{_EDITOR}(?:\s|$)")
_INSTEAD = "there is no terminal; look at files with read_file, change them with apply_patch"


def waits(command: str) -> str | None:
    """Why a command would only wait to be ended, if that is sure: an editor without commands for it."""
    found = _ONLY_AN_EDITOR.fullmatch(command)
    return f"not run: {found[1]} waits for somebody to press keys, and {_INSTEAD}" if found else None


def notes(command: str, result: CommandResult, tools: Sequence[str]) -> list[str]:
    """What to add to a result.

    Args:
        tools: the names of all tools.
    """
    found = []
    for name in tools:
        missing = re.search(rf"(?<![\w./-]){name}: ", result.stderr)
        if missing and (result.exit_code == 127 or "not found" in result.stderr):
            found.append(f"{name} is a tool of its own, not a command: call it as a tool")
    if result.timed_out and (editor := _AN_EDITOR_TOO.search(command)):
        found.append(f"{editor[1]} waits for somebody to press keys, and {_INSTEAD}")
    return found
