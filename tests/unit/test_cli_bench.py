"""`bench`: a whole run over the tiny model, a part of one, an interrupted one, and wrong calls."""

from __future__ import annotations

import json

import pytest

from constrained_agent.cli import bench
from constrained_agent.cli.app import run
from constrained_agent.errors import UserError
from constrained_agent.evals import corpus
from constrained_agent.evals.contenders import ARMS
from constrained_agent.evals.releases import Release
from constrained_agent.evals.speed_arms import prepared

OLD = b"".join(b"[section%d]\nname = %d\nkind = wide\n\n" % (i, i) for i in range(12))
CHANGES = {
    b"name = 7\n": b'name = seven\nsize = 12\ncolour = "light blue"\n',
    b"[section3]\n": b"[section-three]\n# the third of twelve\n",
    b"name = 9\n": b"name = nine\nlength = 4 + 5\n",
}
NEW = OLD
for before, after in CHANGES.items():
    NEW = NEW.replace(before, after)


@pytest.fixture(scope="module")
def models(tiny_loaded):
    return prepared(tiny_loaded)


@pytest.fixture
def command(models, monkeypatch, capsys):
    """Runs a command line with the tiny model loaded already and one real edit; returns (code, stdout, stderr)."""
    edits = corpus.choose(
        Release("made-up", "1", ""), Release("made-up", "2", ""), {"a.toml": OLD}, {"a.toml": NEW}
    )
    assert len(edits) == 1
    monkeypatch.setattr(bench, "_load", lambda name: models)
    monkeypatch.setattr(corpus, "load", lambda progress: edits)

    def call(*arguments):
        code = run(["bench", *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call


SMALL = ("--tasks", "1", "--edits", "1", "--repeats", "1", "--max-tokens", "40")


def test_everything(command, tmp_path):
    folder = tmp_path / "results" / "today"
    code, out, err = command(*SMALL, "--out", str(folder), "--json")
    assert code == 0
    text, _, last = out.rstrip("\n").rpartition("\n")
    facts = json.loads(last)
    assert {arm.name for arm in ARMS} == set(facts["measured"]["prompts"])
    assert facts["measured"]["same_text"]["all arms on known patches"] == {"n": 3, "same": 3}
    assert {
        "command",
        "date",
        "commit",
        "dirty",
        "versions",
        "machine",
        "device",
        "model",
        "load_before",
    } <= set(facts)
    assert (facts["bench"], facts["tasks"], facts["edits"], facts["repeats"]) == ("speed", 1, 1, 1)
    assert facts["stopped_by"] is None
    assert (folder / "bench.md").read_text() == f"{text}\n"
    kept = json.loads((folder / "bench.json").read_text())
    assert len(kept.pop("runs")) == len(ARMS) + 3
    assert kept == facts
    assert "small edits; prompts: 1" in err
    assert "known patches; prompts: 1" in err


def test_only_some_arms(command):
    code, out, _ = command(*SMALL, "--only", "off", "--only", "mlx-lm", "--json")
    assert code == 0
    measured = json.loads(out.splitlines()[-1])["measured"]
    assert list(measured["prompts"]) == ["mlx-lm", "off"]
    assert list(measured["ratios"]) == ["off / mlx-lm, tokens/s, small edits"]
    assert list(measured["edits"]) == ["mlx-lm"]


def test_arms_that_write_no_known_patch_need_no_corpus(command, monkeypatch):
    def absent(progress):
        raise UserError("no network")

    monkeypatch.setattr(corpus, "load", absent)
    assert command(*SMALL, "--only", "off")[0] == 0
    code, out, err = command(*SMALL, "--json")
    assert (code, json.loads(out)["ok"]) == (2, False)
    assert "no network; --edits 0 does without" in err


def test_an_interrupt_shows_what_there_is(command, monkeypatch, tmp_path):
    say = bench._say

    def interrupting(message):
        say(message)
        if message.startswith("known patches"):
            raise KeyboardInterrupt

    monkeypatch.setattr(bench, "_say", interrupting)
    code, out, _ = command(*SMALL, "--only", "off", "--only", "mlx-lm", "--out", str(tmp_path), "--json")
    assert code == 130
    facts = json.loads(out.splitlines()[-1])
    assert facts["stopped_by"] == "Ctrl-C"
    assert set(facts["measured"]["prompts"]) == {"off", "mlx-lm"}
    assert facts["measured"]["edits"] == {}
    assert "Stopped by Ctrl-C" in (tmp_path / "bench.md").read_text()


def test_a_limit_that_no_patch_fits_into(command):
    """What was measured before is shown all the same."""
    code, out, err = command("--tasks", "1", "--edits", "0", "--repeats", "1", "--max-tokens", "5")
    assert code == 2
    assert "the limit of 5" in err
    assert "one pass, ms" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--tasks", "0", "--edits", "0"), "nothing to measure"),
        (("--only", "fast"), "--only"),
        (("--repeats", "0"), "--repeats"),
        (("--out", __file__), "--out"),
    ],
)
def test_wrong_calls(command, arguments, says):
    code, out, err = command(*arguments)
    assert (code, out) == (2, "")
    assert says in err


def test_a_folder_that_cannot_be_made(command, tmp_path):
    (tmp_path / "file").write_text("")
    code, out, err = command(*SMALL, "--out", str(tmp_path / "file" / "in"))
    assert (code, out) == (2, "")
    assert "--out" in err
    assert "Traceback" not in err
