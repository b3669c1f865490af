"""Drafts: what is guessed, how much of it is worth a pass, and what passes and guesses have cost so far."""

import pytest

from constrained_agent.decode.draft import MAX_DRAFT, SPELLED, Drafter, PassCosts, Record
from constrained_agent.decode.lookup import SUFFIXES, Lookup
from constrained_agent.decode.needs import Link, Unconstrained
from constrained_agent.grammar.sources import Grammar

FREE = Unconstrained(100, [99])
CHEAP = [1.0, 1.0, 1.0, 1.0]


class Counting:
    """Guesses that each number is followed by the next one."""

    kind = "counting"

    def __init__(self, cost_s=0.0):
        self.cost_s = cost_s
        self.text = []

    def extend(self, ids):
        self.text += ids

    def guesses(self, ahead, state):
        return [(self.kind, (*self.text, *ahead)[-1] + 1)]


def counting(costs=CHEAP, start=0, **more):
    drafter = Drafter([Counting(**more)], PassCosts(list(costs)))
    drafter.extend([start])
    return drafter


def tokens(links):
    return [link.token for link in links]


def following(lookup, ahead=()):
    return list(lookup.following(ahead))


def test_what_followed_the_longest_end_comes_first():
    lookup = Lookup()
    lookup.extend([1, 2, 3, 4, 5, 6, 7, 8, 9, 4, 5, 11, 3, 4, 5])
    assert following(lookup) == [(3, 6), (2, 11), (1, 11)]
    assert following(lookup, [6]) == [(3, 7), (2, 7), (1, 7)]
    lookup.extend([99])
    assert following(lookup) == []


def test_the_last_of_several_places_counts_and_never_the_end_itself():
    lookup = Lookup()
    lookup.extend([1, 2, 3, 1, 2, 4, 1, 2])
    assert following(lookup)[0] == (2, 4)


def test_another_text_is_known_but_not_gone_on_with():
    lookup = Lookup()
    lookup.extend([1, 2, 3])
    lookup.add([7, 8, 9])
    assert following(lookup) == []
    assert following(lookup, [7]) == [(1, 8)]
    lookup.extend([8])
    assert following(lookup) == [(1, 9)]


@pytest.mark.parametrize(
    ("before", "now"),
    [([1, 2, 3], [1, 2, 3, 4]), ([1, 2, 3], [1, 2]), ([1, 2, 3], [1, 5, 3]), ([], [1]), ([1, 2], [])],
)
def test_a_new_prompt_goes_on_from_what_it_shares_with_the_old_text(before, now):
    lookup, fresh = Lookup(), Lookup()
    lookup.begin(before)
    lookup.begin(now)
    fresh.extend(now)
    lookup.extend([41, 42])
    fresh.extend([41, 42])
    for ahead in ([], [1], [41], now[:2]):
        assert set(following(fresh, ahead)) <= set(following(lookup, ahead))
    longest = (*now, 41, 42)[-SUFFIXES[0] :]
    assert following(lookup, [*longest, 50]) == []


def test_a_chain_is_as_long_as_it_pays():
    assert len(counting().chain(FREE, 1, 100)) == 7, (
        "with one half at each, seven come true in one of 128 cases"
    )
    assert counting([1.0, 4.0, 8.0, 12.0]).chain(FREE, 1, 100) == []
    assert len(counting([1.0, 1.9, 3.0, 4.0]).chain(FREE, 1, 100)) < 7


def test_kinds_of_guesses_that_hold_get_longer_and_those_that_fail_stop_until_they_are_forgotten():
    drafter = counting()
    for _ in range(60):
        drafter.judged([Link(1, (), Counting.kind)] * 12, 12, waited=False)
    assert tokens(drafter.chain(FREE, 1, 100)) == list(range(1, MAX_DRAFT + 1))
    costly = counting([1.0, 1.4, 1.5, 1.9])
    for _ in range(60):
        costly.judged([Link(1, (), Counting.kind)], 0, waited=False)
    assert costly.chain(FREE, 1, 100) == []
    for _ in range(2_000):
        costly.judged([], 0, waited=False)
    assert costly.chain(FREE, 1, 100) != []


