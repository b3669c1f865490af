"""Runs in which everything goes wrong at random: the agent ends for a listed reason and leaves nothing behind.

A scripted model drives the real loop, tools and subprocesses: calls that are wrong in every way, patches that do not
fit, commands that hang, leave children or die, answers that are cut, files that others change, a disk that is full, a
model that breaks, Ctrl-C between any two steps, and the real signal while a command is judged or runs. Most runs lean
to one way to end, so that all of them are met.
Long version: `CHAOS_RUNS=500 pytest tests/property/test_chaos.py` (7 minutes; 4 with `-n 2`).
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import random
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

from constrained_agent.agent.budget import LEAST_TOKENS, ExitReason
from constrained_agent.agent.loop import WRAP_UP_TOKENS
from constrained_agent.agent.watch import NoWatcher
from constrained_agent.errors import DecodeError
from constrained_agent.tools.permissions import Policy
from constrained_agent.tools.registry import Tools
from constrained_agent.tools.workspace import Workspace
from tests.agents import ScriptedAgent, call, patch_call

N_RUNS = int(os.environ.get("CHAOS_RUNS", "15"))
N_FOR_ALL = 60
"""So many runs meet every way to end."""

MARK = f"chaos-{os.getpid()}"
"""In the command line of every process that a run here starts, so that what is left of it is found."""

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
PRINTED = [
    "<function=read_file><parameter=path>a.txt</parameter></function>",
    "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+ONE\n*** End Patch",
    '{"name": "list_dir", "arguments": {"path": "."}}',
]
BROKEN = [
    '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.txt"}',
    '<tool_call>\n{"name": "no_tool", "arguments": {}}\n</tool_call>',
    '<tool_call>\n{"name": "read_file", "arguments": {"path": 3}}\n</tool_call>',
    '<tool_call>\n{"name": "exec_command", "arguments": {"command": "echo \\d"}}\n</tool_call>',
    "```bash\nrm -rf x\n```",
    "",
    *PRINTED,
]
ENDLESS = "<think>\n" + "".join(f"Step {i} leads on. " for i in range(300))
SLEEP = call("exec_command", command=f"exec -a {MARK} sleep 60", timeout_s=1)

CALM = {"time_limit_s": None, "max_run_tokens": None, "test_command": None, "stop_hook": None, "max_turns": 0}
LEANINGS = {
    "done": {"answers": ["The end."]},
    "no_answer": {"answers": ["", *WORDS[1:4], *PRINTED]},
    "max_turns": {"answers": [call("read_file", path=f"{name}.txt") for name in "abcdefgh"], "max_turns": 3},
    "time_limit": {"answers": [SLEEP], "time_limit_s": 0.4, "max_tokens": 400},
    "token_budget": {"max_run_tokens": 90},
    "repeated_calls": {"answers": [call("list_dir", path=".")], "max_tokens": 400},
    "truncated": {"answers": [patch_call(PATCHES[-1]), "x " * 80], "max_tokens": 60},
    "thinking_limit": {"answers": [ENDLESS], "thinking": True, "max_tokens": 60},
    "thinking_unclosed": {"answers": ["<think>\nLet me see", "<think>\nHm"], "level": "off"},
    "tests_failed": {"answers": ["Nothing to do."], "test_command": "false"},
    "interrupted": {"answers": [SLEEP]},
    "model_error": {},
}
"""By the way to end to which a run leans: what it has otherwise than a calm one."""

ROUND = [None, None, None, *LEANINGS]
"""The leanings of runs in turn; those without one have random settings."""


class Saboteur(NoWatcher):
    """Presses Ctrl-C, or changes a file behind the run's back, where a random number says so.

    Args:
        signals: how often a command is met by a real signal.
    """

    def __init__(self, rng, root, *, often, signals):
        self._rng, self._root, self._signals = rng, root, signals
        self._interrupts_at = rng.choice([None, None, rng.randint(0, 300)]) if not often else None
        self._timer = None

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

    def command_starts(self):
        """Have a signal sent soon, now and then."""
        if self._rng.random() < self._signals:
            self._timer = threading.Timer(self._rng.uniform(0, 0.4), os.kill, (os.getpid(), signal.SIGINT))
            self._timer.start()

    def call_ended(self, result):
        self.rest()
        self._strike()

    def rest(self):
        """No signal is on its way after this."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()


