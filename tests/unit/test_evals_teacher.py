"""Teacher-forced walks: what counts as a step, and where a text is refused."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from constrained_agent.evals.teacher import Refusal, walk
from constrained_agent.grammar.matcher import EngineTokenizer, Matcher, byte_tokenizer
from constrained_agent.grammar.sources import Grammar


class Words:
    """All bytes, some words, an end token. Text is cut into the longest words from the left."""

    def __init__(self, *words: bytes) -> None:
        self.token_bytes = [*(bytes([byte]) for byte in range(256)), *words, b"<|end|>"]
        self.special_ids = self.end_ids = [len(self.token_bytes) - 1]
        self._words = sorted(range(len(self.token_bytes) - 1), key=lambda i: -len(self.token_bytes[i]))

    def encode_plain(self, text: str) -> Sequence[int]:
        data, found = text.encode(), []
        while data:
            found.append(next(i for i in self._words if data.startswith(self.token_bytes[i])))
            data = data[len(self.token_bytes[found[-1]]) :]
        return found


def matcher(text: str, *words: bytes) -> Matcher:
    tokenizer = EngineTokenizer(Words(*words)) if words else byte_tokenizer()  # type: ignore[arg-type]
    return Matcher(tokenizer, Grammar("test", "lark", text))


def test_what_is_forced_is_no_step() -> None:
    found = walk(matcher('start: "ab" ("c" | "d") "ef"'), b"abdef")
    assert (found.n_forced, found.n_steps, found.n_tokens) == (4, 1, 5)
    assert len(found.mask_us) == 1
    assert found.refusal is None


def test_free_text_is_all_steps() -> None:
    found = walk(matcher("start: /[a-z]*/"), b"hello")
    assert (found.n_forced, found.n_steps, found.n_spelled) == (0, 5, 0)


def test_a_step_may_be_longer_than_a_byte() -> None:
    found = walk(matcher("start: /[a-z]*/", b"hel", b"lo"), b"hello")
    assert (found.n_forced, found.n_steps) == (0, 2)


class LastDecides(Words):
    """Text that ends in `!` is cut into bytes: what comes later changes the tokens before."""

    def encode_plain(self, text: str) -> Sequence[int]:
        return list(text.encode()) if text.endswith("!") else super().encode_plain(text)


def test_forced_text_is_cut_its_own_way() -> None:
    """The text's own tokens are `a`, `b`, `c`, `!`; forced is `ab`. The bytes agree, and go on from there."""
    tokenizer = EngineTokenizer(LastDecides(b"ab"))  # type: ignore[arg-type]
    assert tokenizer.encode_bytes(b"abc!") == list(b"abc!")
    found = walk(Matcher(tokenizer, Grammar("test", "lark", 'start: "ab" /[a-z]/ "!"')), b"abc!")
    assert (found.n_steps, found.n_forced, found.refusal) == (1, 2, None)


def test_a_step_whose_text_is_forced_but_not_its_token() -> None:
    """After `x` comes a newline, alone or with the `a` that may follow it."""
    found = walk(matcher('start: ("x" | "y") "\\n" ("a" | "b")', b"\na"), b"x\nb")
    assert (found.n_steps, found.n_forced, found.n_spelled) == (3, 0, 1)
    assert found.refusal is None


def refusal(grammar: str, text: bytes, *words: bytes) -> Refusal:
    found = walk(matcher(grammar, *words), text).refusal
    assert found is not None
    return found


def test_refused_where_there_is_a_choice() -> None:
    assert refusal('start: "ab" ("c" | "d")', b"abx") == Refusal(2, b"ab", b"x", (b"c", b"d"))


def test_refused_within_a_token() -> None:
    found = refusal("start: /[a-e]+/", b"abx", b"abx")
    assert (found.at, found.found) == (2, b"x")


def test_refused_in_forced_text() -> None:
    found = refusal('start: ("a" | "b") "cdef"', b"acdxf")
    assert (found.at, found.before, found.found, found.expected) == (3, b"acd", b"x", (b"ef",))
    assert str(found) == "byte 3, after 'acd': 'x'; expected 'ef'"


def test_refused_as_it_ends_too_early_or_too_late() -> None:
    assert refusal('start: "a" ("b" | "c")', b"a") == Refusal(1, b"a", b"", (b"b", b"c"))
    assert refusal('start: "abc"', b"ab") == Refusal(2, b"ab", b"", (b"c",))
    late = refusal('start: "a" "b"', b"abc")
    assert (late.at, late.found, late.expected) == (2, b"c", ())
    assert str(late).endswith("'c'; expected the end")


@pytest.mark.parametrize("text", [b"", b"a"])
def test_an_optional_text(text: bytes) -> None:
    assert walk(matcher('start: "a"?'), text).refusal is None
