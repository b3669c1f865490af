"""The classes of commands, and what is said about a command line."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

MAX_SHOWN_CHARS = 160
"""Of the part of a line that a message quotes: enough to find it."""


class Risk(IntEnum):
    """Classes of commands, lightest first."""

    READ_ONLY = 0
    """Reads files of the repository and prints: nothing that reading a file could not do."""
    WRITES = 1
    """Changes files of the repository, runs its programs, fetches, or reads elsewhere."""
    REMOTE_CHANGING = 2
    """Changes something on another machine, or sends data there: push, publish, deploy."""
    DANGEROUS = 3
    """Loses work, leaves the repository, reads credentials, or hides what it does."""

    def __str__(self) -> str:
        return self.name.lower().replace("_", "-")


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one simple command may do.

    Attributes:
        reason: in words, as the rest of "this command ...".
        looked_through: the command runs another one (`timeout 5 X`, `sh -c X`) that was judged by itself.
    """

    risk: Risk
    reason: str
    looked_through: bool = False


@dataclass(frozen=True, slots=True)
class Simple:
    """One simple command of a line, as the rules of a person see it.

    Attributes:
        text: its words without their quotes, joined by blanks; `> PATH` for a redirection to a file.
        spellings: the same command in other words (`git push` for `git -C x push`): what is denied is denied in any.
        part: where it stands in the line, shortened.
        certain: nothing in it is unknown before it runs and no variable is set for it, so a rule may allow it.
        looked_through: see `Judgement`; allowing what it runs suffices.
    """

    text: str
    risk: Risk
    reason: str
    part: str
    spellings: tuple[str, ...] = ()
    certain: bool = True
    looked_through: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a command line may do.

    Attributes:
        risk: the heaviest class among its simple commands.
        part: the part of the line that decides, shortened.
        reason: why, as the rest of "PART ...".
        commands: all simple commands that were found, also inside strings that a shell runs.
    """

    risk: Risk
    part: str
    reason: str
    commands: tuple[Simple, ...] = ()


def reads(reason: str = "only reads") -> Judgement:
    return Judgement(Risk.READ_ONLY, printable(reason))


def writes(reason: str = "may change files") -> Judgement:
    return Judgement(Risk.WRITES, printable(reason))


def remote(reason: str) -> Judgement:
    return Judgement(Risk.REMOTE_CHANGING, printable(reason))


def danger(reason: str) -> Judgement:
    return Judgement(Risk.DANGEROUS, printable(reason))


def worst(*judgements: Judgement | None) -> Judgement:
    """The heaviest of them, the first of equals; `reads()` of none."""
    return max((one for one in judgements if one), key=lambda one: one.risk, default=reads())


def printable(text: str) -> str:
    """A reason quotes the command: it must not be able to redraw the terminal that shows it."""
    return "".join(one if one.isprintable() else f"\\x{ord(one):02x}" for one in text)


def shortened(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= MAX_SHOWN_CHARS else flat[: MAX_SHOWN_CHARS - 1] + "…"
