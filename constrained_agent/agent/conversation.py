"""The ids that the model has seen, in order; they only grow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from constrained_agent.agent.prompt import Part
from constrained_agent.agent.turn import Turn
from constrained_agent.model.tokenizer import Untrusted

if TYPE_CHECKING:
    from constrained_agent.agent.runtime import Runtime


class Conversation:
    """History by ids, and what is owed to it.

    States: *settled*, or *owing* results after an answer with calls. While owing, results are collected by
    `give`; `settle` writes them all and fills up those that never came, so that no call is left without one,
    whatever interrupted its run. Nothing else may be said while owing.

    Attributes:
        ids: everything so far; a prompt goes on from here.
        parts: tokens of each part since the last `begin`, by name; they sum to `ids`.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime, self._dialect, self._tokenizer = runtime, runtime.dialect, runtime.tokenizer
        self.ids: list[int] = []
        self.parts: dict[str, int] = {}
        self._owed = 0
        self._results: list[str] = []

    def begin(self, system: Sequence[Part]) -> None:
        """Start counting parts; in a new conversation, also the system message."""
        self.parts = {"history": len(self.ids)} if self.ids else {}
        if not self.ids:
            self.ids = self._dialect.system(*joined(system))
            self._runtime.session.prefix = tuple(self.ids)  # the same in every run: its state is kept on disk
            for part in system:
                self.parts[part.name] = len(self._tokenizer.encode(_piece(part)))
            self.parts["system_frame"] = len(self.ids) - sum(self.parts.values())

    def say(self, text: str, part: str) -> None:
        """A message of the user, counted as one part."""
        assert not self._owed, "a call has no result yet"
        ids = self._dialect.user(text)
        self.ids += ids
        self.parts[part] = self.parts.get(part, 0) + len(ids)

    def answered(self, turn: Turn, n_calls: int) -> None:
        """Take in an answer; `n_calls` results are owed to it."""
        self.ids = list(turn.history)
        self._owed, self._results = n_calls, []

    def give(self, text: str) -> None:
        """The result of the next call."""
        self._results.append(text)

    def amend(self, text: str) -> None:
        """Add something to the last result."""
        self._results[-1] += f"\n\n{text}"

    def settle(self, missing: str) -> None:
        """Write the results that are owed; calls that have none get `missing`."""
        if self._owed:
            texts = [*self._results, *[missing] * (self._owed - len(self._results))]
            self.ids += self._dialect.tool_results(texts)
        self._owed, self._results = 0, []


def _piece(part: Part) -> str | Untrusted:
    return part.text if part.trusted else Untrusted(part.text)


def joined(parts: Sequence[Part]) -> list[str | Untrusted]:
    """The parts of a message with blank lines between."""
    pieces: list[str | Untrusted] = []
    for part in parts:
        pieces += ["\n\n", _piece(part)] if pieces else [_piece(part)]
    return pieces
