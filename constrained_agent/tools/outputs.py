"""What the commands of a run printed and could not be shown whole: kept on the disk, named, paged, removed again.

The model knows such a text as `output:3/stdout`: what the third command printed. That is no path, and no file that a
patch could change. On the disk it lies in a folder of the run, in the user's state folder, outside of the repository
and readable by the user alone. Secrets in it are as little masked as in what the model is shown.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import tempfile
import time
from functools import partial
from pathlib import Path

from constrained_agent.errors import ToolError
from constrained_agent.tools import rows
from constrained_agent.tools.names import OUTPUT
from constrained_agent.tools.spill import Spill
from constrained_agent.tools.state import state_places

MAX_RUNS = 10
"""Whose outputs are kept, the last ones: a transcript may still speak of them."""

MAX_BYTES = 1_000_000_000
"""Of the runs before, together."""

MAX_RUN_BYTES = 256_000_000
"""Of one run, beside what its last command printed (`spill` says how much that is)."""

_RUN = re.compile(r"\d{8}-\d{6}-\w+")
_GOES_ON = "↪"


class Outputs:
    """The kept outputs of one run; the folder is made when there is something to keep.

    Args:
        root: the repository, which the folder does not lie in.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder: Path | None = None
        self._n_commands = 0

    def begin(self) -> tuple[Spill, Spill]:
        """Where stdout and stderr of the next command go, should they be cut. Cost: nothing, until they are."""
        self._n_commands += 1
        number = self._n_commands
        self._make_room()
        stdout, stderr = (
            Spill(f"output:{number}/{stream}", partial(self._place, number, stream))
            for stream in ("stdout", "stderr")
        )
        return stdout, stderr

    def read(self, name: str, offset: int, limit: int, max_chars: int) -> str:
        """Numbered rows of a kept output, as `files.read_file` shows those of a file.

        Args:
            offset: 1-based first row.
            limit, max_chars: of the rows.

        Raises:
            ToolError: there is none of this name, it is not kept any more, or it is shorter than `offset`.

        Cost: reads it to its end: at most 64 MB, 0.1 s, 2 s where every line is one character.
        """
        path = self._existing(name)
        with path.open("rb") as stream:
            page = rows.page(stream, offset, limit, max_chars)
        if offset > page.total:
            raise ToolError(f"{name} has {page.total:,} lines: there is no line {offset}")
        last = offset + len(page.rows) - 1
        head = f"{name}: lines {offset}-{last} of {page.total}; what a command printed, not a file: it cannot be edited"
        if any(goes_on for _, goes_on in page.rows):
            head += f"; {_GOES_ON} goes on with a long line"
        width = len(str(last))
        lines = [
            f"{number:>{width}}{_GOES_ON if goes_on else '│'}{text}"
            for number, (text, goes_on) in enumerate(page.rows, offset)
        ]
        if last < page.total:
            lines.append(f"[{page.total - last} more lines: go on with offset {last + 1}]")
        return "\n".join([head, *lines])

    def _existing(self, name: str) -> Path:
        found = OUTPUT.fullmatch(name)
        kept = self._kept()
        there = ", ".join(kept) or "none: what the commands of this run printed was shown whole"
        if found is None:
            raise ToolError(f"{name}: the name of an output is like output:3/stdout; there are: {there}")
        if name not in kept:
            gone = int(found[1]) <= self._n_commands
            why = "it was shown whole, or is not kept any more" if gone else "no such command was run"
            raise ToolError(f"{name}: there is no such output ({why}); there are: {there}")
        return kept[name]

    def _kept(self) -> dict[str, Path]:
        """Names and files of what can be read, in the order of the commands."""
        if self._folder is None:
            return {}
        found = {
            f"output:{number}/{stream}": self._folder / str(number) / stream
            for number in range(1, self._n_commands + 1)
            for stream in ("stdout", "stderr")
        }
        return {name: path for name, path in found.items() if path.is_file()}

    def _place(self, number: int, stream: str) -> Path:
        if self._folder is None:
            self._folder = _new_run(self._root)
        folder = self._folder / str(number)
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder / stream

    def _make_room(self) -> None:
        """Remove the oldest outputs of this run where they have become too many."""
        if self._folder is None:
            return
        with contextlib.suppress(OSError):
            folders = sorted(self._folder.iterdir(), key=lambda path: int(path.name))
            total = sum(map(_size, folders))
            for folder in folders:
                if total <= MAX_RUN_BYTES:
                    break
                total -= _size(folder)
                shutil.rmtree(folder, ignore_errors=True)


def _new_run(root: Path) -> Path:
    """A folder for a run, after the oldest ones were removed.

    Raises:
        OSError: none can be made.
    """
    *own, shared = (place.parents[1] for place in state_places(root))
    for base in (*own, shared):
        try:
            if base is shared:
                _make_own(base.parent)
            folder = _make_own(base / "outputs")
        except OSError:
            if base is shared:
                raise
            continue
        _remove_old(folder)
        return Path(tempfile.mkdtemp(prefix=time.strftime("%Y%m%d-%H%M%S-"), dir=folder))
    raise AssertionError("there is always a last place")


def _make_own(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # In a shared folder for temporary files somebody else may have been there first.
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise PermissionError(errno.EACCES, "not this user's own folder", str(folder))
    return folder


def _remove_old(folder: Path) -> None:
    """Leave room for one more run: the last ones stay, as long as they are not too large together."""
    runs = sorted((path for path in folder.iterdir() if _RUN.fullmatch(path.name)), reverse=True)
    total = 0
    for number, run in enumerate(runs, 1):
        total += _size(run)
        if number >= MAX_RUNS or total > MAX_BYTES:
            shutil.rmtree(run, ignore_errors=True)


def _size(folder: Path) -> int:
    """Bytes of all files below a folder; what goes meanwhile counts nothing."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            total += path.lstat().st_size
    return total
