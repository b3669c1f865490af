"""The command tool against the case file, with real processes: as a call of the agent's tools, and by itself."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from constrained_agent.messages import ToolCall
from constrained_agent.tools.permissions import Policy
from constrained_agent.tools.registry import Tools
from constrained_agent.tools.shell import exec_command
from constrained_agent.tools.workspace import Workspace

CASES: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("cases").joinpath("exec_command.json").read_text(encoding="utf-8")
)
CHECKED = {"returns_within_seconds", "stdin", "output_has", "env", "no_crash"}


def test_every_field_is_checked() -> None:
    assert {field for case in CASES for field in case["right"]} <= CHECKED


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case(case: dict[str, Any], tmp_path: Path) -> None:
    right = case["right"]
    # Staged work, so that `git commit` comes as far as asking for a message.
    exec_command(tmp_path, "git init -q && echo text > file && git add file")
    tools = Tools(Workspace(tmp_path), Policy(yes=True))

    def run(command: str) -> Any:
        return tools.run(ToolCall("call_1", "exec_command", {"command": command}))

    started = time.monotonic()
    result = run(case["input"]["command"])
    if "returns_within_seconds" in right:
        assert time.monotonic() - started < right["returns_within_seconds"]
    assert result.ok, "a crash or a command that was not run would be none"
    assert not result.data["timed_out"]
    assert right.get("output_has", "") in result.text
    assert right.get("output_has", "") in result.data["stdout"]
    if right.get("stdin") == "closed":
        assert (result.data["exit_code"], result.data["stdout"]) == (0, "")
    for name, value in right.get("env", {}).items():
        assert run(f"printenv {name}").data["stdout"] == f"{value}\n"
