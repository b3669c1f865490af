"""What a comparison keeps, joins, counts and shows."""

import json
import math
import os
import random
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from constrained_agent.errors import UserError
from constrained_agent.evals import tasks
from constrained_agent.evals.calls import own
from constrained_agent.evals.compare import (
    arms,
    items,
    merging,
    page,
    rejudging,
    report,
    selection,
    statistics,
    table,
)
from constrained_agent.evals.compare.figures import figures
from constrained_agent.evals.compare.outcomes import OUTCOMES, Judgement
from constrained_agent.evals.compare.records import Folder, Record, Written, same
from constrained_agent.grammar.spans import Marker
from tests.compared import CALL, FIX, RIGHT_CALL, TOKENS, compared, made_of, patch, raw, scripted

ODD = [
    "",
    "\0 \x1b[31m \x7f \ufeff \u2028 \u2029 \x85 \r\n \r \v \f",
    "half \ud83d of a pair, and \udc80 a byte",
    "\\ud83d \\ \" ' \\\\\ud800\\",
    "e\u0301 \U0001f600 \U0010ffff 漢",
    "<tool_call> </tool_call> <|im_end|> <think>",
    '{"marker": "<tool_call>"}',
    "</pre><script>alert(1)</script>",
]

FACTS = {
    "model": "tiny",
    "markers": {"are_tokens": True, "thinks": True},
    "sampling": {"temperature": 0.0, "top_p": 1.0, "top_k": 0},
    "max_tokens": 300,
    "drafts": False,
    "samples": 1,
    "seed": 0,
    "shard": None,
    "fingerprint": "0",
    "n_items": 1,
    "n_all_items": 1,
    "circumstances": {
        "command": "constrained-agent compare --out '<b>'",
        "date": "2026-11-30",
        "commit": "abc",
        "dirty": True,
        "versions": {"mlx": "0.32.4"},
        "python": "3.11.7",
        "machine": "Linux <i>",
        "device": "CPU, 100 GFLOP/s",
    },
}


def record(
    name="dateparse", arm="off", sample=0, *, kind="patch", outcome="no_call", pieces=("text",), **judged
):
    landed = outcome in ("passed", "tests_failed")
    judgement = Judgement(outcome, judged.pop("parses", landed), landed, **judged)
    written = Written(tuple(pieces), "end_token", True, (), 100, 10, 5, 7, 0.5, 0.25, {})
    return Record(f"{kind}/{name}/{arm}/{sample}", kind, name, arm, sample, 7, written, judgement, 0.1)


def folder_of(path, records, **facts):
    folder = Folder(path)
    folder.begin({**FACTS, **facts})
    for one in records:
        folder.add(one)
    return folder


def random_records(n, seed=0):
    """Patches and calls of all arms, with outcomes by chance."""
    rng = random.Random(seed)
    found = {}
    for _ in range(n):
        kind = rng.choice(["patch", "call"])
        arm = rng.choice(["off", "grammar"] if kind == "call" else [arm.name for arm in arms.ARMS])
        one = record(
            rng.choice("abcdefgh"),
            arm,
            rng.randrange(3),
            kind=kind,
            outcome=rng.choice(OUTCOMES),
            pieces=[rng.choice(ODD), Marker("<tool_call>"), rng.choice(ODD)],
            at=rng.choice([None, 0, 3]),
        )
        masks = {key: rng.random() * 100 for key in ("p50", "p99", "max")} if arm != "off" else {}
        written = replace(one.written, tokens=rng.randrange(99), decode_s=rng.random(), mask_us=masks)
        found[one.id] = replace(one, written=written)
    return list(found.values())


# On the disk


@pytest.mark.parametrize("text", ODD)
def test_a_record_comes_back_as_it_was(tmp_path, text):
    pieces = [text, Marker("<tool_call>"), text, Marker("</tool_call>")]
    one = record(pieces=pieces, message=text, at=3, saved="passed", server={"calls": 1})
    one = replace(one, written=replace(one.written, forced=((0, 3), (5, 9)), mask_us={"p50": 1.5}))
    folder = folder_of(tmp_path, [one])
    assert folder.load() == {one.id: one}
    folder.rewrite(folder.load().values())
    assert folder.load() == {one.id: one}
    assert one.written.text == f"{text}<tool_call>{text}</tool_call>"


def test_marker_tokens_and_marker_text_stay_apart(tmp_path):
    token, text = record(pieces=[Marker("<tool_call>")]), record("b", pieces=["<tool_call>"])
    loaded = folder_of(tmp_path, [token, text]).load()
    assert loaded[token.id].written.pieces == (Marker("<tool_call>"),)
    assert loaded[text.id].written.pieces == ("<tool_call>",)
    assert loaded[token.id].written.text == loaded[text.id].written.text


