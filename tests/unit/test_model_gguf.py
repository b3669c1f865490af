"""GGUF files written here byte by byte: packed and plain tensors, the tokenizer, and files that are refused."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.models import llama
from tokenizers import Tokenizer

from constrained_agent.errors import ModelError
from constrained_agent.model import gguf

HIDDEN, HEADS, KV_HEADS, WIDE, LAYERS, CONTEXT = 64, 4, 2, 96, 2, 128
BYTES = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
LETTERS = [chr(byte) for byte in BYTES] + [chr(0x100 + at) for at in range(256 - len(BYTES))]
TOKENS = ["<|end|>", "<|user|>", *LETTERS, "th", "the", "Ġthe", "12"]
MERGES = ["t h", "th e", "Ġ the", "1 2"]
FACTS: dict[str, Any] = {
    "general.architecture": "llama",
    "llama.block_count": LAYERS,
    "llama.embedding_length": HIDDEN,
    "llama.feed_forward_length": WIDE,
    "llama.attention.head_count": HEADS,
    "llama.attention.head_count_kv": KV_HEADS,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.freq_base": 50_000.0,
    "llama.rope.dimension_count": HIDDEN // HEADS,
    "llama.context_length": CONTEXT,
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.tokens": TOKENS,
    "tokenizer.ggml.token_type": [3, 4] + [1] * (len(TOKENS) - 2),
    "tokenizer.ggml.merges": MERGES,
    "tokenizer.ggml.eos_token_id": 0,
    "tokenizer.chat_template": "{{ messages }}",
}
SHAPES = {
    "attn_q": (HIDDEN, HIDDEN),
    "attn_k": (HIDDEN // 2, HIDDEN),
    "attn_v": (HIDDEN // 2, HIDDEN),
    "attn_output": (HIDDEN, HIDDEN),
    "ffn_gate": (WIDE, HIDDEN),
    "ffn_up": (WIDE, HIDDEN),
    "ffn_down": (HIDDEN, WIDE),
}


def test_plain_file_runs_as_the_same_llama(tmp_path: Path) -> None:
    tensors = random_tensors()
    found = gguf.load(write(tmp_path / "plain.gguf", FACTS, tensors), "float32")
    ids = mx.arange(40)[None]
    assert mx.allclose(found.module(ids), reference(tensors)(ids), atol=1e-5)
    assert found.config["num_key_value_heads"] == KV_HEADS
    assert found.config["max_position_embeddings"] == CONTEXT
    assert found.end_tokens == ("<|end|>",)
    assert found.chat_template == "{{ messages }}"


def test_packed_file_runs_as_its_unpacked_values(tmp_path: Path) -> None:
    """4 bits for the layers, 8 for the embedding, as in the embedded model's file."""
    tensors = random_tensors()
    packed = {name: q8_0 if name.startswith("token_embd") else q4_1 for name in tensors if "norm" not in name}
    path = write(tmp_path / "packed.gguf", FACTS, tensors, packed)
    found = gguf.load(path, "float32")
    assert found.module.model.embed_tokens.bits == 8
    assert found.module.model.layers[0].mlp.up_proj.bits == 4
    unpacked = {name: packed[name](array)[1] if name in packed else array for name, array in tensors.items()}
    ids = mx.arange(40)[None]
    assert mx.allclose(found.module(ids), reference(unpacked)(ids), atol=1e-3)


def test_untied_head_and_half_floats(tmp_path: Path) -> None:
    tensors = random_tensors() | {"output.weight": np.ones((len(TOKENS), HIDDEN), np.float32)}
    found = gguf.load(write(tmp_path / "untied.gguf", FACTS, tensors), "float16")
    logits = found.module(mx.arange(3)[None])
    assert logits.dtype == mx.float16
    assert mx.allclose(logits, logits[..., :1])


