"""From what was written to what became of it: the one place where an outcome is decided.

The same code judges while a comparison runs and when its records are judged again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from constrained_agent.evals.calls.items import CallItem
from constrained_agent.evals.calls.judge import judge as judge_calls
from constrained_agent.evals.compare import landing, saving
from constrained_agent.evals.compare.arms import Arm
from constrained_agent.evals.compare.outcomes import NOT_LANDED, SCHEMA, Judgement
from constrained_agent.evals.compare.reading import (
    Failure,
    first_failure,
    line_of_hunk,
    patches_of,
    place_of_line,
    sent,
)
from constrained_agent.evals.compare.records import Written
from constrained_agent.evals.tasks import Task
from constrained_agent.grammar.toolcalls import Markers
from constrained_agent.messages import ToolCall
from constrained_agent.patch import Patch
from constrained_agent.tools.registry import APPLY_PATCH


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
    patches, unparsable = ([], None) if arm.form == "regex" else patches_of(read.calls, written.text)
    parses = read.parses and unparsable is None
    failure = first_failure(unparsable or read.failure, written)
    if failure is None:
        judgement = _landed(task, arm, read.calls, patches, written.text)
    else:
        judgement = _failed(failure, parses=parses)
    if arm.level == "off" and arm.form != "regex" and not judgement.lands:
        judgement = replace(judgement, saved=saving.saved(task, written.text))
    if arm.level == "off" and arm.form == "call" and arm.carrier == "json":
        judgement = replace(judgement, server=saving.server_finds(written.text, markers))
    return judgement


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
    return Judgement(done.outcome, True, done.lands, done.kind, done.message, at)


def _call(item: CallItem, arm: Arm, markers: Markers, written: Written) -> Judgement:
    read = sent(arm, item.tools, markers, written)
    failure = first_failure(read.failure, written)
    if failure is not None:
        judgement = _failed(failure, parses=read.parses)
    else:
        verdict = judge_calls(item, read.calls)
        judgement = Judgement("passed" if verdict.right else "tests_failed", True, True, "", verdict.reason)
    if arm.level == "off":
        judgement = replace(judgement, server=saving.server_finds(written.text, markers))
    return judgement


def _failed(failure: Failure, *, parses: bool) -> Judgement:
    return Judgement(failure.outcome, parses, False, failure.kind, failure.message, failure.at)


class Disagreement(AssertionError):
    """A constrained answer that the constraint should have made impossible: the comparison stops."""


def check(arm: Arm, kind: str, judgement: Judgement, text: str) -> None:
    """Hold what was judged against what the arm's constraint promises.

    Raises:
        Disagreement: grammar and judge do not agree; neither can be trusted then.
    """
    if arm.level == "off":
        return
    promised = judgement.parses and judgement.outcome not in SCHEMA
    if arm.level == "located" and kind == "patch" and judgement.kind != "write_failed":
        promised = promised and (judgement.outcome not in NOT_LANDED or judgement.outcome == "no_change")
    if not promised:
        raise Disagreement(
            f"arm {arm.name}: the constraint accepted what was judged {judgement.outcome} {judgement.kind} "
            f"({judgement.message}):\n{text}"
        )
