"""`doctor`: every fact is there, and each lack comes with the command against it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from constrained_agent import resources
from constrained_agent.cli import app, doctor
from constrained_agent.model import backend, blas, fetch

NAMES = {
    *("constrained-agent", "python", "system", "cpu", "memory", "mlx", "blas", "mlx-lm", "llguidance"),
    *("transformers", "tokenizers", "huggingface-hub", "lark", "default model", "memory for it"),
    *("model cache", "hub cache", "git", "bash", "interrupted patch"),
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`doctor` mends what a patch left in the current folder: not in this checkout, and not from a test."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str]):
    """Runs doctor; returns the exit code and the checks by name."""

    def run() -> tuple[int, dict[str, dict[str, str]]]:
        code = app.run(["doctor", "--json"])
        result = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert result["ok"] == (code == 0)
        checks = {check["name"]: check for check in result["checks"]}
        for check in checks.values():
            assert (check["status"] == "ok") == (check["mend"] == ""), check
        return code, checks

    return run


def test_all_facts_of_a_working_machine(report) -> None:
    code, checks = report()
    assert code == 0
    assert set(checks) == NAMES
    assert "back end" in checks["mlx"]["value"]
    assert "GFLOP/s" in checks["mlx"]["value"]
    assert checks["blas"]["value"] == blas.explain()


def test_for_people(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert app.run(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("lack    git"))
    assert "-> " in lines[at + 1]
    assert "git" in lines[at + 1] or "xcode" in lines[at + 1]


def test_default_model_not_here(report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "local_path", lambda card: None)
    code, checks = report()
    assert code == 0
    assert checks["default model"]["status"] == "lack"
    assert checks["default model"]["mend"].startswith("constrained-agent models fetch ")


def test_package_that_does_not_load(report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llguidance", None)
    code, checks = report()
    assert code == 1
    assert checks["llguidance"]["status"] == "broken"
    assert checks["llguidance"]["mend"].endswith("llguidance")


def test_mlx_that_does_not_load(report, monkeypatch: pytest.MonkeyPatch) -> None:
    """As its CUDA build on a machine without the driver."""
    monkeypatch.setitem(sys.modules, "mlx.core", None)
    monkeypatch.setattr("platform.system", lambda: "Linux")
    code, checks = report()
    assert code == 1
    assert checks["mlx"]["status"] == "broken"
    assert "--force-reinstall --no-deps mlx-cpu==" in checks["mlx"]["mend"]


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_both_builds_of_mlx(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one installed last runs; only the CPU build over the CUDA build is a lack."""
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr(blas, "installed_cuda", lambda: "mlx-cuda-13")
    monkeypatch.setattr(backend, "_version", lambda package: "0.32.4")
    problem, mend = backend._wrong_build(kind)
    if kind == "cuda":
        assert (problem, mend) == ("", "")
    else:
        assert "lies over it" in problem
        assert mend == "python -m pip install --force-reinstall --no-deps mlx-cuda-13==0.32.4"


def test_slow_products_without_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = backend.Backend("0.32.4", "cpu", "Device(cpu, 0)", 5.0, "", "")
    monkeypatch.setattr(backend, "inspect", lambda: slow)
    monkeypatch.setattr(blas, "activate", lambda: None)
    checks = {check.name: check for check in doctor._backend()}
    assert (checks["mlx"].status, checks["blas"].status) == ("ok", "lack")
    assert checks["blas"].mend == blas.INSTALL


def test_installation_without_its_data(report, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(resources, "_PACKAGE", tmp_path)
    code, checks = report()
    assert code == 1
    assert "is missing" in checks["default model"]["value"]


def test_cache_that_cannot_be_written(report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    code, checks = report()
    assert code == 1
    assert checks["interrupted patch"]["status"] == "broken", "without a journal no patch can be written"
    assert checks["model cache"]["status"] == "lack"
    assert checks["model cache"]["mend"] == "export CONSTRAINED_AGENT_CACHE=FOLDER"
    assert checks["hub cache"]["mend"] == "export HF_HOME=FOLDER"
