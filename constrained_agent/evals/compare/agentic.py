"""Whole runs of the agent on a task, with all tools and several turns: the loop that people use, judged by its end."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from constrained_agent.agent import records as transcripts
from constrained_agent.agent.budget import Limits
from constrained_agent.agent.cut import temporary_copy
from constrained_agent.agent.events import Run
from constrained_agent.agent.loop import Agent
from constrained_agent.agent.replay import replay
from constrained_agent.agent.runtime import Runtime
from constrained_agent.agent.transcript import Transcript
from constrained_agent.agent.turn import Decoding
from constrained_agent.agent.values import RunResult
from constrained_agent.agent.values import Settings as AgentSettings
from constrained_agent.errors import PATCH_ERROR_KINDS, UserError
from constrained_agent.evals.compare import landing
from constrained_agent.evals.compare.items import MAX_TURNS, Item
from constrained_agent.evals.compare.outcomes import (
    OUTCOMES,
    SCHEMA,
    UNREADABLE,
    UNREADABLE_PATCH,
    Judgement,
    of_patch_error,
)
from constrained_agent.evals.compare.records import Written
from constrained_agent.evals.compare.writing import Settings
from constrained_agent.evals.tasks import Task
from constrained_agent.tools.permissions import Policy
from constrained_agent.tools.registry import Tools
from constrained_agent.tools.workspace import Workspace

_OUTCOME_OF = {"claimed": "no_call", "model_error": "no_answer", "tool_error": "other_patch_error"}
"""Failures of a run that are named otherwise among outcomes."""


def write(
    runtime: Runtime, item: Item, settings: Settings, transcript: Path
) -> tuple[Written, Judgement, float]:
    """Let the agent work on a copy of a task's repository.

    Commands run unasked, but for those that are dangerous or change other machines: these are refused.

    Args:
        transcript: a file that is made anew; `judge` reads it.

    Returns:
        What was written, what became of it, and how many seconds judging took.

    Raises:
        KeyboardInterrupt: the person stopped it.
    """
    task = item.source
    assert isinstance(task, Task)
    transcript.parent.mkdir(parents=True, exist_ok=True)
    transcript.unlink(missing_ok=True)
    with temporary_copy(task.path) as root:
        task.copy_to(root)
        policy = Policy(yes=True, environment=landing.variables(root))
        tools = Tools(Workspace(root), policy)
        agent = Agent(
            runtime, tools, _settings(runtime, item, settings), transcript=Transcript(os.fspath(transcript))
        )
        result = agent.run(task.instruction, task.files)
        if result.exit_reason == "interrupted":
            raise KeyboardInterrupt
        [run] = transcripts.read(transcript)
        written = _written(result, run)
        started = time.perf_counter()
        judgement = _judged(run, written, landing.tested(task, root))
    return written, judgement, round(time.perf_counter() - started, 3)


def judge(task: Task, written: Written, transcript: Path) -> Judgement:
    """Judge a run once more: its patches are applied to a fresh copy, and the tests run there.

    Raises:
        UserError: the transcript is missing, or does not lead where it once led.
    """
    [run] = transcripts.read(transcript)
    with temporary_copy(task.path) as root:
        task.copy_to(root)
        replayed = replay(run, root)
        if replayed.difference is not None:
            raise UserError(f"{transcript}: the run does not come out the same: {replayed.difference}")
        return _judged(run, written, landing.tested(task, root))


def _settings(runtime: Runtime, item: Item, settings: Settings) -> AgentSettings:
    task = item.source
    assert isinstance(task, Task)
    decoding = Decoding(
        item.arm.level,
        replace(settings.sampling, seed=item.seed),
        settings.max_tokens,
        drafts=settings.drafts,
        carrier=item.arm.carrier,
    )
    return AgentSettings(
        decoding,
        Limits(MAX_TURNS),
        runtime.card.prompt,
        test_command=task.test_command,
    )


def _written(result: RunResult, run: Run) -> Written:
    text = ""
    forced: list[tuple[int, int]] = []
    for turn in run.turns:
        text += f"{'' if not text else chr(10)}--- turn {turn.number} ({turn.stop_reason})\n"
        forced += _stretches(turn.forced_chars or (), len(text))
        text += turn.text
    return Written(
        pieces=(text,),
        stop_reason=result.exit_reason,
        whole=True,
        forced=tuple(forced),
        prompt_tokens=result.usage.prompt_tokens,
        tokens=result.usage.generated_tokens,
        forced_tokens=result.usage.forced_tokens,
        model_steps=result.usage.model_steps,
        prefill_s=round(sum(turn.prefill_s for turn in run.turns), 3),
        decode_s=round(sum(turn.decode_s for turn in run.turns), 3),
        mask_us={},
        failures=dict(result.failures),
    )


def _stretches(lengths: Sequence[int], start: int) -> Iterator[tuple[int, int]]:
    """The forced stretches of a text, given how long its stretches are: drawn, forced, drawn, ...

    Args:
        start: the text's first character.
    """
    for number, length in enumerate(lengths):
        if number % 2 and length:
            yield start, start + length
        start += length


def _judged(run: Run, written: Written, landed: landing.Landed) -> Judgement:
    """Passed, or the first thing that went wrong in the run. It parses if it made calls, and all could be read."""
    failures = {name: outcome for name in written.failures if (outcome := _outcome(name)) is not None}
    unreadable = any(outcome in (*UNREADABLE, *SCHEMA) for outcome in failures.values())
    parses = any(turn.calls for turn in run.turns) and not unreadable
    if landed.outcome == "passed":
        return Judgement("passed", parses, True)
    message = f"failures of the run: {_in_words(written.failures)}" if failures else landed.message
    name, outcome = next(iter(failures.items()), ("", "tests_failed"))
    return Judgement(outcome, parses, outcome == "tests_failed", "" if name == outcome else name, message)


def _outcome(failure: str) -> str | None:
    """The outcome that a failure of a run counts as; None for what is none by itself."""
    if failure in OUTCOMES:
        return failure
    if failure in UNREADABLE_PATCH:
        return "patch_unparsable"
    if failure in PATCH_ERROR_KINDS:
        return of_patch_error(failure)
    return _OUTCOME_OF.get(failure)


def _in_words(failures: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in failures.items())
