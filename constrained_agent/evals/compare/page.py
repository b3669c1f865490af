"""The report of a comparison as one self-contained page: plots, tables, and every item's text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from constrained_agent.evals.compare import plots, wording
from constrained_agent.evals.compare.arms import ARMS
from constrained_agent.evals.compare.facts import asked, machine, machines
from constrained_agent.evals.compare.figures import KINDS
from constrained_agent.evals.compare.outcomes import OUTCOMES
from constrained_agent.evals.compare.rates import RATES
from constrained_agent.evals.compare.records import Record
from constrained_agent.evals.compare.sections import Name, Table, sections

_TEMPLATE = Path(__file__).with_name("page.html.j2")


def render(
    facts: Mapping[str, Any],
    figures: Mapping[str, Any],
    records: Sequence[Record],
    questions: Mapping[tuple[str, str], str] | None = None,
) -> str:
    """The page.

    Args:
        facts: `run.json`.
        figures: `figures.figures`.
        records: in any order; each is shown with its whole text.
        questions: what was asked, by kind and name, as far as it is known.
    """
    import jinja2

    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.tests["name"] = lambda cell: isinstance(cell, Name)
    environment.tests["table"] = lambda section: isinstance(section, Table)
    template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    order = list(figures["kinds"])
    arms = {arm.name: number for number, arm in enumerate(ARMS)}
    ordered = sorted(
        records, key=lambda record: (order.index(record.kind), record.name, record.sample, arms[record.arm])
    )
    items = [_item(record, questions or {}) for record in ordered]
    return template.render(
        facts=facts,
        asked=asked(facts),
        machines=[(machine(one), one["command"]) for one in machines(facts)],
        wording=wording,
        rates=RATES.values(),
        n_records=len(records),
        kinds=[_kind(kind, found, facts) for kind, found in figures["kinds"].items()],
        outcomes=_shown_outcomes(ordered),
        colours=[colour for _, colour in plots.GROUPS.values()],
        arms=list(dict.fromkeys(record.arm for record in ordered)),
        items=items,
    )


def _kind(kind: str, found: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": KINDS[kind],
        "primary": wording.primary(found),
        "plots": plots.drawn(found),
        "sections": list(sections(kind, found, facts)),
    }


def _item(record: Record, questions: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    judgement = record.judgement
    shown = wording.outcome(judgement.outcome, record.kind)
    [group] = [at for at, (names, _) in enumerate(plots.GROUPS.values()) if judgement.outcome in names]
    saved = wording.outcome(judgement.saved, record.kind) if judgement.saved else ""
    return {
        "record": record,
        "outcome": shown,
        "what": shown
        if judgement.error_kind in ("", judgement.outcome)
        else f"{shown}: {judgement.error_kind}",
        "group": group,
        "question": visible(questions.get((record.kind, record.name), "")),
        "spans": list(spans(record)),
        "message": visible(judgement.message),
        "saved": saved,
    }


def _shown_outcomes(records: Sequence[Record]) -> list[str]:
    """To choose from, the best first."""
    used = {(record.judgement.outcome, record.kind) for record in records}
    found = [wording.outcome(name, kind) for name in OUTCOMES for kind in KINDS if (name, kind) in used]
    return list(dict.fromkeys(found))


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
