"""Generation by mlx-lm itself, for comparison: its own loop and its own prompt cache, over the same weights.

Nothing of the agent runs through here. What a person adds to mlx-lm today to bind it to a grammar is a logits processor
(`MaskProcessor`). It computes each mask when the logits are asked for and sets what is forbidden to minus infinity;
every token takes a pass, also where the grammar leaves no choice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Protocol, cast

import mlx.core as mx
import numpy as np
from mlx_lm.generate import generate_step, generation_stream, wired_limit
from mlx_lm.models import cache as kv
from numpy.typing import NDArray

if TYPE_CHECKING:
    from constrained_agent.model.weights import LoadedModel


class Processor(Protocol):
    """What mlx-lm calls between a pass and the draw."""

    def __call__(self, tokens: mx.array, logits: mx.array) -> mx.array:
        """Other logits, (1, V), for the token after `tokens`, (n,)."""


class Masks(Protocol):
    """What a processor needs of a grammar; every constraint of the agent has it."""

    @property
    def vocab_size(self) -> int: ...

    @property
    def end_ids(self) -> Collection[int]: ...

    def bitmask(self) -> NDArray[np.int32]:
        """(ceil(vocab_size / 32),) int32, bit 1 = allowed; bits past `vocab_size` say nothing."""

    def consume(self, tokens: Sequence[int]) -> None: ...


@dataclass(frozen=True, slots=True)
class Written:
    """What mlx-lm wrote.

    Attributes:
        tokens: ids in order, without the end token.
        times_s: when each of them was there, in seconds since the prompt but for its last id had run.
        end_token: the id that ended it, if one did.
        n_steps: passes after that of the prompt's last id; mlx-lm starts one that nobody asks for at the end.
        n_reused: prompt ids that were in the cache already.
        prefill_s: seconds for the others, without the last.
    """

    tokens: tuple[int, ...]
    times_s: tuple[float, ...]
    end_token: int | None
    n_steps: int
    n_reused: int
    prefill_s: float


class Plain:
    """mlx-lm over a loaded model. Its cache keeps the last prompt, so that a repeated one costs its last id alone."""

    def __init__(self, loaded: LoadedModel) -> None:
        self._module = loaded.module
        self._cache: list[Any] = []
        self._ids: list[int] = []  # what the cache begins with

    def write(
        self,
        prompt: Sequence[int],
        *,
        max_tokens: int,
        processors: Sequence[Processor] = (),
        end_ids: Collection[int] = (),
    ) -> Written:
        """Write one text at temperature 0.

        Args:
            prompt: ids, at least one.
            max_tokens: at most so many tokens, an end token included.
            processors: asked in turn.
            end_ids: tokens that end the text; without them it has `max_tokens`.
        """
        started = prefilled = time.perf_counter()
        n_reused = self._rewind(prompt)

        def on_prompt(done: int, total: int) -> None:
            nonlocal prefilled
            if done == total - 1:
                prefilled = time.perf_counter()

        tokens, times_s, end_token = [], [], None
        with (
            wired_limit(self._module, [generation_stream]),
            closing(self._steps(prompt[n_reused:], max_tokens, processors, on_prompt)) as steps,
        ):
            for token in steps:
                if token in end_ids:
                    end_token = token
                    break
                tokens.append(token)
                times_s.append(time.perf_counter() - prefilled)
            # The pass that mlx-lm has started ahead must not run on into whatever is measured next.
            mx.synchronize(generation_stream)
        self._ids = list(prompt[:-1])
        n_steps = len(tokens) + (end_token is not None)
        return Written(tuple(tokens), tuple(times_s), end_token, n_steps, n_reused, prefilled - started)

    def _steps(
        self,
        ids: Sequence[int],
        max_tokens: int,
        processors: Sequence[Processor],
        on_prompt: Callable[[int, int], None],
    ) -> Generator[int, None, None]:
        """mlx-lm's own loop."""
        for token, _ in generate_step(
            mx.array(list(ids), dtype=mx.uint32),
            self._module,
            max_tokens=max_tokens,
            logits_processors=list(processors) or None,
            prompt_cache=self._cache,
            prompt_progress_callback=on_prompt,
        ):
            yield token

    def _rewind(self, prompt: Sequence[int]) -> int:
        """Cut the cache back to what it shares with a prompt but for the last id; returns how much that is."""
        n = sum(
            1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(self._ids, prompt[:-1], strict=False))
        )
        self._ids = []  # until a run has ended well
        if n and kv.can_trim_prompt_cache(self._cache):
            for layer in self._cache:
                layer.trim(layer.offset - n)
            return n
        self._cache = kv.make_prompt_cache(self._module)
        return 0


class MaskProcessor:
    """Binds mlx-lm to a grammar as its users do it: a logits processor, one mask for each token.

    Attributes:
        mask_us: microseconds that each bitmask took.
    """

    def __init__(self, masks: Masks) -> None:
        """Args: `masks` is in its first state, and is moved."""
        self.mask_us: list[float] = []
        self._masks = masks
        self._asked = False

    def __call__(self, tokens: mx.array, logits: mx.array) -> mx.array:
        """The logits with minus infinity for what the grammar forbids after `tokens`."""
        if self._asked:
            token = cast(int, tokens[-1].item())  # the pass before must end first: nothing runs meanwhile
            if token in self._masks.end_ids:
                return logits  # mlx-lm asks for one token more before it hands this one out
            self._masks.consume([token])
        self._asked = True
        started = time.perf_counter()
        bitmask = self._masks.bitmask()
        self.mask_us.append((time.perf_counter() - started) * 1e6)
        allowed = np.zeros(logits.shape[-1], dtype=np.bool_)
        bits = np.unpackbits(bitmask.view(np.uint8), bitorder="little")[: self._masks.vocab_size]
        allowed[: bits.size] = bits
        return mx.where(mx.array(allowed), logits, mx.array(-float("inf"), dtype=logits.dtype))
