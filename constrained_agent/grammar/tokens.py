"""A text seen token by token under a model's vocabulary: what the mask allowed at each, and what was forced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from constrained_agent.errors import MatcherError
from constrained_agent.grammar.matcher import EngineTokenizer, Matcher, Vocabulary
from constrained_agent.grammar.sources import Grammar
from constrained_agent.grammar.walk import guarded, parts

N_EXAMPLES = 5
_SHARE_OF_BYTES = 30  # a token of four bytes is that many times slower than its bytes in the checker
_MAX_LOOKED_AT = 200  # allowed ids that examples are picked from, lowest first: low ids are common tokens


@dataclass(frozen=True, slots=True)
class TokenStep:
    """One token of a text.

    Attributes:
        byte: its offset in the text.
        line, column: its 1-based place; columns count characters.
        token: its id.
        text: what it stands for; bytes that are no character as surrogate escapes.
        n_allowed: how many tokens of the vocabulary the mask allowed here, end tokens left out.
        examples: some of them.
        forced: whether the decoder would have written it without asking the model.
        could_end: whether the text before it was complete.
        taken: False for the token that was refused; nothing follows that one.
    """

    byte: int
    line: int
    column: int
    token: int
    text: str
    n_allowed: int
    examples: tuple[str, ...]
    forced: bool
    could_end: bool
    taken: bool


def token_steps(
    data: bytes, grammar: Grammar, vocabulary: Vocabulary, *, specials: Sequence[str] = ()
) -> list[TokenStep]:
    """Walk a text as the model's tokenizer cuts it, up to and with the first token that is refused.

    A model may cut the same text otherwise; shown is the usual way. About 1.3 ms a token for 150,000, on top
    of the half second that the engine's tokenizer takes to build.

    Args:
        data: the text, up to the first byte that is not UTF-8.
        grammar: what it is checked against.
        vocabulary: the model's tokens.
        specials: names of special tokens that stand for them where the grammar allows them.

    Raises:
        GrammarError: the grammar does not compile over this vocabulary.
        UserError: it takes too much time or memory.
    """
    return guarded(
        lambda: list(_Walk(EngineTokenizer(vocabulary), grammar, vocabulary, specials).steps(data)),
        grammar,
        len(data) * _SHARE_OF_BYTES,
    )


class _Walk:
    def __init__(
        self, engine: EngineTokenizer, grammar: Grammar, vocabulary: Vocabulary, specials: Sequence[str]
    ) -> None:
        self._matcher = Matcher(engine, grammar)
        self._vocabulary = vocabulary
        self._specials = specials
        names = {
            vocabulary.token_bytes[token].decode("utf-8", "replace"): token
            for token in vocabulary.special_ids
        }
        self._ids = [names.get(name) for name in specials]
        self._byte, self._line, self._column = 0, 1, 1

    def steps(self, data: bytes) -> Iterator[TokenStep]:
        for token in self._tokens(data):
            step = self._step(token)
            yield step
            if not step.taken:
                return
            self._matcher.consume([token])
            self._move(self._vocabulary.token_bytes[token])

    def _tokens(self, data: bytes) -> Iterator[int]:
        """The text's tokens; whether a name in it is a special token depends on where the grammar stands."""
        pending = ""
        for part, special in parts(data, self._specials):
            text = _utf8(part)
            token = None if special is None else self._ids[special - 256]
            if token is None or not self._allows(pending, token):
                pending += text
            else:
                yield from self._vocabulary.encode_plain(pending)
                yield token
                pending = ""
            if len(text.encode()) < len(part):
                break
        yield from self._vocabulary.encode_plain(pending)

    def _allows(self, pending: str, token: int) -> bool:
        ids = [*self._vocabulary.encode_plain(pending), token]
        return self._matcher.accepted_prefix(ids) == len(ids)

    def _step(self, token: int) -> TokenStep:
        could_end = self._matcher.accepting
        try:
            bits = int.from_bytes(self._matcher.bitmask().tobytes(), "little")
        except MatcherError:  # a dead end, or a limit of the engine
            bits = 0
        for end in self._matcher.end_ids:
            bits &= ~(1 << end)
        taken = bool(bits >> token & 1)
        return TokenStep(
            self._byte,
            self._line,
            self._column,
            token,
            self._text(token),
            bits.bit_count(),
            self._examples(bits),
            taken and not could_end and self._matcher.forced()[:1] == [token],
            could_end,
            taken,
        )

    def _examples(self, bits: int) -> tuple[str, ...]:
        """Some common tokens, words first and long ones first: blanks and single bytes say little."""
        found: list[str] = []
        while bits and len(found) < _MAX_LOOKED_AT:
            lowest = bits & -bits
            found.append(self._text(lowest.bit_length() - 1))
            bits ^= lowest
        whole = [
            text
            for text in found
            if "\ufffd" not in text and not any("\udc80" <= c <= "\udcff" for c in text)
        ]
        return tuple(sorted(whole or found, key=_plainness)[:N_EXAMPLES])

    def _text(self, token: int) -> str:
        return self._vocabulary.token_bytes[token].decode("utf-8", "surrogateescape")

    def _move(self, written: bytes) -> None:
        self._byte += len(written)
        for byte in written:
            if byte == 0x0A:
                self._line, self._column = self._line + 1, 1
            elif byte & 0xC0 != 0x80:
                self._column += 1


def _plainness(text: str) -> tuple[bool, int]:
    return not any(map(str.isalnum, text)), -len(text)


def _utf8(data: bytes) -> str:
    """The text up to the first byte that is not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        return data[: error.start].decode()
