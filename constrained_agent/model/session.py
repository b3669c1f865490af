"""The only owner of a model's KV cache: runs ids through the model and remembers which ones it ran.

The cache always belongs to a prefix of `ids`; a new prompt reuses the common prefix and re-runs the rest, so
history is what the model really saw. What conversations begin with may come from the disk (`prefixes`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import mlx.core as mx
from mlx_lm.generate import generation_stream, wired_limit
from mlx_lm.models import cache as kv

from constrained_agent.errors import PromptTooLongError
from constrained_agent.model import memory
from constrained_agent.model.prefixes import Prefixes

if TYPE_CHECKING:
    from constrained_agent.model.weights import LoadedModel

# Prefill runs in chunks of about this long, so that Ctrl-C is heeded within a second and progress shows.
_CHUNK_S = 0.4
_FIRST_CHUNK = 32
_MAX_CHUNK = 2048  # as mlx-lm: larger ones only cost memory
# Share of the memory left after the weights that the KV cache may take; the rest is for a pass's own arrays
# and for everybody else on the machine.
_CACHE_SHARE = 0.75
_CLEAR_EVERY = 256  # steps between returns of unused buffers to the system, as mlx-lm does


class Session:
    """One conversation's state in one model.

    States: between calls the cache holds exactly `ids`. During a generation it may run ahead by one id that
    is not known yet (`forward_lazy` until `confirm`). After an exception, Ctrl-C included, the next `prefill`
    trims what was not recorded. Use from any thread, one at a time.

    Attributes:
        prefix: ids that prompts are expected to begin with; set it at any time. What the cache holds after them
            is kept on disk, for this session and others.
        chunk: length of the passes of a prompt; None = what takes about as long as a person waits for Ctrl-C. Sums
            over other lengths differ in their last bits.
    """

    def __init__(self, loaded: LoadedModel) -> None:
        memory.merge_freed_blocks()
        self._module = loaded.module
        self.logit_width = loaded.logit_width
        self._limit, self._limit_is = _context_limit(loaded)
        self.prefix: tuple[int, ...] = ()
        self.chunk: int | None = None
        self._prefixes = Prefixes(loaded)
        self._cache = kv.make_prompt_cache(self._module)
        self._ids: list[int] = []
        self._n_run = 0  # ids that passes were started on; ahead of `_ids` after an interrupt
        self._n_passes = 0

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids that the cache holds."""
        return tuple(self._ids)

    @property
    def can_cut(self) -> bool:
        """Whether `cut` is cheap; caches of a sliding window or of a recurrent model have to be run anew."""
        return bool(kv.can_trim_prompt_cache(self._cache))

    @property
    def context_limit(self) -> int:
        """Tokens that prompt and answer may have together: the model's context, or what fits in memory."""
        return self._limit

    def room(self, n_prompt: int) -> int:
        """Tokens that an answer to a prompt of `n_prompt` ids may have.

        Raises:
            PromptTooLongError: there is none.
        """
        if n_prompt >= self._limit:
            raise PromptTooLongError(n_prompt, self._limit, self._limit_is)
        return self._limit - n_prompt

    def forget(self) -> None:
        """Empty the cache: what runs next depends on nothing before it."""
        self._rewind(0)

    def prefill(
        self,
        ids: Sequence[int],
        on_progress: Callable[[int, int], None] | None = None,
        deadline: float | None = None,
    ) -> int:
        """Run all but the last id of a prompt.

        Args:
            ids: the whole prompt; the last id is left to `forward`, which gives the first logits.
            on_progress: called with (ids done, ids in all) after each chunk.
            deadline: `time.monotonic()` value after which no further chunk is run.

        Returns:
            How many ids did not have to be run: they were in the cache already, or on disk.

        Raises:
            PromptTooLongError: before any work.
        """
        self.room(len(ids))
        n_prefix = self._n_prefix(ids)
        reused = self._reuse(ids[:-1], n_prefix)
        done, chunk = reused, self.chunk or _FIRST_CHUNK
        while done < len(ids) - 1:
            if deadline is not None and time.monotonic() >= deadline:
                return reused
            if on_progress:
                on_progress(done, len(ids))
            end = n_prefix if done < n_prefix else len(ids) - 1
            part = list(ids[done : min(done + chunk, end)])
            started = time.perf_counter()
            self._n_run += len(part)
            self._module(mx.array(part)[None], cache=self._cache)
            mx.eval([layer.state for layer in self._cache])
            self._ids += part
            done += len(part)
            chunk = self.chunk or _next_chunk(len(part), time.perf_counter() - started)
            if done == n_prefix:
                self._prefixes.save(self.prefix, self._cache)
            mx.clear_cache()
        if on_progress:
            on_progress(len(ids), len(ids))
        return reused

    def forward(self, ids: Sequence[int]) -> mx.array:
        """Start a pass over known ids.

        Returns:
            (len(ids), logit_width) logits, being computed.
        """
        logits = self._start(mx.array(list(ids), dtype=mx.int32))
        self._ids += ids
        return logits

    def forward_lazy(self, token: mx.array) -> mx.array:
        """Start a pass over one id that is still being computed itself; `confirm` must follow.

        Args:
            token: () int32.

        Returns:
            (1, logit_width) logits, being computed.
        """
        return self._start(token.reshape(1))

    def confirm(self, token: int) -> None:
        """Record the id that the last `forward_lazy` ran on."""
        self._ids.append(token)

    def cut(self, n_ids: int) -> None:
        """Take the last ids back out of the cache, re-running the rest where the cache cannot be cut."""
        if n_ids == 0:
            return
        kept = self._ids[:-n_ids]
        if self._rewind(len(kept)) < len(kept):
            self.prefill([*kept, 0])

    @contextmanager
    def running(self) -> Iterator[None]:
        """Stream and wired memory for passes of the calling thread; leaves nothing unevaluated behind."""
        _clear_streams_at_thread_end()
        with mx.stream(generation_stream), wired_limit(self._module, [generation_stream]):
            try:
                yield
            finally:
                if self._ids:
                    # Another thread may go on with the cache; lazy arrays belong to this thread's stream.
                    mx.eval([layer.state for layer in self._cache])

    def _start(self, tokens: mx.array) -> mx.array:
        self._n_run += tokens.size
        logits: mx.array = self._module(tokens[None], cache=self._cache)[0]  # (n, logit_width)
        mx.async_eval(logits)  # type: ignore[no-untyped-call]  # its stub has no types
        self._n_passes += 1
        if self._n_passes % _CLEAR_EVERY == 0:
            mx.clear_cache()
        return logits

    def _n_prefix(self, ids: Sequence[int]) -> int:
        """Length of `prefix` if this prompt goes on from it and it is worth keeping, else 0."""
        n = len(self.prefix)
        return n if tuple(ids[: min(n, len(ids) - 1)]) == self.prefix and self._prefixes.keeps(n) else 0

    def _reuse(self, ids: Sequence[int], n_prefix: int) -> int:
        """Let the cache hold as much of `ids` as is known without running them; returns how many."""
        common = _common_prefix(self._ids, ids)
        if common < n_prefix and (cache := self._prefixes.load(self.prefix)):
            self._rewind(0)
            # In this order: an interrupt in between leaves a cache that counts as empty.
            self._cache, self._n_run = cache, n_prefix
            self._ids = list(self.prefix)
            return n_prefix
        return self._rewind(common)

    def _rewind(self, n: int) -> int:
        """Cut the cache back to its first `n` ids, or empty it where it cannot be cut; returns what is left.

        Layer by layer: an interrupt in the middle of a pass leaves some of them one step ahead.
        """
        if n and n == len(self._ids) == self._n_run:
            return n
        if n and kv.can_trim_prompt_cache(self._cache):
            extra = [layer.offset - n for layer in self._cache]
            self._n_run = -1  # an interrupt in between leaves layers of different lengths
            if all(e >= 0 and layer.trim(e) == e for e, layer in zip(extra, self._cache, strict=True)):
                del self._ids[n:]
                self._n_run = n
                return n
        self._n_run = 0
        self._cache = kv.make_prompt_cache(self._module)
        self._ids.clear()
        return 0