def test_facts_come_back_and_are_held_against_others(tmp_path):
    folder = folder_of(tmp_path, [], odd="\udc80")
    assert folder.facts() == {"schema": 1, **FACTS, "odd": "\udc80"}
    folder.check_same({"model": "tiny", "seed": 0})
    with pytest.raises(
        UserError, match=r"another comparison: seed is 0 there and 1 here; give the same flags"
    ):
        folder.check_same({"model": "tiny", "seed": 1})
    with pytest.raises(UserError, match="temp is None there"):
        folder.check_same({"temp": 1})


@pytest.mark.parametrize("torn", [b'{"schema": 1, "id": "x', b'{"schema": 1}', b"\xc3", b"x" * 100_000])
def test_a_torn_last_line_is_left_out_and_written_over(tmp_path, torn):
    one, two = record("a", pieces=["é" * 100]), record("b")
    folder = folder_of(tmp_path, [one])
    file = tmp_path / "records.jsonl"
    file.write_bytes(file.read_bytes() + torn)
    assert list(folder.load()) == [one.id]
    assert file.read_bytes().endswith(torn), "looking changes nothing"
    folder.add(two)
    assert folder.load() == {one.id: one, two.id: two}


def test_nothing_but_a_torn_line(tmp_path):
    folder = folder_of(tmp_path, [])
    (tmp_path / "records.jsonl").write_bytes(b'{"sch')
    assert folder.load() == {}
    folder.add(record())
    assert list(folder.load()) == [record().id]


def without(key):
    fields = record().as_json()
    del fields[key]
    return fields


BAD = {
    "this is no JSON": "Expecting value",
    "": "Expecting value",
    "[]": "not an object of schema version 1",
    "7": "not an object",
    json.dumps({**record().as_json(), "schema": 2}): "schema version 1",
    json.dumps(without("written")): "the key 'written' is missing",
    json.dumps(without("seed")): "seed",
    json.dumps({**record().as_json(), "more": 1}): "more",
    json.dumps({**record().as_json(), "written": 7}): "int",
    json.dumps(
        {**record().as_json(), "judgement": {"outcome": "odd", "parses": True, "lands": False}}
    ): "odd",
    '{"a":' * 100_000: "recursion",
    "\x1e": "Expecting value",
}


@pytest.mark.parametrize("line", BAD, ids=lambda line: line[:20])
def test_a_bad_line_is_told_with_its_number(tmp_path, line):
    folder = folder_of(tmp_path, [record("a")])
    file = tmp_path / "records.jsonl"
    good = file.read_bytes()
    file.write_bytes(good + line.encode() + b"\n" + good)
    with pytest.raises(UserError, match=rf"records\.jsonl:2 is no record: .*{re.escape(BAD[line])}"):
        folder.load()


def test_a_line_that_is_not_utf_8(tmp_path):
    folder = folder_of(tmp_path, [])
    (tmp_path / "records.jsonl").write_bytes(b"\xff\n")
    with pytest.raises(UserError, match=r"records\.jsonl:1 is no record"):
        folder.load()


def test_folders_that_are_none(tmp_path):
    with pytest.raises(UserError, match="there is no comparison in it"):
        Folder(tmp_path / "nowhere").facts()
    (tmp_path / "run.json").write_text('{"schema": 0}')
    with pytest.raises(UserError, match="is not of schema version 1"):
        Folder(tmp_path).facts()
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(UserError, match=r"run\.json cannot be read"):
        Folder(tmp_path).facts()
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="name a folder that can be written"):
        Folder(tmp_path / "file").begin(FACTS)
    with pytest.raises(UserError, match="make room, then --resume goes on"):
        Folder(tmp_path / "file").add(record())


def test_same_is_the_same_but_for_what_it_took():
    one = record(outcome="tests_failed", message="exit code 1 after 0.1 s")
    slower = replace(one.written, decode_s=9.0, prefill_s=9.0, mask_us={"p50": 1.0})
    judgement = replace(one.judgement, message="exit code 1 after 0.2 s")
    assert same(one, replace(one, written=slower, judge_s=3.0, judgement=judgement))
    assert not same(one, made_of(one, ["other"]))
    assert not same(one, made_of(one, one.written.pieces, tokens=11))
    assert not same(one, replace(one, judgement=replace(one.judgement, at=3)))


# Parts


TASKS = [tasks.load("dateparse"), tasks.load("seedbank"), tasks.load("climbing")]


