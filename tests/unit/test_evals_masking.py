"""The figures of the bench `located`, and its script, on made-up edits under a byte vocabulary."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from constrained_agent.evals import corpus, masking
from constrained_agent.evals.corpus import Edit, choose
from constrained_agent.evals.releases import Release
from constrained_agent.grammar.matcher import byte_tokenizer

SCRIPT = Path(__file__).parent.parent.parent / "scripts" / "bench"
OLD = b"".join(b"line %d\n" % i for i in range(50))


def made_up() -> list[Edit]:
    old = {"a.py": OLD, "sub/b.rs": OLD * 3}
    new = {
        "a.py": OLD.replace(b"line 7\n", b"line seven\n"),
        "sub/b.rs": OLD * 2 + b"\n".join([b"x"] * 4) + b"\n" + OLD,
    }
    return choose(Release("made-up", "1", ""), Release("made-up", "2", ""), old, new)


def test_both_levels_take_the_edits_and_located_forces_more() -> None:
    edits, tokenizer = made_up(), byte_tokenizer()
    assert [edit.n_changed for edit in edits] == [2, 4]
    assert all(masking.is_planned(edit) for edit in edits)
    figures = {
        level: masking.figures([masking.measure(level, edit, tokenizer) for edit in edits])
        for level in masking.LEVELS
    }
    for name, level in figures.items():
        assert level["accepted"] == level["n"] == 2
        chosen = pytest.approx(1 - level["forced_share"], abs=2e-3)
        if name == masking.DRAFTED:
            assert level["steps_per_token"]["overall"] < figures["located"]["steps_per_token"]["overall"]
            assert level["forced_share"] == figures["located"]["forced_share"]
            assert level["ids_per_step"] > figures["located"]["ids_per_step"]
        else:
            assert level["steps_per_token"]["overall"] == chosen
        assert level["steps_per_token_3_lines"]["n"] == 1
        assert level["compile_ms"].keys() == level["text_ms"].keys() == {"100", "300"}
        assert level["mask_us"]["n"] == level["mask_us_1000_lines"]["n"] > 0
        assert list(level["steps_per_token_by_language"]) == ["Python", "Rust"]
    grammar, located = (figures[level]["steps_per_token"] for level in ("grammar", "located"))
    assert located["overall"] < grammar["overall"]
    assert located["median"] < grammar["median"]
    rows = masking.table(figures).splitlines()
    assert rows[:3] == [
        "| | grammar | located | located, drafts |",
        "|---|---|---|---|",
        "| edits accepted | 2 of 2 | 2 of 2 | 2 of 2 |",
    ]
    assert len({row.count("|") for row in rows}) == 1


def test_an_edit_that_no_longer_fits_is_not_accepted() -> None:
    """The patch is right, but for another file: located refuses it; the loose grammar cannot see that, `plan` can."""
    edit = replace(made_up()[0], old=OLD.replace(b"line 7\n", b"line 70\n"))
    loose, located = (masking.measure(level, edit, byte_tokenizer()) for level in ("grammar", "located"))
    assert loose.walk.refusal is None
    assert located.walk.refusal is not None
    assert located.walk.refusal.before.endswith(b"-line 7")
    assert located.walk.refusal.expected == (b"0\n",)


def test_what_is_not_accepted_by_plan_is_not_counted() -> None:
    edit = replace(made_up()[0], new=OLD)
    assert not masking.is_planned(edit)
    assert masking.figures([masking.measure("grammar", edit, byte_tokenizer())])["accepted"] == 0


def test_the_share_of_added_text() -> None:
    (edit, _), tokenizer = made_up(), byte_tokenizer()
    facts = masking.corpus_facts([edit], tokenizer)
    patch = masking.patch_of(edit)
    assert patch.endswith(b"-line 7\n+line seven\n*** End Patch")
    assert facts["added_share"] == round(len(b"+line seven\n") / len(patch), 3)
    assert (facts["n"], facts["languages"], facts["sizes"]["100"]) == (1, {"Python": 1}, 1)


def script() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("bench", str(SCRIPT))
    spec = importlib.util.spec_from_loader("bench", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_the_script_prints_a_table_and_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = script()
    monkeypatch.setattr(corpus, "load", lambda progress: made_up())
    monkeypatch.setattr(bench, "qwen3", byte_tokenizer)
    assert bench.located("a.py") == 0
    out, err = capsys.readouterr()
    facts = json.loads(out.splitlines()[-1])
    assert (facts["bench"], facts["n"], facts["levels"]["located"]["accepted"]) == ("located", 1, 1)
    assert {"commit", "dirty", "versions", "machine", "date", "command"} <= facts.keys()
    assert out.startswith("| | grammar | located | located, drafts |\n")
    assert err.splitlines() == [f"{level}: 1 of 1 edits" for level in masking.LEVELS]
    assert bench.located("absent") == 2


def test_the_script_says_which_edits_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = script()
    broken = [replace(made_up()[0], old=OLD.replace(b"line 7\n", b"line 70\n"))]
    monkeypatch.setattr(corpus, "load", lambda progress: broken)
    monkeypatch.setattr(masking, "is_planned", lambda edit: False)
    monkeypatch.setattr(bench, "qwen3", byte_tokenizer)
    assert bench.located("") == 1
    err = capsys.readouterr().err
    assert "made-up 2 a.py: the patch does not make the new file\n" in err
    assert "located: made-up 2 a.py: refused at byte 48, after" in err


def test_the_script_as_a_command() -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, "located", "--help"], capture_output=True, text=True, check=True
    )
    assert "word" in done.stdout
    assert subprocess.run([sys.executable, SCRIPT], capture_output=True, check=False).returncode == 2
