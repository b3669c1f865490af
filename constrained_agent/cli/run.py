"""`run`: the agent at work on a repository."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from constrained_agent.cli.setup import (
    ModelFlags,
    check_model_flags,
    load_runtime,
    max_added_lines_option,
    model_options,
    sampling,
)

if TYPE_CHECKING:
    from constrained_agent.agent.loop import Agent
    from constrained_agent.agent.values import RunResult, Settings
    from constrained_agent.cli.interactive.talk import Talk
    from constrained_agent.cli.interactive.watched import Watched
    from constrained_agent.messages import ToolSpec
    from constrained_agent.model.cards import Card
    from constrained_agent.tools.commands import Verdict
    from constrained_agent.tools.permissions import Ask
    from constrained_agent.tools.registry import Tools
    from constrained_agent.tools.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Flags(ModelFlags):
    """The command line of one run, as given."""

    task: str | None
    repo: str
    file: tuple[str, ...]
    constraint: str
    first_tool: str | None
    test_command: str | None
    stop_hook: str | None
    max_verifications: int
    max_turns: int
    max_run_tokens: int | None
    time_limit_s: float | None
    yes: bool
    read_only: bool
    no_exec: bool
    refuse_broken: bool
    transcript: str | None
    max_added_lines: int
    carrier: str
    parallel_calls: bool


@click.command(
    help="Let the agent work on TASK in a repository. Without TASK, on a terminal: a conversation."
)
@click.argument("task", required=False)
@click.option("--repo", default=".", show_default=True, type=click.Path(exists=True, file_okay=False))
@click.option(
    "--file", multiple=True, metavar="PATH", help="Put a file before the model as read. Repeatable."
)
@click.option(
    "--constraint", type=click.Choice(["off", "grammar", "located"]), default="located", show_default=True
)
@click.option("--first-tool", metavar="TOOL", help="The first answer must call this tool.")
@click.option(
    "--test-command", metavar="CMD", help="Decides whether the task is done; run after each change."
)
@click.option(
    "--stop-hook", metavar="CMD", help="Asked when the model says that it is done: exit code 0 lets it stop."
)
@click.option(
    "--max-verifications",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    metavar="N",
    help="Finished answers that tests and hook may refuse.",
)
@click.option(
    "--max-turns", type=click.IntRange(0), default=8, show_default=True, help="0 = only tokens are limited."
)
@click.option("--max-run-tokens", type=click.IntRange(1), metavar="N", help="Generated over all answers.")
@click.option("--time-limit-s", type=click.FloatRange(0, min_open=True), help="For the whole run.")
@click.option(
    "--yes", is_flag=True, help="Ask only about commands that are dangerous or change other machines."
)
@click.option("--read-only", is_flag=True, help="Neither patches nor commands.")
@click.option("--no-exec", is_flag=True, help="No commands.")
@click.option("--refuse-broken", is_flag=True, help="Refuse a patch that brings a syntax error into a file.")
@click.option("--transcript", metavar="FILE", help="Append every event as a JSON line.")
@max_added_lines_option
@click.option(
    "--carrier",
    type=click.Choice(["freeform", "json"]),
    default="freeform",
    show_default=True,
    help="How a patch travels in a call: as raw text, or as a string of JSON.",
)
@click.option(
    "--parallel-calls", is_flag=True, help="An answer may hold several calls; they are run in order."
)
@model_options
def command(**flags: Any) -> int:
    return _run(Flags(**flags))


def _run(flags: Flags) -> int:
    _check(flags)
    talk = _talk(flags) if flags.task is None else None
    workspace = _workspace(flags)
    tools = _tools(flags, workspace, talk.ask if talk else _ask)
    names = [tool.name for tool in tools.specs]
    if flags.first_tool is not None and flags.first_tool not in names:
        raise click.UsageError(
            f"--first-tool {flags.first_tool}: not on offer; there are: {', '.join(names)}"
        )

    for path in flags.file:
        tools.show(path)  # a wrong path is told before a model is loaded, or downloaded
    from constrained_agent.agent.transcript import Transcript

    transcript = Transcript(flags.transcript)
    if not any(tool.effect == "exec" for tool in tools.specs) and not (flags.read_only or flags.no_exec):
        click.echo("commands are off: there is no terminal to ask on (--yes runs them unasked)", err=True)
    runtime = load_runtime(flags.model, flags.draft_model)  # before the imports below: they bring mlx

    from constrained_agent.agent.loop import Agent
    from constrained_agent.cli.view import RunView

    agent = Agent(
        runtime,
        tools,
        _settings(flags, runtime.card),
        transcript=transcript,
        watcher=RunView(runtime.tokenizer, talk.terminal.status if talk else None),
        inbox=talk,
    )
    files = tuple(dict.fromkeys(flags.file))
    if flags.task is not None:
        return _once(agent, flags, files)
    assert talk is not None
    from constrained_agent.cli.interactive.commands import Commands

    held = flags.first_tool is not None
    commands = Commands(agent, tools, workspace, transcript, runtime.session.context_limit, held_to_tool=held)
    return talk.run(agent, commands, lambda result: _report(result, flags), files)


def _check(flags: Flags) -> None:
    """Refuse what makes no sense, before anything is loaded."""
    check_model_flags(flags)
    if flags.task is None and not sys.stdin.isatty():
        raise click.UsageError("a TASK is needed where there is no terminal to ask on")
    if flags.task is not None and not flags.task.strip():
        raise click.UsageError("the TASK is empty")
    for name, given in (("--test-command", flags.test_command), ("--stop-hook", flags.stop_hook)):
        if given is not None and not given.strip():
            raise click.UsageError(f"{name} is empty")
    if flags.time_limit_s is not None and not math.isfinite(flags.time_limit_s):
        raise click.UsageError(f"--time-limit-s {flags.time_limit_s}: a number of seconds is needed")
    if flags.first_tool and flags.constraint == "off":
        raise click.UsageError(
            "--first-tool needs a constraint: with --constraint off nothing holds the model to it"
        )


def _talk(flags: Flags) -> Talk:
    from constrained_agent.cli.interactive.open import terminal
    from constrained_agent.cli.interactive.talk import Talk

    return Talk(terminal(Path(flags.repo).resolve()))


def _workspace(flags: Flags) -> Watched:
    from constrained_agent.cli.interactive.watched import Watched

    return Watched(Path(flags.repo))


def _tools(flags: Flags, workspace: Workspace, ask: Ask) -> Tools:
    from constrained_agent.tools import environment, rules
    from constrained_agent.tools.permissions import Policy
    from constrained_agent.tools.registry import Tools

    said = rules.load(Path(flags.repo), os.environ)
    if said.repository_allow and not (flags.read_only or flags.no_exec):
        # Who wrote that file may be a stranger, so what it takes away is shown.
        patterns = ", ".join(map(repr, said.repository_allow))
        click.echo(f"{rules.REPOSITORY_NAME} lets commands run without a question: {patterns}", err=True)
    policy = Policy(
        read_only=flags.read_only,
        no_exec=flags.no_exec,
        yes=flags.yes,
        ask=ask if sys.stdin.isatty() and sys.stderr.isatty() else None,
        rules=said,
        environment=environment.for_commands(os.environ, said.passed),
    )
    return Tools(workspace, policy, refuse_broken=flags.refuse_broken)


def _settings(flags: Flags, card: Card) -> Settings:
    from constrained_agent.agent.budget import Limits
    from constrained_agent.agent.turn import Decoding
    from constrained_agent.agent.values import Settings

    draw = sampling(card, flags)
    return Settings(
        decoding=Decoding(
            flags.constraint,  # type: ignore[arg-type]
            draw,
            flags.max_tokens,
            flags.think,
            flags.think_budget,
            flags.max_added_lines,
            flags.drafts,
            flags.carrier,  # type: ignore[arg-type]
            flags.parallel_calls,
        ),
        limits=Limits(flags.max_turns, flags.max_run_tokens, flags.time_limit_s),
        prompt_size=card.prompt,
        first_tool=flags.first_tool,
        test_command=flags.test_command,
        stop_hook=flags.stop_hook,
        max_verifications=flags.max_verifications,
    )


def _once(agent: Agent, flags: Flags, files: Sequence[str]) -> int:
    result = agent.run(flags.task or "", files)
    _report(result, flags)
    if result.exit_reason == "interrupted":
        return 130
    return 0 if result.succeeded else 1


def _report(result: RunResult, flags: Flags) -> None:
    tests = {None: "not run", True: "passed", False: "failed"}[result.tests_passed]
    changed = ", ".join(result.changed_files) or "none"
    click.echo(f"{result.exit_reason}: tests {tests}; changed files: {changed}", err=True)
    if result.last_error and not result.succeeded:
        click.echo(f"last error: {result.last_error}", err=True)
    if flags.as_json:
        click.echo(json.dumps({**asdict(result), "seed": flags.seed, "constraint": flags.constraint}))
        return
    if sys.stdout.isatty() and sys.stderr.isatty():
        return  # it stands on this screen already
    if result.diff:
        click.echo(result.diff, nl=False)
    if result.answer:
        click.echo(result.answer)


def _ask(spec: ToolSpec, arguments: Mapping[str, Any], verdict: Verdict | None = None) -> bool:
    from constrained_agent.cli.question import question

    try:
        return click.confirm(question(spec, arguments, verdict), default=False, err=True)
    except click.Abort as error:
        # click has one exception for Ctrl-C and for the end of input; the latter is a no.
        if isinstance(error.__context__, EOFError):
            return False
        raise KeyboardInterrupt from None
