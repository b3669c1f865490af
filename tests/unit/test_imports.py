"""What starting the program loads: commands without a model must not wait for one's libraries."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from constrained_agent.cli import app

HEAVY = ("mlx", "mlx_lm", "transformers", "tokenizers", "torch")


def loaded_by(code: str) -> list[str]:
    """Heavy packages that a fresh process holds after `code`."""
    report = f"import sys; print('loaded:', *[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True, input="x"
    )
    return done.stdout.splitlines()[-1].split()[1:]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        *([name, "--help"] for name in app.COMMANDS),
        ["check", "--regex", "x", "-"],
        ["models", "list"],
        ["models", "show", "smollm2-135m"],
    ],
    ids=" ".join,
)
def test_commands_without_a_model_load_no_model_code(arguments: list[str]) -> None:
    assert loaded_by(f"from constrained_agent.cli import app; app.run({arguments!r})") == []


@pytest.mark.parametrize(
    "arguments", [["show"], ["ledger"], ["replay", "--repo", "."], ["cut", "--repo", ".", "--after", "1"]]
)
def test_a_run_is_looked_at_and_made_again_without_model_code(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    monkeypatch.chdir(repo)
    patch = "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch"
    counts = dict.fromkeys(("prompt_tokens", "reused_tokens", "model_steps", "prefill_s", "decode_s"), 0)
    call = {"id": "call_1", "name": "apply_patch", "arguments": {"patch": patch}}
    after = "100644 " + hashlib.sha256(b"x\n").hexdigest()
    events = [
        {"event": "start", "schema": 1, "task": "t", "tree": {}, "settings": {"test_command": "test -f a"}},
        {"event": "turn", "number": 1, "tool_choice": "auto", "text": "", "stop_reason": "complete", **counts}
        | {"calls": [call]},
        {"event": "result", "turn": 1, "call_id": "call_1", "ok": True, "text": "", "data": {}}
        | {"changes": [{"path": "a", "before": None, "after": after}]},
    ]
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps({"time": 0, **event}) + "\n" for event in events))
    given = ["transcript", arguments[0], str(log), *arguments[1:]]
    assert loaded_by(f"from constrained_agent.cli import app; assert app.run({given!r}) == 0") == []


def test_the_package_loads_nothing() -> None:
    assert loaded_by("import constrained_agent.__main__") == []


def test_the_loader_waits_until_it_is_called() -> None:
    """A fast BLAS must be in place before mlx comes."""
    assert loaded_by("from constrained_agent.model import weights, gguf, fetch, folder, cards, blas") == []
