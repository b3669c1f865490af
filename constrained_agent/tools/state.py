"""Where the user's own state lies that belongs to a repository, but not into it, and who holds it at a time."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

LOCK_WAIT_S = 10.0
"""A patch holds its root for a second or two; what takes longer hangs, and somebody has to look."""

_POLL_S = 0.05
_MAX_HOLDER_BYTES = 200


def state_folder(root: Path) -> Path:
    """The folder of a root's journal, made if need be: in the user's state folder, unless that is inside the root.

    Raises:
        OSError: none can be made.
    """
    *own, shared = state_places(root)
    for folder in own:
        with contextlib.suppress(OSError):
            return _own_folder(folder)
    _own_folder(shared.parents[2])
    return _own_folder(shared)


def state_places(root: Path) -> list[Path]:
    """Where a root's journal may lie, best first; the last one is below the folder for temporary files."""
    home = os.environ.get("XDG_STATE_HOME", "")
    base = Path(home if os.path.isabs(home) else os.path.expanduser("~/.local/state"))
    name = Path("constrained-agent", "journal", hashlib.sha256(os.fsencode(root)).hexdigest()[:16])
    shared = Path(tempfile.gettempdir(), f"{name.parts[0]}-{os.getuid()}") / name
    return [shared] if Path(os.path.realpath(base)).is_relative_to(root) else [base / name, shared]


@contextlib.contextmanager
def lock(path: Path, wait_s: float = LOCK_WAIT_S) -> Iterator[None]:
    """Hold a lock file, which names its holder; a lock ends with its process.

    Raises:
        TimeoutError: another process kept it for `wait_s` seconds; the text names that process.
        OSError: the file cannot be made.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + wait_s
        while not _locked(handle):
            if time.monotonic() >= deadline:
                holder = (
                    os.pread(handle, _MAX_HOLDER_BYTES, 0).decode("utf-8", "replace") or "another process"
                )
                raise TimeoutError(holder)
            time.sleep(_POLL_S)
        with contextlib.suppress(OSError):  # the name is a courtesy
            os.ftruncate(handle, 0)
            since = time.strftime("%Y-%m-%d %H:%M:%S")
            holder = f"process {os.getpid()} ({os.path.basename(sys.argv[0])}, since {since})"
            os.pwrite(handle, holder.encode("utf-8", "replace")[:_MAX_HOLDER_BYTES], 0)
        yield
    finally:
        os.close(handle)


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _own_folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    # In a shared folder for temporary files somebody else may have been there first.
    if path.is_symlink() or path.stat().st_uid != os.getuid() or not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "not this user's own folder", str(path))
    return path
