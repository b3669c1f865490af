"""What stands side by side in the bench of speed. Knows no model: the command line reads the names from here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from constrained_agent.agent.runtime import Level


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to decode.

    Attributes:
        level: of the agent's own loop; None for mlx-lm's.
        drafts: guess ahead.
        masked: mlx-lm with a logits processor.
        taught: whether known patches are written by it, too.
    """

    name: str
    level: Level | None
    drafts: bool = False
    masked: bool = False
    taught: bool = False


ARMS = (
    Arm("mlx-lm", None, taught=True),
    Arm("mlx-lm+processor", None, masked=True),
    Arm("off", "off"),
    Arm("grammar", "grammar"),
    Arm("grammar+drafts", "grammar", drafts=True),
    Arm("located", "located", taught=True),
    Arm("located+drafts", "located", drafts=True, taught=True),
)
