"""Walks a text through a byte matcher, with the names of special tokens in it taken as units."""

from __future__ import annotations

import atexit
import os
import re
import resource
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import lru_cache
from typing import TypeVar

from constrained_agent.errors import UserError
from constrained_agent.grammar.deepstack import started
from constrained_agent.grammar.matcher import EngineTokenizer, Matcher, byte_tokenizer
from constrained_agent.grammar.sources import Grammar

T = TypeVar("T")

# A grammar that people work with compiles in under 2 s; the time for a text is twenty times what is usual.
_LIMIT_S = 30.0
_LIMIT_S_PER_BYTE = 20e-6
_LIMIT_BYTES = 3 << 30
_LIMIT_BYTES_PER_BYTE = 2_000  # the engine keeps its history
_POLL_S = 0.1
_TOO_COSTLY = "the grammar is too costly (huge repetition counts, or names that double at each step)"
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


def guarded(job: Callable[[], T], grammar: Grammar, n_bytes: int = 0) -> T:
    """Run a job on a grammar that a person handed over: it can neither end nor hang the process.

    The engine offers no bound on compiling or looking ahead, so time and memory are watched from outside. A job
    that is given up goes on in its daemon thread: report and exit, do not go on to the next grammar. If it still
    runs then, the exit code is 2.

    Args:
        job: compiles and walks; runs on a thread with a deep stack.
        grammar: named in messages.
        n_bytes: size of the text; long ones get more time and memory.

    Raises:
        UserError: no end within the limits.
    """
    outcome = started(job, may_hang=True)
    n_seconds = _LIMIT_S + n_bytes * _LIMIT_S_PER_BYTE
    most_bytes = _peak_bytes() + _LIMIT_BYTES + n_bytes * _LIMIT_BYTES_PER_BYTE
    deadline = time.monotonic() + n_seconds
    while True:
        try:
            return outcome.result(timeout=_POLL_S)
        except TimeoutError:
            if outcome.done():
                raise  # the job's own
        if time.monotonic() > deadline:
            excess = f"no answer within {n_seconds:.0f} s"
        elif _peak_bytes() > most_bytes:
            excess = f"it takes more than {_LIMIT_BYTES >> 30} GB"
        else:
            continue
        atexit.register(_leave, outcome)
        raise UserError(f"{grammar.name}: {_TOO_COSTLY}: {excess}")


def _leave(outcome: Future[T]) -> None:
    """End the process at once if a job still runs.

    Python's own way out ends a daemon thread when it comes back from the engine, which crashes in the engine's
    frames.
    """
    if not outcome.done():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(2)


def _peak_bytes() -> int:
    """The most memory that the process has ever held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10


@lru_cache(maxsize=8)
def _tokenizer(specials: tuple[str, ...]) -> EngineTokenizer:
    return byte_tokenizer(specials)
