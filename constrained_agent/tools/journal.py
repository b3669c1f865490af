"""Several file operations that happen all or not at all, also when the process is killed between them.

The journal lies outside the repository. It is written before anything is touched and says how to go back; one
rename marks it as done. Whoever comes next goes back from a journal that is not done, and only cleans up
behind one that is. States of the folder: empty, `undo.json`, `done.json`; only `commit` and `recover` move it,
under a lock.

Covered: kill, crash, full disk, refused writes. Power loss as far as `fsync` is honest. Not covered: another
program that changes the same files in the instant between the last check and the rename.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from constrained_agent.errors import PatchError
from constrained_agent.tools.restoring import Restoring
from constrained_agent.tools.rooted import digest
from constrained_agent.tools.state import lock, state_folder, state_places
from constrained_agent.tools.steps import Entry, Record, Step, content_of_link

_UNDO, _DONE, _LOCK = "undo.json", "done.json", "lock"


class Journal:
    """The journal of one root. Raises `PatchError` (`write_failed`, `changed_on_disk`) and has then undone all.

    Args:
        root: real path of the folder that steps are relative to.
    """

    def __init__(self, root: Path) -> None:
        self._rooted = Restoring(root)

    @functools.cached_property
    def _folder(self) -> Path:
        return state_folder(self._rooted.root)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the root against other processes that use its journal; a lock ends with its process."""
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(lock(self._folder / _LOCK))
            except TimeoutError as error:
                reason = (
                    f"{error} is applying a patch to this folder and does not end; wait for it, or end it"
                )
                raise PatchError("write_failed", reason) from error
            except OSError as error:
                reason = (
                    f"no journal can be kept ({error}); set XDG_STATE_HOME to a folder that can be written"
                )
                raise PatchError("write_failed", reason) from error
            yield

    def pending(self) -> bool:
        """Whether there is something to recover, or a patch under way. Makes and locks nothing."""
        return any(
            (place / name).exists() for place in state_places(self._rooted.root) for name in (_UNDO, _DONE)
        )

    def missing_folders(self, steps: Sequence[Step]) -> list[str]:
        """The folders that steps need and that do not exist, outer ones first."""
        try:
            return self._missing_folders(steps)
        except OSError as error:
            raise _unprepared(error) from error

    def _missing_folders(self, steps: Sequence[Step]) -> list[str]:
        folders: dict[str, None] = {}
        for step in steps:
            parent = step.path.rpartition("/")[0]
            missing: list[str] = []
            while parent and self._rooted.stat(parent) is None:
                missing.append(parent)
                parent = parent.rpartition("/")[0]
            folders.update(dict.fromkeys(reversed(missing)))
        return list(folders)

    def commit(self, steps: Sequence[Step], emptied: Sequence[str] = ()) -> None:
        """Do all steps or none. Hold `locked` and call `recover` first.

        Args:
            emptied: folders to remove after that if they are empty, inner ones first.

        Cost: about three disk flushes a file.
        """
        try:
            record = self._record_of(steps, emptied)
            self._store(record, steps)
        except OSError as error:
            (self._folder / _UNDO).unlink(missing_ok=True)
            raise _unprepared(error) from error
        try:
            self._prepare(record, steps)
            # Removals first: a file may be moved away and another one take its name.
            for i in sorted(range(len(steps)), key=lambda i: steps[i].kind != "remove"):
                self._do(record.entries[i], steps[i])
            self._sync(record)
            self._rename_record(_UNDO, _DONE)
        except BaseException as error:
            self._go_back(record, error)
            if isinstance(error, OSError):
                raise _refused(error, record) from error
            raise
        with contextlib.suppress(OSError):  # what stays behind is cleaned up by the next recovery
            self._finish(record)

    def recover(self) -> bool:
        """Finish what a killed process left: go back, or clean up. Hold `locked`. True if there was anything."""
        try:
            for name, finish in ((_UNDO, self._undo), (_DONE, self._finish)):
                if (self._folder / name).exists():
                    raw = json.loads((self._folder / name).read_text(encoding="ascii"))
                    entries = [Entry(**entry) for entry in raw["entries"]]
                    finish(Record(raw["folders"], entries, raw.get("emptied", [])))
                    return True
        except (OSError, ValueError, KeyError, TypeError) as error:
            reason = f"an interrupted patch could not be undone ({error}); its journal is {self._folder}"
            raise PatchError("write_failed", reason) from error
        return False

    def _record_of(self, steps: Sequence[Step], emptied: Sequence[str]) -> Record:
        token = secrets.token_hex(4)
        entries = []
        for i, step in enumerate(steps):
            parent, slash, _ = step.path.rpartition("/")
            stem = f"{parent}{slash}.constrained-agent-{token}-{i}"
            old = None if step.old is None else digest(step.old)
            new = None if step.data is None else digest(step.data)
            if step.link is not None:
                new = content_of_link(step.link)
            kind: Any = "rewrite" if step.kind == "replace" and self._is_linked(step.path) else step.kind
            entries.append(Entry(kind, step.path, f"{stem}.new", f"{stem}.old", old, new))
        return Record(self._missing_folders(steps), entries, list(emptied))

    def _is_linked(self, path: str) -> bool:
        facts = self._rooted.stat(path)
        return facts is not None and facts.st_nlink > 1

    def _store(self, record: Record, steps: Sequence[Step]) -> None:
        for i, entry in enumerate(record.entries):
            if entry.kind == "rewrite":
                _write(self._blob(i), steps[i].old or b"")
        _write(self._folder / "next.json", json.dumps(asdict(record)).encode("ascii"))
        self._rename_record("next.json", _UNDO)

    def _prepare(self, record: Record, steps: Sequence[Step]) -> None:
        for folder in record.folders:
            with contextlib.suppress(FileExistsError):
                self._rooted.make_folder(folder)
        for entry, step in zip(record.entries, steps, strict=True):
            if step.link is not None:
                self._rooted.make_link(entry.temp, step.link)
            elif entry.kind in ("create", "replace"):
                if step.same and step.like and self._rooted.link(step.like, entry.temp):
                    continue
                like = step.path if entry.kind == "replace" else step.like
                assert step.data is not None
                self._rooted.create(entry.temp, step.data, like)
                if step.mode is not None:
                    self._rooted.set_mode(entry.temp, step.mode)

    def _do(self, entry: Entry, step: Step) -> None:
        rooted = self._rooted
        if entry.kind == "create":
            if not rooted.link(entry.temp, entry.path):
                if rooted.stat(entry.path) is not None:
                    raise FileExistsError(errno.EEXIST, "File exists", entry.path)
                rooted.rename(entry.temp, entry.path)
        elif entry.kind == "rewrite":
            self._check_unchanged(entry, entry.path)
            assert step.data is not None
            rooted.rewrite(entry.path, step.data)
        else:
            if entry.kind == "remove" or not rooted.link(entry.path, entry.backup):
                rooted.rename(entry.path, entry.backup)
            self._check_unchanged(entry, entry.backup)
            if entry.kind == "replace":
                rooted.rename(entry.temp, entry.path)

    def _check_unchanged(self, entry: Entry, path: str) -> None:
        if entry.old is not None and self._rooted.digest(path) != entry.old:
            reason = "the file changed while the patch was being applied; read it again"
            raise PatchError("changed_on_disk", reason, path=entry.path)

    def _go_back(self, record: Record, error: BaseException) -> None:
        try:
            self._undo(record)
        except OSError as second:
            reason = f"{error}; going back failed too ({second}) and is tried again before the next patch"
            raise PatchError("write_failed", reason) from second

    def _undo(self, record: Record) -> None:
        for i, entry in reversed(list(enumerate(record.entries))):
            if entry.kind == "create":
                self._undo_create(entry)
            elif entry.kind == "rewrite":
                if self._rooted.digest(entry.path) != entry.old:
                    self._rooted.rewrite(entry.path, self._blob(i).read_bytes())
            elif self._rooted.stat(entry.backup) is not None and self._may_restore(entry):
                self._rooted.rename(entry.backup, entry.path)
        self._remove_left_overs(record)
        for folder in reversed(record.folders):
            self._rooted.remove_folder(folder)
        self._clean_up(record)

    def _undo_create(self, entry: Entry) -> None:
        ours, there = self._rooted.stat(entry.temp), self._rooted.stat(entry.path)
        if there is None:
            return
        if os.path.samestat(ours, there) if ours else self._content(entry.path) == entry.new:
            self._rooted.remove(entry.path)

    def _content(self, path: str) -> str | None:
        """What stands at a path, in the words of an `Entry`."""
        target = self._rooted.link_target(path)
        return self._rooted.digest(path) if target is None else content_of_link(target)

    def _may_restore(self, entry: Entry) -> bool:
        """Whether what stands there is ours or nothing: what somebody wrote since is worth more."""
        there = self._rooted.stat(entry.path)
        if there is None or entry.old is None:
            return there is None
        return self._rooted.digest(entry.path) in (entry.old, entry.new)

    def _remove_left_overs(self, record: Record) -> None:
        for entry in record.entries:
            self._rooted.remove(entry.temp)
            self._rooted.remove(entry.backup)

    def _finish(self, record: Record) -> None:
        """What comes after the last step; done again from the start if it is interrupted."""
        self._remove_left_overs(record)
        for folder in record.emptied:
            self._rooted.remove_folder(folder)
        self._clean_up(record)

    def _clean_up(self, record: Record) -> None:
        self._remove_left_overs(record)
        self._sync(record)
        for name in (_UNDO, _DONE):
            (self._folder / name).unlink(missing_ok=True)
        for i in range(len(record.entries)):
            self._blob(i).unlink(missing_ok=True)

    def _sync(self, record: Record) -> None:
        paths = [entry.path for entry in record.entries] + record.folders
        for path in {path.rpartition("/")[0]: path for path in paths}.values():
            self._rooted.sync_folder(path)

    def _rename_record(self, old: str, new: str) -> None:
        os.rename(self._folder / old, self._folder / new)
        handle = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def _blob(self, i: int) -> Path:
        return self._folder / f"old-{i}"


def _write(path: Path, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _unprepared(error: OSError) -> PatchError:
    return PatchError("write_failed", f"the patch cannot be prepared: {error}")


def _refused(error: OSError, record: Record) -> PatchError:
    name = os.path.basename(str(error.filename or ""))
    names = {os.path.basename(text): e.path for e in record.entries for text in (e.path, e.temp, e.backup)}
    if isinstance(error, FileExistsError):
        return PatchError(
            "exists", "the file was created meanwhile; nothing was changed", path=names.get(name)
        )
    reason = f"{error.strerror or error}; nothing was changed"
    return PatchError("write_failed", reason, path=names.get(name))
