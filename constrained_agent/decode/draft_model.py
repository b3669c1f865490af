"""Guesses by a second, smaller model with the same vocabulary (C. Chen et al., 2023)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import cast

import mlx.core as mx

from constrained_agent.decode import mask
from constrained_agent.decode.needs import Model, State
from constrained_agent.errors import PromptTooLongError

_DECAY = 0.9
_OBLIVION = 0.995  # of what a guess costs, at each token: one that was slow once is tried again
_SMALL = 4  # ids that a guess of the usual kind runs at most


class ModelDrafts:
    """The token that the small model likes best, of those that the mask allows.

    Args:
        model: owns a cache of its own; it is brought up to date when a guess is asked for.
        vocab_size: ids that both models know.

    Attributes:
        cost_s: what a guess took lately; that of a long text that the model had not seen does not count.
    """

    kind = "model"

    def __init__(self, model: Model, vocab_size: int) -> None:
        self.cost_s = 0.0
        self._model, self._vocab_size = model, vocab_size
        self._text: list[int] = []
        self._n_seen = 0

    def begin(self, prompt: Sequence[int]) -> None:
        """An answer to a prompt begins."""
        self._text, self._n_seen = list(prompt), 0

    def extend(self, ids: Sequence[int]) -> None:
        """The answer goes on."""
        self._text += ids
        self.cost_s *= _OBLIVION ** len(ids)

    def guesses(self, ahead: Sequence[int], state: State) -> Iterator[tuple[str, int]]:
        """One guess, after one pass; none where the text has outgrown the model's context."""
        ids = [*self._text, *ahead]
        started = time.perf_counter()
        try:
            self._model.prefill(ids)
        except PromptTooLongError:
            return
        logits = self._model.forward(ids[-1:])[-1]  # (V,)
        words = mask.padded(state.bitmask(), self._vocab_size, self._model.logit_width)
        token = int(cast(int, mx.argmax(mask.apply(logits, words)).item()))
        if 0 < len(ids) - self._n_seen <= _SMALL:
            taken = time.perf_counter() - started
            self.cost_s = taken if self.cost_s == 0 else self.cost_s * _DECAY + taken * (1 - _DECAY)
        self._n_seen = len(ids)
        yield self.kind, token
