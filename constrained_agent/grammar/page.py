"""A checked text as one self-contained HTML page: coloured by state, the expectation at each place on hover."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from constrained_agent.grammar import trace
from constrained_agent.grammar.characters import describe
from constrained_agent.grammar.cursor import Cursor
from constrained_agent.grammar.expected import Expected, expected_next
from constrained_agent.grammar.matcher import Matcher
from constrained_agent.grammar.prefix import Report
from constrained_agent.grammar.sources import Grammar
from constrained_agent.grammar.walk import byte_matcher, guarded

_FRAME = Path(__file__).with_name("page.html")
_FIELD = re.compile(r"@@(\w+)@@")

# Characters before the place that are shown one by one; each costs 0.1 to 5 ms and 100 bytes of page.
MAX_CHARACTERS = 4_000
_MAX_TAIL = 2_000  # characters shown after the place: of the text, or of the completion
_MAX_ENTRIES = 20


@dataclass(frozen=True, slots=True)
class _Place:
    """One character, or the end of the text."""

    step: trace.Step | None
    expected: tuple[str, ...]


def rendered(data: bytes, grammar: Grammar, report: Report, *, specials: Sequence[str] = ()) -> str:
    """The page.

    Args:
        data: the text.
        grammar: what it was checked against.
        report: what the checker said of it.
        specials: names of special tokens, as for the checker.

    Raises:
        GrammarError: the grammar does not compile.
        UserError: it takes too much time or memory.
    """
    steps = trace.steps(data, grammar, specials=specials)
    places = guarded(lambda: list(_places(steps, grammar, specials)), grammar, len(data))
    last = places[-1].step
    n_shown = (
        report.valid_bytes if last is None else last.byte + len(last.text.encode("utf-8", "surrogateescape"))
    )
    rest = data[n_shown:].decode("utf-8", "surrogateescape")
    return _filled(
        title=html.escape(f"{report.status} · {grammar.name}"),
        grammar=html.escape(grammar.name),
        status=report.status,
        summary=html.escape(_summary(report)),
        note=_note(len(steps)),
        text=_text(places, report, rest),
        first=str((places[0].step.line if places[0].step else report.line) - 1),
        data=_data(places),
    )


def _places(steps: Sequence[trace.Step], grammar: Grammar, specials: Sequence[str]) -> Iterator[_Place]:
    matcher = byte_matcher(grammar, specials)
    for position, step in enumerate(steps):
        if position >= len(steps) - MAX_CHARACTERS:
            yield _Place(step, _expected(matcher, specials))
        if not step.taken:
            return
        _consume(matcher, step.text, specials)
    yield _Place(None, _expected(matcher, specials))


def _consume(matcher: Matcher, text: str, specials: Sequence[str]) -> None:
    if text in specials and matcher.accepted_prefix([256 + specials.index(text)]):
        matcher.consume([256 + specials.index(text)])
    else:
        matcher.consume(text.encode("utf-8", "surrogateescape"))


def _expected(matcher: Matcher, specials: Sequence[str]) -> tuple[str, ...]:
    entries = expected_next(Cursor(matcher), specials)
    words = [_in_words(entry) for entry in entries[:_MAX_ENTRIES]]
    return (
        (*words, f"and {len(entries) - _MAX_ENTRIES} more") if len(entries) > _MAX_ENTRIES else tuple(words)
    )


def _in_words(entry: Expected) -> str:
    if entry.kind != "literal":
        return entry.text
    return describe(entry.text) if len(entry.text) == 1 else json.dumps(entry.text, ensure_ascii=False)


def _summary(report: Report) -> str:
    place = f"line {report.line}, column {report.column} (byte {report.valid_bytes})"
    if report.status == "complete":
        words = "The text is complete."
    elif report.status == "prefix":
        words = f"Correct so far; more must follow at {place}."
    else:
        words = f"Refused at {place}: found {report.found}."
        if report.completion:
            instead = json.dumps(report.completion[:_MAX_TAIL], ensure_ascii=False)
            words += f" The shortest completion instead: {instead}."
    return " ".join([words, *([report.hint[:1].upper() + report.hint[1:] + "."] if report.hint else [])])


def _note(n_steps: int) -> str:
    if n_steps <= MAX_CHARACTERS:
        return ""
    return f"The text is long: shown are the last {MAX_CHARACTERS:,} of the {n_steps:,} characters that were read."


def _text(places: Sequence[_Place], report: Report, rest: str) -> str:
    """The lines of the text as HTML, one span per character, numbered by its index."""
    lines = [""]
    for index, place in enumerate(places):
        lines[-1] += _span(index, place)
        if place.step is not None and place.step.text == "\n":
            lines.append("")
    kind, tail = ("ghost", report.completion or "") if report.status == "prefix" else ("rest", rest)
    kept = tail[:_MAX_TAIL] + "…" * (len(tail) > _MAX_TAIL)
    parts = [f'<span class="{kind}">{_escaped(part)}</span>' if part else "" for part in kept.split("\n")]
    lines = [*lines[:-1], lines[-1] + parts[0], *parts[1:]]
    return "".join(f"<li>{line or ' '}</li>" for line in lines)


def _span(index: int, place: _Place) -> str:
    step = place.step
    if step is None:
        return f'<b data-i="{index}" class="here" tabindex="0">▏</b>'
    kind = "refused" if not step.taken else "forced" if step.forced else "free"
    kind += " end" if step.could_end else ""
    shown = "⏎" if step.text == "\n" else _escaped(step.text)
    kind += " mark" if step.text == "\n" else ""
    return f'<b data-i="{index}" class="{kind}">{shown}</b>'


def _escaped(text: str) -> str:
    """Text for HTML; what cannot be seen by its number."""
    shown = []
    for character in text:
        if "\udc80" <= character <= "\udcff":
            shown.append(f"\\x{ord(character) - 0xDC00:02x}")
        else:
            visible = character.isprintable() or character in "\t\n"
            shown.append(html.escape(character) if visible else ascii(character)[1:-1])
    return "".join(shown)


def _data(places: Sequence[_Place]) -> str:
    """What the page's script shows: each place with the number of its list of expectations."""
    known: dict[tuple[str, ...], int] = {}
    rows = []
    for place in places:
        number = known.setdefault(place.expected, len(known))
        if place.step is None:
            rows.append(["end of text", number])
        else:
            step = place.step
            rows.append([f"line {step.line}, column {step.column}, byte {step.byte}", number, step.n_allowed])
    made = json.dumps({"places": rows, "expected": [list(entries) for entries in known]}, ensure_ascii=True)
    return made.replace("<", "\\u003c")  # nothing in it may end the script


def _filled(**fields: str) -> str:
    """The page's frame with its fields; one pass, since a text may hold what looks like a field."""
    return _FIELD.sub(lambda found: fields[found[1]], _FRAME.read_text(encoding="utf-8"))
