"""What the report of a comparison shows."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from constrained_agent.evals import tasks
from constrained_agent.evals.compare import page, questions, report, table
from constrained_agent.evals.compare.figures import figures
from tests.compared import CALL
from tests.kept import FACTS, ODD, random_records, record

WEIRD = {
    "no records": [],
    "one record": [record()],
    "one arm": [record("a", "regex"), record("b", "regex", outcome="passed")],
    "nothing solved, no token": [
        replace(record("a", arm), written=replace(record().written, tokens=0, model_steps=0, forced_tokens=0))
        for arm in ("off", "grammar")
    ],
    "all kinds": [
        record("a", arm, kind=kind) for arm in ("off", "grammar") for kind in ("patch", "call", "run")
    ],
    "many": random_records(150),
}


@pytest.mark.parametrize("name", WEIRD)
def test_reports_of_weird_records(tmp_path, name):
    records = WEIRD[name]
    facts, text = report.write(tmp_path, {**FACTS, "n_items": len(records)}, records)
    assert facts["n_records"] == len(records)
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8")) == json.loads(json.dumps(facts))
    assert (tmp_path / "report.md").read_text(encoding="utf-8") == text
    tables = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    assert all(len({line.count("|") for line in one.splitlines()}) == 1 for one in tables)
    shown = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert shown.open == []
    assert len(shown.texts) == len(records)
    assert shown.tags.count("table") == len(tables)


CALLS = [
    record("a", "off", kind="call", outcome="schema_violated", saved="passed", message="1 is no string"),
    record("own_windows_path", "off", kind="call", outcome="tests_failed", of_set="own"),
    record(
        "a",
        "grammar",
        kind="call",
        outcome="tests_failed",
        error_kind="wrong_value",
        of_set="multiple",
        message="expected 2",
    ),
    record("own_windows_path", "grammar", kind="call", outcome="passed", of_set="own"),
]


def shown_of(records, facts=FACTS):
    """Markdown, and the words of the page without its marks."""
    found = figures(records)
    asked = questions.at_hand(records)
    html = page.render({**facts, "n_items": len(records)}, found, records, asked)
    return table.document(facts, found).replace("`", "").replace("**", ""), Page(html).words


@pytest.mark.parametrize("at", [0, 1], ids=["markdown", "page"])
def test_what_a_reader_is_told(at):
    records = [
        *CALLS,
        record("a", "regex", outcome="passed"),
        record("b", "regex"),
        record("a", "located", outcome="passed"),
        record("b", "located", outcome="passed"),
        record("a", "off", outcome="patch_unparsable", error_kind="bad_line", saved="passed"),
        record("b", "off", outcome="cut", parses=True),
    ]
    text = shown_of(records)[at]
    for told in (
        "Wilson's where each item was asked once",
        "exact McNemar test on pairs where each item was asked once",
        "exact sign test of items",
        "Primary comparison, named before anything was run: located - off, is right: +100 (all items differ alike), in "
        "percentage points; of 2 items 2 gained and 0 lost, p 0.500.",
        "Primary comparison, named before anything was run: grammar - off, is right: +50 (0 to +100)",
        "those p values are not corrected",
        "unreadable 0 of 2, schema violated 0 of 2, file or lines not found 0 of 2, ambiguous 0 of 2",
        "failed answers, read as leniently as can be (every patch in the text): passed 1",
        "failed answers, read as leniently as can be (equal calls once, by the leaderboard's check alone, without the "
        "schema): passed 1",
        "wrong call: wrong_value 1",
        "load 0.5 at the start",
        "patch_unparsable: bad_line 1",
        "located - regex",
        "wrong call",
        "ended early",
        "not recorded",
        "steps / solved",
        "a call with the patch raw behind it; held to its syntax, and to lines of the real files",
        "cut out of the answer by a regular expression and run (here on Linux",
        "calls of tools; held to its syntax",
    ):
        assert told in text


def test_a_primary_comparison_that_was_not_run_is_told():
    assert "located - off, is right: not run." in shown_of([record("a", "grammar")])[0]


def test_rates_in_which_no_pair_differs_share_a_row():
    records = [record("a", arm, outcome="passed") for arm in ("off", "grammar")]
    text, _ = shown_of(records)
    labels = "parses; lands; is right; right, read leniently; valid but wrong"
    assert f"| grammar - off | {labels} | 1 | 1 | 0 (no pair differs) |" in text


def test_the_server_is_told_of_where_it_applies():
    asked = [
        replace(
            CALLS[0], judgement=replace(CALLS[0].judgement, server={"calls": 3, "dropped": 2, "broken": 1})
        )
    ]
    for text in shown_of(asked):
        assert "3 marked calls, 2 dropped without an error to the client, 1 without arguments" in text
        assert "not applicable" not in text
    as_text = {**FACTS, "markers": {"are_tokens": False, "thinks": False}}
    for text in shown_of(CALLS, as_text):
        assert "not applicable" in text
        assert "marked calls" not in text
    for text in shown_of([record("a", "off-json"), record("a", "grammar")], as_text):
        assert text.count("not applicable") == 1
    assert "not applicable" not in shown_of([record("a", "grammar", kind="call")], as_text)[0]


def test_questions_and_what_was_wrong_stand_with_the_items():
    records = [record("dateparse", "off"), *CALLS]
    _, words = shown_of(records)
    assert tasks.load("dateparse").instruction.split("\n")[0] in words
    assert CALL.prompt.split("\n")[0] in words
    assert "1 is no string\nRead as leniently as can be: passed." in words
    assert "expected 2" in words
    assert "Asked" not in Page(page.render(FACTS, figures(records), records)).words


def test_questions_that_are_not_to_be_had_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setenv("CONSTRAINED_AGENT_CACHE", str(tmp_path))
    records = [record("gone"), *CALLS, record("multiple_1", kind="call", of_set="multiple")]
    assert questions.at_hand(records) == {("call", CALL.id): CALL.prompt}
    assert not list(tmp_path.iterdir()), "nothing is fetched"


class Page(HTMLParser):
    """A page as a browser takes it: its elements, and the text of each record."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.open, self.texts, self.attributes, self.words = [], [], [], [], ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "br", "input", "link"):
            self.open.append(tag)
        if tag == "pre":
            self.texts.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        if "style" not in self.open and "script" not in self.open:
            self.words += data
        if "pre" in self.open:
            self.texts[-1] += data


