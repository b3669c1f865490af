"""The one door to the repository's files: bounded paths, what was read, and the only writer."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import re
import stat
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path

from constrained_agent.errors import PatchError, UserError
from constrained_agent.patch import explain
from constrained_agent.patch.plan import FilePlan, Plan, plan
from constrained_agent.patch.reverse import inverted, plan_back
from constrained_agent.patch.sections import AddFile, Patch
from constrained_agent.tools import names
from constrained_agent.tools.journal import Journal, Step
from constrained_agent.tools.names import Taken
from constrained_agent.tools.reads import Reading, Reads, Route
from constrained_agent.tools.rooted import Rooted, digest

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


@dataclass(frozen=True, slots=True)
class Applied:
    """What a patch did, or with `dry_run` would do.

    Attributes:
        files: in the order in which the patch names them.
        diff: unified diff of all of them; undecodable bytes stand as U+DC80 to U+DCFF.
        recovered: an interrupted patch was undone or cleaned up first.
    """

    files: tuple[FilePlan, ...]
    diff: str
    dry_run: bool
    recovered: bool


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
        self._rooted = Rooted(self.root)
        self._journal = Journal(self.root)
        self._reads = Reads()

    def resolve(self, path: str) -> Path:
        """The real place of a path; nothing needs to exist there.

        Args:
            path: relative to the root, `/` between its parts; `.` is the root itself.

        Raises:
            PatchError: `bad_path`, or `outside_root` for absolute paths, `..`, links that lead out, and `.git`;
                `changed_on_disk` if another program changes links on the way at this moment.
        """
        self._check_spelling(path)
        try:
            real = Path(os.path.realpath(self.root / path))
        except OSError as error:  # a link that went between two looks at it
            raise PatchError(
                "changed_on_disk", f"the path changes right now: {error.strerror}", path=path
            ) from error
        if not real.is_relative_to(self.root):
            raise PatchError("outside_root", f"it leads out of the root through a link, to {real}", path=path)
        if any(names.is_git(part) for part in (*path.split("/"), *real.relative_to(self.root).parts)):
            raise PatchError("outside_root", "what is in .git is changed by git only", path=path)
        return real

    def read_bytes(self, path: str) -> bytes:
        """A file's bytes.

        Raises:
            PatchError: `file_not_found`, `is_directory`, or what `resolve` raises.
        """
        content = self._content(path)
        if content is None:
            raise explain.file_not_found(path, self._names, update=False)
        return content

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

        What the run's own patches made of them counts as read. Files whose names no patch can spell are left out.

        Cost: reads each file once, 1 ms for 1 MB.
        """
        found: dict[Hashable, Reading] = {}
        for real, seen in self._reads.items():
            path = self._relative(real)
            content = self._on_disk(path) if self._is_named(path) else None
            if content is not None and digest(content) == seen.digest:
                # Of several hard links the last one counts: a patch may change a file under one name only.
                identity = self._identity(path)
                found.pop(identity, None)
                found[identity] = Reading(path, content, seen.ranges)
        return list(found.values())

    def taken(self) -> Taken:
        """What a new file must not be named, at this moment.

        Cost: some 50 ms for a large repository (`names.taken` says what bounds it).
        """
        return names.taken(self.root)

    def apply(self, patch: Patch, *, dry_run: bool = False, reverse: bool = False) -> Applied:
        """Apply a patch, all of it or nothing; first recovers from a patch that was killed.

        Args:
            dry_run: check everything, write nothing; only what a killed patch left is undone here, too.
            reverse: take the patch back instead (`patch.plan_back` says what that means).

        Raises:
            PatchError: nothing was changed.

        Cost: planning is linear in the files; writing flushes each file to the disk.
        """
        if dry_run:
            recovered = self._journal.pending() and self.recover()
            planned = self._plan(patch, reverse)
            return Applied(planned.files, planned.diff(), dry_run, recovered)
        with self._journal.locked():
            recovered = self._journal.recover()
            planned = self._plan(patch, reverse)
            applied = Applied(planned.files, planned.diff(), dry_run, recovered)
            steps = [step for file in applied.files for step in self._steps(file)]
            routes = [self._route(file) for file in applied.files]
            self._journal.commit(steps)
        self._reads.refresh(list(zip(applied.files, routes, strict=True)))
        return applied

    def recover(self) -> bool:
        """Undo or clean up what a killed process left behind. True if there was anything.

        Raises:
            PatchError: `write_failed`: it could not, or another process holds the root.
        """
        with self._journal.locked():
            return self._journal.recover()

    def _plan(self, patch: Patch, reverse: bool) -> Plan:
        for section in inverted(patch).sections if reverse else patch.sections:
            if not isinstance(section, AddFile):
                self._check_stamp(section.path)
        # One look at each path: another program may swap links and files meanwhile.
        read, identity = functools.cache(self._content), functools.cache(self._identity)
        planner = plan_back if reverse else plan
        planned = planner(patch, read, identity=identity, names=self._names)
        vacated = {self._place(file.path).casefold() for file in planned.files if file.action == "move"}
        for file in planned.files:
            if file.action in ("add", "move"):
                self._check_room(file.new_path or file.path, vacated)
        return planned

    def _check_stamp(self, path: str) -> None:
        seen = self.seen(path)
        if seen is not None and (content := self._content(path)) is not None and digest(content) != seen:
            reason = "the file changed since it was read; read it again, then write the patch anew"
            raise PatchError("changed_on_disk", reason, path=path)

    def _check_room(self, path: str, vacated: set[str]) -> None:
        """A new file needs folders above it and nothing at its own place, not even a dangling link."""
        place = self._place(path)
        if os.path.lexists(self.root / place) and place.casefold() not in vacated:
            raise PatchError("exists", "a link stands there; choose another name", path=path)
        above = place.rpartition("/")[0]
        while above:
            if os.path.exists(self.root / above) and not os.path.isdir(self.root / above):
                raise PatchError("bad_path", f"{above} is a file, not a folder", path=path)
            above = above.rpartition("/")[0]

    def _check_spelling(self, path: str) -> None:
        try:
            os.fsencode(path)
        except UnicodeEncodeError as error:
            raise PatchError("bad_path", "the path holds half a character") from error
        if not path.strip() or "\0" in path:
            raise PatchError("bad_path", "the path is blank or holds NUL", path=path.replace("\0", "\\0"))
        if os.path.isabs(path) or path.startswith("~/") or _DRIVE.match(path) or ".." in path.split("/"):
            reason = f"paths are relative to {self.root}, without `..` and without a leading / or ~"
            raise PatchError("outside_root", reason, path=path)
        if "\\" in path and not os.path.lexists(self.root / path):
            raise PatchError("bad_path", "write / between folders, not \\", path=path)

    def _content(self, path: str) -> bytes | None:
        """A file's bytes, None if there is none."""
        real = self.resolve(path)
        try:
            mode = os.stat(real).st_mode
            if stat.S_ISDIR(mode):
                raise PatchError("is_directory", "this is a folder; name a file", path=path)
            if not stat.S_ISREG(mode):
                raise PatchError("bad_path", "this is a device or a pipe, not a file", path=path)
            return self._rooted.read(self._relative(real))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            bad = error.errno in (errno.ELOOP, errno.ENAMETOOLONG)
            reason = f"the file cannot be read: {error.strerror}"
            raise PatchError("bad_path" if bad else "write_failed", reason, path=path) from error

    def _is_named(self, path: str) -> bool:
        """Whether a patch can name an existing file by this path."""
        try:
            return names.is_spelled_in_patches(path) and self.resolve(path) == self.root / path
        except PatchError:
            return False

    def _on_disk(self, path: str) -> bytes | None:
        """A regular file's bytes, None for anything else; no link is followed."""
        try:
            return self._rooted.read(path)
        except OSError:
            return None

    def _relative(self, real: Path) -> str:
        return real.relative_to(self.root).as_posix()

    def _place(self, path: str) -> str:
        """Where the name itself stands: links above it are resolved, a link at it is not."""
        above, _, name = path.rstrip("/").rpartition("/")
        return self._relative((self.resolve(above) if above else self.root) / name)

    def _identity(self, path: str) -> Hashable:
        """Equal for two paths that are one file: through links, hard links, or on a disk that ignores case."""
        real = self.resolve(path)
        try:
            facts = os.stat(real)
        except OSError:
            return os.fspath(real)
        return facts.st_dev, facts.st_ino

    def _steps(self, file: FilePlan) -> Iterator[Step]:
        if file.action == "add":
            yield Step("create", self._place(file.path), file.new)
            return
        place, real = self._place(file.path), self._relative(self.resolve(file.path))
        is_link = (self.root / place).is_symlink()
        if file.action == "update":
            yield Step("replace", real, file.new, file.old)
            return
        # A link is removed as itself; what it leads to stays.
        yield Step("remove", place, None, None if is_link else file.old)
        if file.new_path is not None:
            same = file.new == file.old and not is_link
            yield Step("create", self._place(file.new_path), file.new, None, like=real, same=same)

    def _route(self, file: FilePlan) -> Route:
        """Under which paths a file is remembered, before the patch and after it."""
        real = self.resolve(file.path)
        if file.action == "update":
            return Route(real, real, real)
        place = self.root / self._place(file.path)
        return Route(real, place, self.root / self._place(file.new_path) if file.new_path else place)

    def _names(self) -> Iterator[str]:
        return names.suggestions(self.root)
