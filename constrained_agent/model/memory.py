"""How much memory there is, and how long a conversation fits into it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from constrained_agent.model.weights import LoadedModel

# Share of the memory left after the weights that the KV cache may take; the rest is for a pass's own arrays
# and for everybody else on the machine.
_CACHE_SHARE = 0.75


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


def context_limit(loaded: LoadedModel) -> tuple[int, str]:
    """Tokens that a conversation may have, and in words what sets that limit.

    The model's own context length, or less where its KV cache would not fit beside the weights (loaded
    already) in memory.
    """
    import mlx.core as mx

    if mx.metal.is_available():
        left = int(mx.device_info()["max_recommended_working_set_size"]) - loaded.n_bytes
    else:
        left = available_bytes()
    fitting = int(max(0, left) * _CACHE_SHARE) // max(1, loaded.kv_bytes_per_token)
    if fitting < loaded.context_length:
        kib = loaded.kv_bytes_per_token / 1024
        return fitting, f"what fits into memory beside {loaded.card.name} ({kib:.0f} KiB a token)"
    return loaded.context_length, f"the context of {loaded.card.name}"
