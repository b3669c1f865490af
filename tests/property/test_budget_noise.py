"""Token limits under noise: whatever the model prefers, what comes out is whole and within the limit."""

import json

import jsonschema
import numpy as np
import pytest

from constrained_agent.decode.generate import generate
from constrained_agent.decode.sampling import Sampling
from constrained_agent.errors import BudgetError
from constrained_agent.grammar.carriers import JSON
from constrained_agent.grammar.sources import from_json_schema, load
from constrained_agent.grammar.toolcalls import closed
from constrained_agent.patch import parse
from constrained_agent.tools.permissions import Policy
from constrained_agent.tools.registry import Tools
from constrained_agent.tools.workspace import Workspace
from tests.fakes import NoisyModel, structural_ids

N_RUNS = 80
SHORTEST, LONGEST = 12, 400


def _object(**properties):
    return {"type": "object", "properties": properties, "required": list(properties)}


_TEXT = {"type": "string"}
SCHEMAS = [
    _TEXT,
    {"type": "string", "maxLength": 10},
    {"type": "string", "minLength": 5},
    {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"},
    {"type": "string", "format": "date"},
    {"type": "integer"},
    {"type": "integer", "minimum": 100, "maximum": 999},
    {"type": "number"},
    {"type": "boolean"},
    {"enum": ["red", "green", "blue", 7, None]},
    {"const": {"a": [1, 2]}},
    {"type": "array", "items": {"type": "integer"}},
    {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": 3},
    _object(name=_TEXT, size={"type": "integer"}),
    _object(deep=_object(deeper=_object(deepest=_TEXT))),
    _object(list={"type": "array", "items": _object(on={"type": "boolean"})}),
    {"anyOf": [_object(a=_TEXT), _object(b={"type": "number"})]},
    {"type": ["string", "null"]},
    _object(one=_TEXT) | {"properties": {"one": _TEXT, "two": _TEXT, "three": _TEXT}},
    {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": _object(value={"type": "integer"})
            | {"properties": {"value": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}}}
        },
    },
]


@pytest.fixture(scope="module")
def kinds(tiny_runtime, tmp_path_factory):
    """(constraint, check of a finished text) of strict patches, each tool's schema, further schemas, turns."""
    tools = Tools(Workspace(tmp_path_factory.mktemp("repo")), Policy(yes=True)).specs
    decode, special = tiny_runtime.tokenizer.decode, tiny_runtime.tokenizer.special

    def of_schema(schema):
        schema = closed(schema)
        constraint = tiny_runtime.grammar_constraint(from_json_schema(schema, compact=True))
        return constraint, lambda done: jsonschema.validate(json.loads(decode(done.tokens)), schema)

    def of_turn(choice, **options):
        def check(done):
            answer = tiny_runtime.reader(tools).read_ids(done.tokens, decode, special)
            assert not [fault for fault in answer.faults if fault.kind != "no_wrapper"]
            assert answer.calls or choice == "auto"
            for call in answer.calls:
                if call.name == "apply_patch":
                    parse(call.arguments["patch"], lenient=False)

        return tiny_runtime.turn_constraint(
            "grammar", tools, choice, thinking=False, **options
        ).result(), check

    patch = tiny_runtime.grammar_constraint(load("apply_patch_strict"))
    return [
        (patch, lambda done: parse(decode(done.tokens), lenient=False)),
        *(of_schema(dict(tool.parameters)) for tool in tools),
        *(of_schema(schema) for schema in SCHEMAS),
        *(of_turn(choice) for choice in ("auto", "required", *(tool.name for tool in tools))),
        *(of_turn(choice, carrier=JSON) for choice in ("required", "apply_patch")),
        of_turn("auto", parallel=True),
        of_turn("apply_patch", parallel=True, carrier=JSON),
    ]


def test_nothing_is_cut_and_nothing_exceeds_its_limit(tiny_runtime, kinds):
    tokenizer = tiny_runtime.tokenizer
    structure = structural_ids(tokenizer) | {*tokenizer.end_ids, tokenizer.special("<tool_call>")}
    prompt = [*tiny_runtime.dialect.user("work"), *tiny_runtime.dialect.open_answer(thinking=False)]
    rng = np.random.default_rng(7)
    n_finished = n_closed = 0
    for seed in range(N_RUNS):
        constraint, check = kinds[seed % len(kinds)]
        limit = int(rng.integers(SHORTEST, LONGEST + 1))
        model = NoisyModel(tiny_runtime.session, structure, seed, share=0.08)
        sampling = Sampling(1.0, seed=seed)
        try:
            done = generate(model, constraint, prompt, sampling=sampling, max_tokens=limit)
        except BudgetError:
            assert len(constraint.closing()) > limit
            continue
        assert len(done.tokens) <= limit
        assert done.complete, (seed, done.stop_reason, tokenizer.decode(done.tokens))
        check(done)
        n_finished += 1
        n_closed += done.stop_reason == "closed_by_budget"
    assert n_finished >= 0.9 * N_RUNS
    assert n_closed >= 0.1 * N_RUNS
