"""What a comparison keeps, joins and judges again."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from constrained_agent.errors import UserError
from constrained_agent.evals import tasks
from constrained_agent.evals.calls import own
from constrained_agent.evals.compare import (
    arms,
    items,
    merging,
    rejudging,
    report,
    running,
    selection,
    table,
)
from constrained_agent.evals.compare.figures import figures
from constrained_agent.evals.compare.records import RUN, Folder, same
from constrained_agent.grammar.spans import Marker
from constrained_agent.model import cards
from tests.compared import CALL, FIX, RIGHT_CALL, TOKENS, compared, made_of, patch, raw, scripted
from tests.kept import FACTS, ODD, folder_of, random_records, record

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
    assert folder.facts() == {"schema": 2, **FACTS, "odd": "\udc80"}
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
    "[]": "not an object of schema version 2",
    "7": "not an object",
    json.dumps({**record().as_json(), "schema": 1}): "schema version 2",
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
    with pytest.raises(UserError, match="is not of schema version 2"):
        Folder(tmp_path).facts()
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(UserError, match=r"run\.json cannot be read"):
        Folder(tmp_path).facts()
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="name a folder that can be written"):
        Folder(tmp_path / "file").begin(FACTS)
    with pytest.raises(UserError, match="make room, then --resume goes on"):
        Folder(tmp_path / "file").add(record())


def test_a_damaged_description_is_told(tmp_path):
    folder = folder_of(tmp_path / "out", [record()])
    facts = json.loads((folder.path / RUN).read_text(encoding="utf-8"))
    del facts["markers"]
    (folder.path / RUN).write_text(json.dumps(facts), encoding="utf-8")
    with pytest.raises(UserError, match=r"run\.json is damaged: it lacks markers"):
        Folder(folder.path).facts()


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
    sources = [{group.source_name for group in part} for part in parts]
    assert sum(map(len, sources)) == len({name for part in sources for name in part}), "none is torn apart"
    assert max(map(len, sources)) - min(map(len, sources)) <= 1


def test_items_have_ids_of_their_own_and_the_seeds_of_their_sources():
    groups = items.groups(TASKS, own.load()[:7], arms.ARMS, 2, seed=3)
    found = [item for group in groups for item in group.items]
    assert len({item.id for item in found}) == len(found) == items.n_items(groups) == 3 * 8 * 2 + 7 * 2 * 2
    seeds = {(item.name, item.sample, item.seed) for item in found}
    assert len(seeds) == len({seed for _, _, seed in seeds}) == 10 * 2
    for group in groups:
        assert {item.arm.prompt_name for item in group.items} == {group.prompt_name}
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


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("seed", 1),
        ("model", "other"),
        ("drafts", True),
        ("versions", {"mlx": "0.1"}),
        ("revision", "abc"),
    ],
)
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


def test_the_revision_of_a_model(tmp_path):
    card = cards.load("smollm2-135m")
    assert running.revision(card) == card.source.sha256
    assert running.revision(replace(card, source=cards.FolderSource(tmp_path))) is None
    absent = cards.HubSource("nobody/nothing", "main")
    assert running.revision(replace(card, source=absent)) == "main", "not known before it is fetched"


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
    found = judged_again(records)
    new = found.records
    assert (found.changes, found.disagreements) == ([], [])
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
    found = judged_again(records)
    assert [(one.record.id, one.now.outcome) for one in found.changes] == [
        (records[0].id, "no_call"),
        (records[3].id, "passed"),
        (records[4].id, "json_invalid"),
    ]
    assert [one.judgement.outcome for one in found.records] == [
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
