"""Lines that break things, and where the hunks of a patch land: for the tests of located patches."""

from __future__ import annotations

from collections.abc import Mapping

from constrained_agent.grammar.located.progress import Landed
from constrained_agent.patch import format as patch_format
from constrained_agent.patch.locate import Place, Searcher
from constrained_agent.patch.plan import Plan
from constrained_agent.patch.sections import UpdateFile
from constrained_agent.patch.textfile import decode

# Lines that have broken parsers, shells, terminals, templates and grammars.
NASTY = [
    "", " ", "\t", "x", "  x", "x  ", 'a "b" c', "a\\nb", "\\", "'", "/", "é", "e\u0301", "a\rb", "\r",
    "\x0c", "\x1b[0m",
    "\u2028", "\u0085", "\ufeff", "\u200b", "*** End Patch", "*** Update File: a.py", "@@", "+x", "-x", "</tool_call>",
    "<|im_end|>", "😀", "文", "{{ x }}", "%if true", "// c", "| y", "\x7f", "a" * 300, '\u201cx\u201d', "\ufffd",
]  # fmt: skip


def landed(planned: Plan, text: str, files: Mapping[str, bytes]) -> list[Landed]:
    """Where the patch engine puts the hunks of a patch, in its order."""
    return [place for file in planned.files for place in spans(file.path, text, files)]


def spans(path: str, text: str, files: Mapping[str, bytes]) -> list[Landed]:
    """Where the patch engine puts the hunks of one file."""
    found = []
    after = 0
    for section in patch_format.parse(text).patch.sections:
        if isinstance(section, UpdateFile) and section.path == path:
            searcher = Searcher(decode(files[path], path).texts, section.hunks)
            for hunk in section.hunks:
                place = searcher.locate(hunk, after)
                assert isinstance(place, Place)
                after = place.start + len(hunk.old())
                found.append(Landed(path, place.start, after))
    return found
