"""The patch grammar as a part of larger grammars: which rules a turn takes in for a patch.

The rules come from the shipped file itself, so the text that a model writes, the text that `check` accepts
and the text that `patch.format` parses are one language.
"""

from __future__ import annotations

from constrained_agent.grammar import sources

RULE = "patch"
"""Name of the rule that stands for a whole patch in `freeform_rules`."""

_START = "\nstart: "
_END = '\nend: "*** End Patch" LF?\n'


def freeform_rules() -> str:
    """Lark rules of the strict patch language, start rule renamed to `patch`, for a patch as raw text.

    The optional newline after `*** End Patch` is left out: what follows the patch in a turn brings its own,
    and one way to go on keeps the closing marker forced.
    """
    text = sources.load("apply_patch_strict").text
    for part in (_START, _END):
        if text.count(part) != 1:
            raise ValueError(f"grammars/apply_patch_strict.lark must hold {part!r} once to be embedded")
    return text.replace(_START, f"\n{RULE}: ").replace(_END, '\nend: "*** End Patch"\n')
