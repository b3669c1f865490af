"""What was asked, for a report to show; nothing is fetched for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from constrained_agent.evals import tasks
from constrained_agent.evals.calls import bfcl, own
from constrained_agent.evals.compare.records import Record

Questions = Callable[[Iterable[Record]], Mapping[tuple[str, str], str]]
"""From records to what was asked, by kind and name; what is not to be had is left out."""


def at_hand(records: Iterable[Record]) -> Mapping[tuple[str, str], str]:
    """The questions of tasks and calls, as they are now. Those of the leaderboard only if its files lie here."""
    asked = {(record.kind, record.name): record.set for record in records}
    from_leaderboard = not set(bfcl.SETS).isdisjoint(asked.values())
    calls = {item.id: item.prompt for item in own.load()}
    calls |= _leaderboard() if from_leaderboard else {}
    there = set(tasks.names())
    found = {}
    for kind, name in asked:
        if kind == "call" and name in calls:
            found[kind, name] = calls[name]
        elif kind != "call" and name in there:
            found[kind, name] = tasks.load(name).instruction
    return found


def _leaderboard() -> dict[str, str]:
    """The leaderboard's questions by id; none where they would have to be fetched."""
    return {item.id: item.prompt for item in bfcl.load()} if bfcl.is_here() else {}
