"""Which library is put under mlx, and that nothing about it ever stops the program.

Loading cannot be undone, so each case runs in a process of its own.
"""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

from constrained_agent.model import blas

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="nothing to do elsewhere")


def outcome(before: str = "", after: str = "", **environment: str) -> list[str]:
    """Lines: `activate()`, `explain()`, then what `after` prints."""
    code = f"from constrained_agent.model import blas\n{before}\nprint(blas.activate())\nprint(blas.explain())\n{after}"
    clean = {key: value for key, value in os.environ.items() if key != blas.VARIABLE}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**clean, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def part_of(package: str, pattern: str) -> str:
    """A library inside an installed wheel: real ones, that every checkout has."""
    files = importlib.metadata.files(package) or []
    return next(str(file.locate().resolve()) for file in files if file.match(pattern))


def test_switched_off() -> None:
    used, why = outcome(CONSTRAINED_AGENT_BLAS="none")
    assert used == "None"
    assert "switched off" in why


def test_too_late_after_mlx() -> None:
    used, why = outcome("import mlx.core")
    assert used == "None"
    assert "imported before" in why


def test_not_beside_cuda() -> None:
    used, why = outcome("blas.installed_cuda = lambda: 'mlx-cuda-13'")
    assert used == "None"
    assert "mlx-cuda-13 is installed" in why


def test_not_on_macos() -> None:
    used, why = outcome("import platform; platform.system = lambda: 'Darwin'")
    assert used == "None"
    assert "none needed" in why


@pytest.mark.parametrize("path", ["/absent/libblas.so", __file__])
def test_what_cannot_be_loaded_is_said(path: str) -> None:
    used, why = outcome(CONSTRAINED_AGENT_BLAS=path)
    assert used == "None"
    assert path in why
    assert "cannot be used" in why


def test_nothing_found_names_the_remedy() -> None:
    used, why = outcome("blas._candidates = lambda: []")
    assert used == "None"
    assert blas.INSTALL in why


def test_second_call_changes_nothing() -> None:
    used, _, again = outcome(after="import os; os.environ[blas.VARIABLE] = 'none'; print(blas.activate())")
    assert again == used


def test_candidates_are_searched_in_order(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    for name in (
        "other.libs/libopenblas-1.so",
        "faiss_cpu.libs/libopenblaso-r0-1.so.0",
        "numpy.libs/libscipy_x.so",
    ):
        (site / name).parent.mkdir(parents=True)
        (site / name).touch()
    lines = outcome(after=f"import sys; sys.path[:] = [{str(site)!r}]; print(*blas._candidates(), sep='\\n')")
    assert lines[2:4] == [
        str(site / "faiss_cpu.libs/libopenblaso-r0-1.so.0"),
        str(site / "other.libs/libopenblas-1.so"),
    ]
    assert not any("scipy" in line for line in lines[2:])
    assert lines[-1] == "libopenblas.so.0"


def test_plain_names_are_taken() -> None:
    """By mlx's own reference BLAS, which has them but no name for itself."""
    path = part_of("mlx-cpu", "libblas*.so*")
    used, why = outcome(CONSTRAINED_AGENT_BLAS=path)
    assert used == f"Blas(name={Path(path).name!r}, path={path!r})"
    assert why == f"{Path(path).name} ({path})"


def test_the_library_is_asked_for_its_name() -> None:
    path = part_of("mlx-cpu", "libblas*.so*")
    _, why = outcome("blas._own_name = lambda library: 'FastBLAS 9.9 SkylakeX'", CONSTRAINED_AGENT_BLAS=path)
    assert why == f"FastBLAS 9.9 ({path})"


def test_64_bit_integers_are_refused() -> None:
    path = part_of("mlx-cpu", "libblas*.so*")
    _, why = outcome("blas._own_name = lambda library: 'BLAS 1 USE64BITINT'", CONSTRAINED_AGENT_BLAS=path)
    assert "64-bit integers" in why


def test_prefixed_names_are_refused() -> None:
    """numpy's OpenBLAS: mlx would not find its names."""
    used, why = outcome(CONSTRAINED_AGENT_BLAS=part_of("numpy", "libscipy_openblas*.so*"))
    assert used == "None"
    assert "cblas_sgemm" in why
