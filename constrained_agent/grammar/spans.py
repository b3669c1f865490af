"""Finds thinking, free text and calls in an answer: by its markers, and by the structure of what stands between them.

Models write markers where they are none (in a string, in a line of a patch), forget them, and think in more than one
place. What stands in thinking is never a call.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal

from constrained_agent.grammar.call_json import BLANKS, DECODER
from constrained_agent.grammar.toolcalls import Markers

PATCH_BEGIN = "*** Begin Patch"
_PATCH_END = "\n*** End Patch"


_Kind = Literal["text", "call", "think_open", "think_close"]


@dataclass(frozen=True, slots=True)
class Marker:
    """A marker that is a token of its own, in an answer: never to be mixed up with the same letters as text."""

    name: str


Piece = str | Marker
"""What an answer is made of: text, and markers that are tokens."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of an answer: free text, the inside of a call, or a thinking marker.

    Attributes:
        start: its first character in the answer.
        closed: of a call, whether its end marker came.
    """

    text: str
    start: int
    kind: _Kind = "text"
    closed: bool = True

    @property
    def is_call(self) -> bool:
        return self.kind == "call"


@dataclass(frozen=True, slots=True)
class Sections:
    """An answer taken apart.

    Attributes:
        thinking: text of its thinking blocks, without their markers.
        closed: False if one of them never ended; then there are no spans.
        spans: free text and calls, in order.
    """

    thinking: str
    closed: bool
    spans: tuple[Span, ...]


def as_text(pieces: Sequence[Piece]) -> str:
    return "".join(piece if isinstance(piece, str) else piece.name for piece in pieces)


def as_pieces(text: str, markers: Markers) -> list[Piece]:
    """A text whose markers are text, split at all that look like some."""
    names = [markers.call_open, markers.call_close]
    names += [markers.think_open, markers.think_close] if markers.thinks else []
    parts = re.split(f"({'|'.join(map(re.escape, names))})", text)
    return [Marker(part) if i % 2 else part for i, part in enumerate(parts)]


def sections(pieces: Sequence[Piece], markers: Markers, *, cut: bool) -> Sections:
    """Take an answer apart.

    Args:
        cut: it was ended by a limit.

    Cost: reads the JSON of a call once for each marker inside it.
    """
    whole = as_text(pieces)
    behind, thinking = 0, []
    opener, closer = Marker(markers.think_open), Marker(markers.think_close)
    # Blocks at the start end at their first close marker, whatever they hold.
    while markers.thinks and (first := _first_piece(pieces, behind)) is not None and pieces[first] == opener:
        end = next((at for at in range(first, len(pieces)) if pieces[at] == closer), None)
        thinking.append(as_text(pieces[first + 1 : end]))
        if end is None:
            return Sections("\n".join(thinking), False, ())
        behind = end + 1
    spans = _spans(pieces, behind, markers, cut)
    while (found := _late_block(spans, whole)) is not None:
        start, stop = found
        thinking.append(_joined(spans[start:stop]))
        spans = [*spans[:start], *spans[stop:]]
    for at, span in enumerate(spans):
        if span.kind == "think_open" and _on_own_line(span, whole):
            return Sections("\n".join([*thinking, _joined(spans[at + 1 :])]), False, ())
    left = [replace(span, kind="text") if span.kind.startswith("think") else span for span in spans]
    return Sections("\n".join(thinking), True, tuple(left))


def _first_piece(pieces: Sequence[Piece], start: int) -> int | None:
    """The first one from `start` on that is more than white space."""
    numbers = range(start, len(pieces))
    return next(
        (at for at in numbers if isinstance(pieces[at], Marker) or as_text([pieces[at]]).strip()), None
    )


def _late_block(spans: Sequence[Span], whole: str) -> tuple[int, int] | None:
    """The spans of a thinking block that follows text, or whose open marker is missing.

    Its close marker stands at the edge of a line, or behind a call: a sentence may speak of one.
    """
    for stop, span in enumerate(spans):
        if span.kind == "think_close":
            opened = (at for at in reversed(range(stop)) if spans[at].kind == "think_open")
            start = next(opened, 0)
            at_edge = _before(span, whole) == "\n" or _after(span, whole) == "\n"
            if at_edge or any(one.is_call for one in spans[start:stop]):
                return start, stop + 1
    return None


def _on_own_line(span: Span, whole: str) -> bool:
    return _before(span, whole) in ("", "\n") and _after(span, whole) in ("", "\n")


def _before(span: Span, whole: str) -> str:
    return whole[max(0, span.start - 1) : span.start]


def _after(span: Span, whole: str) -> str:
    end = span.start + len(span.text)
    return whole[end : end + 1]


def _joined(spans: Sequence[Span]) -> str:
    return "".join(span.text for span in spans if not span.kind.startswith("think")).strip()


def _spans(pieces: Sequence[Piece], behind: int, markers: Markers, cut: bool) -> list[Span]:
    """The spans after the first `behind` pieces."""
    starts = [0, *accumulate(len(as_text([piece])) for piece in pieces)]
    kinds: dict[Piece, _Kind] = {}
    if markers.thinks:
        kinds = {Marker(markers.think_open): "think_open", Marker(markers.think_close): "think_close"}
    spans: list[Span] = []
    at = behind
    while at < len(pieces):
        piece = pieces[at]
        if piece == Marker(markers.call_open):
            end, closed = _call_end(pieces, at + 1, markers, cut)
            spans.append(Span(as_text(pieces[at + 1 : end]), starts[at + 1], "call", closed))
            at = end + closed  # what is not closed ends before the next call, or nowhere
            continue
        spans.append(Span(as_text([piece]), starts[at], kinds.get(piece, "text")))
        at += 1
    return spans


def _call_end(pieces: Sequence[Piece], start: int, markers: Markers, cut: bool) -> tuple[int, bool]:
    """The piece before which a call ends, and whether that is its close marker.

    It is the first close marker behind a whole object (and patch): others stand in a string or in a line of the patch.
    Where no object is whole it is the first of all.
    """
    first: int | None = None
    for at in range(start, len(pieces)):
        if pieces[at] == Marker(markers.call_close):
            if _is_whole(as_text(pieces[start:at])):
                return at, True
            first = at if first is None else first
        elif pieces[at] == Marker(markers.call_open):
            body = as_text(pieces[start:at])
            # In a line of a patch it is text.
            if _is_whole(body) and (body.endswith("\n") or PATCH_BEGIN not in body):
                return at, False
    if first is None or (cut and _ends_in_string(as_text(pieces[start:first]))):
        return len(pieces), False
    return first, True


def _is_whole(body: str) -> bool:
    """Whether a JSON object, and the raw patch after it if there is one, have come to their end."""
    text = body.lstrip(BLANKS)
    try:
        head, end = DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return False
    rest = text[end:]
    raw = isinstance(head, dict) and "arguments" not in head and bool(rest.strip())
    if not raw and not rest.lstrip().startswith(PATCH_BEGIN):
        return True
    # Each line of a patch has a character in front: what stands at the start of one is not the patch's.
    return _PATCH_END in rest or rest.endswith("\n")


def _ends_in_string(body: str) -> bool:
    try:
        DECODER.raw_decode(body.lstrip(BLANKS))
    except (ValueError, RecursionError) as error:
        return "Unterminated string" in str(error)
    return False
