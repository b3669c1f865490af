"""Which of many texts come near to a wrong one: those that begin like it, and those that are spelled like it."""

from __future__ import annotations

import difflib
import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence

_MAX_CHARS = 300
_N_COMPARED = 40


def nearest(texts: Sequence[str], wrong: str) -> list[str]:
    """All texts, those spelled most like `wrong` first; equally near ones stay as they are.

    Cost: about 20 microseconds a text.
    """
    wrong = wrong.strip()[:_MAX_CHARS]
    if not wrong:
        return list(texts)
    matcher = difflib.SequenceMatcher(b=wrong, autojunk=False)

    def likeness(text: str, roughly: bool) -> float:
        matcher.set_seq1(text.strip()[:_MAX_CHARS])
        return -(matcher.quick_ratio() if roughly else matcher.ratio())

    likely = heapq.nsmallest(_N_COMPARED, range(len(texts)), key=lambda i: (likeness(texts[i], True), i))
    ranked = sorted(likely, key=lambda i: (likeness(texts[i], False), i))
    chosen = set(ranked)
    return [texts[i] for i in (*ranked, *(i for i in range(len(texts)) if i not in chosen))]


def sharing_most(texts: Collection[str], text: str) -> tuple[str, ...]:
    """The first and the last, in order, of the texts that share the longest beginning with `text`.

    What these two go on with in common, all of those do. Other texts than `text` itself, if there are any.

    Args:
        texts: with U+DC80 to U+DCFF for bytes that are not UTF-8.
        text: the same; may end within a character.
    """
    wanted = _as_bytes(text)
    ordered = sorted({_as_bytes(other) for other in texts} - {wanted})
    if not ordered:
        return ()
    at = bisect_left(ordered, wanted)
    n = max(_n_shared(other, wanted) for other in ordered[max(0, at - 1) : at + 1])
    end = bisect_right(ordered, wanted[:n], key=lambda other: other[:n])
    ends = ordered[bisect_left(ordered, wanted[:n])], ordered[end - 1]
    return tuple(other.decode("utf-8", "surrogateescape") for other in ends)


def _as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _n_shared(a: bytes, b: bytes) -> int:
    """How many bytes two texts begin with in common."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