def test_nothing_is_known_of_guesses_behind_a_wrong_one():
    record = Record()
    drafter = counting()
    drafter._record = record
    for _ in range(60):
        drafter.judged([Link(1, (), "a"), Link(2, (), "b"), Link(3, (), "c")], 1, waited=False)
    assert record.chance("a") > 0.9
    assert record.chance("b") < 0.1
    assert record.chance("c") == 0.5


def test_a_costly_guess_is_asked_for_while_it_pays():
    assert len(counting(cost_s=0.1).chain(FREE, 1, 100)) == 3, (
        "after three halvings a pass of 1 s is worth 0.0625 s"
    )
    assert counting(cost_s=1.0).chain(FREE, 1, 100) == []


def test_no_more_is_guessed_than_the_text_may_have():
    assert len(counting().chain(FREE, 1, 3)) == 3
    assert counting().chain(FREE, 1, 0) == []


def test_an_end_is_never_guessed():
    assert tokens(counting(start=96).chain(FREE, 1, 100)) == [97, 98]


def test_forced_tokens_join_a_guess_and_forbidden_guesses_are_left_out(tiny_runtime):
    encode = tiny_runtime.tokenizer.encode_plain
    made = tiny_runtime.grammar_constraint(Grammar("g", "lark", 'start: ("a" "bc de" | "x") "y"'))
    (a,), (x,), (y,) = encode("a"), encode("x"), encode("y")

    class Both:
        kind, cost_s = "both", 0.0

        def extend(self, ids):
            pass

        def guesses(self, ahead, state):
            return [("bad", y), ("good", a), ("late", x)]

    (link,) = Drafter([Both()], PassCosts(list(CHEAP))).chain(made, 1, 100)
    assert (link.token, link.kind) == (a, "good")
    assert tiny_runtime.tokenizer.bytes_of(link.forced) == b"bc dey"


def test_a_text_that_must_come_is_guessed_where_its_tokens_are_open(tiny_runtime):
    """`"\\n" "\\n"*`: the first byte is a newline, and several tokens begin with one."""
    made = tiny_runtime.grammar_constraint(Grammar("g", "lark", r'start: "\n" /\n*/ "end"'))
    assert made.forced() == []
    links = Drafter([], PassCosts(list(CHEAP))).chain(made, 1, 100)
    assert tokens(links) == tiny_runtime.tokenizer.encode_plain("\n")
    assert links[0].kind == SPELLED


def test_waiting_for_guesses_ends_where_they_fail_and_is_tried_again():
    drafter = counting([1.0, 1.4, 1.5, 1.9])
    drafter.timed(1, 1.0, 0.1)
    assert drafter.waits()
    for _ in range(60):
        drafter.judged([Link(1, (), "x")], 0, waited=True)
    assert not drafter.waits()
    assert any(drafter.waits() for _ in range(1_000))
    idle = counting()
    for _ in range(200):
        idle.timed(1, 1.0, 5.0)
    assert not idle.waits()


def test_costs_between_and_beyond_what_was_measured():
    costs = PassCosts([1.0, 4.0, 4.0, 6.0])
    assert [costs.of(n) for n in (1, 2, 6, 10, 14)] == [1.0, 2.0, 4.0, 5.0, 7.0]


def test_costs_are_learned_from_passes():
    costs = PassCosts()
    assert costs.of(4) == pytest.approx(1.4 * costs.of(1))
    for _ in range(60):
        costs.observe(1, 0.02)
        costs.observe(12, 0.022)
        costs.observe(500, 9.0)
    assert costs.of(1) == pytest.approx(0.02)
    assert costs.of(12) == pytest.approx(0.022)
    assert costs.of(4) == pytest.approx(0.028)