@pytest.mark.parametrize("of", [1, 2, 3, 5, 16, 40])
def test_shards_part_all_groups(of):
    groups = items.groups(TASKS, own.load()[:7], arms.ARMS, 2, seed=3)
    parts = [items.shard(groups, number, of) for number in range(1, of + 1)]
    assert sorted(id(group) for part in parts for group in part) == sorted(map(id, groups))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1


def test_items_have_ids_of_their_own_and_the_seeds_of_their_sources():
    groups = items.groups(TASKS, own.load()[:7], arms.ARMS, 2, seed=3)
    found = [item for group in groups for item in group.items]
    assert len({item.id for item in found}) == len(found) == items.n_items(groups) == 3 * 8 * 2 + 7 * 2 * 2
    seeds = {(item.name, item.sample, item.seed) for item in found}
    assert len(seeds) == len({seed for _, _, seed in seeds}) == 10 * 2
    for group in groups:
        assert {item.arm.prompt for item in group.items} == {group.prompt}
    others = items.groups(TASKS, own.load()[:7], arms.ARMS, 2, seed=4)
    assert not {item.seed for group in others for item in group.items} & {seed for _, _, seed in seeds}


def test_merged_parts_are_the_whole(tmp_path):
    records = random_records(60)
    whole = folder_of(tmp_path / "whole", records, n_all_items=len(records))
    parts = [
        folder_of(
            tmp_path / str(n),
            records[n::3],
            shard=f"{n + 1}/3",
            fingerprint=str(n),
            n_items=len(records[n::3]),
            n_all_items=len(records),
        )
        for n in range(3)
    ]
    merging.merge(parts, into := Folder(tmp_path / "all"))
    assert into.load() == whole.load()
    facts = into.facts()
    assert (facts["n_items"], facts["shard"], len(facts["circumstances"])) == (len(records), None, 3)
    assert figures(into.load().values()) == figures(records)
    report.write(into.path, facts, list(into.load().values()))
    assert "Not finished" not in (into.path / "report.md").read_text()


def test_a_part_that_is_missing_or_not_finished_is_told(tmp_path):
    parts = [
        folder_of(tmp_path / str(n), [record(str(n))], shard=f"{n}/3", n_all_items=6, n_items=2)
        for n in (1, 2)
    ]
    merging.merge(parts, into := Folder(tmp_path / "all"))
    _, text = report.write(into.path, into.facts(), list(into.load().values()))
    assert text.startswith("**Not finished: 2 of 6 items.**")


def test_what_was_merged_can_be_merged(tmp_path):
    parts = [folder_of(tmp_path / str(n), [record(str(n))], n_all_items=3) for n in range(3)]
    merging.merge(parts[:2], two := Folder(tmp_path / "two"))
    merging.merge([two, parts[2]], three := Folder(tmp_path / "three"))
    facts = three.facts()
    assert [one["command"] for one in facts["circumstances"]] == [FACTS["circumstances"]["command"]] * 3
    assert "2026-11-30" in table.document(facts, figures(three.load().values()))


def test_overlapping_parts(tmp_path):
    one, two, three = record("a"), record("b"), record("c")
    slower = replace(two, judge_s=9.0)
    parts = [folder_of(tmp_path / "1", [one, two]), folder_of(tmp_path / "2", [slower, three])]
    merged = merging.merge(parts, Folder(tmp_path / "all"))
    assert merged == [one, two, three]


@pytest.mark.parametrize("text", ["other", ""])
def test_parts_with_different_records_are_not_merged(tmp_path, text):
    one = record("a")
    parts = [folder_of(tmp_path / "1", [one]), folder_of(tmp_path / "2", [made_of(one, [text])])]
    with pytest.raises(UserError, match=r"patch/a/off/0 has two different records; the second is in .*2"):
        merging.merge(parts, into := Folder(tmp_path / "all"))
    assert not into.exists


@pytest.mark.parametrize(("key", "value"), [("seed", 1), ("model", "other"), ("drafts", True)])
def test_parts_of_different_comparisons_are_not_merged(tmp_path, key, value):
    parts = [folder_of(tmp_path / "1", []), folder_of(tmp_path / "2", [], **{key: value})]
    with pytest.raises(UserError, match=f"are not of one comparison: {key} is"):
        merging.merge(parts, Folder(tmp_path / "all"))


def test_nothing_is_merged_into_a_comparison(tmp_path):
    one = folder_of(tmp_path / "1", [])
    with pytest.raises(UserError, match="holds a comparison already"):
        merging.merge([one], one)


