"""The report of a comparison as one self-contained page: plots, tables, and every item's text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from constrained_agent.evals.compare import plots
from constrained_agent.evals.compare.arms import ARMS
from constrained_agent.evals.compare.outcomes import OUTCOMES
from constrained_agent.evals.compare.records import Record

_TEMPLATE = Path(__file__).with_name("page.html.j2")
_KINDS = {"patch": "Patches", "call": "Tool calls", "run": "Whole runs"}


def render(facts: Mapping[str, Any], figures: Mapping[str, Any], records: Sequence[Record]) -> str:
    """The page.

    Args:
        facts: `run.json`.
        figures: `figures.figures`.
        records: in any order; each is shown with its whole text.
    """
    import jinja2

    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    kinds = [
        {
            "name": _KINDS[kind],
            "arms": found["arms"],
            "plots": plots.drawn(found),
            "differences": found["differences"],
        }
        for kind, found in figures["kinds"].items()
    ]
    parts = facts["circumstances"]
    order = list(figures["kinds"])
    arms = {arm.name: number for number, arm in enumerate(ARMS)}
    ordered = sorted(
        records, key=lambda record: (order.index(record.kind), record.name, record.sample, arms[record.arm])
    )
    used = {record.judgement.outcome for record in ordered}
    return template.render(
        facts=facts,
        visible=visible,
        machines=parts if isinstance(parts, list) else [parts],
        n_records=len(records),
        kinds=kinds,
        outcomes=[name for name in OUTCOMES if name in used],
        group_of={name: at for at, (names, _) in enumerate(plots.GROUPS.values()) for name in names},
        colours=[colour for _, colour in plots.GROUPS.values()],
        arms=list(dict.fromkeys(record.arm for record in ordered)),
        items=[{"record": record, "spans": list(spans(record))} for record in ordered],
    )


def spans(record: Record) -> Iterator[tuple[str, str]]:
    """The text in stretches, each with its classes: `forced`, and `bad` for the character where it goes wrong.

    A place at the end of the text becomes an empty stretch of class `end`.
    """
    text, at = record.written.text, record.judgement.at
    marked = range(at, at + 1) if at is not None and 0 <= at < len(text) else range(0)
    edges = {0, len(text), *(edge for stretch in record.written.forced for edge in stretch)}
    edges |= {marked.start, marked.stop} if marked else set()
    forced = iter(record.written.forced)
    current = next(forced, None)
    for start, end in pairwise(sorted(edge for edge in edges if edge <= len(text))):
        while current is not None and current[1] <= start:
            current = next(forced, None)
        classes = ["forced"] if current is not None and current[0] <= start < current[1] else []
        classes += ["bad"] if start in marked else []
        yield visible(text[start:end]), " ".join(classes)
    if at is not None and at >= len(text):
        yield "", "end"


def visible(text: str) -> str:
    """Characters that cannot be seen, by their numbers; the newline and the tab stay."""
    return "".join(
        one if one.isprintable() or one in "\n\t" else one.encode("unicode_escape", "surrogatepass").decode()
        for one in text
    )
