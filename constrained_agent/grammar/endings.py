"""A grammar constraint that always knows a way to its end, so that a budget can be kept to the token.

Beside the matcher over the model's vocabulary walks a twin over single bytes, in which ends are searched for
(`grammar.closing`). A way that was found stays good for most tokens that follow: inside a line of a patch or a
string of JSON the old way still ends the text, and on the way itself the rest of it does. So a search (1 to
60 ms) is needed once per construct, not once per token (0.03 to 0.1 ms).
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

    def copy(self) -> Self:
        """An independent constraint in the same state."""
        clone = super().copy()
        clone._special = self._special
        clone._twin = self._twin.copy() if self._twin else None
        clone._way, clone._searched, clone._unread = self._way, self._searched, list(self._unread)
        return clone

    def fresh(self) -> Self:
        """The same constraint before its first token."""
        clone = super().fresh()
        clone._special = self._special
        clone._twin = self._twin.fresh() if self._twin else None
        clone._way, clone._searched, clone._unread = None, False, []
        return clone

    def closing(self) -> list[int] | None:
        """Tokens of a short way to a whole text; empty where the text is whole; None where none was found.

        Cost: see the module; the first call searches.
        """
        way = self._found_way()
        return None if way is None else self._as_tokens(way)

    def rollback(self, n_tokens: int) -> None:
        """Not to be had: the twin counts bytes. Keep a `copy` instead."""
        self._check()
        raise NotImplementedError(f"copy a ClosableMatcher before it consumes, not {n_tokens} tokens back")

    def _found_way(self) -> Path | None:
        if self._twin is None:
            return () if self.accepting else None
        read = self._as_bytes(self._unread)
        self._unread = []
        self._twin.consume(read)
        if self._twin.accepting:
            self._way, self._searched = (), True
            return ()
        if self._searched and self._way is not None:
            if self._way[: len(read)] == read and self._leads_to_end(self._way[len(read) :]):
                self._way = self._way[len(read) :]
                return self._way
            if self._leads_to_end(self._way):
                return self._way
        elif self._searched and not read:
            return self._way
        self._way, self._searched = closing.shortest(self._twin), True
        return self._way

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
