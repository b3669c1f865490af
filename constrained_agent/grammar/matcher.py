"""LLGuidance behind two classes that raise: a tokenizer for it, and a matcher.

LLGuidance's own matcher reports by flag, and the flag stays: after a refused token its mask allows the end
token alone, so a broken run looks like a finished one. Here every call checks the flag.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from typing import Any, Protocol, Self

import llguidance
import numpy as np
from numpy.typing import NDArray

from constrained_agent.errors import DeadEndError, GrammarError, MatcherError
from constrained_agent.grammar import schemas
from constrained_agent.grammar.engine_words import NO_EXTENSION, first_line, reason_of
from constrained_agent.grammar.sources import Grammar

# Above LLGuidance's defaults (2,000 items in a row; 50,000 items, 200,000 fuel a step): large tool sets and
# long alternatives are legal here, and a slow mask is better than a refused one.
_MAX_ITEMS_IN_ROW = 100_000
_STEP_MAX_ITEMS = 1_000_000
_STEP_LEXER_FUEL = 5_000_000
_INITIAL_LEXER_FUEL = 20_000_000


class Vocabulary(Protocol):
    """What the engine must know of a model's tokenizer (`model.tokenizer.Tokenizer` provides it)."""

    @property
    def token_bytes(self) -> Sequence[bytes]:
        """Bytes of every id below `vocab_size`; for a special token, its name."""

    @property
    def special_ids(self) -> Sequence[int]:
        """Ids that grammars name as `<name>` and that text never produces."""

    @property
    def end_ids(self) -> Sequence[int]:
        """Ids that end a turn, the usual one first."""

    def encode_plain(self, text: str) -> list[int]:
        """Ids of text in which no special token is recognised."""


class _Wrapper:
    """The object that LLGuidance's tokenizer is built from.

    Not from tokenizer.json: it would encode forced text with the added tokens (`</tool_call>` as the special
    id) and with the normalizer (decomposed letters composed), and the matcher would refuse its own tokens.
    """

    is_tokenizer_wrapper = True
    bos_token_id = None

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.tokens = list(vocabulary.token_bytes)
        self.special_token_ids = list(vocabulary.special_ids)
        self.eos_token_id = vocabulary.end_ids[0]
        self._encode = vocabulary.encode_plain

    def __call__(self, text: str) -> list[int]:
        return self._encode(text)


