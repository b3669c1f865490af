"""The command tool against the case file, with real processes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from constrained_agent.tools.shell import exec_command

CASES: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("cases").joinpath("exec_command.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case(case: dict[str, Any], tmp_path: Path) -> None:
    right = case["right"]
    # Staged work, so that `git commit` comes as far as asking for a message.
    exec_command(tmp_path, "git init -q && echo text > file && git add file")
    started = time.monotonic()
    result = exec_command(tmp_path, case["input"]["command"])
    if "returns_within_seconds" in right:
        assert time.monotonic() - started < right["returns_within_seconds"]
    assert not result.timed_out
    assert right.get("output_has", "") in result.stdout
    if right.get("stdin") == "closed":
        assert (result.exit_code, result.stdout) == (0, "")
    for name, value in right.get("env", {}).items():
        assert exec_command(tmp_path, f"printenv {name}").stdout == f"{value}\n"
