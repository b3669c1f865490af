"""Replays a known text through a matcher, token by token, as a model that knows the answer would write it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from constrained_agent.decode.needs import Drafts, Link, NoDrafts
from constrained_agent.grammar.matcher import EngineTokenizer, Matcher

_ENDLESS = 1_000_000  # tokens
_N_SHOWN = 60  # bytes before a refused one


@dataclass(frozen=True, slots=True)
class Refusal:
    """Where a matcher does not take the text.

    Attributes:
        at: bytes that were taken.
        before: the last of them.
        found: the byte that was refused; empty if the text ends where the grammar wants more.
        expected: the bytes that the grammar allows there; of a forced text, its beginning.
    """

    at: int
    before: bytes
    found: bytes
    expected: tuple[bytes, ...]

    def __str__(self) -> str:
        found = repr(self.found)[1:] if self.found else "the end"
        expected = " ".join(repr(option)[1:] for option in self.expected) or "the end"
        return f"byte {self.at}, after {repr(self.before)[1:]}: {found}; expected {expected}"


@dataclass(frozen=True, slots=True)
class Walk:
    """What it took to write a text.

    Attributes:
        n_steps: tokens that the model would have chosen and nobody guessed, each one forward pass.
        n_guessed: tokens that it would have chosen as they were guessed.
        n_forced: tokens that the grammar left no choice about.
        n_passed: ids of all passes, wrong guesses included.
        n_spelled: steps whose bytes were forced, though other tokens begin with the same ones.
        mask_us: for each token that was chosen, the time of its bitmask in microseconds.
        refusal: where the walk ended early; None for a text that the grammar takes as a whole.
    """

    n_steps: int
    n_guessed: int
    n_forced: int
    n_passed: int
    n_spelled: int
    mask_us: tuple[float, ...]
    refusal: Refusal | None

    @property
    def n_tokens(self) -> int:
        """Tokens of the text as it was written."""
        return self.n_steps + self.n_guessed + self.n_forced


class _Guesses:
    """Guesses beside a walk: what they would have spared."""

    def __init__(self, drafts: Drafts) -> None:
        self.n_true = self.n_ids = 0
        self._drafts = drafts
        self._links: list[Link] = []
        self._at = 0

    def begin(self, matcher: Matcher, n_pending: int) -> None:
        """A pass over `n_pending` ids starts in this state."""
        self._links, self._at = self._drafts.chain(matcher, n_pending, _ENDLESS), 0
        self.n_ids += n_pending + sum(1 + len(link.forced) for link in self._links)

    def holds(self, token: int) -> bool:
        """Whether a token that was chosen had been guessed."""
        if self._at < len(self._links) and self._links[self._at].token == token:
            self._at += 1
            self.n_true += 1
            return True
        self._drafts.judged(self._links, self._at, waited=False)
        self._links, self._at = [], 0
        return False

    def extend(self, tokens: Sequence[int]) -> None:
        self._drafts.extend(tokens)


def walk(matcher: Matcher, text: bytes, drafts: Drafts | None = None) -> Walk:
    """Write a text under a grammar: what is forced is taken, all else is the next canonical token of what is left.

    Args:
        matcher: at the start of the text; at its end afterwards, or where it was refused.
        drafts: guesses at what comes next.

    Raises:
        MatcherError: the engine met one of its limits.
    """
    tokenizer = matcher.tokenizer
    guesses = _Guesses(drafts or NoDrafts())
    ids = tokenizer.encode_bytes(text)[::-1]  # of what is left, the next one last
    at = n_forced = n_spelled = 0
    pending = (
        1  # ids that the next pass runs; 0 while guesses are left. The first one runs the end of the prompt.
    )
    mask_us: list[float] = []
    while at < len(text):
        if forced := _forced(matcher):
            written = b"".join(tokenizer.token_bytes[token] for token in forced)
            if not text.startswith(written, at):
                break
            matcher.consume(forced)
            guesses.extend(forced)
            at += len(written)
            n_forced += len(forced)
            pending += len(forced) if pending else 0
            same = ids[: -len(forced) - 1 : -1] == forced
            # Forced text can be cut otherwise than the whole text would be; its bytes are what must agree.
            ids = ids[: -len(forced)] if same else tokenizer.encode_bytes(text[at:])[::-1]
            continue
        if pending:
            guesses.begin(matcher, pending)
        started = time.perf_counter_ns()
        mask = matcher.bitmask()
        mask_us.append((time.perf_counter_ns() - started) / 1e3)
        token = ids.pop()
        if not mask[token // 32] >> (token % 32) & 1:
            break
        n_spelled += matcher.forced_bytes().startswith(tokenizer.token_bytes[token])
        pending = 0 if guesses.holds(token) else 1
        matcher.consume([token])
        guesses.extend([token])
        at += len(tokenizer.token_bytes[token])
    is_whole = at == len(text) and matcher.accepting
    refusal = None if is_whole else _refusal(matcher, text, at)
    n_steps = len(mask_us) - guesses.n_true
    return Walk(n_steps, guesses.n_true, n_forced, guesses.n_ids, n_spelled, tuple(mask_us), refusal)


def _forced(matcher: Matcher) -> list[int]:
    """The tokens that must follow and are part of the text."""
    return [token for token in matcher.forced() if token not in matcher.end_ids]


def _refusal(matcher: Matcher, text: bytes, at: int) -> Refusal:
    """Go on byte by byte, to the first one that is refused."""
    probe = matcher.copy()
    byte_ids = _byte_ids(matcher.tokenizer)
    while at < len(text) and (token := byte_ids.get(text[at])) is not None and probe.accepted_prefix([token]):
        probe.consume([token])
        at += 1
    expected = (forced,) if (forced := probe.forced_bytes()[:_N_SHOWN]) else _first_bytes(probe)
    return Refusal(at, text[max(0, at - _N_SHOWN) : at], text[at : at + 1], expected)


def _byte_ids(tokenizer: EngineTokenizer) -> dict[int, int]:
    special = set(tokenizer.special_ids)
    return {
        data[0]: token
        for token, data in enumerate(tokenizer.token_bytes)
        if len(data) == 1 and token not in special
    }


def _first_bytes(matcher: Matcher) -> tuple[bytes, ...]:
    """The bytes that may come next."""
    mask = matcher.bitmask()
    allowed = (
        data
        for token, data in enumerate(matcher.tokenizer.token_bytes)
        if mask[token // 32] >> (token % 32) & 1 and token not in matcher.end_ids
    )
    return tuple(sorted({data[:1] for data in allowed}))
