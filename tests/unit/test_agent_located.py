"""Level `located` in the real loop: what was read can be edited, in one place, and nothing else can."""

import subprocess
import sys

import pytest

from tests.agents import ScriptedAgent, call, patch_call

CODE = "def a():\n    return 1\n\n\ndef b():\n    return 1\n"
READ = call("read_file", path="m.py")
EDIT_B = patch_call("*** Update File: m.py\n@@\n def b():\n-    return 1\n+    return 2\n")


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "m.py").write_text(CODE)
    (folder / "other.py").write_text("x = 1\n")
    return folder


def agent(tiny_runtime, root, answers, **settings):
    return ScriptedAgent(tiny_runtime, root, answers, level="located", **settings)


def test_a_file_that_was_read_is_edited_in_one_place(tiny_runtime, root):
    run = agent(tiny_runtime, root, [READ, EDIT_B, "Done."])
    result = run.run()
    assert (result.exit_reason, result.changed_files) == ("done", ("m.py",))
    assert (root / "m.py").read_text() == CODE[:-2] + "2\n"
    assert result.usage.forced_tokens > 30


def test_a_file_put_before_the_model_counts_as_read(tiny_runtime, root):
    assert agent(tiny_runtime, root, [EDIT_B, "Done."]).run(files=["m.py"]).changed_files == ("m.py",)


def test_without_a_reading_there_is_nothing_to_edit(tiny_runtime, root):
    run = agent(tiny_runtime, root, [EDIT_B, "Done."], max_tokens=120)
    result = run.run()
    # The wish to update is not on offer: what comes out is a new file, or nothing that is run.
    assert (root / "m.py").read_text() == CODE
    assert (root / "other.py").read_text() == "x = 1\n"
    assert "file_not_found" not in result.failures


def test_an_ambiguous_line_is_not_enough(tiny_runtime, root):
    both = patch_call("*** Update File: m.py\n@@\n-    return 1\n+    return 2\n")
    run = agent(tiny_runtime, root, [READ, both, "Done."], max_tokens=120)
    result = run.run()
    assert "ambiguous" not in result.failures
    assert (root / "m.py").read_text().count("return 1") >= 1


def test_the_runs_own_patch_refreshes_what_was_read(tiny_runtime, root):
    again = patch_call("*** Update File: m.py\n@@\n-    return 2\n+    return 3\n")
    run = agent(tiny_runtime, root, [READ, EDIT_B, again, "Done."])
    assert run.run().exit_reason == "done"
    assert (root / "m.py").read_text() == CODE[:-2] + "3\n"


def test_a_change_from_outside_needs_a_new_read(tiny_runtime, root):
    change = call("exec_command", command="echo '# end' >> m.py")
    stale = patch_call("*** Update File: m.py\n@@\n-def b():\n+def c():\n")
    run = agent(tiny_runtime, root, [READ, change, stale, READ, stale, "Done."], max_tokens=80)
    run.run()
    assert "changed_on_disk" not in {event.get("error_kind") for event in run.events}
    assert "def c():" in (root / "m.py").read_text()


def test_what_has_to_be_read_again_is_said(tiny_runtime, root):
    change = call("exec_command", command="echo '# end' >> m.py")
    run = agent(tiny_runtime, root, [READ, change, "Done."])
    run.run()
    assert "no longer holds" in run.prompt_text(2)
    assert "m.py" in run.prompt_text(2).rpartition("no longer holds")[0].rpartition("What you read")[2]


def test_what_the_run_itself_took_away_needs_no_word(tiny_runtime, root):
    run = agent(tiny_runtime, root, [READ, patch_call("*** Delete File: m.py\n"), "Done."])
    assert run.run().changed_files == ("m.py",)
    assert "no longer holds" not in run.prompt_text(2)


def test_copied_lines_are_no_loop(tiny_runtime, root):
    (root / "t.py").write_text("T = [\n" + "    0,\n" * 60 + "]\n")
    body = "*** Update File: t.py\n@@\n T = [\n" + "     0,\n" * 30 + "+    1,\n"
    run = agent(
        tiny_runtime, root, [call("read_file", path="t.py"), patch_call(body), "Done."], max_tokens=600
    )
    assert run.run().changed_files == ("t.py",)
    assert (root / "t.py").read_text().index("1") == len("T = [\n" + "    0,\n" * 30 + "    ")


def test_a_new_file_is_not_written_over_an_old_one(tiny_runtime, root):
    run = agent(tiny_runtime, root, [patch_call("*** Add File: other.py\n+y = 2\n"), "Done."])
    result = run.run()
    assert (root / "other.py").read_text() == "x = 1\n"
    assert "exists" not in result.failures


def test_an_edit_that_changes_nothing_is_told_so(tiny_runtime, root):
    same = patch_call("*** Update File: m.py\n@@\n-def b():\n+def b():\n")
    run = agent(tiny_runtime, root, [READ, same, "Done."])
    assert run.run().failures == {"no_change": 1}
    assert "error" in run.prompt_text(2)


def test_the_prompt_shows_no_header_that_the_grammar_refuses(tiny_runtime, root):
    run = agent(tiny_runtime, root, ["Done."])
    run.run()
    assert "@@ def" not in run.prompt_text(0)
    plain = ScriptedAgent(tiny_runtime, root, ["Done."], level="grammar")
    plain.run()
    assert "@@ def" in plain.prompt_text(0)


def test_generate_edit_writes_a_patch_that_git_like_apply_takes(tiny_runtime, root, monkeypatch, capsys):
    import copy

    from constrained_agent.cli import generate as module
    from constrained_agent.cli.app import run
    from tests.fakes import ScriptedModel

    patch = (
        "*** Begin Patch\n*** Update File: m.py\n@@\n def b():\n-    return 1\n+    return 2\n*** End Patch"
    )
    runtime = copy.copy(tiny_runtime)
    runtime.session = ScriptedModel(tiny_runtime.tokenizer, tiny_runtime.session.logit_width, [patch])
    monkeypatch.setattr(module, "load_runtime", lambda name, draft: runtime)
    monkeypatch.chdir(root)
    assert run(["generate", "--edit", "m.py", "--prompt", "Mend b.", "--temperature", "0"]) == 0
    written = capsys.readouterr().out
    assert written.strip() == patch
    assert "def b():" in runtime.tokenizer.decode(runtime.session.prompts[0])
    done = subprocess.run(
        [sys.executable, "-m", "constrained_agent", "patch", "-"],
        input=written,
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (root / "m.py").read_text() == CODE[:-2] + "2\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--edit", "nope.py"], "--edit nope.py"),
        (["--edit", "m.py", "--regex", "a"], "contradict"),
        (["--edit", "m.py", "--think"], "--think does not go with --edit"),
        (["--max-added-lines", "3"], "--max-added-lines needs --edit"),
    ],
)
def test_wrong_uses_of_edit(root, monkeypatch, capsys, arguments, message):
    from constrained_agent.cli.app import run

    monkeypatch.chdir(root)
    assert run(["generate", "--prompt", "x", *arguments]) == 2
    assert message in capsys.readouterr().err
