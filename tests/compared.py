"""A real comparison (prompts, grammar, decode loop, judging, records) of a model that writes from a script."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace

from constrained_agent.decode.sampling import Sampling
from constrained_agent.evals import tasks
from constrained_agent.evals.calls import own
from constrained_agent.evals.compare import arms, items, running
from constrained_agent.evals.compare.records import Folder
from constrained_agent.evals.compare.writing import Settings
from constrained_agent.grammar.toolcalls import Markers
from tests.fakes import ScriptedModel

TASK = tasks.load("dateparse")

FIX = TASK.reference.rstrip("\n")
"""The patch that solves it."""

CALL = next(item for item in own.load() if item.id == "own_windows_path")

TOKENS = Markers(are_tokens=True, thinks=True)
TEXT = Markers(are_tokens=False, thinks=True)
"""How Qwen3 marks calls, and how SmolLM2 does."""


def patch(body, path="dateparse.py"):
    return f"*** Begin Patch\n*** Update File: {path}\n{body}*** End Patch"


def raw(text):
    """A call that carries a raw patch."""
    return f'<tool_call>\n{{"name": "apply_patch"}}\n{text}\n</tool_call>'


def as_json(text):
    """A call that carries a patch as a string."""
    return wrapped({"name": "apply_patch", "arguments": {"patch": text}})


def wrapped(value):
    body = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"<tool_call>\n{body}\n</tool_call>"


def call(name, **arguments):
    return wrapped({"name": name, "arguments": arguments})


RIGHT_CALL = call(
    "move_file",
    source="C:\\Users\\Ada\\new\\table.txt",
    target="D:\\backup\\2024\\results\\nested\\table.txt",
)
"""What is right for `CALL`."""

_MARKER_LINE = re.compile(r"^((?:</?tool_call>|</?think>)+)$", re.MULTILINE)


class Writer(ScriptedModel):
    """Stands where the session stands.

    Args:
        markers: those that are tokens are written as such where they fill a line, anywhere else letter by letter.
    """

    def __init__(self, tokenizer, logit_width, answers, markers):
        super().__init__(tokenizer, logit_width, [])
        encode = tokenizer.encode if markers.are_tokens else tokenizer.encode_plain
        for answer in answers:
            parts = _MARKER_LINE.split(answer)
            encoded = (
                encode(part) if n % 2 else tokenizer.encode_plain(part) for n, part in enumerate(parts)
            )
            self._answers.append([token for part in encoded for token in part])

    def forget(self):
        pass


def scripted(tiny_runtime, answers, markers=TOKENS):
    """The runtime with a writer in the place of its model."""
    runtime = copy.copy(tiny_runtime)
    runtime.markers = markers
    runtime.session = Writer(tiny_runtime.tokenizer, tiny_runtime.session.logit_width, list(answers), markers)
    return runtime


def compared(runtime, folder, arm_names, *, task=TASK, calls=(), max_tokens=300, samples=1, agentic=False):
    """Compare arms on a task, on calls, or on both: the records, in order."""
    chosen = arms.parse(arm_names)
    groups = items.groups([task] if task else [], list(calls), chosen, samples, seed=0, agentic=agentic)
    folder.mkdir(parents=True, exist_ok=True)
    settings = Settings(Sampling(temperature=0.0), max_tokens)
    prepared = running.prepare(runtime, groups, settings)
    return list(running.run(runtime, prepared, settings, Folder(folder)))


def made_of(record, pieces, **changed):
    """A record with another text."""
    return replace(record, written=replace(record.written, pieces=tuple(pieces), **changed))


class Unmasked:
    """A runtime whose constraints are not applied."""

    def __init__(self, runtime):
        self._runtime = runtime

    def __getattr__(self, name):
        return getattr(self._runtime, name)

    def turn_constraint(self, level, *args, **kwargs):
        return self._runtime.turn_constraint("off", *args, **kwargs)

    def grammar_constraint(self, grammar):
        return self._runtime.unconstrained()
