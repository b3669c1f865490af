"""The prefix checker for located patches: as `grammar.prefix`, with the words of files and lines.

The engine walks the text; `located.progress` says where in which file that led, and `located.words` what a
person can do there. One rule the engine cannot keep, and it is kept here: a patch makes no path twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from constrained_agent.grammar import patches, prefix
from constrained_agent.grammar.cursor import Cursor
from constrained_agent.grammar.expected import Expected, expected_next
from constrained_agent.grammar.located import rules, ways
from constrained_agent.grammar.located.hints import hint
from constrained_agent.grammar.located.offer import LocatedPatches
from constrained_agent.grammar.located.place import Folder, place
from constrained_agent.grammar.located.progress import Begin, Progress
from constrained_agent.grammar.located.words import expected_here
from constrained_agent.grammar.matcher import Matcher
from constrained_agent.grammar.prefix import MAX_EXPECTED, Report
from constrained_agent.grammar.sources import Grammar
from constrained_agent.grammar.walk import byte_matcher, feed, guarded

MAX_LINES_SHOWN = 5
"""Lines of a file among what is expected."""

_NEW = (b"*** Add File: ", b"*** Move to: ")


@dataclass(frozen=True, slots=True)
class Tree:
    """What a text is checked against.

    Attributes:
        located: the language of the files that the text speaks of.
        lines: all lines of these files, by path.
        folder: where they stand.
    """

    located: LocatedPatches
    lines: Mapping[str, Sequence[str]]
    folder: Folder

    def grammar(self) -> Grammar:
        """The language; as in the other patch grammars, a newline may follow the end."""
        name = f"located patch of files {self.folder.where}"
        return Grammar(name, "lark", f'start: {patches.RULE} "\\n"?\n{rules.written(self.located)}')


def check(data: bytes, tree: Tree, *, max_expected: int | None = MAX_EXPECTED) -> Report:
    """Walk a text through the located patches of a tree.

    Args:
        data: the text; need not be UTF-8.
        max_expected: how many entries of `expected` to keep, `MAX_LINES_SHOWN` lines among them; None for all.

    Returns:
        The report. Costs 0.3 s for 1,000 lines on offer, nearly all of it to compile.

    Raises:
        GrammarError: the engine has no room for the files.
        UserError, MatcherError: as `prefix.check`.
    """
    grammar = tree.grammar()
    return guarded(lambda: _checked(data, tree, byte_matcher(grammar), max_expected), grammar, len(data))


def _checked(data: bytes, tree: Tree, matcher: Matcher, max_expected: int | None) -> Report:
    here = matcher.fresh()
    n_valid = feed(here, data)
    if (clash := _clash(data[:n_valid])) is not None:
        here, n_valid = matcher.fresh(), clash
        feed(here, data[:clash])
    progress = Progress(tree.located).advanced(data[:n_valid])
    cursor = Cursor(here)
    state = cursor.at(())
    there = place(progress, data, n_valid, tree.folder, tree.lines)
    in_free_text = isinstance(progress.place, Begin) or progress.line.startswith(b"+")
    if state.accepting or in_free_text or state.trouble:
        expected = expected_next(cursor, (), prefix.unfinished(data[:n_valid]))
    else:
        expected = [entry for entry in expected_here(there) if state.bits >> entry.example[0] & 1]
    shown = expected if max_expected is None else _handful(expected)[:max_expected]
    way = b"" if progress.ended else ways.shortest(progress)
    return prefix.reported(
        data,
        n_valid,
        state,
        shown,
        None if way is None else way.decode("utf-8", "surrogateescape"),
        n_more=len(expected) - len(shown),
        hint=hint(there),
    )


def _clash(data: bytes) -> int | None:
    """Offset of the first byte that makes a new path equal to another of the patch, or lies one below the other."""
    made: list[bytes] = []
    start = 0
    *whole, rest = data.split(b"\n")
    for number, line in enumerate([*whole, rest]):
        if line.startswith(_NEW):
            key = next(key for key in _NEW if line.startswith(key))
            path = line[len(key) :]
            ends = [len(other) for other in made if path.startswith(other + b"/")]
            if number < len(whole) and any((other + b"/").startswith(path + b"/") for other in made):
                ends.append(len(path))
            if ends:
                return start + len(key) + min(ends)
            made.append(path)
        start += len(line) + 1
    return None


def _handful(expected: Sequence[Expected]) -> list[Expected]:
    """The entries without most of the lines."""
    lines = [number for number, entry in enumerate(expected) if entry.kind == "line"]
    hidden = set(lines[MAX_LINES_SHOWN:])
    return [entry for number, entry in enumerate(expected) if number not in hidden]
