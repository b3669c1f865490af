"""`compare` as people call it: stopped and gone on with, in parts, judged again, and called wrongly."""

import json
import os
import random
import re
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from functools import partial

import pytest

from constrained_agent.cli.app import run
from constrained_agent.evals.compare.records import Folder, same

ITEMS = ["--tasks", "dateparse,seedbank", "--calls", "0", "--no-own-calls", "--samples", "2"]
WHAT = [*ITEMS, "--max-tokens", "40", "--temperature", "0.7"]
"""A model of chance says nothing that makes sense, but it says it twice."""

_OF_A_RECORD = re.compile(r"\d+/\d+ ")


@contextmanager
def started(*arguments):
    """A process that does not outlive the block."""
    command = [sys.executable, "-m", "constrained_agent", "compare", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "encoding": "utf-8"}
    # Threads of a BLAS wait for each other, on a busy machine most of the time.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    # A shell's background jobs ignore Ctrl-C, and so would what they start.
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(command, env=environment, preexec_fn=heard, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def done(*arguments):
    with started(*arguments) as process:
        out, err = process.communicate()
    return process.returncode, out, err


def stopped(with_signal, n_records, rng, *arguments):
    """Stop a comparison some time after it has told of so many records: exit code and the rest of stderr."""
    with started(*arguments) as process:
        for line in process.stderr:
            n_records -= _OF_A_RECORD.match(line) is not None
            if n_records <= 0:
                break
        with suppress(subprocess.TimeoutExpired):
            process.wait(rng.uniform(0, 0.3))
        assert process.poll() is None, "it ended too soon"
        process.send_signal(with_signal)
        _, err = process.communicate()
    return process.returncode, err


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("compare")


@pytest.fixture(scope="module")
def in_parts(tiny_qwen3_dir, folder):
    """Two uninterrupted halves, merged."""
    model = ["--model", tiny_qwen3_dir]
    halves = [folder / "1", folder / "2"]
    for n, half in enumerate(halves, 1):
        code, out, err = done(*model, *WHAT, "--shard", f"{n}/2", "--out", half)
        assert code == 0, out + err
    code, out, err = done("merge", *halves, "--out", folder / "merged", "--json")
    assert code == 0, err
    return Folder(folder / "merged"), json.loads(out.splitlines()[-1])


def test_parts_are_joined(in_parts):
    merged, told = in_parts
    records = merged.load()
    assert told["n_records"] == told["n_items"] == told["n_all_items"] == len(records) == 12
    found = told["kinds"]["patch"]["arms"]
    assert {name: arm["n"] for name, arm in found.items()} == {"off": 4, "grammar": 4, "located": 4}
    for name in ("grammar", "located"):
        assert set(found[name]["promises"]["broken"].values()) == {0}, "whatever the limit cuts"
    for name in ("report.md", "report.html", "report.json"):
        assert (merged.path / name).stat().st_size > 1000


def test_killed_at_random_and_gone_on_with_it_comes_to_the_same(tiny_qwen3_dir, folder, in_parts):
    whole = in_parts[0].load()
    rng = random.Random(7)
    into = folder / "killed"
    arguments = ["--model", tiny_qwen3_dir, *WHAT, "--out", into, "--resume"]
    for with_signal in (signal.SIGKILL, signal.SIGINT, signal.SIGKILL):
        code, err = stopped(with_signal, rng.randrange(1, 4), rng, *arguments)
        if with_signal == signal.SIGINT:
            assert code == 130
            assert f"stopped; what is done is in {into}: --resume goes on with it" in err
        else:
            assert code == -signal.SIGKILL
    assert 3 <= len(Folder(into).load()) < len(whole)
    file = into / "records.jsonl"
    file.write_bytes(file.read_bytes()[:-20])  # the kill came while a line was being written
    code, out, err = done(*arguments)
    assert code == 0, err
    assert "Not finished" not in out
    found = Folder(into).load()
    assert set(found) == set(whole)
    assert [id_ for id_ in whole if not same(found[id_], whole[id_])] == []
    lines = file.read_bytes().splitlines()
    assert len(lines) == len(whole), "nothing was written twice"


def test_judged_again_nothing_changes(in_parts, folder):
    merged, _ = in_parts
    code, out, err = done("--rejudge", merged.path, "--out", folder / "again", "--json")
    assert code == 0, err
    assert f"{len(merged.load())} records judged once more: 0 came out differently" in err
    assert json.loads(out.splitlines()[-1]) == {
        "records": len(merged.load()),
        "changed": [],
        "disagreements": 0,
    }
    again = Folder(folder / "again").load()
    assert all(same(one, again[id_]) for id_, one in merged.load().items())


def test_an_edited_record_is_found(in_parts, folder, capsys):
    merged, _ = in_parts
    edited = Folder(folder / "edited")
    edited.begin(merged.facts())
    text = (merged.path / "records.jsonl").read_text(encoding="utf-8")
    first = next(one for one in merged.load().values() if one.arm == "off")
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        if line["id"] == first.id:
            line["judgement"] |= {"outcome": "passed", "parses": True, "lands": True}
    (edited.path / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run(["compare", "--rejudge", str(edited.path)]) == 1
    err = capsys.readouterr().err
    assert f"{first.id}: was passed, is {first.judgement.outcome}" in err
    assert "1 came out differently" in err


def test_whole_runs(tiny_qwen3_dir, tmp_path, capsys):
    flags = ["--agentic", "--tasks", "dateparse", "--max-tokens", "40", "--temperature", "0.7"]
    arguments = ["--model", str(tiny_qwen3_dir), *flags]
    for name in ("1", "2"):
        assert run(["compare", *arguments, "--out", str(tmp_path / name)]) == 0
    assert "Whole runs" in capsys.readouterr().out
    one, two = (Folder(tmp_path / name).load() for name in ("1", "2"))
    assert sorted(one) == [f"run/dateparse/{arm}/0" for arm in ("grammar", "located", "off")]
    assert [id_ for id_ in one if not same(one[id_], two[id_])] == [], "it says the same twice"
    assert run(["compare", "--rejudge", str(tmp_path / "1"), "--out", str(tmp_path / "3"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told == {"records": 3, "changed": [], "disagreements": 0}
    assert run(["compare", "--rejudge", str(tmp_path / "3")]) == 0, "transcripts come along"


def edited(merged, path, **facts):
    """A copy of a comparison that says something else of itself."""
    folder = Folder(path)
    folder.begin({**merged.facts(), **facts})
    folder.rewrite(merged.load().values())
    return folder


def test_what_was_begun_with_other_versions_is_not_gone_on_with(tiny_qwen3_dir, in_parts, tmp_path, capsys):
    merged, _ = in_parts
    versions = {**merged.facts()["versions"], "llguidance": "0.1"}
    other = edited(merged, tmp_path / "other", versions=versions)
    arguments = ["--model", str(tiny_qwen3_dir), *WHAT, "--out", str(other.path), "--resume"]
    assert run(["compare", *arguments]) == 2
    assert "holds another comparison: versions is" in capsys.readouterr().err
    assert run(["compare", "merge", str(merged.path), str(other.path), "--out", str(tmp_path / "x")]) == 2
    assert "are not of one comparison: versions is" in capsys.readouterr().err


def test_another_commit_is_told_and_taken_down(tiny_qwen3_dir, in_parts, tmp_path, capsys):
    merged, _ = in_parts
    [circumstances, _] = merged.facts()["circumstances"]
    old = {**circumstances, "commit": "0123abc", "dirty": False}
    facts = {"n_items": 12, "fingerprint": None}
    other = edited(merged, tmp_path / "other", circumstances=old, **facts)
    arguments = ["--model", str(tiny_qwen3_dir), *WHAT, "--out", str(other.path), "--resume"]
    assert run(["compare", *arguments]) == 2
    message = re.search(r"fingerprint is None there and '(\w+)' here", capsys.readouterr().err)
    other = edited(merged, tmp_path / "again", circumstances=old, **{**facts, "fingerprint": message[1]})
    arguments = ["--model", str(tiny_qwen3_dir), *WHAT, "--out", str(other.path), "--resume"]
    for _ in range(2):
        assert run(["compare", *arguments]) == 0
        err = capsys.readouterr().err
        assert "made by different programs (constrained-agent" in err
        assert "commit 0123abc; constrained-agent" in err
        assert len(other.facts()["circumstances"]) == 2
    assert other.load() == merged.load()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--arms", "off,odd"], "there is no arm 'odd'; the arms are: off, grammar, located"),
        (["--arms", ""], "no arm is named"),
        (["--tasks", ""], "no task is named; 'none' leaves them all out"),
        (["--tasks", "all,dateparse"], "'all' stands for itself"),
        (["--tasks", "dateparse,none"], "'none' stands for itself"),
        (["--rejudge", ".", "--samples", "2"], "--samples says nothing to --rejudge"),
        (["--tasks", "dateparse,odd"], "there is no task 'odd'"),
        (["--tasks", "none", "--no-own-calls"], "there is nothing to compare"),
        (["--tasks", "none", "--arms", "regex"], "there is nothing to compare"),
        (["--shard", "0/2"], "--shard 0/2: K/N is needed, such as 1/2"),
        (["--shard", "3/2"], "K/N is needed"),
        (["--shard", "1"], "K/N is needed"),
        (["--shard", "a/b"], "K/N is needed"),
        (["--shard", "-1/2"], "K/N is needed"),
        (["--tasks", "dateparse", "--no-own-calls", "--shard", "2/2"], "there are 1 parts at most"),
        (["--samples", "0"], "--samples"),
        (["--max-tokens", "0"], "--max-tokens"),
        (["--temperature", "-1"], "--temperature"),
        (["--agentic", "--arms", "regex"], "no tools"),
    ],
)
def test_wrong_calls_are_told_before_a_model_is_loaded(flags, message, tmp_path, capsys):
    out = str(tmp_path / "out")
    assert (
        run(
            [
                "compare",
                *["--model", "/no/model", "--calls", "0"] * ("--rejudge" not in flags),
                "--out",
                out,
                *flags,
            ]
        )
        == 2
    )
    err = capsys.readouterr().err
    assert message in " ".join(err.split())
    assert "/no/model" not in err
    assert not (tmp_path / "out").exists()


def test_where_it_goes_is_asked_first(tmp_path, capsys):
    assert run(["compare", "--model", "/no/model", "--calls", "0"]) == 2
    assert "--out DIR is needed" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert run(["compare", "--model", "/no/model", "--calls", "0", "--out", str(tmp_path / "file")]) == 2
    assert "/no/model" not in capsys.readouterr().err


def test_a_folder_in_use_is_not_written_over(in_parts, capsys):
    merged, _ = in_parts
    before = {file: file.read_bytes() for file in merged.path.iterdir()}
    flags = ["--model", "/no/model", *WHAT, "--out", str(merged.path)]
    for arguments, message in (
        (flags, "holds a comparison already: --resume goes on with it"),
        ([*flags, "--resume", "--seed", "1"], "holds another comparison: seed is 0 there and 1 here"),
        ([*flags, "--resume", "--arms", "off"], "holds another comparison: arms is"),
        (["--rejudge", str(merged.path), "--out", str(merged.path)], "holds a comparison already"),
        (["merge", str(merged.path), "--out", str(merged.path)], "holds a comparison already"),
    ):
        assert run(["compare", *arguments]) == 2
        err = capsys.readouterr().err
        assert message in " ".join(err.split())
        assert "/no/model" not in err
    assert {file: file.read_bytes() for file in merged.path.iterdir()} == before


def test_wrong_parts(in_parts, folder, tmp_path, capsys):
    assert run(["compare", "merge", str(folder / "1")]) == 2
    assert "--out" in capsys.readouterr().err
    assert run(["compare", "merge", "--out", str(tmp_path / "x")]) == 2
    assert run(["compare", "merge", str(tmp_path), "--out", str(tmp_path / "x")]) == 2
    assert "there is no comparison in it" in capsys.readouterr().err
    assert run(["compare", "--rejudge", str(tmp_path)]) == 2
    assert "there is no comparison in it" in capsys.readouterr().err
