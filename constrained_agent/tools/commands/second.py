"""A second reading of a line that would run without a question: by another lexer, which knows quotes and little else.

The grammar is not the shell: it parts some words and some here-documents in other places. What only reads is run
unasked, so for such a line both readings must find the same commands.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator

_KEYWORDS = frozenset(
    ["if", "then", "elif", "else", "fi", "while", "until", "do", "done", "{", "}", "!", "time"]
)
_BORDER = re.compile(r"[;&|()\n]+")
_REDIRECTION = re.compile(r"[<>&|]*[<>][<>&|]*")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=.*", re.DOTALL)
_ARITHMETIC = re.compile(r"\$\(\([\w +*/%-]*\)\)")
_VARIABLE = re.compile(r"\$(?:\w+|\{\w+\}|[@*#?!$])?")


def explained(text: str, commands: Collection[str]) -> bool:
    """Whether every command that this lexer finds in the line is one of those that were judged.

    Args:
        commands: their words without quotes, joined by blanks; `…` for what is not known beforehand.
    """
    try:
        segments = list(_segments(_ARITHMETIC.sub("$", text.replace("\\\n", ""))))
    except ValueError:  # a quote that is not closed
        return False
    known = [(one, one.split("…")) for one in commands]
    return all(
        any(_fits(pieces, segment) or _fits(_VARIABLE.split(segment), one) for one, pieces in known)
        for segment in segments
    )


def _fits(pieces: list[str], text: str) -> bool:
    """Whether the text is these pieces in this order, with anything between them. Cost: linear."""
    first, *middle = pieces
    if not middle:
        return text == first
    *middle, last = middle
    if not (text.startswith(first) and text.endswith(last) and len(text) >= len(first) + len(last)):
        return False
    position, end = len(first), len(text) - len(last)
    for piece in middle:
        position = text.find(piece, position, end)
        if position < 0:
            return False
        position += len(piece)
    return True


def _segments(text: str) -> Iterator[str]:
    """The commands between the signs of the shell: their words, without quotes, joined by blanks."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|()<>\n")
    lexer.whitespace, lexer.commenters, lexer.whitespace_split = " \t", "", True
    words: list[str] = []
    outer: list[list[str]] = []
    after_redirection = False
    for token in [*lexer, "\n"]:
        if token in ("<(", ">("):
            outer.append(words if after_redirection else [*words, "$"])  # the name of a pipe
            words, after_redirection = [], False
        elif token == ")" and outer:
            yield from _command(words)
            words = outer.pop()
        elif _REDIRECTION.fullmatch(token):
            after_redirection = True
            if words and words[-1].isdecimal():
                words.pop()  # the descriptor
        elif _BORDER.fullmatch(token):
            yield from _command(words)
            words, after_redirection = [], False
        elif after_redirection:
            after_redirection = False
        else:
            words.append(token)


def _command(words: list[str]) -> Iterator[str]:
    while words and (words[0] in _KEYWORDS or _ASSIGNMENT.fullmatch(words[0])):
        words = words[1:]
    comment = next((number for number, word in enumerate(words) if word.startswith("#")), len(words))
    words = words[:comment]
    if not words or words[0] in ("for", "[", "[["):
        return  # values and tests; what stands in their parentheses comes by itself
    yield " ".join(words)
