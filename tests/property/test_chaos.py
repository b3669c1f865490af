"""Runs in which everything goes wrong at random: the agent ends for a listed reason and leaves nothing behind.

A scripted model drives the real loop, tools and subprocesses: calls that are wrong in every way, patches that do not
fit, commands that hang, leave children or die, answers that are cut, files that others change, and Ctrl-C anywhere.
Long version: `CHAOS_RUNS=500 pytest tests/property/test_chaos.py` (10 minutes).
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

from constrained_agent.agent.budget import ExitReason
from constrained_agent.agent.watch import NoWatcher
from constrained_agent.tools.permissions import Policy
from tests.agents import ScriptedAgent, call, patch_call

N_RUNS = int(os.environ.get("CHAOS_RUNS", "12"))
MARK = "chaos-7f3a"
"""In the command line of every process that a run starts, so that what is left of it is found."""

WORDS = [
    "The end.",
    "I will now edit a.txt.",
    "I have updated a.txt.",
    "Let me look:",
    "Nothing to do.",
    "x " * 80,
]
COMMANDS = [
    "true",
    "false",
    "cat",
    "echo out; echo err >&2; exit 7",
    f"exec -a {MARK} sleep 60",
    f"(exec -a {MARK} sleep 60) & echo started",
    f"(exec -a {MARK} sleep 60) & wait",
    "kill -9 $$",
    "yes | head -c 300000",
    r"printf '\xff\xfe\x00'",
    "echo three >> a.txt",
    "rm -f b.txt",
    "no-such-command",
    "if then",
]
PATCHES = [
    "*** Update File: a.txt\n@@\n-one\n+ONE\n",
    "*** Update File: a.txt\n@@\n-ONE\n+one\n",
    "*** Update File: b.txt\n@@\n-same\n+other\n",
    "*** Update File: gone.txt\n@@\n-x\n+y\n",
    "*** Add File: new.txt\n+new\n",
    "*** Delete File: b.txt\n",
    "*** Delete File: new.txt\n",
    "*** Add File: ../outside.txt\n+x\n",
    "*** Add File: long.txt\n" + "".join(f"+line {i}\n" for i in range(200)),
]
BROKEN = [
    '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.txt"}',
    '<tool_call>\n{"name": "no_tool", "arguments": {}}\n</tool_call>',
    '<tool_call>\n{"name": "read_file", "arguments": {"path": 3}}\n</tool_call>',
    '<tool_call>\n{"name": "exec_command", "arguments": {"command": "echo \\d"}}\n</tool_call>',
    "<function=read_file><parameter=path>a.txt</parameter></function>",
    "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+ONE\n*** End Patch",
    "```bash\nrm -rf x\n```",
    "",
]


class Saboteur(NoWatcher):
    """Presses Ctrl-C, or changes a file behind the run's back, where a random number says so."""

    def __init__(self, rng, root):
        self._rng, self._root = rng, root
        self._interrupts_at = rng.choice([None, None, rng.randint(0, 300)])

    def _strike(self):
        if self._interrupts_at is not None:
            self._interrupts_at -= 1
            if self._interrupts_at < 0:
                self._interrupts_at = None
                raise KeyboardInterrupt

    def turn_started(self, number):
        self._strike()

    def prefill(self, done, total):
        self._strike()

    def tokens(self, tokens, forced):
        self._strike()

    def turn_ended(self, turn):
        self._strike()

    def call_started(self, call):
        self._strike()
        if self._rng.random() < 0.1:
            (self._root / "a.txt").write_text("changed\nby\nsomebody\n")

    def call_ended(self, result):
        self._strike()


def answer(rng):
    kind = rng.choice(["words", "look", "patch", "command", "broken", "several"])
    if kind == "words":
        return rng.choice(WORDS)
    if kind == "look":
        path = rng.choice(["a.txt", "b.txt", "gone.txt", ".", "..", "/etc/passwd", "new.txt"])
        tool = rng.choice(["read_file", "read_file", "list_dir"])
        return call(tool, path=path)
    if kind == "patch":
        return patch_call(rng.choice(PATCHES))
    if kind == "command":
        return call("exec_command", command=rng.choice(COMMANDS), timeout_s=1)
    if kind == "broken":
        return rng.choice(BROKEN)
    return "\n".join(call("read_file", path=f"{name}.txt") for name in rng.choices("abc", k=3))


def left_processes():
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if line.startswith(MARK.encode()):
            found.append(folder.name)
    return found


def check_history(agent):
    """Every message is whole, every answer stands before its results, each call has one."""
    conversation = agent.agent._conversation
    tokenizer = agent.runtime.tokenizer
    ids = conversation.ids
    start, end = tokenizer.special("<|im_start|>"), tokenizer.special("<|im_end|>")
    assert [i for i in ids if i in (start, end)] == [start, end] * ids.count(start), "messages are whole"
    assert conversation._owed == 0
    assert sum(count for _, count in conversation.tokens()) == len(ids)
    for before, message in zip(conversation.messages, conversation.messages[1:], strict=False):
        assert message.kind != "results" or before.kind == "answer"


@pytest.mark.parametrize("seed", range(N_RUNS))
def test_a_run_ends_well_whatever_happens(tiny_runtime, tmp_path, seed):
    rng = random.Random(seed)
    root = tmp_path / "repo"
    root.mkdir()
    (root / "a.txt").write_text("one\ntwo\n")
    (root / "b.txt").write_text("same\nsame\n")
    settings = {
        "level": rng.choice(["off", "grammar", "grammar", "located"]),
        "max_turns": rng.choice([0, 3, 8]),
        "max_tokens": rng.choice([60, 400]),
        "test_command": rng.choice([None, None, "true", "false", f"exec -a {MARK} sleep 60"]),
        "stop_hook": rng.choice([None, None, "false"]),
        "time_limit_s": rng.choice([None, None, 2.0]),
        "max_verifications": 2,
    }
    if settings["test_command"] and MARK in settings["test_command"]:
        settings["time_limit_s"] = 1.0
    agent = ScriptedAgent(
        tiny_runtime,
        root,
        [answer(rng) for _ in range(40)] + ["The end."] * 20,
        policy=Policy(yes=True),
        watcher=Saboteur(rng, root),
        **settings,
    )
    agent.model.context_limit = rng.choice([5_000, 100_000])
    result = agent.run("Do it.")
    assert result.exit_reason in get_args(ExitReason)
    assert left_processes() == []
    assert not (tmp_path / "outside.txt").exists()
    check_history(agent)
    calls = Counter(event["event"] for event in agent.events)
    assert calls["end"] == 1
    assert result.turns <= (settings["max_turns"] or 60)
    if result.exit_reason == "interrupted":
        assert agent.run("Go on.").exit_reason in get_args(ExitReason), "the conversation goes on"
        check_history(agent)
