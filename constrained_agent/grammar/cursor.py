"""Looks ahead of a matcher: what may follow each of many short continuations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from constrained_agent.errors import MatcherError
from constrained_agent.grammar.engine_words import NO_EXTENSION
from constrained_agent.grammar.matcher import Matcher

Path = tuple[int, ...]
"""Token ids that follow the matcher's state."""


@dataclass(frozen=True, slots=True)
class State:
    """What the grammar says at one place.

    Attributes:
        bits: bit i is 1 where token i may come next; end tokens are left out.
        accepting: whether the text may end here.
        forced: the tokens that must follow because there is no choice.
        trouble: why nothing is known (a dead end, or a limit of the engine); `bits` is 0 then.
    """

    bits: int
    accepting: bool
    forced: Path
    trouble: str = ""

    @property
    def unknown(self) -> bool:
        """Whether the engine met one of its limits here, rather than an end of the road."""
        return bool(self.trouble) and NO_EXTENSION not in self.trouble

    def tokens(self) -> Iterator[int]:
        """Ids that may come next, ascending."""
        bits = self.bits
        while bits:
            lowest = bits & -bits
            yield lowest.bit_length() - 1
            bits ^= lowest


class Cursor:
    """A fork of a matcher that is moved about near the place where it was forked.

    Moving costs one engine call per token that differs from the last place, about a microsecond; forking anew
    for each place would copy the engine's whole history each time (4 ms after 240 KB of text).
    """

    def __init__(self, matcher: Matcher) -> None:
        self._origin = matcher
        self._live: Matcher | None = None
        self._path: Path = ()
        self._rolls_back = True
        end_bits = sum(1 << token for token in matcher.tokenizer.end_ids)
        self._mask = ((1 << matcher.tokenizer.vocab_size) - 1) & ~end_bits

    def at(self, path: Path) -> State:
        """The state after some tokens; takes 3 to 5 microseconds near the last place asked about.

        Args:
            path: tokens from the origin, each allowed where it stands.
        """
        accepting = False
        try:
            live = self._moved(path)
            accepting = live.accepting
            bits = int.from_bytes(live.bitmask().tobytes(), "little") & self._mask
            choice = accepting or bits.bit_count() != 1
            return State(bits, accepting, () if choice else tuple(live.forced()))
        except MatcherError as error:
            self._live = None  # the engine's errors stay: only a fresh fork is of use
            return State(0, accepting, (), str(error))

    def takes(self, path: Path, tokens: Path) -> bool:
        """Whether all of `tokens` may follow `path`."""
        try:
            return self._moved(path).accepted_prefix(tokens) == len(tokens)
        except MatcherError:
            self._live = None
            return False

    def _moved(self, path: Path) -> Matcher:
        live = self._live
        common = _common(self._path, path)
        if live is not None and common < len(self._path):
            live = self._rolled_back(live, len(self._path) - common)
        if live is None:
            live, common = self._origin.copy(), 0
        self._live, self._path = live, path
        live.consume(path[common:])
        return live

    def _rolled_back(self, live: Matcher, n_tokens: int) -> Matcher | None:
        """None where the grammar's `max_tokens` or `stop` keeps the engine from rolling back."""
        if not self._rolls_back:
            return None
        try:
            live.rollback(n_tokens)
        except MatcherError:
            self._rolls_back = False
            return None
        return live


def _common(left: Path, right: Path) -> int:
    """Length of the common beginning; compares slices, since paths grow to thousands of tokens."""
    low, high = 0, min(len(left), len(right))
    if left[:high] == right[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle
    return low
