"""Guesses at the tokens that come next, from what stands in the conversation already.

A patch repeats: a line that comes looks like the one that goes, names come again. A guess takes a place in a pass that
is run anyway; then each of its tokens is drawn under its own mask, as it would have been without, and the first one
that comes out otherwise ends it. So the text is the same with drafts and without, at any temperature (prompt lookup:
A. Saxena, 2023; checked draws: Y. Leviathan et al., 2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

SUFFIXES = (8, 5, 3, 2)
"""Tokens at the end of the text that are looked for further up; the longest that is found counts."""

MAX_DRAFT = 12
"""Tokens of one guess: passes of more cost more on every machine that was measured."""

_DECAY = 0.9  # how much of what was seen of a kind of guess is kept at each new one
_PRIOR, _PRIOR_WEIGHT = 0.6, 4.0  # share of guessed tokens that come true, before any was seen
_SIZES = (1, 4, 8, 12)
# What passes of these sizes cost beside one of a single id, until it was seen: float32 weights on two x86 cores.
_ASSUMED = (1.0, 1.4, 1.5, 1.9)
_LARGEST = 20  # ids of a pass that still tells something of small ones


@dataclass(slots=True)
class PassCosts:
    """What a pass over so many ids takes on this machine, learned from the passes that are run anyway.

    Attributes:
        seconds: of passes of about 1, 4, 8 and 12 ids; None for those that were not seen yet.
    """

    seconds: list[float | None] = field(default_factory=lambda: [None] * len(_SIZES))

    def observe(self, n_ids: int, seconds: float) -> None:
        """Take in one pass."""
        if n_ids > _LARGEST:
            return
        at = min(range(len(_SIZES)), key=lambda i: abs(_SIZES[i] - n_ids))
        known = self.seconds[at]
        self.seconds[at] = seconds if known is None else known * _DECAY + seconds * (1 - _DECAY)

    def of(self, n_ids: float) -> float:
        """Seconds of a pass, interpolated between what was seen; in units of a small pass if none was."""
        one = next((s / a for s, a in zip(self.seconds, _ASSUMED, strict=True) if s is not None), 1.0)
        costs = [one * a if s is None else s for s, a in zip(self.seconds, _ASSUMED, strict=True)]
        at = next((i for i, size in enumerate(_SIZES[1:], 1) if n_ids <= size), len(_SIZES) - 1)
        per_id = (costs[at] - costs[at - 1]) / (_SIZES[at] - _SIZES[at - 1])
        return costs[at] + per_id * (n_ids - _SIZES[at])


@dataclass(slots=True)
class Lookup:
    """What followed the last time that the text ended as it ends now.

    Attributes:
        costs: decide how long a guess is worth its place.
    """

    costs: PassCosts = field(default_factory=PassCosts)
    _ids: list[int] = field(default_factory=list)
    _after: dict[int, dict[tuple[int, ...], int]] = field(default_factory=lambda: {n: {} for n in SUFFIXES})
    _before: dict[int, dict[tuple[int, ...], int]] = field(default_factory=lambda: {n: {} for n in SUFFIXES})
    _seen: dict[int, tuple[float, float]] = field(default_factory=dict)
    _kind: int = 0

    def extend(self, ids: Sequence[int]) -> None:
        """More text. About 3 microseconds a token."""
        for token in ids:
            self._ids.append(token)
            n = len(self._ids)
            for length in SUFFIXES:
                if n >= length:
                    suffix = tuple(self._ids[n - length :])
                    known = self._after[length]
                    if suffix in known:
                        self._before[length][suffix] = known[suffix]
                    known[suffix] = n

    def propose(self, n_pending: int) -> list[int]:
        """Tokens that may come next; none where a guess is not worth its place.

        Args:
            n_pending: ids that the next pass runs anyway.
        """
        n = len(self._ids)
        for length in SUFFIXES:
            # The text's own end is the last place where it stands; what counts is the one before.
            at = self._before[length].get(tuple(self._ids[n - length :])) if n >= length else None
            if at is not None:
                self._kind = length
                return self._ids[at : at + self._worthwhile(n_pending)]
        return []

    def timed(self, n_ids: int, seconds: float) -> None:
        """What a pass over so many ids took."""
        self.costs.observe(n_ids, seconds)

    def judged(self, n_drafted: int, n_accepted: int) -> None:
        """How the last guess went: tokens that had to be drawn, and those that came out as guessed."""
        tried = n_accepted + (n_accepted < n_drafted)  # nothing is known of those behind the first wrong one
        hits, tries = self._seen.get(self._kind, (_PRIOR * _PRIOR_WEIGHT, _PRIOR_WEIGHT))
        self._seen[self._kind] = (hits * _DECAY + n_accepted, tries * _DECAY + tried)

    def _worthwhile(self, n_pending: int) -> int:
        """The length of guess that yields most tokens a second, by how such guesses went so far."""
        hits, tries = self._seen.get(self._kind, (_PRIOR * _PRIOR_WEIGHT, _PRIOR_WEIGHT))
        share = min(hits / tries, 0.98)
        best, best_rate = 0, 1 / self.costs.of(n_pending)
        tokens, chance = 1.0, 1.0
        for length in range(1, MAX_DRAFT + 1):
            chance *= share
            tokens += chance
            rate = tokens / self.costs.of(n_pending + length)
            if rate > best_rate * 1.0001:
                best, best_rate = length, rate
        return best
