"""Bitmasks applied to logits: against a plain reference, at odd widths."""

import mlx.core as mx
import numpy as np
import pytest

from constrained_agent.decode import mask


def packed(allowed):
    bits = np.packbits(np.array(allowed, dtype=np.uint8), bitorder="little")
    return np.frombuffer(bits.tobytes() + b"\0" * (-len(bits) % 4), dtype=np.int32)


@pytest.mark.parametrize("vocab_size", [1, 31, 32, 33, 64, 1000])
@pytest.mark.parametrize("extra", [0, 1, 31, 32, 100])
def test_agrees_with_a_plain_reference(vocab_size, extra):
    rng = np.random.default_rng(vocab_size * 1000 + extra)
    width = vocab_size + extra
    allowed = rng.random(vocab_size) < 0.5
    logits = rng.normal(size=width).astype(np.float32)
    words = mask.padded(packed(allowed), vocab_size, width)
    expected = np.where(np.pad(allowed, (0, extra)), logits, -np.inf)
    assert np.array_equal(np.array(mask.apply(mx.array(logits), words)), expected)
    assert mask.count(words) == allowed.sum()
    assert mask.ids(words).tolist() == np.flatnonzero(allowed).tolist()


def test_bits_past_the_vocabulary_are_cleared():
    """An engine may leave the last word's spare bits set; they name ids that the tokenizer does not know."""
    words = mask.padded(np.full(2, -1, dtype=np.int32), 33, 96)
    assert mask.ids(words).tolist() == list(range(33))


@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16])
def test_keeps_the_dtype(dtype):
    logits = mx.ones(40).astype(dtype)
    masked = mask.apply(logits, mask.padded(packed([1, 0] * 20), 40, 40))
    assert masked.dtype == dtype
    assert mx.isinf(masked).sum().item() == 20
