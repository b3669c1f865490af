"""What a person sees while a comparison runs: an estimate before, and a bar with the time that is left."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from constrained_agent.cli.view import console
from constrained_agent.evals.compare.items import MAX_TURNS

if TYPE_CHECKING:
    from constrained_agent.evals.compare.records import Record
    from constrained_agent.evals.compare.running import Prepared

_PROMPT_SPEEDUP = 8
"""Ids of a prompt that run in about the time of one step."""

_MAX_NAMES = 8

_JUDGE_S = 0.5  # of a patch: its tests


def estimate(prepared: Sequence[Prepared], done: Collection[str], step_s: float, max_tokens: int) -> str:
    """How long it will take at most, in words: if every answer is as long as it may be, and nothing is forced.

    Args:
        done: ids of the items that have a record already.
        step_s: seconds of a pass over one id.
    """
    groups = [(one, [item for item in one.group.items if item.id not in done]) for one in prepared]
    n_items = sum(len(left) for _, left in groups)
    n_answers = sum(len(left) * (1 if one.prompt else MAX_TURNS) for one, left in groups)
    n_prompt = sum(one.n_prompt for one, left in groups if left)
    seconds = n_answers * (max_tokens * step_s + _JUDGE_S) + n_prompt * step_s / _PROMPT_SPEEDUP
    passes = f"a pass takes {step_s * 1000:.0f} ms"
    return f"{n_items} answers to write, {n_prompt:,} prompt tokens; at most about {_duration(seconds)} ({passes})"


def too_long(names: Sequence[str], max_tokens: int) -> str:
    """That no answer can be right, of items whose reference alone is longer than an answer may be."""
    shown = ", ".join(names[:_MAX_NAMES])
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return (
        f"in {max_tokens} tokens no reference answer fits of {len(names)} items: {shown}{more} (--max-tokens)"
    )


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} hours"


@contextmanager
def bar(n_items: int, n_done: int) -> Iterator[Callable[[Record | None], None]]:
    """A progress bar on stderr; without a terminal, a line for every record.

    Yields:
        A function that is told of each record.
    """
    out = console()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(elapsed_when_finished=False),
    )
    with Progress(*columns, console=out, disable=not out.is_terminal) as progress:
        task = progress.add_task("comparing", total=n_items, completed=n_done)
        n = n_done

        def advance(record: Record | None = None) -> None:
            nonlocal n
            n += 1
            progress.advance(task)
            if record is not None and not out.is_terminal:
                out.print(f"{n}/{n_items} {record.id}: {record.judgement.outcome}", markup=False)

        yield advance
