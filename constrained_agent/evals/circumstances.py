"""Under which circumstances something was measured: without them a figure is no evidence."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import resource
import shlex
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ENGINE = ("constrained-agent", "mlx", "mlx-metal", "mlx-cpu", "mlx-cuda-13", "mlx-lm", "llguidance")
"""Distributions on which every figure of a model depends."""

_ROOT = Path(__file__).resolve().parent.parent.parent

_PROGRAM = ("constrained_agent", "grammars", "models", "scripts", "pyproject.toml")
"""What figures come from; that results or notes lie beside it changes none."""


def circumstances(command: str, packages: Iterable[str]) -> dict[str, Any]:
    """Command, date, commit, versions, machine and its load at this moment.

    Args:
        command: the command line, as it was typed.
        packages: distributions whose versions matter; those that are not installed are left out.

    Returns:
        Values for JSON. `commit` and `dirty` (the program was changed since) are None outside of a checkout. `load` is
        the mean number of running processes in the last minute, `peak_mb` the most memory that this process ever held.
    """
    # Kilobytes on Linux, bytes on macOS.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    return {
        "command": command,
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        **_commit(),
        "versions": versions(packages),
        "python": platform.python_version(),
        "machine": machine(),
        "load": load(),
        "peak_mb": round(peak),
    }


def of_this_command(packages: Iterable[str]) -> dict[str, Any]:
    """`circumstances` of this process's command line, with the device that mlx runs on."""
    from constrained_agent.model import backend

    found = backend.inspect()
    command = shlex.join(["constrained-agent", *sys.argv[1:]])
    return {**circumstances(command, packages), "device": f"{found.kind}, {found.gflops:.0f} GFLOP/s"}


def versions(packages: Iterable[str]) -> dict[str, str]:
    """The installed ones of some distributions, with their versions."""
    found = {}
    for name in packages:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def machine() -> str:
    """System, processor, cores and memory in words."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return (
        f"{platform.system()} {platform.machine()}, {_processor()}, {os.cpu_count()} cores, "
        f"{memory_bytes / 2**30:.0f} GB"
    )


def load() -> float:
    """Processes that ran or waited for a processor, on average over the last minute."""
    return round(os.getloadavg()[0], 1)


def _commit() -> dict[str, Any]:
    if not (_ROOT / ".git").exists():
        # Installed: a repository further up would be somebody else's.
        return {"commit": None, "dirty": None}
    changes = _git("status", "--porcelain", "--", *_PROGRAM)
    return {"commit": _git("rev-parse", "--short", "HEAD"), "dirty": bool(changes)}


def _git(*args: str) -> str:
    done = subprocess.run(["git", *args], cwd=_ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _processor() -> str:
    """The processor's name."""
    if sys.platform == "darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    facts = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in facts if line.startswith("model name")]
    return names[0] if names else platform.processor()
