"""How much memory this machine has."""

from __future__ import annotations

import os
import re
from pathlib import Path


def total_bytes() -> int:
    """Physical memory of the machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def available_bytes() -> int:
    """Memory that a new process could take: Linux's own estimate; elsewhere three quarters of all of it,
    which is what macOS lets the GPU have by default."""
    meminfo = Path("/proc/meminfo")
    if meminfo.exists() and (found := re.search(r"MemAvailable:\s+(\d+) kB", meminfo.read_text())):
        return int(found[1]) * 1024
    return total_bytes() * 3 // 4
