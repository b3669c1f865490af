"""A second opinion on a text, by the `lark` package: another reader of the same grammar file."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import lark

from constrained_agent.grammar.sources import Grammar

# Its Earley parser takes over where a grammar is not LALR; it is quadratic at best.
_MAX_EARLEY_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class Opinion:
    """What the other reader says.

    Attributes:
        parser: `lalr` or `earley`; None if it has no opinion.
        accepts: whether it reads the whole text.
        reason: why it has no opinion, or why it refuses the text; empty if it accepts.
    """

    parser: str | None
    accepts: bool
    reason: str

    def contradicts(self, complete: bool) -> bool:
        """Whether it has an opinion, and another one on whether the text is complete."""
        return self.parser is not None and self.accepts != complete


def second_opinion(data: bytes, grammar: Grammar) -> Opinion:
    """Read a text with the `lark` package, where the grammar is plain Lark.

    LLGuidance's own additions (`%json`, special tokens, `[suffix=...]`, `&`) do not load there. LALR is tried
    first, since the patch parser uses it; its lexer, like LLGuidance's, takes the longest token.

    Args:
        data: the text; what is not UTF-8 counts as refused.
        grammar: schemas and regular expressions get no opinion.
    """
    if grammar.kind != "lark":
        return Opinion(None, False, "only Lark grammars can be read by the lark package")
    with warnings.catch_warnings(action="ignore"):  # Python's on patterns that it will read otherwise one day
        return _read(data, grammar)


def _read(data: bytes, grammar: Grammar) -> Opinion:
    try:
        parser, name = _loaded(grammar.text)
    except (
        lark.exceptions.LarkError,
        OSError,
        RecursionError,
    ) as error:  # OSError: %import of a missing file
        return Opinion(None, False, f"the grammar is not plain Lark: {_first_line(error)}")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return Opinion(name, False, f"not UTF-8 at byte {error.start}")
    if name == "earley" and len(text) > _MAX_EARLEY_CHARS:
        return Opinion(
            None, False, f"longer than the {_MAX_EARLEY_CHARS:,} characters its Earley parser is given"
        )
    try:
        parser.parse(text)
    except (lark.exceptions.LarkError, RecursionError) as error:
        return Opinion(name, False, _first_line(error))
    return Opinion(name, True, "")


def _loaded(text: str) -> tuple[lark.Lark, str]:
    try:
        return lark.Lark(text, parser="lalr"), "lalr"
    except lark.exceptions.GrammarError as error:
        if not any(word in str(error) for word in ("collision", "conflict", "zero-width")):
            raise  # no fault of LALR
        return lark.Lark(text, parser="earley"), "earley"


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0]
