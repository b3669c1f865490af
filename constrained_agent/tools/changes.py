"""What the patches of a run changed in all, as one diff from the state before the run. Pure: keeps bytes."""

from __future__ import annotations

import difflib
import posixpath
from collections import Counter
from collections.abc import Iterator, Sequence
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
        self._plans: list[FilePlan] = []
        self._first: dict[str, bytes | None] = {}
        self._last: dict[str, bytes | None] = {}

    def record(self, files: Sequence[FilePlan]) -> None:
        """Take in the files of one applied patch."""
        for file in files:
            path = posixpath.normpath(file.path)
            self._first.setdefault(path, file.old)
            self._last[path] = None if file.new_path else file.new
            if file.new_path:
                target = posixpath.normpath(file.new_path)
                self._first.setdefault(target, None)
                self._last[target] = file.new
            self._plans.append(file)

    def summary(self) -> Changes:
        """The net change. Files that only one patch touched keep that patch's own, linear diff."""
        touched = Counter(path for plan in self._plans for path in _paths(plan))
        once = [plan for plan in self._plans if all(touched[path] == 1 for path in _paths(plan))]
        covered = {path for plan in once for path in _paths(plan)}
        rest = [plan for path in sorted(self._first) if path not in covered for plan in self._net(path)]
        changed = tuple(path for path in sorted(self._first) if self._first[path] != self._last[path])
        return Changes(changed, unified_diff([*once, *rest]))

    def _net(self, path: str) -> Iterator[FilePlan]:
        old, new = self._first[path], self._last[path]
        if old == new:
            return
        changes = _changes(old or b"", new or b"", path)
        yield FilePlan(
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
