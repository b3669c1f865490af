"""Which guesses at the next tokens are worth a place in the next pass.

A guess takes a place in a pass that is run anyway; then each of its tokens is drawn under its own mask, as it would
have been without, and the first one that comes out otherwise ends it (`decode.ahead`). So the text is the same with
drafts and without, at any temperature (Y. Leviathan et al., 2023), but for what a pass over several ids rounds
otherwise. How many are worth it follows from what passes take on this machine, and from how often guesses of a kind
came true; both are learned from the passes that run.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from constrained_agent.decode.needs import Link, State

MAX_DRAFT = 12
"""Guessed tokens of one pass; the tokens that they force come on top."""

SPELLED = "spelled"
"""The kind of guess at a text that must come, where its token is still open."""

_DECAY = 0.95  # how much of what was seen of a kind of guess is kept at each new one
_OBLIVION = 0.995  # the same at each pass: what failed once is tried again
_PRIOR_WEIGHT = 2.0  # guesses that a prior counts for
# How often guesses came true on 199 real edits, by tokens of the suffix that stood before; else one half.
_PRIORS: dict[Hashable, float] = {SPELLED: 0.98, 5: 0.7, 3: 0.55, 2: 0.45, 1: 0.25}
_LEAST_CHANCE = 0.01  # of a whole chain of guesses: to look for a longer one costs more than it brings
_SIZES = (1, 4, 8, 12)
# What passes of these sizes cost beside one of a single id, until it was seen: float32 weights on two x86 cores.
_ASSUMED = (1.0, 1.4, 1.5, 1.9)
_LARGEST = 20  # ids of a pass that still tells something of small ones


class Source(Protocol):
    """Where guesses come from; `decode.lookup` and `decode.draft_model` know some.

    Attributes:
        cost_s: what one guess takes; 0 where that is nothing beside a pass.
        kind: of its guesses, if they cost anything.
    """

    @property
    def cost_s(self) -> float: ...

    @property
    def kind(self) -> Hashable: ...

    def extend(self, ids: Sequence[int]) -> None:
        """Text that has been written."""

    def guesses(self, ahead: Sequence[int], state: State) -> Iterable[tuple[Hashable, int]]:
        """Tokens that may come after the text and `ahead`, the best first, each with its kind.

        Args:
            state: the constraint after `ahead`.
        """


@dataclass(slots=True)
class PassCosts:
    """What a pass over so many ids takes on this machine, learned from the passes that are run anyway.

    Attributes:
        seconds: of passes of about 1, 4, 8 and 12 ids; None for those that were not seen yet.
    """

    seconds: list[float | None] = field(default_factory=lambda: [None] * len(_SIZES))

    def observe(self, n_ids: int, seconds: float) -> None:
        """Take in one pass."""
        if n_ids > _LARGEST:
            return
        at = min(range(len(_SIZES)), key=lambda i: abs(_SIZES[i] - n_ids))
        known = self.seconds[at]
        self.seconds[at] = seconds if known is None else known * _DECAY + seconds * (1 - _DECAY)

    def of(self, n_ids: float) -> float:
        """Seconds of a pass, interpolated between what was seen; in units of a small pass if none was."""
        one = next((s / a for s, a in zip(self.seconds, _ASSUMED, strict=True) if s is not None), 1.0)
        costs = [one * a if s is None else s for s, a in zip(self.seconds, _ASSUMED, strict=True)]
        at = next((i for i, size in enumerate(_SIZES[1:], 1) if n_ids <= size), len(_SIZES) - 1)
        per_id = (costs[at] - costs[at - 1]) / (_SIZES[at] - _SIZES[at - 1])
        return costs[at] + per_id * (n_ids - _SIZES[at])


@dataclass(slots=True)
class Record:
    """How often guesses came true, by their kind; what is long past counts less."""

    _seen: dict[Hashable, tuple[float, float]] = field(default_factory=dict)

    def chance(self, kind: Hashable) -> float:
        """That the next guess of a kind comes true."""
        hits, tries = self._seen.get(kind, (0.0, 0.0))
        prior = _PRIORS.get(kind, 0.5)
        return min((hits + prior * _PRIOR_WEIGHT) / (tries + _PRIOR_WEIGHT), 0.99)

    def note(self, kind: Hashable, *, came_true: bool) -> None:
        """One guess that was looked at."""
        hits, tries = self._seen.get(kind, (0.0, 0.0))
        self._seen[kind] = (hits * _DECAY + came_true, tries * _DECAY + 1)

    def fade(self) -> None:
        """A pass went by."""
        for kind, (hits, tries) in self._seen.items():
            self._seen[kind] = (hits * _OBLIVION, tries * _OBLIVION)


class Drafter:
    """Guesses from several sources, as long as they pay. Keep it: it learns.

    Args:
        sources: the cheapest first.
    """

    def __init__(self, sources: Sequence[Source], costs: PassCosts | None = None) -> None:
        self.costs = costs or PassCosts()
        self._sources = sources
        self._record = Record()
        self._saved: float | None = None  # passes that guesses spared, per pass that waited for them
        self._idle_s = 0.0

    def extend(self, ids: Sequence[int]) -> None:
        """Text that has been written."""
        for source in self._sources:
            source.extend(ids)

    def chain(self, state: State, n_pending: int, n_left: int) -> list[Link]:
        """Guesses at what comes next, each one if those before it come true.

        Args:
            state: the constraint after the text; it allows every guess.
            n_pending: ids that the next pass runs anyway.
            n_left: tokens that the text may still have.
        """
        one, base = self.costs.of(1), self.costs.of(n_pending)
        links: list[Link] = []
        ahead: list[int] = []
        state = state.copy()
        chance, spared, best, best_s = 1.0, 0.0, 0, 0.0
        while len(links) < MAX_DRAFT and len(ahead) < n_left and chance > _LEAST_CHANCE and not state.stopped:
            found = self._guess(ahead, state, worth_s=chance * one)
            if found is None:
                break
            kind, token = found
            state.consume([token])
            forced = [token for token in state.forced() if token not in state.end_ids]
            state.consume(forced)
            links.append(Link(token, tuple(forced), kind))
            ahead += [token, *forced]
            chance *= self._record.chance(kind)
            spared += chance * one  # each guess that comes true spares a pass
            saved_s = spared - (self.costs.of(n_pending + len(ahead)) - base)
            if saved_s > best_s:
                best, best_s = len(links), saved_s
        return links[:best]

    def _guess(self, ahead: Sequence[int], state: State, worth_s: float) -> tuple[Hashable, int] | None:
        """The guess that comes true most often; a source that costs more than it adds is not asked."""
        best, best_chance = None, 0.0
        for source in self._sources:
            if source.cost_s and source.cost_s > worth_s * (self._record.chance(source.kind) - best_chance):
                continue
            for kind, token in source.guesses(ahead, state):
                if token not in state.end_ids and state.accepted_prefix([token]):
                    if self._record.chance(kind) > best_chance:
                        best, best_chance = (kind, token), self._record.chance(kind)
                    break
        if best is None and (spelled := state.spelling()):
            return SPELLED, spelled[0]
        return best

    def judged(self, links: Sequence[Link], n_true: int, *, waited: bool) -> None:
        """How the guesses of a pass went: `n_true` of them came true, then one did not, or all did.

        Args:
            waited: the pass could have been started on a token that was still being drawn.
        """
        self._record.fade()
        for link in links[:n_true]:
            self._record.note(link.kind, came_true=True)
        if n_true < len(links):  # nothing is known of those behind the first wrong one
            self._record.note(links[n_true].kind, came_true=False)
        if waited:
            n_ids = sum(1 + len(link.forced) for link in links)
            cost = self.costs.of(1 + n_ids) / self.costs.of(1) - 1
            self._saved = self._spared * _DECAY + (n_true - cost) * (1 - _DECAY)

    @property
    def _spared(self) -> float:
        return _PRIORS[1] if self._saved is None else self._saved

    def waits(self) -> bool:
        """Whether the next pass should wait for the token that it starts with, so that guesses can join it.

        The device idles meanwhile. In free text few guesses come true, and queueing the pass at once is better.
        """
        if self._spared * self.costs.of(1) > self._idle_s:
            return True
        self._saved = self._spared + (1 - _OBLIVION) * (
            _PRIORS[1] - self._spared
        )  # so that it is tried again
        return False

    def timed(self, n_ids: int, seconds: float, idle_s: float) -> None:
        """What a pass over so many ids took, and how long the device had waited for it."""
        self.costs.observe(n_ids, seconds)
        self._idle_s = self._idle_s * _DECAY + idle_s * (1 - _DECAY)
