"""The processes that a command started: those of its session, and those that left it.

Covered: children in groups of their own; on Linux also those in sessions of their own (`setsid`, a second fork,
daemons). These are found by their environment: every process inherits it, and it holds a value that only this command
was given.
Not covered: a process that left the session after its environment was cleared or overwritten, one of another user, one
that a service starts when it is asked to (docker, systemd, cron). On macOS none that left the session: the environment
of other processes cannot be relied on there.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Started:
    """What one command started. For its end: within that second no number of a process comes to mean another one.

    Attributes:
        leader: the process that opened its session.
        mark: the value in its environment.
    """

    leader: int
    mark: str
    _strangers: set[int] = field(default_factory=set, repr=False)

    def members(self) -> list[int]:
        """The living ones. Cost: the first time 10 µs for each process of the machine, then a tenth of that."""
        found = []
        for pid in _processes():
            with suppress(ProcessLookupError, PermissionError):
                if (os.getsid(pid) == self.leader or self._is_marked(pid)) and not _is_zombie(pid):
                    found.append(pid)
        return found

    def signal(self, number: signal.Signals) -> bool:
        """Signal them, in all their groups (`timeout`, job control) and sessions. False: there are none."""
        members = self.members()
        apart = [pid for pid in members if not self._is_in_group(pid)]
        if len(apart) < len(members):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.leader, number)  # all at once, against forks between the look and the signal
        for pid in apart:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        return bool(members)

    def _is_marked(self, pid: int) -> bool:
        if pid in self._strangers:
            return False
        held = _environment(pid)
        marked = held is not None and self.mark.encode() in held
        # An empty one may be that of a process between two programs.
        if not marked and held != b"":
            self._strangers.add(pid)
        return marked

    def _is_in_group(self, pid: int) -> bool:
        with suppress(ProcessLookupError, PermissionError):
            return os.getpgid(pid) == self.leader
        return False


def _processes() -> list[int]:
    if os.path.isdir("/proc/self"):
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    listing = subprocess.run(["ps", "-A", "-o", "pid="], capture_output=True, check=False)  # macOS
    return [int(pid) for pid in listing.stdout.split()]


def _environment(pid: int) -> bytes | None:
    """The environment that a process began with; None where it cannot be read."""
    with suppress(OSError):
        # Not pathlib: this is most of the cost of a look.
        descriptor = os.open(f"/proc/{pid}/environ", os.O_RDONLY | os.O_CLOEXEC)
        with open(descriptor, "rb", buffering=0) as environ:
            return environ.readall()
    return None


def _is_zombie(pid: int) -> bool:
    """True for a process that has ended but that nobody has collected: no signal moves it."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[:1] == [b"Z"]
    return False
