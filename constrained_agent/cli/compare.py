"""`compare`: what the constraint buys, and what it costs, on this machine's own model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from constrained_agent.cli.compare_results import rejudge, say, show_report, warn_of_programs

if TYPE_CHECKING:
    from constrained_agent.agent.runtime import Runtime
    from constrained_agent.evals.compare.items import Group
    from constrained_agent.evals.compare.records import Folder
    from constrained_agent.evals.compare.writing import Settings


@dataclass(frozen=True, slots=True)
class Flags:
    """The command line, as given."""

    model: str | None
    arms: str
    tasks: str
    calls: int
    own_calls: bool
    samples: int
    seed: int
    max_tokens: int
    temperature: float | None
    drafts: bool
    agentic: bool
    shard: str | None
    out: str | None
    resume: bool
    rejudge: str | None
    as_json: bool


@click.group(
    invoke_without_command=True,
    subcommand_metavar="| merge DIR... --out DIR",
    help="Before and after: the same prompts with and without the constraint, and how often the output parses, lands, "
    "is right, or is valid but wrong. Writes records and a report (Markdown, HTML, JSON) to --out. Shell blocks of the "
    "arm `regex` and the tests of changed code run in copies, under limits, but with your rights.",
)
@click.option("--model", metavar="NAME", help="Model card, hub id OWNER/NAME, or folder.")
@click.option(
    "--arms",
    default="off,grammar,located",
    show_default=True,
    metavar="NAME,...",
    help="Also off-json, grammar-json, located-json (patches as JSON strings), prompt-json, regex; or all.",
)
@click.option(
    "--tasks", default="all", show_default=True, metavar="all|none|NAME,...", help="Repositories to mend."
)
@click.option(
    "--calls",
    type=click.IntRange(0),
    default=100,
    show_default=True,
    metavar="N",
    help="Items of the Berkeley Function Calling Leaderboard, of 800; the first use fetches 2 MB.",
)
@click.option("--own-calls/--no-own-calls", default=True, show_default=True, help="Items that it lacks.")
@click.option(
    "--samples", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="Of each item."
)
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True)
@click.option("--max-tokens", type=click.IntRange(1), default=600, show_default=True, help="Per answer.")
@click.option("--temperature", type=click.FloatRange(0), help="0 = most likely token. Default: the card's.")
@click.option(
    "--drafts/--no-drafts",
    default=False,
    show_default=True,
    help="Guess ahead: fewer passes, but how many depends on the machine.",
)
@click.option(
    "--agentic",
    is_flag=True,
    help="Whole runs of the agent, several turns with all tools, instead of one answer; tasks alone.",
)
@click.option("--shard", metavar="K/N", help="Only the K-th of N parts, to be run on N machines and merged.")
@click.option("--out", type=click.Path(file_okay=False), metavar="DIR", help="Where records and report go.")
@click.option("--resume", is_flag=True, help="Go on with the comparison in --out.")
@click.option("--rejudge", metavar="DIR", help="Judge the records there once more, without the model.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object as the last line of stdout.")
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> int:
    if ctx.invoked_subcommand is not None:
        return 0
    flags = Flags(**given)
    if flags.rejudge is not None:
        _only_rejudged(ctx)
        return rejudge(flags.rejudge, flags.out, as_json=flags.as_json)
    return _compare(flags)


def _only_rejudged(ctx: click.Context) -> None:
    """What a comparison was made with is on record: nothing of it can be chosen again."""
    given = (name for name in ctx.params if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE)
    if others := sorted(set(given) - {"rejudge", "out", "as_json"}):
        flag = f"--{others[0].replace('_', '-')}"
        raise click.UsageError(f"{flag} says nothing to --rejudge: the records are judged as they were made")


@command.command(help="Join the folders of one comparison that was run in parts.")
@click.argument("folders", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False))
@click.option("--out", required=True, type=click.Path(file_okay=False), metavar="DIR")
@click.option("--json", "as_json", is_flag=True, help="One JSON object as the last line of stdout.")
def merge(folders: Sequence[str], out: str, as_json: bool) -> int:
    from constrained_agent.evals.compare import merging
    from constrained_agent.evals.compare.records import Folder

    into = Folder(Path(out))
    merging.merge([Folder(Path(folder)) for folder in folders], into)
    warn_of_programs(into)
    return show_report(into, as_json=as_json)


def _compare(flags: Flags) -> int:
    from constrained_agent.evals.compare.records import Folder

    if flags.out is None:
        raise click.UsageError("--out DIR is needed: where records and report go")
    folder = Folder(Path(flags.out))
    if folder.exists and not flags.resume:
        raise click.UsageError(
            f"{flags.out} holds a comparison already: --resume goes on with it; or name a new folder"
        )
    groups, n_all_items = _groups(flags)
    if folder.exists:
        folder.check_same(_asked(flags))
    from constrained_agent.cli.setup import load_runtime

    runtime = load_runtime(flags.model)  # before the imports below: they bring mlx
    from constrained_agent.cli import compare_view
    from constrained_agent.evals.compare import canary, items, lengths, running

    settings = _settings(flags, runtime)
    prepared = running.prepare(runtime, groups, settings)
    n_items = items.n_items(groups)
    facts = {
        **running.facts(runtime, settings, _asked(flags)),
        "fingerprint": running.fingerprint(prepared),
        "n_items": n_items,
        "n_all_items": n_all_items,
    }
    _begin(folder, facts)
    step_s = canary.sing(runtime)
    done = folder.load()
    if long := lengths.too_long(runtime, groups, settings.max_tokens):
        say(compare_view.too_long(long, settings.max_tokens))
    say(compare_view.estimate(prepared, done, step_s, settings.max_tokens))
    try:
        with compare_view.bar(n_items, len(done)) as advance:
            for record in running.run(runtime, prepared, settings, folder):
                advance(record)
    except KeyboardInterrupt:
        say(
            f"stopped; what is done is in {flags.out}: --resume goes on with it, and "
            f"`compare --rejudge {flags.out} --out DIR` reports of it"
        )
        return 130
    return show_report(folder, as_json=flags.as_json)


def _begin(folder: Folder, facts: dict[str, Any]) -> None:
    """Write down what is to be compared, or hold it against what was."""
    from constrained_agent.evals.compare import programs

    circumstances = _circumstances()
    if not folder.exists:
        folder.begin({**facts, "circumstances": circumstances})
        return
    folder.check_same(facts)
    programs.take_down(folder, circumstances)
    warn_of_programs(folder)


def _groups(flags: Flags) -> tuple[list[Group], int]:
    """What is to be run, and how many items all parts have; before a model is loaded: a wrong name is told at once."""
    from constrained_agent.evals.compare import arms, items, selection

    part = None if flags.shard is None else _shard(flags.shard)
    chosen = arms.parse(_names(flags.arms))
    tasks = selection.chosen_tasks(_names(flags.tasks), say)
    if flags.agentic and (old := [arm.name for arm in chosen if arm.form != "call"]):
        raise click.UsageError(f"--agentic: the arm {old[0]} has no tools, so it has no whole runs")
    calls = []
    if not flags.agentic and any(arm.name in arms.FOR_CALLS for arm in chosen):
        calls = selection.chosen_calls(flags.calls, flags.seed, say, with_own=flags.own_calls)
    groups = items.groups(tasks, calls, chosen, flags.samples, flags.seed, agentic=flags.agentic)
    if not groups:
        raise click.UsageError("there is nothing to compare: neither tasks nor calls that these arms take")
    if part is None:
        return groups, items.n_items(groups)
    if part[1] > len(groups):
        raise click.UsageError(f"--shard {flags.shard}: there are {len(groups)} parts at most")
    return items.shard(groups, *part), items.n_items(groups)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _shard(text: str) -> tuple[int, int]:
    number, _, of = text.partition("/")
    if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise click.UsageError(f"--shard {text}: K/N is needed, such as 1/2, with K from 1 to N")
    return int(number), int(of)


def _settings(flags: Flags, runtime: Runtime) -> Settings:
    from constrained_agent.decode.sampling import Sampling
    from constrained_agent.evals.compare.writing import Settings

    default = runtime.card.sampling_for(False)
    temperature = default.temperature if flags.temperature is None else flags.temperature
    return Settings(Sampling(temperature, default.top_p, default.top_k), flags.max_tokens, flags.drafts)


def _asked(flags: Flags) -> dict[str, Any]:
    from constrained_agent.evals.compare import arms

    return {
        "arms": [arm.name for arm in arms.parse(_names(flags.arms))],
        "tasks": _names(flags.tasks),
        "calls": flags.calls,
        "own_calls": flags.own_calls,
        "agentic": flags.agentic,
        "samples": flags.samples,
        "seed": flags.seed,
        "shard": flags.shard,
    }


def _circumstances() -> dict[str, Any]:
    from constrained_agent.evals.circumstances import ENGINE, of_this_command

    return of_this_command((*ENGINE, "bfcl-eval"))
