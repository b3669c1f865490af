"""A wheel, unpacked anywhere, works without the checkout: grammars and model cards are inside."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built without isolation: the build backend is among the development packages."""
    target = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", target, ROOT],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return next(target.glob("*.whl"))


def test_contents(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for kind, suffix in (("grammars", ".lark"), ("models", ".toml")):
        shipped = {path.name for path in (ROOT / kind).glob(f"*{suffix}")}
        packed = {
            Path(name).name for name in names if name.startswith(f"constrained_agent/_resources/{kind}/")
        }
        assert shipped
        assert shipped <= packed
    assert "constrained_agent/py.typed" in names
    tasks = ROOT / "constrained_agent" / "evals" / "repositories"
    shipped_files = [path for path in tasks.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    with zipfile.ZipFile(wheel) as packed_files:
        for path in shipped_files:
            assert packed_files.read(path.relative_to(ROOT).as_posix()) == path.read_bytes(), path
    assert any(name.endswith("LICENSE") for name in names)
    assert not [name for name in names if "__pycache__" in name or name.startswith("tests/")]


@pytest.mark.parametrize(
    ("arguments", "given", "expected"),
    [
        (["models", "list"], "", "qwen3-8b-4bit"),
        (["check", "--json"], "*** Begin Patch\n*** Delete File: a\n*** End Patch\n", '"status": "complete"'),
        (["--version"], "", "constrained-agent, version"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_it_runs_from_another_folder(
    arguments: list[str], given: str, expected: str, wheel: Path, tmp_path: Path
) -> None:
    installed = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(installed)
    # -P: the folder of the call is no place to import from; the unpacked wheel comes before the checkout.
    done = subprocess.run(
        [sys.executable, "-P", "-m", "constrained_agent", *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout


def test_it_is_the_wheel_that_runs(wheel: Path, tmp_path: Path) -> None:
    """Guards the test above: an editable installation must not stand in for the wheel."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    done = subprocess.run(
        [sys.executable, "-P", "-c", "import constrained_agent; print(constrained_agent.__file__)"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(done.stdout.strip()).is_relative_to(tmp_path)
