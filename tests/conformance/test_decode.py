"""The cases of `cases/decode.json`: masks, the token loop, end tokens, thinking, the KV cache, text as it streams.

One test a case, tied to it by `conforms`. Where a case speaks of another project's loop (a logits processor, draft
tokens), the law behind it is shown on ours.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import itertools
import json
import re
from io import StringIO
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.models import cache as kv
from rich.console import Console

from constrained_agent.agent.turn import Decoding, take_turn
from constrained_agent.cli.view import TokenStream
from constrained_agent.decode import mask, repetition
from constrained_agent.decode.generate import generate
from constrained_agent.decode.sampling import Sampling
from constrained_agent.errors import BudgetError, DeadEndError, GrammarError, MatcherError
from constrained_agent.grammar.endings import closable
from constrained_agent.grammar.matcher import EngineTokenizer, Matcher
from constrained_agent.grammar.sources import Grammar, from_json_schema, load
from constrained_agent.grammar.toolcalls import compile_turn
from constrained_agent.messages import ToolCall, ToolSpec
from constrained_agent.model.session import Session
from constrained_agent.model.tokenizer import Tokenizer, _byte_letters
from constrained_agent.tools.permissions import Policy
from constrained_agent.tools.registry import Tools
from constrained_agent.tools.workspace import Workspace
from tests.agents import ScriptedAgent, call
from tests.fakes import ScriptedModel

LISTED = json.loads((Path(__file__).parent / "cases" / "decode.json").read_text(encoding="utf-8"))
CASES = {case["id"]: case for case in LISTED}
TESTS = {}
PROMPT = [151644, 872, 198]
GREEDY = Sampling()
FREE_TEXT = "start: /(.|\\n)+/"


class Values(dict):
    """A part of a case that knows which of its values nobody has looked at."""

    def __init__(self, values):
        super().__init__(values)
        self.unread = set(values)

    def __getitem__(self, key):
        self.unread.discard(key)
        return super().__getitem__(key)


def conforms(name):
    """Ties a test to a case: it gets the input as `given` and the outcome as `right`, and must use all of both."""

    def tie(test):
        @functools.wraps(test)
        def checked(*, given, right, **fixtures):
            given, right = Values(given), Values(right)
            test(given=given, right=right, **fixtures)
            assert not given.unread, "a part of the input that the test does not use"
            assert not right.unread, "a part of the outcome that the test does not check"

        assert name not in TESTS, "a case has one test"
        case = CASES[name]
        parameters = pytest.mark.parametrize(("given", "right"), [(case["input"], case["right"])], ids=[name])
        TESTS[name] = parameters(checked)
        return TESTS[name]

    return tie


def test_every_case_has_its_test():
    assert len(LISTED) == len(CASES), "two cases of one name"
    assert set(TESTS) == set(CASES)
    for name, test in TESTS.items():
        assert globals()[test.__name__] is test, f"the test of {name} is hidden by another of its name"


# Stand-ins


class Preferring(ScriptedModel):
    """Wants one id at every step; only where the mask forbids that does it write its script, if it has one."""

    def __init__(self, runtime, first, script=None):
        super().__init__(runtime.tokenizer, runtime.session.logit_width, [""])
        self._first, self._has_script = first, script is not None
        self._answers = [runtime.tokenizer.encode_plain(script or "")]

    def _wish(self):
        logits = super()._wish() if self._has_script else np.zeros(self.logit_width, dtype=np.float32)
        logits[self._first] = 1000.0
        return logits


class Wrapped:
    """A constraint that is another one but for what a subclass changes."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def copy(self):
        return type(self)(self.inner.copy())

    def fresh(self):
        return type(self)(self.inner.fresh())


class Watched(Wrapped):
    """A constraint that keeps what it and each of its copies has consumed, in the order of their making."""

    def __init__(self, inner, consumed=(), walks=None):
        super().__init__(inner)
        self.walks = [] if walks is None else walks
        self.consumed = list(consumed)
        self.walks.append(self.consumed)

    def copy(self):
        return type(self)(self.inner.copy(), self.consumed, self.walks)

    def fresh(self):
        return type(self)(self.inner.fresh(), (), self.walks)

    def consume(self, tokens):
        self.inner.consume(tokens)
        self.consumed += tokens


class RecordedModule:
    """The layers of a model, and what was run through them.

    Attributes:
        passes: for each pass, how many ids the cache held before it, and the ids that it ran.
    """

    def __init__(self, module):
        self._module = module
        self.passes = []

    def __call__(self, tokens, cache):
        self._cache = cache
        self.passes.append((cache[0].offset, tokens))
        return self._module(tokens, cache=cache)

    def __getattr__(self, name):
        return getattr(self._module, name)

    @property
    def held(self):
        """The ids whose keys and values the cache holds, from the passes alone."""
        ids = []
        for offset, tokens in self.passes:
            ids[offset:] = tokens.reshape(-1).tolist()
        return ids[: self._cache[0].offset]


