"""The last patch of a transcript taken back, and noted there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from constrained_agent.agent.events import Run
from constrained_agent.agent.transcript import Transcript
from constrained_agent.errors import UserError
from constrained_agent.messages import ToolCall, ToolResult
from constrained_agent.tools.undo import CALL_ID, last_applied, undo_recorded


def undo_last(file: str, runs: Sequence[Run], repo: Path, *, dry_run: bool = False) -> ToolResult:
    """Take back the last patch that still stands, and append that to the transcript.

    Args:
        file: the transcript.
        runs: all runs of it.
        repo: the repository.
        dry_run: check everything, write nothing, here or there.

    Raises:
        UserError: there is no such patch, or the transcript cannot be written.
    """
    event = last_applied(event.fields for run in runs for event in run.events)
    if event is None:
        raise UserError(f"{file}: no patch of it still stands: there is none to take back")
    if dry_run:
        return undo_recorded(repo, event, dry_run=True)
    transcript = Transcript(file)
    transcript.go_on(repo, runs[-1].last_turn)
    transcript.before(ToolCall(CALL_ID, CALL_ID, {}))
    result = undo_recorded(repo, event)
    if result.ok:
        transcript.result(result)
    return result
