"""What the token loop needs of a model and of a grammar, and the constraint that is none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

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


class Constraint(Protocol):
    """What the loop needs of a grammar; `grammar.endings.ClosableMatcher` and `Unconstrained` provide it.

    States: running, then *accepting* whenever the text so far is complete, then *stopped* when nothing but an
    end token may follow. `consume` moves it and raises `MatcherError` on a token that it does not allow.
    """

    @property
    def vocab_size(self) -> int: ...

    @property
    def end_ids(self) -> Collection[int]: ...

    @property
    def accepting(self) -> bool: ...

    @property
    def stopped(self) -> bool: ...

    @property
    def copying(self) -> bool:
        """Whether the text is copied from somewhere at this point, and may repeat as that does."""

    def bitmask(self) -> NDArray[np.int32]:
        """(ceil(vocab_size / 32),) int32, bit 1 = allowed; end ids only where accepting."""

    def consume(self, tokens: Sequence[int]) -> None: ...

    def accepted_prefix(self, tokens: Sequence[int]) -> int:
        """How many of the tokens could be consumed in turn."""

    def forced(self) -> list[int]:
        """Tokens that must follow."""

    def closing(self) -> list[int] | None:
        """Tokens of a short way to a whole text; empty where it is whole, or where none is asked for."""

    def copy(self) -> Constraint:
        """An independent constraint in the same state."""

    def fresh(self) -> Constraint:
        """The same constraint in its first state, sharing nothing that this one has moved."""

    def describe(self, tokens: Sequence[int]) -> str:
        """Readable form of tokens, for messages."""


class Drafts(Protocol):
    """What the loop needs of one that guesses; `decode.draft.Lookup` provides it."""

    def extend(self, ids: Sequence[int]) -> None:
        """Text that has been written."""

    def propose(self, n_pending: int) -> list[int]:
        """Tokens that may come next, for a pass that runs `n_pending` ids anyway."""

    def timed(self, n_ids: int, seconds: float) -> None:
        """What a pass over so many ids took."""

    def judged(self, n_drafted: int, n_accepted: int) -> None:
        """How many of the guessed tokens were checked, and how many came true."""


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

    def closing(self) -> list[int]:
        return []

    def copy(self) -> Unconstrained:
        return self

    def fresh(self) -> Unconstrained:
        return self

    def describe(self, tokens: Sequence[int]) -> str:
        return " ".join(map(str, tokens))
