"""Says what a text that is no patch really is, so that its author stops sending it that way."""

from __future__ import annotations

import re

BEGIN, END = "*** Begin Patch", "*** End Patch"
_SHOWN_CHARS = 60

_STARTS: tuple[tuple[str, str], ...] = (
    (r"```|~~~", "a code fence; send the patch without one"),
    (r"[{\[]\s*[\"{\[]|\{\s*$|\[\s*$", "a JSON value; send the patch text itself, not wrapped in JSON"),
    (r"[\"'`]", "a quotation mark; send the patch text itself, unquoted"),
    (r"<<", "a shell heredoc; send only what stands between its two delimiter lines"),
    (r"(\$ |#!|apply_?patch\b|cat |echo |cd |git |(ba|z)?sh )", "a shell command; send only the patch"),
    (r"<", "a tag; send the patch text itself"),
    (r"(diff --git|--- |\+\+\+ |Index: )", "a unified diff; this format has *** lines and no line numbers"),
    (r"@@|[-+]", "a hunk; *** Begin Patch and an *** Update File: line must come before it"),
    (r"\*\*\* (Add|Update|Delete) File", "a section; *** Begin Patch must come before it"),
)


def begin_fault(lines: list[str], first: int) -> str:
    """What stands where `*** Begin Patch` was expected.

    Args:
        lines: the text's lines.
        first: index of the first non-blank line; `len(lines)` if there is none.
    """
    if first == len(lines):
        return f"the text is empty; a patch starts with {BEGIN} and ends with {END}"
    line = lines[first].strip()
    if line.startswith(BEGIN):
        return _begin_tail_fault(line[len(BEGIN) :])
    if re.match(r"[*#=\-\s]*begin\W*patch\b", line, re.IGNORECASE):
        return f"the first line must be exactly {BEGIN}, not {shown(line)}"
    what = next((what for start, what in _STARTS if re.match(start, line)), "other text")
    later = next((i for i, other in enumerate(lines) if other.strip() == BEGIN), None)
    advice = "" if later is None else f"; {BEGIN} stands only on line {later + 1}: send the text from there"
    return f"the text starts with {shown(line)}: {what}{advice or f'; the first line must be {BEGIN}'}"


def _begin_tail_fault(tail: str) -> str:
    if tail.startswith(("\\n", "\\r\\n")):
        return (
            "the text holds literal backslash-n (the two characters \\ and n) where lines should end; "
            "send real line breaks"
        )
    if set(tail.strip()) == {"*"}:
        return f"the first line has extra stars; it must be exactly {BEGIN}"
    return f"the first line must be exactly {BEGIN}; after it stands {shown(tail.strip())}"


def end_fault(lines: list[str], last: int) -> tuple[str, int]:
    """What stands where `*** End Patch` was expected as the last non-blank line, and at which index."""
    for i, line in enumerate(lines):
        if line.rstrip() == END:
            after = next(j for j in range(i + 1, len(lines)) if lines[j].strip())
            return f"text stands after {END}: {shown(lines[after])}; nothing may follow it", after
    line = lines[last].strip()
    if re.fullmatch(r"\*+ End Patch \*+|\*{4,} End Patch", line):
        return f"the last line has extra stars; it must be exactly {END}", last
    if re.match(r"[*#=\-\s]*end\W*patch\b", line, re.IGNORECASE):
        return f"the last line must be exactly {END}, not {shown(line)}", last
    return f"{END} is missing: the text ends with {shown(line)}, so it was probably cut", last


def shown(text: str) -> str:
    """A line in quotes, cut to fit a message."""
    cut = text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "..."
    return '"' + cut.encode("utf-8", "backslashreplace").decode() + '"'
