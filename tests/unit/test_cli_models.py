"""`models`: what is printed, and the exit codes of names that are none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from constrained_agent.cli import app
from constrained_agent.model import cards, fetch


def last_json(capsys: pytest.CaptureFixture[str]) -> dict:
    return json.loads(capsys.readouterr().out.splitlines()[-1])


@pytest.mark.parametrize("arguments", [[], ["list"]])
def test_list(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["models", *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sorted(line.split()[0 if line[0] == " " else 1] for line in lines) == cards.names()
    assert [line.split()[1] for line in lines if line.startswith("*")] == [cards.default_name()]


@pytest.mark.parametrize("arguments", [["--json"], ["list", "--json"], ["--json", "list"]])
def test_list_as_json(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["models", *arguments]) == 0
    found = {entry["name"]: entry for entry in last_json(capsys)["models"]}
    assert sorted(found) == cards.names()
    assert found["qwen3-8b-4bit"]["source"] == "Qwen/Qwen3-8B-MLX-4bit"
    assert found["qwen3-8b-4bit"]["thinking"] == {"open": "<think>", "close": "</think>", "by_default": True}


def test_show(capsys: pytest.CaptureFixture[str], tiny_qwen3_dir: Path) -> None:
    assert app.run(["models", "show", "qwen3-8b-4bit"]) == 0
    out = capsys.readouterr().out
    assert "Qwen/Qwen3-8B-MLX-4bit" in out
    assert "temperature 0.6, top_p 0.95, top_k 20" in out
    assert app.run(["models", "show", str(tiny_qwen3_dir), "--json"]) == 0
    facts = last_json(capsys)
    assert facts["path"] == str(tiny_qwen3_dir)
    assert facts["memory_bytes"] is None


def test_fetch_prints_where_it_lies(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    forced: list[bool] = []

    def here(card, *, force, progress):
        progress("fetching")
        forced.append(force)
        return Path("/somewhere/weights")

    monkeypatch.setattr(fetch, "fetch", here)
    assert app.run(["models", "fetch", "smollm2-135m"]) == 0
    assert capsys.readouterr() == ("/somewhere/weights\n", "fetching\n")
    assert app.run(["models", "fetch", "smollm2-135m", "--force", "--json"]) == 0
    assert last_json(capsys) == {"name": "smollm2-135m", "path": "/somewhere/weights"}
    assert forced == [False, True]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["show", "Qwen3-8B-4bit"], "did you mean the card qwen3-8b-4bit?"),
        (["fetch", "./absent"], "there is no folder ./absent"),
        (["fetch", "."], "nothing to fetch"),
        (["show"], "Missing argument 'NAME'"),
        (["delete", "x"], "No such command 'delete'"),
    ],
)
def test_wrong_calls(arguments: list[str], part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["models", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert part in captured.err
    assert "Traceback" not in captured.err
