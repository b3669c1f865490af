"""The cases of `cases/loading.json`: the real loader, dialect and decode loop over the tiny Qwen3."""

from __future__ import annotations

import json
import shutil
import threading
import time
from pathlib import Path

import pytest

from constrained_agent.agent.turn import Decoding, take_turn
from constrained_agent.cli import app
from constrained_agent.decode.sampling import Sampling
from constrained_agent.grammar.answers import AnswerReader
from constrained_agent.grammar.toolcalls import Markers
from constrained_agent.messages import ToolCall, ToolSpec

CASES = {
    case["id"]: case
    for case in json.loads((Path(__file__).parent / "cases" / "loading.json").read_text(encoding="utf-8"))
}
NO_HANG_S = 5.0  # far below any network time-out


def test_every_case_is_played() -> None:
    assert set(CASES) == {
        "M01-thread",
        "M03-template-string-args",
        "M04-template-content-none",
        "M05-missing-weights",
        "M08-name-typo",
    }


def test_thread(tiny_runtime) -> None:
    """A worker thread writes what the main thread writes, with the model that the main thread loaded."""
    case = CASES["M01-thread"]
    assert case["input"] == {"generate_from": "worker thread"}
    assert case["right"]["works"] is True
    decoding = Decoding("grammar", Sampling(), 20)
    history = tiny_runtime.dialect.user("hi")
    written: list[object] = []

    def write() -> None:
        turn = take_turn(tiny_runtime, history, [], "none", decoding, tiny_runtime.reader([]))
        written.append(turn.generation.tokens)

    write()
    worker = threading.Thread(target=write)
    worker.start()
    worker.join()
    assert len(written) == 2
    assert written[0] == written[1] != ()


def test_arguments_in_a_string_are_rendered_as_an_object(tiny_runtime) -> None:
    case = CASES["M03-template-string-args"]
    assert case["right"] == {"renders": True, "arguments": "object, not a quoted string"}
    (function,) = (call["function"] for call in case["input"]["history"]["tool_calls"])
    assert isinstance(function["arguments"], str)
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    reader = AnswerReader([ToolSpec(function["name"], "", schema, "read")], Markers(False))
    answer = reader.read_text(f"<tool_call>\n{json.dumps(function)}\n</tool_call>")
    rendered = tiny_runtime.tokenizer.decode(tiny_runtime.dialect.assistant("", answer.calls))
    assert '{"name": "read_file", "arguments": {"path": "a"}}' in rendered


def test_a_message_without_content_renders(tiny_runtime) -> None:
    case = CASES["M04-template-content-none"]
    assert case["input"]["history"]["content"] is None
    assert case["right"] == {"renders": True}
    call = ToolCall("call_1", "read_file", {"path": "a"})
    rendered = tiny_runtime.tokenizer.decode(tiny_runtime.dialect.assistant("", [call]))
    assert rendered.startswith("<|im_start|>assistant\n<tool_call>\n")
    assert "None" not in rendered


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
