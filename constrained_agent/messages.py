"""Frozen values that cross package borders. No behaviour, no identity beyond what the model sees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Effect = Literal["read", "write", "exec"]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model is told of it.

    Attributes:
        name: identifier, `[a-z_]+`.
        description: what it is for and when not to use it.
        parameters: JSON schema of the arguments; every object in it is closed.
        effect: what running it may change; permissions are decided by it.
        freeform: the one argument is raw text after the call's head instead of JSON (apply_patch).
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    effect: Effect
    freeform: bool = False


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that the model made; `id` ties its result to it."""

    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came of a call.

    Attributes:
        call_id: the call's id.
        ok: False for an error that the model should react to.
        text: what the model is shown.
        error_kind: a patch error kind or `tool_error`; empty when `ok`.
        data: facts for the transcript and for `--json` (exit code, changed files, diff ...).
    """

    call_id: str
    ok: bool
    text: str
    error_kind: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one or several turns.

    Attributes:
        prompt_tokens: ids in the prompt, reused ones included.
        reused_tokens: prompt ids that were already in the KV cache.
        generated_tokens: ids written, forced ones included.
        forced_tokens: ids that the grammar left no choice about.
        model_steps: forward passes after the prompt.
    """

    prompt_tokens: int = 0
    reused_tokens: int = 0
    generated_tokens: int = 0
    forced_tokens: int = 0
    model_steps: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.reused_tokens + other.reused_tokens,
            self.generated_tokens + other.generated_tokens,
            self.forced_tokens + other.forced_tokens,
            self.model_steps + other.model_steps,
        )
