"""Where the paths that a model names lead: never out of one folder, not into `.git`, and to rules only for a look."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Hashable
from pathlib import Path

from constrained_agent.errors import PatchError
from constrained_agent.tools import credentials, names, rules

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


class Places:
    """Paths below one folder. Looks at links and folders on the disk, opens no file and changes nothing.

    Args:
        root: real path of the folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def resolve(self, path: str) -> Path:
        """The real place of a path; nothing needs to exist there.

        Args:
            path: relative to the root, `/` between its parts; `.` is the root itself.

        Raises:
            PatchError: `bad_path`, or `outside_root` for absolute paths, `..`, links that lead out, and `.git`;
                `changed_on_disk` if another program changes links on the way at this moment.
        """
        self._check_spelling(path)
        if "\\" in path and not os.path.lexists(self.root / path):
            raise PatchError("bad_path", "write / between folders, not \\", path=path)
        if names.is_output(path) and not os.path.lexists(self.root / path):
            reason = "this is what a command printed, not a file: read_file shows it, nothing else can be done with it"
            raise PatchError("bad_path", reason, path=path)
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

    def holds_credentials(self, path: str) -> bool:
        """Whether something stands at a path that is a file of credentials, or a folder of them, by any of its names.

        Raises:
            PatchError: what `resolve` raises.
        """
        real = self.resolve(path)
        return os.path.lexists(real) and any(
            credentials.named(f"/{one}") for one in (path, self.relative(real))
        )

    def check_changeable(self, path: str) -> None:
        """Make sure that changing a file, or making one, grants nobody permissions: a person alone writes the rules.

        That is the file of rules of this folder and of any below it, which may be a root some day, and the person's
        own, under whatever name: through links, as a hard link, in another case.

        Raises:
            PatchError: `outside_root`, or what `resolve` raises.
        """
        real = self.resolve(path)
        parts = (*self.of_name(path).split("/"), *self.relative(real).split("/"))
        if any(map(names.is_rules, parts)) or self._is_of_rules(real):
            reason = "this file says what commands may run unasked: only a person changes it, by hand"
            raise PatchError("outside_root", reason, path=path)

    def closed(self) -> list[str]:
        """Paths of this folder at which nothing new may be, beside names that stand for rules in any folder."""
        return [self.relative(folder) for folder in self._rule_folders() if folder.is_relative_to(self.root)]

    def _is_of_rules(self, real: Path) -> bool:
        seen = names.as_seen(os.fspath(real))
        folders = [names.as_seen(os.fspath(folder)) for folder in self._rule_folders()]
        if any(seen == folder or seen.startswith(f"{folder}/") for folder in folders):
            return True
        for file in (self.root / rules.REPOSITORY_NAME, rules.home_file(os.environ)):
            with contextlib.suppress(OSError):
                if os.path.samefile(file, real):
                    return True
        return False

    def _rule_folders(self) -> list[Path]:
        """The folder of the person's own rules, as it is named and where it really is."""
        folder = rules.home_file(os.environ).parent
        return list(dict.fromkeys([folder, Path(os.path.realpath(folder))]))

    def relative(self, real: Path) -> str:
        """A real place as a path of the root."""
        return real.relative_to(self.root).as_posix()

    def of_name(self, path: str) -> str:
        """Where the name itself stands: links above it are resolved, a link at it is not."""
        above, _, name = path.rstrip("/").rpartition("/")
        return self.relative((self.resolve(above) if above else self.root) / name)

    def check_own(self, path: str) -> None:
        """Make sure that a path which was written down earlier still is its own place, without links above it.

        Raises:
            PatchError: it is not, or could never have been one.
        """
        self._check_spelling(path)
        if any(part in ("", ".") or names.is_git(part) for part in path.split("/")):
            raise PatchError("outside_root", "this is no path of a file that a patch may change", path=path)
        if self.of_name(path) != path:
            reason = "a folder above it has become a link since; put the folder back first"
            raise PatchError("changed_on_disk", reason, path=path)
        self.check_changeable(path)

    def identity(self, path: str) -> Hashable:
        """Equal for two paths that are one file: through links, hard links, or on a disk that ignores case."""
        real = self.resolve(path)
        try:
            facts = os.stat(real)
        except OSError:
            return os.fspath(real)
        return facts.st_dev, facts.st_ino

    def check_room(
        self, path: str, vacated: set[str], taken: str = "a link stands there; choose another name"
    ) -> None:
        """A new file needs folders above it and nothing at its own place, not even a dangling link.

        Args:
            vacated: places, with case folded, of files that go away at the same time.
            taken: what to say where something stands.

        Raises:
            PatchError: `exists` or `bad_path`.
        """
        place = self.of_name(path)
        if os.path.lexists(self.root / place) and place.casefold() not in vacated:
            raise PatchError("exists", taken, path=path)
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
