"""The rates that a report tells, all of them shares of all answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from constrained_agent.evals.compare.outcomes import STOPPED, WRONG
from constrained_agent.evals.compare.records import Record


@dataclass(frozen=True, slots=True)
class Measure:
    """One rate.

    Attributes:
        label: in tables.
        means: in a sentence.
        of: whether a record counts.
    """

    label: str
    means: str
    of: Callable[[Record], bool]


def _parses(record: Record) -> bool:
    # A grammar closes what a limit ends, so that it parses; without one it does not. Neither is run.
    return record.judgement.parses and not _stopped(record)


def _stopped(record: Record) -> bool:
    # What can be read of an answer may be wrong before its end: its outcome is that, then.
    return record.judgement.outcome in STOPPED or not record.written.whole


def _right_leniently(record: Record) -> bool:
    return record.judgement.right or record.judgement.saved == "passed"


RATES: Mapping[str, Measure] = {
    "parses": Measure(
        "parses",
        "it ended by itself and can be read, patches by the strict grammar",
        _parses,
    ),
    "lands": Measure(
        "lands",
        "its patch was applied, its command changed files, or its calls fit their schema",
        lambda record: record.judgement.lands,
    ),
    "right": Measure(
        "is right",
        "it landed, and the tests pass or the calls are those that were expected",
        lambda record: record.judgement.right,
    ),
    "right_leniently": Measure(
        "right, read leniently",
        "it is right, or would be if every whole patch in its text were taken, also of an answer that was ended early; "
        "of calls: if equal ones were taken once, and checked as the leaderboard does, without their schema",
        _right_leniently,
    ),
    "valid_but_wrong": Measure(
        "valid but wrong",
        "it landed, and is not right",
        lambda record: record.judgement.outcome in WRONG,
    ),
    "stopped": Measure(
        "ended early",
        "a limit ended it, or it repeated itself; it is not run, and does not count as parsing, even where the grammar "
        "brought it to a readable end",
        _stopped,
    ),
}

COMPARED = ("parses", "lands", "right", "right_leniently", "valid_but_wrong")
"""Rates of which differences are told."""
