"""The patch grammar as a part of larger grammars: which rules a turn takes in for a patch.

The rules come from the shipped file itself, so the text that a model writes, the text that `check` accepts
and the text that `patch.format` parses are one language. One bound is added: how many lines a patch may add in one
place. A small model that repeats itself writes `+` lines for ever.
"""

from __future__ import annotations

from constrained_agent.grammar import sources
from constrained_agent.grammar.carriers import FREEFORM, Carrier

RULE = "patch"
"""Name of the rule that stands for a whole patch in `carried_rules`."""

MAX_ADDED_LINES = 1_000
"""In a row, unless told otherwise: more than the usual token limit leaves room for."""

_BOUNDED = """
lines: context* (added_run | removed kept* added_run?) (kept+ added_run)* kept*
kept: context | removed
added_run: added{{1,{limit}}}
"""


# Of a carrier with escapes, a text and the newline behind it are one terminal: between two of them the lexer would
# take the backslash of the newline into the text, and die.
_ONE_TERMINAL = (
    (" path LF", " PATH_LF", 4),
    ('(" " text)? LF', '(" " LINE_LF | LF)', 1),
    (" text? LF", " (LINE_LF | LF)", 3),
    ("\npath: PATH\n", "\nPATH_LF: PATH LF\n", 1),
    ("\ntext: ", "\nLINE_LF: LINE LF\nLINE: ", 1),
)


def freeform_rules(max_added_lines: int = MAX_ADDED_LINES) -> str:
    """`carried_rules` of a patch as raw text."""
    return carried_rules(FREEFORM, max_added_lines)


def carried_rules(carrier: Carrier, max_added_lines: int = MAX_ADDED_LINES) -> str:
    """Lark rules of the strict patch language, start rule renamed to `patch`.

    The optional newline after `*** End Patch` is left out: what follows the patch in a turn brings its own,
    and one way to go on keeps the closing marker forced. NUL, which no applier takes, is only in the raw one.

    Args:
        carrier: how the patch is spelled.
        max_added_lines: `+` lines that may follow each other.
    """
    text = _replaced(
        sources.load("apply_patch_strict").text,
        ("\nstart: ", f"\n{RULE}: ", 1),
        ('\nend: "*** End Patch" LF?\n', '\nend: "*** End Patch"\n', 1),
        ("\nlines: context* (removed | added) (context | removed | added)*\n", "\n", 1),
        (" path LF added*\n", " path LF added_run?\n", 1),
    )
    if carrier.escapes:
        text = carrier.rules(_replaced(text, *_ONE_TERMINAL))
    return text + _BOUNDED.format(limit=max_added_lines)


def _replaced(text: str, *replacements: tuple[str, str, int]) -> str:
    for part, replacement, n_times in replacements:
        if text.count(part) != n_times:
            raise ValueError(
                f"grammars/apply_patch_strict.lark must hold {part!r} {n_times} times to be embedded, "
                f"not {text.count(part)}"
            )
        text = text.replace(part, replacement)
    return text


def longest_added_run(patch: str) -> int:
    """How many `+` lines of a patch follow each other at most."""
    longest = n_added = 0
    for line in patch.split("\n"):
        n_added = n_added + 1 if line.startswith("+") else 0
        longest = max(longest, n_added)
    return longest
