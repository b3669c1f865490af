"""The plots of a comparison as SVG: outcomes of each arm, rates with intervals, steps a token.

Lines and letters are `currentColor`, so that a page in light or dark colours gives them its own.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from constrained_agent.evals.compare.outcomes import (
    NOT_LANDED,
    NOTHING_SENT,
    PASSED,
    SCHEMA,
    STOPPED,
    UNREADABLE,
    WRONG,
)
from constrained_agent.evals.compare.rates import RATES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GROUPS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "right": (PASSED, "#2a9d5c"),
    "valid but wrong": (WRONG, "#e0a526"),
    "not landed": (NOT_LANDED, "#e07a3f"),
    "schema violated": (SCHEMA, "#a05fbf"),
    "unreadable": (UNREADABLE, "#cc3d4a"),
    "nothing sent": (NOTHING_SENT, "#4f7fa8"),
    "cut or loop": (STOPPED, "#7f8793"),
}
"""Outcomes that are drawn as one, with a colour that is told apart in light and dark."""

_DRAWN_RATES: Mapping[str, tuple[str, bool]] = {
    "parses": ("#4c7bd9", True),
    "lands": ("#2a9d9d", True),
    "right": ("#2a9d5c", True),
    "right_leniently": ("#2a9d5c", False),
    "valid_but_wrong": ("#e0a526", True),
}
"""Rates in one plot, from the top: colour, and whether the mark is filled."""

_RATE_STEP = 0.17  # of a row
_INK = "#010203"  # stands for the page's own colour
_WIDTH_IN = 8.6
_ROW_IN = 0.42


def drawn(found: Mapping[str, Any]) -> dict[str, str]:
    """The plots of one kind of items, by title.

    Args:
        found: of `figures.figures`, one of its kinds.
    """
    arms = found["arms"]
    return {
        "What became of all answers": _svg(len(arms), lambda axes: _outcomes(axes, arms)),
        "Rates, with 95 % intervals": _svg(2.4 * len(arms), lambda axes: _rates(axes, arms)),
        "Model steps for each token": _svg(len(arms), lambda axes: _steps(axes, arms)),
    }


def _svg(n_rows: float, draw: Callable[[Axes], None]) -> str:
    import matplotlib
    from matplotlib.figure import Figure

    ink = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    settings: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": "compare",
        "font.size": 11,
        "font.family": "sans-serif",
        **dict.fromkeys(ink, _INK),
    }
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(_WIDTH_IN, 0.9 + _ROW_IN * n_rows), layout="constrained")
        axes = figure.subplots()
        axes.set_facecolor("none")
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.tick_params(axis="y", length=0)
        draw(axes)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    text = out.getvalue().replace(_INK, "currentColor")
    text = re.sub(r"font: ([^;]*?px) [^;\"]+", r"font: \1 system-ui, sans-serif", text)
    return text[text.index("<svg") :]


def _outcomes(axes: Axes, arms: Mapping[str, Any]) -> None:
    names = list(arms)[::-1]
    left = [0.0] * len(names)
    for label, (outcomes, colour) in GROUPS.items():
        counts = [sum(arms[name]["outcomes"].get(one, 0) for one in outcomes) for name in names]
        shares = [100 * count / max(1, arms[name]["n"]) for count, name in zip(counts, names, strict=True)]
        if not any(counts):
            continue
        axes.barh(names, shares, left=left, color=colour, label=label, height=0.68)
        for row, (share, count) in enumerate(zip(shares, counts, strict=True)):
            if share >= 4:
                axes.text(
                    left[row] + share / 2, row, str(count), ha="center", va="center", color="#ffffff", size=10
                )
        left = [start + share for start, share in zip(left, shares, strict=True)]
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of answers")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False, fontsize=10)


def _rates(axes: Axes, arms: Mapping[str, Any]) -> None:
    names = list(arms)[::-1]
    for at, (measure, (colour, filled)) in enumerate(_DRAWN_RATES.items()):
        rates = [arms[name]["rates"][measure] for name in names]
        shares = [100 * one["k"] / max(1, one["n"]) for one in rates]
        below = [max(0.0, share - 100 * one["low"]) for share, one in zip(shares, rates, strict=True)]
        above = [max(0.0, 100 * one["high"] - share) for share, one in zip(shares, rates, strict=True)]
        lift = ((len(_DRAWN_RATES) - 1) / 2 - at) * _RATE_STEP
        axes.errorbar(
            shares,
            [row + lift for row in range(len(names))],
            xerr=[below, above],
            fmt="o",
            color=colour,
            markerfacecolor=colour if filled else "none",
            capsize=3,
            label=RATES[measure].label,
        )
    axes.set_yticks(range(len(names)), names)
    axes.set_xlim(-2, 102)
    axes.set_xlabel("% of answers")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False, fontsize=10)


def _steps(axes: Axes, arms: Mapping[str, Any]) -> None:
    names = list(arms)[::-1]
    values = [arms[name]["steps_per_token"] or 0.0 for name in names]
    axes.barh(names, values, color="#4c7bd9", height=0.6)
    for row, value in enumerate(values):
        axes.text(value + 0.01, row, f"{value:.2f}", va="center", size=10)
    axes.set_xlim(0, max(1.1, *values) + 0.1)
    axes.set_xlabel("passes of the model after the prompt, for each token written")
