"""Limits of a run: tokens left for an answer, and rounds of the same calls."""

import pytest

from constrained_agent.agent.budget import LEAST_TOKENS, RUN_TOKENS, Budget, Limits
from constrained_agent.messages import ToolCall
from tests.agents import ScriptedAgent, call


@pytest.mark.parametrize(
    ("limits", "written", "room"),
    [
        (Limits(max_run_tokens=1_000), 0, 400),
        (Limits(max_run_tokens=1_000), 700, 300),
        (Limits(max_run_tokens=1_000), 990, LEAST_TOKENS),
        (Limits(max_run_tokens=1_000), 1_010, LEAST_TOKENS),
        (Limits(max_turns=8), 10_000_000, 400),
        (Limits(max_turns=0), RUN_TOKENS - 100, 100),
    ],
)
def test_an_answer_takes_no_more_than_is_left(limits, written, room):
    assert Budget(limits, n_tokens=written).room(400) == room


def test_the_room_is_never_more_than_asked_for():
    assert Budget(Limits(max_run_tokens=10)).room(20) == 20


@pytest.mark.parametrize("level", ["off", "grammar"])
@pytest.mark.parametrize("max_run_tokens", [50, 150, 300])
def test_a_run_keeps_to_its_tokens(tiny_runtime, root, level, max_run_tokens):
    """One answer, and the last words, used to be let off: 2,000 and 400 tokens over."""
    words = " ".join(f"word{i}" for i in range(900))
    answers = [call("list_dir", path="."), call("read_file", path="f.txt"), *[words] * 4]
    agent = ScriptedAgent(
        tiny_runtime, root, answers, level=level, max_tokens=1_000, max_turns=0, max_run_tokens=max_run_tokens
    )
    result = agent.run()
    assert result.exit_reason == "token_budget"
    assert max_run_tokens <= result.usage.generated_tokens <= max_run_tokens + 2 * LEAST_TOKENS


def repeats(names):
    budget = Budget(Limits())
    found = []
    for name in names:
        n = budget.repeats([ToolCall("id", name, {})])
        found.append((n, budget.warns(n)))
    return found


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("AAA", [(1, False), (2, True), (3, False)]),
        ("ABABAB", [(1, False)] * 3 + [(2, True), (2, False), (3, False)]),
        ("AABB", [(1, False), (2, True), (1, False), (2, True)]),
        ("ABCABCA", [(1, False)] * 5 + [(2, True), (2, False)]),
    ],
)
def test_a_round_is_warned_about_once(names, expected):
    assert repeats(names) == expected


def test_words_between_make_the_next_round_a_first_one():
    budget = Budget(Limits())
    for _ in range(2):
        assert not budget.warns(budget.repeats([ToolCall("id", "A", {})]))
        assert budget.warns(budget.repeats([ToolCall("id", "A", {})]))
        budget.forget_calls()