ATTACK = "</pre></details><script>alert(1)</script><img src=x onerror=alert(1)>\" onclick='x' &lt; {{ 7*7 }} {% raw %}"


def test_no_text_becomes_part_of_the_page():
    harmless = record(message="", pieces=["text"], outcome="patch_unparsable", saved="no_change")
    one = replace(
        record(ATTACK, message=ATTACK, pieces=[ATTACK], outcome="patch_unparsable", saved="no_change", at=5),
        written=replace(record(pieces=[ATTACK]).written, forced=((0, 3), (5, len(ATTACK)))),
    )
    facts = {**FACTS, "model": ATTACK, "circumstances": {**FACTS["circumstances"], "command": ATTACK}}
    shown = Page(page.render(facts, figures([one]), [one]))
    plain = Page(page.render(FACTS, figures([harmless]), [harmless]))
    assert shown.texts == [ATTACK]
    assert set(shown.tags) - {"p"} == set(plain.tags) - {"p"}
    assert shown.tags.count("script") == plain.tags.count("script") == 1
    assert not [name for name, _ in shown.attributes if name.startswith("on")]
    assert ("data-name", ATTACK) in shown.attributes


@pytest.mark.parametrize("text", ["", "x", "line\n", *ODD])
@pytest.mark.parametrize("forced", [(), ((0, 1),), ((0, 2), (2, 4)), ((1, 3),), ((0, 10_000),)])
def test_the_text_is_shown_whole_with_its_place(text, forced):
    for at in (None, 0, 1, len(text) - 1, len(text), len(text) + 5):
        if at is not None and at < 0:
            continue
        one = record(pieces=[text], at=at)
        one = replace(one, written=replace(one.written, forced=forced))
        found = list(page.spans(one))
        assert "".join(part for part, _ in found) == page.visible(text)
        bad = [part for part, classes in found if "bad" in classes.split()]
        assert bad == ([page.visible(text[at])] if at is not None and at < len(text) else [])
        assert [classes for _, classes in found].count("end") == (at is not None and at >= len(text))


@pytest.mark.parametrize("text", ODD)
def test_pages_can_be_written_whatever_was_said(tmp_path, text):
    one = record(pieces=[text], at=len(text))
    report.write(tmp_path, FACTS, [one])
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "\0" not in html
    assert "\x1b" not in html
    assert 'class="end"' in html
