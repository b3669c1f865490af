"""File operations below one folder that never follow a link on their way.

Every path is walked from the root's own descriptor, folder by folder, without following links: a link that is
swapped in between a check and a write makes the operation fail instead of leaving the root.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a pipe that nobody writes to would hang.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_REWRITE = os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
# The disk has no hard links, no further one for this file, or none across its border.
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)
# The disk or the user may not have such an attribute, or it went meanwhile.
_NO_ATTRIBUTES = (errno.EPERM, errno.EACCES, errno.EOPNOTSUPP, errno.ENODATA, errno.EINVAL)


class Rooted:
    """All paths are relative to the root, with `/`, and hold no link but, at most, the last part.

    Every method raises `OSError` when the system refuses.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    @contextlib.contextmanager
    def _parent(self, path: str) -> Iterator[tuple[int, str]]:
        """The descriptor of the folder that holds `path`, and the last part of it."""
        *folders, name = path.split("/")
        fd = os.open(self.root, _FOLDER)
        try:
            for folder in folders:
                inner = os.open(folder, _FOLDER, dir_fd=fd)
                os.close(fd)
                fd = inner
            yield fd, name
        finally:
            os.close(fd)

    def stat(self, path: str) -> os.stat_result | None:
        """What stands at a path, a link as itself; None for nothing."""
        try:
            with self._parent(path) as (fd, name):
                return os.stat(name, dir_fd=fd, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def read(self, path: str) -> bytes:
        """A regular file's bytes."""
        with self._parent(path) as (fd, name), open(os.open(name, _READ, dir_fd=fd), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            return file.read()

    def digest(self, path: str) -> str | None:
        """SHA-256 of a regular file; None for anything else."""
        try:
            return digest(self.read(path))
        except OSError:
            return None

    def create(self, path: str, data: bytes, like: str | None = None) -> None:
        """Write a file that must not exist, down to the disk.

        Args:
            like: an existing file whose mode and, where allowed, owner and extended attributes it takes; else it
                has the user's default mode.
        """
        with self._parent(path) as (fd, name):
            handle = os.open(name, _CREATE, 0o666 if like is None else 0o600, dir_fd=fd)
            with open(handle, "wb") as file:
                file.write(data)
                file.flush()
                if like is not None:
                    with self._parent(like) as (like_fd, like_name):
                        model = os.open(like_name, _READ, dir_fd=like_fd)
                    try:
                        _take_after(handle, model)
                    finally:
                        os.close(model)
                os.fsync(handle)

    def rewrite(self, path: str, data: bytes) -> None:
        """Replace a file's bytes in place: all its hard links see them. Not atomic."""
        with self._parent(path) as (fd, name), open(os.open(name, _REWRITE, dir_fd=fd), "wb") as file:
            file.write(data)
            file.flush()
            os.ftruncate(file.fileno(), len(data))
            os.fsync(file.fileno())

    def link(self, old: str, new: str) -> bool:
        """Give a file a second name that must not exist; False where that cannot be had."""
        with self._parent(old) as (old_fd, old_name), self._parent(new) as (new_fd, new_name):
            try:
                os.link(old_name, new_name, src_dir_fd=old_fd, dst_dir_fd=new_fd, follow_symlinks=False)
            except NotImplementedError:
                return False
            except OSError as error:
                if error.errno in _NO_LINKS:
                    return False
                raise
            return True

    def rename(self, old: str, new: str) -> None:
        """Rename, replacing what stands at `new`."""
        with self._parent(old) as (old_fd, old_name), self._parent(new) as (new_fd, new_name):
            os.rename(old_name, new_name, src_dir_fd=old_fd, dst_dir_fd=new_fd)

    def remove(self, path: str) -> None:
        """Remove a file or a link, if it is there."""
        with contextlib.suppress(FileNotFoundError), self._parent(path) as (fd, name):
            os.unlink(name, dir_fd=fd)

    def make_folder(self, path: str) -> None:
        """Make a folder in an existing one."""
        with self._parent(path) as (fd, name):
            os.mkdir(name, dir_fd=fd)

    def remove_folder(self, path: str) -> None:
        """Remove a folder if it is there and empty."""
        with contextlib.suppress(OSError), self._parent(path) as (fd, name):
            os.rmdir(name, dir_fd=fd)

    def sync_folder(self, path: str) -> None:
        """Bring the folder that holds `path` down to the disk, where the system can."""
        with (
            contextlib.suppress(FileNotFoundError),
            self._parent(path) as (fd, _),
            contextlib.suppress(OSError),
        ):
            os.fsync(fd)


def _take_after(handle: int, model: int) -> None:
    """Give one open file the owner, the extended attributes and the mode of another one."""
    own, wanted = os.fstat(handle), os.fstat(model)
    if (own.st_uid, own.st_gid) != (wanted.st_uid, wanted.st_gid):
        with contextlib.suppress(PermissionError):
            os.fchown(handle, wanted.st_uid, wanted.st_gid)
    _copy_attributes(handle, model)
    # Last: a change of owner takes mode bits away, and access lists write into them.
    os.fchmod(handle, stat.S_IMODE(wanted.st_mode))


def _copy_attributes(handle: int, model: int) -> None:
    """Labels, capabilities, access lists and the user's own notes, as far as disk and rights allow."""
    if not hasattr(os, "listxattr"):  # Python has it on Linux only
        return
    try:
        names = os.listxattr(model)
    except OSError:
        return
    for name in names:
        try:
            os.setxattr(handle, name, os.getxattr(model, name))
        except OSError as error:
            if error.errno not in _NO_ATTRIBUTES:
                raise


def digest(data: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()
