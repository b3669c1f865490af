"""A conversation on a terminal: typing while it works, questions, Ctrl-C, commands. The model's words are scripted."""

import json
import os
import signal
import stat
import sys
from pathlib import Path

import pytest

from tests.agents import call, patch_call
from tests.terminals import OnTerminal

PROJECT = Path(__file__).parents[2]
ONE_TO_TWO = patch_call("*** Update File: f.txt\n@@\n-one\n+two\n")
WAITS = call("exec_command", command="touch started; while [ ! -e go ]; do sleep 0.05; done")
CTRL_C, CTRL_D, CTRL_J, ALT_ENTER, UP = "\x03", "\x04", "\n", "\x1b\r", "\x1b[A"
ERASE_LINE = "\x15\x7f"  # to the start of the line, and the end of the line before


@pytest.fixture
def start(root, tmp_path, tiny_qwen3_dir):
    """Starts the program with a model that gives these answers, and waits until it asks for a task."""
    running = []

    def go(answers, *arguments, first="task:", stderr=None, **env):
        program = [sys.executable, str(PROJECT / "tests" / "scripted_program.py"), str(tiny_qwen3_dir)]
        given = ["--temperature", "0", "--transcript", str(tmp_path / "t.jsonl"), *arguments]
        terminal = OnTerminal(
            [*program, json.dumps(answers), *given],
            cwd=root,
            env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "PYTHONPATH": str(PROJECT), **env},
            stderr=stderr,
        )
        running.append(terminal)
        terminal.expect(first)
        return terminal

    yield go
    for terminal in running:
        terminal.close()


def slow(text, folder):
    """An answer that comes when FOLDER/go is there."""
    return {"wait_for": str(folder / "go"), "text": text}


def is_running(pid):
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (OSError, IndexError):
        return False


def events(tmp_path, kind):
    lines = (tmp_path / "t.jsonl").read_text(encoding="utf-8").splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == kind]


def test_a_whole_conversation(start, root, tmp_path):
    """Question, answer, a word and a task meanwhile, commands, a pasted task, what is remembered, the end."""
    terminal = start([ONE_TO_TWO, WAITS, "First.", "Second.", "Third."], "--file", "f.txt")
    terminal.type("Change it.\r")
    terminal.expect("task: Change it.", "turn 1", "+two", "writes: 'touch started'", "run it? [y/N]:")
    terminal.type("why though\r")
    terminal.expect("that is no answer")
    terminal.type("y\r")
    terminal.wait_for((root / "started").exists, "the command was not started")
    terminal.type("Mind the tabs.\r> Do the next thing.\r/undo\r/tokens\r")
    terminal.expect("message: Mind the tabs.", "message: > Do the next thing.", "message: /tokens")
    terminal.type("half a li")
    (root / "go").touch()
    terminal.expect("/undo has to wait", "task_and_files", "in all: ")
    terminal.expect("(to the model) why though", "(to the model) Mind the tabs.", "turn 3", "First.")
    terminal.expect("done: ", "task: Do the next thing.", "turn 1", "Second.", "done: ")
    terminal.type("ne" + CTRL_J + "and another" + ALT_ENTER + "one more")
    terminal.paste("\rpasted\rlines")
    terminal.type("\r")
    terminal.expect("task: half a line", "and another", "one more", "pasted", "lines", "Third.", "done: ")
    terminal.type("/diff\r/files\r/undo\r/diff\r/nonsense\r")
    terminal.expect("-one", "+two", "read, may be edited:", "f.txt", "the patch is taken back", "+one")
    terminal.expect("no patch changed anything", "there is no command /nonsense")
    terminal.type(CTRL_D)
    assert terminal.ended() == 0
    assert terminal.is_cooked()
    assert (root / "f.txt").read_text() == "one\n"
    tasks = [event["task"] for event in events(tmp_path, "start")]
    assert tasks == [
        "Change it.",
        "Do the next thing.",
        "half a line\nand another\none more\npasted\nlines",
    ]
    notes = [(event["text"], event["by"]) for event in events(tmp_path, "note")]
    assert notes == [("why though", "person"), ("Mind the tabs.", "person")]
    history = tmp_path / "state" / "constrained-agent" / "history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert "+Change it.\n" in history.read_text()
    assert "+half a line\n+and another\n+one more\n+pasted\n+lines\n" in history.read_text()


def test_what_was_typed_last_time_and_a_very_narrow_terminal(start, tmp_path):
    history = tmp_path / "state" / "constrained-agent" / "history"
    history.parent.mkdir(parents=True)
    history.write_text("\n# then\n+Do it\n+in two lines.\n")
    history.chmod(0o644)
    terminal = start(["Done.", "Words."])
    terminal.type(UP + UP + "\r")
    terminal.expect("task: Do it", "in two lines.", "Done.", "done: ")
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    terminal.resize(3, 6)
    terminal.type("A task that is wider than this terminal.\r")
    terminal.expect("Words.", "done: ", "$")
    terminal.process.send_signal(signal.SIGTERM)  # between two tasks
    assert terminal.ended() == 130
    assert terminal.is_cooked()


