"""Commands that cannot do what they were meant to, and what the model is told of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from constrained_agent.messages import ToolCall, ToolResult
from constrained_agent.tools import hints
from constrained_agent.tools.permissions import Policy
from constrained_agent.tools.registry import Tools
from constrained_agent.tools.shell import CommandResult
from constrained_agent.tools.workspace import Workspace

OWN = "apply_patch is a tool of its own, not a command: call it as a tool"


def _run(root: Path, command: str) -> ToolResult:
    return Tools(Workspace(root), Policy(yes=True)).run(ToolCall("1", "exec_command", {"command": command}))


@pytest.mark.parametrize(
    "command",
    [
        "apply_patch <<'EOF'\n*** Begin Patch\n*** End Patch\nEOF",
        "cd . && apply_patch x",
        "apply_patch x; true",
        "sh -c 'apply_patch x; exit 1'",
    ],
)
def test_a_tool_is_no_command(tmp_path: Path, command: str) -> None:
    assert f"note: {OWN}\n" in _run(tmp_path, command).text


@pytest.mark.parametrize(
    "command", ["nothing_of_the_kind", "echo apply_patch: not found", "./apply_patch x", "true"]
)
def test_what_is_no_tool_is_as_it_was(tmp_path: Path, command: str) -> None:
    assert "note:" not in _run(tmp_path, command).text


@pytest.mark.parametrize(
    "command", ["vi f", " vim 'a.py' b.py\n", "cd src && vim a.py", "view f", "vimdiff a b", "vi +3 f"]
)
def test_an_editor_that_would_wait_is_not_run(tmp_path: Path, command: str) -> None:
    result = _run(tmp_path, command)
    assert not result.ok
    assert "waits for somebody to press keys" in result.text
    assert "apply_patch" in result.text


@pytest.mark.parametrize(
    "command",
    [
        "vim --version",
        "vim -es -c wq f",
        "echo vi f",
        "vi f | cat",
        "vi $F",
        "video f",
        "vi-x f",
        "echo a; # vi f",
        "vi <f",
    ],
)
def test_what_may_end_by_itself_is_run(command: str) -> None:
    assert hints.waits(command) is None


@pytest.mark.parametrize(
    ("command", "told"),
    [("git add . && vi f | cat", True), ("vim -c 'x' f", True), ("sleep 100", False), ("cat vi", False)],
)
def test_an_editor_that_waited_is_named(command: str, told: bool) -> None:
    result = CommandResult(-15, "", "", 30.0, timed_out=True, left_children=False)
    assert bool(hints.notes(command, result, [])) is told
