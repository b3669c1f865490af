"""The task repositories that ship with the package.

A task is a folder of `repositories/`: `task.toml` (instruction, files, test command, and what makes it hard), `repo/`
(what the model gets) and `reference.patch` (one right answer, which the model never sees).
"""

from __future__ import annotations

import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path

from constrained_agent.errors import UserError

_REPOSITORIES = Path(__file__).resolve().parent / "repositories"

_BYTECODE = "__pycache__"
"""Installers compile every .py file of a wheel; the copies must not inherit that."""


TRAPS = (
    "repeated_lines",
    "crlf",
    "tabs",
    "unicode_quotes",
    "two_bugs",
    "rename",
    "new_file",
    "deletion",
    "long_file",
    "missing_final_newline",
    "byte_order_mark",
    "several_files",
    "blank_lines",
    "indentation",
    "similar_functions",
    "regex",
    "non_ascii",
    "add_only",
    "remove_only",
)
"""What makes tasks hard: each of these is something that patches are known to fail on."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A file that is put before the model as read.

    Attributes:
        path: within the repository.
        first, last: its lines, from 1; None for the whole file.
    """

    path: str
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """A repository with something wrong, and how to tell that it was put right.

    Attributes:
        name: the task's folder.
        instruction: what the model is asked.
        shown: what is put before the model as read.
        tests: paths that are put back as shipped before the tests run; changing them solves nothing.
        test_command: a shell command, run in the repository; exit code 0 means solved.
        language: what the files are written in.
        traps: what makes the task hard, in the words of `TRAPS`.
        needs: programs that the tests run, beside sh and python3.
        path: the repository as shipped; work on a copy.
    """

    name: str
    instruction: str
    shown: tuple[Shown, ...]
    tests: tuple[str, ...]
    test_command: str
    language: str
    traps: tuple[str, ...]
    needs: tuple[str, ...]
    path: Path

    @property
    def reference(self) -> str:
        """An apply_patch text that solves the task."""
        return (self.path.parent / "reference.patch").read_text(encoding="utf-8")

    @property
    def files(self) -> tuple[str, ...]:
        """Paths of the files that are put before the model."""
        return tuple(dict.fromkeys(shown.path for shown in self.shown))

    @property
    def lacking(self) -> tuple[str, ...]:
        """The programs that its tests need and that this machine has not."""
        return tuple(name for name in self.needs if shutil.which(name) is None)

    def restore_tests(self, directory: Path) -> None:
        """Put the tests of a copy back as they were shipped; nothing is written through a link."""
        for path in self.tests:
            for parent in reversed(Path(path).parents):
                folder = directory / parent
                if folder.is_symlink() or folder.is_file():
                    folder.unlink()
            target = directory / path
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            target.unlink(missing_ok=True)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((self.path / path).read_bytes())

    def copy_to(self, directory: Path) -> None:
        """Copy the repository into a folder, which is made if it is missing.

        Raises:
            UserError: the folder holds something already, or is a file.
        """
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise UserError(f"{directory} is not an empty folder: name a new one for the task {self.name}")
        for source in sorted(self.path.rglob("*")):
            inside = source.relative_to(self.path)
            if source.is_file() and _BYTECODE not in inside.parts:
                target = directory / inside
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(source.read_bytes())


def names() -> list[str]:
    """Sorted names of the tasks."""
    return sorted(path.parent.name for path in _REPOSITORIES.glob("*/task.toml"))


def load(name: str) -> Task:
    """Read one task.

    Raises:
        UserError: there is no task of that name.
    """
    if name not in names():
        raise UserError(f"there is no task {name!r}; the tasks are: {', '.join(names())}")
    folder = _REPOSITORIES / name
    facts = tomllib.loads((folder / "task.toml").read_text(encoding="utf-8"))
    return Task(
        name=name,
        instruction=facts["instruction"].strip(),
        shown=tuple(map(_shown, facts["files"])),
        tests=tuple(facts["tests"]),
        test_command=facts["test_command"],
        language=facts["language"],
        traps=tuple(facts["traps"]),
        needs=tuple(facts["needs"]),
        path=folder / "repo",
    )


def _shown(text: str) -> Shown:
    """`PATH`, or `PATH:FIRST-LAST`."""
    path, colon, lines = text.rpartition(":")
    if not colon:
        return Shown(text)
    first, _, last = lines.partition("-")
    return Shown(path, int(first), int(last))
