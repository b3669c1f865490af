"""One place of a located patch: what the text has there, and where in which file that is."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from constrained_agent.grammar.located.automaton import ROOT
from constrained_agent.grammar.located.progress import Header, InHunk, Progress

ADD, MOVE = "*** Add File: ", "*** Move to: "
NAMING = ("*** Update File: ", "*** Delete File: ")
_MAX_NUMBERS = 5  # places that are listed
_MAX_TEXT = 120  # characters of a line in a message


class Folder(Protocol):
    """The folder that a text is checked against.

    Attributes:
        where: it in words, as `under src`.
    """

    where: str

    def near(self, path: str) -> Sequence[str]:
        """Files that a wrong path may mean, the likeliest first."""

    def beginning(self, begun: bytes, but: Collection[str]) -> Sequence[str]:
        """Files that a patch can name whose paths begin so, without some; a few more than fit into a message."""

    def trouble(self, path: str) -> str:
        """Why a patch cannot name what stands at a path; empty if nothing stands there, or nothing is wrong."""


@dataclass(frozen=True, slots=True)
class Spot:
    """The hunk that a text is in.

    Attributes:
        lines: all lines of its file.
        n_old: its old lines so far.
        ends: where they stand: how many lines of the file lie before the end of each such run.
    """

    path: str
    hunk: InHunk
    lines: Sequence[str]
    n_old: int
    ends: Sequence[int]

    @property
    def starts(self) -> list[int]:
        """Line numbers (from 1) where the old lines stand."""
        return [end - self.n_old + 1 for end in self.ends]

    @property
    def next_lines(self) -> list[tuple[int, str]]:
        """The lines below the runs that begin below the hunk before, with their numbers (from 1)."""
        ends = (end for end in self.ends if end - self.n_old >= self.hunk.start and end < len(self.lines))
        return [(end + 1, self.lines[end]) for end in ends]


@dataclass(frozen=True, slots=True)
class Here:
    """A place of a text.

    Attributes:
        progress: where the text up to it has led to.
        folder: where the files stand.
        line: the beginning of its line, up to the place.
        found: all of the line, as the text has it; None where the text ends with the place.
        spot: the hunk that the line stands in, or could begin.
        n_new: files that sections above have added.
    """

    progress: Progress
    folder: Folder
    line: str
    found: str | None
    spot: Spot | None
    n_new: int

    @property
    def named(self) -> set[str]:
        """Paths of the files that sections above have named."""
        return {self.progress.located.files[number].path for number in self.progress.named}

    @property
    def fixed(self) -> bool:
        """Whether the hunk may end: it changes something, and its old lines fix one place."""
        spot = self.spot
        return spot is not None and spot.hunk.changed and self.progress.state_of(spot.hunk).end is not None

    @property
    def has_next_hunk(self) -> bool:
        """Whether another hunk fits behind this one."""
        if self.spot is None:
            return False
        automaton = self.progress.located.files[self.spot.hunk.file].automaton
        end = self.progress.state_of(self.spot.hunk).end
        return end is not None and automaton.n_lines > 0 and end <= automaton.states[ROOT].latest_end

    def path_found(self, key: str) -> str | None:
        """The path that the text has behind a key; None where the text ends with the place."""
        return None if self.found is None else self.found[len(key) :].removesuffix("\r")

    def taken(self, path: str) -> str:
        """What keeps a new file from standing at a path; empty if nothing stands there."""
        new, made = self.progress.located.new_paths, self.progress.made
        if path in made:
            return f"this patch makes {path} already"
        if below := next((other for other in made if other.startswith(path + "/")), None):
            return f"this patch makes {below}, so {path} is a folder"
        if path in new.folders:
            return f"{path} is a folder"
        return f"{path} exists" if path in new.files else ""


def place(
    progress: Progress, data: bytes, n_valid: int, folder: Folder, lines: Mapping[str, Sequence[str]]
) -> Here:
    """The place behind the first `n_valid` bytes of a text, which led to `progress`.

    Args:
        lines: all lines of each file on offer, by path.
    """
    start = n_valid - len(progress.line)
    end = data.find(b"\n", n_valid)
    whole = data[start : end if end >= 0 else len(data)]
    return Here(
        progress,
        folder,
        progress.line.decode("utf-8", "replace"),
        whole.decode("utf-8", "replace") if n_valid < len(data) else None,
        _spot(progress, data[:start], lines),
        data.count(f"\n{ADD}".encode(), 0, start),
    )


def _spot(progress: Progress, before: bytes, lines: Mapping[str, Sequence[str]]) -> Spot | None:
    """The hunk that the line stands in, or could begin; None where there is none.

    Args:
        before: the text up to the line.
    """
    place = progress.place
    if isinstance(place, Header):
        place = InHunk(place.file)
    if not isinstance(place, InHunk):
        return None
    file = progress.located.files[place.file]
    if not file.automaton.states:
        return None
    old = []
    for line in reversed(before.split(b"\n")[:-1]):
        if line.startswith((b"@@", b"*** ")):
            break
        if line.startswith((b" ", b"-")):
            old.append(line[1:].decode())
    there = lines[file.path]
    ends = list(range(len(there) + 1))
    for text in reversed(old):
        ends = [end + 1 for end in ends if end < len(there) and there[end] == text]
    return Spot(file.path, place, there, len(old), ends)


def numbers(lines: Sequence[int]) -> str:
    """`line 3`, `lines 3, 17, 40`, `lines 1, 2, 3, 4, 5 and 7 more`."""
    shown = ", ".join(map(str, lines[:_MAX_NUMBERS]))
    more = len(lines) - _MAX_NUMBERS
    return f"line{'s' * (len(lines) > 1)} {shown}" + (f" and {more:,} more" if more > 0 else "")


def shown(text: str) -> str:
    """A line in quotes; a long one is cut."""
    return json.dumps(text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + "…", ensure_ascii=False)
