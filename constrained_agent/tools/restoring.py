"""File operations that only going back needs: files with a given mode, and symbolic links."""

from __future__ import annotations

import os
import stat

from constrained_agent.tools.rooted import Rooted

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class Restoring(Rooted):
    """`Rooted`, and what makes a file as it was. Raises `OSError` when the system refuses."""

    def set_mode(self, path: str, mode: int) -> None:
        """Give a regular file its permission bits; no more than those."""
        with self._parent(path) as (fd, name):
            handle = os.open(name, _OPEN, dir_fd=fd)
            try:
                os.fchmod(handle, mode & 0o777)
            finally:
                os.close(handle)

    def make_link(self, path: str, target: str) -> None:
        """Make a symbolic link where nothing stands; where it leads is not looked at."""
        with self._parent(path) as (fd, name):
            os.symlink(target, name, dir_fd=fd)

    def link_target(self, path: str) -> str | None:
        """What a symbolic link leads to, as it is written; None if there is no link."""
        facts = self.stat(path)
        if facts is None or not stat.S_ISLNK(facts.st_mode):
            return None
        with self._parent(path) as (fd, name):
            return os.readlink(name, dir_fd=fd)
