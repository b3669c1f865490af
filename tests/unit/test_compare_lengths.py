"""Items that no answer of the allowed length can solve are told beforehand."""

import pytest

from constrained_agent.cli.compare_view import too_long as told
from constrained_agent.evals import tasks
from constrained_agent.evals.compare import arms, items
from constrained_agent.evals.compare.lengths import too_long
from tests.compared import CALL, TASK, raw


def long(runtime, arm_names, max_tokens, *, agentic=False):
    found = [TASK, tasks.load("ferry")]
    groups = items.groups(found, [] if agentic else [CALL], arms.parse(arm_names), 2, 0, agentic=agentic)
    return too_long(runtime, groups, max_tokens)


def test_long_references_are_named_once(tiny_runtime):
    n_tokens = len(tiny_runtime.tokenizer.encode(raw(TASK.reference.rstrip("\n"))))
    assert long(tiny_runtime, ["off", "located", "prompt-json"], 2_000) == []
    assert long(tiny_runtime, ["off", "located"], n_tokens + 2) == ["ferry"]
    assert long(tiny_runtime, ["off", "located"], n_tokens - 2) == [TASK.name, "ferry"]
    assert long(tiny_runtime, ["off-json"], n_tokens + 2) == [TASK.name, "ferry"], "as a string it is longer"
    assert long(tiny_runtime, ["off"], 5) == [TASK.name, "ferry", CALL.id]


@pytest.mark.parametrize(("arm", "agentic"), [("regex", False), ("off", True)])
def test_without_a_reference_nothing_is_said(tiny_runtime, arm, agentic):
    assert long(tiny_runtime, [arm], 1, agentic=agentic) == []


def test_how_it_is_told():
    names = [f"task{n}" for n in range(10)]
    assert told(names[:2], 200).endswith("of 2 items: task0, task1 (--max-tokens)")
    assert told(names, 200).endswith(
        "of 10 items: task0, task1, task2, task3, task4, task5, task6, task7 and 2 more (--max-tokens)"
    )