def test_ctrl_c_stops_the_turn_and_the_conversation_goes_on(start, root, tmp_path):
    """Once while the model writes, while a command runs, and at a question; what was typed before is not sent."""
    answers = [
        slow("Never to be read in full.", root),
        WAITS,
        "Here.",
        call("exec_command", command="rm -r /x"),
    ]
    terminal = start([*answers, slow("Nor this one.", root)], "--yes")
    terminal.type("First.\r")
    terminal.expect("turn 1", "Never")
    terminal.type("More.\r> Later.\r")
    terminal.expect("message: More.", "message: > Later.")
    terminal.type(CTRL_C)
    terminal.expect("interrupted: tests not run", "More.", "> Later.")
    terminal.type(ERASE_LINE * 2 + "Second.\r")
    terminal.expect("task: Second.")
    terminal.wait_for((root / "started").exists, "the command was not started")
    terminal.type(CTRL_C + "Are you there?\r")
    terminal.expect("interrupted: tests not run", "task: Are you there?", "Here.", "done: ")
    terminal.type("Third.\r")
    terminal.expect("run it? [y/N]:")
    terminal.type(CTRL_C)
    terminal.expect("interrupted: tests not run")
    terminal.type("Fourth.\r")
    terminal.expect("turn 1", "Nor")
    terminal.type(CTRL_C + CTRL_C)
    assert terminal.ended() == 130
    assert terminal.is_cooked()
    reasons = [event["exit_reason"] for event in events(tmp_path, "end")]
    assert reasons == ["interrupted", "interrupted", "done", "interrupted", "interrupted"]
    assert [event["task"] for event in events(tmp_path, "start")][1] == "Second."
    assert not events(tmp_path, "note")


def test_ctrl_d_is_a_no_at_a_question_and_ctrl_c_twice_ends_it_when_idle(start, root):
    terminal = start([WAITS, "I see."])
    terminal.type("Go on.\r")
    terminal.expect("run it? [y/N]:")
    terminal.type(CTRL_D)
    terminal.expect("the person refused this exec_command call", "I see.", "done: ")
    terminal.type("x" + CTRL_C)
    terminal.expect("Ctrl-C once more, or Ctrl-D, ends the program")
    terminal.type(CTRL_C)
    assert terminal.ended() == 130
    assert not (root / "started").exists()


def test_a_terminal_that_can_only_print(start, root):
    terminal = start([WAITS, "One.", "Two.", slow("Never to be read in full.", root)], TERM="dumb")
    terminal.type("/constraint\n")
    terminal.expect("constraint: located", "task:")
    terminal.type("Go.\n")
    terminal.expect("run it? [y/N]:")
    terminal.type("maybe\n")
    terminal.expect("that is no answer", "run it? [y/N]:")
    terminal.type("y\n")
    terminal.wait_for((root / "started").exists, "the command was not started")
    terminal.type("Mind the tabs.\n> Later.\n")
    (root / "go").touch()
    terminal.expect("(to the model) maybe", "(to the model) Mind the tabs.", "One.", "task: Later.", "Two.")
    terminal.expect("task:")
    (root / "go").unlink()
    terminal.type("Third.\n")
    terminal.expect("turn 1", "Never")
    terminal.type(CTRL_C)
    terminal.expect("interrupted: ", "task:")
    terminal.type(CTRL_D)
    assert terminal.ended() == 0


def test_stderr_that_is_no_terminal(start, root, tmp_path):
    """Results come to the terminal, all else goes where stderr goes; nobody can be asked there."""
    with open(tmp_path / "err", "w+") as err:
        terminal = start([ONE_TO_TWO, "Done."], "--file", "f.txt", first="", stderr=err)
        terminal.type("Change it.\n")
        terminal.expect("-one", "+two", "Done.")
        terminal.type(CTRL_D)
        assert terminal.ended() == 0
        err.seek(0)
        said = err.read()
    assert "commands are off" in said
    assert "task: " in said
    assert "\x1b" not in said


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_a_terminal_that_is_closed_ends_the_program_and_its_command(start, root, term):
    terminal = start(
        [call("exec_command", command="touch started; sleep 600 & echo $! > pid; wait")], "--yes", TERM=term
    )
    terminal.type("Go.\r" if term == "xterm" else "Go.\n")
    terminal.wait_for((root / "pid").exists, "the command was not started")
    terminal.hang_up()
    assert terminal.process.wait(timeout=60) != 0
    assert not is_running(int((root / "pid").read_text()))


def test_the_program_itself_over_real_weights(root, tmp_path, tiny_qwen3_dir):
    """Random weights write for ever: Ctrl-C comes into the decode loop of the real session."""
    command = [sys.executable, "-m", "constrained_agent", "--model", str(tiny_qwen3_dir), "--no-exec"]
    terminal = OnTerminal(
        [*command, "--constraint", "off", "--max-tokens", "30000", "--temperature", "2", "--top-k", "0"],
        cwd=root,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "PYTHONPATH": str(PROJECT)},
    )
    try:
        terminal.expect("task:")
        terminal.type("/help\r")
        terminal.expect("/constraint", "goes into its next turn")
        terminal.type("Write.\r")
        terminal.expect("turn 1")
        at = len(terminal.text)
        terminal.wait_for(lambda: len(terminal.text) > at + 500, "nothing is written")
        terminal.type(CTRL_C)
        terminal.expect("interrupted: tests not run", "task:")
        terminal.type("/tokens\r")
        terminal.expect("answer", "in all: ")
        terminal.type(CTRL_D)
        assert terminal.ended() == 0
        assert "Traceback" not in terminal.text
    finally:
        terminal.close()
