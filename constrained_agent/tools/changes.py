"""What the patches of a run changed in all, as one diff from the state before the run. Pure: keeps bytes."""

from __future__ import annotations

import difflib
import posixpath
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from constrained_agent.errors import PatchError
from constrained_agent.patch import FilePlan, LineChange, textfile, unified_diff


@dataclass(frozen=True, slots=True)
class Changes:
    """Paths that differ from before the run, sorted, and the diff that makes the difference."""

    paths: tuple[str, ...]
    diff: str


class ChangeLog:
    """Collects applied plans. What commands change on the disk is not seen here."""

    def __init__(self) -> None:
        self._patches: list[tuple[FilePlan, ...]] = []

    def record(self, files: Sequence[FilePlan]) -> None:
        """Take in the files of one applied patch."""
        if files:
            self._patches.append(tuple(files))

    def take_back(self) -> None:
        """The last patch was taken back. If there is none, it was one from before the log began."""
        if self._patches:
            self._patches.pop()

    def summary(self) -> Changes:
        """The net change. Files that only one patch touched keep that patch's own, linear diff."""
        plans = [plan for patch in self._patches for plan in patch]
        first, last = _ends(plans)
        touched = Counter(path for plan in plans for path in _paths(plan))
        once = [plan for plan in plans if all(touched[path] == 1 for path in _paths(plan))]
        covered = {path for plan in once for path in _paths(plan)}
        changed = [path for path in sorted(first) if first[path] != last[path]]
        rest = [_net(path, first[path], last[path]) for path in changed if path not in covered]
        return Changes(tuple(changed), unified_diff([*once, *rest]))


def _ends(plans: Sequence[FilePlan]) -> tuple[dict[str, bytes | None], dict[str, bytes | None]]:
    """What each path held before the first plan, and after the last one."""
    first: dict[str, bytes | None] = {}
    last: dict[str, bytes | None] = {}
    for file in plans:
        path = posixpath.normpath(file.path)
        first.setdefault(path, file.old)
        last[path] = None if file.new_path else file.new
        if file.new_path:
            target = posixpath.normpath(file.new_path)
            first.setdefault(target, None)
            last[target] = file.new
    return first, last


def _net(path: str, old: bytes | None, new: bytes | None) -> FilePlan:
    changes = _changes(old or b"", new or b"", path)
    return FilePlan(
        path=path,
        action="add" if old is None else "delete" if new is None else "update",
        new_path=None,
        old=old,
        new=new,
        added=sum(change.new_end - change.new_start for change in changes),
        removed=sum(change.old_end - change.old_start for change in changes),
        changes=changes,
    )


def _changes(old: bytes, new: bytes, path: str) -> tuple[LineChange, ...]:
    """The lines that differ; none of a file that is no text (one was deleted, and another added in its place)."""
    try:
        before, after = textfile.decode(old, path).texts, textfile.decode(new, path).texts
    except PatchError:
        return ()
    opcodes = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return tuple(LineChange(a, b, c, d) for tag, a, b, c, d in opcodes if tag != "equal")


def _paths(plan: FilePlan) -> list[str]:
    return [posixpath.normpath(path) for path in (plan.path, plan.new_path) if path]
