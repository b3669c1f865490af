"""What commands share: the model options and what they are turned into, and options that exclude each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from constrained_agent.errors import UserError
from constrained_agent.grammar.patches import MAX_ADDED_LINES

if TYPE_CHECKING:
    from constrained_agent.agent.runtime import Runtime
    from constrained_agent.decode.sampling import Sampling
    from constrained_agent.model.cards import Card
    from constrained_agent.model.weights import LoadedModel

F = TypeVar("F", bound=Callable[..., Any])

max_added_lines_option = click.option(
    "--max-added-lines",
    type=click.IntRange(1, 4_095),
    default=MAX_ADDED_LINES,
    show_default=True,
    metavar="N",
    help="Added lines that may follow each other in a patch.",
)

_OPTIONS = (
    click.option("--model", metavar="NAME", help="Model card, hub id OWNER/NAME, or folder."),
    click.option("--max-tokens", type=click.IntRange(1), default=2048, show_default=True, help="Per answer."),
    click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True),
    click.option(
        "--temperature", type=click.FloatRange(0), help="0 = most likely token. Default: the card's."
    ),
    click.option("--top-p", type=click.FloatRange(0, 1, min_open=True), help="Default: the card's."),
    click.option("--top-k", type=click.IntRange(0), help="0 = off. Default: the card's."),
    click.option("--think/--no-think", default=False, show_default=True, help="Let the model think first."),
    click.option(
        "--drafts/--no-drafts",
        default=True,
        show_default=True,
        help="Guess ahead from files and the text so far: the same text in fewer passes.",
    ),
    click.option(
        "--draft-model", metavar="NAME", help="A smaller model of the same family that guesses, too."
    ),
    click.option(
        "--think-budget", type=click.IntRange(1), metavar="N", help="Tokens of thinking. Default: half."
    ),
    click.option("--json", "as_json", is_flag=True, help="One JSON object as the last line of stdout."),
)


@dataclass(frozen=True, slots=True)
class ModelFlags:
    """What `model_options` adds to a command line, as given."""

    model: str | None
    max_tokens: int
    seed: int
    temperature: float | None
    top_p: float | None
    top_k: int | None
    drafts: bool
    draft_model: str | None
    think: bool
    think_budget: int | None
    as_json: bool


def model_options(function: F) -> F:
    """Add the options of model and sampling to a command."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def check_model_flags(flags: ModelFlags) -> None:
    """Refuse what makes no sense.

    Raises:
        click.UsageError: two of them contradict each other.
    """
    if flags.draft_model is not None and not flags.drafts:
        raise click.UsageError("--draft-model and --no-drafts contradict each other")


def load_runtime(name: str | None, draft: str | None = None) -> Runtime:
    """Resolve and load a model, and one that guesses for it, saying on stderr what is loaded.

    Call it before anything imports mlx: a fast BLAS has to be there first.

    Raises:
        ModelError: one of them cannot be found, fetched or loaded, or they do not fit each other.
    """
    loaded = load_model(name)
    from constrained_agent.agent.runtime import Runtime
    from constrained_agent.cli import view

    with view.status(f"preparing {loaded.card.name}"):
        runtime = Runtime(loaded)
    if draft is not None:
        runtime.add_draft_model(load_model(draft))
    return runtime


def load_model(name: str | None) -> LoadedModel:
    """Resolve, fetch and load a model, saying on stderr what is loaded.

    Raises:
        ModelError: it cannot be found, fetched or loaded.
    """
    from constrained_agent.cli import view
    from constrained_agent.model import cards, fetch, weights

    if name is not None and not name.strip():
        raise UserError(
            "--model is empty: name a model (constrained-agent models lists them), or leave it out"
        )
    card = cards.resolve(name or cards.default_name())
    weights.check_memory(card, card.memory_bytes)  # before a download that would be for nothing
    # Downloads bring progress bars of their own, so they come before ours.
    fetch.fetch(card, progress=lambda message: click.echo(message, err=True))
    with view.status(f"loading {card.name}") as progress:
        return weights.load(card, progress=progress)


def sampling(card: Card, flags: ModelFlags) -> Sampling:
    """The card's sampling defaults with the flags that were given in their place."""
    from constrained_agent.decode.sampling import Sampling

    for name, value in (("--temperature", flags.temperature), ("--top-p", flags.top_p)):
        if value is not None and not math.isfinite(value):
            raise click.UsageError(f"{name} {value}: a finite number is needed")
    if flags.think and flags.temperature == 0:
        click.echo("warning: thinking at temperature 0 tends to repeat itself until its limit", err=True)
    default = card.sampling_for(flags.think)
    return Sampling(
        temperature=default.temperature if flags.temperature is None else flags.temperature,
        top_p=default.top_p if flags.top_p is None else flags.top_p,
        top_k=default.top_k if flags.top_k is None else flags.top_k,
        seed=flags.seed,
    )


def one_at_most(options: Mapping[str, object], what: str) -> list[str]:
    """The options that were given (not None), of which there may be one.

    Raises:
        click.UsageError: there are more.
    """
    given = [name for name, value in options.items() if value is not None]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} contradict each other: one {what} at a time")
    return given
