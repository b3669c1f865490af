"""The matcher: it raises where the engine would only set a flag, and its masks are exact at odd widths."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from constrained_agent.errors import GrammarError, MatcherError
from constrained_agent.grammar.matcher import EngineTokenizer, Matcher, byte_tokenizer, validate
from constrained_agent.grammar.sources import Grammar, from_json_schema, from_regex

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class SmallVocabulary:
    """`size` tokens: the letters, then pairs of them, then two end tokens in the last places."""

    size: int
    token_bytes: list[bytes] = field(init=False)
    special_ids: list[int] = field(init=False)
    end_ids: list[int] = field(init=False)

    def __post_init__(self) -> None:
        words = [letter.encode() for letter in LETTERS]
        words += [f"a{letter}".encode() for letter in LETTERS[: self.size - len(words) - 2]]
        object.__setattr__(self, "token_bytes", [*words, b"<|stop|>", b"<|halt|>"])
        object.__setattr__(self, "special_ids", [self.size - 2, self.size - 1])
        object.__setattr__(self, "end_ids", [self.size - 2, self.size - 1])

    def encode_plain(self, text: str) -> list[int]:
        return [LETTERS.index(letter) for letter in text]


def lark(text: str) -> Grammar:
    return Grammar("test", "lark", text)


def allowed(matcher: Matcher) -> set[int]:
    mask = matcher.bitmask()
    return {i for i in range(matcher.tokenizer.vocab_size) if int(mask[i // 32]) >> (i % 32) & 1}


def taken(matcher: Matcher) -> set[int]:
    """The tokens that can really be consumed: the plain reference for the mask."""
    found = set()
    for token in range(matcher.tokenizer.vocab_size):
        try:
            matcher.copy().consume([token])
        except MatcherError:
            continue
        found.add(token)
    return found


@pytest.fixture
def bytes_only() -> EngineTokenizer:
    return byte_tokenizer()


@pytest.mark.parametrize("size", [31, 32, 33, 40])
@pytest.mark.parametrize("text", ["", "a", "ab", "abcabc"])
def test_mask_is_exact_at_every_width(size: int, text: str) -> None:
    tokenizer = EngineTokenizer(SmallVocabulary(size))
    matcher = Matcher(tokenizer, lark('start: ("abc" | "az")*'))
    matcher.consume([LETTERS.index(letter) for letter in text])

    mask = matcher.bitmask()

    assert tokenizer.vocab_size == size
    assert mask.shape == ((size + 31) // 32,)
    assert mask.dtype == np.int32
    assert not mask.flags.writeable
    assert allowed(matcher) == taken(matcher)
    assert all(int(mask[i // 32]) >> (i % 32) & 1 == 0 for i in range(size, 32 * len(mask)))


def test_refused_token_raises_and_the_error_stays(bytes_only: EngineTokenizer) -> None:
    matcher = Matcher(bytes_only, lark('start: "ab" | "cd"'))
    matcher.consume(b"a")

    with pytest.raises(MatcherError, match="does not allow token 99"):
        matcher.consume(b"c")

    for again in (
        matcher.bitmask,
        matcher.forced,
        matcher.forced_bytes,
        lambda: matcher.accepting,
        lambda: matcher.stopped,
        lambda: matcher.consume(b"b"),
        lambda: matcher.accepted_prefix(b"b"),
        lambda: matcher.rollback(1),
    ):
        with pytest.raises(MatcherError):
            again()


@pytest.mark.parametrize("token", [-1, 257, 151_936])
def test_an_id_past_the_vocabulary_raises_and_breaks_nothing(bytes_only: EngineTokenizer, token: int) -> None:
    matcher = Matcher(bytes_only, lark('start: "ab"'))

    with pytest.raises(MatcherError, match=r"position 1 is not in the vocabulary of 257 ids"):
        matcher.consume([ord("a"), token])

    matcher.consume(b"b")
    assert matcher.accepting


def test_no_text_after_the_end(bytes_only: EngineTokenizer) -> None:
    matcher = Matcher(bytes_only, lark('start: "ab"'))
    matcher.consume(b"ab")

    assert matcher.accepting
    assert matcher.stopped
    assert allowed(matcher) == bytes_only.end_ids
    with pytest.raises(MatcherError):
        matcher.consume(b"c")


@pytest.mark.parametrize("which", [0, 1])
def test_end_tokens_are_alike_and_only_where_the_grammar_accepts(which: int) -> None:
    vocabulary = SmallVocabulary(40)
    tokenizer = EngineTokenizer(vocabulary)
    end = vocabulary.end_ids[which]
    matcher = Matcher(tokenizer, lark('start: "ab" "c"*'))

    assert not allowed(matcher) & tokenizer.end_ids
    with pytest.raises(MatcherError):
        matcher.copy().consume([end])
    matcher.consume([0])
    assert not allowed(matcher) & tokenizer.end_ids
    matcher.consume([1])
    assert allowed(matcher) == {2} | tokenizer.end_ids
    matcher.consume([end])
    assert matcher.stopped


def test_text_cannot_spell_a_special_token() -> None:
    tokenizer = byte_tokenizer(["<call>"])
    matcher = Matcher(tokenizer, lark('start: <call> "x"'))

    assert allowed(matcher) == {256}
    assert matcher.accepted_prefix(list(b"<call>")) == 0
    matcher.consume([256])
    assert matcher.forced() == [ord("x")]


def test_an_unknown_special_token_does_not_compile(bytes_only: EngineTokenizer) -> None:
    with pytest.raises(GrammarError, match="tool_call"):
        Matcher(bytes_only, lark('start: <tool_call> "x"'))


def test_accepted_prefix_moves_nothing(bytes_only: EngineTokenizer) -> None:
    matcher = Matcher(bytes_only, lark('start: "abc"'))

    assert matcher.accepted_prefix(list(b"abx")) == 2
    assert matcher.accepted_prefix(list(b"abc")) == 3
    assert matcher.accepted_prefix([]) == 0
    assert matcher.forced() == list(b"abc")


def test_forced_tokens_stop_at_the_first_choice(bytes_only: EngineTokenizer) -> None:
    matcher = Matcher(bytes_only, lark('start: "first" ("a" | "b")'))

    assert bytes(matcher.forced()) == matcher.forced_bytes() == b"first"
    matcher.consume(matcher.forced())
    assert matcher.forced() == []


def test_copies_are_independent(bytes_only: EngineTokenizer) -> None:
    matcher = Matcher(bytes_only, lark('start: "ab" | "ac"'))
    matcher.consume(b"a")
    left, right = matcher.copy(), matcher.copy()

    left.consume(b"b")
    with pytest.raises(MatcherError):
        right.consume(b"x")

    assert left.accepting
    assert not matcher.accepting
    assert allowed(matcher) == set(b"bc")


@pytest.mark.parametrize("n_back", [1, 2, 3])
def test_rollback_restores_the_mask(bytes_only: EngineTokenizer, n_back: int) -> None:
    matcher = Matcher(bytes_only, lark('start: "a" ("b" | "c") "d"'))
    masks = [allowed(matcher)]
    for byte in b"abd":
        matcher.consume([byte])
        masks.append(allowed(matcher))

    matcher.rollback(n_back)

    assert allowed(matcher) == masks[3 - n_back]
    assert not matcher.stopped


@pytest.mark.parametrize(
    ("grammar", "line", "column", "words"),
    [
        (lark("start: nothing\n"), 1, 8, "nothing"),
        (lark('start: "a" b\nb: /(?=x)y/'), 2, 4, "look"),
        (lark('start: A\nA.2: "x"'), 2, 6, "priority"),
        (lark(""), None, None, "Empty grammar"),
        (from_regex("(a"), None, None, "unclosed group"),
        (from_json_schema({"type": "integer", "minimum": 5, "maximum": 3}), None, None, "Unsatisfiable"),
        (from_json_schema([1]), None, None, "object or boolean"),
    ],
)
def test_what_does_not_compile_says_where_and_why(
    bytes_only: EngineTokenizer, grammar: Grammar, line: int | None, column: int | None, words: str
) -> None:
    with pytest.raises(GrammarError) as caught:
        Matcher(bytes_only, grammar)

    assert (caught.value.line, caught.value.column) == (line, column)
    assert words in caught.value.reason
    assert "\n" not in str(caught.value)
    with pytest.raises(GrammarError):
        validate(grammar, bytes_only)


def test_the_engine_prints_nothing(bytes_only: EngineTokenizer, capfd: pytest.CaptureFixture[str]) -> None:
    noisy = lark("start: A B\nA: /a*?b/\nB: /.*/\n")
    matcher = Matcher(bytes_only, noisy)
    matcher.consume(b"b")
    matcher.bitmask()

    assert capfd.readouterr() == ("", "")
