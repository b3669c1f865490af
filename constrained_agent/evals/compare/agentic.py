"""Whole runs of the agent on a task, with all tools and several turns: the loop that people use, judged by its end.

`run_outcomes` says what that is. The transcript of each run is kept, and the record holds its hash.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from constrained_agent.agent import records as transcripts
from constrained_agent.agent.budget import Limits
from constrained_agent.agent.cut import temporary_copy
from constrained_agent.agent.events import Run
from constrained_agent.agent.loop import Agent
from constrained_agent.agent.prompt import task_text
from constrained_agent.agent.replay import replay
from constrained_agent.agent.runtime import Runtime
from constrained_agent.agent.transcript import Transcript
from constrained_agent.agent.turn import Decoding
from constrained_agent.agent.values import RunResult
from constrained_agent.agent.values import Settings as AgentSettings
from constrained_agent.errors import DecodeError, UserError
from constrained_agent.evals.compare import landing, run_outcomes
from constrained_agent.evals.compare.items import MAX_TURNS, Item
from constrained_agent.evals.compare.outcomes import Judgement
from constrained_agent.evals.compare.prompts import prompt_ids
from constrained_agent.evals.compare.records import Written
from constrained_agent.evals.compare.writing import Settings
from constrained_agent.evals.tasks import Task
from constrained_agent.tools.permissions import Policy
from constrained_agent.tools.registry import Tools
from constrained_agent.tools.workspace import Workspace


def first_prompt(runtime: Runtime, item: Item, settings: Settings) -> tuple[int, ...]:
    """The prompt of a run's first answer, as `Agent.run` makes it: what is too long is told before anything runs."""
    task = _task(item)
    given = _settings(runtime, item, settings)
    with temporary_copy(task.path) as root:
        task.copy_to(root)
        tools = _tools(root)
        shown = [(path, tools.show(path)) for path in task.files]
    system = given.system(tools.specs, runtime.dialect.tool_block)
    return prompt_ids(runtime, system, task_text(task.instruction, shown))


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
        DecodeError: a constraint broke, as in a single answer; the transcript stays.
        OSError, ToolError: the machine could not.
        KeyboardInterrupt: the person stopped it.
    """
    task = _task(item)
    transcript.parent.mkdir(parents=True, exist_ok=True)
    transcript.unlink(missing_ok=True)
    with temporary_copy(task.path) as root:
        task.copy_to(root)
        log = Transcript(os.fspath(transcript))
        agent = Agent(runtime, _tools(root), _settings(runtime, item, settings), transcript=log)
        result = agent.run(task.instruction, task.files)
        if result.exit_reason == "interrupted":
            raise KeyboardInterrupt
        if result.exit_reason == "model_error":
            raise DecodeError(f"{item.id}: {result.last_error} (transcript: {transcript})")
        [run] = transcripts.read(transcript)
        written = _written(result, run, _sha256(transcript))
        started = time.perf_counter()
        judgement = run_outcomes.judged(run, landing.tested(task, root))
    return written, judgement, round(time.perf_counter() - started, 3)


def judge(task: Task, written: Written, transcript: Path) -> Judgement:
    """Judge a run once more: its patches are applied to a fresh copy, and the tests run there.

    Raises:
        UserError: the transcript is missing, another one than that of the record, or does not lead where it once led.
        OSError, ToolError: the machine could not.
    """
    [run] = transcripts.read(transcript)
    if _sha256(transcript) != written.transcript_sha256:
        raise UserError(
            f"{transcript} is not the transcript that the record is about: it was changed or exchanged"
        )
    with temporary_copy(task.path) as root:
        task.copy_to(root)
        replayed = replay(run, root)
        if replayed.difference is not None:
            raise UserError(f"{transcript}: the run does not come out the same: {replayed.difference}")
        return run_outcomes.judged(run, landing.tested(task, root))


def _task(item: Item) -> Task:
    assert isinstance(item.source, Task)
    return item.source


def _tools(root: Path) -> Tools:
    return Tools(Workspace(root), Policy(yes=True, environment=landing.variables(root)))


def _sha256(transcript: Path) -> str:
    return hashlib.sha256(transcript.read_bytes()).hexdigest()


def _settings(runtime: Runtime, item: Item, settings: Settings) -> AgentSettings:
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
        test_command=_task(item).test_command,
    )


def _written(result: RunResult, run: Run, sha256: str) -> Written:
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
        failures=run_outcomes.counted(run),
        transcript_sha256=sha256,
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
