"""The second reader: when it has an opinion, and when that contradicts the first."""

from __future__ import annotations

import warnings

import pytest

from constrained_agent.grammar import prefix
from constrained_agent.grammar.crosscheck import second_opinion
from constrained_agent.grammar.sources import Grammar, from_json_schema, from_regex, load

GOOD = b"*** Begin Patch\n*** Delete File: a\n*** End Patch\n"


def lark(text: str) -> Grammar:
    return Grammar("test", "lark", text)


@pytest.mark.parametrize(
    "text", [GOOD, GOOD[:-1], GOOD[:20], GOOD + b"x", b"", b"\xff", GOOD.replace(b"a", b"\xe9")]
)
@pytest.mark.parametrize("name", ["apply_patch", "apply_patch_strict"])
def test_the_patch_grammars_read_alike(name: str, text: bytes) -> None:
    opinion = second_opinion(text, load(name))
    complete = prefix.check(text, load(name)).status == "complete"

    assert opinion.parser == "lalr"
    assert opinion.accepts == complete
    assert not opinion.contradicts(complete)
    assert bool(opinion.reason) == (not complete)


@pytest.mark.parametrize(
    "grammar",
    [
        lark('start: <call> "x"'),
        lark("start: %json {}"),
        lark('start: x\nx[suffix="END"]: /.*/'),
        lark('%llguidance {}\nstart: "a"'),
        lark("start: /\\p{L}/"),
        lark("%import nosuch.BAR\nstart: BAR"),
        lark('start: /.*/ "END"'),  # a terminal of no width
        from_json_schema({}),
        from_regex("a"),
    ],
)
def test_no_opinion_on_what_is_not_plain_lark(grammar: Grammar) -> None:
    opinion = second_opinion(b"a", grammar)

    assert opinion.parser is None
    assert opinion.reason
    assert "\n" not in opinion.reason
    assert not opinion.contradicts(True)
    assert not opinion.contradicts(False)


def test_earley_takes_over_where_lalr_cannot() -> None:
    ambiguous = lark('start: a | b\na: "x"\nb: "x"')

    assert (second_opinion(b"x", ambiguous).parser, second_opinion(b"x", ambiguous).accepts) == (
        "earley",
        True,
    )
    assert not second_opinion(b"y", ambiguous).accepts
    assert second_opinion(b"x" * 30_000, ambiguous).parser is None


def test_a_disagreement_shows() -> None:
    # Python's patterns take the first alternative that fits, LLGuidance's the longest.
    grammar = lark('start: A "c"\nA: /a|ab/')
    complete = prefix.check(b"abc", grammar).status == "complete"

    assert complete
    assert second_opinion(b"abc", grammar).contradicts(complete)


def test_warnings_of_python_patterns_stay_inside() -> None:
    with warnings.catch_warnings(record=True) as caught:
        second_opinion(b"a", lark("start: /[[a]/"))
    assert not caught
