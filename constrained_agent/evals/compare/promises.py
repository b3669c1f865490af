"""What a constraint promises, counted: each of these is 0, or grammar and judge do not agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from constrained_agent.evals.compare.arms import ARMS
from constrained_agent.evals.compare.outcomes import NOT_FOUND, PRINTED, SCHEMA, UNREADABLE
from constrained_agent.evals.compare.records import Record

_OF_SYNTAX: Mapping[str, tuple[str, ...]] = {"unreadable": UNREADABLE, "schema violated": SCHEMA}
_OF_PLACE: Mapping[str, tuple[str, ...]] = {
    "file or lines not found": NOT_FOUND,
    "ambiguous": ("ambiguous",),
}


def promises(records: Sequence[Record]) -> dict[str, Any] | None:
    """How often each promise of an arm's constraint was broken.

    Args:
        records: of one arm and kind.

    Returns:
        `n`, and `broken`: how many answers (or whole runs, if it happened in any of their turns), by promise. None
        for arms without a constraint.
    """
    level = next(arm.level for arm in ARMS if arm.name == records[0].arm)
    if level == "off":
        return None
    made = {**_OF_SYNTAX, **(_OF_PLACE if level == "located" else {})}
    broken = {
        name: sum(not _happened(record).isdisjoint(outcomes) for record in records)
        for name, outcomes in made.items()
    }
    return {"n": len(records), "broken": broken}


def _happened(record: Record) -> set[str]:
    """The outcome of an answer; of a whole run also what went wrong in it on the way."""
    happened = {record.judgement.outcome, *record.written.failures}
    return happened - {*PRINTED} if record.kind == "run" else happened