def recorded(loaded):
    """A session of its own over the loaded weights, and the record of its passes."""
    module = RecordedModule(loaded.module)
    return Session(dataclasses.replace(loaded, module=module)), module


def next_logits(session, ids):
    with session.running():
        session.prefill(ids)
        return np.array(session.forward([ids[-1]])[-1])


def assert_as_after_a_full_run(session, loaded, ids):
    """What the model says after `ids` does not depend on what its cache held before."""
    assert np.allclose(next_logits(session, ids), next_logits(Session(loaded), ids), atol=1e-4)


def allowed(constraint):
    bits = np.unpackbits(constraint.bitmask().view(np.uint8), bitorder="little")
    return set(np.flatnonzero(bits[: constraint.vocab_size]).tolist())


def state(matcher):
    """All that a matcher tells about where it stands."""
    return allowed(matcher), matcher.accepting, matcher.stopped, matcher.forced()


def lark(runtime, text):
    return runtime.grammar_constraint(Grammar("case", "lark", text))


def turn_constraint(runtime, tools, choice, *, thinking):
    return compile_turn(runtime.engine, tools, choice, runtime.markers, thinking=thinking)


def scripted(runtime, answer):
    """A model that writes an answer, given as text or as ids."""
    model = ScriptedModel(runtime.tokenizer, runtime.session.logit_width, [""])
    model._answers = [runtime.tokenizer.encode(answer) if isinstance(answer, str) else list(answer)]
    return model


def write(model, constraint, max_tokens=100, prompt=PROMPT, sampling=GREEDY, **more):
    return generate(model, constraint, prompt, sampling=sampling, max_tokens=max_tokens, **more)


def with_session(runtime, session):
    twin = copy.copy(runtime)
    twin.session = session
    return twin


def byte_level_tokenizer(words=(), without=()):
    """All bytes but some, and some words of several bytes."""
    letters = {byte: letter for letter, byte in _byte_letters().items()}
    single = [bytes([byte]) for byte in range(256) if byte not in without]
    vocab = {"".join(letters[byte] for byte in word): i for i, word in enumerate([*single, *words])}
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False, "trim_offsets": True}
    spec = {
        "version": "1.0",
        "added_tokens": [{"id": len(vocab), "content": "<end>", "special": True, **plain}],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {"type": "BPE", "vocab": vocab, "merges": []},
    }
    return Tokenizer(json.dumps(spec), ["<end>"])


def tool(name, **properties):
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return ToolSpec(name, "", {**schema, "additionalProperties": False}, "read")


READ_FILE = tool("read_file", path={"type": "string"})


# Masks


@conforms("D01-mask-shorter-than-logits")
def test_logits_wider_than_the_vocabulary(tiny_runtime, given, right):
    width, n_known = given["logits_width"], given["tokenizer_len"]
    tokenizer = tiny_runtime.tokenizer
    assert (tiny_runtime.session.logit_width, tokenizer.vocab_size) == (width, n_known)
    choice = " | ".join(json.dumps(tokenizer.decode([token])) for token in given["grammar_allows"])
    chosen = lark(tiny_runtime, f"start: {choice}")
    assert allowed(chosen) == set(given["grammar_allows"])
    thinking = turn_constraint(tiny_runtime, [], "none", thinking=True)
    thinking.consume([tokenizer.special("<think>")])
    unconstrained = tiny_runtime.unconstrained()

    logits = np.zeros(width, dtype=np.float32)
    logits[given["highest_logit_at"]] = 1000.0
    forbidden = float(right[f"all_ids_from_{n_known}_up"])
    for constraint in (chosen, thinking, unconstrained):
        words = mask.padded(constraint.bitmask(), n_known, width)
        masked = np.array(mask.apply(mx.array(logits), words))
        assert masked.shape == (width,)
        assert (masked[n_known:] == forbidden).all()
        assert set(np.flatnonzero(masked != forbidden).tolist()) == allowed(constraint)

    for temperature, seed in itertools.product((0.0, 1.0), range(5)):
        sampling = Sampling(temperature=temperature, seed=seed)

        def drawn(constraint, sampling=sampling):
            model = Preferring(tiny_runtime, given["highest_logit_at"])
            return write(model, constraint.fresh(), max_tokens=8, sampling=sampling).tokens

        (token,) = drawn(chosen)
        assert token in right["sampled_in"]
        assert all(token < n_known for token in (*drawn(unconstrained), *drawn(thinking)))


