"""What a run does to files, as fields for its transcript: enough to make the same tree once more without a model.

Patches are made again by being applied, so of what they write hashes suffice. What commands and people write is written
down itself. And of a file that was read, or patched, the text before its first change: so the start can be had back.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from constrained_agent.errors import ToolError
from constrained_agent.messages import ToolCall
from constrained_agent.patch import UpdateFile, parse
from constrained_agent.tools.rooted import digest
from constrained_agent.tools.snapshot import Difference, Snapshot, differences, entry, following, look
from constrained_agent.tools.workspace import Workspace

MAX_TEXT_BYTES, MAX_EVENT_CHARS = 200_000, 1_000_000
"""Of one file, and of all in one event: of a larger one only the hash is there, as of one that is not UTF-8 text."""

MAX_CHANGES = 500
"""In one event: a command that makes more (an installation, a build) is better run again."""

Fields = dict[str, Any]


class Footprints:
    """Looks at a repository before and after what may change it.

    States: `begin` first, then, in turn, `before` and `after` (which is missing after an interrupt).

    Args:
        root: the repository.
        own: the transcript's own file, which is nobody's change.
    """

    def __init__(self, root: Path, own: Path) -> None:
        self._workspace = Workspace(root)
        place = Path(os.path.realpath(own))
        inside = place.is_relative_to(self._workspace.root)
        self._own = {place.relative_to(self._workspace.root).as_posix()} if inside else set[str]()
        self._start = self._last = look(self._workspace.root, ignored=self._own)
        self._named: set[str] = set()
        self._touched: set[str] = set()
        self._old_texts: dict[str, str] = {}

    @property
    def complete(self) -> bool:
        """False: there are too many files to see changes by those that nobody named."""
        return self._last.complete

    def begin(self) -> Fields:
        """The tree at the start of a run, as one hash. Cost: a look, 10 ms for 1,000 files."""
        self._start = self._last = self._look()
        self._touched.clear()
        self._old_texts.clear()
        files = self._start.files
        return {"sha256": self._start.digest(), "files": len(files), "complete": self._start.complete}

    def reads(self, paths: Iterable[str]) -> list[Fields]:
        """Files that the model was shown, with their entries; those that cannot be found are left out."""
        found = []
        for path in paths:
            with contextlib.suppress(ToolError, OSError):
                real = self._real(path)
                if (there := entry(self._workspace, real)) is not None:
                    found.append({"path": real, "entry": there})
                    self._remember([real])
        return found

    def before(self, call: ToolCall | None = None) -> Fields:
        """What changed since the last look, before a call (None: a command of the person's) may change more."""
        changes = self._changes(with_text=True)
        paths = self._of_patch(call) if call is not None and call.name == "apply_patch" else set[str]()
        # A patch may also name files in folders that no look goes into.
        self._named |= paths
        self._start = following(self._start, self._workspace.root, paths - self._touched)
        self._last = following(self._last, self._workspace.root, paths)
        self._remember(paths)
        return changes

    def after(self, *, by_patch: bool) -> Fields:
        """What the call changed. Of a patch, not the texts: they come of applying it."""
        return self._changes(with_text=not by_patch)

    def end(self) -> list[Fields]:
        """The files that are not as they were at the start, with their entries, as of the last look."""
        return [{"path": found.path, "entry": found.after} for found in differences(self._start, self._last)]

    def _look(self) -> Snapshot:
        return look(self._workspace.root, self._last, ignored=self._own, also=self._named)

    def _changes(self, *, with_text: bool) -> Fields:
        """Differences since the last look, which this look takes the place of."""
        now = self._look()
        found = differences(self._last, now)
        self._last = now
        room = MAX_EVENT_CHARS
        changes = []
        for difference in found[:MAX_CHANGES]:
            texts = {key: text for key, text in self._texts(difference, with_text) if len(text) <= room}
            room -= sum(map(len, texts.values()))
            fields = {"path": difference.path, "before": difference.before, "after": difference.after}
            changes.append({**fields, **texts})
        self._touched.update(difference.path for difference in found)
        left_out = {"changes_left_out": len(found) - MAX_CHANGES} if len(found) > MAX_CHANGES else {}
        return {"changes": changes, **left_out} if changes else {}

    def _texts(self, found: Difference, with_text: bool) -> Iterator[tuple[str, str]]:
        """A changed file's text before its first change, if it is known, and after a change that is no patch."""
        old = self._old_texts.pop(found.path, None)
        if old is not None and found.before is not None and found.before.endswith(digest(old.encode())):
            yield "before_text", old
        is_file = found.after is not None and found.after.startswith("100")
        if with_text and is_file and (new := self._text(found.path)) is not None:
            yield "text", new

    def _remember(self, paths: Iterable[str]) -> None:
        """Keep the texts of files that were not changed so far."""
        for path in paths:
            if path not in self._touched and (text := self._text(path)) is not None:
                self._old_texts[path] = text

    def _of_patch(self, call: ToolCall) -> set[str]:
        """The files that a patch names, as looks see them; none of a patch that cannot be read."""
        found = set()
        with contextlib.suppress(ToolError):
            for section in parse(str(call.arguments.get("patch", ""))).patch.sections:
                moved = section.move_to if isinstance(section, UpdateFile) else None
                found |= {self._real(path) for path in (section.path, moved) if path is not None}
        return found

    def _real(self, path: str) -> str:
        return self._workspace.resolve(path).relative_to(self._workspace.root).as_posix()

    def _text(self, path: str) -> str | None:
        """A file's text at this moment; None for what is none, is too long, or is not there."""
        with contextlib.suppress(ToolError, OSError, UnicodeDecodeError):
            if (self._workspace.root / path).stat().st_size <= MAX_TEXT_BYTES:
                data = self._workspace.read_bytes(path)
                return None if b"\0" in data else data.decode("utf-8")
        return None
