"""The cases of `cases/loading.json` that are about finding a model's files; the others have their own modules."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

from constrained_agent.cli import app

CASES = {
    case["id"]: case
    for case in json.loads((Path(__file__).parent / "cases" / "loading.json").read_text(encoding="utf-8"))
}
NO_HANG_S = 5.0  # far below any network time-out


def test_missing_weights(tiny_qwen3_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = CASES["M05-missing-weights"]
    assert case["input"] == {"dir": "config without weights"}
    for name in ("config.json", "tokenizer.json"):
        shutil.copy(tiny_qwen3_dir / name, tmp_path / name)
    assert app.run(["generate", "--model", str(tmp_path), "--prompt", "x"]) == 2
    captured = capsys.readouterr()
    errors = [line for line in captured.err.splitlines() if line.startswith("error: ")]
    assert errors == [
        f"error: {tmp_path}/model.safetensors is missing; fetch it: hf download OWNER/NAME --local-dir {tmp_path}"
    ]
    assert "Traceback" not in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("command", [["run", "a task"], ["generate", "--prompt", "x"]])
def test_name_typo(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    case = CASES["M08-name-typo"]
    started = time.monotonic()
    assert app.run([*command, "--model", case["input"]["model"]]) == 2
    assert time.monotonic() - started < NO_HANG_S
    captured = capsys.readouterr()
    assert captured.err.splitlines()[-1] == (
        "error: there is no model 'Qwen3-8B-4bit': did you mean the card qwen3-8b-4bit? A hub model needs its full id, "
        "owner/name (as Qwen/Qwen3-8B-MLX-4bit); a model on this disk needs its path (as ./Qwen3-8B-4bit)"
    )
    assert captured.out == ""
