"""mlx-lm's own loop beside the agent's: the same text, the grammar kept, a known text written to the byte."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import mlx.core as mx
import numpy as np
import pytest

from constrained_agent.decode.generate import generate
from constrained_agent.decode.sampling import Sampling
from constrained_agent.evals.speed_arms import Endless
from constrained_agent.grammar.matcher import EngineTokenizer
from constrained_agent.grammar.sources import Grammar, from_regex
from constrained_agent.model.plain import MaskProcessor, Plain
from constrained_agent.model.session import Session
from constrained_agent.model.teacher import Script, TaughtProcessor, TaughtSession

PROMPT = [151644, 872, 198, 6023, 151645, 198, 9, 8, 7, 6, 5]
N = 24


@pytest.fixture
def plain(tiny_loaded):
    return Plain(tiny_loaded)


def ours(model, constraint, max_tokens=N, prompt=PROMPT):
    return generate(model, constraint, prompt, sampling=Sampling(temperature=0.0), max_tokens=max_tokens)


def test_greedy_text_equals_ours_at_off(plain, tiny_runtime):
    by_mlx_lm = plain.write(PROMPT, max_tokens=N)
    by_us = ours(tiny_runtime.session, Endless(tiny_runtime.tokenizer.vocab_size))
    assert by_mlx_lm.tokens == by_us.tokens
    assert len(by_us.tokens) == by_mlx_lm.n_steps == by_us.model_steps == N
    assert by_us.stop_reason == "length"


def test_times_are_counted_from_the_prompts_end(plain):
    done = plain.write(PROMPT, max_tokens=N)
    assert len(done.times_s) == N
    assert list(done.times_s) == sorted(done.times_s)
    assert done.times_s[0] > 0
    assert done.prefill_s > 0


def test_a_repeated_prompt_is_in_the_cache(plain):
    first = plain.write(PROMPT, max_tokens=N)
    again = plain.write(PROMPT, max_tokens=N)
    other = plain.write([*PROMPT[:6], 1, 2, 3], max_tokens=N)
    assert (first.n_reused, again.n_reused, other.n_reused) == (0, len(PROMPT) - 1, 6)
    assert again.tokens == first.tokens != other.tokens


def test_a_prompt_of_one_id(plain, tiny_loaded):
    assert (
        plain.write(PROMPT[:1], max_tokens=3).tokens
        == Plain(tiny_loaded).write(PROMPT[:1], max_tokens=3).tokens
    )


def test_an_interrupted_run_leaves_nothing_behind(plain):
    whole = plain.write(PROMPT, max_tokens=N)

    def interrupted(tokens: mx.array, logits: mx.array) -> mx.array:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plain.write(PROMPT, max_tokens=N, processors=[interrupted])
    after = plain.write(PROMPT, max_tokens=N)
    assert (after.n_reused, after.tokens) == (0, whole.tokens)


def test_an_end_token_ends_the_text(plain):
    free = plain.write(PROMPT, max_tokens=N)
    ended = plain.write(PROMPT, max_tokens=N, end_ids=[free.tokens[3]])
    n = free.tokens.index(free.tokens[3])
    assert (ended.tokens, ended.end_token, ended.n_steps) == (free.tokens[:n], free.tokens[3], n + 1)


@pytest.mark.parametrize(
    ("grammar", "text"),
    [
        (from_regex("a{3}b"), "aaab"),
        (Grammar("g", "lark", 'start: "*** End" ("\\n" "Patch")'), "*** End\nPatch"),
    ],
)
def test_the_processor_keeps_to_a_grammar_and_ends_with_it(plain, tiny_runtime, grammar, text):
    processor = MaskProcessor(tiny_runtime.grammar_constraint(grammar))
    end_ids = tiny_runtime.tokenizer.end_ids
    done = plain.write(PROMPT, max_tokens=N, processors=[processor], end_ids=end_ids)
    assert tiny_runtime.tokenizer.decode(done.tokens) == text
    assert done.end_token in end_ids
    assert len(processor.mask_us) == len(done.tokens) + 1


def test_what_the_processor_writes_is_a_prefix_of_the_grammar(plain, tiny_runtime):
    grammar = Grammar("g", "lark", 'start: ("a" | "b" | "c" | " ")* "."')
    constraint = tiny_runtime.grammar_constraint(grammar)
    done = plain.write(PROMPT, max_tokens=N, processors=[MaskProcessor(constraint.fresh())])
    assert constraint.accepted_prefix(done.tokens) == len(done.tokens) > 0


def test_ids_past_the_vocabulary_are_forbidden(tiny_runtime):
    processor = MaskProcessor(Endless(tiny_runtime.tokenizer.vocab_size))
    masked = processor(mx.array(PROMPT), mx.zeros((1, tiny_runtime.session.logit_width)))
    allowed = np.isfinite(np.array(masked[0]))
    assert allowed[: tiny_runtime.tokenizer.vocab_size].all()
    assert not allowed[tiny_runtime.tokenizer.vocab_size :].any()


class Words:
    """Bytes, and some words that the encoder prefers from the left."""

    token_bytes = (*(bytes([byte]) for byte in range(256)), b"ab", b"bc", b"cd")

    def encode(self, data: bytes) -> Sequence[int]:
        ids = []
        while data:
            ids.append(next((i for i in (256, 257, 258) if data.startswith(self.token_bytes[i])), data[0]))
            data = data[len(self.token_bytes[ids[-1]]) :]
        return ids


def test_a_script_goes_on_from_wherever_it_was_cut():
    words = Words()
    script = Script(b"abcd!", words.encode, words.token_bytes, 999)
    assert script.ids == (256, 258, ord("!"))
    assert [script.next(at) for at in (0, 2, 4, 5)] == [256, 258, ord("!"), 999]
    assert script.next(1) == 257  # after `a` alone: `bc`, and then `d`
    assert script.next(3) == ord("d")
    assert (script.after(0, ord("a")), script.after(1, 257), script.after(0, 257)) == (1, 3, None)


def script_of(runtime, text: str) -> Script:
    tokenizer = runtime.tokenizer
    encode = partial(EngineTokenizer.encode_bytes, EngineTokenizer(tokenizer))
    return Script(text.encode(), encode, tokenizer.token_bytes, tokenizer.end_ids[0])


TEXT = "Naïve text: 12 + 3 = 15.\n\tfür _alle_ ✓\n"


def test_plain_mlx_lm_writes_a_known_text(plain, tiny_runtime):
    script = script_of(tiny_runtime, TEXT)
    done = plain.write(PROMPT, max_tokens=len(script.ids), processors=[TaughtProcessor(script)])
    assert done.tokens == script.ids
    assert tiny_runtime.tokenizer.decode(done.tokens) == TEXT


@pytest.mark.parametrize("grammar", [None, Grammar("g", "lark", 'start: "Naïve t" /(.|\\n)*/')])
def test_a_session_writes_a_known_text(tiny_runtime, grammar):
    """Freely, where passes are queued on tokens that are not known yet; and behind forced text."""
    script = script_of(tiny_runtime, TEXT)
    constraint = tiny_runtime.grammar_constraint(grammar) if grammar else tiny_runtime.unconstrained()
    done = ours(TaughtSession(tiny_runtime.session, script), constraint, max_tokens=100)
    assert tiny_runtime.tokenizer.decode(done.tokens) == TEXT
    assert done.end_token == tiny_runtime.tokenizer.end_ids[0]
    assert any(done.forced) == (grammar is not None)


def test_logits_behind_a_wrong_guess_stay_as_they_are(tiny_loaded, tiny_runtime):
    script = script_of(tiny_runtime, TEXT)
    real, taught = Session(tiny_loaded), TaughtSession(session := Session(tiny_loaded), script)
    wrong = [script.ids[0], 5, script.ids[1]]
    with real.running():
        real.prefill(PROMPT)
        expected = np.array(real.forward([PROMPT[-1], *wrong]))
    with taught.running():
        taught.prefill(PROMPT)
        rows = np.array(taught.forward([PROMPT[-1], *wrong]))
        assert rows[:2].argmax(axis=1).tolist() == list(script.ids[:2])
        assert np.allclose(rows[2:], expected[2:], atol=1e-4)
        taught.cut(2)
        assert int(np.array(taught.forward([script.ids[1]])[-1]).argmax()) == script.ids[2]
    assert list(session.ids) == [*PROMPT, *script.ids[:2]]
