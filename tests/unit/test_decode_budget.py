"""A token limit never cuts a construct in two, and a model that loops is stopped."""

import json

import pytest

from constrained_agent.decode.generate import generate
from constrained_agent.decode.needs import Unconstrained
from constrained_agent.decode.repetition import MAX_REPEATS, repeats
from constrained_agent.decode.sampling import Sampling
from constrained_agent.decode.steps import Thinking
from constrained_agent.errors import BudgetError
from constrained_agent.grammar.sources import Grammar, from_json_schema, load
from constrained_agent.messages import ToolSpec
from tests.fakes import NoisyModel, ScriptedModel

PROMPT = [151644, 872, 198]
PATCH = "*** Begin Patch\n*** Add File: a.txt\n" + "".join(f"+line {i} of many\n" for i in range(100))


def write(runtime, constraint, answer, max_tokens, **more):
    model = ScriptedModel(runtime.tokenizer, runtime.session.logit_width, [answer])
    return generate(model, constraint, PROMPT, sampling=Sampling(), max_tokens=max_tokens, **more)


@pytest.mark.parametrize("max_tokens", [13, 14, 15, 16, 20, 33, 60, 61, 62, 63, 64, 100])
def test_a_patch_is_brought_to_its_end(tiny_runtime, max_tokens):
    constraint = tiny_runtime.grammar_constraint(load("apply_patch_strict"))
    done = write(tiny_runtime, constraint, PATCH, max_tokens)
    text = tiny_runtime.tokenizer.decode(done.tokens)
    assert (done.stop_reason, done.complete) == ("closed_by_budget", True)
    assert text.rstrip("\n").endswith("\n*** End Patch")
    assert len(done.tokens) <= max_tokens
    assert len(done.tokens) >= max_tokens - 3, "the budget is used"


def test_a_text_that_just_fits_is_left_alone(tiny_runtime):
    constraint = tiny_runtime.grammar_constraint(load("apply_patch_strict"))
    text = "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch"
    n = len(tiny_runtime.tokenizer.encode_plain(text))
    done = write(tiny_runtime, constraint, text, n)
    assert (done.complete, tiny_runtime.tokenizer.decode(done.tokens)) == (True, text)


def test_a_limit_below_the_shortest_text_is_refused_at_the_start(tiny_runtime):
    constraint = tiny_runtime.grammar_constraint(load("apply_patch_strict"))
    with pytest.raises(BudgetError, match="more than the limit of 12"):
        write(tiny_runtime, constraint, PATCH, 12)


def test_a_grammar_that_never_ends_is_refused(tiny_runtime):
    with pytest.raises(BudgetError, match="no text of it was found that ends"):
        tiny_runtime.grammar_constraint(Grammar("endless", "lark", 'start: "a" start'))


def test_a_choice_that_commits_to_too_much_is_not_offered(tiny_runtime):
    """One token can commit to hundreds: too late to notice when the limit is near."""
    grammar = Grammar("far", "lark", f'start: "near" | "far" {json.dumps(" and on" * 50)} "x"')
    fits = write(tiny_runtime, tiny_runtime.grammar_constraint(grammar), "far", 200)
    assert tiny_runtime.tokenizer.decode(fits.tokens).startswith("far and on")
    short = write(tiny_runtime, tiny_runtime.grammar_constraint(grammar), "far", 40)
    assert tiny_runtime.tokenizer.decode(short.tokens) == "near"
    assert short.complete


def test_nested_json_is_closed(tiny_runtime):
    schema = {"type": "array", "items": {"$ref": "#"}}
    constraint = tiny_runtime.grammar_constraint(from_json_schema(schema, compact=True))
    done = write(tiny_runtime, constraint, "[" * 100, 30)
    assert done.complete
    assert json.loads(tiny_runtime.tokenizer.decode(done.tokens))
    assert len(done.tokens) <= 30


