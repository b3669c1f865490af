"""The whole decode path under noise: whatever a model prefers, what comes out is a call that reads and fits.

The tiny Qwen3 (random weights, real vocabulary, real 151,936-wide head) is drowned in noise that prefers
structural tokens some of the time; uniform noise hardly ever finishes a construct. What counts are *finished*
outputs. Long version: `CALL_NOISE=200 pytest tests/property/test_noise.py` (3 minutes).
"""

import json
import os

import jsonschema
import pytest

from constrained_agent.decode.generate import generate
from constrained_agent.decode.sampling import Sampling
from constrained_agent.grammar.sources import load
from constrained_agent.patch import parse
from constrained_agent.tools.permissions import Policy
from constrained_agent.tools.registry import Tools
from constrained_agent.tools.workspace import Workspace
from tests.fakes import NoisyModel, structural_ids

N_FINISHED = int(os.environ.get("CALL_NOISE", "80"))
MAX_RUNS = 500
MAX_TOKENS = 100


@pytest.fixture(scope="module")
def structure(tiny_runtime):
    return structural_ids(tiny_runtime.tokenizer)


def draw(runtime, structure, constraint, seed, *, thinking=False):
    dialect = runtime.dialect
    prompt = [*dialect.user("work"), *dialect.open_answer(thinking=thinking)]
    model = NoisyModel(runtime.session, structure, seed)
    return generate(model, constraint, prompt, sampling=Sampling(1.0, seed=seed), max_tokens=MAX_TOKENS)


def test_finished_calls_parse_and_satisfy_their_schema(tiny_runtime, structure, tmp_path):
    tools = Tools(Workspace(tmp_path), Policy(yes=True)).specs
    assert {tool.name for tool in tools} == {
        "list_dir",
        "read_file",
        "search_text",
        "exec_command",
        "apply_patch",
    }
    schemas = {tool.name: tool.parameters for tool in tools}
    tokenizer = tiny_runtime.tokenizer
    reader = tiny_runtime.reader(tools)
    compiled = tiny_runtime.turn_constraint("grammar", tools, "required", thinking=False).result()
    names = set()
    n_finished = 0
    for seed in range(MAX_RUNS):
        done = draw(tiny_runtime, structure, compiled.fresh(), seed)
        assert all(token < tokenizer.vocab_size for token in done.tokens)
        if not done.complete:
            assert done.stop_reason == "length"
            continue
        # The markers are the first and the last token, and no special token stands between them.
        specials = [i for i, token in enumerate(done.tokens) if token in set(tokenizer.special_ids)]
        assert specials == [0, len(done.tokens) - 1]
        answer = reader.read_ids(done.tokens, tokenizer.decode, tokenizer.special)
        assert not answer.faults
        (call,) = answer.calls
        jsonschema.validate(dict(call.arguments), schemas[call.name])
        if call.name == "apply_patch":
            assert parse(call.arguments["patch"], lenient=False).patch.sections
        names.add(call.name)
        n_finished += 1
        if n_finished == N_FINISHED:
            break
    assert n_finished == N_FINISHED
    assert names == set(schemas)


def test_an_answer_ends_only_where_it_is_whole(tiny_runtime, structure, tmp_path):
    """Free choice between text and calls: an end token after a text, none inside a call."""
    tools = Tools(Workspace(tmp_path), Policy(yes=True)).specs
    compiled = tiny_runtime.turn_constraint("grammar", tools, "auto", thinking=False).result()
    reader = tiny_runtime.reader(tools)
    tokenizer = tiny_runtime.tokenizer
    ends = {*structure, *tokenizer.end_ids, tokenizer.special("<tool_call>")}
    reasons = set()
    for seed in range(30):
        done = draw(tiny_runtime, ends, compiled.fresh(), seed)
        reasons.add(done.stop_reason)
        answer = reader.read_ids(done.tokens, tokenizer.decode, tokenizer.special, cut=not done.complete)
        if done.stop_reason in ("end_token", "complete"):
            assert done.complete
            assert not [fault for fault in answer.faults if fault.kind != "no_wrapper"]
        if done.stop_reason == "complete":
            assert len(answer.calls) == 1
    assert {"end_token", "complete"} <= reasons


def test_strict_patches(tiny_runtime, structure):
    compiled = tiny_runtime.grammar_constraint(load("apply_patch_strict"))
    n_finished = 0
    for seed in range(30):
        done = draw(tiny_runtime, structure, compiled.fresh(), seed)
        text = tiny_runtime.tokenizer.decode(done.tokens)
        if done.complete:
            n_finished += 1
            assert parse(text, lenient=False).patch.sections
    assert n_finished >= 5


SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "maxItems": 3},
        "size": {"type": "integer", "minimum": 0, "maximum": 500},
        "deep": {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]},
    },
    "required": ["name", "tags", "size", "deep"],
}


def test_json_of_a_schema(tiny_runtime, structure):
    from constrained_agent.grammar.sources import from_json_schema
    from constrained_agent.grammar.toolcalls import closed

    compiled = tiny_runtime.grammar_constraint(from_json_schema(closed(SCHEMA), compact=True))
    n_finished = 0
    for seed in range(30):
        done = draw(tiny_runtime, structure, compiled.fresh(), seed)
        if done.complete:
            n_finished += 1
            value = json.loads(tiny_runtime.tokenizer.decode(done.tokens))
            jsonschema.validate(value, closed(SCHEMA))
    assert n_finished >= 15
