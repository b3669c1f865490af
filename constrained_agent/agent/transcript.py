"""A run as JSON lines: one object per event, written as it happens, so that a killed run leaves its record.

Events: `start` (settings), `turn` (prompt size, ids, text, forced flags, calls, timings), `result` (of a call),
`note` (what the harness told the model), `end` (exit reason and totals). Every event has `event` and `time`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

from constrained_agent.agent.turn import Turn
from constrained_agent.errors import UserError
from constrained_agent.messages import ToolResult


class Transcript:
    """Writes events to a file; without a file it takes them and does nothing."""

    def __init__(self, file: str | None) -> None:
        """Open the file for appending.

        Raises:
            UserError: it cannot be opened.
        """
        self._out: TextIO | None = None
        if file is not None:
            try:
                self._out = Path(file).open("a", encoding="utf-8")  # noqa: SIM115  (closed by close)
            except OSError as error:
                raise UserError(f"--transcript {file}: cannot be written: {error.strerror}") from None

    def write(self, event: str, **fields: Any) -> None:
        """Append one event and flush it."""
        if self._out is not None:
            record = {"event": event, "time": round(time.time(), 3), **fields}
            self._out.write(json.dumps(record, ensure_ascii=False, default=str) + "\n")
            self._out.flush()

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

    def close(self) -> None:
        """Close the file."""
        if self._out is not None:
            self._out.close()
            self._out = None


def _runs(flags: Iterable[bool]) -> list[int]:
    """Lengths of alternating stretches, the first one of sampled tokens: [2, 5, 1] = 2 sampled, 5 forced, 1."""
    lengths, current = [0], False
    for flag in flags:
        if flag != current:
            lengths.append(0)
            current = flag
        lengths[-1] += 1
    return lengths
