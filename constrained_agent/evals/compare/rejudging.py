"""Judges the records of a comparison once more, without the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from constrained_agent.errors import UserError
from constrained_agent.evals import tasks
from constrained_agent.evals.calls.items import CallItem
from constrained_agent.evals.compare import agentic, arms, judging
from constrained_agent.evals.compare.outcomes import Judgement
from constrained_agent.evals.compare.records import Record
from constrained_agent.evals.tasks import Task
from constrained_agent.grammar.toolcalls import Markers

CallsById = Callable[[Iterable[str]], dict[str, CallItem]]


@dataclass(frozen=True, slots=True)
class Change:
    """A record that is judged differently now."""

    record: Record
    now: Judgement


@dataclass(frozen=True, slots=True)
class Rejudged:
    """What came of it.

    Attributes:
        records: all, with their new judgements.
        changes: those whose outcome or rates changed.
        disagreements: of constrained answers that their constraint should have made impossible, why.
    """

    records: list[Record]
    changes: list[Change]
    disagreements: list[judging.Disagreement]


def rejudge(
    records: Iterable[Record],
    markers: dict[str, Any],
    calls: CallsById,
    transcript: Callable[[str], Path],
    done: Callable[[], object] = lambda: None,
) -> Rejudged:
    """Judge every record anew, and hold it against what its constraint promises.

    Args:
        markers: of the model, as `run.json` has them.
        calls: gives call items by id.
        transcript: where that of a whole run lies, by the record's id.
        done: is told of each record.

    Raises:
        UserError: a record is about a task or an arm that there is not, or about one whose tests cannot run here; or
            the transcript of a whole run is not the one that its record is about.
    """
    records = list(records)
    by_id = calls({record.name for record in records if record.kind == "call"})
    read_markers = Markers(**markers)
    found = Rejudged([], [], [])
    for record in records:
        source = _source(record, by_id)
        judgement = judging.twice(record.id, partial(_judged, record, source, read_markers, transcript))
        if _facts(judgement) != _facts(record.judgement):
            found.changes.append(Change(record, judgement))
        found.records.append(record.rejudged(judgement))
        try:
            judging.check(found.records[-1])
        except judging.Disagreement as error:
            found.disagreements.append(error)
        done()
    return found


def _judged(
    record: Record, source: Task | CallItem, markers: Markers, transcript: Callable[[str], Path]
) -> Judgement:
    if isinstance(source, Task) and record.kind == "run":
        return agentic.judge(source, record.written, transcript(record.id))
    [arm] = arms.parse([record.arm])
    judgement, _ = judging.judge(source, arm, markers, record.written)
    return judgement


def _facts(judgement: Judgement) -> tuple[Any, ...]:
    """What figures are made of; messages may hold seconds and paths."""
    one = judgement
    return one.outcome, one.parses, one.lands, one.error_kind, one.saved, one.server


def _source(record: Record, calls: dict[str, CallItem]) -> Task | CallItem:
    if record.kind in ("patch", "run"):
        task = tasks.load(record.name)
        if task.lacking:
            raise UserError(
                f"record {record.id} cannot be judged here: its tests need {', '.join(task.lacking)}"
            )
        return task
    if record.name not in calls:
        raise UserError(f"record {record.id} is about a call item that there is not")
    return calls[record.name]
