"""The constraint of located patches: the mask from the engine, the way to the end from the automata.

Two things that the engine can not do for this grammar are done here by reading along (`located.progress`). The
shortest end of a hunk may lie hundreds of lines down the file, which no search over bytes finds in time. And a patch
must not make one path twice: after that there is no way to the end, and what has none is not offered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from constrained_agent.grammar import patches
from constrained_agent.grammar.cursor import Path
from constrained_agent.grammar.endings import ClosableMatcher
from constrained_agent.grammar.located import ways
from constrained_agent.grammar.located.offer import LocatedPatches
from constrained_agent.grammar.located.progress import END, Progress
from constrained_agent.grammar.located.rules import grammar
from constrained_agent.grammar.matcher import EngineTokenizer
from constrained_agent.grammar.sources import Grammar

SPECIAL = b"\xff"
"""Stands before and behind the name of a special token in a text of bytes: no UTF-8 text holds it."""

_MAX_WARMED = 4
"""Files, the ones read last: 1 to 20 ms each."""

_BEGIN = "*** Begin Patch\n"


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands around a patch, as bytes with `SPECIAL` around the names of special tokens.

    Attributes:
        before: what comes before a patch, and nowhere else.
        after: the fewest bytes that may follow it up to the end of the text.
    """

    before: bytes = b""
    after: bytes = b""


_WHOLE = Frame()


class PlacingMatcher(ClosableMatcher):
    """A constraint whose patches are located ones."""

    def __init__(
        self,
        tokenizer: EngineTokenizer,
        grammar: Grammar,
        located: LocatedPatches,
        *,
        ends_of: Grammar,
        frame: Frame = _WHOLE,
    ) -> None:
        """Compile; needs a deep stack (`grammar.deepstack`).

        Args:
            grammar: holds the rules of `located` (`rules.written`).
            ends_of: the same with the strict patch language, carried as in `located`, in its place.
            frame: what stands around a patch; nothing if it is the whole text.

        Raises:
            GrammarError: it does not compile.
        """
        super().__init__(tokenizer, grammar, ends_of=ends_of)
        self._located, self._frame = located, frame
        self._start = None if frame.before else Progress(located)
        self._progress = self._start
        self._outside = b""
        self._unfollowed: list[int] = []
        self._special_named = {tokenizer.token_bytes[token]: step for token, step in self._special.items()}

    def consume(self, tokens: Sequence[int]) -> None:
        """Move on by tokens that were written.

        Raises:
            MatcherError: one of them is not allowed.
        """
        super().consume(tokens)
        self._unfollowed += tokens

    def copy(self) -> Self:
        """An independent constraint in the same state."""
        clone = super().copy()
        clone._share(self)
        clone._progress, clone._outside = self._progress, self._outside
        clone._unfollowed = list(self._unfollowed)
        return clone

    def fresh(self) -> Self:
        """The same constraint before its first token."""
        clone = super().fresh()
        clone._share(self)
        clone._progress, clone._outside, clone._unfollowed = self._start, b"", []
        return clone

    def _share(self, other: Self) -> None:
        self._located, self._frame, self._start = other._located, other._frame, other._start
        self._special_named = other._special_named

    def warm(self) -> None:
        """Do beforehand what is slow: look for a way to the end (70 ms), and at the masks at the beginning of a hunk,
        where any line of the file may follow."""
        self.closing()
        for file in self._located.files[-_MAX_WARMED:]:
            opening = f"{_BEGIN}*** Update File: {file.path}\n@@\n-"
            text = self._frame.before + self._located.carrier.carried(opening)
            tokens = self._as_tokens(self._as_path(text))
            there = self.fresh()
            if tokens is None:
                continue
            if there.accepted_prefix(tokens) == len(tokens):
                there.consume(tokens[:-1])
                there.bitmask()
                there.consume(tokens[-1:])
                there.bitmask()

    def closing(self) -> list[int] | None:
        """Tokens of the shortest way to a whole text; None where none was found, or a path was named twice.

        Cost: that of `ways.shortest` in a patch; outside of one as in `ClosableMatcher`.
        """
        progress = self.progress()
        if progress is None:
            way = self._found_way()
            return None if way is None else self._as_tokens(self._with_located_patch(way))
        end = ways.shortest(progress)
        return None if end is None else self._as_tokens(self._as_path(end + self._frame.after))

    def fits(self, n_tokens: int) -> bool:
        """Whether a whole text fits into so many more tokens; where there is room, cheaper than `closing`."""
        progress = self.progress()
        if progress is not None:
            end = ways.shortest(progress)
            return end is not None and self._takes_at_most(self._as_path(end + self._frame.after), n_tokens)
        found = (self._found_way(thorough=it) for it in (False, True))
        return any(
            way is not None and self._takes_at_most(self._with_located_patch(way), n_tokens) for way in found
        )

    @property
    def copying(self) -> bool:
        """Whether the text comes from a file here."""
        progress = self.progress()
        return progress is not None and progress.copying

    def progress(self) -> Progress | None:
        """How far the patch has come that is being written; None outside of one."""
        data = b"".join(map(self._marked, self._unfollowed))
        self._unfollowed = []
        if self._progress is None:
            before, found, data = (self._outside + data).partition(self._frame.before)
            if not found:
                self._outside = before[-len(self._frame.before) :]
                return None
            self._progress = Progress(self._located)
        self._progress = self._progress.advanced(data)
        if self._progress.ended:
            self._outside, self._progress = self._progress.line, None
        return self._progress

    def _with_located_patch(self, way: Path) -> Path:
        """A way through a strict patch, led through a located one."""
        text = bytes(min(step, SPECIAL[0]) for step in way)
        if (start := text.find(self._located.carrier.carried(_BEGIN))) < 0:
            return way
        end = text.index(END, start) + len(END)
        patch = ways.shortest(Progress(self._located))
        assert patch is not None, "a new file can always be added"
        return (*way[:start], *patch, *way[end:])

    def _marked(self, token: int) -> bytes:
        data = self.tokenizer.token_bytes[token]
        return SPECIAL + data + SPECIAL if token in self._special else data

    def _as_path(self, text: bytes) -> Path:
        path: list[int] = []
        for i, part in enumerate(text.split(SPECIAL)):
            path += [self._special_named[part]] if i % 2 else part
        return tuple(path)


def compile_patch(tokenizer: EngineTokenizer, located: LocatedPatches) -> PlacingMatcher:
    """The constraint of a text that is one located patch; compile on a deep stack.

    Raises:
        GrammarError: it does not compile.
    """
    rules = patches.carried_rules(located.carrier, located.max_added_lines)
    strict = Grammar("patch", "lark", f"start: {patches.RULE}\n{rules}")
    return PlacingMatcher(tokenizer, grammar(located), located, ends_of=strict)
