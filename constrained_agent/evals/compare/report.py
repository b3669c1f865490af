"""Writes the report of a comparison: `report.json`, `report.md` and `report.html`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from constrained_agent.evals.compare import page, questions, table
from constrained_agent.evals.compare.figures import figures
from constrained_agent.evals.compare.records import Record


def write(
    folder: Path,
    facts: Mapping[str, Any],
    records: Sequence[Record],
    asked: questions.Questions = questions.at_hand,
) -> tuple[dict[str, Any], str]:
    """Write all three.

    Args:
        folder: of the comparison.
        facts: its `run.json`.
        records: all of them; an interrupted comparison is reported as far as it came.
        asked: gives the questions, for the page to show.

    Returns:
        What `report.json` holds, and the Markdown.
    """
    found = figures(records)
    whole = {**facts, "n_records": len(records), **found}
    text = table.document(facts, found)
    if len(records) < facts["n_items"]:
        text = f"**Not finished: {len(records)} of {facts['n_items']} items.**\n\n{text}"
    files = {
        "report.json": json.dumps(whole, indent=1, ensure_ascii=False) + "\n",
        "report.md": text,
        "report.html": page.render(facts, found, records, asked(records)),
    }
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8", errors="backslashreplace")
    return whole, text