def test_transcripts_of_whole_runs_come_along(tmp_path):
    run = record(kind="run", outcome="passed")
    part = folder_of(tmp_path / "1", [run])
    with pytest.raises(UserError, match="cannot be copied"):
        merging.merge([part], Folder(tmp_path / "0"))
    part.transcript(run.id).parent.mkdir()
    part.transcript(run.id).write_text("lines")
    merging.merge([part], into := Folder(tmp_path / "all"))
    assert into.transcript(run.id).read_text() == "lines"


# Judged again


@pytest.fixture(scope="module")
def real(tiny_runtime, tmp_path_factory):
    """A folder of records of a scripted model."""
    path = tmp_path_factory.mktemp("real")
    wrong = raw(patch("@@\n import datetime\n+import calendar\n import re\n"))
    runtime = scripted(tiny_runtime, [raw(FIX), wrong, FIX, RIGHT_CALL, RIGHT_CALL.replace("\\\\", "\\")])
    compared(runtime, path, ["off"], samples=3)
    compared(runtime, path, ["off"], task=None, calls=[CALL], samples=2)
    return Folder(path)


def judged_again(records):
    def calls(ids):
        return selection.calls_by_id(ids, print)

    markers = {"are_tokens": TOKENS.are_tokens, "thinks": TOKENS.thinks}
    return rejudging.rejudge(records, markers, calls, Path)


def test_judged_again_everything_comes_out_the_same(real):
    records = list(real.load().values())
    new, changes = judged_again(records)
    assert changes == []
    assert all(map(same, records, new))
    outcomes = [one.judgement.outcome for one in new]
    assert outcomes == ["passed", "tests_failed", "no_wrapper", "passed", "json_invalid"]
    assert new[2].judgement.saved == "passed"
    assert new[4].judgement.server == {"calls": 1, "dropped": 1, "broken": 0}


def test_an_edited_record_is_told(real):
    records = list(real.load().values())
    records[0] = made_of(records[0], ["Nothing."])
    records[3] = replace(records[3], judgement=replace(records[3].judgement, outcome="tests_failed"))
    records[4] = replace(records[4], judgement=replace(records[4].judgement, server={"calls": 2}))
    new, changes = judged_again(records)
    assert [(one.record.id, one.now.outcome) for one in changes] == [
        (records[0].id, "no_call"),
        (records[3].id, "passed"),
        (records[4].id, "json_invalid"),
    ]
    assert [one.judgement.outcome for one in new] == [
        "no_call",
        "tests_failed",
        "no_wrapper",
        "passed",
        "json_invalid",
    ]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": "nowhere"}, "there is no task 'nowhere'"),
        ({"arm": "odd"}, "there is no arm 'odd'"),
    ],
)
def test_records_about_what_is_not_there_are_told(changed, message):
    with pytest.raises(UserError, match=message):
        judged_again([replace(record(), **changed)])


def test_a_record_is_not_judged_without_the_programs_that_it_takes(monkeypatch):
    task = next(task for name in tasks.names() for task in [tasks.load(name)] if task.needs)
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(UserError, match=rf"cannot be judged here: its tests need {task.needs[0]}"):
        judged_again([record(task.name)])


# Figures


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    # z = 1.959964; low, high = (k + z²/2 ± z √(k (n-k) / n + z²/4)) / (n + z²)
    [(0, 10, 0.0, 0.277533), (5, 10, 0.236593, 0.763407), (10, 10, 0.722467, 1.0), (1, 1, 0.206549, 1.0)],
)
def test_wilson(k, n, low, high):
    found = statistics.rate([True] * k + [False] * (n - k))
    assert (found.k, found.n, found.share) == (k, n, k / n)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-6)


def test_a_rate_of_nothing():
    assert statistics.rate([]) == statistics.Rate(0, 0, 0.0, 1.0)
    assert statistics.rate([]).share == 0.0


def pairs(gained=0, lost=0, both=0, neither=0):
    kinds = [(False, True)] * gained + [(True, False)] * lost + [(True, True)] * both
    kinds += [(False, False)] * neither
    return [(f"item {n}", *kind) for n, kind in enumerate(kinds)]


@pytest.mark.parametrize(
    ("gained", "lost", "p"),
    # Two-sided: 2 × the sum of (n choose i) / 2ⁿ up to the smaller of both, 1 at most
    [
        (5, 0, 0.0625),
        (0, 5, 0.0625),
        (6, 0, 0.03125),
        (8, 2, 2 * 56 / 1024),
        (3, 3, 1.0),
        (1, 0, 1.0),
        (0, 0, 1.0),
    ],
)
def test_mcnemar(gained, lost, p):
    found = statistics.difference(pairs(gained, lost, both=3, neither=4))
    assert found.p == pytest.approx(p)
    assert (found.n, found.gained, found.lost) == (gained + lost + 7, gained, lost)
    assert found.difference == pytest.approx((gained - lost) / (gained + lost + 7))
    assert found.low <= found.difference <= found.high


