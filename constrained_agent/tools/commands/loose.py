"""A second look at text that does not parse: every word of it could be a command."""

from __future__ import annotations

import re
import unicodedata

from constrained_agent.tools.commands import programs
from constrained_agent.tools.commands.quoting import MARKS
from constrained_agent.tools.commands.scene import Call, Scene
from constrained_agent.tools.commands.verdict import Risk, danger, worst
from constrained_agent.tools.commands.words import note

_BORDERS = re.compile(r"[;&|()<>`\n]|\$\(|(?<!\S)[{}](?!\S)")
_REDIRECTION = re.compile(r"\d*[<>&]*[<>][|&]?\s*[^\s()<>;&|]+")
_QUOTES = re.compile(r"[\"'\\]")


def is_odd(text: str) -> bool:
    """Whether it holds characters that a parser and a shell may take for different things."""
    return any(
        (not one.isprintable() and one not in "\n\t" and not MARKS.match(one))
        or (one != " " and unicodedata.category(one) == "Zs")
        for one in text
        if one > "~" or one < " "
    )


def begins_like_a_command(text: str) -> bool:
    """Whether text that may be prose has a known program first."""
    first = text.split(maxsplit=1)[:1]
    return bool(first) and programs.is_known(first[0])


def search(text: str, scene: Scene) -> None:
    """Record that the text was not understood, and the heaviest command that may stand in it.

    Quotes are ignored and each word is tried as the beginning of a command, so this finds too much.
    """
    note(scene, text, Risk.WRITES, "cannot be parsed")
    heaviest = worst()
    without = _REDIRECTION.sub(" ", text)  # `rm >log -rf /`
    for segment in dict.fromkeys([*_BORDERS.split(text), *_BORDERS.split(without)]):
        bare = _QUOTES.sub("", segment)
        for words in (bare.split(), re.split(r"[\s{},]+", bare) if "{" in bare else []):
            if words and words[0].startswith("$"):
                heaviest = worst(heaviest, danger("runs a program that is only known when it runs"))
            for start in range(len(words)):
                scene.record.step()
                heaviest = worst(heaviest, programs.guess(Call(words[start:], scene)))
    if heaviest.risk > Risk.WRITES:
        note(scene, text, heaviest.risk, f"cannot be parsed, and may be a command that {heaviest.reason}")
