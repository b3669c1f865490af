"""Judges the records of a comparison once more, without the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
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


def rejudge(
    records: Iterable[Record],
    markers: dict[str, Any],
    calls: CallsById,
    transcript: Callable[[str], Path],
    done: Callable[[], object] = lambda: None,
) -> tuple[list[Record], list[Change]]:
    """Every record with a new judgement, and those whose outcome or rates changed.

    Args:
        markers: of the model, as `run.json` has them.
        calls: gives call items by id.
        transcript: where that of a whole run lies, by the record's id.
        done: is told of each record.

    Raises:
        UserError: a record is about a task or an arm that there is not, or about one whose tests cannot run here.
    """
    records = list(records)
    by_id = calls({record.name for record in records if record.kind == "call"})
    read_markers = Markers(**markers)
    new: list[Record] = []
    changes: list[Change] = []
    for record in records:
        source = _source(record, by_id)
        [arm] = arms.parse([record.arm])
        if isinstance(source, Task) and record.kind == "run":
            judgement = agentic.judge(source, record.written, transcript(record.id))
        else:
            judgement, _ = judging.judge(source, arm, read_markers, record.written)
        if _facts(judgement) != _facts(record.judgement):
            changes.append(Change(record, judgement))
        new.append(record.rejudged(judgement))
        done()
    return new, changes


def _facts(judgement: Judgement) -> tuple[Any, ...]:
    """What figures are made of; messages may hold seconds and paths."""
    one = judgement
    return one.outcome, one.parses, one.lands, one.kind, one.saved, one.server


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