@pytest.mark.parametrize(
    ("found", "low", "high"),
    [
        ([], -1.0, 1.0),
        (pairs(gained=1), -1.0, 1.0),
        ([("one", False, True)] * 9, -1.0, 1.0),  # samples of one item are no evidence about others
        (pairs(both=2, neither=2), 0.0, 0.0),
        (pairs(gained=4), 1.0, 1.0),
        (pairs(lost=4), -1.0, -1.0),
        ([("a", True, False), ("a", False, True), ("b", True, True)], 0.0, 0.0),
    ],
)
def test_bootstrap_where_there_is_nothing_to_draw(found, low, high):
    made = statistics.difference(found)
    assert (made.low, made.high) == (low, high)
    assert not math.isnan(made.difference)


def test_bootstrap():
    made = statistics.difference(pairs(gained=30, lost=10, both=60))
    # Of 100 differences, 30 × 1, 10 × -1: mean 0.2, standard error √(0.4 - 0.04) / 10 = 0.06
    assert (made.low, made.high) == pytest.approx((0.2 - 1.96 * 0.06, 0.2 + 1.96 * 0.06), abs=0.02)
    assert statistics.difference(pairs(gained=30, lost=10, both=60)) == made, "no chance in it"
    many = [(f"item {n // 4}", False, n % 8 < 4) for n in range(160)]  # 40 items, 4 equal samples each
    alone = [(f"item {n}", False, n % 2 == 0) for n in range(160)]
    assert width(many) > 1.5 * width(alone)


def width(found):
    made = statistics.difference(found)
    return made.high - made.low


def test_figures_do_not_depend_on_the_order_of_records():
    records = random_records(150)
    found = figures(records)
    for seed in range(3):
        random.Random(seed).shuffle(records)
        assert json.dumps(figures(records)) == json.dumps(found)


def test_figures_count_every_record_once():
    records = random_records(150)
    found = figures(records)["kinds"]
    counted = [arm for kind in found.values() for arm in kind["arms"].values()]
    assert sum(arm["n"] for arm in counted) == len(records)
    for arm in counted:
        assert sum(arm["outcomes"].values()) == arm["n"]
        rates = {name: one["k"] for name, one in arm["rates"].items()}
        assert rates["right"] + rates["valid_but_wrong"] == rates["lands"]
        assert rates["right"] == arm["outcomes"].get("passed", 0)


def test_figures_of_a_small_example():
    records = [
        record("a", "off", outcome="json_invalid", saved="passed"),
        record("b", "off", outcome="passed"),
        record("c", "off", outcome="patch_unparsable"),
        record("a", "grammar", outcome="passed"),
        record("b", "grammar", outcome="tests_failed"),
        record("d", "grammar", outcome="context_not_found", parses=True),
    ]
    found = figures(records)["kinds"]["patch"]
    off, grammar = found["arms"]["off"], found["arms"]["grammar"]
    assert {name: one["k"] for name, one in off["rates"].items()} == {
        "parses": 1,
        "lands": 1,
        "right": 1,
        "valid_but_wrong": 0,
    }
    assert {name: one["k"] for name, one in grammar["rates"].items()} == {
        "parses": 3,
        "lands": 2,
        "right": 1,
        "valid_but_wrong": 1,
    }
    assert off["saved"] == {"passed": 1}
    assert (off["tokens"], off["model_steps"], off["steps_per_token"]) == (30, 21, 0.7)
    assert off["per_item"] == {"tokens": 10, "steps": 7, "s": 0.25}
    assert off["per_solved_item"] == {"tokens": 30, "steps": 21, "s": 0.75}
    differences = {one["rate"]: one for one in found["differences"]}
    assert {name: (one["n"], one["gained"], one["lost"]) for name, one in differences.items()} == {
        "parses": (2, 1, 0),
        "lands": (2, 1, 0),
        "right": (2, 1, 1),
    }


# Reports


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
    rows = [line.count("|") for line in text.splitlines() if line.startswith("|")]
    assert all(n > 2 for n in rows)
    shown = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert shown.open == []
    assert len(shown.texts) == len(records)


class Page(HTMLParser):
    """A page as a browser takes it: its elements, and the text of each record."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.open, self.texts, self.attributes = [], [], [], []
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
