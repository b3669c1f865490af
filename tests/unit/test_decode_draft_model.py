"""Guesses by a second model: the text stays the same, however good they are."""

import dataclasses
import json

import pytest

from constrained_agent.agent.runtime import Runtime
from constrained_agent.decode.draft import Drafter, PassCosts
from constrained_agent.decode.draft_model import ModelDrafts
from constrained_agent.decode.generate import generate
from constrained_agent.decode.sampling import Sampling
from constrained_agent.errors import ModelError
from constrained_agent.grammar.sources import Grammar
from constrained_agent.model.session import Session
from tests.fakes import NoisyModel, structural_ids

LETTERS = Grammar("letters", "lark", 'start: ("ab" | "cd" | "," | "x" /[0-9]+/ ";")+')


def write(runtime, constraint, prompt, drafts=None, temperature=0.0):
    return generate(
        runtime.session,
        constraint.fresh(),
        prompt,
        sampling=Sampling(temperature=temperature, seed=5),
        max_tokens=40,
        drafts=drafts,
    )


def drafter(model, runtime, prompt):
    source = ModelDrafts(model, runtime.tokenizer.vocab_size)
    source.begin(prompt)
    return Drafter([source], PassCosts([1.0, 1.0, 1.0, 1.0]))


@pytest.mark.parametrize("level", ["off", "letters"])
def test_a_model_that_guesses_for_itself_is_always_right(tiny_runtime, tiny_loaded, level):
    prompt = tiny_runtime.tokenizer.encode_plain("one two three four")
    letters = tiny_runtime.grammar_constraint(LETTERS)
    constraint = letters if level == "letters" else tiny_runtime.unconstrained()
    plain = write(tiny_runtime, constraint, prompt)
    done = write(tiny_runtime, constraint, prompt, drafter(Session(tiny_loaded), tiny_runtime, prompt))
    assert done.tokens == plain.tokens
    assert done.accepted_tokens >= 0.9 * done.drafted_tokens > 0
    assert done.model_steps < plain.model_steps / 2


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_model_that_guesses_badly_changes_nothing(tiny_runtime, tiny_loaded, temperature):
    prompt = tiny_runtime.tokenizer.encode_plain("one two three four")
    constraint = tiny_runtime.grammar_constraint(LETTERS)
    plain = write(tiny_runtime, constraint, prompt, temperature=temperature)
    bad = NoisyModel(Session(tiny_loaded), structural_ids(tiny_runtime.tokenizer), seed=1)
    done = write(tiny_runtime, constraint, prompt, drafter(bad, tiny_runtime, prompt), temperature)
    assert done.tokens == plain.tokens
    assert done.accepted_tokens < done.drafted_tokens


def test_a_text_longer_than_its_context_is_not_guessed(tiny_runtime, tiny_loaded):
    session = Session(dataclasses.replace(tiny_loaded, context_length=20))
    prompt = tiny_runtime.tokenizer.encode_plain("one two three four five")
    constraint = tiny_runtime.unconstrained()
    done = write(tiny_runtime, constraint, prompt, drafter(session, tiny_runtime, prompt))
    assert done.tokens == write(tiny_runtime, constraint, prompt).tokens
    assert 0 < done.drafted_tokens <= 20


def test_the_runtime_takes_a_model_of_the_same_vocabulary_only(tiny_loaded):
    runtime = Runtime(tiny_loaded)
    spec = json.loads(tiny_loaded.tokenizer_json)
    spec["added_tokens"][-1]["content"] = "<|other|>"
    with pytest.raises(ModelError, match="another vocabulary"):
        runtime.add_draft_model(dataclasses.replace(tiny_loaded, tokenizer_json=json.dumps(spec)))
    runtime.add_draft_model(tiny_loaded)
    prompt = runtime.tokenizer.encode_plain("one two three four")
    plain = write(runtime, runtime.unconstrained(), prompt)
    for _ in range(2):
        done = write(runtime, runtime.unconstrained(), prompt, runtime.drafts(prompt))
        assert done.tokens == plain.tokens
        assert done.accepted_tokens > 0
