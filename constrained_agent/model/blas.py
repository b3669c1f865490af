"""Puts a fast BLAS under mlx on Linux CPUs, where its wheel brings the slow reference one.

A library with the plain names (`cblas_sgemm`), loaded with global symbol scope before anything imports mlx, is
what mlx's own library is then bound to. Measured on two x86 cores (512x2048 by 2048x2048, float32): 8 GFLOP/s
without, 245 with the OpenBLAS inside the `faiss-cpu` wheel (the extra `blas`), 435 with that of `cmeel-openblas`.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.metadata
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "CONSTRAINED_AGENT_BLAS"
"""Environment variable: path of the library to use, or `none`."""

INSTALL = "python -m pip install faiss-cpu"
"""The command that brings one to x86-64 Linux; only the OpenBLAS inside that wheel is used."""

CUDA_PACKAGES = ("mlx-cuda-13", "mlx-cuda-12")

# Within the folders that packages are installed to, best first. That of faiss-cpu is an OpenMP build: its threads
# can be told to wait without spinning. On two cores that other processes kept busy, a prompt of 855 tokens took it
# 6 to 9 s, 25 to 104 s while spinning; that of cmeel-openblas, faster on an idle machine, cannot be told: 8 to 25 s.
_IN_PACKAGES = (
    "faiss_cpu.libs/libopenblas*.so*",
    "cmeel.prefix/lib/libopenblas.so*",
    "*.libs/libopenblas*.so*",
)
_IN_SYSTEM = ("libopenblas.so.0",)
# What an OpenBLAS in a wheel needs from its own folder: such libraries have no search path of their own.
_SIBLINGS = ("libquadmath*", "libgfortran*", "libgomp*")


@dataclass(frozen=True, slots=True)
class Blas:
    """The library in use.

    Attributes:
        name: as the library names itself.
        path: file, or the bare name for one that the system's loader found.
    """

    name: str
    path: str


def activate() -> Blas | None:
    """Load a fast BLAS if this machine needs and has one; once per process, never an error.

    Call it before anything imports mlx: afterwards it does nothing. `explain` says what came of it.
    """
    return _outcome()[0]


def explain() -> str:
    """One line: what is used, or why nothing is."""
    return _outcome()[1]


@functools.cache
def _outcome() -> tuple[Blas | None, str]:
    wanted = os.environ.get(VARIABLE, "")
    if reason := _needless(wanted):
        return None, reason
    reason = f"none found; mlx multiplies with its slow reference BLAS: {INSTALL}"
    for path in [wanted] if wanted else _candidates():
        try:
            with _threads_wait_quietly():
                blas = Blas(_load(path), path)
        except (OSError, AttributeError, ValueError) as error:
            reason = f"{path} cannot be used: {error}"
        else:
            return blas, f"{blas.name} ({blas.path})"
    return None, reason


def _needless(wanted: str) -> str:
    if wanted == "none":
        return f"none: switched off by {VARIABLE}"
    if platform.system() != "Linux":
        return "none needed: mlx brings a fast one here"
    if cuda := installed_cuda():
        return f"none needed: {cuda} is installed"
    if "mlx.core" in sys.modules:
        return "none: mlx was imported before, and is bound to its own"
    return ""


def installed_cuda() -> str:
    """Name of the installed CUDA build of mlx, or nothing."""
    for name in CUDA_PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            importlib.metadata.version(name)
            return name
    return ""


def _candidates() -> list[str]:
    folders = [Path(folder) for folder in sys.path if folder.endswith("-packages")]
    found = [
        str(path) for pattern in _IN_PACKAGES for folder in folders for path in sorted(folder.glob(pattern))
    ]
    return list(dict.fromkeys([*found, *_IN_SYSTEM]))


def _load(path: str) -> str:
    """Load with global scope; returns the library's name for itself.

    Raises:
        OSError: it, or what it needs, cannot be loaded.
        AttributeError: its names have a prefix or suffix, so mlx would not find them.
        ValueError: its integers are not mlx's.
    """
    if os.path.isfile(path):
        for pattern in _SIBLINGS:
            for sibling in Path(path).parent.glob(pattern):
                ctypes.CDLL(str(sibling))
    # Looked at first, and only then made visible to all that is loaded later.
    library = ctypes.CDLL(path)
    _ = library.cblas_sgemm
    name = _own_name(library)
    if "USE64BITINT" in name:
        raise ValueError("it counts with 64-bit integers, mlx with 32-bit ones")
    ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    return " ".join(name.split()[:2]) or Path(path).name


@contextlib.contextmanager
def _threads_wait_quietly() -> Iterator[None]:
    """OpenMP reads its wait policy when it is loaded; commands that the agent runs later must not inherit it."""
    ours = "OMP_WAIT_POLICY" not in os.environ
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        yield
    finally:
        if ours:
            del os.environ["OMP_WAIT_POLICY"]


def _own_name(library: ctypes.CDLL) -> str:
    try:
        describe = library.openblas_get_config
    except AttributeError:
        return ""
    describe.restype = ctypes.c_char_p
    return bytes(describe() or b"").decode(errors="replace")
