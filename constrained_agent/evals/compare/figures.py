"""The figures of a comparison, from its records: what the report shows, as plain values for JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any

from constrained_agent.evals.compare.arms import ARMS
from constrained_agent.evals.compare.outcomes import OUTCOMES, WRONG
from constrained_agent.evals.compare.records import Record, by_arm, paired
from constrained_agent.evals.compare.statistics import difference, rate

KINDS = ("patch", "call", "run")

RATES: Mapping[str, Callable[[Record], bool]] = {
    "parses": lambda record: record.judgement.parses,
    "lands": lambda record: record.judgement.lands,
    "right": lambda record: record.judgement.right,
    "valid_but_wrong": lambda record: record.judgement.outcome in WRONG,
}
"""Of all items. `lands`: a patch was applied, or a call fits its schema; then it is either right or wrong."""

_COMPARED = ("parses", "lands", "right")


def figures(records: Iterable[Record]) -> dict[str, Any]:
    """All figures.

    Returns:
        `kinds`: for each of `KINDS` that there is `arms` (by name, `arm_figures`) and `differences` (of each two arms).
    """
    grouped = by_arm(records)
    kinds: dict[str, Any] = {}
    for kind in KINDS:
        arms = {arm.name: _in_order(grouped[kind, arm.name]) for arm in ARMS if (kind, arm.name) in grouped}
        if arms:
            kinds[kind] = {
                "arms": {name: arm_figures(found) for name, found in arms.items()},
                "differences": [
                    _difference(first, second, arms, measure)
                    for first, second in _worth_comparing(arms)
                    for measure in _COMPARED
                ],
            }
    return {"kinds": kinds}


def _worth_comparing(names: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of arms that differ in one thing: the mask, the carrier, or calls against what there was before them."""
    arms = [arm for arm in ARMS if arm.name in set(names)]
    return [
        (one.name, other.name)
        for one, other in combinations(arms, 2)
        if one.prompt == other.prompt
        or (one.form == other.form and one.level == other.level)
        or (one.name == "off" and other.form != "call")
    ]


def arm_figures(records: Sequence[Record]) -> dict[str, Any]:
    """Of one arm: outcomes, rates with intervals, and what it cost."""
    outcomes = Counter(record.judgement.outcome for record in records)
    tokens = sum(record.written.tokens for record in records)
    steps = sum(record.written.model_steps for record in records)
    seconds = sum(record.written.decode_s for record in records)
    solved = outcomes["passed"]
    return {
        "n": len(records),
        "outcomes": {name: outcomes[name] for name in OUTCOMES if outcomes[name]},
        "kinds": dict(Counter(_detail(record) for record in records if record.judgement.kind).most_common()),
        "rates": {name: asdict(rate([of(record) for record in records])) for name, of in RATES.items()},
        "stop_reasons": dict(Counter(record.written.stop_reason for record in records).most_common()),
        "tokens": tokens,
        "forced_tokens": sum(record.written.forced_tokens for record in records),
        "model_steps": steps,
        "steps_per_token": round(steps / tokens, 3) if tokens else None,
        "decode_s": round(seconds, 1),
        "prefill_s": round(sum(record.written.prefill_s for record in records), 1),
        "per_item": {
            "tokens": _share(tokens, len(records)),
            "steps": _share(steps, len(records)),
            "s": _share(seconds, len(records)),
        },
        "per_solved_item": {
            "tokens": _share(tokens, solved),
            "steps": _share(steps, solved),
            "s": _share(seconds, solved),
        },
        "mask_us": _masks(records),
        "saved": dict(
            Counter(record.judgement.saved for record in records if record.judgement.saved).most_common()
        ),
        "server": _server(records),
    }


def _in_order(records: Sequence[Record]) -> list[Record]:
    """Records of a resumed or merged comparison stand in another order; figures must not depend on it."""
    return sorted(records, key=lambda record: (record.name, record.sample))


def _detail(record: Record) -> str:
    return f"{record.judgement.outcome}: {record.judgement.kind}"


def _share(total: float, n: int) -> float | None:
    return round(total / n, 2) if n else None


def _masks(records: Sequence[Record]) -> dict[str, float]:
    """Medians over answers of p50 and p99, and the largest of all."""
    found = [record.written.mask_us for record in records if record.written.mask_us]
    if not found:
        return {}
    middle = {key: sorted(one[key] for one in found)[len(found) // 2] for key in ("p50", "p99")}
    return {**middle, "max": max(one["max"] for one in found)}


def _server(records: Sequence[Record]) -> dict[str, int] | None:
    """What mlx-lm's server makes of the calls, summed; None where it was not asked."""
    found = [record.judgement.server for record in records if record.judgement.server is not None]
    if not found:
        return None
    return {key: sum(one[key] for one in found) for key in ("calls", "dropped", "broken")}


def _difference(
    first: str, second: str, arms: Mapping[str, Sequence[Record]], measure: str
) -> dict[str, Any]:
    of = RATES[measure]
    pairs = [(one.name, of(one), of(other)) for one, other in paired(arms[first], arms[second])]
    return {"first": first, "second": second, "rate": measure, **asdict(difference(pairs))}