class EngineTokenizer:
    """LLGuidance's view of a vocabulary. Costs about 0.4 s for 150,000 tokens: build once, keep.

    Attributes:
        vocab_size, token_bytes, special_ids, end_ids: as in `Vocabulary`.
        missing_bytes: those that no token holds; small vocabularies lack some that no UTF-8 text has, and others.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        wrapper = _Wrapper(vocabulary)
        self.token_bytes = wrapper.tokens
        self.special_ids = wrapper.special_token_ids
        self.vocab_size = len(wrapper.tokens)
        self.ll = llguidance.LLTokenizer(wrapper, n_vocab=self.vocab_size, eos_token=list(vocabulary.end_ids))
        self.end_ids = frozenset(vocabulary.end_ids)
        special = set(self.special_ids)
        held = set().union(*(data for i, data in enumerate(self.token_bytes) if i not in special))
        self.missing_bytes = frozenset(range(256)) - held

    def encode_bytes(self, data: bytes) -> list[int]:
        """Canonical ids of bytes, none of them special; greedy ones where the bytes are not whole characters."""
        return [int(token) for token in self.ll.tokenize_bytes(data)]

    def describe(self, tokens: Sequence[int]) -> str:
        """The tokens in a readable form, with boundaries, for messages."""
        return str(self.ll.dbg_tokens(list(tokens)))


class _ByteVocabulary:
    """256 single bytes, then the named special tokens, then one end token."""

    def __init__(self, specials: Sequence[str], missing: Collection[int]) -> None:
        names = [*specials, "<|end|>"]
        self.token_bytes = [b"<|none|>" if b in missing else bytes([b]) for b in range(256)]
        self.token_bytes += [name.encode() for name in names]
        self.special_ids = [*sorted(missing), *range(256, 256 + len(names))]
        self.end_ids = [self.special_ids[-1]]

    def encode_plain(self, text: str) -> list[int]:
        return list(text.encode())


def byte_tokenizer(specials: Sequence[str] = (), missing: Collection[int] = ()) -> EngineTokenizer:
    """A tokenizer of single bytes: id = byte value; `specials[i]` (`"<name>"`) has id 256 + i.

    The ids of `missing` bytes stand for nothing that a text can hold.

    For checking texts rather than model output: every prefix of a text can be asked about.
    """
    return EngineTokenizer(_ByteVocabulary(specials, missing))


class Matcher:
    """One walk of a token sequence through a grammar.

    States: *running* (tokens are taken), *stopped* (the grammar admits nothing more; only an end token is
    allowed by the mask), *broken* (an error was raised; every further call raises it again). `consume` moves
    it, `copy` forks it, `rollback` takes tokens back.
    """

    def __init__(self, tokenizer: EngineTokenizer, grammar: Grammar) -> None:
        """Compile a grammar; releases the GIL meanwhile.

        Raises:
            GrammarError: it does not compile.
        """
        self.tokenizer = tokenizer
        self.grammar = grammar
        self._ll = llguidance.LLMatcher(tokenizer.ll, _serialized(grammar), log_level=0, limits=_limits())
        if self._ll.is_error():
            raise _compile_error(grammar, self._ll.get_error(), tokenizer)
        self._pristine = self._ll.deep_copy()

    @property
    def vocab_size(self) -> int:
        """Ids that the tokenizer knows."""
        return self.tokenizer.vocab_size

    @property
    def end_ids(self) -> frozenset[int]:
        """Ids that end a turn; the mask allows them only where the text is complete."""
        return self.tokenizer.end_ids

    def describe(self, tokens: Sequence[int]) -> str:
        """Readable form of tokens, for messages."""
        return self.tokenizer.describe(tokens)

    def bitmask(self) -> NDArray[np.int32]:
        """The tokens allowed next.

        Returns:
            (ceil(vocab_size / 32),) int32, read-only; bit i % 32 of word i // 32 is 1 where id i is allowed.
            Usually 10 to 100 microseconds; releases the GIL.
        """
        mask = np.frombuffer(self._ll.compute_bitmask(), dtype=np.int32)
        self._check()
        return mask[: (self.tokenizer.vocab_size + 31) // 32]

    def consume(self, tokens: Sequence[int]) -> None:
        """Move on by tokens that were written.

        Raises:
            MatcherError: an id is outside the vocabulary or not allowed; names the id and its place.
        """
        for position, token in enumerate(tokens):
            if not 0 <= token < self.tokenizer.vocab_size:
                raise MatcherError(
                    f"token id {token} at position {position} is not in the vocabulary of "
                    f"{self.tokenizer.vocab_size} ids"
                )
            if not self._ll.consume_token(token):
                raise MatcherError(
                    f"{self.grammar.name} does not allow token {token} "
                    f"{self.tokenizer.describe([token])} here: {first_line(self._ll.get_error())}"
                )

    def accepted_prefix(self, tokens: Sequence[int]) -> int:
        """How many of the tokens could be consumed in turn; the state stays as it is."""
        count = int(self._ll.validate_tokens(list(tokens)))
        self._check()
        return count

    def forced(self) -> list[int]:
        """Tokens that must follow because the grammar leaves no choice; empty where there is one."""
        tokens = [int(token) for token in self._ll.compute_ff_tokens()]
        self._check()
        return tokens

    def forced_bytes(self) -> bytes:
        """Bytes that must follow; may reach further than `forced`, whose last token is still open."""
        found = bytes(self._ll.compute_ff_bytes())
        self._check()
        return found

    def spelling(self) -> list[int]:
        """Canonical tokens of `forced_bytes`; empty where the next byte is open, or all that is sure is a space.

        A space alone is hardly ever a token of its own: it begins the next word, which is open.
        """
        found = self.forced_bytes()
        return self.tokenizer.encode_bytes(found) if found.strip(b" ") else []

    @property
    def accepting(self) -> bool:
        """Whether the text so far is complete."""
        answer = bool(self._ll.is_accepting())
        self._check()
        return answer

    @property
    def stopped(self) -> bool:
        """Whether nothing but an end token may follow."""
        answer = bool(self._ll.is_stopped())
        self._check()
        return answer

    def copy(self) -> Self:
        """An independent matcher in the same state; costs 1 to 21 microseconds."""
        return self._in_state(self._ll)

    def fresh(self) -> Self:
        """A matcher of the same grammar that has consumed nothing; spares a second compile."""
        return self._in_state(self._pristine)

    def _in_state(self, state: llguidance.LLMatcher) -> Self:
        twin = object.__new__(type(self))
        twin.tokenizer, twin.grammar, twin._pristine = self.tokenizer, self.grammar, self._pristine
        twin._ll = state.deep_copy()
        return twin

    def rollback(self, n_tokens: int) -> None:
        """Take back the last tokens that were consumed."""
        self._ll.rollback(n_tokens)
        self._check()

    def _check(self) -> None:
        if self._ll.is_error():
            reason = first_line(self._ll.get_error())
            kind = DeadEndError if NO_EXTENSION in reason else MatcherError
            raise kind(f"{self.grammar.name}: {reason}")


def validate(grammar: Grammar, tokenizer: EngineTokenizer) -> list[str]:
    """Compile a grammar and throw it away.

    Returns:
        The engine's warnings.

    Raises:
        GrammarError: it does not compile.
    """
    is_error, messages = _validated(grammar, tokenizer)
    if is_error:
        raise _compile_error(grammar, messages[0], tokenizer)
    return messages


def _validated(grammar: Grammar, tokenizer: EngineTokenizer) -> tuple[bool, list[str]]:
    """Whether a grammar is refused, and the engine's messages."""
    text = _serialized(grammar)
    return llguidance.LLMatcher.validate_grammar_with_warnings(text, tokenizer.ll, limits=_limits())  # type: ignore[no-any-return]


