"""The shortest completion of a text: which tokens bring it to an end that the grammar accepts.

The engine shows only what may come next, not its states, so two places count as alike when they look alike:
same allowed tokens, same forced tokens, same right to end. Two searches share the work. A greedy walk that
tries closing brackets first ends deep nesting in a moment; a best-first search finds the short way where
there are a few real choices, such as the sections of a patch.
"""

from __future__ import annotations

import heapq
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from constrained_agent.grammar.cursor import Cursor, Path, State
from constrained_agent.grammar.matcher import Matcher
from constrained_agent.grammar.sources import Grammar

Move = tuple[Path, State]
"""Tokens to go on by, and what the place that they lead to looks like."""

# Steps of the greedy walk, one per byte or literal: room for long minimum lengths and deep nesting.
_MAX_WALK = 4_000
_MAX_LENGTH = 100_000  # tokens of a completion; only long forced text gets near it
# Places that the best-first search opens over all rounds; each costs 0.05 to 0.5 ms.
_MAX_OPENED = 400
# How often places that look alike are opened, round by round: once is right for a plain loop, more is needed
# for things that the engine counts (nesting, repetitions).
_ROUNDS = (1, 4, 16, 64)
# Where more tokens than this may follow, the text is free and its letters matter only as parts of literals.
_FREE_TEXT = 64
# Free characters that the walk writes before it tries a way out once more (a minimum length, perhaps).
_LOOPS = 32
_MAX_HINTS = 256
_MAX_HINT_BYTES = 200

# Which of several equal bytes to show: letters and digits read best in a completion.
_PREFERRED = (
    b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789\"'.,:;-_/()[]{}<>!?*+=#@$%&|~^`\\ \n\t\r"
)
_ORDER = {byte: rank for rank, byte in enumerate(_PREFERRED)}
_CLOSING = {byte: rank for rank, byte in enumerate(b"}])>\"'\n;")}


def shortest(matcher: Matcher, *, thorough: bool = True) -> Path | None:
    """The fewest tokens that complete the text, as far as a bounded search can tell.

    Args:
        matcher: over a byte tokenizer (larger vocabularies are too wide to search); stays as it is.
        thorough: False takes the first way that is found; often it is not much longer, for a fifth of the time.

    Returns:
        Token ids after which the grammar accepts; empty if it accepts now; None if no end was found, because
        there is none or because it is too far off. Takes under 1 ms to about 0.3 s.
    """
    search = _Search(matcher)
    walked = search.walk()
    if walked is not None and (len(walked) <= 1 or not thorough):
        return walked
    for visits in _ROUNDS:
        found, cut = search.best_first(visits, len(walked) if walked is not None else None)
        if found is not None:
            return found
        if not cut or search.opened >= _MAX_OPENED:
            break
    return walked


class _Search:
    """Both searches over one origin."""

    def __init__(self, matcher: Matcher) -> None:
        self._cursor = Cursor(matcher)
        self._hints = _literals(matcher.grammar)
        self._known: dict[State, list[Path]] = {}
        self.opened = 0

    def walk(self) -> Path | None:
        """Depth first, closing bytes first, places not seen before first."""
        seen: Counter[State] = Counter()
        stack: list[Path] = [()]
        for _ in range(_MAX_WALK):
            if not stack:
                return None
            path = stack.pop()
            if len(path) > _MAX_LENGTH:
                return None
            state = self._cursor.at(path)
            if state.accepting:
                return path
            seen[state] += 1
            if state.forced:
                stack.append(path + state.forced)
                continue
            if state not in self._known:
                self._known[state] = [move for move, _ in self._moves(path, state)]
            stack += reversed(self._ranked(path, state, seen))
        return None

    def _ranked(self, path: Path, state: State, seen: Counter[State]) -> list[Path]:
        """Paths one move on, the most promising first; only the best few are kept for backtracking."""
        free = state.bits.bit_count() > _FREE_TEXT
        ranked: list[tuple[tuple[int, int, int], Path]] = []
        for order, move in enumerate(self._known[state]):
            after = self._cursor.at(path + move)
            if after.trouble or not (after.bits or after.accepting):
                continue
            loop = free and after == state
            rank = -1 if after.accepting else len(_CLOSING)
            if not loop:  # a bracket in free text closes nothing
                rank = min(rank, _CLOSING.get(move[0], rank))
            weariness = seen[after] // _LOOPS if loop else 2 * seen[after]
            ranked.append(((rank, weariness, order), path + move))
        return [onward for _, onward in sorted(ranked)[:4]]

    def best_first(self, visits: int, at_most: int | None) -> tuple[Path | None, bool]:
        """Cheapest path first, opening places that look alike at most `visits` times.

        Returns:
            The path found, if it is no longer than `at_most`; and whether places were left out.
        """
        heap: list[tuple[int, int, Path]] = [(0, 0, ())]
        opened: Counter[tuple[State, ...]] = Counter()
        pushed, cut = 1, False
        while heap and self.opened < _MAX_OPENED:
            cost, _, path = heapq.heappop(heap)
            if at_most is not None and cost > at_most:
                return None, cut
            state = self._cursor.at(path)
            if state.accepting:
                return path, cut
            self.opened += 1
            moves = [(state.forced, state)] if state.forced else list(self._moves(path, state))
            look = (state, *(after for _, after in moves))
            opened[look] += 1
            if opened[look] > visits:
                cut = True
                continue
            for move, after in moves:
                if visits == 1 and after == state and not state.forced:
                    cut = True  # a loop, unless the engine counts it
                    continue
                heapq.heappush(heap, (cost + len(move), pushed, path + move))
                pushed += 1
        return None, cut

    def _moves(self, path: Path, state: State) -> Iterator[Move]:
        """One token for each kind of place that it leads to, then the grammar's own literals in free text."""
        kinds: set[State] = set()
        tokens = sorted(state.tokens(), key=lambda token: _ORDER.get(token, 256 + token))
        free = len(tokens) > _FREE_TEXT
        for token in tokens:
            if free and 0x80 <= token < 0x100:
                continue  # no completion needs them where ASCII is free too, and each opens a character
            after = self._cursor.at((*path, token))
            if after not in kinds and not after.trouble:
                kinds.add(after)
                yield (token,), after
        for hint in self._hints if free else ():
            if self._cursor.takes(path, hint):
                after = self._cursor.at(path + hint)
                if after not in kinds and not after.trouble:
                    kinds.add(after)
                    yield hint, after


@lru_cache(maxsize=8)
def _literals(grammar: Grammar) -> Sequence[Path]:
    """Literal texts in a grammar's source: in free text, nothing else shows that `END` leads out of it."""
    found: dict[bytes, None] = {}
    for quoted in re.findall(r'"(?:[^"\\\n]|\\.)*"', grammar.text):
        try:
            found[json.loads(quoted).encode()] = None
        except (ValueError, UnicodeEncodeError):
            continue  # an escape that JSON does not know: the plain runs below have its letters
    for run in re.findall(r"\w{2,}", grammar.text):
        found[run.encode("utf-8", "replace")] = None
    fitting = [tuple(hint) for hint in found if 1 < len(hint) <= _MAX_HINT_BYTES]
    return tuple(fitting[:_MAX_HINTS])
