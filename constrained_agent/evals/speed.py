"""How fast the agent's loop is beside mlx-lm's: what is measured, in which order.

The machine is never quiet, so arms are not measured one after the other: they take turns on every prompt, in every
round, and each round begins with another of them. Ratios are taken between two runs of one round.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from constrained_agent.evals.contenders import Arm
from constrained_agent.evals.corpus import Edit
from constrained_agent.evals.reuse import Reused, converse
from constrained_agent.evals.small_edits import SmallEdit
from constrained_agent.evals.speed_arms import Case, Models, Run, run
from constrained_agent.evals.speed_cases import free_cases, taught_cases
from constrained_agent.model.session import Session

Progress = Callable[[str], None]

PASS_SIZES = (1, 4, 8, 12)
"""Ids of the passes that are timed: one token, and one with guesses behind it."""

_N_PASSES = 7  # of each size; the first ones warm up
_N_WARM = 2


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much to measure.

    Attributes:
        tasks: small edits that are written freely.
        edits: real edits that are written as they are.
        repeats: rounds on every prompt.
        max_tokens: of a free answer.
    """

    tasks: int
    edits: int
    repeats: int
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure.

    Attributes:
        arms: in this order.
        tasks: the small edits.
        corpus: the real edits, of which some are chosen.
    """

    arms: tuple[Arm, ...]
    tasks: tuple[SmallEdit, ...]
    corpus: tuple[Edit, ...]
    sizes: Sizes


@dataclass(slots=True)
class Measured:
    """What was measured so far: a run that is interrupted keeps it.

    Attributes:
        passes: seconds of passes, by their ids.
        reused: what conversations reused, by arm.
    """

    passes: dict[int, list[float]] = field(default_factory=dict)
    reused: dict[str, Reused] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)


def measure(models: Models, plan: Plan, measured: Measured, progress: Progress) -> None:
    """Measure everything, and say before each part what comes and about how long it takes.

    Raises:
        KeyboardInterrupt: Ctrl-C; `measured` has what there is.
    """
    sizes = plan.sizes
    cases = free_cases(models.runtime, plan.tasks, sizes.max_tokens)
    taught = taught_cases(models, plan.corpus, sizes.edits, progress=progress) if plan.corpus else []
    if not (cases or taught):
        return
    progress(f"passes of {', '.join(map(str, PASS_SIZES))} ids")
    ids_per_s = _time_passes(models.runtime.session, (cases or taught)[0].ids, measured.passes)
    pass_s = statistics.median(measured.passes[1])
    _converse(models, plan, measured, progress, pass_s)
    for part, arms in ((cases, plan.arms), (taught, tuple(arm for arm in plan.arms if arm.taught))):
        if part and arms:
            seconds = sum(_expected_s(case, arms, sizes.repeats, pass_s, ids_per_s) for case in part)
            what = "known patches" if part is taught else "small edits"
            counts = f"prompts: {len(part)}, rounds: {sizes.repeats}, arms: {len(arms)}"
            progress(f"{what}; {counts}; {_about(seconds)}")
            _take_turns(models, part, arms, sizes.repeats, measured.runs, progress)


def _time_passes(session: Session, ids: Sequence[int], passes: dict[int, list[float]]) -> float:
    """Time passes at the end of a prompt; returns how many ids of a prompt run in a second."""
    with session.running():
        started = time.perf_counter()
        n_run = max(1, len(ids) - session.prefill(ids))
        ids_per_s = n_run / (time.perf_counter() - started)
        for number in range(_N_PASSES):
            for size in PASS_SIZES:
                started = time.perf_counter()
                rows = session.forward(ids[:size])
                rows[-1, 0].item()  # waits for the pass
                session.cut(size)
                if number >= _N_WARM:
                    passes.setdefault(size, []).append(time.perf_counter() - started)
    return ids_per_s


def _converse(models: Models, plan: Plan, measured: Measured, progress: Progress, pass_s: float) -> None:
    """A conversation for each of the agent's own arms."""
    own = [arm for arm in plan.arms if arm.level is not None]
    if not (own and plan.tasks):
        return
    progress(f"conversations of 6 turns; arms: {len(own)}; {_about(len(own) * 100 * pass_s)}")
    for arm in own:
        assert arm.level is not None
        progress(f"  {arm.name}")
        found = converse(models.runtime, plan.tasks[0], arm.level, drafts=arm.drafts)
        measured.reused[arm.name] = found


def _take_turns(
    models: Models,
    cases: Sequence[Case],
    arms: Sequence[Arm],
    repeats: int,
    runs: list[Run],
    progress: Progress,
) -> None:
    for number, case in enumerate(cases):
        started = time.perf_counter()
        for repeat in range(repeats):
            first = (number + repeat) % len(arms)
            for arm in (*arms[first:], *arms[:first]):
                runs.append(run(models, case, arm, repeat))
        progress(f"  {number + 1} of {len(cases)}: {case.name}, {time.perf_counter() - started:.0f} s")


def _expected_s(case: Case, arms: Sequence[Arm], repeats: int, pass_s: float, ids_per_s: float) -> float:
    """About how long one prompt takes: both loops read it once, then most tokens take a pass."""
    n_tokens = len(case.script.ids) if case.script else case.max_tokens
    return 2 * len(case.ids) / ids_per_s + len(arms) * repeats * n_tokens * 0.75 * pass_s


def _about(seconds: float) -> str:
    return f"about {seconds / 60:.0f} min" if seconds > 90 else f"about {seconds:.0f} s"
