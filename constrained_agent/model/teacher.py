"""Lets a model write a known text: it runs as ever, and then the logit of the right token is lifted above all others.

So two ways of decoding write the same text with all their work done, and their times compare one to one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import mlx.core as mx

if TYPE_CHECKING:
    from constrained_agent.model.session import Session

_LIFT = 1e4
"""Above every logit of a model, and within what float16 holds."""


class Script:
    """A known text, and the token that comes next at every byte of it.

    That is the next token of the text's canonical encoding. Where a grammar has forced tokens that cut the text
    otherwise, it is the first one of the canonical encoding of what is left.
    """

    def __init__(
        self,
        text: bytes,
        encode: Callable[[bytes], Sequence[int]],
        token_bytes: Sequence[bytes],
        end_id: int,
    ) -> None:
        """Take a text.

        Args:
            encode: gives the canonical ids of bytes.
            token_bytes: the bytes of every id.
            end_id: follows the text.
        """
        self.text = text
        self.ids = tuple(encode(text))
        self._encode, self._token_bytes, self._end_id = encode, token_bytes, end_id
        self._next: dict[int, int] = {}
        self._learn(0, self.ids)

    def next(self, at: int) -> int:
        """The token that comes at a byte; the end token behind the last one."""
        if at == len(self.text):
            return self._end_id
        if at not in self._next:
            self._learn(at, self._encode(self.text[at:]))
        return self._next[at]

    def after(self, at: int, token: int) -> int | None:
        """Where the text goes on after a token that was written at `at`; None where it is not the text's."""
        data = self._token_bytes[token]
        return at + len(data) if self.text.startswith(data, at) else None

    def _learn(self, at: int, ids: Sequence[int]) -> None:
        for token in ids:
            self._next.setdefault(at, token)
            at += len(self._token_bytes[token])


class TaughtSession:
    """A session that writes a script; `decode.needs.Model`, with the real session's passes.

    It follows the ids that go in: the logits after an id that does not belong to the script (a guess that was wrong)
    stay as they are.
    """

    def __init__(self, session: Session, script: Script) -> None:
        self._session, self._script = session, script
        self._at: list[int | None] = []  # the byte after the last prompt id and after each id since
        self.logit_width = session.logit_width

    def prefill(
        self,
        ids: Sequence[int],
        on_progress: Callable[[int, int], None] | None = None,
        deadline: float | None = None,
    ) -> int:
        """As `Session.prefill`; the script begins after the last id."""
        self._at = []
        return self._session.prefill(ids, on_progress, deadline)

    def forward(self, ids: Sequence[int]) -> mx.array:
        """As `Session.forward`, with lifted logits."""
        first = len(self._at)
        for token in ids:
            self._at.append(self._followed(token))
        return self._lifted(self._session.forward(ids), first)

    def forward_lazy(self, token: mx.array) -> mx.array:
        """As `Session.forward_lazy`, for a token that is taken to be the script's."""
        logits = self._session.forward_lazy(token)
        at = self._at[-1]
        self._at.append(None if at is None else self._script.after(at, self._script.next(at)))
        return self._lifted(logits, len(self._at) - 1)

    def confirm(self, token: int) -> None:
        """As `Session.confirm`."""
        self._session.confirm(token)
        del self._at[-1]
        self._at.append(self._followed(token))

    def cut(self, n_ids: int) -> None:
        """As `Session.cut`."""
        del self._at[len(self._at) - n_ids :]
        self._session.cut(n_ids)

    def running(self) -> AbstractContextManager[None]:
        """As `Session.running`."""
        return self._session.running()

    def _followed(self, token: int) -> int | None:
        if not self._at:
            return 0  # the prompt's last id
        at = self._at[-1]
        return None if at is None else self._script.after(at, token)

    def _lifted(self, logits: mx.array, first: int) -> mx.array:
        """Logits (n, V) of the ids from the `first` one on, lifted."""
        places = [(row, at) for row, at in enumerate(self._at[first:]) if at is not None]
        if not places:
            return logits
        rows = mx.array([row for row, _ in places])
        tokens = mx.array([self._script.next(at) for _, at in places])
        return logits.at[rows, tokens].add(_LIFT)  # (n, V)


class TaughtProcessor:
    """The same for mlx-lm: a logits processor that lifts the script's tokens one after the other."""

    def __init__(self, script: Script) -> None:
        self._left = iter(script.ids)

    def __call__(self, tokens: mx.array, logits: mx.array) -> mx.array:
        """The logits (1, V) with the next token of the script lifted; as they are once it has ended."""
        # Counted, not looked up in `tokens`: those are still being computed, and mlx-lm's pipelining has to stay.
        token = next(self._left, None)
        return logits if token is None else logits.at[:, token].add(_LIFT)
