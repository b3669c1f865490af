"""What mlx really runs on here: its back end, its device, and how fast it multiplies."""

from __future__ import annotations

import contextlib
import importlib.metadata
import platform
import time
from dataclasses import dataclass
from pathlib import Path

from constrained_agent.model import blas

_SIZE = 1024  # side of the matrices that are multiplied: 2 GFLOP, a quarter of a second at worst
_N_RUNS = 3  # the first also pays for starting threads; the best one counts


@dataclass(frozen=True, slots=True)
class Backend:
    """The facts.

    Attributes:
        version: of mlx, or empty.
        kind: `metal`, `cuda` or `cpu`; empty when mlx does not load.
        device: mlx's default device.
        gflops: float32 matrix products, measured now.
        problem: what is wrong, or empty; only with an empty `kind` does nothing work.
        mend: the command against it.
    """

    version: str
    kind: str
    device: str
    gflops: float
    problem: str
    mend: str


def inspect() -> Backend:
    """Load mlx (with a fast BLAS, if there is one) and look; about a second on a slow CPU."""
    blas.activate()
    version = _version("mlx")
    try:
        import mlx.core as mx
    except (ImportError, OSError) as error:
        return Backend(version, "", "", 0.0, f"mlx does not load: {error}", _mend_import())
    kind = "metal" if mx.metal.is_available() else "cuda" if mx.cuda.is_available() else "cpu"
    problem, mend = _wrong_build(kind)
    return Backend(version, kind, str(mx.default_device()), _gflops(), problem, mend)


def _mend_import() -> str:
    if platform.system() == "Linux" and _version("mlx"):
        # Its CUDA build needs the driver's library; without a GPU only the CPU build loads.
        return f"python -m pip install --force-reinstall --no-deps mlx-cpu=={_version('mlx')}"
    return "python -m pip install --force-reinstall mlx"


def _wrong_build(kind: str) -> tuple[str, str]:
    """Both Linux builds put their library in the same place: the one installed last runs."""
    cuda = blas.installed_cuda()
    if kind != "cpu" or platform.system() != "Linux":
        return "", ""
    if cuda:
        problem = f"{cuda} is installed, but mlx's CPU build lies over it (or there is no GPU)"
        return problem, f"python -m pip install --force-reinstall --no-deps {cuda}=={_version(cuda)}"
    if Path("/proc/driver/nvidia/version").exists():
        return (
            "there is an NVIDIA GPU, but mlx's CPU build runs",
            "python -m pip install 'constrained-agent[cuda]'",
        )
    return "", ""


def _version(package: str) -> str:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(package)
    return ""


def _gflops() -> float:
    import mlx.core as mx

    left = mx.random.normal((_SIZE, _SIZE))
    right = mx.random.normal((_SIZE, _SIZE))
    mx.eval(left, right)
    best = float("inf")
    for _ in range(_N_RUNS):
        started = time.perf_counter()
        mx.eval(left @ right)
        best = min(best, time.perf_counter() - started)
    return 2 * _SIZE**3 / best / 1e9
