"""`check`: where a text leaves a grammar, and what could have come instead."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from constrained_agent.cli import check_view, tools_file
from constrained_agent.cli.check_view import Language
from constrained_agent.cli.setup import one_at_most
from constrained_agent.errors import GrammarError, UserError
from constrained_agent.grammar import prefix, sources
from constrained_agent.grammar.located import prefix as located_prefix
from constrained_agent.grammar.toolcalls import Markers, turn_grammar

if TYPE_CHECKING:
    from constrained_agent.cli.check_root import Root
    from constrained_agent.model.cards import Card
    from constrained_agent.model.tokenizer import Tokenizer

_EXIT_CODES = {"complete": 0, "invalid": 1, "prefix": 3}


@dataclass(frozen=True, slots=True)
class Flags:
    """The command line, as given."""

    file: str
    grammar: str | None
    json_schema: str | None
    compact: bool
    regex: str | None
    tools: str | None
    root: str | None
    tool_choice: str | None
    markers: str | None
    think: bool
    show_all: bool
    trace: bool
    cross_check: bool
    lint: bool
    tokens: bool
    model: str | None
    html: str | None
    as_json: bool


@click.command(
    help="Say where a text (FILE, or standard input) leaves a grammar, and what could have come instead. "
    "Exit code 0: the text is complete, 3: the beginning of a complete one, 1: neither, 2: the call was wrong."
)
@click.argument("file", default="-")
@click.option("--grammar", metavar="NAME|FILE", help="Shipped grammar or Lark file.  [default: apply_patch]")
@click.option("--json-schema", metavar="FILE", help="The text is JSON that satisfies this schema.")
@click.option("--compact", is_flag=True, help="With --json-schema: only the decoder's whitespace.")
@click.option("--regex", metavar="R", help="The whole text matches this (Rust) regular expression.")
@click.option("--tools", metavar="FILE", help="The text is a model's answer with these tools (a JSON list).")
@click.option(
    "--root",
    metavar="DIR",
    help="The text is a patch of files under DIR: its old lines are theirs, and each hunk fits one place.",
)
@click.option("--tool-choice", metavar="CHOICE", help="auto (default), none, required, or a tool's name.")
@click.option(
    "--markers",
    type=click.Choice(["token", "text"]),
    help="With --tools: <tool_call> is one token, or text.  [default: as the model has it, else token]",
)
@click.option("--think", is_flag=True, help="With --tools: the answer starts with a thinking block.")
@click.option(
    "--all", "show_all", is_flag=True, help="List everything that is expected, not only 20 entries."
)
@click.option("--trace", is_flag=True, help="First show, for each character, how much choice there was.")
@click.option("--cross-check", is_flag=True, help="Ask the lark package too; exit 1 if it disagrees.")
@click.option(
    "--lint", is_flag=True, help="Look for faults and traps in the grammar itself; no text is read."
)
@click.option(
    "--tokens", is_flag=True, help="First show the tokens of a model, and how many were allowed at each."
)
@click.option(
    "--model", metavar="NAME", help="With --tokens: card, hub id or folder; its weights are not loaded."
)
@click.option(
    "--html", metavar="OUT", help="Also write a page: the text coloured, what was expected on hover."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object as the last line.")
def command(**flags: Any) -> int:
    return _check(Flags(**flags))


def _check(flags: Flags) -> int:
    card, vocabulary = _model(flags) if flags.tokens else (None, None)
    root = _root(flags)
    language = _language(flags, card.markers if card else "token")
    if flags.lint:
        return _lint(flags, language)
    data = _read(flags.file)
    if root is not None:
        language = Language.of(root.tree(data))
    view = check_view.View(_report(flags, language, data), data)
    if vocabulary is not None:
        view = view.with_tokens(language, vocabulary)
    if flags.trace:
        view = view.with_trace(language)
    if flags.cross_check:
        view = view.with_second_opinion(language)
    if flags.html is not None:
        _write_page(flags.html, data, language, view.report)
    _print(view.as_text())
    if flags.as_json:
        click.echo(json.dumps(view.as_json()))
    return 1 if view.contradicted else _EXIT_CODES[view.report.status]


def _root(flags: Flags) -> Root | None:
    """The folder whose files a text is held to; refuses contradictory flags."""
    if flags.root is None:
        return None
    others = {
        "--grammar": flags.grammar,
        "--json-schema": flags.json_schema,
        "--regex": flags.regex,
        "--tools": flags.tools,
        "--lint": flags.lint or None,
    }
    for name, value in others.items():
        if value is not None:
            raise click.UsageError(
                f"--root does not go with {name}: it holds patches to the files of a folder"
            )
    from constrained_agent.cli.check_root import Root

    return Root(flags.root)


def _model(flags: Flags) -> tuple[Card, Tokenizer]:
    """Card and tokenizer of the model that was named; says on stderr what is fetched."""
    from constrained_agent.model import cards, weights

    card = cards.resolve(flags.model or cards.default_name())
    return weights.load_tokenizer(card, progress=lambda message: click.echo(message, err=True))


def _write_page(file: str, data: bytes, language: Language, report: prefix.Report) -> None:
    from constrained_agent.grammar import page

    text = page.rendered(data, language.grammar, report, specials=language.specials)
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{file}: cannot be written: {error.strerror}") from None


def _lint(flags: Flags, language: Language) -> int:
    if flags.file != "-" or any((flags.trace, flags.cross_check, flags.show_all, flags.tokens, flags.html)):
        raise click.UsageError("--lint looks at the grammar alone: it goes with neither FILE nor other views")
    from constrained_agent.grammar.lint import lint

    tools_file.raise_for_schema_at_fault(language.tools)
    findings = lint(language.grammar, language.specials)
    _print(check_view.linted(findings, language.grammar.name))
    if flags.as_json:
        click.echo(json.dumps({"ok": not findings, "findings": [asdict(one) for one in findings]}))
    return 1 if findings else 0


def _report(flags: Flags, language: Language, data: bytes) -> prefix.Report:
    max_expected = None if flags.show_all else prefix.MAX_EXPECTED
    if language.tree is not None:
        return located_prefix.check(data, language.tree, max_expected=max_expected)
    try:
        return prefix.check(data, language.grammar, specials=language.specials, max_expected=max_expected)
    except GrammarError:
        tools_file.raise_for_schema_at_fault(language.tools)
        raise


def _language(flags: Flags, markers: str) -> Language:
    """What the text is checked against; refuses contradictory flags. `markers`: how the model has them."""
    sources_given = {
        "--grammar": flags.grammar,
        "--json-schema": flags.json_schema,
        "--regex": flags.regex,
        "--tools": flags.tools,
    }
    one_at_most(sources_given, "language")
    if flags.compact and flags.json_schema is None:
        raise click.UsageError("--compact goes with --json-schema")
    if flags.model is not None and not flags.tokens:
        raise click.UsageError("--model goes with --tokens: nothing else of check needs a model")
    if flags.tools is not None:
        return _turn(flags, flags.tools, flags.markers or markers)
    for name, value in (("--tool-choice", flags.tool_choice), ("--markers", flags.markers)):
        if value is not None:
            raise click.UsageError(f"{name} goes with --tools")
    if flags.think:
        raise click.UsageError("--think goes with --tools: thinking is part of a whole answer only")
    if flags.json_schema is not None:
        return Language(sources.from_json_schema_file(flags.json_schema, compact=flags.compact))
    if flags.regex is not None:
        return Language(sources.from_regex(flags.regex))
    return Language(sources.load(flags.grammar if flags.grammar is not None else "apply_patch"))


def _turn(flags: Flags, file: str, kind: str) -> Language:
    """A whole answer: the grammar that the decoder would be masked with."""
    are_tokens = kind == "token"
    if flags.think and not are_tokens:
        raise click.UsageError("--think goes with marker tokens, not with --markers text")
    markers = Markers(are_tokens, thinks=are_tokens)
    tools = tools_file.read(file)
    grammar = turn_grammar(tools, flags.tool_choice or "auto", markers, thinking=flags.think)
    words = (markers.call_open, markers.call_close, markers.think_open, markers.think_close)
    return Language(grammar, words if are_tokens else (), tuple(tools))


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
