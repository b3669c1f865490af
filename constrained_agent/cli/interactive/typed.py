"""What a person types: lines, what they are for, and what a terminal has to offer for typing them. Pure."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

Mode = Literal["task", "message", "answer"]
"""What the next line is: a task (nothing is going on), a message to the model that works, a yes or no."""

Purpose = Literal["nothing", "words", "later", "command"]
"""words: for the model, now. later: a task for after this one. command: for this program."""

LABELS: dict[Mode, str] = {"task": "task: ", "message": "message: ", "answer": "run it? [y/N]: "}
"""What stands before the line."""

_ANSWERS = {"y": True, "yes": True, "n": False, "no": False, "": False}


@dataclass(frozen=True, slots=True)
class Line:
    """One line, or several that were sent together.

    Attributes:
        mode: what was asked for when it was sent.
        n_interrupts: how often Ctrl-C had come before.
    """

    text: str
    mode: Mode
    n_interrupts: int


def read(text: str) -> tuple[Purpose, str]:
    """What a line is for, and what of it counts: `//x` is `/x` for the model, `> x` is `x` for later."""
    text = text.strip()
    if text.startswith("//"):
        return "words", text[1:]
    if text.startswith("/"):
        return "command", text
    if text.startswith(">"):
        rest = text[1:].strip()
        return ("later" if rest else "nothing"), rest
    return ("words" if text else "nothing"), text


def answered(text: str) -> bool | None:
    """Whether a line says yes or no; None: it is no answer."""
    return _ANSWERS.get(text.strip().lower())


class Hands(Protocol):
    """Is told what the person does; from any thread, so it must be quick and never raise."""

    def line(self, text: str, mode: Mode) -> None:
        """A line was sent."""

    def interrupt(self) -> None:
        """Ctrl-C came as a key, not as a signal."""

    def end(self) -> None:
        """No line will come any more."""


class Terminal(Protocol):
    """Where the person types. What the program writes to stderr is shown there, above the line."""

    def open(self, hands: Hands) -> AbstractContextManager[None]:
        """Take lines until the context is left."""

    def ask_for(self, mode: Mode) -> None:
        """Say what the next line is."""

    def status(self, text: str) -> None:
        """Say what is going on, in a few words."""

    def give_back(self, text: str) -> None:
        """Let the person have a text that was not sent."""
