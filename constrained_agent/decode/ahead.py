"""Runs passes with guesses in them, and hands out what they computed as far as the guesses come true."""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx

from constrained_agent.decode.clock import Clock
from constrained_agent.decode.needs import Constraint, Drafts, Link, Model


class Ahead:
    """The passes of one generation.

    States: *level* with the text, or ahead of it by guesses that nobody has looked at yet. While ahead, no pass may
    be started.

    Attributes:
        n_passes: passes that were started.
        n_drafted, n_accepted: guessed tokens that ran, and those of them that came true.
    """

    def __init__(self, model: Model, drafts: Drafts, clock: Clock) -> None:
        self.n_passes = self.n_drafted = self.n_accepted = 0
        self._model, self._drafts, self._clock = model, drafts, clock
        self._links: list[Link] = []
        self._n_true = 0
        self._rows: list[mx.array] = []  # (V,) after each link
        self._n_ids: int | None = None  # of the pass whose time is being taken
        self._waited = False

    @property
    def level(self) -> bool:
        """Whether no guess is left."""
        return self._n_true == len(self._links)

    def forward(
        self, pending: Sequence[int], state: Constraint, n_left: int, *, waited: bool = False
    ) -> mx.array:
        """Run ids of the text, and guesses behind them.

        Args:
            pending: ids, at least one.
            state: the constraint after them.
            n_left: tokens that the text may still have after them.
            waited: the pass could have been queued before the first of the ids was known.

        Returns:
            (V,) logits after `pending`, being computed.
        """
        assert self.level, "guesses are left that nobody looked at"
        self._links = self._drafts.chain(state, len(pending), n_left)
        self._n_true, self._waited = 0, waited
        ids = [*pending, *(i for link in self._links for i in (link.token, *link.forced))]
        self._clock.model_called()
        rows = self._model.forward(ids)  # (len(ids), V)
        self._clock.model_returned()
        self.n_passes += 1
        self._n_ids = len(ids)
        at = len(pending) - 1
        first, self._rows = rows[at], []
        for link in self._links:
            at += 1 + len(link.forced)
            self._rows.append(rows[at])
        if not self._links:
            self._judge()
        return first

    def queue(self, token: mx.array) -> mx.array:
        """Start a pass on a token, () int32, that is still being drawn; returns (1, V) logits."""
        self._n_ids = None  # its time is not told apart from that of the pass before
        self._clock.model_called()
        logits = self._model.forward_lazy(token)
        self._clock.model_returned()
        self.n_passes += 1
        return logits

    def known(self, *, runs_on: bool) -> None:
        """The token that was waited for is known; `runs_on`: a pass on it is queued."""
        self._clock.token_known(runs_on=runs_on)
        if self._n_ids is not None:
            self._drafts.timed(self._n_ids, self._clock.pass_s, self._clock.idle_s)
            self._n_ids = None

    def after(self, token: int) -> mx.array | None:
        """The logits (V,) after a token and what it forces, if it is the one that was guessed; else None, and all
        guesses are dropped."""
        if self.level:
            return None
        if self._links[self._n_true].token != token:
            self.drop()
            return None
        row = self._rows[self._n_true]
        self._n_true += 1
        if self.level:
            self._judge()
        return row

    def drop(self) -> None:
        """Take the guesses that are left back out of the model's cache."""
        if self.level:
            return
        self._model.cut(sum(1 + len(link.forced) for link in self._links[self._n_true :]))
        self._judge()
        del self._links[self._n_true :]

    def _judge(self) -> None:
        self.n_drafted += len(self._links)
        self.n_accepted += self._n_true
        self._drafts.judged(self._links, self._n_true, waited=self._waited)
