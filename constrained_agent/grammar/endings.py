"""A grammar constraint that always knows a way to its end, so that a budget can be kept to the token.

Beside the matcher over the model's vocabulary walks a twin over single bytes, in which ends are searched for
(`grammar.closing`). A way that was found stays good for most tokens that follow: inside a line of a patch or a
string of JSON the old way still ends the text, and on the way itself the rest of it does. So a search (1 to
60 ms) is needed once per construct, not once per token (0.03 to 0.1 ms). While there is room any way will do, and the
first one that is found takes 1 ms; a short one is looked for where that does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from constrained_agent.errors import BudgetError, GrammarError
from constrained_agent.grammar import closing
from constrained_agent.grammar.cursor import Path
from constrained_agent.grammar.matcher import EngineTokenizer, Matcher, byte_tokenizer
from constrained_agent.grammar.sources import Grammar

_BYTES = 256


class ClosableMatcher(Matcher):
    """A `Matcher` that can also say how to end."""

    def __init__(
        self, tokenizer: EngineTokenizer, grammar: Grammar, *, ends_of: Grammar | None = None
    ) -> None:
        """Compile a grammar over the vocabulary, and over bytes to look for ends.

        Args:
            ends_of: a grammar that ends are looked for in instead; every text of `grammar` is one of it.

        Raises:
            GrammarError: it does not compile.
        """
        super().__init__(tokenizer, grammar)
        self._special = {token: _BYTES + i for i, token in enumerate(tokenizer.special_ids)}
        self._twin: Matcher | None
        try:
            names = [tokenizer.token_bytes[token].decode() for token in tokenizer.special_ids]
            self._twin = Matcher(byte_tokenizer(names, tokenizer.missing_bytes), ends_of or grammar)
        except GrammarError:
            # It names tokens by number, which mean others to the twin: then no end is known.
            self._twin = None
        self._way: Path | None = None
        self._unread: list[int] = []
        self._searched = False
        self._thorough = False  # whether the search was for a short way
        self._begun = False

    @property
    def copying(self) -> bool:
        """Whether the text comes from elsewhere at this point; no grammar alone says so."""
        return False

    def consume(self, tokens: Sequence[int]) -> None:
        """Move on by tokens that were written.

        Raises:
            MatcherError: one of them is not allowed.
        """
        super().consume(tokens)
        self._unread += tokens
        self._begun = self._begun or bool(tokens)

    def copy(self) -> Self:
        """An independent constraint in the same state."""
        clone = super().copy()
        clone._special = self._special
        clone._twin = self._twin.copy() if self._twin else None
        clone._unread, clone._begun = list(self._unread), self._begun
        clone._know_as(self)
        return clone

    def fresh(self) -> Self:
        """The same constraint before its first token; if this one stands there, with what it knows of ways."""
        clone = super().fresh()
        clone._special = self._special
        clone._twin = self._twin.fresh() if self._twin else None
        clone._unread, clone._begun = [], False
        clone._way, clone._searched, clone._thorough = None, False, False
        if not self._begun:
            clone._know_as(self)
        return clone

    def _know_as(self, other: Self) -> None:
        self._way, self._searched, self._thorough = other._way, other._searched, other._thorough

    def closing(self) -> list[int] | None:
        """Tokens of a short way to a whole text; empty where the text is whole; None where none was found.

        Cost: see the module; the first call searches.
        """
        self._found_way(thorough=False)  # kept where it takes fewer tokens
        way = self._found_way()
        return None if way is None else self._as_tokens(way)

    def fits(self, n_tokens: int) -> bool:
        """Whether a whole text fits into so many more tokens; where there is room, cheaper than `closing`."""
        return any(self._takes_at_most(self._found_way(thorough=it), n_tokens) for it in (False, True))

    def rollback(self, n_tokens: int) -> None:
        """Not to be had: the twin counts bytes. Keep a `copy` instead."""
        self._check()
        raise NotImplementedError(f"copy a ClosableMatcher before it consumes, not {n_tokens} tokens back")

    def _takes_at_most(self, way: Path | None, n_tokens: int) -> bool:
        if way is None:
            return False
        # Where every byte is a token, no text has more tokens than bytes.
        if len(way) <= n_tokens and not self.tokenizer.missing_bytes:
            return True
        tokens = self._as_tokens(way)
        return tokens is not None and len(tokens) <= n_tokens

    def _found_way(self, *, thorough: bool = True) -> Path | None:
        """A way to the end: the known one if it still leads there, else what a search finds."""
        if self._twin is None:
            return () if self.accepting else None
        if read := self._as_bytes(self._unread):
            self._unread = []
            self._twin.consume(read)
            self._way = self._left_of_way(read)
            self._searched = self._way is not None
        if self._twin.accepting:
            self._way, self._searched, self._thorough = (), True, True
        elif not self._searched or (thorough and not self._thorough):
            found = closing.shortest(self._twin, thorough=thorough)
            self._way, self._searched = self._in_fewer_tokens(self._way, found), True
            self._thorough = thorough or self._way is None
        return self._way

    def _in_fewer_tokens(self, *ways: Path | None) -> Path | None:
        """The way of the fewest tokens: searches count bytes, a limit counts tokens."""
        spelled = [
            (len(tokens), way)
            for way in ways
            if way is not None and (tokens := self._as_tokens(way)) is not None
        ]
        return min(spelled, key=lambda pair: pair[0])[1] if spelled else ways[-1]

    def _left_of_way(self, read: Path) -> Path | None:
        """What is left of the known way behind bytes that were read, or all of it; None if neither leads to an end."""
        if self._way is None:
            return None
        rest = self._way[len(read) :]
        if self._way[: len(read)] == read and self._leads_to_end(rest):
            return rest
        return self._way if self._leads_to_end(self._way) else None

    def _leads_to_end(self, way: Path) -> bool:
        assert self._twin is not None
        if self._twin.accepted_prefix(way) < len(way):
            return False
        there = self._twin.copy()
        there.consume(way)
        return there.accepting

    def _as_bytes(self, tokens: Sequence[int]) -> Path:
        read: list[int] = []
        for token in tokens:
            if token in self._special:
                read.append(self._special[token])
            else:
                read += self.tokenizer.token_bytes[token]
        return tuple(read)

    def _as_tokens(self, way: Path) -> list[int] | None:
        """The way in tokens of the vocabulary: canonical ones, where it stands on whole characters.

        None where the vocabulary has no tokens for it: some bytes may stand in longer tokens only.
        """
        tokens: list[int] = []
        run = bytearray()
        for step in [*way, None]:
            if step is not None and step < _BYTES:
                run.append(step)
                continue
            spelled = self.tokenizer.encode_bytes(bytes(run))
            if b"".join(self.tokenizer.token_bytes[token] for token in spelled) != run:
                return None
            tokens += spelled
            run.clear()
            if step is not None:
                tokens.append(self.tokenizer.special_ids[step - _BYTES])
        return tokens


def closable(tokenizer: EngineTokenizer, grammar: Grammar) -> ClosableMatcher:
    """A constraint whose end is known from the start.

    Raises:
        GrammarError: the grammar does not compile.
        BudgetError: no text of it was found that ends.
        MatcherError: the engine hit one of its limits.
    """
    matcher = ClosableMatcher(tokenizer, grammar)
    if matcher.closing() is None:
        raise BudgetError(
            f"{grammar.name}: no text of it was found that ends, so no token limit could be kept: "
            "it recurs for ever, demands a very long text, names tokens by number, or bytes that the vocabulary lacks"
        )
    return matcher
