"""Applies a bitmask of allowed tokens to logits that may be wider than the vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import mlx.core as mx
import numpy as np
from numpy.typing import NDArray


def padded(bitmask: NDArray[np.int32], vocab_size: int, logit_width: int) -> NDArray[np.uint32]:
    """Widen a bitmask to the logits; ids from `vocab_size` up are never allowed.

    Args:
        bitmask: (ceil(vocab_size / 32),) int32, bit 1 = allowed. Bits past `vocab_size` are ignored.
        vocab_size: ids that the tokenizer knows.
        logit_width: ids that the model emits; at least `vocab_size`.

    Returns:
        (ceil(logit_width / 32),) uint32.
    """
    words = np.zeros((logit_width + 31) // 32, dtype=np.uint32)
    n = (vocab_size + 31) // 32
    words[:n] = bitmask[:n].view(np.uint32)
    if vocab_size % 32:
        words[n - 1] &= np.uint32((1 << (vocab_size % 32)) - 1)
    return words


def count(words: NDArray[np.uint32]) -> int:
    """How many tokens a bitmask allows."""
    return int(np.bitwise_count(words).sum())


def ids(words: NDArray[np.uint32]) -> NDArray[np.int32]:
    """The allowed ids, ascending. Costs about 0.1 ms at width 151,936; meant for small sets."""
    hit = np.flatnonzero(words)
    bits = (words[hit, None] >> np.arange(32, dtype=np.uint32)) & 1
    rows, columns = np.nonzero(bits)
    return (hit[rows] * 32 + columns).astype(np.int32)


def apply(logits: mx.array, words: NDArray[np.uint32]) -> mx.array:
    """Set the logits of forbidden tokens to minus infinity.

    Args:
        logits: (V,) float.
        words: (ceil(V / 32),) uint32, bit 1 = allowed.

    Returns:
        (V,) of the same dtype, lazy.
    """
    return _apply(logits, mx.array(words))


def allowed_only(logits: mx.array, words: mx.array) -> mx.array:
    """`apply`, op by op: to be compiled with what comes next."""
    bits = (words[:, None] >> mx.arange(32, dtype=mx.uint32)) & 1  # (ceil(V / 32), 32)
    allowed = bits.reshape(-1)[: logits.shape[-1]].astype(mx.bool_)  # (V,)
    return mx.where(allowed, logits, mx.array(-float("inf"), dtype=logits.dtype))


# One fused kernel: 0.2 ms at width 151,936 on a CPU, against 1.1 ms op by op.
_apply = cast(Callable[[mx.array, mx.array], mx.array], mx.compile(allowed_only))
