"""The comparisons that the README tells of: their records, judged again, come to what is written there."""

import json
from pathlib import Path

import pytest

from constrained_agent.cli.app import run
from constrained_agent.evals.compare import report
from constrained_agent.evals.compare.records import Folder

ROOT = Path(__file__).parent.parent.parent
STORED = ROOT / "results" / "smollm2-135m"
NAMES = ("patches", "calls", "carriers")


@pytest.mark.parametrize("name", NAMES)
def test_judged_again_they_come_out_as_they_are_stored(name, capsys):
    assert run(["compare", "--rejudge", str(STORED / name), "--json"]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told == {"records": len(Folder(STORED / name).load()), "changed": [], "disagreements": 0}


@pytest.mark.parametrize("name", NAMES)
def test_the_stored_report_is_that_of_the_records(name, tmp_path):
    folder = Folder(STORED / name)
    _, text = report.write(tmp_path, folder.facts(), list(folder.load().values()))
    assert (STORED / name / "report.md").read_text(encoding="utf-8") == text
    assert "Not finished" not in text


@pytest.mark.parametrize("name", NAMES)
def test_no_promise_of_a_constraint_was_broken(name):
    figures = json.loads((STORED / name / "report.json").read_text(encoding="utf-8"))
    promises = {
        arm: found["promises"]["broken"]
        for kind in figures["kinds"].values()
        for arm, found in kind["arms"].items()
        if found["promises"]
    }
    assert promises
    assert all(n == 0 for broken in promises.values() for n in broken.values()), promises


def test_the_readme_tells_their_figures():
    """Each row of its tables is one of a report, cell by cell."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in NAMES:
        text = (STORED / name / "report.md").read_text(encoding="utf-8")
        table = text[text.index("### Rates of all answers") :].split("\n\n")[1]
        assert table in readme, name
