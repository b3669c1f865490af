"""A run as JSON lines: one object per event, written as it happens, so that a killed run leaves its record.

`agent.records` says what stands in them, and reads them. Secrets are masked here, on the way to the file, and nowhere
else: the model sees texts as they are.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constrained_agent import __version__
from constrained_agent.agent.footprints import Footprints
from constrained_agent.agent.records import SCHEMA
from constrained_agent.agent.secrets import Masker
from constrained_agent.errors import UserError
from constrained_agent.messages import ToolCall, ToolResult

if TYPE_CHECKING:
    from constrained_agent.agent.turn import Turn
    from constrained_agent.model.tokenizer import Tokenizer
    from constrained_agent.tools.registry import Tools


class Transcript:
    """Writes events to a file; without a file it takes them and does nothing.

    States: `start` begins a run, `end` closes it; a call is told of by `before` and `result`, in this order. `result`
    alone is one that ran nothing.
    """

    def __init__(self, file: str | None) -> None:
        """Args: `file` is appended to, and made if need be.

        Raises:
            UserError: it cannot be written.
        """
        self._file = None if file is None else Path(file)
        self._masker = Masker(os.environ)
        self._footprints: Footprints | None = None
        self._turn = 0
        self._running: ToolCall | str | None = None
        self._append("")
        if self._file is not None and not _ends_a_line(self._file):
            self._append("\n")  # a run before was killed while it wrote

    def start(self, tools: Tools, *, task: str, files: Sequence[str], **fields: Any) -> None:
        """A task was given.

        Args:
            tools: bound to the repository, which is looked at from now on.
            files: paths that were put before the model.
            fields: of the event, beside those that are known here.
        """
        if self._file is None:
            return
        if self._footprints is None:
            self._footprints = Footprints(tools.root, self._file)
        tree, reads = self._footprints.begin(), self._footprints.reads(files)
        self._turn, self._running = 0, None
        known = {"schema": SCHEMA, "version": __version__, "task": task, "files": list(files), "reads": reads}
        self.write("start", **known, **fields, tree=tree)

    def go_on(self, root: Path, turn: int) -> None:
        """Go on with the last run of the file, which another process has written.

        Args:
            root: the repository.
            turn: the number of the run's last answer.
        """
        if self._file is not None:
            self._footprints, self._turn = Footprints(root, self._file), turn

    def write(self, event: str, **fields: Any) -> None:
        """Append one event, without its secrets."""
        if self._file is not None:
            record = {"event": event, "time": round(time.time(), 3), **fields}
            plain = json.loads(json.dumps(record, ensure_ascii=False, default=_plain))
            self._append(json.dumps(self._masker.record(plain), ensure_ascii=False) + "\n")

    def _append(self, text: str) -> None:
        """Open, write, close: a few events a minute need no open file, and nothing is lost with the process."""
        if self._file is not None:
            try:
                with self._file.open("a", encoding="utf-8", errors="backslashreplace") as out:
                    out.write(text)
            except OSError as error:
                raise UserError(f"--transcript {self._file}: cannot be written: {error.strerror}") from None

    def turn(
        self,
        number: int,
        choice: str,
        turn: Turn,
        tokenizer: Tokenizer,
        messages: Sequence[tuple[str, int]] = (),
    ) -> None:
        """Append a model answer.

        Args:
            messages: what its prompt was made of, with tokens.
        """
        self._turn = number
        if self._file is None:
            return
        done = turn.generation
        text = tokenizer.decode(done.tokens)
        forced, answer = _runs(done.forced), turn.answer
        self.write(
            "turn",
            number=number,
            tool_choice=choice,
            prompt_tokens=done.prompt_tokens,
            prompt_messages=messages,
            reused_tokens=done.reused_tokens,
            generated_tokens=len(done.tokens),
            forced_tokens=sum(done.forced),
            model_steps=done.model_steps,
            drafted_tokens=done.drafted_tokens,
            accepted_tokens=done.accepted_tokens,
            prefill_s=round(done.prefill_s, 4),
            decode_s=round(done.decode_s, 4),
            ids=list(done.tokens),
            forced=forced,
            forced_chars=_in_chars(forced, done.tokens, text, tokenizer),
            end_token=done.end_token,
            text=text,
            stop_reason=done.stop_reason,
            complete=done.complete,
            thinking_cut=done.thinking_cut,
            thinking=answer.thinking,
            answer=answer.text,
            calls=[{"id": c.id, "name": c.name, "arguments": dict(c.arguments)} for c in answer.calls],
            faults=[
                {"kind": fault.kind, "message": fault.message, "call_id": fault.call_id}
                for fault in (*answer.faults, *([answer.beside] if answer.beside else []))
            ],
        )

    def before(self, running: ToolCall | str) -> None:
        """A call, or a command of the person's, is about to run."""
        if self._footprints is not None:
            self._changed(self._footprints.before(running if isinstance(running, ToolCall) else None))
            self._running = running

    @property
    def watches(self) -> bool:
        """Whether it sees what a call changes."""
        return self._footprints is not None and self._footprints.complete

    def no_result(self, result: ToolResult) -> None:
        """Append the result of a call that never ran, or did not come to its end. What it changed is no part of it:
        that is found by the next look."""
        self._running = None
        self.result(result)

    def result(self, result: ToolResult) -> bool | None:
        """Append what came of a call.

        Returns:
            Whether it changed files; None if that was not to be seen.
        """
        if self._file is None:
            return None
        fields: dict[str, Any] = {
            "call_id": result.call_id,
            "ok": result.ok,
            "error_kind": result.error_kind,
            "text": result.text,
            "data": dict(result.data),
        }
        if isinstance(self._running, str):
            fields["command"] = self._running
        if self._footprints is not None and self._running is not None:
            fields |= self._traces(self._footprints, self._running, result)
        self._running = None
        self.write("result", turn=self._turn, **fields)
        return bool(fields.get("changes")) if self.watches else None

    def end(self, **fields: Any) -> None:
        """The run is over."""
        if self._footprints is not None:
            self._changed(self._footprints.before())
            fields["tree"] = self._footprints.end()
        self._running = None
        self.write("end", **fields)

    def _traces(self, seen: Footprints, running: ToolCall | str, result: ToolResult) -> dict[str, Any]:
        name = running.name if isinstance(running, ToolCall) else ""
        traces = seen.after(by_patch=name == "apply_patch")
        if isinstance(running, ToolCall) and name == "read_file" and result.ok:
            traces["reads"] = seen.reads([str(running.arguments["path"])])
        return traces

    def _changed(self, changes: dict[str, Any]) -> None:
        """Append what changed while no call was running, if anything did."""
        if changes:
            self.write("changed", turn=self._turn, **changes)


def _ends_a_line(file: Path) -> bool:
    """Whether a file is empty, or its last byte ends a line."""
    with file.open("rb") as opened:
        if not opened.seek(0, os.SEEK_END):
            return True
        opened.seek(-1, os.SEEK_END)
        return opened.read(1) == b"\n"


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


def _in_chars(runs: Sequence[int], ids: Sequence[int], text: str, tokenizer: Tokenizer) -> list[int] | None:
    """Lengths of stretches in characters of the text; None where one ends inside a character."""
    pieces, at = [], 0
    for length in runs:
        pieces.append(tokenizer.decode(ids[at : at + length]))
        at += length
    return [len(piece) for piece in pieces] if "".join(pieces) == text else None
