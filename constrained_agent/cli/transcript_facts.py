"""What `transcript` prints with `--json`, and the line in which a replay ends."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constrained_agent.agent.ledger import Row, rows, total
from constrained_agent.cli.transcript_view import of_turn

if TYPE_CHECKING:
    from constrained_agent.agent.cut import Cut
    from constrained_agent.agent.events import Run
    from constrained_agent.agent.replay import Replayed
    from constrained_agent.messages import ToolResult


def of_run(run: Run, turn: int | None) -> dict[str, Any]:
    """The events of a run, or of one turn of it, as they stand in the file; 0 is the start."""
    start = [] if turn else [run.start.fields]
    events = [*start, *(event.fields for event in of_turn(run, turn))]
    return {"run": run.number, "cut_off": run.cut_off, "events": events}


def of_ledger(run: Run) -> dict[str, Any]:
    """The tokens of a run."""
    return {
        "run": run.number,
        "turns": [_row(row) for row in rows(run)],
        "total": _row(total(rows(run))),
        "prompt_parts": run.start.prompt_parts,
    }


def of_replay(replayed: Replayed) -> dict[str, Any]:
    """A replay; `whole_tree` says whether files that the run did not touch are as at its start."""
    return {"ok": replayed.difference is None, **asdict(replayed)}


def of_cut(done: Cut, out: Path | None) -> dict[str, Any]:
    """A cut, and what its tests said."""
    tests = None if done.tests is None else {"passed": done.tests.ok, **done.tests.data}
    passed = done.tests is None or done.tests.ok
    facts = of_replay(done.replayed)
    kept = None if out is None else str(out)
    return {**facts, "ok": facts["ok"] and passed, "rewound": done.rewound, "tests": tests, "out": kept}


def of_undo(result: ToolResult) -> dict[str, Any]:
    """A patch taken back, or why it was not."""
    return {"ok": result.ok, "error_kind": result.error_kind, "text": result.text, **result.data}


def outcome(replayed: Replayed) -> str:
    """What a replay was checked for, and how that ended."""
    difference = replayed.difference
    if difference is not None:
        nothing_done = difference.turn == 0 and difference.path is None
        return difference.reason if nothing_done else f"differs from the record: {difference}"
    checked = {
        "same": "the same tree as after turn {turn} of the run",
        "differs": "the files that the run read or changed are as after turn {turn}; others differ from its start",
        "unknown": "the files that the run read or changed are as after turn {turn}; others could not be compared",
    }[replayed.whole_tree].format(turn=replayed.turn)
    changed = ", ".join(entry.path for entry in replayed.tree) or "none"
    return f"{checked}; changed files: {changed}"


def _row(row: Row) -> dict[str, Any]:
    return {**asdict(row), "tokens_per_s": row.tokens_per_s}
