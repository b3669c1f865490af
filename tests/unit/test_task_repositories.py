"""The task repositories themselves: each is broken, is mended by its reference, and is hard in the way it says."""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from os import pathsep
from pathlib import Path

import pytest

from constrained_agent.cli.check_root import Root
from constrained_agent.evals import tasks
from constrained_agent.grammar import prefix, sources
from constrained_agent.grammar.located import prefix as located_prefix
from constrained_agent.patch import format as patch_format
from constrained_agent.patch.sections import AddFile, DeleteFile, Hunk, Patch, Section, UpdateFile
from constrained_agent.patch.textfile import decode
from constrained_agent.tools.shell import CommandResult, exec_command
from constrained_agent.tools.workspace import Workspace
from tests.patch_texts import tree

each_task = pytest.mark.parametrize("name", tasks.names())

LONG = 300  # lines
ALIKE = 0.75  # of 1, as difflib rates two lines
TELLING = 8  # characters: a shorter line (`else:`) may stand in an instruction by chance


@pytest.fixture(autouse=True)
def _development_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that a development package brings are found though its environment is not activated."""
    monkeypatch.setenv("PATH", sysconfig.get_path("scripts"), prepend=pathsep)


# What the reference does


def _reference(task: tasks.Task) -> Patch:
    return patch_format.parse(task.reference, lenient=False).patch


def _updates(task: tasks.Task) -> Iterator[UpdateFile]:
    return (section for section in _reference(task).sections if isinstance(section, UpdateFile))


def _lines(task: tasks.Task, path: str) -> Sequence[str]:
    return decode((task.path / path).read_bytes(), path).texts


def _starts(lines: Sequence[str], block: Sequence[str]) -> list[int]:
    """The 0-based places at which consecutive lines stand."""
    n = len(block)
    return [start for start in range(len(lines) - n + 1) if list(lines[start : start + n]) == list(block)]


def _tested(task: tasks.Task, root: Path) -> CommandResult:
    assert not task.lacking, f"the tests of {task.name} run {', '.join(task.lacking)}: install it first"
    result = exec_command(root, task.test_command)
    assert not result.timed_out
    return result


def _apply(root: Path, patch: Patch) -> None:
    workspace = Workspace(root)
    for section in patch.sections:
        if not isinstance(section, AddFile):
            workspace.record_read(section.path, workspace.read_bytes(section.path))
    workspace.apply(patch)


def _touched(patch: Patch) -> set[str]:
    moved = {section.move_to for section in patch.sections if isinstance(section, UpdateFile)}
    return {section.path for section in patch.sections} | {path for path in moved if path}


@each_task
def test_it_fails_before_and_passes_after(name: str, tmp_path: Path) -> None:
    task, patch = tasks.load(name), _reference(tasks.load(name))
    task.copy_to(tmp_path)
    shipped = tree(tmp_path)
    before = _tested(task, tmp_path)
    assert before.exit_code not in (0, 126, 127), before.stdout + before.stderr  # 126, 127: no such program
    assert tree(tmp_path) == shipped, "the tests leave something behind"
    _apply(tmp_path, patch)
    applied = tree(tmp_path)
    after = _tested(task, tmp_path)
    assert after.exit_code == 0, after.stdout + after.stderr
    assert tree(tmp_path) == applied
    changed = {path for path in {*shipped, *applied} if shipped.get(path) != applied.get(path)}
    assert changed == _touched(patch)
    assert not changed & set(task.tests)


@each_task
def test_the_reference_is_a_located_patch_of_what_is_shown(name: str, tmp_path: Path) -> None:
    task = tasks.load(name)
    data = task.reference.encode()
    assert prefix.check(data, sources.load("apply_patch_strict")).status == "complete"
    task.copy_to(tmp_path)
    report = located_prefix.check(data, Root(str(tmp_path)).tree(data))
    assert report.status == "complete", report
    for section in _reference(task).sections:
        assert isinstance(section, AddFile) == (section.path not in task.files), section.path
    for section in _updates(task):
        windows = [shown for shown in task.shown if shown.path == section.path]
        for hunk in section.hunks:
            assert hunk.headers == ()
            assert any(_is_within(hunk, _lines(task, section.path), shown) for shown in windows), hunk


def _is_within(hunk: Hunk, lines: Sequence[str], shown: tasks.Shown) -> bool:
    start = _starts(lines, hunk.old())[-1]
    first, last = shown.first or 1, shown.last or len(lines)
    return first <= start + 1 and start + len(hunk.old()) <= last


@each_task
def test_its_facts(name: str) -> None:
    task = tasks.load(name)
    assert task.instruction
    assert "\n" not in task.instruction
    assert task.language
    assert set(task.traps) <= set(tasks.TRAPS)
    assert task.traps
    assert task.tests
    assert all((task.path / path).is_file() for path in task.tests)
    assert not set(task.tests) & _touched(_reference(task))
    for shown in task.shown:
        n_lines = len(_lines(task, shown.path))
        if shown.first is not None:
            assert shown.last is not None
            assert 1 <= shown.first < shown.last <= n_lines
    assert any(path in task.instruction for path in map(_base, _touched(_reference(task))))


def _base(path: str) -> str:
    return path.rpartition("/")[2]


@each_task
def test_the_instruction_does_not_hold_the_answer(name: str) -> None:
    task = tasks.load(name)
    for section in _reference(task).sections:
        for line in map(str.strip, _added(section)):
            assert len(line) < TELLING or line not in task.instruction


def _added(section: Section) -> list[str]:
    if isinstance(section, AddFile):
        return list(section.lines)
    hunks = section.hunks if isinstance(section, UpdateFile) else ()
    return [line.text for hunk in hunks for line in hunk.lines if line.op == "+"]


def test_every_trap_is_set_somewhere() -> None:
    assert {trap for name in tasks.names() for trap in tasks.load(name).traps} == set(tasks.TRAPS)


# What makes it hard


@dataclass(frozen=True, slots=True)
class Place:
    """One hunk of a reference, and the file that it changes."""

    content: bytes
    lines: Sequence[str]
    hunk: Hunk

    def texts(self, ops: str) -> list[str]:
        """Its lines that are context, removed or added."""
        return [line.text for line in self.hunk.lines if line.op in ops]

    def near(self) -> list[int]:
        """0-based numbers of its removed lines and of the lines right beside what changes."""
        found: set[int] = set()
        number = _starts(self.lines, self.hunk.old())[-1]
        for line in self.hunk.lines:
            if line.op != " ":
                found |= {number - 1, number, number + (line.op == "-")}
            number += line.op != "+"
        return sorted(found & set(range(len(self.lines))))


def _repeats(place: Place) -> bool:
    """A removed line, or one right beside what changes, stands in the file more than once, blanks apart."""
    lines = [line.strip() for line in place.lines]
    return any(re.search(r"\w", lines[number]) and lines.count(lines[number]) > 1 for number in place.near())


def _looks_alike(place: Place) -> bool:
    """Two other lines of the file, or more, could be taken for one that is changed."""
    for text in place.texts("-") or place.texts(" "):
        ratios = [SequenceMatcher(None, text, line, autojunk=False).ratio() for line in place.lines]
        if len(text.strip()) >= TELLING and sum(ratio >= ALIKE for ratio in ratios) >= 3:
            return True
    return False


def _indents(place: Place) -> bool:
    """A changed line stands on the other side, or elsewhere in the file, with another indentation."""
    others = [*place.lines, *place.texts("+")]
    return any(
        text.strip() and other != text and other.strip() == text.strip()
        for text in place.texts("+-")
        for other in others
    )


AT_A_PLACE: dict[str, Callable[[Place], bool]] = {
    "repeated_lines": _repeats,
    "crlf": lambda place: b"\r\n" in place.content,
    "tabs": lambda place: any("\t" in text for text in place.texts(" +-")),
    "unicode_quotes": lambda place: any(
        re.search("[‘’‚“”„‹›«»–—…\u00a0]", text) for text in place.texts("+-")
    ),
    "non_ascii": lambda place: not all(text.isascii() for text in place.texts(" +-")),
    "long_file": lambda place: len(place.lines) > LONG,
    "byte_order_mark": lambda place: place.content.startswith(b"\xef\xbb\xbf"),
    "blank_lines": lambda place: any(not text.strip() for text in place.texts(" +-")),
    "indentation": _indents,
    "similar_functions": _looks_alike,
    "regex": lambda place: any("\\" in text for text in place.texts("+-")),
}
"""Traps that stand where the reference changes a file: at one of its hunks at least."""


def _places(task: tasks.Task) -> Iterator[Place]:
    for section in _updates(task):
        content = (task.path / section.path).read_bytes()
        for hunk in section.hunks:
            yield Place(content, _lines(task, section.path), hunk)


def _ops(task: tasks.Task) -> set[str]:
    return {str(line.op) for place in _places(task) for line in place.hunk.lines} - {" "}


def _renames(task: tasks.Task) -> bool:
    """A file is moved, or a name stands in every line that goes and in none that comes."""
    if any(section.move_to for section in _updates(task)):
        return True
    words = [set(re.findall(r"\w+", text)) for place in _places(task) for text in place.texts("-")]
    new = {
        word for section in _updates(task) for text in _added(section) for word in re.findall(r"\w+", text)
    }
    return len(words) > 1 and bool(set.intersection(*words) - new)


OF_A_TASK: dict[str, Callable[[tasks.Task], bool]] = {
    "two_bugs": lambda task: len(list(_places(task))) > 1,  # and test_every_hunk_is_needed
    "rename": _renames,
    "new_file": lambda task: any(isinstance(section, AddFile) for section in _reference(task).sections),
    "deletion": lambda task: any(isinstance(section, DeleteFile) for section in _reference(task).sections),
    "several_files": lambda task: len(_reference(task).sections) > 1,
    "missing_final_newline": lambda task: any(
        not (task.path / section.path).read_bytes().endswith(b"\n") for section in _updates(task)
    ),
    "add_only": lambda task: _ops(task) == {"+"},
    "remove_only": lambda task: _ops(task) == {"-"},
}
"""Traps that the whole reference shows."""


@each_task
def test_its_traps_are_there(name: str) -> None:
    task = tasks.load(name)
    for trap in task.traps:
        if trap in AT_A_PLACE:
            assert any(map(AT_A_PLACE[trap], _places(task))), trap
        else:
            assert OF_A_TASK[trap](task), trap


@pytest.mark.parametrize("name", [name for name in tasks.names() if "two_bugs" in tasks.load(name).traps])
def test_every_hunk_is_needed(name: str, tmp_path: Path) -> None:
    """Whoever corrects only one of two bugs has not solved the task."""
    task, patch = tasks.load(name), _reference(tasks.load(name))
    for number, section in enumerate(patch.sections):
        for left_out in section.hunks if isinstance(section, UpdateFile) else ():
            assert isinstance(section, UpdateFile)
            others = replace(section, hunks=tuple(hunk for hunk in section.hunks if hunk is not left_out))
            kept = (others,) if others.hunks else ()
            root = tmp_path / str(len(list(tmp_path.iterdir())))
            task.copy_to(root)
            _apply(root, Patch((*patch.sections[:number], *kept, *patch.sections[number + 1 :])))
            assert _tested(task, root).exit_code != 0, left_out
