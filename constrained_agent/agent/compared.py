"""A folder beside the record of a run: is it as it was at the start, or as the run left it?

Of the files that a run read or changed the record has the entries; of all others together, one hash. So it can be said
which file of the first is another one, and of the others only whether any is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from constrained_agent.agent.events import Change, Changed, End, Event, Result, Run
from constrained_agent.tools.snapshot import Snapshot, entry, same
from constrained_agent.tools.workspace import Workspace

WholeTree = Literal["same", "differs", "unknown"]
"""All files of a folder beside those at the start of a run. unknown: no hash of them all is on record, or here."""

_SHOWN_HASH = 10


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a folder, or a replay, and the record part.

    Attributes:
        turn: the answer that it followed; 0 is before the first.
        path: the file, if one is concerned.
        reason: what was expected, and what came.
    """

    turn: int
    path: str | None
    reason: str

    def __str__(self) -> str:
        place = f"turn {self.turn}" if self.path is None else f"turn {self.turn}: {self.path}"
        return f"{place}: {self.reason}"


def first_entries(run: Run) -> dict[str, str | None]:
    """The files that a run read or changed, with their entries at its start, in the order of the run."""
    found = {read.path: read.entry for read in run.start.reads}
    for event in run.events:
        for change in changes(event):
            found.setdefault(change.path, change.before)
        for read in event.reads if isinstance(event, Result) else ():
            found.setdefault(read.path, read.entry)
    return found


def net_changes(events: Iterable[Event]) -> dict[str, str | None]:
    """The files that events changed, with their entries after them."""
    found: dict[str, str | None] = {}
    for event in events:
        found |= {change.path: change.after for change in changes(event)}
        if isinstance(event, End) and event.tree is not None:
            found |= {left.path: left.entry for left in event.tree}
    return found


def changes(event: Event) -> tuple[Change, ...]:
    """What an event changed."""
    return event.changes if isinstance(event, (Result, Changed)) else ()


def start_difference(run: Run, workspace: Workspace) -> Difference | None:
    """The first file of those that the run read or changed that is not as it was at its start."""
    return compare(first_entries(run), workspace, 0)


def whole_tree(run: Run, seen: Snapshot) -> WholeTree:
    """All files of a folder beside those at the start of a run.

    Args:
        seen: a look at the folder, without the transcript itself.
    """
    recorded = run.start.tree or {}
    sha256 = recorded.get("sha256")
    if not isinstance(sha256, str) or not recorded.get("complete", True) or not seen.complete:
        return "unknown"
    return "same" if seen.digest() == sha256 else "differs"


def own_paths(root: Path, transcript: Path) -> set[str]:
    """The path of a transcript below a folder, if it lies there: there it is no file of the repository."""
    root, place = root.resolve(), transcript.resolve()
    return {place.relative_to(root).as_posix()} if place.is_relative_to(root) else set()


def not_at_start(run: Run, workspace: Workspace, wrong: Difference) -> str:
    """The message for a folder that is in another state."""
    hint = (
        "it is as the run left it: `transcript cut` works on a copy, and takes that back to the start first"
        if is_as_left(run, workspace)
        else "bring back the files that the run began with (a checkout of that commit, a copy)"
    )
    return f"{workspace.root} is not as it was at the start of run {run.number}: {wrong.path}: {wrong.reason}; {hint}"


def is_as_left(run: Run, workspace: Workspace) -> bool:
    """Whether a run changed files, and they, and those that it read, are as they were after it."""
    changed = net_changes(run.events)
    return bool(changed) and compare({**first_entries(run), **changed}, workspace, 0) is None


def compare(expected: Mapping[str, str | None], workspace: Workspace, turn: int) -> Difference | None:
    """The first file that is another one than expected. Args: `turn` is that of the difference."""
    for path, recorded in expected.items():
        found = entry(workspace, path)
        if not same(recorded, found):
            return Difference(turn, path, f"{shown_entry(found)} here, {shown_entry(recorded)} on record")
    return None


def shown_entry(entry: str | None) -> str:
    """An entry for a message."""
    return "no file" if entry is None else entry[: len("100644 ") + _SHOWN_HASH]
