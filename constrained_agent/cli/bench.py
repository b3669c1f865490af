"""`bench`: speed beside plain mlx-lm, in one run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from constrained_agent.cli.setup import load_model
from constrained_agent.errors import ConstrainedAgentError, UserError
from constrained_agent.evals.contenders import ARMS, Arm

if TYPE_CHECKING:
    from constrained_agent.evals.corpus import Edit
    from constrained_agent.evals.speed import Measured, Plan
    from constrained_agent.evals.speed_arms import Models


@dataclass(frozen=True, slots=True)
class Flags:
    """The command line, as given."""

    model: str | None
    tasks: int
    edits: int
    repeats: int
    max_tokens: int
    only: tuple[str, ...]
    out: str | None
    profile: bool
    as_json: bool

    @property
    def arms(self) -> tuple[Arm, ...]:
        return tuple(arm for arm in ARMS if not self.only or arm.name in self.only)


@click.command(
    help="Speed beside plain mlx-lm: the same weights and prompts, taking turns, at each level of constraint. "
    "About ten minutes with smollm2-135m on two cores."
)
@click.option("--model", metavar="NAME", help="Model card, hub id OWNER/NAME, or folder.")
@click.option(
    "--tasks",
    type=click.IntRange(0),
    default=4,
    show_default=True,
    metavar="N",
    help="Small edits that the model writes as it likes best.",
)
@click.option(
    "--edits",
    type=click.IntRange(0),
    default=5,
    show_default=True,
    metavar="N",
    help="Real edits whose known patch it has to write. The first run fetches 28 MB.",
)
@click.option("--repeats", type=click.IntRange(1), default=2, show_default=True, metavar="N", help="Rounds.")
@click.option(
    "--max-tokens",
    type=click.IntRange(1),
    default=48,
    show_default=True,
    metavar="N",
    help="Of a small edit.",
)
@click.option(
    "--only", multiple=True, type=click.Choice([arm.name for arm in ARMS]), help="These arms. Repeatable."
)
@click.option(
    "--out", type=click.Path(file_okay=False), metavar="DIR", help="Keep bench.json and bench.md there."
)
@click.option("--profile", is_flag=True, help="Also what the parts of a step cost.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object as the last line of stdout.")
def command(**flags: Any) -> int:
    return _bench(Flags(**flags))


def _bench(flags: Flags) -> int:
    from constrained_agent.model import shapes

    out = _folder(flags.out)
    if flags.profile:
        shapes.check()
    if not (flags.tasks or flags.edits or flags.profile):
        raise click.UsageError("--tasks 0 --edits 0 leaves nothing to measure")
    edits = _corpus() if flags.edits and any(arm.taught for arm in flags.arms) else []
    models = _load(flags.model)  # before the imports below: they bring mlx

    from constrained_agent.evals import profile, speed
    from constrained_agent.evals.circumstances import load

    measured, stopped_by = speed.Measured(), None
    facts: dict[str, Any] = {"bench": "speed", "load_before": load(), "profile": None}
    plan = _plan(flags, edits)
    try:
        speed.measure(models, plan, measured, _say)
        if flags.profile:
            facts["profile"] = profile.profile(_say)
    except (KeyboardInterrupt, ConstrainedAgentError) as error:
        if not measured.passes:
            raise
        stopped_by = error  # what took minutes is reported all the same
    facts |= {"model": models.about, **asdict(plan.sizes), **_circumstances()}
    facts["stopped_by"] = stopped_by and (str(stopped_by) or "Ctrl-C")
    _report(facts, measured, out, as_json=flags.as_json)
    if isinstance(stopped_by, ConstrainedAgentError):
        raise stopped_by
    return 130 if stopped_by else 0


def _report(facts: dict[str, Any], measured: Measured, out: Path | None, *, as_json: bool) -> None:
    """Print everything, and keep it."""
    from constrained_agent.evals import profile, speed_report, speed_table

    facts["measured"] = speed_report.figures(measured)
    text = speed_table.document(facts)
    if facts["profile"]:
        text += f"\n\n## What the parts of a step cost\n\n{profile.table(facts['profile'])}"
    click.echo(text)
    if out:
        _keep(out, text, {**facts, "runs": [speed_report.run_facts(run) for run in measured.runs]})
    if as_json:
        click.echo(json.dumps(facts, ensure_ascii=False))


def _say(message: str) -> None:
    click.echo(message, err=True)


def _folder(name: str | None) -> Path | None:
    """The folder for the results, made at once: not after ten minutes.

    Raises:
        UserError: it cannot be made.
    """
    if name is None:
        return None
    folder = Path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out {name}: {error.strerror}; name a folder that can be made") from None
    return folder


def _keep(folder: Path, text: str, facts: Mapping[str, Any]) -> None:
    (folder / "bench.md").write_text(f"{text}\n", encoding="utf-8")
    written = json.dumps(facts, ensure_ascii=False, indent=1)
    (folder / "bench.json").write_text(f"{written}\n", encoding="utf-8")
    _say(f"kept in {folder}: bench.md, bench.json")


def _corpus() -> list[Edit]:
    """The real edits.

    Raises:
        UserError: they cannot be fetched.
    """
    from constrained_agent.evals import corpus

    try:
        return corpus.load(progress=_say)
    except UserError as error:
        raise UserError(f"{error}; --edits 0 does without real edits") from None


def _load(name: str | None) -> Models:
    """Resolve and load a model for both loops, saying on stderr what is loaded.

    Raises:
        ModelError: it cannot be found, fetched or loaded.
    """
    loaded = load_model(name)
    from constrained_agent.evals.speed_arms import prepared

    return prepared(loaded)


def _plan(flags: Flags, edits: list[Edit]) -> Plan:
    from constrained_agent.evals import small_edits
    from constrained_agent.evals.speed import Plan, Sizes

    tasks = tuple(small_edits.load()[: flags.tasks])
    sizes = Sizes(len(tasks), flags.edits, flags.repeats, flags.max_tokens)
    return Plan(flags.arms, tasks, tuple(edits), sizes)


def _circumstances() -> dict[str, Any]:
    from constrained_agent.evals.circumstances import ENGINE, of_this_command

    return of_this_command((*ENGINE, "numpy"))
