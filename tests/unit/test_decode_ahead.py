"""Guesses in the passes of a generation: the text is the same with and without, and the cache holds that text."""

import pytest

from constrained_agent.decode.draft import Drafter, PassCosts
from constrained_agent.decode.generate import generate
from constrained_agent.decode.lookup import Lookup
from constrained_agent.decode.sampling import Sampling
from constrained_agent.grammar.sources import Grammar, load
from tests.fakes import NoisyModel, ScriptedModel, structural_ids

PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n def area(width, height):\n-    return width + height\n"
PATCH += "+    return width * height\n*** End Patch"


class Repeating(Lookup):
    """A lookup as a source of its own."""

    kind, cost_s = "lookup", 0.0

    def guesses(self, ahead, state):
        return self.following(ahead)


class Eager(Drafter):
    """Guesses as long as it can, whatever it is worth, and always waits for the next token or never does."""

    def __init__(self, prompt, waits=True):
        lookup = Repeating()
        lookup.extend(prompt)
        super().__init__([lookup], PassCosts([1.0, 1.0, 1.0, 1.0]))
        self._always = waits

    def waits(self):
        return self._always


def write(model, constraint, prompt, *, drafts=None, temperature=0.0, seed=0, max_tokens=120):
    sampling = Sampling(temperature=temperature, seed=seed)
    return generate(model, constraint, prompt, sampling=sampling, max_tokens=max_tokens, drafts=drafts)


def scripted(runtime, answer):
    return ScriptedModel(runtime.tokenizer, runtime.session.logit_width, [answer])


def test_a_repeated_text_takes_fewer_steps(tiny_runtime):
    prompt = tiny_runtime.tokenizer.encode_plain(f"Write this:\n{PATCH}\n")
    constraint = tiny_runtime.grammar_constraint(load("apply_patch_strict"))
    plain, drafted = (
        write(scripted(tiny_runtime, PATCH), constraint.fresh(), prompt, drafts=drafts)
        for drafts in (None, Eager(prompt))
    )
    assert tiny_runtime.tokenizer.decode(drafted.tokens) == PATCH
    assert drafted.tokens == plain.tokens
    assert drafted.forced == plain.forced
    assert drafted.model_steps < plain.model_steps / 3
    assert 0 < drafted.accepted_tokens <= drafted.drafted_tokens


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("temperature", [0.0, 0.9])
@pytest.mark.parametrize("level", ["off", "words", "patch"])
def test_the_text_is_the_same_with_and_without(tiny_runtime, temperature, level, waits):
    """The real model, whose guesses fail and hold as they come; the cache then holds the text and nothing else."""
    prompt = tiny_runtime.tokenizer.encode_plain("ab ab ab ab the same again the same again " * 3)
    constraint = {
        "off": tiny_runtime.unconstrained,
        "words": lambda: tiny_runtime.grammar_constraint(
            Grammar("words", "lark", 'start: ("ab " | "the " | "same ")+')
        ),
        "patch": lambda: tiny_runtime.grammar_constraint(load("apply_patch_strict")),
    }[level]()
    n_drafted = 0
    for seed in range(3 if temperature else 1):
        texts = []
        for drafts in (None, Eager(prompt, waits)):
            done = write(
                tiny_runtime.session,
                constraint.fresh(),
                prompt,
                drafts=drafts,
                temperature=temperature,
                seed=seed,
            )
            texts.append(done.tokens)
            whole = (*prompt, *done.tokens, *([] if done.end_token is None else [done.end_token]))
            held = tiny_runtime.session.ids
            assert held == whole[: len(held)] or held[:-1] == whole, "the text, or one pass that was queued"
        assert texts[0] == texts[1]
        n_drafted += done.drafted_tokens
    assert n_drafted or level != "words", "the others write noise, which does not repeat itself"


@pytest.mark.parametrize("max_tokens", range(1, 30, 4))
def test_the_limit_is_kept_with_drafts(tiny_runtime, max_tokens):
    prompt = tiny_runtime.tokenizer.encode_plain("one two three four five six seven " * 4)
    done = write(
        scripted(tiny_runtime, "one two three four five six seven " * 4),
        tiny_runtime.unconstrained(),
        prompt,
        drafts=Eager(prompt),
        max_tokens=max_tokens,
    )
    assert len(done.tokens) == max_tokens


def test_noise_with_drafts(tiny_runtime):
    """A model that writes structure now and then, whose noise is drawn anew at each pass."""
    structure = structural_ids(tiny_runtime.tokenizer)
    prompt = tiny_runtime.tokenizer.encode_plain(PATCH)
    constraint = tiny_runtime.grammar_constraint(load("apply_patch_strict"))
    for seed in range(8):
        done = write(
            NoisyModel(tiny_runtime.session, structure, seed=seed),
            constraint.fresh(),
            prompt,
            drafts=Eager(prompt),
            temperature=1.0,
        )
        assert done.complete
        assert done.drafted_tokens >= done.accepted_tokens


def test_work_is_told_apart_by_whether_a_pass_ran(tiny_runtime):
    prompt = tiny_runtime.tokenizer.encode_plain("a b c")
    constraint = tiny_runtime.grammar_constraint(load("apply_patch_strict"))
    done = write(tiny_runtime.session, constraint, prompt)
    assert len(done.hidden_us) == len(done.exposed_us) >= done.model_steps
    assert sum(done.hidden_us) >= sum(done.mask_us) * 0.5
    assert min(done.exposed_us) >= 0
