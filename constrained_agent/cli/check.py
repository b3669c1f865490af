"""`check`: where a text leaves a grammar, and what could have come instead."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from constrained_agent.cli import check_view
from constrained_agent.errors import UserError
from constrained_agent.grammar import prefix, sources

_EXIT_CODES = {"complete": 0, "invalid": 1, "prefix": 3}


@click.command(
    help="Say where a text (FILE, or standard input) leaves a grammar, and what could have come instead. "
    "Exit code 0: the text is complete, 3: the beginning of a complete one, 1: neither, 2: the call was wrong."
)
@click.argument("file", default="-")
@click.option("--grammar", metavar="NAME|FILE", help="Shipped grammar or Lark file.  [default: apply_patch]")
@click.option("--json-schema", metavar="FILE", help="The text is JSON that satisfies this schema.")
@click.option("--compact", is_flag=True, help="With --json-schema: only the decoder's whitespace.")
@click.option("--regex", metavar="R", help="The whole text matches this (Rust) regular expression.")
@click.option(
    "--all", "show_all", is_flag=True, help="List everything that is expected, not only 20 entries."
)
@click.option("--trace", is_flag=True, help="First show, for each character, how much choice there was.")
@click.option("--cross-check", is_flag=True, help="Ask the lark package too; exit 1 if it disagrees.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object as the last line.")
def command(
    file: str,
    grammar: str | None,
    json_schema: str | None,
    compact: bool,
    regex: str | None,
    show_all: bool,
    trace: bool,
    cross_check: bool,
    as_json: bool,
) -> int:
    chosen = _source(grammar, json_schema, compact, regex)
    data = _read(file)
    report = prefix.check(data, chosen, max_expected=None if show_all else prefix.MAX_EXPECTED)
    view = check_view.View(report, data)
    if trace:
        view = view.with_trace(chosen)
    if cross_check:
        view = view.with_second_opinion(chosen)
    _print(view.as_text())
    if as_json:
        click.echo(json.dumps(view.as_json()))
    return 1 if view.contradicted else _EXIT_CODES[report.status]


def _source(
    grammar: str | None, json_schema: str | None, compact: bool, regex: str | None
) -> sources.Grammar:
    given = [source for source in (grammar, json_schema, regex) if source is not None]
    if len(given) > 1:
        raise click.UsageError("give one of --grammar, --json-schema and --regex, not several")
    if compact and json_schema is None:
        raise click.UsageError("--compact goes with --json-schema")
    if json_schema is not None:
        return sources.from_json_schema_file(json_schema, compact=compact)
    if regex is not None:
        return sources.from_regex(regex)
    return sources.load(grammar if grammar is not None else "apply_patch")


def _read(file: str) -> bytes:
    """The bytes to check; the checker itself says what is wrong with them."""
    if file == "-":
        if sys.stdin.isatty():
            click.echo("reading the text from the terminal; Ctrl-D ends it", err=True)
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from None


def _print(text: str) -> None:
    """Print what may hold characters that the terminal's encoding lacks."""
    encoding = sys.stdout.encoding or "utf-8"
    click.echo(text.encode(encoding, "backslashreplace").decode(encoding))
