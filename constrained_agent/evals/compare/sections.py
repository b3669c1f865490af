"""What a report shows of one kind of items: tables and lists, the same in Markdown and HTML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from constrained_agent.evals.compare import wording
from constrained_agent.evals.compare.facts import systems
from constrained_agent.evals.compare.outcomes import OUTCOMES
from constrained_agent.evals.compare.rates import RATES
from constrained_agent.evals.compare.statistics import NO_PAIR_DIFFERS


class Name(str):
    """A cell that holds the name of an arm or an outcome, to be set as such."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a head.

    Attributes:
        note: stands below it.
        n_words: columns of words, from the left; the others are numbers.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    n_words: int = 1


@dataclass(frozen=True, slots=True)
class Listing:
    """Sentences about arms."""

    title: str
    entries: Sequence[tuple[Name, str]]


def sections(kind: str, found: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[Table | Listing]:
    """Everything but the primary comparison and the plots.

    Args:
        found: of `figures.figures`, one of its kinds.
        facts: `run.json`.
    """
    arms = found["arms"]
    yield Listing("The arms", [(Name(name), wording.arm(name, kind, systems(facts))) for name in arms])
    yield _rates(arms)
    if any(len(arm["sets"]) > 1 for arm in arms.values()):
        yield _rates_of_sets(arms)
    yield _outcomes(kind, arms)
    entries = [(Name(name), wording.kinds(arm["kinds"], kind)) for name, arm in arms.items() if arm["kinds"]]
    yield Listing("Kinds of errors", entries)
    yield Listing("Promises of the constraint, and how often each was broken", list(_promises(arms)))
    yield _costs(arms)
    yield _differences([one for one in found["differences"] if one["n"]])
    yield Listing("Other readers", list(_readings(kind, arms, facts["markers"]["are_tokens"])))


def _rates(arms: Mapping[str, Any]) -> Table:
    rows = [[Name(name), *_cells(arm)] for name, arm in arms.items()]
    return Table("Rates of all answers", ["arm", "n", *_labels()], rows)


def _rates_of_sets(arms: Mapping[str, Any]) -> Table:
    rows = []
    for name, arm in arms.items():
        rows += [
            [Name(name), wording.set_of_questions(one), *_cells(of_set)]
            for one, of_set in arm["sets"].items()
        ]
        rows.append([Name(name), "all", *_cells(arm)])
    return Table("The same by set of questions", ["arm", "set", "n", *_labels()], rows, n_words=2)


def _labels() -> list[str]:
    return [one.label for one in RATES.values()]


def _cells(found: Mapping[str, Any]) -> list[str]:
    return [str(found["n"]), *(wording.rate(found["rates"][key]) for key in RATES)]


def _outcomes(kind: str, arms: Mapping[str, Any]) -> Table:
    names = [name for name in OUTCOMES if any(name in arm["outcomes"] for arm in arms.values())]
    rows = [
        [Name(wording.outcome(name, kind)), *(str(arm["outcomes"].get(name, 0)) for arm in arms.values())]
        for name in names
    ]
    return Table("What became of them", ["outcome", *map(Name, arms)], rows)


def _promises(arms: Mapping[str, Any]) -> Iterator[tuple[Name, str]]:
    for name, arm in arms.items():
        if arm["promises"]:
            n = arm["promises"]["n"]
            broken = ", ".join(f"{promise} {k} of {n}" for promise, k in arm["promises"]["broken"].items())
            yield Name(name), broken


def _costs(arms: Mapping[str, Any]) -> Table:
    head = ["arm", "tokens", "forced", "steps / token", "tokens / item", "steps / item", "s / item"]
    head += ["prompt s / item", "tokens / solved", "steps / solved", "s / solved", "mask p50 / p99, µs"]
    return Table(
        "What it cost", head, [[Name(name), *_cost(arm)] for name, arm in arms.items()], wording.COSTS
    )


def _cost(arm: Mapping[str, Any]) -> Iterator[str]:
    item, solved, masks = arm["per_item"], arm["per_solved_item"], arm["mask_us"]
    yield f"{arm['tokens']:,}"
    yield f"{arm['forced_tokens'] / arm['tokens'] if arm['tokens'] else 0:.0%}"
    yield wording.number(arm["steps_per_token"])
    yield from (wording.number(item[key]) for key in ("tokens", "steps", "s", "prefill_s"))
    yield from (wording.number(solved[key]) for key in ("tokens", "steps", "s"))
    yield f"{masks['p50']:,.0f} / {masks['p99']:,.0f}" if masks else "no mask"


def _differences(differences: Sequence[Mapping[str, Any]]) -> Table:
    rows = []
    for arms in dict.fromkeys((one["first"], one["second"]) for one in differences):
        of_arms = [one for one in differences if (one["first"], one["second"]) == arms]
        alike = [one for one in of_arms if one["no_interval"] == NO_PAIR_DIFFERS]
        rows += [_difference(one, RATES[one["rate"]].label) for one in of_arms if one not in alike]
        if alike:
            rows.append(_difference(alike[0], "; ".join(RATES[one["rate"]].label for one in alike)))
    head = ["arms", "rate", "pairs", "items", "difference", "items gained / lost", "p"]
    return Table("Differences, in percentage points", head, rows, n_words=2)


def _difference(one: Mapping[str, Any], label: str) -> list[str]:
    return [
        Name(f"{one['second']} - {one['first']}"),
        label,
        str(one["n"]),
        str(one["n_items"]),
        wording.change(one),
        f"{one['gained']} / {one['lost']}",
        wording.p_value(one["p"]),
    ]


def _readings(kind: str, arms: Mapping[str, Any], markers_are_tokens: bool) -> Iterator[tuple[Name, str]]:
    for name, arm in arms.items():
        if arm["server"] and markers_are_tokens:
            yield Name(name), wording.server(arm["server"])
        if arm["saved"]:
            yield Name(name), wording.saved(arm["saved"], kind)
    asked = "off" if kind == "call" else "off-json"
    if not markers_are_tokens and asked in arms:
        yield Name(asked), f"what mlx-lm's server makes of it: {wording.NO_SERVER}"
