"""Walks a text through a byte matcher, with the names of special tokens in it taken as units."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import lru_cache
from typing import TypeVar

from constrained_agent.grammar.matcher import EngineTokenizer, Matcher, byte_tokenizer
from constrained_agent.grammar.sources import Grammar

T = TypeVar("T")

# Address space, of which only what is used costs memory; enough for the 65,525 symbols of the largest grammar.
_STACK_BYTES = 512 << 20
_STACK_SIZE_LOCK = threading.Lock()  # the size of the next thread's stack is a setting of the whole process
_CHUNK = 1 << 16  # tokens handed to the engine at once: bounds the lists, not the text


def byte_matcher(grammar: Grammar, specials: Sequence[str] = ()) -> Matcher:
    """A matcher over single bytes (id = value) and special tokens (the i-th has id 256 + i).

    Raises:
        GrammarError: the grammar does not compile.
    """
    return Matcher(_tokenizer(tuple(specials)), grammar)


def feed(matcher: Matcher, data: bytes, specials: Sequence[str] = ()) -> int:
    """Consume a text up to the first byte that is refused.

    Where the text holds the name of a special token and the grammar allows the token there, it is taken as the
    token, else as plain text.

    Returns:
        How many bytes were accepted. Costs about 1 microsecond a byte.

    Raises:
        MatcherError: the engine met one of its limits.
    """
    fed = 0
    for part, special in parts(data, specials):
        if special is not None and matcher.accepted_prefix([special]):
            matcher.consume([special])
            fed += len(part)
            continue
        for start in range(0, len(part), _CHUNK):
            chunk = list(part[start : start + _CHUNK])
            n_taken = matcher.accepted_prefix(chunk)
            matcher.consume(chunk[:n_taken])
            fed += n_taken
            if n_taken < len(chunk):
                return fed
    return fed


def parts(data: bytes, specials: Sequence[str]) -> list[tuple[bytes, int | None]]:
    """A text cut at the names of special tokens, longest name first; with each name its token id."""
    if not specials:
        return [(data, None)]
    ids = {name.encode(): 256 + position for position, name in enumerate(specials)}
    pattern = b"|".join(re.escape(name) for name in sorted(ids, key=len, reverse=True))
    return [(part, ids.get(part)) for part in re.split(b"(" + pattern + b")", data) if part]


def on_deep_stack(job: Callable[[], T]) -> T:
    """Run a job on a thread whose stack holds the engine's recursion.

    On the usual stack a chain of a few thousand rules ends the whole process.
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(job())
        except BaseException as error:  # noqa: BLE001 - raised again by the caller's thread
            outcome.set_exception(error)

    with _STACK_SIZE_LOCK:
        before = threading.stack_size(_STACK_BYTES)
        try:
            threading.Thread(target=run, daemon=True).start()
        finally:
            threading.stack_size(before)
    return outcome.result()


@lru_cache(maxsize=8)
def _tokenizer(specials: tuple[str, ...]) -> EngineTokenizer:
    return byte_tokenizer(specials)
