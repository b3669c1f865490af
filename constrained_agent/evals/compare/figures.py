"""The figures of a comparison, from its records: what the report shows, as plain values for JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any

from constrained_agent.evals.compare.arms import ARMS, Arm
from constrained_agent.evals.compare.costs import costs
from constrained_agent.evals.compare.outcomes import OUTCOMES
from constrained_agent.evals.compare.promises import promises
from constrained_agent.evals.compare.rates import COMPARED, RATES
from constrained_agent.evals.compare.records import Record, by_arm, paired
from constrained_agent.evals.compare.statistics import difference, rate

KINDS: Mapping[str, str] = {"patch": "Patches", "call": "Tool calls", "run": "Whole runs"}
"""Kinds of items, and how a report calls them."""

PRIMARY: Mapping[str, tuple[str, str, str]] = {
    "patch": ("off", "located", "right"),
    "call": ("off", "grammar", "right"),
    "run": ("off", "located", "right"),
}
"""The one comparison of each kind that was named before anything was run: from, to, rate. The others are looked at
beside it, and their p values are not corrected for how many they are."""


def figures(records: Iterable[Record]) -> dict[str, Any]:
    """All figures.

    Returns:
        `kinds`: for each of `KINDS` that there is `arms` (by name, `arm_figures`), `primary` (`PRIMARY`), and
        `differences` (of each two arms that are worth it, the earlier way of asking first).
    """
    grouped = by_arm(records)
    kinds: dict[str, Any] = {}
    for kind in KINDS:
        arms = {arm.name: _in_order(grouped[kind, arm.name]) for arm in ARMS if (kind, arm.name) in grouped}
        if arms:
            first, second, measure = PRIMARY[kind]
            kinds[kind] = {
                "arms": {name: arm_figures(found) for name, found in arms.items()},
                "primary": {"first": first, "second": second, "rate": measure},
                "differences": [
                    _difference(before, after, arms, measure)
                    for before, after in _worth_comparing(arms)
                    for measure in COMPARED
                ],
            }
    return {"kinds": kinds}


def arm_figures(records: Sequence[Record]) -> dict[str, Any]:
    """Of one arm: outcomes, rates with intervals, of each set of questions too, what was promised, what it cost."""
    outcomes = Counter(record.judgement.outcome for record in records)
    sets = dict.fromkeys(record.set for record in records)
    return {
        **_shares(records),
        "sets": {name: _shares([one for one in records if one.set == name]) for name in sorted(sets)},
        "outcomes": {name: outcomes[name] for name in OUTCOMES if outcomes[name]},
        "kinds": dict(Counter(filter(None, map(_detail, records))).most_common()),
        "stop_reasons": dict(Counter(record.written.stop_reason for record in records).most_common()),
        "promises": promises(records),
        **costs(records),
        "saved": dict(
            Counter(record.judgement.saved for record in records if record.judgement.saved).most_common()
        ),
        "server": _server(records),
    }


def _shares(records: Sequence[Record]) -> dict[str, Any]:
    return {
        "n": len(records),
        "n_items": len({record.name for record in records}),
        "rates": {
            name: asdict(rate([(record.name, one.of(record)) for record in records]))
            for name, one in RATES.items()
        },
    }


def _worth_comparing(names: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of arms: two that differ in one thing, the mask or the carrier; calls and what there was before them."""
    arms = [arm for arm in ARMS if arm.name in set(names)]
    old = [arm for arm in arms if arm.form != "call"]
    calls = [arm for arm in arms if arm.form == "call"]
    alike = [(one.name, other.name) for one, other in combinations(calls, 2) if _differ_in_one(one, other)]
    return [
        *alike,
        *((one.name, other.name) for one in old for other in calls if other.carrier == "freeform"),
    ]


def _differ_in_one(one: Arm, other: Arm) -> bool:
    return one.carrier == other.carrier or one.level == other.level


def _in_order(records: Sequence[Record]) -> list[Record]:
    """Records of a resumed or merged comparison stand in another order; figures must not depend on it."""
    return sorted(records, key=lambda record: (record.name, record.sample))


def _detail(record: Record) -> str:
    """The kind of an error, where it says more than the outcome."""
    judgement = record.judgement
    if judgement.error_kind in ("", judgement.outcome):
        return ""
    return f"{judgement.outcome}: {judgement.error_kind}"


def _server(records: Sequence[Record]) -> dict[str, int] | None:
    """What mlx-lm's server makes of the calls, summed; None where it was not asked."""
    found = [record.judgement.server for record in records if record.judgement.server is not None]
    if not found:
        return None
    return {key: sum(one[key] for one in found) for key in ("calls", "dropped", "broken")}


def _difference(
    first: str, second: str, arms: Mapping[str, Sequence[Record]], measure: str
) -> dict[str, Any]:
    of = RATES[measure].of
    pairs = [(one.name, of(one), of(other)) for one, other in paired(arms[first], arms[second])]
    return {"first": first, "second": second, "rate": measure, **asdict(difference(pairs))}