def _limits() -> llguidance.LLParserLimits:
    return llguidance.LLParserLimits(
        max_items_in_row=_MAX_ITEMS_IN_ROW,
        step_max_items=_STEP_MAX_ITEMS,
        step_lexer_fuel=_STEP_LEXER_FUEL,
        initial_lexer_fuel=_INITIAL_LEXER_FUEL,
        verbose_errors=False,
    )


def _serialized(grammar: Grammar) -> str:
    build = {
        "lark": llguidance.LLMatcher.grammar_from_lark,
        "json_schema": llguidance.LLMatcher.grammar_from_json_schema,
        "regex": llguidance.LLMatcher.grammar_from_regex,
    }[grammar.kind]
    try:
        return str(build(grammar.text))
    except ValueError as error:
        raise GrammarError(grammar.name, first_line(str(error))) from None


def _compile_error(grammar: Grammar, message: str, tokenizer: EngineTokenizer) -> GrammarError:
    """Split the engine's `at 1(8): reason` and the excerpt that follows into position and reason."""

    def refusal(schema: Any) -> str:
        """Why the engine refuses a part of a schema."""
        is_error, messages = _validated(Grammar("part", "json_schema", json.dumps(schema)), tokenizer)
        return reason_of(messages[0]) if is_error else ""

    placed = re.match(r"(?:at )?(\d+)\((\d+)\): ", message)
    if placed and grammar.kind == "lark":
        return GrammarError(grammar.name, reason_of(message[placed.end() :]), int(placed[1]), int(placed[2]))
    reason = reason_of(message[placed.end() :] if placed else message)
    if grammar.kind == "json_schema":
        reason = schemas.explained(reason, grammar.text, refusal)
    return GrammarError(grammar.name, reason)
