"""Which tasks and calls a comparison takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from constrained_agent.errors import UserError
from constrained_agent.evals import tasks
from constrained_agent.evals.calls import bfcl, own
from constrained_agent.evals.calls.items import CallItem
from constrained_agent.evals.tasks import Task

ALL, NONE = "all", "none"

Report = Callable[[str], None]


def chosen_tasks(names: Sequence[str], report: Report) -> list[Task]:
    """Tasks by name.

    Args:
        names: or `all`, or `none`.
        report: is told which of all cannot be run here, for want of a program.

    Raises:
        UserError: there is no such task, none is named, or this machine lacks what its tests run.
    """
    if list(names) == [NONE]:
        return []
    if not names:
        raise UserError(f"no task is named; {NONE!r} leaves them all out")
    if len(names) > 1 and (alone := next((name for name in (ALL, NONE) if name in names), None)):
        raise UserError(f"{alone!r} stands for itself: leave the other names of tasks out, or it")
    if list(names) != [ALL]:
        found = [tasks.load(name) for name in dict.fromkeys(names)]
        if lacking := next((task for task in found if task.lacking), None):
            raise UserError(
                f"task {lacking.name} needs {', '.join(lacking.lacking)}: install it, or leave it out"
            )
        return found
    every = [tasks.load(name) for name in tasks.names()]
    for task in every:
        if task.lacking:
            report(
                f"task {task.name} is left out: its tests need {', '.join(task.lacking)}, which is not installed"
            )
    return [task for task in every if not task.lacking]


def chosen_calls(n_leaderboard: int, seed: int, report: Report, *, with_own: bool) -> list[CallItem]:
    """Questions for calls: some of the leaderboard's, fetched on first use, and all of our own.

    Raises:
        UserError: the leaderboard's items cannot be fetched.
    """
    found = bfcl.load(bfcl.SETS, n_leaderboard, seed, progress=report) if n_leaderboard else []
    return [*found, *(own.load() if with_own else [])]


def calls_by_id(ids: Iterable[str], report: Report) -> dict[str, CallItem]:
    """Call items by id; those of the leaderboard are fetched only if one is asked for."""
    wanted = set(ids)
    items = own.load()
    if wanted - {item.id for item in items}:
        items = [*items, *bfcl.load(bfcl.SETS, progress=report)]
    return {item.id: item for item in items if item.id in wanted}
