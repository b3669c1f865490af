"""Reads a GGUF file of the llama architecture into an mlx-lm module and a tokenizer.json.

mlx's own loader already turns GGUF blocks into its packed arrays (Q4_1 into 4 bits in groups of 32); what is
left to do here is naming, shapes, and the tokenizer that such a file carries in its metadata.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from constrained_agent.errors import ModelError

_GROUP_SIZE = 32  # values that share a scale in every GGUF block format that mlx keeps packed

_LAYER_PARTS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_TOP_PARTS = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}

# Values of tokenizer.ggml.token_type.
_CONTROL, _USER_DEFINED = 3, 4

# How text is cut before byte-pair merging, by the file's tokenizer.ggml.pre: the part before the usual
# byte-level splitting.
_PRE_SPLITS: dict[str, list[dict[str, Any]]] = {
    "smollm": [{"type": "Digits", "individual_digits": True}],
    "gpt-2": [],
}


@dataclass(frozen=True, slots=True)
class Gguf:
    """A model read from one file.

    Attributes:
        module: an `mlx_lm.models.llama.Model`.
        config: its shape, under the names that hub configs use.
        tokenizer_json: text of a `tokenizers` tokenizer.json.
        end_tokens: what the file itself names as end of text.
    """

    module: Any
    config: dict[str, Any]
    tokenizer_json: str
    chat_template: str | None
    end_tokens: tuple[str, ...]


def load(path: Path, float_type: Literal["float16", "float32"]) -> Gguf:
    """Read a GGUF file; about a second and the file's size in memory for SmolLM2-135M.

    Args:
        path: the file.
        float_type: of everything that is not packed: norms, and scales and biases of what is.

    Raises:
        ModelError: the file is broken, or its architecture or tokenizer is not supported.
    """
    import mlx.core as mx

    try:
        loaded: Any = mx.load(str(path), return_metadata=True)
    except (RuntimeError, ValueError) as error:
        # mlx's reader opens the file for reading and writing.
        hint = "" if os.access(path, os.W_OK) else f"; mlx needs to write to it: chmod u+w {path}, or copy it"
        raise ModelError(f"{path} cannot be read as GGUF: {error}{hint}") from error
    arrays, metadata = loaded
    facts = {key: _plain(value) for key, value in metadata.items()}
    try:
        config = _config(facts)
        tokens = facts["tokenizer.ggml.tokens"]
        tokenizer_json = json.dumps(_tokenizer(facts), ensure_ascii=False)
        end_token = tokens[facts["tokenizer.ggml.eos_token_id"]]
        weights = {_module_name(name): array for name, array in arrays.items()}
        module = _module(config, weights, float_type)
    except KeyError as error:
        raise ModelError(f"{path}: the GGUF file lacks {error.args[0]}") from error
    except ValueError as error:
        raise ModelError(f"{path}: {' '.join(str(error).split())}") from error
    return Gguf(module, config, tokenizer_json, facts.get("tokenizer.chat_template"), (end_token,))


def read_tokenizer(path: Path) -> tuple[str, tuple[str, ...]]:
    """The tokenizer.json text of a GGUF file and its end tokens, without making a model of it.

    Raises:
        ModelError: the file is broken, or its tokenizer is not supported.
    """
    import mlx.core as mx

    try:
        # Arrays are read when they are first used: here never.
        loaded: Any = mx.load(str(path), return_metadata=True)
        facts = {key: _plain(value) for key, value in loaded[1].items()}
        end_token = facts["tokenizer.ggml.tokens"][facts["tokenizer.ggml.eos_token_id"]]
        return json.dumps(_tokenizer(facts), ensure_ascii=False), (end_token,)
    except (RuntimeError, ValueError) as error:
        raise ModelError(f"{path} cannot be read as GGUF: {error}") from error
    except KeyError as error:
        raise ModelError(f"{path}: the GGUF file lacks {error.args[0]}") from error


def _plain(value: Any) -> Any:
    """Numbers arrive as arrays of one element."""
    return value.item() if getattr(value, "size", 0) == 1 else value


def _config(facts: Mapping[str, Any]) -> dict[str, Any]:
    architecture = facts["general.architecture"]
    if architecture != "llama":
        raise ValueError(f"GGUF of architecture {architecture!r} is not supported, only llama")
    if facts.get("llama.rope.scaling.type", "none") != "none":
        raise ValueError("GGUF with scaled rotary embeddings is not supported")
    hidden, heads = facts["llama.embedding_length"], facts["llama.attention.head_count"]
    head_dim = facts.get("llama.attention.key_length", hidden // heads)
    if facts.get("llama.rope.dimension_count", head_dim) != head_dim:
        raise ValueError("GGUF with partly rotated heads is not supported")
    return {
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": facts["llama.feed_forward_length"],
        "num_hidden_layers": facts["llama.block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": facts.get("llama.attention.head_count_kv", heads),
        "head_dim": head_dim,
        "rms_norm_eps": facts["llama.attention.layer_norm_rms_epsilon"],
        "rope_theta": facts.get("llama.rope.freq_base", 10_000.0),
        # GGUF stores the query and key rows of this architecture so that neighbours rotate together.
        "rope_traditional": True,
        "max_position_embeddings": facts["llama.context_length"],
        "vocab_size": len(facts["tokenizer.ggml.tokens"]),
    }


def _module_name(name: str) -> str:
    *path, part, kind = name.split(".")
    if not path and part in _TOP_PARTS:
        return f"{_TOP_PARTS[part]}.{kind}"
    if len(path) == 2 and path[0] == "blk" and part in _LAYER_PARTS:
        return f"model.layers.{path[1]}.{_LAYER_PARTS[part]}.{kind}"
    raise ValueError(f"GGUF tensor {name} is not known in a llama model")


def _module(config: dict[str, Any], weights: dict[str, Any], float_type: str) -> Any:
    import mlx.core as mx
    from mlx import nn
    from mlx_lm.models import llama

    tied = "lm_head.weight" not in weights
    module = llama.Model(llama.ModelArgs.from_dict({**config, "tie_word_embeddings": tied}))
    bits = {
        name: _bits(weights, name)
        for name in (key.removesuffix(".scales") for key in weights if key.endswith(".scales"))
    }
    nn.quantize(
        module,
        class_predicate=lambda name, _: name in bits and {"group_size": _GROUP_SIZE, "bits": bits[name]},
    )
    dtype = getattr(mx, float_type)
    module.load_weights(
        [
            (name, array if array.dtype == mx.uint32 else array.astype(dtype))
            for name, array in weights.items()
        ]
    )
    return module


def _bits(weights: Mapping[str, Any], name: str) -> int:
    packed, scales = weights[f"{name}.weight"], weights[f"{name}.scales"]
    return int(packed.shape[-1] * 32 // (scales.shape[-1] * _GROUP_SIZE))


def _tokenizer(facts: Mapping[str, Any]) -> dict[str, Any]:
    """A byte-level BPE tokenizer.json; the merges' order is their rank, as in the file."""
    model, pre = facts["tokenizer.ggml.model"], facts.get("tokenizer.ggml.pre", "")
    if model != "gpt2":
        raise ValueError(f"GGUF tokenizer {model!r} is not supported, only byte-level BPE (gpt2)")
    if pre not in _PRE_SPLITS:
        raise ValueError(f"GGUF pre-tokenizer {pre!r} is not supported, only {', '.join(_PRE_SPLITS)}")
    tokens, types = facts["tokenizer.ggml.tokens"], facts["tokenizer.ggml.token_type"].tolist()
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": index,
                "content": tokens[index],
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": kind == _CONTROL,
            }
            for index, kind in enumerate(types)
            if kind in (_CONTROL, _USER_DEFINED)
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*_PRE_SPLITS[pre], byte_level]},
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: index for index, token in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in facts["tokenizer.ggml.merges"]],
        },
    }
