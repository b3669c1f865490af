"""What a person says to an agent while it works."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Inbox(Protocol):
    """Texts for the model that were typed since the last look.

    The agent looks before each answer, and once more when the model says that it is done; a text goes into the
    conversation as a message of the user.
    """

    def take(self) -> Sequence[str]:
        """The texts since the last look, in order; what is taken is the agent's. Does not wait."""
        ...


class NoInbox:
    """Nobody says anything."""

    def take(self) -> Sequence[str]:
        return ()
