"""A workspace that remembers for a whole conversation what was read and changed in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from constrained_agent.patch import FilePlan, Patch
from constrained_agent.tools.changes import ChangeLog, Changes
from constrained_agent.tools.wayback import WayBack
from constrained_agent.tools.workspace import Applied, Workspace


class Watched(Workspace):
    """Tools count changes from one task to the next, and only files that still are as they were read; a person asks
    about the conversation. What commands change is not seen here."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        super().__init__(root)
        self._log = ChangeLog()
        self._shown: dict[str, None] = {}

    def record_read(self, path: str, content: bytes, lines: range | None = None) -> None:
        super().record_read(path, content, lines)
        self._shown[self._name(path)] = None

    def forget(self, path: str) -> None:
        super().forget(path)
        self._shown.pop(self._name(path), None)

    def apply(
        self,
        patch: Patch,
        *,
        dry_run: bool = False,
        reverse: bool = False,
        check: Callable[[Sequence[FilePlan]], None] | None = None,
    ) -> Applied:
        applied = super().apply(patch, dry_run=dry_run, reverse=reverse, check=check)
        if not dry_run:
            self._log.record(applied.files)
        return applied

    def take_back(self, back: WayBack, *, dry_run: bool = False) -> Applied:
        applied = super().take_back(back, dry_run=dry_run)
        if not dry_run:
            self._log.take_back()
        return applied

    def changes(self) -> Changes:
        """What all patches of the conversation changed, from the state before the first."""
        return self._log.summary()

    def shown(self) -> tuple[str, ...]:
        """The files that the model was shown, in the order of their first showing; some may be gone."""
        return tuple(self._shown)

    def _name(self, path: str) -> str:
        return self.resolve(path).relative_to(self.root).as_posix()
