"""A text token by token under a vocabulary whose tokens are longer than bytes."""

from __future__ import annotations

from collections.abc import Sequence

from constrained_agent.grammar import sources
from constrained_agent.grammar.sources import Grammar
from constrained_agent.grammar.tokens import TokenStep, token_steps

WORDS = ["the", "he", " cat", "cats", "tea", "\n", "é"]


class Vocabulary:
    """All bytes, some words that greedy encoding takes first, a call marker and an end token."""

    def __init__(self) -> None:
        self.token_bytes = (
            [bytes([b]) for b in range(256)] + [w.encode() for w in WORDS] + [b"<call>", b"<end>"]
        )
        self.special_ids = [256 + len(WORDS), 257 + len(WORDS)]
        self.end_ids = [257 + len(WORDS)]

    def encode_plain(self, text: str) -> list[int]:
        data, ids = text.encode(), []
        while data:
            token = max(
                (t for t in range(self.special_ids[0]) if data.startswith(self.token_bytes[t])),
                key=lambda t: len(self.token_bytes[t]),
            )
            ids.append(token)
            data = data[len(self.token_bytes[token]) :]
        return ids


def steps(text: bytes, grammar: str | Grammar, specials: Sequence[str] = ()) -> list[TokenStep]:
    made = grammar if isinstance(grammar, Grammar) else Grammar("g", "lark", grammar)
    return token_steps(text, made, Vocabulary(), specials=specials)


def test_tokens_places_and_choice() -> None:
    made = steps(b"the cat\nthe", 'start: /the( cat)?/ "\\n" "the"')

    assert [step.text for step in made] == ["the", " cat", "\n", "the"]
    assert [(step.byte, step.line, step.column) for step in made] == [
        (0, 1, 1),
        (3, 1, 4),
        (7, 1, 8),
        (8, 2, 1),
    ]
    assert [step.forced for step in made] == [True, False, True, True]
    # Of a forced text the mask allows the usual token alone. Then " cat", " ", and a newline as byte and as word.
    assert made[0].n_allowed == 1
    assert made[1].n_allowed == 4
    assert set(made[1].examples) == {" cat", " ", "\n"}
    assert not any(step.could_end for step in made)


def test_the_refused_token_is_the_last() -> None:
    made = steps(b"thecats", "start: /the?[a-b]*/")

    assert [(step.text, step.taken) for step in made] == [("the", True), ("cats", False)]
    assert made[-1].could_end


def test_markers_are_tokens_where_the_grammar_allows_them() -> None:
    made = steps(b"tea<call>he<call>", 'start: "tea" <call> /[a-z<>]+/', ["<call>"])

    assert [step.text for step in made] == ["tea", "<call>", "he", "<", "c", "a", "l", "l", ">"]
    assert [step.token >= 256 + len(WORDS) for step in made][:3] == [False, True, False]


def test_columns_count_characters_and_bytes_that_are_not_utf8_end_the_walk() -> None:
    made = steps("éé文x".encode() + b"\xff", sources.from_regex("(.|\n)*"))

    assert [step.column for step in made] == [1, 2, 3, 4, 4, 4]
    assert made[-1].text == "x"
