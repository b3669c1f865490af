"""`generate`: one constrained generation."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from constrained_agent.cli import tools_file
from constrained_agent.cli.setup import (
    ModelFlags,
    check_model_flags,
    load_runtime,
    max_added_lines_option,
    model_options,
    one_at_most,
    sampling,
)
from constrained_agent.errors import UserError
from constrained_agent.messages import ToolSpec

if TYPE_CHECKING:
    from constrained_agent.agent.prompt import Size
    from constrained_agent.agent.runtime import Runtime
    from constrained_agent.decode.generate import Generation
    from constrained_agent.decode.needs import Constraint
    from constrained_agent.grammar.located.offer import Editable


@dataclass(frozen=True, slots=True)
class Flags(ModelFlags):
    """The command line of one generation, as given."""

    prompt: str | None
    prompt_file: str | None
    system: str | None
    raw: bool
    grammar: str | None
    json_schema: str | None
    regex: str | None
    tools: str | None
    tool_choice: str | None
    edit: tuple[str, ...]
    max_added_lines: int

    @property
    def constrained(self) -> bool:
        return any((self.grammar, self.json_schema, self.regex is not None, self.tools, self.edit))


@click.command(
    help="One generation under a grammar, a JSON schema, a regex, tools or the lines of files; free without them."
)
@click.option("--prompt", help="The prompt.")
@click.option("--prompt-file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--system", help="System message.")
@click.option("--raw", is_flag=True, help="The prompt as it is, without a conversation around it.")
@click.option("--grammar", metavar="NAME|FILE", help="Shipped grammar or Lark file.")
@click.option("--json-schema", type=click.Path(exists=True, dir_okay=False), metavar="FILE")
@click.option("--regex", metavar="R", help="Rust syntax; the whole text must match.")
@click.option(
    "--tools", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="JSON list of tools."
)
@click.option("--tool-choice", metavar="CHOICE", help="auto (default), none, required, or a tool's name.")
@click.option(
    "--edit",
    multiple=True,
    metavar="FILE",
    help="A patch of this file, each of whose hunks fits one place of it. Repeatable; shown with the prompt.",
)
@max_added_lines_option
@model_options
def command(**flags: Any) -> int:
    return _generate(Flags(**flags))


def _generate(flags: Flags) -> int:
    prompt = _check(flags)

    tools = tools_file.read(flags.tools) if flags.tools else []
    if tools:
        from constrained_agent.grammar.toolcalls import check_choice

        check_choice(tools, flags.tool_choice or "auto")
    files = _Files(flags.edit) if flags.edit else None
    runtime = load_runtime(flags.model, flags.draft_model)  # before the imports below: they bring mlx

    from constrained_agent.agent.turn import thinking_limits
    from constrained_agent.cli import view
    from constrained_agent.decode.generate import generate

    ids = _prompt_ids(runtime, flags, prompt, tools, files)
    editable = files.editable(runtime.card.prompt) if files else None
    stream = view.TokenStream(view.console(stderr=flags.as_json), runtime.tokenizer, view.console())
    draw = sampling(runtime.card, flags)
    max_tokens = min(flags.max_tokens, runtime.session.room(len(ids)))
    try:
        written = generate(
            runtime.session,
            _constraint(runtime, flags, tools, editable),
            ids,
            sampling=draw,
            max_tokens=max_tokens,
            thinking=thinking_limits(runtime, max_tokens, flags.think_budget) if flags.think else None,
            blank_ids=runtime.tokenizer.blank_ids,
            drafts=runtime.drafts(ids, editable.files if editable else ()) if flags.drafts else None,
            on_tokens=stream.tokens,
            on_prefill=stream.prefill,
        )
    finally:
        stream.stop()
    stream.finish()
    if flags.as_json:
        click.echo(
            json.dumps(_summary(written, runtime.tokenizer.decode(written.tokens)), ensure_ascii=False)
        )
    elif not written.complete:
        click.echo(f"incomplete: {written.stop_reason} after {len(written.tokens)} tokens", err=True)
    if written.stop_reason == "interrupted":
        return 130
    return 1 if flags.constrained and not written.complete else 0


def _check(flags: Flags) -> str:
    """Refuse contradictory flags; returns the prompt's text."""
    check_model_flags(flags)
    if (flags.prompt is None) == (flags.prompt_file is None):
        raise click.UsageError("give the prompt by --prompt or by --prompt-file, one of them")
    sources = {
        "--grammar": flags.grammar,
        "--json-schema": flags.json_schema,
        "--regex": flags.regex,
        "--tools": flags.tools,
        "--edit": flags.edit or None,
    }
    given = one_at_most(sources, "constraint")
    source = click.get_current_context().get_parameter_source("max_added_lines")
    if source is ParameterSource.COMMANDLINE and not (flags.tools or flags.edit):
        raise click.UsageError("--max-added-lines needs --edit, or --tools with a patch tool")
    if flags.tool_choice and not flags.tools:
        raise click.UsageError("--tool-choice needs --tools")
    if flags.raw and (flags.system or flags.tools or flags.think):
        raise click.UsageError(
            "--raw is the bare prompt: it goes with neither --system nor --tools nor --think"
        )
    if flags.think and given and given != ["--tools"]:
        raise click.UsageError(f"--think does not go with {given[0]}: thinking is not part of that language")
    if flags.prompt is not None:
        return flags.prompt
    if flags.prompt_file == "-":
        return sys.stdin.read()
    from constrained_agent.grammar.sources import read_text

    return read_text(Path(str(flags.prompt_file)))


