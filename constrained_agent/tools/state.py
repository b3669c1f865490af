"""Where the user's own state lies that belongs to a repository, but not into it."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import tempfile
from pathlib import Path


def state_folder(root: Path) -> Path:
    """The folder of a root's journal, made if need be: in the user's state folder, unless that is inside the root.

    Raises:
        OSError: none can be made.
    """
    home = os.environ.get("XDG_STATE_HOME", "")
    base = Path(home if os.path.isabs(home) else os.path.expanduser("~/.local/state"))
    name = Path("constrained-agent", "journal", hashlib.sha256(os.fsencode(root)).hexdigest()[:16])
    if not Path(os.path.realpath(base)).is_relative_to(root):
        with contextlib.suppress(OSError):
            return _own_folder(base / name)
    shared = Path(tempfile.gettempdir()) / f"{name.parts[0]}-{os.getuid()}"
    return _own_folder(_own_folder(shared) / name)


def _own_folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    # In a shared folder for temporary files somebody else may have been there first.
    if path.is_symlink() or path.stat().st_uid != os.getuid() or not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "not this user's own folder", str(path))
    return path