def _context_limit(loaded: LoadedModel) -> tuple[int, str]:
    """Tokens that a conversation may have, and in words what sets that limit.

    The model's own context length, or less where its KV cache would not fit beside the weights (loaded
    already) in memory.
    """
    if mx.default_device() == mx.Device(mx.gpu):
        device = mx.device_info()
        # Metal names what it recommends to keep resident, CUDA what the card has.
        sizes = [device[key] for key in ("max_recommended_working_set_size", "total_memory") if key in device]
        left = int(sizes[0]) - loaded.n_bytes if sizes else memory.available_bytes()
    else:
        left = memory.available_bytes()
    fitting = int(max(0, left) * _CACHE_SHARE) // max(1, loaded.kv_bytes_per_token)
    if fitting < loaded.context_length:
        kib = loaded.kv_bytes_per_token / 1024
        return fitting, f"what fits into memory beside {loaded.card.name} ({kib:.0f} KiB a token)"
    return loaded.context_length, f"the context of {loaded.card.name}"


class _StreamsOfThread:
    """Dies with its thread, in that thread, and takes the thread's streams along."""

    def __del__(self) -> None:
        mx.clear_streams()


_of_thread = threading.local()


def _clear_streams_at_thread_end() -> None:
    """A worker that ends with live streams can abort the process at exit (ml-explore/mlx #4110); mlx's authors
    advise `clear_streams` at the end of a thread. Earlier would break the thread's next generation."""
    if threading.current_thread() is not threading.main_thread() and not hasattr(_of_thread, "streams"):
        _of_thread.streams = _StreamsOfThread()


def _common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return i
    return min(len(a), len(b))


def _next_chunk(n_tokens: int, seconds: float) -> int:
    """A chunk that should take about `_CHUNK_S`, growing at most fourfold at once."""
    fitting = int(n_tokens * _CHUNK_S / max(seconds, 1e-6))
    return max(16, min(fitting, 4 * n_tokens, _MAX_CHUNK))
