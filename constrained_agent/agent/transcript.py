"""A run as JSON lines: one object per event, written as it happens, so that a killed run leaves its record.

Events: `start` (settings), `turn` (prompt size, ids, text, forced flags, calls, timings), `result` (of a call),
`note` (what the harness told the model), `end` (exit reason and totals). Every event has `event` and `time`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constrained_agent.errors import UserError
from constrained_agent.messages import ToolResult

if TYPE_CHECKING:
    from constrained_agent.agent.turn import Turn


class Transcript:
    """Writes events to a file; without a file it takes them and does nothing."""

    def __init__(self, file: str | None) -> None:
        """Args: `file` is appended to, and made if need be.

        Raises:
            UserError: it cannot be written.
        """
        self._file = None if file is None else Path(file)
        self._append("")

    def write(self, event: str, **fields: Any) -> None:
        """Append one event."""
        record = {"event": event, "time": round(time.time(), 3), **fields}
        self._append(json.dumps(record, ensure_ascii=False, default=_plain) + "\n")

    def _append(self, text: str) -> None:
        """Open, write, close: a few events a minute need no open file, and nothing is lost with the process."""
        if self._file is not None:
            try:
                with self._file.open("a", encoding="utf-8", errors="backslashreplace") as out:
                    out.write(text)
            except OSError as error:
                raise UserError(f"--transcript {self._file}: cannot be written: {error.strerror}") from None

    def turn(self, number: int, choice: str, turn: Turn, text: str) -> None:
        """Append a model answer."""
        done = turn.generation
        self.write(
            "turn",
            number=number,
            tool_choice=choice,
            prompt_tokens=done.prompt_tokens,
            reused_tokens=done.reused_tokens,
            ids=list(done.tokens),
            forced=_runs(done.forced),
            end_token=done.end_token,
            text=text,
            stop_reason=done.stop_reason,
            complete=done.complete,
            thinking_cut=done.thinking_cut,
            thinking=turn.answer.thinking,
            answer=turn.answer.text,
            calls=[{"id": c.id, "name": c.name, "arguments": dict(c.arguments)} for c in turn.answer.calls],
            faults=[{"kind": fault.kind, "message": fault.message} for fault in turn.answer.faults],
            model_steps=done.model_steps,
            prefill_s=round(done.prefill_s, 4),
            decode_s=round(done.decode_s, 4),
        )

    def result(self, result: ToolResult) -> None:
        """Append what came of a call."""
        self.write(
            "result",
            call_id=result.call_id,
            ok=result.ok,
            error_kind=result.error_kind,
            text=result.text,
            data=dict(result.data),
        )


def _plain(value: Any) -> Any:
    """Dataclasses as objects; anything else that JSON does not know as its text."""
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


def _runs(flags: Iterable[bool]) -> list[int]:
    """Lengths of alternating stretches, the first one of sampled tokens: [2, 5, 1] = 2 sampled, 5 forced, 1."""
    lengths, current = [0], False
    for flag in flags:
        if flag != current:
            lengths.append(0)
            current = flag
        lengths[-1] += 1
    return lengths
