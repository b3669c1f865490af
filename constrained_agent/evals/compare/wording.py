"""The sentences and numbers of a report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from constrained_agent.evals.compare.arms import parse
from constrained_agent.evals.compare.rates import RATES

ESTIMATES = (
    "Rates are shares of all answers, with 95 % intervals: Wilson's where each item was asked once. Several samples of "
    "one item resemble each other; then the interval is Wilson's on an effective number of answers (their number "
    "divided by the design effect of items)."
)

TESTS = (
    "Differences are of pairs: answers to the same item with the same seed. p: exact McNemar test on pairs where each "
    "item was asked once; with several samples an exact sign test of items, each with one value, the mean over its "
    "samples, ties left out. Interval: bootstrap over items, each with all of its samples; none is given where all "
    "items differ alike, or none does, since nothing is seen of how much they vary. Where only a few items differ that "
    "interval is too narrow, and the test is what counts."
)

UNCORRECTED = (
    "Everything else was looked at beside it: those p values are not corrected for how many they are."
)

COSTS = (
    "Seconds are those after the prompt, with the wait for a grammar to compile; the prompt's own stand apart, and the "
    "first arm that asks pays for it. Per solved item: all that the arm cost, divided by the items that it got right."
)

NO_SERVER = (
    "not applicable; the words around calls are plain text to this model, and the server looks for them only where the "
    "model's own settings or chat template name them"
)

_MAX_SHOWN_P = 0.001


_HELD = {
    "off": "nothing holds the model to it",
    "grammar": "held to its syntax",
    "located": "held to its syntax, and to lines of the real files that fit in one place",
}


def arm(name: str, kind: str, systems: str) -> str:
    """What an arm asks for, and what holds the model to it.

    Args:
        systems: on which shell blocks were run.
    """
    [one] = parse([name])
    patch = f"a call with the patch {'raw behind it' if one.carrier == 'freeform' else 'as a string'}"
    asked = patch
    if kind == "call":
        asked = "calls of tools"
    elif kind == "run":
        asked = f"calls of tools, turn by turn; of patches {patch}"
    elif one.form == "prompt-json":
        asked = "one JSON object with the patch as a string, described in words"
    elif one.form == "regex":
        asked = f"a shell block, which is cut out of the answer by a regular expression and run (here on {systems})"
    return f"{asked}; {_HELD[one.level]}"


def outcome(name: str, kind: str) -> str:
    """The name of an outcome as it is shown; calls have no tests."""
    return "wrong call" if kind == "call" and name == "tests_failed" else name


def set_of_questions(name: str) -> str:
    """Records of old versions do not tell theirs."""
    return name or "not recorded"


def kinds(found: Mapping[str, int], kind: str) -> str:
    """Kinds of errors by outcome, with how often each happened."""
    split = ((*name.partition(": ")[::2], n) for name, n in found.items())
    return ", ".join(f"{outcome(of, kind)}: {detail} {n}" for of, detail, n in split)


def rate(one: Mapping[str, float]) -> str:
    """Count, share, interval."""
    share = one["k"] / one["n"] if one["n"] else 0
    return f"{one['k']} ({share:.0%}; {one['low']:.0%} to {one['high']:.0%})"


def change(one: Mapping[str, Any]) -> str:
    """A difference in percentage points with its interval, or why it has none."""
    if one["no_interval"]:
        return f"{_points(one['difference'])} ({one['no_interval']})"
    return f"{_points(one['difference'])} ({_points(one['low'])} to {_points(one['high'])})"


def _points(share: float) -> str:
    rounded = round(100 * share)
    return f"{rounded:+d}" if rounded else "0"


def p_value(value: float) -> str:
    return f"< {_MAX_SHOWN_P}" if value < _MAX_SHOWN_P else f"{value:.3f}"


def number(value: float | None) -> str:
    if value is None:
        return "none"
    return f"{value:,.0f}" if value >= 100 else f"{value:g}"


def primary(found: Mapping[str, Any]) -> str:
    """The comparison that was named beforehand.

    Args:
        found: of `figures.figures`, one of its kinds.
    """
    named = found["primary"]
    label = RATES[named["rate"]].label
    head = f"Primary comparison, named before anything was run: {named['second']} - {named['first']}, {label}"
    for one in found["differences"]:
        if one["n"] and all(one[key] == value for key, value in named.items()):
            return (
                f"{head}: {change(one)}, in percentage points; of {one['n_items']} items {one['gained']} gained and "
                f"{one['lost']} lost, p {p_value(one['p'])}."
            )
    return f"{head}: not run."


def server(found: Mapping[str, int]) -> str:
    """What mlx-lm's server makes of an arm's calls."""
    return (
        f"read as mlx-lm's server reads it: {found['calls']} marked calls, {found['dropped']} dropped without an error "
        f"to the client, {found['broken']} without arguments"
    )


def saved(found: Mapping[str, int], kind: str) -> str:
    """What a lenient reading makes of an arm's failures."""
    how = (
        "equal calls once, by the leaderboard's check alone, without the schema"
        if kind == "call"
        else "every patch in the text"
    )
    outcomes = ", ".join(f"{outcome(name, kind)} {n}" for name, n in found.items())
    return f"failed answers, read as leniently as can be ({how}): {outcomes}"
