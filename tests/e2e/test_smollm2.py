"""The embedded model for real: SmolLM2-135M from its wheel, through every layer."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from constrained_agent.agent import prompt
from constrained_agent.agent.runtime import Runtime
from constrained_agent.decode.generate import generate
from constrained_agent.decode.sampling import Sampling
from constrained_agent.evals import tasks
from constrained_agent.grammar import prefix, sources
from constrained_agent.model import cards, chat, weights
from constrained_agent.patch import parse
from constrained_agent.tools.permissions import Policy
from constrained_agent.tools.registry import Tools
from constrained_agent.tools.workspace import Workspace


@pytest.fixture(scope="module")
def loaded():
    return weights.load(cards.load("smollm2-135m"))


@pytest.fixture(scope="module")
def runtime(loaded):
    return Runtime(loaded)


def ask(runtime, text, constraint=None, *, max_tokens=60, **sampling):
    dialect = runtime.dialect
    ids = [*dialect.user(text), *dialect.open_answer(thinking=False)]
    return generate(
        runtime.session,
        constraint or runtime.unconstrained(),
        ids,
        sampling=Sampling(**sampling),
        max_tokens=max_tokens,
    )


def test_it_knows_the_capital_of_france(runtime):
    done = ask(runtime, "What is the capital of France?")
    assert "Paris" in runtime.tokenizer.decode(done.tokens)
    assert (done.stop_reason, done.complete) == ("end_token", True)


def test_its_template_and_the_dialect_agree(loaded, runtime):
    assert chat.difference(loaded.chat_template, runtime.dialect, runtime.tokenizer) is None


def test_the_compact_prompt_stays_under_300_tokens(runtime, tmp_path):
    tools = Tools(Workspace(tmp_path), Policy(yes=True)).specs
    parts = prompt.system_parts(tools, runtime.card.prompt, runtime.dialect.tool_block)
    assert len(runtime.dialect.system("\n\n".join(part.text for part in parts))) <= 300


def test_ten_seeds_of_strict_patches(runtime):
    """What is said to be complete parses, in the checker and in the patch engine; the rest says why not."""
    grammar = sources.load("apply_patch_strict")
    constraint = runtime.grammar_constraint(grammar)
    outcomes = []
    for seed in range(10):
        done = ask(
            runtime,
            "Write a patch that adds the file hello.py, which prints hello.",
            constraint.fresh(),
            max_tokens=64,
            temperature=0.8,
            seed=seed,
        )
        text = runtime.tokenizer.decode(done.tokens)
        report = prefix.check(text.encode(), grammar)
        if done.complete:
            assert report.status == "complete", text
            assert parse(text, lenient=False).patch.sections
        else:
            assert report.status == "prefix", text
            assert done.stop_reason == "length"
        outcomes.append(done.stop_reason)
    assert "complete" in outcomes


def test_a_regex_and_a_schema(runtime):
    date = ask(runtime, "A date.", runtime.grammar_constraint(sources.from_regex(r"\d{4}-\d{2}-\d{2}")))
    assert date.complete
    schema = {
        "type": "object",
        "properties": {"city": {"enum": ["Paris", "Rome"]}, "size": {"type": "integer", "maximum": 99}},
        "required": ["city", "size"],
        "additionalProperties": False,
    }
    done = ask(runtime, "Where?", runtime.grammar_constraint(sources.from_json_schema(schema, compact=True)))
    assert done.complete
    assert json.loads(runtime.tokenizer.decode(done.tokens))["city"] in ("Paris", "Rome")
    assert sum(done.forced) > 5


def test_same_seed_same_text_and_the_cache_is_reused(runtime):
    first = ask(runtime, "Tell me of the sea.", max_tokens=20, temperature=0.8, seed=4)
    again = ask(runtime, "Tell me of the sea.", max_tokens=20, temperature=0.8, seed=4)
    assert first.tokens == again.tokens
    assert again.reused_tokens == again.prompt_tokens - 1


def cli(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "constrained_agent", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )


def test_the_agent_on_the_dateparse_repository(tmp_path):
    """The small model may fail at the task; what it writes must parse, and what is said must be true."""
    task = tasks.load("dateparse")
    repo = tmp_path / "dateparse"
    task.copy_to(repo)
    done = cli(
        "run",
        task.instruction,
        "--repo",
        str(repo),
        "--file",
        "dateparse.py",
        "--first-tool",
        "apply_patch",
        "--test-command",
        task.test_command,
        "--model",
        "smollm2-135m",
        "--max-turns",
        "2",
        "--max-tokens",
        "160",
        "--transcript",
        str(tmp_path / "t.jsonl"),
        "--yes",
        "--json",
        cwd=tmp_path,
    )
    assert done.returncode in (0, 1), done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert set(result) >= {
        "exit_reason",
        "tests_passed",
        "turns",
        "changed_files",
        "diff",
        "usage",
        "failures",
        "prompt_parts",
    }
    assert (done.returncode == 0) is (result["tests_passed"] is True)
    events = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    turns = [event for event in events if event["event"] == "turn"]
    assert turns[0]["tool_choice"] == "apply_patch"
    for turn in turns:
        assert not turn["faults"] or turn["stop_reason"] == "length"
        for made in turn["calls"]:
            if made["name"] == "apply_patch":
                assert parse(made["arguments"]["patch"], lenient=False).patch.sections


def test_ctrl_c_while_the_prompt_is_read(tmp_path):
    (tmp_path / "long.txt").write_text("A line of text that takes a while to be read.\n" * 300)
    command = [sys.executable, "-m", "constrained_agent", "run", "Go.", "--file", "long.txt", "--json"]
    running = subprocess.Popen(
        [*command, "--model", "smollm2-135m"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        # Where the tests run in the background, SIGINT is ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    for line in running.stderr:
        if line.startswith("turn 1"):
            break
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    result = json.loads(out.splitlines()[-1])
    assert (result["exit_reason"], result["usage"]["generated_tokens"]) == ("interrupted", 0)
    assert "Traceback" not in err


def test_generate_on_the_command_line(tmp_path):
    done = cli(
        "generate",
        "--model",
        "smollm2-135m",
        "--prompt",
        "Name a colour.",
        "--regex",
        "red|green|blue",
        "--json",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["text"] in ("red", "green", "blue")
    assert set(result) == {
        "text",
        "stop_reason",
        "complete",
        "prompt_tokens",
        "reused_tokens",
        "tokens",
        "forced_tokens",
        "model_steps",
        "drafted_tokens",
        "accepted_tokens",
        "prefill_s",
        "decode_s",
        "mask_us",
    }
    assert set(result["mask_us"]) == {"p50", "p99", "max"}
