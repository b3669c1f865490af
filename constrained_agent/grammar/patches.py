"""The patch grammar as a part of larger grammars: which rules a turn takes in for a patch.

The rules come from the shipped file itself, so the text that a model writes, the text that `check` accepts
and the text that `patch.format` parses are one language. One bound is added: how many lines a patch may add in one
place. A small model that repeats itself writes `+` lines for ever.
"""

from __future__ import annotations

from constrained_agent.grammar import sources

RULE = "patch"
"""Name of the rule that stands for a whole patch in `freeform_rules`."""

MAX_ADDED_LINES = 1_000
"""In a row, unless told otherwise: more than the usual token limit leaves room for."""

_BOUNDED = """
lines: context* (added_run | removed kept* added_run?) (kept+ added_run)* kept*
kept: context | removed
added_run: added{{1,{limit}}}
"""


def freeform_rules(max_added_lines: int = MAX_ADDED_LINES) -> str:
    """Lark rules of the strict patch language, start rule renamed to `patch`, for a patch as raw text.

    The optional newline after `*** End Patch` is left out: what follows the patch in a turn brings its own,
    and one way to go on keeps the closing marker forced.

    Args:
        max_added_lines: `+` lines that may follow each other.
    """
    text = sources.load("apply_patch_strict").text
    for part, replacement in (
        ("\nstart: ", f"\n{RULE}: "),
        ('\nend: "*** End Patch" LF?\n', '\nend: "*** End Patch"\n'),
        ("\nlines: context* (removed | added) (context | removed | added)*\n", "\n"),
        (" path LF added*\n", " path LF added_run?\n"),
    ):
        if text.count(part) != 1:
            raise ValueError(f"grammars/apply_patch_strict.lark must hold {part!r} once to be embedded")
        text = text.replace(part, replacement)
    return text + _BOUNDED.format(limit=max_added_lines)


def longest_added_run(patch: str) -> int:
    """How many `+` lines of a patch follow each other at most."""
    longest = n_added = 0
    for line in patch.split("\n"):
        n_added = n_added + 1 if line.startswith("+") else 0
        longest = max(longest, n_added)
    return longest
