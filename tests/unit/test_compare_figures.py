"""What a comparison counts."""

import json
import random
from dataclasses import replace

import pytest

from constrained_agent.evals.compare import arms, outcomes
from constrained_agent.evals.compare.figures import KINDS, PRIMARY, arm_figures, figures
from constrained_agent.evals.compare.rates import COMPARED, RATES
from tests.kept import random_records, record


def test_figures_do_not_depend_on_the_order_of_records():
    records = random_records(150)
    found = figures(records)
    for seed in range(3):
        random.Random(seed).shuffle(records)
        assert json.dumps(figures(records)) == json.dumps(found)


def test_figures_count_every_record_once():
    records = random_records(150)
    found = figures(records)["kinds"]
    counted = [arm for kind in found.values() for arm in kind["arms"].values()]
    assert sum(arm["n"] for arm in counted) == len(records)
    for arm in counted:
        assert sum(arm["outcomes"].values()) == arm["n"]
        rates = counts(arm)
        assert rates["right"] + rates["valid_but_wrong"] == rates["lands"]
        assert rates["right"] == arm["outcomes"].get("passed", 0)
        assert rates["stopped"] == arm["outcomes"].get("cut", 0) + arm["outcomes"].get("loop", 0)


def counts(found):
    return {name: one["k"] for name, one in found["rates"].items()}


SMALL = [
    record("a", "off", outcome="json_invalid", saved="passed"),
    record("b", "off", outcome="passed"),
    record("c", "off", outcome="patch_unparsable", saved="tests_failed"),
    record("a", "grammar", outcome="passed"),
    record("b", "grammar", outcome="tests_failed"),
    record("d", "grammar", outcome="context_not_found", parses=True),
    record("e", "grammar", outcome="cut", parses=True),
]


def test_figures_of_a_small_example():
    found = figures(SMALL)["kinds"]["patch"]
    off, grammar = found["arms"]["off"], found["arms"]["grammar"]
    assert counts(off) == {
        "parses": 1,
        "lands": 1,
        "right": 1,
        "right_leniently": 2,
        "valid_but_wrong": 0,
        "stopped": 0,
    }
    assert counts(grammar) == {
        "parses": 3,
        "lands": 2,
        "right": 1,
        "right_leniently": 1,
        "valid_but_wrong": 1,
        "stopped": 1,
    }
    assert off["saved"] == {"passed": 1, "tests_failed": 1}
    differences = {one["rate"]: (one["n"], one["gained"], one["lost"]) for one in found["differences"]}
    assert differences == {
        "parses": (2, 1, 0),
        "lands": (2, 1, 0),
        "right": (2, 1, 1),
        "right_leniently": (2, 0, 1),
        "valid_but_wrong": (2, 1, 0),
    }


def test_what_it_cost():
    found = arm_figures(SMALL[:3])
    assert (found["tokens"], found["model_steps"], found["steps_per_token"]) == (30, 21, 0.7)
    assert found["per_item"] == {"tokens": 10, "steps": 7, "s": 0.25, "prefill_s": 0.5}
    assert found["per_solved_item"] == {"tokens": 30, "steps": 21, "s": 0.75}
    waited = [replace(one, written=replace(one.written, wait_s=0.2)) for one in SMALL[:3]]
    found = arm_figures(waited)
    assert (found["decode_s"], found["wait_s"], found["prefill_s"]) == (0.8, 0.6, 0.9)
    assert found["per_item"] == {"tokens": 10, "steps": 7, "s": 0.45, "prefill_s": 0.3}
    assert found["per_solved_item"]["s"] == 1.35
    nothing = arm_figures([record(outcome="no_call")])
    assert nothing["per_solved_item"] == {"tokens": None, "steps": None, "s": None}
    assert nothing["mask_us"] == {}


@pytest.mark.parametrize("outcome", ["cut", "loop"])
def test_what_nobody_runs_does_not_parse(outcome):
    """A grammar brings a cut answer to a readable end; the record says so, the rate does not count it."""
    one = record(outcome=outcome, parses=True)
    assert one.judgement.parses
    assert not RATES["parses"].of(one)
    assert RATES["stopped"].of(one)


