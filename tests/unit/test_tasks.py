"""The task repositories that ship with the package."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from constrained_agent.errors import UserError
from constrained_agent.evals import tasks
from constrained_agent.patch import format as patch_format
from constrained_agent.tools.shell import CommandResult, exec_command
from constrained_agent.tools.workspace import Workspace

FIRST_FIX = """\
*** Begin Patch
*** Update File: dateparse.py
@@
-        month, day, year = map(int, match.groups())
+        day, month, year = map(int, match.groups())
*** End Patch
"""


def _tested(task: tasks.Task, root: Path) -> CommandResult:
    return exec_command(root, task.test_command)


def _message(result: CommandResult) -> str:
    found = re.search(r"^AssertionError: .*", result.stderr, re.MULTILINE)
    assert found, result.stderr
    return found[0]


def _apply(root: Path, text: str) -> None:
    workspace = Workspace(root)
    for path in ("dateparse.py",):
        workspace.record_read(path, workspace.read_bytes(path))
    workspace.apply(patch_format.parse(text).patch)


def test_names_and_load() -> None:
    assert "dateparse" in tasks.names()
    for name in tasks.names():
        task = tasks.load(name)
        assert task.name == name
        assert task.instruction
        assert all((task.path / file).is_file() for file in task.files)


def test_an_unknown_task_names_the_known_ones() -> None:
    with pytest.raises(UserError, match="dateparse"):
        tasks.load("no such task")


def test_dateparse_has_the_shape_that_makes_it_hard() -> None:
    lines = (tasks.load("dateparse").path / "dateparse.py").read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    assert len(lines) == 44
    assert lines[30] == lines[35] == "        return datetime.date(year, month, day)"
    assert lines[34] == "        month, day, year = map(int, match.groups())"
    assert lines[40] == "        month = MONTHS.index(name.lower())"


def test_dateparse_shows_its_bugs_one_after_the_other(tmp_path: Path) -> None:
    task = tasks.load("dateparse")
    task.copy_to(tmp_path)
    before = _tested(task, tmp_path)
    assert before.exit_code == 1
    assert "FAILED (failures=1)" in before.stderr  # test_parse_iso passes
    assert "test_parse_date" in before.stderr
    _apply(tmp_path, FIRST_FIX)
    between = _tested(task, tmp_path)
    assert between.exit_code == 1
    assert "test_parse_date" in between.stderr
    assert _message(between) != _message(before)


def test_the_reference_patch_solves_the_task(tmp_path: Path) -> None:
    task = tasks.load("dateparse")
    task.copy_to(tmp_path)
    _apply(tmp_path, task.reference)
    assert _tested(task, tmp_path).exit_code == 0


def test_copy_takes_the_repository_and_nothing_else(tmp_path: Path) -> None:
    task = tasks.load("dateparse")
    task.copy_to(tmp_path / "new" / "folder")
    copied = sorted(path.name for path in (tmp_path / "new" / "folder").rglob("*"))
    assert copied == ["dateparse.py", "test_dateparse.py"]


def test_copy_refuses_a_folder_with_something_in_it(tmp_path: Path) -> None:
    tmp_path.joinpath("mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UserError, match="not an empty folder"):
        tasks.load("dateparse").copy_to(tmp_path)
    with pytest.raises(UserError, match="not an empty folder"):
        tasks.load("dateparse").copy_to(tmp_path / "mine.txt")