class FailingTools(Tools):
    """Tools on a disk that is full now and then; a command may have run before that is noticed.

    Args:
        command_starts: is told.
    """

    def __init__(self, workspace, policy, rng, command_starts):
        super().__init__(workspace, policy)
        self._rng, self._command_starts = rng, command_starts

    def _permit(self, spec, arguments):
        if spec.name == "exec_command":  # a signal may come while it is judged, or while it runs
            self._command_starts()
        super()._permit(spec, arguments)

    def _outcome(self, call):
        number = self._rng.choice([errno.ENOSPC, errno.EACCES, errno.EIO, errno.EMFILE, errno.ENOENT])
        fails = self._rng.random() < 0.15
        if fails and call.name == "exec_command":
            super()._outcome(call)
        if fails:
            raise OSError(number, os.strerror(number), "a.txt")
        return super()._outcome(call)


def answer(rng, leaning):
    chosen = LEANINGS[leaning].get("answers") if leaning else None
    if chosen and rng.random() < 0.9:
        return rng.choice(chosen)
    kind = rng.choice(["words", "look", "patch", "command", "broken", "beside", "several"])
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
    if kind == "beside":
        return f"{rng.choice(PRINTED)}\n{call('read_file', path='a.txt')}"
    return "\n".join(call("read_file", path=f"{name}.txt") for name in rng.choices("abc", k=3))


