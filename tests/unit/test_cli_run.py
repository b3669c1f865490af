"""`run` on the command line, over a scripted model."""

import copy
import json

import pytest

from constrained_agent.cli import run as module
from constrained_agent.cli.app import run
from tests.agents import call, patch_call
from tests.fakes import ScriptedModel

ONE_TO_TWO = patch_call("*** Update File: f.txt\n@@\n-one\n+two\n")


@pytest.fixture
def repo(tmp_path):
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "f.txt").write_text("one\n")
    return folder


@pytest.fixture
def command(tiny_runtime, repo, monkeypatch, capsys):
    """Runs a command line with a model that gives these answers; returns (exit code, stdout, stderr)."""

    def go(answers, *arguments):
        runtime = copy.copy(tiny_runtime)
        runtime.session = ScriptedModel(tiny_runtime.tokenizer, tiny_runtime.session.logit_width, answers)
        monkeypatch.setattr(module, "load_runtime", lambda name, draft: runtime)
        code = run(["run", "--repo", str(repo), "--temperature", "0", *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return go


def test_prints_diff_and_answer_on_stdout_and_the_rest_on_stderr(command):
    code, out, err = command([ONE_TO_TWO, "Done."], "Change it.", "--file", "f.txt")
    assert code == 0
    assert out.endswith("-one\n+two\nDone.\n")
    assert "apply_patch" in err
    assert "done: tests not run; changed files: f.txt" in err


def test_json_is_one_line(command):
    code, out, _ = command(
        [ONE_TO_TWO, "Done."],
        "Change it.",
        *("--file", "f.txt", "--json", "--test-command", "grep -q two f.txt"),
    )
    result = json.loads(out)
    assert (code, result["exit_reason"], result["tests_passed"]) == (0, "done", True)
    assert set(result["usage"]) == {
        "prompt_tokens",
        "reused_tokens",
        "generated_tokens",
        "forced_tokens",
        "model_steps",
    }


def test_failing_tests_fail_the_run(command):
    code, _, err = command(["Done."] * 5, "Change it.", "--test-command", "false")
    assert code == 1
    assert "tests failed" in err


def test_read_only_and_no_exec(command, repo):
    code, _, err = command(["I only looked."], "Look.", "--read-only")
    assert (code, "commands are off" in err) == (0, False)
    code, _, err = command([], "x", "--read-only", "--first-tool", "apply_patch")
    assert code == 2
    assert "not on offer" in err
    assert (repo / "f.txt").read_text() == "one\n"


def test_without_a_terminal_commands_are_off_and_said_to_be(command):
    code, _, err = command(["ok"], "x")
    assert code == 0
    assert "commands are off" in err
    code, _, err = command([call("exec_command", command="echo hi"), "ok"], "x", "--yes")
    assert code == 0
    assert "commands are off" not in err
    assert "exit code 0" in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "a TASK is needed"),
        (("x", "--file", "nope.txt"), "--file nope.txt"),
        (("x", "--file", "../secret"), "--file ../secret"),
        (("x", "--first-tool", "jump"), "there are:"),
        (("x", "--transcript", "/nowhere/t.jsonl"), "--transcript"),
        (("x", "--temperature", "nan"), "--temperature"),
        (("x", "--max-turns", "-1"), "--max-turns"),
        (("x", "--stop-hook", " "), "--stop-hook is empty"),
        (("x", "--constraint", "tight"), "--constraint"),
        (("",), "TASK is empty"),
        (("x", "--test-command", " "), "--test-command"),
        (("x", "--time-limit-s", "nan"), "--time-limit-s"),
        (("x", "--first-tool", "apply_patch", "--constraint", "off"), "--constraint off"),
    ],
)
def test_wrong_calls_are_told_before_a_model_is_loaded(command, monkeypatch, arguments, says):
    code, out, err = command([], *arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert "Traceback" not in err


def test_too_little_memory_is_told_before_a_download(monkeypatch, capsys):
    from constrained_agent.model import fetch, memory

    monkeypatch.setattr(memory, "available_bytes", lambda: 2_000_000_000)
    monkeypatch.setattr(fetch, "fetch", lambda *args, **more: pytest.fail("fetched"))
    code = run(["run", "x", "--model", "qwen3-8b-4bit"])
    assert code == 2
    assert "needs about 6.3 GB of memory" in capsys.readouterr().err


class TestTheQuestion:
    def ask(self, monkeypatch, error):
        import click

        def confirm(*args, **more):
            try:
                raise error
            except type(error):
                raise click.Abort from None

        monkeypatch.setattr(module.click, "confirm", confirm)
        return module._ask(type("Spec", (), {"name": "exec_command"}), {"command": "ls"})

    def test_end_of_input_is_a_no(self, monkeypatch):
        assert self.ask(monkeypatch, EOFError()) is False

    def test_ctrl_c_interrupts_the_run(self, monkeypatch):
        with pytest.raises(KeyboardInterrupt):
            self.ask(monkeypatch, KeyboardInterrupt())


def test_a_command_cannot_redraw_the_question(monkeypatch):
    asked = []
    monkeypatch.setattr(module.click, "confirm", lambda text, **more: asked.append(text))
    spec = type("Spec", (), {"name": "exec_command"})
    module._ask(spec, {"command": "rm -rf ~ #\r\x1b[2Krun exec_command: ls\n", "timeout_s": 5})
    assert asked == [r"run exec_command: command='rm -rf ~ #\r\x1b[2Krun exec_command: ls\n', timeout_s=5"]


def test_errors_have_their_json_too(command, capsys):
    code, out, err = command([], "x", "--file", "nope.txt", "--json")
    assert code == 2
    assert json.loads(out) == {"ok": False, "error": {"message": err.removeprefix("error: ").strip()}}


def test_a_patch_that_breaks_a_file_is_refused_on_demand(command, repo):
    (repo / "a.py").write_text("x = 1\n")
    patch = patch_call("*** Update File: a.py\n@@\n-x = 1\n+x = (1\n")
    for flags, changed, text in ((("--refuse-broken",), [], "x = 1\n"), ((), ["a.py"], "x = (1\n")):
        _, out, _ = command([patch, "Done."], "x", "--constraint", "grammar", "--json", *flags)
        assert json.loads(out.splitlines()[-1])["changed_files"] == changed
        assert (repo / "a.py").read_text() == text


def test_tests_that_pass_by_themselves_do_not_make_an_unfinished_run_a_success(command):
    code, out, _ = command(
        [call("list_dir", path="."), "I looked."], "x", "--max-turns", "1", "--test-command", "true", "--json"
    )
    assert (code, json.loads(out)["exit_reason"], json.loads(out)["tests_passed"]) == (1, "max_turns", True)


class TestPermissions:
    @pytest.fixture
    def home(self, tmp_path, monkeypatch):
        """A person's own file of rules."""
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
        file = tmp_path / "config" / "constrained-agent" / "config.toml"
        file.parent.mkdir(parents=True)
        return file

    def test_yes_does_not_let_a_push_or_a_loss_through(self, command, home, repo):
        calls = [
            call("exec_command", command=one)
            for one in ("git push origin main", "r'm' -rf ..", "echo hi > new.txt")
        ]
        code, _, err = command([*calls, "ok"], "x", "--yes")
        assert code == 0
        assert "'git push origin main' (remote-changing: it sends commits to another repository)" in err
        assert "(dangerous: it deletes the repository or what it lies in)" in err
        assert (repo / "new.txt").read_text() == "hi\n"

    def test_rules_of_the_home_switch_commands_on_and_let_variables_through(self, command, home, monkeypatch):
        monkeypatch.setenv("MY_TOKEN", "tok-1")
        monkeypatch.setenv("MY_SECRET", "sec-1")
        home.write_text('[permissions]\nallow = ["printenv*"]\n[environment]\npass = ["MY_TOKEN"]\n')
        calls = [
            call("exec_command", command=one)
            for one in ("printenv MY_TOKEN || true", "printenv MY_SECRET; touch a")
        ]
        _, _, err = command([*calls, "ok"], "x")
        assert "commands are off" not in err
        assert "tok-1" in err
        assert "sec-1" not in err
        assert "refused: 'touch a' (writes: it writes a)" in err

    def test_rules_of_the_repository_are_shown_and_switch_nothing_on(self, command, home, repo):
        (repo / ".constrained-agent.toml").write_text('[permissions]\nallow = ["touch*"]\n')
        code, _, err = command(["ok"], "x")
        assert code == 0
        assert ".constrained-agent.toml lets commands run without a question: 'touch*'" in err
        assert "commands are off" in err

    def test_wrong_rules_are_told_before_a_model_is_loaded(self, command, home, repo, monkeypatch):
        home.write_text("[permissions]\nalow = []\n")
        code, out, err = command([], "x")
        assert (code, out) == (2, "")
        assert f"{home}:2: permissions.alow is not known; there are allow, ask, deny" in err

    def test_the_question_shows_class_and_reason(self, monkeypatch):
        from constrained_agent.tools.commands import classify

        asked = []
        monkeypatch.setattr(module.click, "confirm", lambda text, **more: asked.append(text))
        spec = type("Spec", (), {"name": "exec_command"})
        line = "make && git push 'a b' | cat"
        module._ask(spec, {"command": line}, classify(line))
        why = "remote-changing: \"git push 'a b'\" sends commits to another repository"
        assert asked == [f"{why}\nrun exec_command: command={line!r}"]

    def test_nor_can_a_command_redraw_its_reason(self, monkeypatch):
        from constrained_agent.tools.commands import classify

        asked = []
        monkeypatch.setattr(module.click, "confirm", lambda text, **more: asked.append(text))
        line = "cat '/\r\x1b[2Kharmless'; rm '/\x1b[1A'"
        module._ask(type("Spec", (), {"name": "exec_command"}), {"command": line}, classify(line))
        assert len(asked[0].splitlines()) == 2
        assert all(one.isprintable() for one in asked[0].splitlines())
