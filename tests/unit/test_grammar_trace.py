"""A text seen character by character."""

from __future__ import annotations

from constrained_agent.grammar import prefix, trace
from constrained_agent.grammar.sources import Grammar, load

PATCH = load("apply_patch")


def lark(text: str) -> Grammar:
    return Grammar("test", "lark", text)


def test_places_choices_and_forced_characters() -> None:
    steps = trace.steps("aé\nx".encode(), lark('start: "a" /[b-dé]/ "\\n" "x"'))

    assert [(step.byte, step.line, step.column, step.text) for step in steps] == [
        (0, 1, 1, "a"),
        (1, 1, 2, "é"),
        (3, 1, 3, "\n"),
        (4, 2, 1, "x"),
    ]
    assert [step.n_allowed for step in steps] == [1, 4, 1, 1]
    assert [step.forced for step in steps] == [True, False, True, True]
    assert all(step.taken for step in steps)


def test_a_character_with_a_choice_inside_is_not_forced() -> None:
    forced, chosen = trace.steps("éé".encode(), lark('start: "é" /[à-ü]/'))

    assert (forced.n_allowed, forced.forced) == (1, True)
    assert (chosen.n_allowed, chosen.forced) == (1, False)


def test_it_ends_with_the_character_that_is_refused() -> None:
    steps = trace.steps(b"*** Begin Patch\nxyz", PATCH)

    assert len(steps) == 17
    assert all(step.taken for step in steps[:-1])
    last = steps[-1]
    assert (last.text, last.line, last.column, last.taken) == ("x", 2, 1, False)
    assert last.byte == prefix.check(b"*** Begin Patch\nxyz", PATCH).valid_bytes


def test_where_the_text_could_have_ended() -> None:
    steps = trace.steps(b"aab", lark('start: "a"+ "b"?'))

    assert [step.could_end for step in steps] == [False, True, True]
    assert not any(step.forced for step in steps[1:])


def test_special_tokens_are_one_step() -> None:
    steps = trace.steps(b"x<call>", lark('start: "x" <call>'), specials=["<call>"])

    assert [(step.text, step.column) for step in steps] == [("x", 1), ("<call>", 2)]
    assert steps[1].forced


def test_bytes_that_are_no_character_and_dead_ends() -> None:
    assert [step.text for step in trace.steps(b"a\xff", lark("start: /.+/"))] == ["a", "\udcff"]
    dead = trace.steps(b"ab", lark('start: "a" X\nX: "ab" & "cd"'))
    assert [(step.text, step.n_allowed, step.taken) for step in dead] == [("a", 1, True), ("b", 0, False)]
    assert trace.steps(b"", PATCH) == []
