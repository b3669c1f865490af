"""The bench of speed over the tiny model: every arm writes, known patches come out to the byte, figures add up."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace

import pytest

from constrained_agent.evals import small_edits, speed, speed_cases, speed_report, speed_table
from constrained_agent.evals.circumstances import circumstances
from constrained_agent.evals.contenders import ARMS
from constrained_agent.evals.corpus import Edit, choose
from constrained_agent.evals.masking import patch_of
from constrained_agent.evals.releases import Release
from constrained_agent.evals.speed import Measured, Plan, Sizes
from constrained_agent.evals.speed_arms import Models, prepared, run
from constrained_agent.patch import parse, plan

OLD = b"".join(b"def f%d(x):\n    return x + %d\n\n\n" % (i, i) for i in range(12))
MAX_TOKENS = 40


def made_up(*changes: tuple[bytes, bytes]) -> Edit:
    new = OLD
    for old_text, new_text in changes:
        new = new.replace(old_text, new_text)
    (edit,) = choose(
        Release("made-up", "1", ""), Release("made-up", "2", ""), {"src/a.py": OLD}, {"src/a.py": new}
    )
    return edit


EDIT = made_up(
    (b"x + 3\n", b"x - 3  # na\xc3\xafve\n"),
    (b"def f7(x):\n", b"def f7(x, y):\n    x *= y  # both\n    x += 1\n"),
)


@pytest.fixture(scope="module")
def models(tiny_loaded) -> Models:
    return prepared(tiny_loaded)


def taught(models, *edits):
    return speed_cases.taught_cases(models, edits, 9, progress=lambda message: None)


def arm(name):
    return next(arm for arm in ARMS if arm.name == name)


@pytest.mark.parametrize("name", [arm.name for arm in ARMS])
def test_a_known_patch_comes_out_to_the_byte(models, name):
    """By every arm that can, also those that the bench leaves out for time."""
    (case,) = taught(models, EDIT)
    assert case.script is not None
    if name == "off":  # nothing but its limit ends it
        case = replace(case, max_tokens=len(case.script.ids))
    done = run(models, case, arm(name), 0)
    assert done.text.encode() == patch_of(EDIT)
    assert done.as_known
    assert done.patch_s is not None
    assert 0 < done.patch_s <= done.answer.seconds


def test_what_located_spares(models):
    (case,) = taught(models, EDIT)
    by = {name: run(models, case, arm(name), 0) for name in ("mlx-lm", "located", "located+drafts")}
    assert all(done.as_known for done in by.values())
    steps = [done.answer.n_steps for done in by.values()]
    assert steps[0] > steps[1] >= steps[2]
    assert by["mlx-lm"].answer.n_forced == 0 < by["located"].answer.n_forced
    assert by["located+drafts"].answer.n_drafted > 0


def test_a_second_round_does_not_remember_the_first(models):
    """Drafts that knew the answer of the round before would guess all of it."""
    (case,) = taught(models, EDIT)
    accepted = [run(models, case, arm("located+drafts"), i).answer.n_accepted for i in range(3)]
    n_drawn = len(run(models, case, arm("located"), 0).answer.mask_us)
    assert max(accepted) < n_drawn - 5


def test_patches_of_the_wrong_size_and_refused_ones_are_left_out(models):
    short = made_up((b"x + 3\n", b"x - 3\n"))
    long = made_up((b"x + 3\n", b"x\n" + b"    # one two three\n" * 58))
    larger = made_up((b"x + 3\n", b"x\n" + b"    # one two three\n" * 12))
    encode = models.runtime.tokenizer.encode_plain
    assert speed_cases.ranked([long, larger, short, EDIT], encode) == [EDIT, larger]
    told: list[str] = []
    other = replace(EDIT, old=OLD.replace(b"x + 3\n", b"x + 33\n"), package="other")
    cases = speed_cases.taught_cases(models, [other, larger], 9, progress=told.append)
    assert [case.name for case in cases] == [str(larger)]
    assert len(told) == 2
    assert told[1] == "of 2 real edits 1 are of the right size, fewer than 9"
    assert "other 2 src/a.py: refused at byte" in told[0]


def test_free_arms_write_the_same_and_the_processor_keeps_to_the_grammar(models):
    (case,) = speed_cases.free_cases(models.runtime, small_edits.load()[:1], MAX_TOKENS)
    by = {arm.name: run(models, case, arm, 0) for arm in ARMS}
    assert by["off"].text == by["mlx-lm"].text
    assert len(by["off"].answer.tokens) == len(by["mlx-lm"].answer.tokens) == MAX_TOKENS
    assert by["grammar+drafts"].text == by["grammar"].text
    assert by["located+drafts"].text == by["located"].text
    written = by["mlx-lm+processor"].answer.tokens
    assert case.constraints["grammar"]().accepted_prefix(written) == len(written)
    for name in ("grammar", "located"):
        parse(by[name].text, lenient=False)
    old = small_edits.load()[0]
    located = parse(by["located"].text, lenient=False).patch
    assert plan(located, {old.path: old.content.encode()}.get).files


def measured_by(models, plan, progress=lambda message: None) -> Measured:
    measured = Measured()
    speed.measure(models, plan, measured, progress)
    return measured


def tiny_plan(**more) -> Plan:
    sizes = Sizes(tasks=1, edits=1, repeats=2, max_tokens=MAX_TOKENS)
    return replace(Plan(ARMS, tuple(small_edits.load()[:1]), (EDIT,), sizes), **more)


def facts_of(measured: Measured, **more):
    return {
        "model": {"name": "tiny", "weights_mb": 1, "float_type": "float32"},
        "device": "cpu",
        "load_before": 0.0,
        "stopped_by": None,
        "repeats": 2,
        "max_tokens": MAX_TOKENS,
        "measured": speed_report.figures(measured),
        **circumstances("bench", ["numpy", "no-such-package"]),
        **more,
    }


@pytest.fixture(scope="module")
def measured(models):
    told: list[str] = []
    return measured_by(models, tiny_plan(), told.append), told


def test_arms_take_turns_on_every_prompt(measured):
    runs = measured[0].runs
    of_first = [run.arm for run in runs if (run.part, run.repeat) == ("prompts", 0)]
    of_second = [run.arm for run in runs if (run.part, run.repeat) == ("prompts", 1)]
    assert of_first == [arm.name for arm in ARMS]
    assert of_second == [*of_first[1:], of_first[0]]
    assert {run.arm for run in runs if run.part == "edits"} == {arm.name for arm in ARMS if arm.taught}


def test_prompts_are_read_once_by_each_loop(measured):
    for part in ("prompts", "edits"):
        fresh = [r for r in measured[0].runs if r.part == part and r.answer.n_reused < r.answer.n_prompt - 1]
        assert len(fresh) <= 2


def test_each_part_is_announced(measured):
    told = "\n".join(measured[1])
    for words in (
        "passes of 1, 4, 8, 12 ids",
        "conversations of 6 turns; arms: 5",
        "small edits",
        "known patches",
    ):
        assert words in told
    assert "about" in told


def test_figures(measured):
    figures = speed_report.figures(measured[0])
    assert json.loads(json.dumps(figures)) == figures
    assert list(figures["prompts"]) == [arm.name for arm in ARMS]
    assert list(figures["edits"]) == ["mlx-lm", "located", "located+drafts"]
    assert {ratio["n"] for ratio in figures["ratios"].values()} == {2}
    assert len(figures["ratios"]) == len(speed_report.RATIOS)
    assert set(figures["pass_s"]) == {"1", "4", "8", "12"}
    assert figures["same_text"]["off and mlx-lm"] == {"n": 2, "same": 2}
    assert figures["same_text"]["all arms on known patches"] == {"n": 6, "same": 6}
    plain, located = figures["edits"]["mlx-lm"], figures["edits"]["located"]
    assert (plain["steps_per_token"], plain["hidden_share"], plain["mask_us"]["n"]) == (1.0, None, 0)
    assert located["tokens"] == plain["tokens"]  # this patch is cut the same way
    assert located["steps"] < located["tokens"]
    assert located["patch_s"]["n"] == 2
    low, high = located["seconds"]["quartiles"]
    assert low <= located["seconds"]["median"] <= high
    assert set(figures["reused"]) == {"off", "grammar", "grammar+drafts", "located", "located+drafts"}
    assert all(reused["share"] > 0.9 for reused in figures["reused"].values())


def test_the_document(measured):
    text = speed_table.document(facts_of(measured[0]))
    assert text.startswith("# tiny beside mlx-lm\n")
    tables = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    assert len(tables) == 5
    for rows in tables:
        assert len({len(row) for row in rows}) == len({row.count("|") for row in rows}) == 1
    assert "| off / mlx-lm, tokens/s, small edits " in text
    assert "1 prompt, 2 rounds" in text
    assert "nan" not in text


def test_an_interrupt_leaves_what_there_is(models):
    measured = Measured()

    def progress(message: str) -> None:
        if message.startswith("known patches"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        speed.measure(models, tiny_plan(arms=(arm("off"), arm("mlx-lm"))), measured, progress)
    assert len(measured.runs) == 4
    text = speed_table.document(facts_of(measured, stopped_by="Ctrl-C"))
    assert "Stopped by Ctrl-C" in text
    assert "Known patches" not in text


def test_nothing_measured_is_no_table():
    assert "|" not in speed_table.document(facts_of(Measured()))


def test_circumstances():
    facts = circumstances("a command", ["numpy", "no-such-package"])
    assert list(facts["versions"]) == ["numpy"]
    assert facts["command"] == "a command"
    assert {"date", "commit", "dirty", "python", "machine", "load", "peak_mb"} <= facts.keys()
    assert facts["peak_mb"] > 10


def test_results_beside_the_program_are_no_changes_of_it(tmp_path, monkeypatch):
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "first", "--no-gpg-sign"]):
        (tmp_path / "constrained_agent").mkdir(exist_ok=True)
        (tmp_path / "constrained_agent" / "loop.py").write_text("one\n")
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True)
    monkeypatch.setattr("constrained_agent.evals.circumstances._ROOT", tmp_path)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "run.json").write_text("{}")
    assert circumstances("", [])["dirty"] is False
    (tmp_path / "constrained_agent" / "new.py").write_text("two\n")
    assert circumstances("", [])["dirty"] is True
