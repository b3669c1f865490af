"""The engine's error messages, made fit for people: one line, no excerpts, no traces of its insides."""

from __future__ import annotations

import re

NO_EXTENSION = "NoExtension"
"""The engine's word for a place that nothing can follow."""

_MAX_REASON = 600  # characters; a message may quote a whole pattern


def reason_of(message: str) -> str:
    """The engine's words on one line, without its excerpt of the grammar."""
    message = message.partition("<backtrace>")[0]  # the engine caught a panic of its own
    lines = [line.strip() for line in message.split("\n")]
    kept = [line for line in lines if line and not re.match(r"\d+ \||\^+$|<state>", line)]
    reason = "; ".join(kept).replace(":;", ":") or "unknown reason"
    if len(reason) <= _MAX_REASON:
        return reason
    return f"{reason[: _MAX_REASON // 2]} … {reason[-_MAX_REASON // 2 :]}"


def first_line(message: str) -> str:
    """Its first line."""
    return message.split("\n", 1)[0]