class _Files:
    """The files to edit, in the folder where the command was started."""

    def __init__(self, paths: Sequence[str]) -> None:
        from constrained_agent.tools.permissions import Policy
        from constrained_agent.tools.registry import Tools
        from constrained_agent.tools.workspace import Workspace

        tools = Tools(Workspace("."), Policy(read_only=True))
        self.shown = [(path, tools.show(path, option="--edit")) for path in dict.fromkeys(paths)]
        self._tools = tools

    def editable(self, size: Size) -> Editable:
        """What a patch may do to them."""
        from constrained_agent.agent.editable import editable

        return editable(self._tools, renames=size == "full")


def _prompt_ids(
    runtime: Runtime, flags: Flags, prompt: str, tools: list[ToolSpec], files: _Files | None
) -> list[int]:
    if flags.raw:
        ids = runtime.tokenizer.encode_plain(prompt)
        if not ids:
            raise UserError("the prompt is empty: --raw needs at least one token")
        return ids
    from constrained_agent.agent.conversation import joined
    from constrained_agent.agent.prompt import Part, patch_part, system_parts, task_text

    dialect = runtime.dialect
    parts = [Part("system", flags.system, trusted=False)] if flags.system else []
    if tools:
        parts += system_parts(tools, runtime.card.prompt, dialect.tool_block)[1:]
    if files:
        parts.append(patch_part(runtime.card.prompt, headers=False, call=False))
        prompt = task_text(prompt, files.shown)
    ids = dialect.system(*joined(parts)) if parts else []
    if not flags.system:  # what the user wrote is not for the disk
        runtime.session.prefix = tuple(ids)
    return [*ids, *dialect.user(prompt), *dialect.open_answer(thinking=flags.think)]


def _constraint(
    runtime: Runtime, flags: Flags, tools: list[ToolSpec], editable: Editable | None
) -> Constraint | Future[Constraint]:
    from constrained_agent.grammar import sources

    if tools:
        return runtime.turn_constraint(
            "grammar",
            tools,
            flags.tool_choice or "auto",
            thinking=flags.think,
            max_added_lines=flags.max_added_lines,
        )
    if editable:
        return runtime.patch_constraint(editable, flags.max_added_lines)
    if flags.grammar:
        return runtime.grammar_constraint(sources.load(flags.grammar))
    if flags.json_schema:
        return runtime.grammar_constraint(sources.from_json_schema_file(flags.json_schema, compact=True))
    if flags.regex is not None:
        return runtime.grammar_constraint(sources.from_regex(flags.regex))
    return runtime.unconstrained()


def _summary(written: Generation, text: str) -> dict[str, Any]:
    import numpy as np

    masks = np.array(written.mask_us or (0.0,))
    return {
        "text": text,
        "stop_reason": written.stop_reason,
        "complete": written.complete,
        "prompt_tokens": written.prompt_tokens,
        "reused_tokens": written.reused_tokens,
        "tokens": len(written.tokens),
        "forced_tokens": sum(written.forced),
        "model_steps": written.model_steps,
        "drafted_tokens": written.drafted_tokens,
        "accepted_tokens": written.accepted_tokens,
        "prefill_s": round(written.prefill_s, 4),
        "decode_s": round(written.decode_s, 4),
        "mask_us": {
            "p50": round(float(np.percentile(masks, 50)), 1),
            "p99": round(float(np.percentile(masks, 99)), 1),
            "max": round(float(masks.max()), 1),
        },
    }