@conforms("D03-padded-id-consumed")
def test_an_id_past_the_vocabulary_aborts_the_generation(tiny_runtime, given, right):
    assert right["error"] == "raised, generation aborted with the id named"
    padded, width = given["consume"], tiny_runtime.session.logit_width
    named = rf"\b{padded}\b.* not in the vocabulary of {given['tokenizer_len']} ids"
    with pytest.raises(MatcherError, match=named):
        lark(tiny_runtime, FREE_TEXT).consume([padded])

    class AsWideAsTheLogits(Wrapped):
        """Its mask lets the padding through."""

        vocab_size = width

        def bitmask(self):
            return np.full((width + 31) // 32, -1, dtype=np.int32)

    seen = []
    model = Preferring(tiny_runtime, padded)
    with pytest.raises(MatcherError, match=named):
        write(
            model,
            AsWideAsTheLogits(lark(tiny_runtime, FREE_TEXT)),
            on_tokens=lambda ids, forced: seen.extend(ids),
        )
    assert seen == []


@conforms("D07-empty-mask")
def test_a_mask_that_allows_nothing_is_a_dead_end(tiny_runtime, given, right):
    assert given["mask"] == "no token allowed"
    assert right["error"] == "dead end, with the grammar position and text so far"
    assert right["not"] == "token 0 repeated"
    n_before = 3

    class Emptied(Watched):
        """Allows nothing after some tokens."""

        def bitmask(self):
            inner = self.inner.bitmask()
            return np.zeros_like(inner) if len(self.consumed) == n_before else inner

    seen = []
    with pytest.raises(DeadEndError, match=f"after {n_before} tokens") as caught:
        write(
            scripted(tiny_runtime, " one two three four"),
            Emptied(lark(tiny_runtime, "start: /[a-z ]+/")),
            on_tokens=lambda ids, forced: seen.extend(ids),
        )
    assert tiny_runtime.tokenizer.decode(seen) == " one two three"
    assert all(word in str(caught.value) for word in (" one", " two", " three"))

    # The engine itself stops where the vocabulary has no byte that the grammar asks for.
    tokenizer = byte_level_tokenizer(without=[0x04])
    grammar = Grammar("case", "lark", r"start: /[a-z]{3}[\x04\x06]\x04/")
    matcher = Matcher(EngineTokenizer(tokenizer), grammar)
    matcher.consume(tokenizer.encode_plain("abc\x06"))
    with pytest.raises(DeadEndError):
        matcher.bitmask()
    with pytest.raises(BudgetError, match="no text of it was found that ends"):
        closable(EngineTokenizer(tokenizer), grammar)


@conforms("D08-error-state-mask")
def test_a_matcher_in_error_is_noticed_at_every_step(tiny_runtime, given, right):
    assert given["after"] == "matcher refused a token"
    assert right["checked"] == "is_error() every step"
    assert right["not"] == "EOS-only mask taken as a normal end"
    tokenizer = tiny_runtime.tokenizer
    refused = tokenizer.encode_plain("?")
    matcher = lark(tiny_runtime, 'start: /[a-z]+/ ";"')
    matcher.consume(tokenizer.encode_plain("ab"))
    with pytest.raises(MatcherError, match=f"does not allow token {refused[0]}"):
        matcher.consume(refused)
    engine_mask = np.frombuffer(matcher._ll.compute_bitmask(), dtype=np.uint8)
    bits = np.flatnonzero(np.unpackbits(engine_mask, bitorder="little"))
    assert set(bits.tolist()) == set(tokenizer.end_ids), "the trap: what broke looks as if it may end"
    for asked in (
        matcher.bitmask,
        matcher.forced,
        matcher.forced_bytes,
        lambda: matcher.accepting,
        lambda: matcher.stopped,
        lambda: matcher.accepted_prefix(refused),
        lambda: matcher.rollback(1),
        lambda: matcher.consume(tokenizer.encode_plain("c")),
    ):
        with pytest.raises(MatcherError):
            asked()

    class Swallowing(Wrapped):
        """Meets a refusal in the middle of the text and keeps it to itself."""

        def consume(self, tokens):
            with contextlib.suppress(MatcherError):
                self.inner.consume([*tokens, *(refused if tokens else [])])

    class Hiding(Swallowing):
        """Is not asked anything before the mask is."""

        stopped = False

        def forced(self):
            return []

    for wrapper in (Swallowing, Hiding):
        model = Preferring(tiny_runtime, tokenizer.end_ids[0], "abc")
        with pytest.raises(MatcherError, match="case: "):
            write(model, wrapper(lark(tiny_runtime, 'start: /[a-z]+/ ";"')))


@conforms("D22-quoted-special")
def test_a_file_that_holds_an_end_marker(tiny_runtime, tmp_path, given, right):
    marker = right["file_has"]
    assert given["task"] == f"write a file that holds the text {marker}"
    tokenizer = tiny_runtime.tokenizer
    special = tokenizer.special(marker)
    assert special in tokenizer.end_ids
    constraint = tiny_runtime.grammar_constraint(load(given["grammar"]))
    patch = f"*** Begin Patch\n*** Add File: a.txt\n+say {marker} aloud\n*** End Patch"
    # It would end the turn with the special id at every step, and spells the same text as its second choice.
    model = Preferring(tiny_runtime, special, patch)
    done = write(model, constraint)
    text = tokenizer.decode(done.tokens)
    assert (done.stop_reason, done.complete) == ("end_token", True)
    assert right["turn_not_ended"] is (text == patch)
    assert not set(done.tokens) & set(tokenizer.special_ids)

    result = Tools(Workspace(tmp_path), Policy(yes=True)).run(ToolCall("1", "apply_patch", {"patch": text}))
    assert result.ok, result.text
    assert (tmp_path / "a.txt").read_text() == f"say {marker} aloud\n"


@conforms("D27-big-tool-set")
def test_a_big_tool_set(tiny_runtime, given, right):
    def schema(i):
        return {
            f"path_{i}": {"type": "string"},
            "mode": {"enum": [f"mode_{i}_{k}" for k in range(20)]},
            "lines": {"type": "array", "items": {"type": "integer"}},
        }

    tools = [tool(f"tool_{i}", **schema(i)) for i in range(given["tools"])]
    constraint = turn_constraint(tiny_runtime, tools, "required", thinking=False)
    for i in (0, len(tools) // 2, len(tools) - 1):
        arguments = {f"path_{i}": "a", "mode": f"mode_{i}_19", "lines": [1, 2]}
        done = write(scripted(tiny_runtime, call(f"tool_{i}", **arguments)), constraint.fresh())
        answer = tiny_runtime.reader(tools).read_ids(
            done.tokens, tiny_runtime.tokenizer.decode, tiny_runtime.tokenizer.special
        )
        assert right["compiles"] is done.complete
        assert [(c.name, c.arguments) for c in answer.calls] == [(f"tool_{i}", arguments)]

    assert right["or"] == "names the tool that failed"
    tools[-2] = tool("grep", pattern={"type": "string", "pattern": "(?=x)"})
    with pytest.raises(GrammarError, match=r"tool grep\b"):
        turn_constraint(tiny_runtime, tools, "auto", thinking=False)


# Thinking


def turn_of(runtime, answer, tools, choice, *, thinking):
    """One turn of a model that writes an answer."""
    runtime = with_session(runtime, scripted(runtime, answer))
    decoding = Decoding("grammar", GREEDY, 200, thinking)
    history = runtime.dialect.user("work")
    return take_turn(runtime, history, tools, choice, decoding, runtime.reader(tools))


@conforms("D17-grammar-in-think")
def test_thinking_is_free_and_the_mask_starts_after_it(tiny_runtime, given, right):
    assert given["grammar"] == "tool call"
    tokenizer = tiny_runtime.tokenizer
    thought = 'Not JSON: {"name": ``` é\n\n*** Begin Patch, and more.'
    wanted = call("read_file", path="a.py")
    turn = turn_of(
        tiny_runtime,
        f"<think>\n{thought}\n</think>\n\n{wanted}",
        [READ_FILE],
        "required",
        thinking=given["thinking"],
    )
    assert turn.answer.thinking == thought
    assert right["content_not_empty"] is bool(turn.answer.calls)
    assert [(c.name, c.arguments) for c in turn.answer.calls] == [("read_file", {"path": "a.py"})]
    prose = turn_of(
        tiny_runtime,
        f"<think>\n{thought}\n</think>\n\nDone.",
        [READ_FILE],
        "auto",
        thinking=given["thinking"],
    )
    assert right["content_not_empty"] is (prose.answer.text == "Done.")

    starts, place = right["mask_starts"].split()
    assert starts == "after"
    closing = tokenizer.special(place)
    constraint = turn_constraint(tiny_runtime, [READ_FILE], "required", thinking=given["thinking"])
    tokens = turn.generation.tokens
    constraint.consume(tokens[:1])
    for token in tokens[1 : tokens.index(closing)]:
        free = allowed(constraint)
        assert len(free) > 0.99 * tokenizer.vocab_size
        assert free & set(tokenizer.special_ids) <= {closing}
        constraint.consume([token])
    constraint.consume([closing])
    assert allowed(constraint) == set(tokenizer.encode_plain("\n\n"))
    assert tokenizer.decode(constraint.forced()).startswith('\n\n<tool_call>\n{"name": "read_file"')


@conforms("D19-think-close-in-same-step")
def test_what_follows_the_end_of_thinking_in_the_same_step_is_checked(tiny_runtime, given, right):
    assert right["second_token"] == "checked by the grammar"
    tokenizer = tiny_runtime.tokenizer
    closing, second = given["accepted_tokens"]
    accepted = [tokenizer.special(closing), *tokenizer.encode_plain(second)]
    assert len(accepted) == 2
    constraint = turn_constraint(tiny_runtime, [READ_FILE], "required", thinking=True)
    constraint.consume([tokenizer.special("<think>"), *tokenizer.encode_plain("Hm.")])
    assert constraint.accepted_prefix(accepted[1:]) == 1, "as a thought it may be written"
    assert constraint.accepted_prefix(accepted) == 1, "as an answer not"
    with pytest.raises(MatcherError, match=f"does not allow token {accepted[1]} "):
        constraint.copy().consume(accepted)

    turn = turn_of(
        tiny_runtime,
        f"<think>\nHm.\n{closing}{second}json\n" + call("read_file", path="a"),
        [READ_FILE],
        "required",
        thinking=True,
    )
    assert turn.generation.complete
    after = turn.generation.tokens[turn.generation.tokens.index(accepted[0]) + 1 :]
    assert tokenizer.decode(after).startswith("\n\n<tool_call>\n")


@conforms("D15-think-never-closes")
def test_thinking_that_never_closes(tiny_runtime, tmp_path, given, right):
    assert given["model"] == "repeats one sentence"
    assert right["think_budget"] == "forces </think> or stops"
    endless = "<think>\n" + "Wait, let me think about this once more. " * 200
    # With few tokens the budget of thinking is met first, with many the repetition is noticed first.
    for level, max_tokens in itertools.product(("grammar", "off"), (60, 1000)):
        root = tmp_path / f"{level}-{max_tokens}"
        root.mkdir()
        agent = ScriptedAgent(
            tiny_runtime,
            root,
            [endless] * 8,
            level=level,
            thinking=given["thinking"],
            max_tokens=max_tokens,
        )
        result = agent.run()
        turns = [event for event in agent.events if event["event"] == "turn"]
        assert len(turns) == result.turns > 0
        for turn in turns:
            assert turn["thinking_cut"]
            assert turn["ids"].count(tiny_runtime.tokenizer.special("</think>")) == 1
            assert len(turn["ids"]) < 200
        assert result.exit_reason == right["status"]


# Repetition and ends


@conforms("D16-greedy-loop")
def test_a_span_that_is_written_over_and_over(tiny_runtime, given, right):
    n_span = int(re.fullmatch(r"repeats a (\d+)-token span", given["model"])[1])
    span = tiny_runtime.tokenizer.encode_plain(
        " one two three four five six seven eight nine ten red green blue black white cat dog bird fish tree"
    )
    assert len(span) == len(set(span)) == n_span
    assert right["max_repeats"] == repetition.MAX_REPEATS
    for constraint in (tiny_runtime.unconstrained(), lark(tiny_runtime, FREE_TEXT)):
        done = write(
            scripted(tiny_runtime, span * 50),
            constraint,
            max_tokens=1000,
            sampling=Sampling(temperature=given["temperature"]),
        )
        assert right["detected"] is (done.stop_reason == "repetition")
        assert list(done.tokens) == span * right["max_repeats"]


@conforms("D10-two-eos")
def test_either_end_token_ends(tiny_runtime, given, right):
    assert right["stops_on"] == "either"
    assert right["grammar_complete_allows"] == "either, incomplete allows none"
    ends = set(given["eos_ids"])
    assert tiny_runtime.tokenizer.end_ids == given["eos_ids"]
    incomplete, complete = (tiny_runtime.tokenizer.encode_plain(text) for text in ("a", "b"))
    constraint = lark(tiny_runtime, 'start: "a" "b" "c"*')
    assert not allowed(constraint) & ends
    constraint.consume(incomplete)
    assert not allowed(constraint) & ends
    for end in ends:
        with pytest.raises(MatcherError):
            constraint.copy().consume([end])
    constraint.consume(complete)
    assert allowed(constraint) & ends == ends
    for end in ends:
        for grammar, text in (("start: /(x y)+/", "x yx y"), (FREE_TEXT, "x y")):
            ids = [*tiny_runtime.tokenizer.encode_plain(text), end]
            done = write(scripted(tiny_runtime, ids), lark(tiny_runtime, grammar))
            assert (done.stop_reason, done.end_token, done.complete) == ("end_token", end, True)
            assert tiny_runtime.tokenizer.decode(done.tokens) == text
        free = write(scripted(tiny_runtime, [*incomplete, end]), tiny_runtime.unconstrained())
        assert (free.stop_reason, free.end_token, free.tokens) == ("end_token", end, tuple(incomplete))
        # A model that would rather end at once is held to a whole text.
        eager = write(Preferring(tiny_runtime, end, "x y"), lark(tiny_runtime, "start: /(x y)+/"))
        assert (tiny_runtime.tokenizer.decode(eager.tokens), eager.end_token) == ("x y", end)


@conforms("D11-eos-after-complete")
def test_the_end_token_after_a_whole_text(tiny_runtime, given, right):
    tokenizer = tiny_runtime.tokenizer
    consumed = tokenizer.encode_plain(given["consumed"])
    constraint = lark(tiny_runtime, given["grammar"])
    constraint.consume(consumed)
    assert constraint.accepting is right["is_accepting"]
    assert allowed(constraint) == set(tokenizer.end_ids)

    # The end token is the loop's own affair: the matcher gets it never, the conversation once.
    open_ended = given["grammar"] + ' "c"*'
    for end, (grammar, stop_reason) in itertools.product(
        tokenizer.end_ids, ((given["grammar"], "complete"), (open_ended, "end_token"))
    ):
        watched = Watched(lark(tiny_runtime, grammar))
        model = scripted(tiny_runtime, [*consumed, end, end])
        done = write(model, watched)
        assert right["no_error"] is done.complete
        assert (done.stop_reason, list(done.tokens)) == (stop_reason, consumed)
        fed = list(itertools.chain(*watched.walks, model._written))
        assert right["eos_not_fed_twice"] is (not set(fed) & set(tokenizer.end_ids))
        history = [*done.tokens, *tiny_runtime.dialect.close_answer(done.end_token)]
        assert sum(token in tokenizer.end_ids for token in history) == 1
    for end in tokenizer.end_ids:
        ended = constraint.copy()
        ended.consume([end])
        assert right["no_error"] is (ended.accepting and ended.stopped)


# What the loop feeds to the matcher


@conforms("D04-history-first-call")
def test_the_matcher_consumes_what_was_sampled_and_nothing_of_the_prompt(
    tiny_loaded, tiny_runtime, given, right
):
    """The law behind the case, which speaks of mlx-lm's logits processors."""
    assert right["matcher_consumes"] == "only tokens sampled after the prompt"
    assert right["not"] == "tokens[-1] of the prompt"
    prompt = given["prompt_ids"]
    # One grammar refuses the prompt's ids, one would take them for text.
    for grammar in ("start: /[a-z]{8,12}/", FREE_TEXT):
        session, module = recorded(tiny_loaded)
        watched = Watched(lark(tiny_runtime, grammar))
        done = write(session, watched, max_tokens=10, prompt=prompt)
        (_, prefilled), (_, first_call) = module.passes[:2]
        assert first_call.reshape(-1).tolist() == given["processor_first_call_tokens"]
        assert [*prefilled.reshape(-1).tolist(), *first_call.reshape(-1).tolist()] == prompt
        tokens = list(done.tokens)
        assert 0 < len(tokens) <= 10
        first, *others, validation = watched.walks
        assert first == []
        assert validation == tokens, "a fresh constraint has consumed the finished run"
        assert all(walk == tokens[: len(walk)] for walk in others)
        assert max(map(len, others)) == len(tokens)


@conforms("D05-lazy-token")
def test_drawn_tokens_are_evaluated_before_they_are_read(tiny_loaded, tiny_runtime, given, right):
    """The next pass is queued on a token that is still being drawn; that one is consumed, not an old one."""
    assert given["tokens_array"] == "lazy concat"
    n_tokens = 12

    class Concatenating:
        """A real session that gets every drawn token as the last one of a concatenation that is not computed yet."""

        def __init__(self, session):
            self._session = session
            self._all = mx.array(PROMPT, dtype=mx.int32)
            self.read = []

        def __getattr__(self, name):
            return getattr(self._session, name)

        def forward_lazy(self, token):
            self._all = mx.concatenate([self._all, token.reshape(1)])
            return self._session.forward_lazy(self._all[-1])

        def confirm(self, token):
            self.read.append(token)
            self._session.confirm(token)

        @property
        def drawn(self):
            return self._all[len(PROMPT) :].tolist()

    model = Concatenating(Session(tiny_loaded))
    watched = Watched(lark(tiny_runtime, FREE_TEXT))
    done = write(model, watched, max_tokens=n_tokens)

    # The plain loop: every array is evaluated before anything goes on.
    expected, reference, constraint = [], Session(tiny_loaded), lark(tiny_runtime, FREE_TEXT)
    with reference.running():
        reference.prefill(PROMPT)
        logits = np.array(reference.forward([PROMPT[-1]])[-1])
        while len(expected) < n_tokens:
            candidates = np.array(sorted(allowed(constraint)))
            expected.append(int(candidates[np.argmax(logits[candidates])]))
            constraint.consume(expected[-1:])
            logits = np.array(reference.forward(expected[-1:])[-1])

    assert len(set(expected)) > 1, "an old token read again would not show"
    assert list(done.tokens) == expected
    assert right["evaluated_before_read"] is (model.read == model.drawn == expected)
    assert watched.walks[-1] == expected
    assert all(type(token) is int for token in watched.walks[-1])
    assert list(model.ids) == [*PROMPT, *expected]


@conforms("D20-draft-rollback")
def test_only_accepted_tokens_move_the_matcher(tiny_runtime, given, right):
    """The loop has no drafts and takes nothing back from a matcher: it asks first, and looks ahead on copies."""
    tokenizer, n_accepted = tiny_runtime.tokenizer, given["accepted"]
    *texts, end = given["draft"]
    assert end == "EOS"
    draft = [*itertools.chain(*map(tokenizer.encode_plain, texts)), tokenizer.end_ids[0]]
    assert len(draft) == len(given["draft"])
    assert right["matcher_state"] == f"after '{texts[0]}' only"

    def after_accepted(constraint):
        constraint.consume(tokenizer.encode_plain(texts[0]))
        return constraint

    # The draft leaves the grammar after its first token.
    schema = from_json_schema({"type": "object", "properties": {"y": {"type": "integer"}}}, compact=True)
    compiled = tiny_runtime.grammar_constraint(schema)
    constraint = compiled.fresh()
    assert constraint.accepted_prefix(draft) == n_accepted
    assert state(constraint) == state(compiled.fresh()), "asking moves nothing"
    constraint.consume(draft[:n_accepted])
    expected = after_accepted(compiled.fresh())
    assert (state(constraint), constraint.closing()) == (state(expected), expected.closing())

    # The grammar takes all of it, to the end token; the model does not.
    compiled = lark(tiny_runtime, 'start: "{" "x" | "{" "yz"')
    constraint = after_accepted(compiled.fresh())
    expected = after_accepted(compiled.fresh())
    ahead = constraint.copy()
    ahead.consume(draft[n_accepted:-1])
    assert ahead.closing() == []
    ahead.consume(draft[-1:])
    assert ahead.stopped
    assert (state(constraint), constraint.closing()) == (state(expected), expected.closing())


# Text from outside, text that streams


@conforms("D23-special-in-file")
def test_markers_in_a_tool_result_are_text(tiny_runtime, tmp_path, given, right):
    text = given["tool_result"]
    controls = {int(number) for number in re.findall(r"\d+", right["token_ids_have"])}
    assert right["token_ids_have"] == f"no {'/'.join(map(str, sorted(controls)))} from the tool text"
    tokenizer = tiny_runtime.tokenizer
    assert controls == {tokenizer.special("<|im_start|>"), tokenizer.special("<|im_end|>")}

    def prompts(name, text):
        root = tmp_path / name
        root.mkdir()
        (root / "f.txt").write_text(text)
        agent = ScriptedAgent(tiny_runtime, root, [call("exec_command", command="cat f.txt"), "ok"])
        assert agent.run().exit_reason == "done"
        return agent.model.prompts

    first, second = prompts("hostile", text)
    assert text in tokenizer.decode(second[len(first) :])
    _, harmless = prompts("harmless", "a x")
    specials = set(tokenizer.special_ids)
    assert [t for t in second if t in specials] == [t for t in harmless if t in specials]
    frame = tiny_runtime.dialect.tool_results([""])
    with_text = tiny_runtime.dialect.tool_results([text])
    assert [t for t in with_text if t in controls] == [t for t in frame if t in controls]
    assert tokenizer.decode(with_text) == tokenizer.decode(frame).replace("\n\n", f"\n{text}\n")


@conforms("D12-split-emoji")
def test_a_character_in_two_tokens_streams_whole(given, right):
    pieces = [bytes.fromhex(piece) for piece in given["token_bytes"]]
    tokenizer = byte_level_tokenizer(words=pieces)
    split = [tokenizer.token_bytes.index(piece) for piece in pieces]
    out = StringIO()
    stream = TokenStream(Console(file=out, highlight=False, soft_wrap=True), tokenizer)
    shown = []

    def show(ids, forced):
        stream.tokens(ids, forced)
        shown.append(out.getvalue())

    model = ScriptedModel(tokenizer, tokenizer.vocab_size, [""])
    model._answers = [[*split, tokenizer.end_ids[0]]]
    constraint = closable(EngineTokenizer(tokenizer), Grammar("case", "lark", "start: /.+/"))
    done = write(model, constraint, prompt=[1], on_tokens=show)
    assert list(done.tokens) == split
    assert shown == ["", right["streamed"]]
    stream.finish()
    assert out.getvalue().rstrip("\n") == tokenizer.decode(done.tokens) == right["streamed"]
    assert right["never"] == "\ufffd"
    assert right["never"] not in out.getvalue()


# The KV cache


def answer_of(session, runtime, history, *, thinking, decoding):
    runtime = with_session(runtime, session)
    return take_turn(
        runtime, history, [], "none", dataclasses.replace(decoding, thinking=thinking), runtime.reader([])
    )


@conforms("D28-cache-history")
def test_the_cache_holds_what_was_really_run(tiny_loaded, tiny_runtime, given, right):
    assert given["turn1_output"] == "..."
    assert given["stopped"] == "max_tokens"
    assert right["cached_ids_equal"] == "ids really run through the model"
    dialect = tiny_runtime.dialect
    prompt = [*dialect.user("hi"), *dialect.open_answer(thinking=False)]
    free_text = lark(tiny_runtime, FREE_TEXT)
    patch = tiny_runtime.grammar_constraint(load("apply_patch_strict"))
    # The limit stops free text where it stands; a patch is given an end that the model has not been run on.
    for constraint, max_tokens, stop_reason in ((free_text, 7, "length"), (patch, 25, "closed_by_budget")):
        session, module = recorded(tiny_loaded)
        done = write(
            session,
            constraint,
            max_tokens=max_tokens,
            prompt=prompt,
            sampling=Sampling(temperature=1.0, seed=2),
        )
        assert done.stop_reason == stop_reason
        written = [*prompt, *done.tokens]
        cached = list(session.ids)
        assert cached == module.held
        assert len(prompt) < len(cached)
        assert cached == written[: len(cached)]

        following = [*written, *dialect.close_answer(done.end_token), *dialect.user("go on")]
        n_passes = len(module.passes)
        assert_as_after_a_full_run(session, tiny_loaded, following)
        assert module.passes[n_passes][0] == len(cached), "goes on from what is cached"
        assert list(session.ids) == module.held == following


@conforms("D29-think-stripped")
def test_a_history_without_the_old_thinking_keeps_the_common_prefix(tiny_loaded, tiny_runtime, given, right):
    assert right["common_prefix"] == "found by ids; the rest re-run"
    assert given["turns"] == 2
    dialect, tokenizer = tiny_runtime.dialect, tiny_runtime.tokenizer
    session, module = recorded(tiny_loaded)
    decoding = Decoding("grammar", Sampling(temperature=1.0, seed=3), 24, think_budget=8)
    first = answer_of(
        session, tiny_runtime, dialect.user("hi"), thinking=given["thinking"], decoding=decoding
    )
    tokens = first.generation.tokens
    assert tokens[0] == tokenizer.special("<think>")
    end = tokens.index(tokenizer.special("</think>"))
    cached = list(session.ids)
    assert len(cached) > len(first.prompt) + end

    # As a chat template renders it; and the same text cut into other tokens, which is another history.
    following = [*dialect.close_answer(first.generation.end_token), *dialect.user("and?")]
    stripped = [*first.prompt, *tokens[end + 1 :], *following]
    assert first.prompt[3:4] == tuple(tokenizer.encode_plain("hi"))
    letters = [*tokenizer.encode_plain("h"), *tokenizer.encode_plain("i")]
    recut = [*first.prompt[:3], *letters, *first.prompt[4:], *tokens, *following]
    assert tokenizer.decode(recut) == tokenizer.decode([*first.prompt, *tokens, *following])
    for history, n_common in ((stripped, len(first.prompt)), (recut, 3)):
        session, module = recorded(tiny_loaded)
        answer_of(session, tiny_runtime, dialect.user("hi"), thinking=given["thinking"], decoding=decoding)
        assert list(session.ids) == cached
        n_passes = len(module.passes)
        second = answer_of(session, tiny_runtime, history, thinking=given["thinking"], decoding=decoding)
        assert second.prompt[:n_common] == tuple(cached[:n_common])
        assert second.prompt[n_common] != cached[n_common]
        assert second.generation.reused_tokens == n_common
        assert module.passes[n_passes][0] == n_common
        assert module.held[: len(second.prompt)] == list(second.prompt)
        assert_as_after_a_full_run(session, tiny_loaded, list(second.prompt))


@conforms("D30-cache-not-trimmable")
def test_a_cache_that_trims_nothing_is_filled_anew(tiny_loaded, given, right):
    assert right["falls_back"] == "full prefill"
    asked = []

    class Stubborn(kv.KVCache):
        """Says that it can be trimmed, and is not."""

        def trim(self, n):
            asked.append(n)
            return given["trimmed"]

    session, module = recorded(tiny_loaded)
    module.make_cache = lambda: [Stubborn() for _ in tiny_loaded.module.layers]
    held = list(range(1000, 1100))
    next_logits(session, held)
    other = [*held[: len(held) - given["trim"]], 7, 8, 9]
    n_passes = len(module.passes)
    with session.running():
        assert session.prefill(other) == 0
    assert set(asked) == {given["trim"]}
    assert module.passes[n_passes][0] == 0
    run = [ids for _, ids in module.passes[n_passes:]]
    assert mx.concatenate([ids.reshape(-1) for ids in run]).tolist() == other[:-1]
    module.make_cache = lambda: kv.make_prompt_cache(tiny_loaded.module)
    assert_as_after_a_full_run(session, tiny_loaded, other)
