"""What the token loop needs of a model and of a grammar, and the constraint that is none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, Self

import mlx.core as mx
import numpy as np
from numpy.typing import NDArray


class Model(Protocol):
    """What the loop needs of a model; `model.session.Session` provides it."""

    @property
    def logit_width(self) -> int: ...

    def prefill(
        self,
        ids: Sequence[int],
        on_progress: Callable[[int, int], None] | None = None,
        deadline: float | None = None,
    ) -> int:
        """Run all but the last id, reusing the cache for the common prefix; returns how many were reused.

        Leaves off at `deadline` (a `time.monotonic()` value); then no pass may follow.
        """

    def forward(self, ids: Sequence[int]) -> mx.array:
        """Start a pass over known ids; returns (len(ids), logit_width), not evaluated yet."""

    def forward_lazy(self, token: mx.array) -> mx.array:
        """Start a pass over one id, () int32, that is not evaluated yet; returns (1, logit_width)."""

    def confirm(self, token: int) -> None:
        """Say which id the last `forward_lazy` ran on."""

    def cut(self, n_ids: int) -> None:
        """Take the last ids back out of the cache."""

    def running(self) -> AbstractContextManager[None]:
        """Holds the stream and memory settings under which passes run, in the calling thread."""


class State(Protocol):
    """Where a text stands in a grammar. `consume` moves it and raises `MatcherError` on a token that is not allowed."""

    @property
    def end_ids(self) -> Collection[int]: ...

    @property
    def stopped(self) -> bool:
        """Whether nothing but an end token may follow."""

    def bitmask(self) -> NDArray[np.int32]:
        """(ceil(vocab_size / 32),) int32, bit 1 = allowed; end ids only where the text is complete."""

    def consume(self, tokens: Sequence[int]) -> None: ...

    def accepted_prefix(self, tokens: Sequence[int]) -> int:
        """How many of the tokens could be consumed in turn."""

    def forced(self) -> list[int]:
        """Tokens that must follow."""

    def spelling(self) -> list[int]:
        """Tokens of a text that must follow although none of them is forced: others begin with the same bytes."""

    def copy(self) -> Self:
        """An independent one in the same state."""


class Constraint(State, Protocol):
    """What the loop needs of a grammar; `grammar.endings.ClosableMatcher` and `Unconstrained` provide it.

    States: running, then *accepting* whenever the text so far is complete, then *stopped*.
    """

    @property
    def vocab_size(self) -> int: ...

    @property
    def accepting(self) -> bool: ...

    @property
    def copying(self) -> bool:
        """Whether the text is copied from somewhere at this point, and may repeat as that does."""

    def closing(self) -> list[int] | None:
        """Tokens of a short way to a whole text; empty where it is whole, or where none is asked for."""

    def fits(self, n_tokens: int) -> bool:
        """Whether a whole text fits into so many more tokens."""

    def fresh(self) -> Self:
        """The same constraint in its first state, sharing nothing that this one has moved."""

    def describe(self, tokens: Sequence[int]) -> str:
        """Readable form of tokens, for messages."""


@dataclass(frozen=True, slots=True)
class Link:
    """A guess at the next token, in a chain of them.

    Attributes:
        token: the guess.
        forced: what the constraint leaves no choice about after it.
        kind: what it was guessed by; guesses of one kind come true about as often.
    """

    token: int
    forced: tuple[int, ...]
    kind: Hashable


class Drafts(Protocol):
    """What the loop needs of one that guesses; `decode.draft.Drafter` and `NoDrafts` provide it."""

    def extend(self, ids: Sequence[int]) -> None:
        """Text that has been written."""

    def chain(self, state: State, n_pending: int, n_left: int) -> list[Link]:
        """Guesses at what comes after `state`, worth a place in a pass that runs `n_pending` ids anyway.

        Args:
            n_left: tokens that the text may still have; more are not guessed.
        """

    def judged(self, links: Sequence[Link], n_true: int, *, waited: bool) -> None:
        """How the guesses of a pass went; `waited`: the device had to wait for them."""

    def waits(self) -> bool:
        """Whether guesses are worth an idle device, where a pass could be queued at once."""

    def timed(self, n_ids: int, seconds: float, idle_s: float) -> None:
        """What a pass over so many ids took, and how long the device was idle before it."""


class NoDrafts:
    """Guesses nothing."""

    def extend(self, ids: Sequence[int]) -> None:
        pass

    def chain(self, state: State, n_pending: int, n_left: int) -> list[Link]:
        return []

    def judged(self, links: Sequence[Link], n_true: int, *, waited: bool) -> None:
        pass

    def waits(self) -> bool:
        return False

    def timed(self, n_ids: int, seconds: float, idle_s: float) -> None:
        pass


class Unconstrained:
    """Level `off`: every id of the vocabulary, always; ids past it never. Complete only with an end token."""

    accepting = False
    stopped = False
    copying = False

    def __init__(self, vocab_size: int, end_ids: Collection[int]) -> None:
        self.vocab_size, self.end_ids = vocab_size, end_ids
        self._all = np.full((vocab_size + 31) // 32, -1, dtype=np.int32)

    def bitmask(self) -> NDArray[np.int32]:
        return self._all

    def consume(self, tokens: Sequence[int]) -> None:
        pass

    def accepted_prefix(self, tokens: Sequence[int]) -> int:
        return len(tokens)

    def forced(self) -> list[int]:
        return []

    def spelling(self) -> list[int]:
        return []

    def closing(self) -> list[int]:
        return []

    def fits(self, n_tokens: int) -> bool:
        return n_tokens >= 0

    def copy(self) -> Self:
        return self

    def fresh(self) -> Self:
        return self

    def describe(self, tokens: Sequence[int]) -> str:
        return " ".join(map(str, tokens))
