"""The exceptions of the project, by who must act on them.

```
ConstrainedAgentError
├── UserError            the person who typed the command: exit code 2
│   ├── ModelError       a model or its weights are missing, broken, unknown or too large
│   ├── GrammarError     a grammar, schema or regex does not compile
│   ├── PromptTooLongError
│   └── BudgetError      no whole text of a grammar fits into the token limit
├── ToolError            the model: goes back to it as a tool result
│   └── PatchError       a patch that cannot be read or applied
└── DecodeError          nobody can act: the run stops, the text is not passed on
    └── MatcherError     the grammar engine refused a token or hit one of its limits
        └── DeadEndError the grammar allows no token here
```

An exception carries fields and builds its own message: what, where, what was expected, what to do next.
"""

from __future__ import annotations

from typing import Literal, get_args

PatchErrorKind = Literal[
    "bad_envelope",
    "bad_line",
    "bad_path",
    "empty_patch",
    "empty_update",
    "empty_hunk",
    "no_change",
    "already_applied",
    "file_not_found",
    "exists",
    "is_directory",
    "outside_root",
    "duplicate_path",
    "anchor_not_found",
    "context_not_found",
    "ambiguous",
    "eof_mismatch",
    "overlap",
    "indent_mismatch",
    "inexact_removal",
    "not_text",
    "changed_on_disk",
    "write_failed",
]
"""Closed list: transcripts and comparisons count by these names."""

PATCH_ERROR_KINDS: tuple[str, ...] = get_args(PatchErrorKind)


class ConstrainedAgentError(Exception):
    """Root of everything this package raises on purpose."""


class UserError(ConstrainedAgentError):
    """The call was wrong (flag, path, missing piece); the message says what to type instead."""


class ModelError(UserError):
    """A model cannot be found, fetched, verified or loaded."""


class GrammarError(UserError):
    """A grammar, JSON schema or regex does not compile.

    Attributes:
        source: name of the grammar, as the user gave it.
        reason: the engine's reason, without its boilerplate.
        line, column: 1-based position in the grammar text, when the engine named one.
    """

    def __init__(self, source: str, reason: str, line: int | None = None, column: int | None = None) -> None:
        self.source, self.reason, self.line, self.column = source, reason, line, column
        where = source if line is None else f"{source}:{line}:{column or 1}"
        super().__init__(f"{where}: does not compile: {reason}")


class PromptTooLongError(UserError):
    """The prompt and the room for an answer exceed what the model or the memory holds."""

    def __init__(self, n_tokens: int, limit: int, limit_is: str) -> None:
        self.n_tokens, self.limit = n_tokens, limit
        super().__init__(
            f"the prompt has {n_tokens:,} tokens, but {limit_is} is {limit:,}; "
            "shorten the prompt, put fewer files before the model, or lower --max-tokens"
        )


class BudgetError(UserError):
    """No whole text of a grammar fits into the token limit, or none was found that ends."""


class ToolError(ConstrainedAgentError):
    """A tool could not do what the model asked; the message is written for the model.

    Attributes:
        kind: failure class: `tool_error`, `schema_violated` or `unknown_tool`; for patches their own kinds.
    """

    kind: str

    def __init__(self, message: str, kind: str = "tool_error") -> None:
        self.kind = kind
        super().__init__(message)


class PatchError(ToolError):
    """A patch that cannot be read or applied; nothing was written.

    Attributes:
        kind: one of `PATCH_ERROR_KINDS`.
        reason: the full text for the model or the person.
        path: file as the patch spells it, if one is concerned.
        hunk: 1-based number of the hunk within its section.
        lines: 1-based line numbers of the file (of the patch text for `bad_line` and `bad_envelope`)
            that the message speaks of: all candidates for `ambiguous`.
    """

    def __init__(
        self,
        kind: PatchErrorKind,
        reason: str,
        *,
        path: str | None = None,
        hunk: int | None = None,
        lines: tuple[int, ...] = (),
    ) -> None:
        self.reason, self.path, self.hunk, self.lines = reason, path, hunk, lines
        place = "" if path is None else path if hunk is None else f"{path}, hunk {hunk}"
        super().__init__(f"{kind}: {place}: {reason}" if place else f"{kind}: {reason}", kind)


class DecodeError(ConstrainedAgentError):
    """Generation broke its own guarantee and was stopped; the text is not passed on."""


class MatcherError(DecodeError):
    """The grammar engine refused a token, reported an error or hit one of its limits."""


class DeadEndError(MatcherError):
    """The grammar allows no token at this point."""