def test_a_call_is_closed_with_its_marker(tiny_runtime):
    schema = {
        "type": "object",
        "properties": {"command": {"type": "string"}, "why": {"type": "string"}},
        "required": ["command", "why"],
    }
    tool = ToolSpec("exec_command", "", schema, "exec")
    constraint = tiny_runtime.turn_constraint("grammar", [tool], "required", thinking=False).result()
    answer = '<tool_call>\n{"name": "exec_command", "arguments": {"command": "' + "echo one two three; " * 30
    done = write(tiny_runtime, constraint, answer, 60)
    assert (done.stop_reason, done.complete) == ("closed_by_budget", True)
    reader = tiny_runtime.reader([tool])
    answer = reader.read_ids(done.tokens, tiny_runtime.tokenizer.decode, tiny_runtime.tokenizer.special)
    assert answer.calls[0].arguments["why"] == ""


def test_free_text_just_ends(tiny_runtime):
    constraint = tiny_runtime.turn_constraint("grammar", [], "none", thinking=False).result()
    done = write(tiny_runtime, constraint, "one two three four five six", 3)
    assert (done.stop_reason, len(done.tokens)) == ("length", 3)


def test_the_deadline_closes_too(tiny_runtime):
    constraint = tiny_runtime.grammar_constraint(load("apply_patch_strict"))
    done = write(tiny_runtime, constraint, PATCH, 100, deadline=0.0)
    assert (done.stop_reason, done.complete) == ("time_limit", True)


class TestThinking:
    def limits(self, runtime, n):
        special = runtime.tokenizer.special
        return Thinking(special("<think>"), special("</think>"), n)

    def test_is_closed_at_its_limit_and_the_answer_follows_under_the_grammar(self, tiny_runtime):
        constraint = tiny_runtime.turn_constraint("grammar", [], "none", thinking=True).result()
        answer = "<think>\n" + "".join(f"step {i}, " for i in range(100))
        done = write(tiny_runtime, constraint, answer, 60, thinking=self.limits(tiny_runtime, 20))
        text = tiny_runtime.tokenizer.decode(done.tokens)
        assert done.thinking_cut
        assert text.count("</think>\n\n") == 1
        assert tiny_runtime.tokenizer.special("</think>") in done.tokens[20:24]
        assert done.complete

    def test_a_short_one_is_left_alone(self, tiny_runtime):
        constraint = tiny_runtime.turn_constraint("grammar", [], "none", thinking=True).result()
        answer = "<think>\nEasy.\n</think>\n\nYes."
        done = write(tiny_runtime, constraint, answer, 60, thinking=self.limits(tiny_runtime, 20))
        assert tiny_runtime.tokenizer.decode(done.tokens) == answer
        assert not done.thinking_cut

    def test_the_token_limit_within_it_has_its_own_name(self, tiny_runtime):
        constraint = tiny_runtime.turn_constraint("grammar", [], "none", thinking=True).result()
        answer = "<think>\n" + "".join(f"step {i}, " for i in range(100))
        done = write(tiny_runtime, constraint, answer, 40, thinking=self.limits(tiny_runtime, 39))
        assert (done.stop_reason, done.thinking_cut, done.complete) == ("thinking_limit", True, True)

    def test_repetition_closes_it(self, tiny_runtime):
        constraint = tiny_runtime.turn_constraint("grammar", [], "none", thinking=True).result()
        answer = "<think>\n" + "Wait, let me think about this once more. " * 60
        done = write(tiny_runtime, constraint, answer, 400, thinking=self.limits(tiny_runtime, 300))
        assert done.thinking_cut
        assert len(done.tokens) < 200