def test_what_went_wrong_before_a_limit_came_was_ended_early_all_the_same():
    """The outcome is the first thing that went wrong; that nothing ended by itself is true nevertheless."""
    one = record(outcome="schema_violated", parses=True)
    one = replace(one, written=replace(one.written, whole=False))
    assert RATES["stopped"].of(one)
    assert not RATES["parses"].of(one)


def test_calls_are_told_by_set():
    records = [
        record("a", "off", kind="call", outcome="passed", of_set="own"),
        record("b", "off", kind="call", outcome="tests_failed", of_set="multiple"),
        record("c", "off", kind="call", outcome="passed", of_set="multiple"),
    ]
    found = figures(records)["kinds"]["call"]["arms"]["off"]
    assert list(found["sets"]) == ["multiple", "own"]
    assert {name: (one["n"], counts(one)["right"]) for name, one in found["sets"].items()} == {
        "multiple": (2, 1),
        "own": (1, 1),
    }
    assert (found["n"], found["n_items"]) == (3, 3)


def test_the_comparisons_are_those_of_before_and_after():
    records = [record("a", arm.name) for arm in arms.ARMS]
    found = figures(records)["kinds"]["patch"]
    made = [(one["first"], one["second"], one["rate"]) for one in found["differences"]]
    assert len(made) == len(set(made))
    assert {(first, second) for first, second, _ in made} == {
        ("off", "grammar"),
        ("off", "located"),
        ("grammar", "located"),
        ("off-json", "grammar-json"),
        ("off-json", "located-json"),
        ("grammar-json", "located-json"),
        ("off", "off-json"),
        ("grammar", "grammar-json"),
        ("located", "located-json"),
        *((old, new) for old in ("regex", "prompt-json") for new in ("off", "grammar", "located")),
    }
    assert {rate for _, _, rate in made} == set(COMPARED)


@pytest.mark.parametrize("kind", KINDS)
def test_the_primary_comparison_is_one_of_them(kind):
    names = ("off", "grammar") if kind == "call" else ("off", "grammar", "located")
    found = figures([record("a", arm, kind=kind) for arm in names])["kinds"][kind]
    assert tuple(found["primary"].values()) == PRIMARY[kind]
    assert [one for one in found["differences"] if found["primary"].items() <= one.items()]


@pytest.mark.parametrize("arm", arms.ARMS, ids=lambda arm: arm.name)
def test_promises(arm):
    """Each broken promise is counted where it was made."""
    kept = record("a", arm.name, outcome="passed")
    broken = [record(f"b{n}", arm.name, outcome=name) for n, name in enumerate(outcomes.OUTCOMES)]
    found = arm_figures([kept, *broken])["promises"]
    if arm.level == "off":
        assert found is None
        return
    syntax = {"unreadable": len(outcomes.UNREADABLE), "schema violated": 1}
    place = {"file or lines not found": 2, "ambiguous": 1} if arm.level == "located" else {}
    assert found == {"n": len(broken) + 1, "broken": {**syntax, **place}}
    assert not any(arm_figures([kept])["promises"]["broken"].values())


def test_a_promise_that_was_broken_on_the_way_of_a_run_counts():
    one = record("a", "located", kind="run", outcome="passed")
    one = replace(one, written=replace(one.written, failures={"patch_unparsable": 2, "ambiguous": 1}))
    assert arm_figures([one])["promises"] == {
        "n": 1,
        "broken": {"unreadable": 1, "schema violated": 0, "file or lines not found": 0, "ambiguous": 1},
    }


def test_kinds_of_errors_are_told_where_they_say_more_than_the_outcome():
    found = arm_figures(
        [
            record("a", outcome="context_not_found", error_kind="context_not_found"),
            record("b", outcome="context_not_found", error_kind="eof_mismatch"),
            record("c", outcome="patch_unparsable", error_kind="bad_line"),
            record("d", outcome="patch_unparsable", error_kind="bad_line"),
        ]
    )
    assert found["kinds"] == {"patch_unparsable: bad_line": 2, "context_not_found: eof_mismatch": 1}


def test_what_the_server_makes_of_calls_is_summed():
    asked = [
        record(str(n), kind="call", server={"calls": 2, "dropped": n, "broken": 1 - n}) for n in range(2)
    ]
    assert arm_figures([*asked, record("c", kind="call")])["server"] == {
        "calls": 4,
        "dropped": 1,
        "broken": 1,
    }
    assert arm_figures([record("c", kind="call")])["server"] is None
