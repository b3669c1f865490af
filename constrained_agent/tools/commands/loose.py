"""A second look at text that does not parse: every word of it could be a command."""

from __future__ import annotations

import re
import unicodedata

from constrained_agent.tools.commands import programs
from constrained_agent.tools.commands.quoting import MARKS
from constrained_agent.tools.commands.scene import Call, Scene
from constrained_agent.tools.commands.verdict import Risk, worst
from constrained_agent.tools.commands.words import note

_BORDERS = re.compile(r"[;&|()<>`\n]|\$\(|(?<!\S)[{}](?!\S)")
_QUOTES = re.compile(r"[\"'\\]")


def is_odd(text: str) -> bool:
    """Whether it holds characters that a parser and a shell may take for different things."""
    return any(
        (not one.isprintable() and one not in "\n\t" and not MARKS.match(one))
        or (one != " " and unicodedata.category(one) == "Zs")
        for one in text
        if one > "~" or one < " "
    )


def search(text: str, scene: Scene) -> None:
    """Record that the text was not understood, and the heaviest command that may stand in it.

    Quotes are ignored and each word is tried as the beginning of a command, so this finds too much.
    """
    note(scene, text, Risk.WRITES, "cannot be parsed")
    heaviest = worst()
    for segment in _BORDERS.split(text):
        bare = _QUOTES.sub("", segment)
        for words in (bare.split(), re.split(r"[\s{},]+", bare) if "{" in bare else []):
            for start in range(len(words)):
                scene.record.step()
                heaviest = worst(heaviest, programs.guess(Call(words[start:], scene)))
    if heaviest.risk > Risk.WRITES:
        note(scene, text, heaviest.risk, f"cannot be parsed, and may be a command that {heaviest.reason}")
