"""The arms of a comparison: the same prompt, and another mask; and ways of asking from before there were tools.

| arm | what the model is asked for | what holds it to that |
|---|---|---|
| `off`, `grammar`, `located` | a call of apply_patch, a raw patch behind it | nothing; syntax; syntax and place |
| `off-json`, `grammar-json`, `located-json` | the same call, the patch as a JSON string | the same |
| `prompt-json` | one JSON object, described in words | nothing |
| `regex` | a shell block, which is cut out of the answer and run | nothing |

Tool calls other than patches have the arms `off` and `grammar`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from constrained_agent.agent.runtime import Level
from constrained_agent.errors import UserError

Form = Literal["call", "prompt-json", "regex"]


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm.

    Attributes:
        name: as on the command line.
        level: what is masked.
        carrier: how a patch travels in a call: `freeform` or `json`.
        form: what the model is asked for. Arms of one form and carrier have the same prompt.
    """

    name: str
    level: Level
    carrier: Literal["freeform", "json"] = "freeform"
    form: Form = "call"

    @property
    def prompt_name(self) -> str:
        """What arms with the same prompt have in common."""
        return self.carrier if self.form == "call" else self.form


ARMS: tuple[Arm, ...] = (
    Arm("off", "off"),
    Arm("grammar", "grammar"),
    Arm("located", "located"),
    Arm("off-json", "off", "json"),
    Arm("grammar-json", "grammar", "json"),
    Arm("located-json", "located", "json"),
    Arm("prompt-json", "off", form="prompt-json"),
    Arm("regex", "off", form="regex"),
)

DEFAULT = ("off", "grammar", "located")

FOR_CALLS = ("off", "grammar")
"""Arms of tool calls that are no patches."""


def parse(names: Sequence[str]) -> tuple[Arm, ...]:
    """Arms by name, in the order of `ARMS`; `all` is each of them.

    Raises:
        UserError: there is no such arm, or none is named.
    """
    known = {arm.name: arm for arm in ARMS}
    if list(names) == ["all"]:
        return ARMS
    if unknown := [name for name in names if name not in known]:
        raise UserError(f"there is no arm {unknown[0]!r}; the arms are: {', '.join(known)}")
    if not names:
        raise UserError(f"no arm is named; the arms are: {', '.join(known)}")
    return tuple(arm for arm in ARMS if arm.name in names)
