"""The report of a comparison as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from constrained_agent.evals.compare.outcomes import OUTCOMES

_KINDS = {"patch": "Patches", "call": "Tool calls", "run": "Whole runs"}
_RATES = {"parses": "parses", "lands": "lands", "right": "is right", "valid_but_wrong": "valid but wrong"}
_MAX_SHOWN_P = 0.001


def document(facts: Mapping[str, Any], figures: Mapping[str, Any]) -> str:
    """Everything but the texts.

    Args:
        facts: `run.json`.
        figures: `figures.figures`.
    """
    parts = ["# Before and after", *_about(facts)]
    for kind, found in figures["kinds"].items():
        parts += [f"## {_KINDS[kind]}", *_section(found)]
    return "\n\n".join(parts) + "\n"


def _about(facts: Mapping[str, Any]) -> Iterator[str]:
    parts = facts["circumstances"]
    for one in parts if isinstance(parts, list) else [parts]:
        versions = ", ".join(f"{name} {version}" for name, version in one["versions"].items())
        commit = f", commit {one['commit']}{' and changes' if one['dirty'] else ''}" if one["commit"] else ""
        yield f"{one['date']}, {one['machine']}, {one['device']}; {versions}, Python {one['python']}{commit}."
        yield f"`{one['command']}`"
    sampling = ", ".join(f"{name} {value}" for name, value in facts["sampling"].items())
    yield (
        f"Model {facts['model']}; {sampling}; {facts['max_tokens']} tokens an answer; {facts['samples']} samples of "
        f"each item, seed {facts['seed']}; drafts {'on' if facts['drafts'] else 'off'}."
    )


def _section(found: Mapping[str, Any]) -> Iterator[str]:
    arms = found["arms"]
    yield "Of all items, with 95 % Wilson intervals."
    yield _rates(arms)
    yield "What became of them:"
    yield _outcomes(arms)
    if details := _details(arms):
        yield details
    yield "What it cost:"
    yield _costs(arms)
    differences = [one for one in found["differences"] if one["n"]]
    if differences:
        yield "Differences on the same items and seeds (exact McNemar test; bootstrap interval over items):"
        yield _differences(differences)
    yield from _reading(arms)


def _rates(arms: Mapping[str, Any]) -> str:
    rows = [
        [f"`{name}`", str(arm["n"]), *(_rate(arm["rates"][key]) for key in _RATES)]
        for name, arm in arms.items()
    ]
    return _table(["arm", "n", *_RATES.values()], rows)


def _rate(one: Mapping[str, float]) -> str:
    share = one["k"] / one["n"] if one["n"] else 0
    return f"{one['k']} ({share:.0%}; {one['low']:.0%} to {one['high']:.0%})"


def _outcomes(arms: Mapping[str, Any]) -> str:
    names = [name for name in OUTCOMES if any(name in arm["outcomes"] for arm in arms.values())]
    rows = [[f"`{name}`", *(str(arm["outcomes"].get(name, 0)) for arm in arms.values())] for name in names]
    return _table(["outcome", *(f"`{name}`" for name in arms)], rows)


def _details(arms: Mapping[str, Any]) -> str:
    lines = [
        f"- `{name}`: {', '.join(f'{kind} {n}' for kind, n in arm['kinds'].items())}"
        for name, arm in arms.items()
        if arm["kinds"]
    ]
    return "\n".join(["Kinds of errors:", "", *lines]) if lines else ""


def _costs(arms: Mapping[str, Any]) -> str:
    head = [
        "arm",
        "tokens",
        "forced",
        "steps / token",
        "tokens / item",
        "s / item",
        "s / solved item",
        "mask p50 / p99, µs",
    ]
    rows = []
    for name, arm in arms.items():
        forced = arm["forced_tokens"] / arm["tokens"] if arm["tokens"] else 0
        masks = arm["mask_us"]
        rows.append(
            [
                f"`{name}`",
                f"{arm['tokens']:,}",
                f"{forced:.0%}",
                _number(arm["steps_per_token"]),
                _number(arm["per_item"]["tokens"]),
                _number(arm["per_item"]["s"]),
                _number(arm["per_solved_item"]["s"]),
                f"{masks['p50']:.0f} / {masks['p99']:.0f}" if masks else "",
            ]
        )
    return _table(head, rows)


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"


def _differences(differences: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [
            f"`{one['second']}` - `{one['first']}`",
            _RATES[one["rate"]],
            str(one["n"]),
            f"{one['difference']:+.0%} ({one['low']:+.0%} to {one['high']:+.0%})",
            f"{one['gained']} / {one['lost']}",
            _p(one["p"]),
        ]
        for one in differences
    ]
    return _table(["arms", "rate", "pairs", "difference", "gained / lost", "p"], rows)


def _p(value: float) -> str:
    return f"< {_MAX_SHOWN_P}" if value < _MAX_SHOWN_P else f"{value:.3f}"


def _reading(arms: Mapping[str, Any]) -> Iterator[str]:
    """What readers of today make of the unconstrained arms."""
    for name, arm in arms.items():
        if arm["server"]:
            found = arm["server"]
            yield (
                f"`{name}`, read as mlx-lm's server reads it: {found['calls']} marked calls, {found['dropped']} "
                f"dropped without an error to the client, {found['broken']} without arguments."
            )
        if arm["saved"]:
            outcomes = ", ".join(f"{outcome} {n}" for outcome, n in arm["saved"].items())
            yield f"`{name}`, failed answers that hold a patch, read as leniently as can be: {outcomes}."


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
