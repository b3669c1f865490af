"""The one door to the repository's files: bounded paths, what was read, and the only writer."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import stat
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from constrained_agent.errors import PatchError, UserError
from constrained_agent.patch import explain
from constrained_agent.patch.plan import FilePlan, Plan, plan, unified_diff
from constrained_agent.patch.reverse import inverted, plan_back
from constrained_agent.patch.sections import AddFile, Patch, UpdateFile
from constrained_agent.tools import names, operations, wayback
from constrained_agent.tools.journal import Journal
from constrained_agent.tools.names import Taken
from constrained_agent.tools.places import Places
from constrained_agent.tools.reads import Reading, Reads
from constrained_agent.tools.rooted import Rooted, digest
from constrained_agent.tools.steps import Step
from constrained_agent.tools.wayback import FileBack, WayBack


@dataclass(frozen=True, slots=True)
class Applied:
    """What a patch did, or with `dry_run` would do.

    Attributes:
        files: in the order in which the patch names them.
        diff: unified diff of all of them; undecodable bytes stand as U+DC80 to U+DCFF.
        recovered: an interrupted patch was undone or cleaned up first.
        back: what takes it back; None with `dry_run`, and of what was taken back.
    """

    files: tuple[FilePlan, ...]
    diff: str
    dry_run: bool
    recovered: bool
    back: WayBack | None = None


class Workspace:
    """A folder that tools may read and patches may change, and never anything outside it.

    Remembers what was read: a patch of a file that changed since is refused.

    Args:
        root: an existing folder; links to it are resolved once, here.

    Raises:
        UserError: there is no such folder.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(os.path.realpath(root))
        if not self.root.is_dir():
            raise UserError(f"{os.fspath(root)} is not a folder")
        self._places = Places(self.root)
        self._rooted = Rooted(self.root)
        self._journal = Journal(self.root)
        self._reads = Reads()

    def resolve(self, path: str) -> Path:
        """The real place of a path, and what it may not be: see `Places.resolve`."""
        return self._places.resolve(path)

    def read_bytes(self, path: str) -> bytes:
        """A file's bytes.

        Raises:
            PatchError: `file_not_found`, `is_directory`, or what `resolve` raises.
        """
        content = self._content(path)
        if content is None:
            raise explain.file_not_found(path, self._names, update=False)
        return content

    def holds_credentials(self, path: str) -> bool:
        """Whether a look into a file, or folder, is one at credentials: see `Places.holds_credentials`."""
        return self._places.holds_credentials(path)

    def check_changeable(self, path: str) -> None:
        """Refuse what no patch may change though it may be read: see `Places.check_changeable`."""
        self._places.check_changeable(path)

    def record_read(self, path: str, content: bytes, lines: range | None = None) -> None:
        """Remember that the model has been shown a file with this content.

        Lines of content that it was shown before add up; if the file was another one then, that is forgotten.

        Args:
            content: all of the file's bytes.
            lines: those that were shown, 0-based and counted as `textfile.decode` does; None for all.

        Raises:
            PatchError: what `resolve` raises.
        """
        self._reads.add(self.resolve(path), content, lines)

    def forget(self, path: str) -> None:
        """Take a file as not read; nothing happens where there is none."""
        with contextlib.suppress(PatchError):
            self._reads.forget(self.resolve(path))

    def seen(self, path: str) -> str | None:
        """SHA-256 of what the model last saw of a file; None if it has not read it."""
        seen = self._reads.get(self.resolve(path))
        return None if seen is None else seen.digest

    def readings(self) -> list[Reading]:
        """The files that were read and still hold what was read, the most recently read or patched one last.

        What the run's own patches made of them counts as read. Files that no patch can spell or may change are left
        out.

        Cost: reads each file once, 1 ms for 1 MB.
        """
        found: dict[Hashable, Reading] = {}
        for real, seen in self._reads.items():
            path = self._places.relative(real)
            content = self._on_disk(path) if self._is_named(path) else None
            if content is not None and digest(content) == seen.digest:
                # Of several hard links the last one counts: a patch may change a file under one name only.
                identity = self._places.identity(path)
                found.pop(identity, None)
                found[identity] = Reading(path, content, seen.ranges)
        return list(found.values())

    def taken(self) -> Taken:
        """What a new file must not be named, at this moment.

        Cost: some 50 ms for a large repository (`names.taken` says what bounds it).
        """
        return names.taken(self.root, self._places.closed())

    def apply(
        self,
        patch: Patch,
        *,
        dry_run: bool = False,
        reverse: bool = False,
        check: Callable[[Sequence[FilePlan]], None] | None = None,
    ) -> Applied:
        """Apply a patch, all of it or nothing; first recovers from a patch that was killed.

        Args:
            dry_run: check everything, write nothing; only what a killed patch left is undone here, too.
            reverse: take the patch back instead (`patch.plan_back` says what that means).
            check: looks at what would be written; nothing is, if it raises.

        Raises:
            PatchError: nothing was changed.

        Cost: planning is linear in the files; writing flushes each file to the disk.
        """
        with self._recovered(dry_run) as recovered:
            planned = self._plan(patch, reverse)
            if check is not None:
                check(planned.files)
            diff = planned.diff()
            if dry_run:
                return Applied(planned.files, diff, dry_run, recovered)
            steps = [step for file in planned.files for step in self._steps(file)]
            routes = [operations.route(file, self._places) for file in planned.files]
            files = tuple(
                operations.way_back(file, self._places, self._reads.get(route.source))
                for file, route in zip(planned.files, routes, strict=True)
            )
            back = WayBack(files, tuple(self._journal.missing_folders(steps)))
            self._journal.commit(steps)
        self._reads.refresh(list(zip(planned.files, routes, strict=True)))
        return Applied(planned.files, diff, dry_run, recovered, back)

    def take_back(self, back: WayBack, *, dry_run: bool = False) -> Applied:
        """Take an applied patch back, byte for byte, all of it or nothing; patches after it have to go first.

        Modes, deleted and moved files, and links come back as they were; folders that the patch made go if nothing
        else is in them. Of a deleted file, owner, extended attributes and further hard links do not come back. What
        was read of the files counts as read on, and lines that come back as read, too.

        Args:
            dry_run: check everything, write nothing.

        Raises:
            PatchError: `changed_on_disk` if something else changed a file since, `exists` if something stands where
                one would come back. Nothing was changed.
            ToolError: the record lacks what is needed.
        """
        with self._recovered(dry_run) as recovered:
            for path in (*back.folders, *(path for file in back.files for path in file.places())):
                self._places.check_own(path)
            undone = wayback.undone(back, self._on_disk)
            for step in undone.steps:
                if step.kind == "create":
                    taken = "something stands now where the file would come back; move it away first"
                    self._places.check_room(step.path, undone.vacated(), taken)
            applied = Applied(undone.files, unified_diff(undone.files), dry_run, recovered)
            if dry_run:
                return applied
            routes = [operations.route(file, self._places) for file in undone.files]
            self._journal.commit(undone.steps, back.folders[::-1])
        self._reads.refresh(list(zip(undone.files, routes, strict=True)))
        for file in back.files:
            if file.action == "delete":
                self._remember(self.root / file.path, file)
        return applied

    def recover(self) -> bool:
        """Undo or clean up what a killed process left behind. True if there was anything.

        Raises:
            PatchError: `write_failed`: it could not, or another process holds the root.
        """
        with self._journal.locked():
            return self._journal.recover()

    @contextlib.contextmanager
    def _recovered(self, dry_run: bool) -> Iterator[bool]:
        """Hold the root, but for a dry run, with nothing left of a killed patch. Yields whether there was anything."""
        if dry_run:
            yield self._journal.pending() and self.recover()
            return
        with self._journal.locked():
            yield self._journal.recover()

    def _plan(self, patch: Patch, reverse: bool) -> Plan:
        for section in inverted(patch).sections if reverse else patch.sections:
            self.check_changeable(section.path)
            if isinstance(section, UpdateFile) and section.move_to is not None:
                self.check_changeable(section.move_to)
            if not isinstance(section, AddFile):
                self._check_stamp(section.path)
        # One look at each path: another program may swap links and files meanwhile.
        read, identity = functools.cache(self._content), functools.cache(self._places.identity)
        planner = plan_back if reverse else plan
        planned = planner(patch, read, identity=identity, names=self._names)
        vacated = {
            self._places.of_name(file.path).casefold() for file in planned.files if file.action == "move"
        }
        for file in planned.files:
            if file.action in ("add", "move"):
                self._places.check_room(file.new_path or file.path, vacated)
        return planned

    def _check_stamp(self, path: str) -> None:
        seen = self.seen(path)
        if seen is not None and (content := self._content(path)) is not None and digest(content) != seen:
            reason = "the file changed since it was read; read it again, then write the patch anew"
            raise PatchError("changed_on_disk", reason, path=path)

    def _content(self, path: str) -> bytes | None:
        """A file's bytes, None if there is none."""
        real = self.resolve(path)
        try:
            mode = os.stat(real).st_mode
            if stat.S_ISDIR(mode):
                raise PatchError("is_directory", "this is a folder; name a file", path=path)
            if not stat.S_ISREG(mode):
                raise PatchError("bad_path", "this is a device or a pipe, not a file", path=path)
            return self._rooted.read(self._places.relative(real))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            bad = error.errno in (errno.ELOOP, errno.ENAMETOOLONG)
            reason = f"the file cannot be read: {error.strerror}"
            raise PatchError("bad_path" if bad else "write_failed", reason, path=path) from error

    def _is_named(self, path: str) -> bool:
        """Whether a patch can name an existing file by this path, and may change it."""
        try:
            self.check_changeable(path)
            return names.is_spelled_in_patches(path) and self.resolve(path) == self.root / path
        except PatchError:
            return False

    def _on_disk(self, path: str) -> bytes | None:
        """A regular file's bytes, None for anything else; no link is followed."""
        try:
            return self._rooted.read(path)
        except OSError:
            return None

    def _steps(self, file: FilePlan) -> list[Step]:
        return operations.steps(file, self._places)

    def _remember(self, real: Path, file: FileBack) -> None:
        """A deleted file that came back is known as well as it was."""
        self._reads.forget(real)
        if file.seen is not None and file.content is not None and file.link is None:
            for lines in file.seen.ranges or (range(0),):
                self._reads.add(real, file.content, lines)

    def _names(self) -> Iterator[str]:
        return names.suggestions(self.root)