def test_tokenizer(tmp_path: Path) -> None:
    found = gguf.load(write(tmp_path / "plain.gguf", FACTS, random_tensors()), "float32")
    tokenizer = Tokenizer.from_str(found.tokenizer_json)
    assert tokenizer.get_vocab_size() == len(TOKENS)
    # Digits stand alone, whatever the merges say; the space belongs to the word.
    assert tokenizer.encode("12 the<|end|>é").tokens == ["1", "2", "Ġthe", "<|end|>", "Ã", "©"]
    text = "\tthe  é 12\r\n"
    assert tokenizer.decode(tokenizer.encode(text).ids) == text
    added = json.loads(found.tokenizer_json)["added_tokens"]
    assert [(token["content"], token["special"]) for token in added] == [
        ("<|end|>", True),
        ("<|user|>", False),
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"general.architecture": "mamba"}, "architecture 'mamba' is not supported"),
        ({"tokenizer.ggml.model": "llama"}, "tokenizer 'llama' is not supported"),
        ({"tokenizer.ggml.pre": "tekken"}, "pre-tokenizer 'tekken' is not supported"),
        ({"llama.rope.scaling.type": "yarn"}, "scaled rotary embeddings"),
        ({"llama.rope.dimension_count": 8}, "partly rotated"),
        ({"llama.block_count": None}, "lacks llama.block_count"),
        ({"tokenizer.ggml.merges": None}, "lacks tokenizer.ggml.merges"),
    ],
)
def test_unsupported_files_are_one_line(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    facts = {key: value for key, value in (FACTS | changes).items() if value is not None}
    path = write(tmp_path / "odd.gguf", facts, random_tensors())
    with pytest.raises(ModelError) as error:
        gguf.load(path, "float32")
    assert message in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("damage", ["unknown", "missing", "shape"])
def test_wrong_tensors_are_one_line(damage: str, tmp_path: Path) -> None:
    tensors = random_tensors()
    if damage == "unknown":
        tensors["rope_freqs.weight"] = np.ones(8, np.float32)
    elif damage == "missing":
        del tensors["blk.1.ffn_up.weight"]
    else:
        tensors["blk.1.ffn_up.weight"] = np.ones((4, 4), np.float32)
    with pytest.raises(ModelError) as error:
        gguf.load(write(tmp_path / "odd.gguf", FACTS, tensors), "float32")
    assert "\n" not in str(error.value)


def test_broken_file_is_one_line(tmp_path: Path) -> None:
    whole = write(tmp_path / "whole.gguf", FACTS, random_tensors())
    for size in (0, 100, whole.stat().st_size // 2):
        cut = tmp_path / "cut.gguf"
        cut.write_bytes(whole.read_bytes()[:size])
        with pytest.raises(ModelError, match="cannot be read as GGUF"):
            gguf.load(cut, "float32")


def random_tensors() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    tensors = {
        "token_embd.weight": random.normal(size=(len(TOKENS), HIDDEN)),
        "output_norm.weight": np.ones(HIDDEN),
    }
    for layer in range(LAYERS):
        for part, shape in SHAPES.items():
            tensors[f"blk.{layer}.{part}.weight"] = random.normal(size=shape) / np.sqrt(shape[1])
        for part in ("attn_norm", "ffn_norm"):
            tensors[f"blk.{layer}.{part}.weight"] = random.uniform(0.5, 1.5, size=HIDDEN)
    return {name: array.astype(np.float32) for name, array in tensors.items()}


def reference(tensors: dict[str, np.ndarray]) -> llama.Model:
    """The same weights in a module built by hand."""
    names = {"token_embd": "embed_tokens", "output_norm": "norm", "attn_norm": "input_layernorm"}
    names |= {"ffn_norm": "post_attention_layernorm", "attn_output": "self_attn.o_proj"}
    names |= {f"attn_{part}": f"self_attn.{part}_proj" for part in "qkv"}
    names |= {f"ffn_{part}": f"mlp.{part}_proj" for part in ("gate", "up", "down")}
    module = llama.Model(
        llama.ModelArgs(
            model_type="llama",
            hidden_size=HIDDEN,
            num_hidden_layers=LAYERS,
            intermediate_size=WIDE,
            num_attention_heads=HEADS,
            num_key_value_heads=KV_HEADS,
            rms_norm_eps=1e-5,
            vocab_size=len(TOKENS),
            rope_theta=50_000.0,
            rope_traditional=True,
        )
    )
    weights = {}
    for name, array in tensors.items():
        *path, part, _ = name.replace("blk.", "layers.").split(".")
        weights[".".join(["model", *path, names[part], "weight"])] = mx.array(array)
    module.load_weights(list(weights.items()))
    return module


def q4_1(array: np.ndarray) -> tuple[bytes, np.ndarray]:
    """Blocks of 32: scale, minimum, then two values a byte; returns them and the values they stand for."""
    blocks = array.reshape(-1, 32)
    low = blocks.min(axis=1, keepdims=True).astype(np.float16)
    step = ((blocks.max(axis=1, keepdims=True) - low) / 15).astype(np.float16)
    steps = np.clip(np.round((blocks - low) / step), 0, 15).astype(np.uint8)
    nibbles = steps[:, :16] | (steps[:, 16:] << 4)
    data = b"".join(
        s.tobytes() + m.tobytes() + n.tobytes() for s, m, n in zip(step, low, nibbles, strict=True)
    )
    return data, (steps * step.astype(np.float32) + low.astype(np.float32)).reshape(array.shape).astype(
        np.float32
    )


def q8_0(array: np.ndarray) -> tuple[bytes, np.ndarray]:
    """Blocks of 32: scale, then signed bytes."""
    blocks = array.reshape(-1, 32)
    step = (np.abs(blocks).max(axis=1, keepdims=True) / 127).astype(np.float16)
    steps = np.round(blocks / step).astype(np.int8)
    data = b"".join(s.tobytes() + q.tobytes() for s, q in zip(step, steps, strict=True))
    return data, (steps * step.astype(np.float32)).reshape(array.shape).astype(np.float32)


TENSOR_TYPES = {q4_1: 3, q8_0: 8}


def write(
    path: Path, facts: dict[str, Any], tensors: dict[str, np.ndarray], packed: dict[str, Any] | None = None
) -> Path:
    """GGUF version 3: header, metadata, tensor table, tensors aligned to 32 bytes."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(facts))
    for key, value in facts.items():
        head += string(key) + typed(value)
    table, data = b"", b""
    for name, array in tensors.items():
        pack = (packed or {}).get(name)
        content = pack(array)[0] if pack else array.tobytes()
        dims = array.shape[::-1]
        table += string(name) + struct.pack(f"<I{len(dims)}Q", len(dims), *dims)
        table += struct.pack("<IQ", TENSOR_TYPES.get(pack, 0), len(data))
        data += content + b"\0" * (-len(content) % 32)
    head += table
    path.write_bytes(head + b"\0" * (-len(head) % 32) + data)
    return path


def string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def typed(value: Any) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", 8) + string(value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value[0], str):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(string, value))
    return struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)