class TestRepetition:
    def test_a_span_of_twenty_tokens(self):
        span = list(range(20))
        assert not repeats(span * (MAX_REPEATS - 1))
        assert repeats(span * MAX_REPEATS)
        assert repeats([7, 8, *span * MAX_REPEATS])

    def test_short_spans_need_length(self):
        assert not repeats([5] * 63)
        assert repeats([5] * 64)
        assert not repeats([1, 2] * 31)
        assert repeats([1, 2] * 32)

    def test_almost_the_same_is_not_the_same(self):
        assert not repeats([*range(20), 99] * 7 + [*range(20), 98])
        assert not repeats([token for i in range(30) for token in (1, 2, 3, i)])

    def test_a_flood_of_blanks_in_any_order(self):
        blanks = [(7 * i * i + i // 3) % 11 for i in range(64)]
        assert not repeats(blanks)
        assert repeats(blanks, range(11))
        assert not repeats([*blanks[:40], 50, *blanks[41:]], range(11))

    def test_nothing_and_little(self):
        assert not repeats([])
        assert not repeats([1])

    def test_lines_of_a_patch_written_for_ever(self, tiny_runtime):
        constraint = tiny_runtime.grammar_constraint(load("apply_patch_strict"))
        text = "*** Begin Patch\n*** Add File: a.txt\n" + "+    return datetime.date(year, month, day)\n" * 80
        done = write(tiny_runtime, constraint, text, 1000)
        assert (done.stop_reason, done.complete) == ("repetition", True)
        assert tiny_runtime.tokenizer.decode(done.tokens).count("return") <= MAX_REPEATS + 1

    def test_free_text_without_a_grammar(self, tiny_runtime):
        free = Unconstrained(tiny_runtime.tokenizer.vocab_size, tiny_runtime.tokenizer.end_ids)
        done = write(tiny_runtime, free, "And so on. " * 200, 1000)
        assert (done.stop_reason, done.complete) == ("repetition", False)


def test_the_way_out_avoids_bytes_that_the_vocabulary_lacks(tiny_runtime):
    from constrained_agent.grammar.endings import closable
    from constrained_agent.grammar.matcher import byte_tokenizer
    from constrained_agent.grammar.sources import from_regex

    small = byte_tokenizer(missing=[4, 0xC3])
    long = closable(small, from_regex(r"[a-z ]+(\x04|; the end|\xe9)"))
    long.consume(list(b"ab"))
    assert bytes(long.closing()).endswith(b"; the end")
    with pytest.raises(BudgetError):
        closable(small, from_regex(r"[a-z]+\x04"))


@pytest.mark.parametrize(
    "written", ["", "*** Begin Patch\n*** Update File: a\n@@\n", "*** Begin Patch\n*** Add"]
)
def test_what_fits_is_what_the_shortest_way_takes(tiny_runtime, written):
    constraint = tiny_runtime.grammar_constraint(load("apply_patch_strict")).fresh()
    constraint.consume(tiny_runtime.tokenizer.encode_plain(written))
    known = constraint.copy()
    n = len(known.closing())
    for one in (known, constraint):  # the second one has not looked for a way yet
        assert one.fits(1_000)
        assert one.copy().fits(n)
        assert not one.copy().fits(n - 1)
        assert len(one.closing()) == n


def test_the_way_that_is_known_at_the_start_is_kept_for_others(tiny_runtime):
    first = tiny_runtime.grammar_constraint(load("apply_patch_strict"))
    way = first.closing()
    first.fresh().consume(tiny_runtime.tokenizer.encode_plain("*** Begin"))
    moved = first.copy()
    moved.consume(tiny_runtime.tokenizer.encode_plain("*** Begin Patch\n*** Delete File: x\n"))
    assert len(moved.closing()) < len(way)
    assert first.fresh().closing() == moved.fresh().closing() == way


def test_only_what_comes_from_the_start_on_repeats():
    assert repeats([1, 2] * 40, start=16)
    assert not repeats([1, 2] * 40, start=17)
    assert not repeats([1, 2] * 40, start=80)


@pytest.mark.parametrize("limit", range(5, 14))
def test_of_two_ways_the_one_of_fewer_tokens_counts(tiny_runtime, limit):
    """Searches count bytes: the shortest way in bytes can take more tokens than one that was known before."""
    rules = 'start: "A" | "B" /[a-z ]+/ ("}" " function function" | "XQJZKV")'
    constraint = tiny_runtime.grammar_constraint(Grammar("g", "lark", rules))
    model = NoisyModel(tiny_runtime.session, tiny_runtime.tokenizer.encode_plain("B a b"), seed=limit)
    done = generate(
        model, constraint, tiny_runtime.tokenizer.encode_plain("x"), sampling=Sampling(1.0), max_tokens=limit
    )
    assert done.complete
    assert len(done.tokens) <= limit
