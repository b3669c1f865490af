"""What has become of the files of a patch, in words for the model and as facts for the transcript."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from constrained_agent.patch import textfile
from constrained_agent.patch.diff import FilePlan, LineChange
from constrained_agent.tools.files import numbered

MAX_SHOWN_LINES = 40
"""Of a patch's result: enough to see that it landed as meant; the whole file is one read_file away."""


def lines(plans: Sequence[FilePlan]) -> Iterator[str]:
    """One line for each file and, where old lines gave way, the new ones with their numbers."""
    room = MAX_SHOWN_LINES
    for file in plans:
        target = f" to {file.new_path}" if file.new_path else ""
        yield f"{file.action} {file.path}{target} (+{file.added} -{file.removed})"
        if file.action == "add" or file.new is None or not file.changes:
            continue
        texts = textfile.decode(file.new, file.path).texts
        for start, end in _spans(file.changes, len(texts)):
            yield from islice(numbered(texts[start:end], start + 1, len(str(len(texts)))), max(0, room))
            room -= end - start
    if room < 0:
        yield "[the rest is not shown]"


def facts(plans: Sequence[FilePlan]) -> list[dict[str, Any]]:
    """For each file its path, action, new path, and the numbers of lines added and removed."""
    names = ("path", "action", "new_path", "added", "removed")
    return [{name: getattr(file, name) for name in names} for file in plans]


def encodable(text: str) -> str:
    """Half a surrogate pair, from a model's JSON or an odd file name, must not break prompt or transcript."""
    return text.encode("utf-8", "backslashreplace").decode()


def _spans(changes: Sequence[LineChange], n_lines: int) -> list[tuple[int, int]]:
    """The new lines with one more line on either side, as 0-based ranges that do not touch."""
    spans: list[tuple[int, int]] = []
    for change in changes:
        start, end = max(0, change.new_start - 1), min(n_lines, change.new_end + 1)
        if spans and start <= spans[-1][1]:
            start = spans.pop()[0]
        spans.append((start, end))
    return spans
