"""What an answer with a patch is likely to repeat: the text so far, lines of its files, and the lines that it removes.

An added line is a removed one with something changed more often than not, or it resembles another line of the file. In
a patch such a line stands behind a `+`, which changes how it is cut into tokens; so lines are looked up as they would
stand there.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from constrained_agent.decode.lookup import Lookup
from constrained_agent.decode.needs import State
from constrained_agent.grammar.carriers import FREEFORM, Carrier
from constrained_agent.grammar.located.offer import OfferedFile
from constrained_agent.grammar.matcher import EngineTokenizer

_MAX_READ = 400_000
"""Tokens: after so many, all is forgotten but the prompt and the files on offer (200 MB)."""


class PatchLookup:
    """Guesses at answers in one conversation, or in several.

    Attributes:
        kind, cost_s: guesses cost nothing beside a pass.
    """

    kind = "lookup"
    cost_s = 0.0

    def __init__(self, tokenizer: EngineTokenizer) -> None:
        self._tokenizer = tokenizer
        self._lookup = Lookup()
        self._line = b""
        self._known: dict[str, tuple[str, ...]] = {}
        self._carrier = FREEFORM

    def begin(self, prompt: Sequence[int], files: Sequence[OfferedFile], carrier: Carrier = FREEFORM) -> None:
        """An answer to `prompt` begins, whose patch may speak of lines of `files`.

        Cost: 3 microseconds for each token of the prompt and of lines that are new.

        Args:
            carrier: how the patch travels; with another one than before, all that is known is read anew.
        """
        if self._lookup.n_read > _MAX_READ or self._carrier is not carrier:
            self._lookup, self._known, self._carrier = Lookup(), {}, carrier
        for file in files:
            if (known := self._known.get(file.path)) != file.lines:
                self._known[file.path] = file.lines
                new = set(file.lines).difference(known or ())
                lines = [carrier.spell(line) for line in file.lines if line in new]
                self._lookup.add(self._as_added([line.encode("utf-8", "surrogateescape") for line in lines]))
        self._lookup.begin(prompt)
        self._line = b""

    def extend(self, ids: Sequence[int]) -> None:
        """The answer goes on."""
        self._lookup.extend(ids)
        self._line += b"".join(self._tokenizer.token_bytes[token] for token in ids)
        lines = list(self._carrier.lines(self._line))
        self._line = self._line[lines[-1][1] if lines else 0 :]
        removed = [line[1:] for line, _ in lines if line.startswith(b"-")]
        if removed:
            self._lookup.add(self._as_added(removed))

    def guesses(self, ahead: Sequence[int], state: State) -> Iterator[tuple[Hashable, int]]:
        """Tokens that followed where the text ended as it does now; `decode.draft.Source` says more."""
        return self._lookup.following(ahead)

    def _as_added(self, lines: Sequence[bytes]) -> list[int]:
        newline = self._carrier.carried("\n")
        return self._tokenizer.encode_bytes(b"".join(newline + b"+" + line for line in lines) + newline)
