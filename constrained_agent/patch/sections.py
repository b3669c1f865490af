"""The values that a patch is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Op = Literal[" ", "+", "-"]


@dataclass(frozen=True, slots=True)
class HunkLine:
    """One line of a hunk: context (blank), added or removed; `text` has no prefix and no `\\n`."""

    op: Op
    text: str


@dataclass(frozen=True, slots=True)
class Hunk:
    """One change, found by its old lines.

    Attributes:
        headers: texts of its `@@` lines, outermost first. A bare `@@` narrows nothing and is not kept.
        lines: context, added and removed lines in patch order.
        end_of_file: the old lines are the last ones of the file.
    """

    headers: tuple[str, ...]
    lines: tuple[HunkLine, ...]
    end_of_file: bool = False

    def old(self) -> list[str]:
        """The lines that the file must hold: context and removed ones."""
        return [line.text for line in self.lines if line.op != "+"]

    def new(self) -> list[str]:
        """The lines that the file will hold: context and added ones."""
        return [line.text for line in self.lines if line.op != "-"]


@dataclass(frozen=True, slots=True)
class AddFile:
    """A new file; every line gets `\\n`."""

    path: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """A file to remove."""

    path: str


@dataclass(frozen=True, slots=True)
class UpdateFile:
    """Changes to one file, a new name for it, or both."""

    path: str
    move_to: str | None
    hunks: tuple[Hunk, ...]


Section = AddFile | DeleteFile | UpdateFile


@dataclass(frozen=True, slots=True)
class Patch:
    """Sections in patch order."""

    sections: tuple[Section, ...]
