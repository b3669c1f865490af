"""From what was written to what became of it: the one place where an outcome is decided.

The same code judges while a comparison runs and when its records are judged again. Whole runs of the agent are judged
by `run_outcomes`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from constrained_agent.errors import ToolError, UserError
from constrained_agent.evals.calls.items import CallItem
from constrained_agent.evals.calls.judge import Verdict, without_repeats
from constrained_agent.evals.calls.judge import judge as judge_calls
from constrained_agent.evals.compare import arms as all_arms
from constrained_agent.evals.compare import landing, saving
from constrained_agent.evals.compare.arms import Arm
from constrained_agent.evals.compare.outcomes import (
    NOT_FOUND,
    NOT_LANDED,
    PRINTED,
    SCHEMA,
    UNREADABLE,
    WRONG,
    Judgement,
)
from constrained_agent.evals.compare.reading import (
    Failure,
    first_failure,
    line_of_hunk,
    patches_of,
    place_of_line,
    read_calls,
    sent,
)
from constrained_agent.evals.compare.records import Record, Written
from constrained_agent.evals.tasks import Task
from constrained_agent.grammar.toolcalls import Markers
from constrained_agent.messages import ToolCall
from constrained_agent.patch import Patch
from constrained_agent.tools.registry import APPLY_PATCH

T = TypeVar("T")


def judge(source: Task | CallItem, arm: Arm, markers: Markers, written: Written) -> tuple[Judgement, float]:
    """What became of an answer, and how many seconds that took to find out.

    Args:
        source: what was asked.
        arm: how.
        markers: how the model marks calls.
    """
    started = time.perf_counter()
    if isinstance(source, CallItem):
        judgement = _call(source, arm, markers, written)
    else:
        judgement = _patch(source, arm, markers, written)
    return judgement, round(time.perf_counter() - started, 3)


def _patch(task: Task, arm: Arm, markers: Markers, written: Written) -> Judgement:
    read = sent(arm, [APPLY_PATCH], markers, written)
    patches, unparsable = _patches(arm, read.calls, written.text)
    parses = read.parses and unparsable is None
    failure = first_failure(unparsable or read.failure, written)
    if failure is None:
        judgement = _landed(task, arm, read.calls, patches, written.text)
    else:
        judgement = _failed(failure, parses=parses)
    if arm.form != "regex" and not judgement.lands:
        saved = saving.saved(task, written.text, whole=written.whole)
        judgement = replace(judgement, saved=saved)
    if arm.level == "off" and arm.form == "call" and arm.carrier == "json":
        judgement = replace(judgement, server=saving.server_finds(written.text, markers))
    return judgement


def _patches(arm: Arm, calls: Sequence[ToolCall], text: str) -> tuple[list[Patch], Failure | None]:
    """What calls hold, and why one of them cannot be read; a shell block holds no patches."""
    if arm.form != "regex":
        return patches_of(calls, text)
    for call in calls:
        command = str(call.arguments["command"])
        if (wrong := landing.unreadable_command(command)) is not None:
            message, line = wrong
            at = text.index(command) + len("\n".join([*command.split("\n")[: line - 1], ""]))
            return [], Failure("patch_unparsable", message, "shell_syntax", at)
    return [], None


def _landed(
    task: Task, arm: Arm, calls: Sequence[ToolCall], patches: Sequence[Patch], text: str
) -> Judgement:
    if arm.form == "regex":
        done = landing.commanded(task, str(calls[0].arguments["command"]))
    else:
        done = landing.patched(task, patches)
    at = None
    if done.failed_patch is not None:
        patch = str(calls[done.failed_patch].arguments["patch"])
        at = place_of_line(text, patch, line_of_hunk(patch, done.path, done.hunk))
    return Judgement(done.outcome, True, done.lands, done.error_kind, done.message, at)


def _call(item: CallItem, arm: Arm, markers: Markers, written: Written) -> Judgement:
    read = sent(arm, item.tools, markers, written)
    failure = first_failure(read.failure, written)
    if failure is not None:
        judgement = _failed(failure, parses=read.parses)
    else:
        verdict = judge_calls(item, read.calls)
        judgement = Judgement(_outcome(verdict), True, True, verdict.kind, verdict.reason)
    if arm.level == "off":
        judgement = replace(judgement, server=saving.server_finds(written.text, markers))
    if judgement.outcome in (*SCHEMA, *WRONG) and judgement.parses and written.whole:
        # The leaderboard asks for no schema, and some of its answers do not fit their own.
        calls = without_repeats(read_calls(item.tools, markers, written))
        judgement = replace(judgement, saved=_outcome(judge_calls(item, calls)))
    return judgement


def _outcome(verdict: Verdict) -> str:
    return "passed" if verdict.right else "tests_failed"


def _failed(failure: Failure, *, parses: bool) -> Judgement:
    return Judgement(failure.outcome, parses, False, failure.error_kind, failure.message, failure.at)


def twice(name: str, act: Callable[[], T]) -> T:
    """Do what judges an item; if the machine fails, once more, and then stop.

    A broken machine (a full disk, no more processes) must not count against an arm: there is no record then.

    Args:
        name: of the item.

    Raises:
        UserError: it failed both times.
    """
    try:
        return act()
    except (OSError, ToolError):
        pass
    try:
        return act()
    except (OSError, ToolError) as error:
        raise UserError(
            f"{name} cannot be judged on this machine: {error} (tried twice); nothing was counted for it: mend that, "
            "then --resume goes on with what is there"
        ) from error


class Disagreement(AssertionError):
    """A constrained answer that the constraint should have made impossible: the comparison stops."""


def check(record: Record) -> None:
    """Hold what was judged against what the arm's constraint promises: it knows nothing of how either works.

    Of a whole run all failures count, also those that were mended later, but for calls in words (`PRINTED`).

    Raises:
        Disagreement: grammar and judge do not agree; neither can be trusted then.
    """
    [arm] = all_arms.parse([record.arm])
    judgement, failures = record.judgement, set(record.written.failures)
    if arm.level == "off":
        return
    if record.kind == "run":
        broken = failures & ({*UNREADABLE, *SCHEMA} - {*PRINTED})
        misplaced = failures & {*NOT_FOUND, "ambiguous"}
    else:
        broken = {judgement.outcome} if not judgement.parses or judgement.outcome in SCHEMA else set()
        misplaced = {judgement.outcome} & ({*NOT_LANDED} - {"no_change"})
    if arm.level == "located" and record.kind != "call" and judgement.error_kind != "write_failed":
        broken |= misplaced
    if broken:
        raise Disagreement(
            f"{record.id}: the constraint accepted what was judged {', '.join(sorted(broken))} "
            f"{judgement.error_kind} ({judgement.message}):\n{record.written.text}"
        )
