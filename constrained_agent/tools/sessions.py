"""The processes of a session: those that a command started, wherever they put themselves within it."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path


def signal_session(leader: int, number: signal.Signals) -> bool:
    """Signal a session's processes, in all its groups (`timeout`, job control). False: there are none."""
    members = members_of(leader)
    if members:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, number)  # all at once, against forks between the look and the signal
    for pid in members:
        with suppress(ProcessLookupError, PermissionError):
            if os.getpgid(pid) != leader:
                os.kill(pid, number)
    return bool(members)


def members_of(leader: int) -> list[int]:
    """The living processes of the session that `leader` opened. Cost: a few milliseconds."""
    found = []
    for pid in _processes():
        with suppress(ProcessLookupError, PermissionError):
            if os.getsid(pid) == leader and not _is_zombie(pid):
                found.append(pid)
    return found


def _processes() -> list[int]:
    if os.path.isdir("/proc/self"):
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    listing = subprocess.run(["ps", "-A", "-o", "pid="], capture_output=True, check=False)  # macOS
    return [int(pid) for pid in listing.stdout.split()]


def _is_zombie(pid: int) -> bool:
    """True for a process that has ended but that nobody has collected: no signal moves it."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[:1] == [b"Z"]
    return False
