"""Jobs on threads whose stack holds the engine's recursion.

On the usual stack a chain of a few thousand rules ends the whole process (LLGuidance 1.9.1).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")

# Address space, of which only what is used costs memory; enough for the 65,525 symbols of the largest grammar.
_STACK_BYTES = 512 << 20
_STACK_SIZE_LOCK = threading.Lock()  # the size of the next thread's stack is a setting of the whole process


def started(job: Callable[[], T], *, may_hang: bool = False) -> Future[T]:
    """Start a job on a thread of its own, with a deep stack; what it raises, the future raises.

    Args:
        may_hang: the process ends without waiting for the job. It then has to end at once (`os._exit`): Python's own
            way out ends such a thread when it comes back from the engine, and crashes in the engine's frames.
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
            threading.Thread(target=run, daemon=may_hang).start()
        finally:
            threading.stack_size(before)
    return outcome
