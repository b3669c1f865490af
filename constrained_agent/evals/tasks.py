"""The task repositories that ship with the package.

A task is a folder of `repositories/`: `task.toml` (instruction, files, test command), `repo/` (what the model gets)
and `reference.patch` (one right answer, which the model never sees).
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from constrained_agent.errors import UserError

_REPOSITORIES = Path(__file__).resolve().parent / "repositories"

_BYTECODE = "__pycache__"
"""Installers compile every .py file of a wheel; the copies must not inherit that."""


@dataclass(frozen=True, slots=True)
class Task:
    """A repository with something wrong, and how to tell that it was put right.

    Attributes:
        name: the task's folder.
        instruction: what the model is asked.
        files: paths within the repository that are put before the model as read.
        test_command: a shell command, run in the repository; exit code 0 means solved.
        path: the repository as shipped; work on a copy.
    """

    name: str
    instruction: str
    files: tuple[str, ...]
    test_command: str
    path: Path

    @property
    def reference(self) -> str:
        """An apply_patch text that solves the task."""
        return (self.path.parent / "reference.patch").read_text(encoding="utf-8")

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
        files=tuple(facts["files"]),
        test_command=facts["test_command"],
        path=folder / "repo",
    )
