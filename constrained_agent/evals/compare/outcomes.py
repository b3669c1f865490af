"""What can become of one item: a closed list, each with what it says about reading and landing.

Every item has exactly one outcome: of an answer the first thing that went wrong, of a whole run what it came to at its
end (`run_outcomes`). Denominators are all items.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

UNREADABLE = (
    "no_wrapper",
    "wrapper_unclosed",
    "wrong_dialect",
    "wrong_shape",
    "json_invalid",
    "unknown_tool",
    "patch_unparsable",
)
"""There is something like a call, but it cannot be read as one."""

PRINTED = ("no_wrapper", "wrong_dialect")
"""A call in words. In a whole run a model may say what it likes around its calls, so no constraint forbids it there."""

SCHEMA = ("schema_violated",)
"""A call that can be read, with arguments that its tool does not take."""

NOT_FOUND = ("file_not_found", "context_not_found")
"""It speaks of files or lines that are not there."""

NOT_LANDED = (*NOT_FOUND, "ambiguous", "no_change", "other_patch_error")
"""A patch that can be read, and fits nothing or no one place."""

NOTHING_SENT = ("no_call", "no_answer", "thinking_unclosed")
"""There is no call."""

STOPPED = ("cut", "loop")
"""The answer was ended by a limit or for repeating itself; nothing of it is run, whatever it says."""

WRONG = ("tests_failed",)
"""Valid but wrong: everything fits, and the outcome is not what was asked."""

PASSED = ("passed",)

OUTCOMES: tuple[str, ...] = (*PASSED, *WRONG, *NOT_LANDED, *SCHEMA, *UNREADABLE, *NOTHING_SENT, *STOPPED)
"""All of them, the best first."""

_PATCH_OUTCOME = {
    "file_not_found": "file_not_found",
    "context_not_found": "context_not_found",
    "anchor_not_found": "context_not_found",
    "eof_mismatch": "context_not_found",
    "ambiguous": "ambiguous",
    "no_change": "no_change",
    "already_applied": "no_change",
}


def of_patch_error(kind: str) -> str:
    """The outcome of a patch that could be read and not applied, by the kind of its error."""
    return _PATCH_OUTCOME.get(kind, "other_patch_error")


@dataclass(frozen=True, slots=True)
class Judgement:
    """What became of one item.

    Attributes:
        outcome: one of `OUTCOMES`.
        parses: what was sent can be read as calls, and its patches as patches, whether or not it was run; a shell block
            as one.
        lands: it was run: patches were applied, a command changed files and did not fail, or arguments fit their
            schema. Of a whole run: it passed, or its patches changed files.
        error_kind: the kind of a patch error, or of another detail, where there is one.
        message: what was wrong, as a person is told.
        at: character of the text where it went wrong, if a place is known.
        saved: of an answer that failed: the outcome that a lenient reading of it comes to.
        server: of unconstrained calls: how many a server's parser of today finds, and how many it drops.
    """

    outcome: str
    parses: bool
    lands: bool
    error_kind: str = ""
    message: str = ""
    at: int | None = None
    saved: str | None = None
    server: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.outcome not in OUTCOMES:
            raise ValueError(f"{self.outcome!r} is no outcome; there are: {', '.join(OUTCOMES)}")
        if self.lands and self.outcome not in (*PASSED, *WRONG):
            raise ValueError(f"what lands is right or wrong, not {self.outcome}")

    @property
    def right(self) -> bool:
        """It does what was asked."""
        return self.outcome in PASSED
