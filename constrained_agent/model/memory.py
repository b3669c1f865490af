"""How much memory this machine has, and how freed memory is kept."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
from pathlib import Path

_M_MXFAST = 1  # the option of mallopt: largest blocks whose freed ones are kept apart


def merge_freed_blocks() -> None:
    """Make glibc merge small blocks of memory as soon as they are freed; for the whole process.

    The graph of a pass is thousands of small blocks. Freed ones are kept in lists, which the next request for a
    kilobyte or more has to empty: 0.5 to 1 ms, several times a step, between mask and sampler. Where there is no glibc
    (macOS) nothing is done, and nothing needs to be.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(_M_MXFAST, 0)


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
