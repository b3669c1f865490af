"""The token loop, over a model that writes from a script and over the tiny real one."""

import time

import numpy as np
import pytest

from constrained_agent.decode.generate import generate
from constrained_agent.decode.needs import Unconstrained
from constrained_agent.decode.sampling import Sampling
from constrained_agent.errors import BudgetError, DeadEndError, DecodeError, MatcherError
from constrained_agent.grammar.sources import Grammar, from_regex, load
from tests.fakes import ScriptedModel

PROMPT = [151644, 872, 198]
GREEDY = Sampling()


def scripted(runtime, *answers):
    return ScriptedModel(runtime.tokenizer, runtime.session.logit_width, answers)


def write(runtime, constraint, answer, max_tokens=100, **more):
    return generate(
        scripted(runtime, answer), constraint, PROMPT, sampling=GREEDY, max_tokens=max_tokens, **more
    )


def lark(runtime, text):
    return runtime.grammar_constraint(Grammar("test", "lark", text))


class Wrapped:
    """A constraint that is another one but for what a subclass changes."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def copy(self):
        return type(self)(self.inner.copy())


def test_writes_what_the_model_wants_where_it_may(tiny_runtime):
    done = write(tiny_runtime, lark(tiny_runtime, "start: /[a-z ]+/"), "hello world")
    assert tiny_runtime.tokenizer.decode(done.tokens) == "hello world"
    assert (done.stop_reason, done.complete, done.end_token) == ("end_token", True, 151645)


def test_the_mask_wins_over_the_model(tiny_runtime):
    done = write(tiny_runtime, lark(tiny_runtime, 'start: "yes" | "no"'), "maybe")
    assert tiny_runtime.tokenizer.decode(done.tokens) in ("yes", "no")
    assert (done.stop_reason, done.complete, done.end_token) == ("complete", True, None)


def test_the_end_token_is_masked_until_the_text_is_whole(tiny_runtime):
    done = write(tiny_runtime, lark(tiny_runtime, "start: /[ab]{4}/"), "")
    assert len(tiny_runtime.tokenizer.decode(done.tokens)) == 4
    assert done.complete


@pytest.mark.parametrize("end", ["<|im_end|>", "<|endoftext|>"])
def test_either_end_token_ends(tiny_runtime, end):
    done = write(tiny_runtime, lark(tiny_runtime, "start: /a+/"), f"aaa{end}")
    assert tiny_runtime.tokenizer.decode(done.tokens) == "aaa"
    assert done.end_token == tiny_runtime.tokenizer.special(end)


def test_forced_tokens_cost_no_steps(tiny_runtime):
    done = write(tiny_runtime, lark(tiny_runtime, 'start: "The quick brown fox " ("jumps" | "sleeps")'), "")
    assert sum(done.forced) >= 4
    assert done.model_steps < len(done.tokens) - 3


def test_text_that_is_forced_whole_needs_no_step(tiny_runtime):
    done = write(tiny_runtime, lark(tiny_runtime, 'start: "just this text" "\\n" '), "")
    assert tiny_runtime.tokenizer.decode(done.tokens) == "just this text\n"
    assert done.model_steps <= 1


def test_the_limit_counts_forced_tokens(tiny_runtime):
    grammar = 'start: "a b c d e f g h i j k l" /x*/'
    with pytest.raises(BudgetError, match=r"takes 12 tokens, more than the limit of 11"):
        write(tiny_runtime, lark(tiny_runtime, grammar), "", max_tokens=11)
    assert len(write(tiny_runtime, lark(tiny_runtime, grammar), "", max_tokens=12).tokens) == 12


def test_a_limit_that_is_met_at_a_whole_text_says_so(tiny_runtime):
    done = write(tiny_runtime, lark(tiny_runtime, "start: /( a b)+/"), " a b a b a b a b", max_tokens=4)
    assert (done.stop_reason, done.complete) == ("length", True)


def test_ids_past_the_vocabulary_never_come_out_with_or_without_a_grammar(tiny_runtime):
    class Padded(ScriptedModel):
        def _wish(self):
            logits = np.zeros(self.logit_width, dtype=np.float32)
            logits[151_757] = 1000.0
            return logits

    free = Unconstrained(tiny_runtime.tokenizer.vocab_size, tiny_runtime.tokenizer.end_ids)
    for constraint in (free, lark(tiny_runtime, "start: /(.|\\n)+/"), lark(tiny_runtime, "start: /[xy]{5}/")):
        model = Padded(tiny_runtime.tokenizer, tiny_runtime.session.logit_width, [""])
        done = generate(model, constraint, PROMPT, sampling=Sampling(temperature=1.0), max_tokens=5)
        assert all(token < tiny_runtime.tokenizer.vocab_size for token in done.tokens)


def test_special_tokens_are_never_text(tiny_runtime):
    """The spelled-out tokens give the same text; the special id would end the turn."""
    done = write(
        tiny_runtime,
        lark(tiny_runtime, "start: /say [^\\n]+\\n/"),
        "say <|im_end|>\n",  # the script wants the special id here
    )
    assert not set(done.tokens) & set(tiny_runtime.tokenizer.special_ids)


def test_unconstrained_is_complete_only_with_an_end_token(tiny_runtime):
    free = Unconstrained(tiny_runtime.tokenizer.vocab_size, tiny_runtime.tokenizer.end_ids)
    assert write(tiny_runtime, free, "abc").complete
    assert not write(tiny_runtime, free, "one two three four five", max_tokens=2).complete


def test_progress_gets_every_token_once_in_order(tiny_runtime):
    seen = []
    done = write(
        tiny_runtime,
        lark(tiny_runtime, 'start: "name: " /[a-z]+/ ";"'),
        "name: bob;",
        on_tokens=lambda ids, forced: seen.extend((token, forced) for token in ids),
    )
    assert seen == list(zip(done.tokens, done.forced, strict=True))


def test_the_deadline_stops_it(tiny_runtime):
    done = write(tiny_runtime, lark(tiny_runtime, "start: /a+/"), "aaa", deadline=time.monotonic() - 1)
    assert (done.stop_reason, done.complete) == ("time_limit", True)
    assert len(done.tokens) == 1  # the shortest whole text


def test_an_interrupt_keeps_what_was_written(tiny_runtime):
    def interrupt(ids, forced):
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.extend(ids)

    seen = []
    done = write(tiny_runtime, lark(tiny_runtime, "start: /( [a-z]+)+/"), " a b c d e", on_tokens=interrupt)
    assert done.stop_reason == "interrupted"
    assert tiny_runtime.tokenizer.decode(done.tokens) == " a b c"


def test_an_empty_mask_is_a_dead_end_with_its_place(tiny_runtime):
    class Dead(Unconstrained):
        def bitmask(self):
            return np.zeros_like(super().bitmask())

    with pytest.raises(DeadEndError, match="after 0 tokens"):
        write(tiny_runtime, Dead(151_669, [151_645]), "x")


def test_a_token_that_the_matcher_refuses_raises(tiny_runtime):
    """A constraint whose mask promises more than it takes: the run stops, the text is not passed on."""

    class Lying(Wrapped):
        def bitmask(self):
            return np.full_like(self.inner.bitmask(), -1)

    with pytest.raises(MatcherError, match="does not allow token"):
        write(tiny_runtime, Lying(lark(tiny_runtime, "start: /[ab]+/")), "xyz")


def test_a_text_that_a_fresh_matcher_refuses_is_not_passed_on(tiny_runtime):
    other = lark(tiny_runtime, "start: /b+/")

    class Swapped(Wrapped):
        def fresh(self):
            return other

    with pytest.raises(DecodeError):
        write(tiny_runtime, Swapped(lark(tiny_runtime, "start: /a+/")), "aaa")


def test_the_same_seed_gives_the_same_text(tiny_runtime):
    def draw(seed):
        grammar = tiny_runtime.grammar_constraint(from_regex("[a-z ]{30}"))
        sampling = Sampling(temperature=1.0, top_k=50, seed=seed)
        return generate(tiny_runtime.session, grammar, PROMPT, sampling=sampling, max_tokens=40).tokens

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)


def test_the_cache_holds_what_was_run(tiny_runtime):
    grammar = lark(tiny_runtime, 'start: /( [a-z]+)+/ "\\nend of it all" ')
    done = generate(tiny_runtime.session, grammar, PROMPT, sampling=Sampling(temperature=1.0), max_tokens=20)
    held = tiny_runtime.session.ids
    assert len(held) > len(PROMPT)
    assert held == (*PROMPT, *done.tokens)[: len(held)]
    again = generate(
        tiny_runtime.session,
        lark(tiny_runtime, "start: /b+/"),
        [*PROMPT, *done.tokens, 198],
        sampling=GREEDY,
        max_tokens=2,
    )
    assert again.reused_tokens == len(held)


def test_an_empty_prompt_is_refused(tiny_runtime):
    with pytest.raises(ValueError, match="at least one"):
        generate(tiny_runtime.session, lark(tiny_runtime, "start: /a/"), [], sampling=GREEDY, max_tokens=1)


def test_the_draws_do_not_depend_on_the_limit(tiny_runtime):
    def draw(max_tokens):
        grammar = tiny_runtime.grammar_constraint(from_regex("[a-z ]{5,200}"))
        sampling = Sampling(temperature=1.0, top_k=50, seed=1)
        return generate(
            tiny_runtime.session, grammar, PROMPT, sampling=sampling, max_tokens=max_tokens
        ).tokens

    assert draw(40)[:15] == draw(41)[:15] == draw(60)[:15]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_pipelined_and_plain_passes_give_the_same_text(tiny_runtime, monkeypatch, temperature):
    """The next pass may be queued on a token that is still being drawn, or wait for it."""
    from constrained_agent.model.session import Session

    queued = []

    def draw():
        grammar = tiny_runtime.grammar_constraint(load("apply_patch_strict"))
        sampling = Sampling(temperature=temperature, seed=5)
        return generate(tiny_runtime.session, grammar, PROMPT, sampling=sampling, max_tokens=40).tokens

    def plain(session, token):
        queued.append(1)
        logits = session.forward([int(token.item())])
        session._ids.pop()
        return logits

    pipelined = draw()
    monkeypatch.setattr(Session, "forward_lazy", plain)
    assert draw() == pipelined
    assert queued


def test_a_few_allowed_tokens_are_drawn_as_by_the_whole_mask(tiny_runtime, monkeypatch):
    from constrained_agent.decode import steps

    def draw():
        grammar = tiny_runtime.grammar_constraint(from_regex("(red|green|blue) (cat|dog|bird)"))
        return generate(tiny_runtime.session, grammar, PROMPT, sampling=GREEDY, max_tokens=40).tokens

    gathered = draw()
    monkeypatch.setattr(steps, "_GATHER_LIMIT", 0)
    assert draw() == gathered


def test_generation_from_a_worker_thread(tiny_runtime):
    import threading

    grammar = tiny_runtime.grammar_constraint(load("apply_patch_strict"))

    def draw():
        sampling = Sampling(temperature=1.0, top_k=20, top_p=0.9, seed=5)
        return generate(tiny_runtime.session, grammar, PROMPT, sampling=sampling, max_tokens=40).tokens

    here, there = draw(), []
    worker = threading.Thread(target=lambda: there.append(draw()))
    worker.start()
    worker.join()
    assert there == [here]
    assert draw() == here


def test_the_deadline_ends_a_long_prompt(tiny_runtime):
    prompt = list(range(1000, 3000))
    grammar = tiny_runtime.grammar_constraint(load("apply_patch_strict"))
    done = generate(
        tiny_runtime.session, grammar, prompt, sampling=GREEDY, max_tokens=40, deadline=time.monotonic()
    )
    assert (done.stop_reason, done.complete, done.model_steps) == ("time_limit", True, 0)
