"""Whether a hunk that does not fit was applied before."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from constrained_agent.patch.locate import Miss, Place
from constrained_agent.patch.match import Level, LineIndex
from constrained_agent.patch.sections import Hunk

_LIKENESS_OF_A_SLIP = 0.6


def applied_at(hunk: Hunk, place: Place | Miss, texts: Sequence[str]) -> int | None:
    """The line (0-based) at which the new side stands, if the old side is gone and the new one there just once.

    A loose hit on the old side does not count where an exact hit on the new side covers it: that is how a
    change of indentation looks once it was made.
    """
    old, new = hunk.old(), hunk.new()
    if isinstance(place, Place):
        gone = place.level >= Level.TRIMMED
    else:
        gone = place.kind == "context_not_found" and not place.lines
    if not gone or not old or not any(line.strip() for line in new):
        return None
    index = LineIndex(texts, new)
    hits = index.hits(new, Level.EXACT)
    if isinstance(place, Place):
        hits = [hit for hit in hits if hit < place.start + len(old) and place.start < hit + len(new)]
    elif not hits:
        hits = index.hits(new, Level.RIGHT_TRIMMED)
    if len(hits) != 1 or _only_misspelt(hunk, hits[0], texts):
        return None
    return hits[0]


def _only_misspelt(hunk: Hunk, hit: int, texts: Sequence[str]) -> bool:
    """Whether a hunk that only removes has its lines still there, but written differently.

    Its new side is context alone, which says little: " a", "-bb" has the new side "a" also where "b" follows.
    """
    ops = "".join([line.op for line in hunk.lines])
    if "+" in ops:
        return False
    n_above, n_below = len(ops) - len(ops.lstrip("-")), len(ops) - len(ops.rstrip("-"))
    end = hit + ops.count(" ")
    pairs = [(hunk.lines[i].text, hit - n_above + i) for i in range(n_above)]
    pairs += [(hunk.lines[len(ops) - n_below + i].text, end + i) for i in range(n_below)]
    return any(
        difflib.SequenceMatcher(None, text, texts[at], autojunk=False).ratio() >= _LIKENESS_OF_A_SLIP
        for text, at in pairs
        if 0 <= at < len(texts)
    )