def left_processes(wait_s=2.0):
    """Those that are still there after a while: one that was killed takes a moment to go."""
    deadline = time.monotonic() + wait_s
    while (found := marked_processes()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def marked_processes():
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if line.startswith(f"{MARK}\0".encode()):
            found.append(folder.name)
    return found


def check_history(agent):
    """Every message is whole, every answer stands before its results, each call has one."""
    conversation = agent.agent.conversation
    tokenizer = agent.runtime.tokenizer
    ids = conversation.ids
    start, end = tokenizer.special("<|im_start|>"), tokenizer.special("<|im_end|>")
    assert [i for i in ids if i in (start, end)] == [start, end] * ids.count(start), "messages are whole"
    assert conversation._owed == 0
    assert sum(count for _, count in conversation.tokens()) == len(ids)
    turns = check_record(agent.events)
    messages = [*conversation.messages, None]
    answers = [pair for pair in itertools.pairwise(messages) if pair[0].kind == "answer"]
    for (message, after), (turn, called) in zip(reversed(answers), reversed(turns), strict=False):
        n_results = len(after.results) if after is not None and after.kind == "results" else 0
        assert n_results == len(called), "in what is left of the conversation, too, each call has its result"
        if turn["stop_reason"] not in ("complete", "end_token") and not turn["thinking"]:
            marks = [message.ids.count(tokenizer.special(name)) for name in ("<tool_call>", "</tool_call>")]
            assert marks[0] == marks[1], "a call that was cut off is closed"
    for message, after in itertools.pairwise(conversation.messages):
        assert after.kind != "results" or message.kind == "answer"


def check_record(events):
    """Each call of a turn has one result, in order; returns the turns with the ids of their calls."""
    turns, answered = [], []
    for event in events:
        if event["event"] == "turn":
            ids = [call["id"] for call in event["calls"]] + [fault["call_id"] for fault in event["faults"]]
            turns.append((event, sorted(filter(None, ids), key=lambda name: int(name.split("_")[1]))))
            answered.append([])
            assert sum(n for _, n in event["prompt_messages"]) == event["prompt_tokens"]
        if event["event"] == "result" and event["call_id"] != "tests":
            answered[-1].append(event["call_id"])
            assert event["ok"] or event["error_kind"]
    assert [called for _, called in turns] == answered
    return turns


def breaking(forward, n_passes):
    """A pass of the model that breaks after so many."""
    left = itertools.count(n_passes, -1)

    def broken(ids):
        if next(left) <= 0:
            raise DecodeError("the device was lost")
        return forward(ids)

    return broken


@contextlib.contextmanager
def ctrl_c_raises(saboteur):
    """As in the program, also where a test runner ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        saboteur.rest()
        signal.signal(signal.SIGINT, before)


def chaotic(tiny_runtime, folder, seed):
    """An agent that leans to one way to end, its settings, and its saboteur."""
    rng = random.Random(seed)
    leaning = ROUND[seed % len(ROUND)]
    root = folder / "repo"
    root.mkdir()
    (root / "a.txt").write_text("one\ntwo\n")
    (root / "b.txt").write_text("same\nsame\n")
    settings = {
        "level": rng.choice(["off", "grammar", "grammar", "located"]),
        "max_turns": rng.choice([0, 3, 8]),
        "max_tokens": rng.choice([60, 400]),
        "max_run_tokens": rng.choice([None, None, 300]),
        "test_command": rng.choice([None, None, "true", "false", f"exec -a {MARK} sleep 60"]),
        "stop_hook": rng.choice([None, None, "false"]),
        "time_limit_s": rng.choice([None, None, 2.0]),
        "max_verifications": 2,
        "parallel": rng.random() < 0.5,
    }
    if leaning:
        settings |= CALM | {name: value for name, value in LEANINGS[leaning].items() if name != "answers"}
    if settings["test_command"] and MARK in settings["test_command"]:
        settings["time_limit_s"] = 1.0
    often = leaning == "interrupted"
    saboteur = Saboteur(rng, root, often=often, signals=1.0 if often else 0.2)
    agent = ScriptedAgent(
        tiny_runtime,
        root,
        [answer(rng, leaning) for _ in range(40)] + ["The end."] * 40,
        tools=FailingTools(Workspace(root), Policy(yes=True), rng, saboteur.command_starts),
        watcher=saboteur,
        **settings,
    )
    agent.model.context_limit = 100_000 if leaning else rng.choice([5_000, 100_000])
    if leaning == "model_error" or (not leaning and rng.random() < 0.1):
        agent.model.forward = breaking(agent.model.forward, rng.randint(1, 200))
    return agent, settings, saboteur


def check_limits(result, settings):
    assert result.turns <= (settings["max_turns"] or 60)
    if settings["max_run_tokens"] is not None:
        last_words = min(WRAP_UP_TOKENS, LEAST_TOKENS)
        assert result.usage.generated_tokens <= settings["max_run_tokens"] + LEAST_TOKENS + last_words


@pytest.fixture(scope="module")
def ended(tiny_runtime, tmp_path_factory):
    """Makes a run, once for each seed, and checks what it left; returns why it ended."""
    known = {}

    def go(seed):
        if seed in known:
            return known[seed]
        folder = tmp_path_factory.mktemp(f"chaos{seed}")
        agent, settings, saboteur = chaotic(tiny_runtime, folder, seed)
        with ctrl_c_raises(saboteur):
            result = agent.run("Do it.")
            assert result.exit_reason in get_args(ExitReason)
            check_history(agent)
            check_limits(result, settings)
            assert Counter(event["event"] for event in agent.events)["end"] == 1
            if result.exit_reason in ("interrupted", "model_error", "repeated_calls"):
                agent.model.forward = type(agent.model).forward.__get__(agent.model)
                assert agent.run("Go on.").exit_reason in get_args(ExitReason), "the conversation goes on"
                check_history(agent)
        assert left_processes() == []
        assert not (folder / "outside.txt").exists()
        known[seed] = result.exit_reason
        return known[seed]

    return go


@pytest.mark.parametrize("seed", range(N_RUNS))
def test_a_run_ends_well_whatever_happens(ended, seed):
    assert ended(seed) in get_args(ExitReason)


def test_every_way_to_end_is_met(ended):
    """Else the runs above would say less than they seem to."""
    met = Counter(ended(seed) for seed in range(N_RUNS))
    if N_RUNS >= N_FOR_ALL:
        # On a busy machine a run that was to end in one way meets its time limit before.
        assert len(set(get_args(ExitReason)) - set(met)) <= 2, met
    assert len(met) >= min(N_RUNS, len(ROUND)) // 2, met
