"""How far a text has come in a located patch: read along, line by line, beside the engine's own parser.

The engine says what may come next, not where in which file the text is. This says it: for the way to the end
(`located.ways`), for new files that a patch may not name twice, and for messages. Texts are those that the grammar
of the same `LocatedPatches` accepts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from constrained_agent.errors import MatcherError
from constrained_agent.grammar.located.automaton import ROOT, State
from constrained_agent.grammar.located.offer import LocatedPatches

END = b"*** End Patch"


@dataclass(frozen=True, slots=True)
class Begin:
    """Before the first line."""


@dataclass(frozen=True, slots=True)
class Between:
    """Where a section may begin; the patch may end unless this would be its first."""

    first: bool = False


@dataclass(frozen=True, slots=True)
class Adding:
    """In the lines of a new file."""


@dataclass(frozen=True, slots=True)
class Header:
    """Below the line that names a file to update, or below its `*** Move to:`."""

    file: int
    moved: bool = False


@dataclass(frozen=True, slots=True)
class InHunk:
    """In a hunk.

    Attributes:
        file: number of the file.
        state: state of its automaton, after the old lines of the hunk so far.
        start: lines of the file behind the hunk before.
        behind: the same, and the old lines of this one.
        changed: whether it adds or removes a line yet.
    """

    file: int
    state: int = ROOT
    start: int = 0
    behind: int = 0
    changed: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """Behind the last line."""


Place = Begin | Between | Adding | Header | InHunk | Ended


@dataclass(frozen=True, slots=True)
class Landed:
    """A finished hunk: old lines `start` to `end` (0-based, behind the last) of a file."""

    path: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Progress:
    """A text so far.

    Attributes:
        located: the language.
        place: where its last whole line has led to.
        line: bytes of the line that is not whole yet, as they are carried; behind the patch, all that has followed.
        named: numbers of the files that sections have named.
        made: paths that are new.
        copied: the last whole line was one of the file.
        hunks: those that are finished, in patch order.
    """

    located: LocatedPatches
    place: Place = Begin()
    line: bytes = b""
    named: frozenset[int] = frozenset()
    made: tuple[str, ...] = ()
    copied: bool = False
    hunks: tuple[Landed, ...] = ()

    @property
    def done(self) -> bool:
        """Whether the patch is whole."""
        return self.line == END

    @property
    def ended(self) -> bool:
        """Whether the text has gone on behind the patch."""
        return isinstance(self.place, Ended)

    @property
    def copying(self) -> bool:
        """Whether the text comes from the file here, so that it may repeat as the file does."""
        return self.line.startswith((b" ", b"-")) or (not self.line and self.copied)

    @property
    def consistent(self) -> bool:
        """Whether no new path is named twice, or lies below another: what the grammar alone can not say."""
        return all(
            self.located.new_paths.allows(path, self.made[:i]) for i, path in enumerate(self.made) if i
        )

    def advanced(self, data: bytes) -> Progress:
        """The progress after more bytes of the text, as the language carries it.

        Raises:
            MatcherError: they are not of this language.
        """
        progress, data, start = self, self.line + data, 0
        if not self.ended:
            for line, end in self.located.carrier.lines(data):
                after = progress._after(self.located.carrier.read(line))
                progress, start = replace(after, copied=line.startswith((b" ", b"-"))), end
                if progress.ended:
                    break
        return replace(progress, line=data[start:])

    def state_of(self, hunk: InHunk) -> State:
        """The automaton's state that a hunk has come to."""
        return self.located.files[hunk.file].automaton.states[hunk.state]

    def landed(self) -> tuple[Landed, ...]:
        """The finished hunks, with the one that the end of the patch ends."""
        return self._closed().hunks if self.done else self.hunks

    def _after(self, line: str) -> Progress:
        place = self.place
        if isinstance(place, Begin):
            return replace(self, place=Between(first=True))
        if line.startswith(("@@", "*** ")):
            return self._after_control(line)
        if isinstance(place, Adding):
            return self
        if isinstance(place, Header):
            place = InHunk(place.file)
        if not isinstance(place, InHunk):
            raise MatcherError(f"{line!r} is no line of a located patch")
        if line.startswith("+"):
            return replace(self, place=replace(place, changed=True))
        file = self.located.files[place.file]
        try:
            target = self.state_of(place).next[file.number_of[line[1:]]]
        except KeyError:
            raise MatcherError(f"{line[1:]!r} does not follow in {file.path}") from None
        changed = place.changed or line.startswith("-")
        return replace(self, place=replace(place, state=target, behind=place.behind + 1, changed=changed))

    def _after_control(self, line: str) -> Progress:
        closed = self._closed()
        key, _, path = line.partition(": ")
        match key:
            case "@@":
                file = self.place.file if isinstance(self.place, InHunk | Header) else 0
                behind = self._end_of_hunk() if isinstance(self.place, InHunk) else 0
                return replace(closed, place=InHunk(file, start=behind, behind=behind))
            case "*** Add File":
                return replace(closed, place=Adding(), made=(*self.made, path))
            case "*** Move to" if isinstance(self.place, Header):
                return replace(closed, place=replace(self.place, moved=True), made=(*self.made, path))
            case "*** Update File" | "*** Delete File":
                file = self.located.file_of[path]
                after: Place = Header(file) if key == "*** Update File" else Between()
                return replace(closed, place=after, named=self.named | {file})
            case "*** End of File":
                return replace(closed, place=Between())
        return replace(closed, place=Ended())

    def _closed(self) -> Progress:
        """With the hunk so far among the finished ones."""
        place = self.place
        if not isinstance(place, InHunk) or not place.changed:
            return self
        end = self._end_of_hunk()
        path = self.located.files[place.file].path
        landed = Landed(path, end - (place.behind - place.start), end)
        return replace(self, hunks=(*self.hunks, landed))

    def _end_of_hunk(self) -> int:
        """Lines of the file up to the end of the hunk."""
        assert isinstance(self.place, InHunk)
        state = self.state_of(self.place)
        if state.end is not None:
            return state.end
        return self.located.files[self.place.file].automaton.n_lines
