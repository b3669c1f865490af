"""The lines that a person typed before, in a file of the person's own."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from constrained_agent.tools.state import state_folder

MAX_BYTES = 500_000
"""Of the file: some 5,000 lines. A longer one loses its older half."""

_MODE = 0o600


def history(root: Path) -> History:
    """The history of this user, for all repositories; one that is soon forgotten where no file can be had.

    Args:
        root: the repository; the file never lies inside it.
    """
    try:
        # Beside the journals: `…/constrained-agent/journal/HASH`.
        file = state_folder(root).parents[1] / "history"
        os.close(_opened(file))
        os.chmod(file, _MODE)
        _trim(file)
    except OSError:
        return InMemoryHistory()
    return _Private(str(file))


class _Private(FileHistory):
    """Reads and writes as its base does, but nobody else may read, and a full disk disturbs nobody."""

    def load_history_strings(self) -> Iterable[str]:
        with suppress(OSError):
            return super().load_history_strings()
        return []

    def store_string(self, string: str) -> None:
        lines = "".join(f"+{line}\n" for line in string.split("\n"))
        with suppress(OSError), open(_opened(Path(os.fsdecode(self.filename))), "ab") as out:
            out.write(f"\n# {datetime.now()}\n{lines}".encode("utf-8", "replace"))


def _opened(file: Path) -> int:
    return os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, _MODE)


def _trim(file: Path) -> None:
    """Keep the newer half of a long file."""
    if file.stat().st_size <= MAX_BYTES:
        return
    text = file.read_bytes()[-MAX_BYTES // 2 :]
    kept = file.with_name(f"{file.name}.{os.getpid()}")
    with open(os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, _MODE), "wb") as out:
        out.write(text[max(0, text.find(b"\n# ")) :])
    os.replace(kept, file)
