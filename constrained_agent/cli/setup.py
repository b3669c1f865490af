"""What `run` and `generate` share: the model options, and turning them into a runtime and settings."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from constrained_agent.agent.runtime import Runtime
    from constrained_agent.decode.sampling import Sampling
    from constrained_agent.model.cards import Card

F = TypeVar("F", bound=Callable[..., Any])

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
    click.option("--json", "as_json", is_flag=True, help="One JSON object as the last line of stdout."),
)


def model_options(function: F) -> F:
    """Add the options of model and sampling to a command."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def load_runtime(name: str | None) -> Runtime:
    """Resolve and load a model, saying on stderr what is loaded.

    Call it before anything imports mlx: a fast BLAS has to be there first.

    Raises:
        ModelError: it cannot be found, fetched or loaded.
    """
    from constrained_agent.cli import view
    from constrained_agent.model import cards, fetch, weights

    card = cards.resolve(name or cards.default_name())
    weights.check_memory(card, card.memory_bytes)  # before a download that would be for nothing
    # Downloads bring progress bars of their own, so they come before ours.
    fetch.fetch(card, progress=lambda message: click.echo(message, err=True))
    with view.status(f"loading {card.name}") as progress:
        loaded = weights.load(card, progress=progress)
        from constrained_agent.agent.runtime import Runtime

        return Runtime(loaded)


def sampling(
    card: Card,
    *,
    thinking: bool,
    seed: int,
    temperature: float | None,
    top_p: float | None,
    top_k: int | None,
) -> Sampling:
    """The card's sampling defaults with the flags that were given in their place."""
    from constrained_agent.decode.sampling import Sampling

    if temperature is not None and not math.isfinite(temperature):
        raise click.UsageError(f"--temperature {temperature}: a number is needed, 0 or above")
    if top_p is not None and not math.isfinite(top_p):
        raise click.UsageError(f"--top-p {top_p}: a number above 0 and at most 1 is needed")
    default = card.sampling_for(thinking)
    return Sampling(
        temperature=default.temperature if temperature is None else temperature,
        top_p=default.top_p if top_p is None else top_p,
        top_k=default.top_k if top_k is None else top_k,
        seed=seed,
    )
