"""Drafts: what is guessed, that the text is the same with and without, and that the cache holds what was written."""

import pytest

from constrained_agent.decode.draft import MAX_DRAFT, Lookup, PassCosts
from constrained_agent.decode.generate import generate
from constrained_agent.decode.sampling import Sampling
from constrained_agent.grammar.sources import Grammar, load
from tests.fakes import NoisyModel, ScriptedModel, structural_ids

PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n def area(width, height):\n-    return width + height\n"
PATCH += "+    return width * height\n*** End Patch"


def write(runtime, model, constraint, prompt, *, drafts, **more):
    sampling = more.pop("sampling", Sampling())
    if drafts is not None:
        drafts.extend(prompt)
    return generate(model, constraint, prompt, sampling=sampling, max_tokens=120, drafts=drafts, **more)


def scripted(runtime, answer):
    return ScriptedModel(runtime.tokenizer, runtime.session.logit_width, [answer])


def test_the_longest_end_that_stood_before_is_followed():
    lookup = Lookup()
    lookup.extend([1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 9, 3, 4])
    assert lookup.propose(1)[:3] == [5, 6, 7]
    lookup.extend([99])
    assert lookup.propose(1) == []


def test_the_last_of_several_places_is_followed():
    lookup = Lookup()
    lookup.extend([1, 2, 3, 1, 2, 4, 1, 2])
    assert lookup.propose(1)[0] == 4


def test_guesses_that_fail_get_shorter_and_those_that_hold_longer():
    lookup = Lookup()
    lookup.extend([1, 2, *range(3, 40), 1, 2])
    first = len(lookup.propose(1))
    for _ in range(20):
        lookup.judged(first, 0)
    assert lookup.propose(1) == []
    for _ in range(40):
        lookup.judged(4, 4)
    assert len(lookup.propose(1)) > first
    free = Lookup(PassCosts([1.0, 1.0, 1.0, 1.0]))
    free.extend([1, 2, *range(3, 40), 1, 2])
    free.judged(12, 12)
    assert len(free.propose(1)) == MAX_DRAFT


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


def test_a_repeated_text_takes_fewer_steps(tiny_runtime):
    prompt = tiny_runtime.tokenizer.encode_plain(f"Write this:\n{PATCH}\n")
    plain, drafted = (
        write(
            tiny_runtime,
            scripted(tiny_runtime, PATCH),
            tiny_runtime.grammar_constraint(load("apply_patch_strict")),
            prompt,
            drafts=drafts,
        )
        for drafts in (None, Lookup())
    )
    assert tiny_runtime.tokenizer.decode(drafted.tokens) == PATCH
    assert drafted.tokens == plain.tokens
    assert drafted.forced == plain.forced
    assert drafted.model_steps < plain.model_steps / 3


@pytest.mark.parametrize("temperature", [0.0, 0.9])
@pytest.mark.parametrize("level", ["off", "words", "patch"])
def test_the_text_is_the_same_with_and_without(tiny_runtime, temperature, level):
    """The real model, whose guesses fail and hold as they come; the cache then holds the text and nothing else."""
    prompt = tiny_runtime.tokenizer.encode_plain("ab ab ab ab the same again the same again " * 3)
    constraints = {
        "off": tiny_runtime.unconstrained,
        "words": lambda: tiny_runtime.grammar_constraint(
            Grammar("words", "lark", 'start: ("ab " | "the " | "same ")+')
        ),
        "patch": lambda: tiny_runtime.grammar_constraint(load("apply_patch_strict")),
    }
    for seed in range(6):
        texts = []
        for drafts in (None, Lookup()):
            done = write(
                tiny_runtime,
                tiny_runtime.session,
                constraints[level](),
                prompt,
                drafts=drafts,
                sampling=Sampling(temperature=temperature, seed=seed),
            )
            texts.append(done.tokens)
        assert texts[0] == texts[1]
        held = tiny_runtime.session.ids
        whole = (*prompt, *done.tokens)
        assert held == whole[: len(held)] or len(held) > len(whole)


def test_noise_with_drafts_is_the_same_noise(tiny_runtime):
    """Drafts that are checked under a model that writes structure now and then."""
    structure = structural_ids(tiny_runtime.tokenizer)
    prompt = tiny_runtime.tokenizer.encode_plain(PATCH)
    done = write(
        tiny_runtime,
        NoisyModel(tiny_runtime.session, structure, seed=3),
        tiny_runtime.grammar_constraint(load("apply_patch_strict")),
        prompt,
        drafts=Lookup(),
        sampling=Sampling(temperature=1.0),
    )
    assert done.complete
    assert done.drafted_tokens >= done.accepted_tokens
