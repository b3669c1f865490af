"""What `check` prints: the report for a person, and the same for a program."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from constrained_agent.grammar import tokens, trace
from constrained_agent.grammar.expected import Expected
from constrained_agent.grammar.located.prefix import Tree
from constrained_agent.grammar.matcher import Vocabulary
from constrained_agent.grammar.prefix import Report
from constrained_agent.grammar.sources import Grammar
from constrained_agent.messages import ToolSpec

if TYPE_CHECKING:
    from constrained_agent.grammar.crosscheck import Opinion
    from constrained_agent.grammar.findings import Finding

_LINE_WIDTH = 100  # columns of the offending line that are shown, around the caret
_SHOWN = 300  # characters of a completion or literal that a person is shown


@dataclass(frozen=True, slots=True)
class Language:
    """What a text is checked against.

    Attributes:
        grammar: the grammar.
        specials: names of special tokens that it may use.
        tools: of a whole turn's grammar, the tools on offer.
        tree: of located patches, the files.
    """

    grammar: Grammar
    specials: tuple[str, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    tree: Tree | None = None

    @classmethod
    def of(cls, tree: Tree) -> Language:
        """The patches of files."""
        return cls(tree.grammar(), tree=tree)


@dataclass(frozen=True, slots=True)
class View:
    """A report on a text, with what else was asked for."""

    report: Report
    data: bytes
    steps: list[trace.Step] | None = None
    tokens: list[tokens.TokenStep] | None = None
    opinion: Opinion | None = None

    def with_trace(self, language: Language) -> View:
        place = self.report.valid_bytes
        steps = [
            # The grammar of located patches alone takes a path for the second time; the report does not.
            replace(step, taken=step.taken and step.byte < place)
            for step in trace.steps(self.data, language.grammar, specials=language.specials)
            if step.byte <= place
        ]
        return replace(self, steps=steps)

    def with_tokens(self, language: Language, vocabulary: Vocabulary) -> View:
        made = tokens.token_steps(self.data, language.grammar, vocabulary, specials=language.specials)
        return replace(self, tokens=made)

    def with_second_opinion(self, language: Language) -> View:
        from constrained_agent.grammar.crosscheck import second_opinion  # lark takes 0.1 s to import

        return replace(self, opinion=second_opinion(self.data, language.grammar))

    @property
    def contradicted(self) -> bool:
        """Whether the other reader disagrees on whether the text is complete."""
        return self.opinion is not None and self.opinion.contradicts(self.report.status == "complete")

    def as_json(self) -> dict[str, Any]:
        result = self.report.as_json()
        if self.steps is not None:
            result["trace"] = [asdict(step) for step in self.steps]
        if self.tokens is not None:
            result["tokens"] = [asdict(step) for step in self.tokens]
        if self.opinion is not None:
            result["cross_check"] = {**asdict(self.opinion), "contradicts": self.contradicted}
        return result

    def as_text(self) -> str:
        rows = [] if self.steps is None else [*_traced(self.steps), ""]
        if self.tokens is not None:
            rows += [*_tokenized(self.tokens), ""]
        rows += _reported(self.report, self.data)
        if self.opinion is not None:
            rows.append(f"lark:       {_compared(self.opinion, self.contradicted)}")
        return "\n".join(rows)


def linted(findings: list[Finding], name: str) -> str:
    """Findings for a person: place and message, then how it reads when mended."""
    if not findings:
        return f"{name}: nothing found"
    rows = []
    for one in findings:
        rows.append(f"{name}:{one.line}:{one.column}: {one.code}: {one.message}")
        rows += [f"    mended: {one.example}"] * bool(one.example)
    return "\n".join(rows)


def _reported(report: Report, data: bytes) -> list[str]:
    rows = [_headline(report)]
    if report.status != "complete":
        rows += ["", *_excerpt(report, data), "", f"found:      {report.found}"]
    rows += _listed("expected:", [_in_words(entry) for entry in report.expected])
    if report.n_more:
        rows.append(f"            and {report.n_more} more (--all lists them)")
    if report.status != "complete":
        rows.append(f"completion: {_completion(report.completion)}")
    if report.hint:
        rows.append(f"hint:       {report.hint}")
    return rows


def _headline(report: Report) -> str:
    place = f"line {report.line}, column {report.column} (byte {report.valid_bytes})"
    if report.status == "invalid":
        return f"invalid at {place}"
    if report.status == "prefix":
        return f"prefix: correct so far, more must follow at {place}"
    return "complete"


def _completion(text: str | None) -> str:
    if text is None:
        return "none found"
    return quoted(text) if text else "nothing is missing: the accepted part is complete"


def _excerpt(report: Report, data: bytes) -> list[str]:
    """The line that holds the place, and a caret below it."""
    before = data[: report.valid_bytes].decode("utf-8", "ignore")
    rest = data[len(before.encode()) :].split(b"\n", 1)[0].decode("utf-8", "surrogateescape")
    left = [_visible(character) for character in before[before.rfind("\n") + 1 :]]
    right = [_visible(character) for character in rest[:_LINE_WIDTH]]
    shown = left[-_LINE_WIDTH // 2 :]
    cut = "…" if len(shown) < len(left) else ""
    number = f"{report.line:5} | "
    caret = " " * (_width(number) + _width(cut + "".join(shown))) + "^"
    return [number + cut + "".join(shown) + "".join(right)[: _LINE_WIDTH // 2], caret]


def _traced(steps: list[trace.Step]) -> list[str]:
    rows = ["  byte   line:col  character     bytes allowed"]
    for step in steps:
        marks = [f"{step.n_allowed:7}"]
        marks += ["forced"] * (step.forced and step.taken)
        marks += ["could end here"] * step.could_end
        marks += ["REFUSED"] * (not step.taken)
        place = f"{step.line}:{step.column}"
        character = quoted(step.text)
        padding = " " * max(0, 12 - _width(character))
        rows.append(f"{step.byte:6} {place:>10}  {character}{padding} {'  '.join(marks)}")
    return rows


def _tokenized(steps: list[tokens.TokenStep]) -> list[str]:
    n_forced = sum(step.forced for step in steps)
    rows = [
        f"{len(steps)} tokens, {n_forced} forced",
        "  byte   line:col  token                 allowed",
    ]
    for step in steps:
        marks = [f"{step.n_allowed:7,}"]
        marks += ["forced"] * step.forced
        marks += ["could end here"] * step.could_end
        marks += ["REFUSED"] * (not step.taken)
        if not step.forced and step.examples:
            marks.append("e.g. " + " ".join(map(quoted, step.examples)))
        token = quoted(step.text)
        place = f"{step.line}:{step.column}"
        rows.append(
            f"{step.byte:6} {place:>10}  {token}{' ' * max(0, 20 - _width(token))} {'  '.join(marks)}"
        )
    return rows


def _compared(opinion: Opinion, contradicted: bool) -> str:
    if opinion.parser is None:
        return f"has no opinion: {opinion.reason}"
    said = "accepts the text" if opinion.accepts else f"refuses the text: {opinion.reason}"
    return f"{'DISAGREES, it ' if contradicted else 'agrees, it '}{said} ({opinion.parser} parser)"


def _listed(title: str, entries: list[str]) -> list[str]:
    """Entries one below the other, the title beside the first."""
    return [f"{title if row == 0 else '':12}{entry}" for row, entry in enumerate(entries)]


def _in_words(entry: Expected) -> str:
    if entry.kind != "literal":
        return "".join(map(_visible, entry.text))
    return "newline" if entry.text == "\n" else quoted(entry.text)


def quoted(text: str) -> str:
    """Text on one line, in quotes; long text is cut in the middle."""
    if len(text) > _SHOWN:
        text = f"{text[: _SHOWN // 2]} … {len(text) - _SHOWN:,} more … {text[-_SHOWN // 2 :]}"
    return "".join(map(_visible, json.dumps(text, ensure_ascii=False)))


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    if "\udc80" <= character <= "\udcff":  # stands for a byte
        return f"\\x{ord(character) - 0xDC00:02x}"
    return "  " if character == "\t" else ascii(character)[1:-1]


def _width(text: str) -> int:
    """Terminal columns: wide characters take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(character) else 1 + (unicodedata.east_asian_width(character) in "WF")
        for character in text
    )
