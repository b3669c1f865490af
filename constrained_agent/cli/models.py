"""`models`: list the model cards, show one, fetch one's weights, look at what was kept of prompts."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import click

from constrained_agent.errors import UserError
from constrained_agent.model import cards, fetch, prefixes
from constrained_agent.model.cards import Card, FolderSource

_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object as the last line.")


@click.group(invoke_without_command=True, help="List, fetch or show model cards. Without a subcommand: list.")
@_JSON
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    # `models --json show NAME` means what `models show NAME --json` means.
    context.default_map = {name: {"as_json": as_json} for name in ("list", "show", "fetch", "prefixes")}
    if context.invoked_subcommand is None:
        context.invoke(list_cards, as_json=as_json)


@command.command("list", help="All cards; * marks the default.")
@_JSON
def list_cards(as_json: bool) -> None:
    smallest_first = sorted(map(cards.load, cards.names()), key=lambda card: card.memory_bytes)
    found = [_facts(card) for card in smallest_first]
    if as_json:
        click.echo(json.dumps({"models": found}))
        return
    for facts in found:
        mark = "*" if facts["default"] else " "
        here = "here" if facts["path"] else _gigabytes(facts["download_bytes"])
        click.echo(
            f"{mark} {facts['name']:<16} {here:>8}  needs {_gigabytes(facts['memory_bytes'])}  {facts['title']}"
        )
    click.echo("--model also takes a hub id (owner/name) or a folder.", err=True)


@command.command(help="What is known of a model: NAME is a card, a hub id or a folder.")
@click.argument("name")
@_JSON
def show(name: str, as_json: bool) -> None:
    facts = _facts(cards.resolve(name))
    if as_json:
        click.echo(json.dumps(facts))
        return
    width = max(map(len, facts))
    for key, value in facts.items():
        click.echo(f"{key:<{width}}  {_readable(key, value)}")


@command.command("fetch", help="Download a model: NAME is a card or a hub id. Prints where it lies.")
@click.argument("name")
@click.option("--force", is_flag=True, help="Even if it is here already.")
@_JSON
def fetch_weights(name: str, force: bool, as_json: bool) -> None:
    card = cards.resolve(name)
    if isinstance(card.source, FolderSource):
        raise UserError(f"{name} is a folder on this disk: there is nothing to fetch")
    path = fetch.fetch(card, force=force, progress=lambda text: click.echo(text, err=True))
    click.echo(json.dumps({"name": card.name, "path": str(path)}) if as_json else path)


@command.command(
    "prefixes", help="What is kept of beginnings of prompts, so that they need not be run again."
)
@click.option("--clear", is_flag=True, help="Remove it.")
@_JSON
def kept_prefixes(clear: bool, as_json: bool) -> None:
    folder = prefixes.directory()
    if clear:
        try:
            prefixes.clear()
        except OSError as error:
            raise UserError(f"cannot empty {folder}: {error}") from error
    files = prefixes.saved()
    if as_json:
        listed = [{"path": str(file.path), "bytes": file.n_bytes, "used": file.used} for file in files]
        click.echo(json.dumps({"folder": folder and str(folder), "files": listed}))
    elif folder is None:
        click.echo("nothing is kept: CONSTRAINED_AGENT_PREFIXES=none")
    else:
        n_bytes = sum(file.n_bytes for file in files)
        click.echo(f"{folder}: files: {len(files)}, {n_bytes / 1e6:.0f} MB")


def _facts(card: Card) -> dict[str, Any]:
    path = fetch.local_path(card)
    return {
        "name": card.name,
        "title": card.title,
        "default": card.name == cards.default_name(),
        "source": str(card.source),
        "path": None if path is None else str(path),
        "license": card.license,
        "download_bytes": card.download_bytes or None,
        "memory_bytes": card.memory_bytes or None,
        "context_length": card.context_length or None,
        "dialect": card.dialect,
        "markers": card.markers,
        "prompt": card.prompt,
        "end_tokens": list(card.end_tokens),
        "thinking": None if card.thinking is None else dataclasses.asdict(card.thinking),
        "sampling": dataclasses.asdict(card.sampling),
        "sampling_thinking": card.sampling_thinking and dataclasses.asdict(card.sampling_thinking),
    }


def _readable(key: str, value: Any) -> str:
    if value is None or value == []:
        return (
            "not here" if key == "path" else "none" if "thinking" in key else "known once the files are here"
        )
    if key.endswith("_bytes"):
        return _gigabytes(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name} {item}" for name, item in value.items())
    return ", ".join(value) if isinstance(value, list) else str(value)


def _gigabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB"
