"""The parts of a conversation: lines, keys, interrupts, commands; and the loop, typed into by a test."""

import contextlib
import io
import os
import signal
import stat
import threading

import pytest
from prompt_toolkit.formatted_text import fragment_list_to_text
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from constrained_agent.agent.loop import Agent
from constrained_agent.agent.transcript import Transcript
from constrained_agent.cli.interactive import history as histories
from constrained_agent.cli.interactive import tables, typed
from constrained_agent.cli.interactive.above import MAX_LIVE_CHARS, Above
from constrained_agent.cli.interactive.commands import Commands
from constrained_agent.cli.interactive.interrupts import TWICE_S, Interrupts, Presses
from constrained_agent.cli.interactive.line_editor import LineEditor, last_rows
from constrained_agent.cli.interactive.open import terminal
from constrained_agent.cli.interactive.plain import PlainTerminal
from constrained_agent.cli.interactive.talk import HINT, Talk
from constrained_agent.cli.interactive.watched import Watched
from constrained_agent.tools.permissions import Policy
from constrained_agent.tools.registry import Tools
from tests.agents import ScriptedAgent, call, patch_call

ONE_TO_TWO = patch_call("*** Update File: f.txt\n@@\n-one\n+two\n")
ADD = patch_call("*** Add File: new.txt\n+new\n")


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("", ("nothing", "")),
        (" \n ", ("nothing", "")),
        (" Do it.\n now ", ("words", "Do it.\n now")),
        ("> Later.", ("later", "Later.")),
        (">", ("nothing", "")),
        ("/diff", ("command", "/diff")),
        ("//etc/hosts is wrong", ("words", "/etc/hosts is wrong")),
        ("see /etc > x", ("words", "see /etc > x")),
    ],
)
def test_what_a_line_is_for(text, read):
    assert typed.read(text) == read


def test_only_a_clear_yes_is_one():
    assert [typed.answered(text) for text in ("y", " YES ", "n", "No", "", "ye", "yy", "why")] == [
        *(True, True, False, False, False),
        *(None, None, None),
    ]


class TestPresses:
    def test_two_soon_after_each_other(self):
        presses = Presses()
        assert [presses.press(at, idle=False) for at in (10.0, 10 + TWICE_S, 10 + 2 * TWICE_S + 0.1)] == [
            *(False, True, False)
        ]

    def test_two_while_idle_however_late(self):
        presses = Presses()
        assert [presses.press(at, idle=True) for at in (1.0, 100.0)] == [False, True]

    def test_one_that_stopped_a_task_and_a_late_one_are_not_two(self):
        presses = Presses()
        assert [presses.press(1.0, idle=False), presses.press(9.0, idle=True)] == [False, False]

    def test_a_line_between_them(self):
        presses = Presses()
        presses.press(1.0, idle=True)
        presses.forget()
        assert not presses.press(1.5, idle=True)


class TestInterrupts:
    def test_while_idle_they_only_wake(self):
        woken = []
        interrupts = Interrupts(lambda: woken.append(True))
        with interrupts.held():
            signal.raise_signal(signal.SIGINT)
            assert (woken, interrupts.count, interrupts.ending) == ([True], 1, False)
            interrupts.pressed()
            assert (woken, interrupts.count, interrupts.ending) == ([True, True], 2, True)

    def test_while_working_they_raise(self):
        interrupts = Interrupts(lambda: None)
        with interrupts.held(), pytest.raises(KeyboardInterrupt), interrupts.raised():
            signal.raise_signal(signal.SIGINT)
        assert not interrupts.ending

    def test_a_termination_ends_and_comes_once(self):
        interrupts = Interrupts(lambda: None)
        with interrupts.held():
            with pytest.raises(KeyboardInterrupt), interrupts.raised():
                signal.raise_signal(signal.SIGTERM)
            with interrupts.raised():
                signal.raise_signal(signal.SIGHUP)
        assert interrupts.ending

    def test_handlers_come_back_and_what_is_ignored_stays_so(self):
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            mine = signal.getsignal(signal.SIGINT)
            with Interrupts(lambda: None).held():
                assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            assert signal.getsignal(signal.SIGINT) is mine
        finally:
            signal.signal(signal.SIGHUP, before)


class TestAbove:
    def above(self):
        return Above(io.TextIOWrapper(io.BytesIO(), "utf-8"), lambda: None)

    def test_whole_lines_are_handed_out_and_the_last_one_waits(self):
        above = self.above()
        above.write("a\nb\nc")
        above.write("d")
        above.flush()
        assert (above.taken(), above.live()) == ("a\nb\n", "cd")
        above.insert("between")
        above.write("\n")
        assert (above.taken(), above.live()) == ("between\ncd\n", "")
        above.write("rest")
        assert (above.rest(), above.rest()) == ("rest\n", "")

    def test_of_a_very_long_line_the_end_is_live(self):
        above = self.above()
        above.write("\x1b[2mx\x1b[0m" * MAX_LIVE_CHARS)
        assert len(above.live()) <= MAX_LIVE_CHARS
        assert above.live().startswith("\x1b[")

    def test_lines_of_several_writers_come_whole(self):
        above = self.above()
        writers = [
            threading.Thread(target=lambda n=n: [above.write(f"{n}{n}{n}\n") for _ in range(300)])
            for n in range(4)
        ]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert sorted(above.taken().split()) == sorted(f"{n}{n}{n}" for n in range(4) for _ in range(300))


def test_the_end_of_a_long_line_in_rows():
    assert fragment_list_to_text(last_rows("abcdefgh", 3, 2)) == "def\ngh"
    assert fragment_list_to_text(last_rows("a\x1b[2mb\x1b[0m", 10, 3)) == "ab"
    assert fragment_list_to_text(last_rows("宽宽宽", 3, 9)) == "宽\n宽\n宽"
    assert fragment_list_to_text(last_rows("a\tb", 20, 1)) == "a       b"
    assert last_rows("", 5, 3) == []


class TestHistory:
    @pytest.fixture(autouse=True)
    def state(self, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        self.file = tmp_path / "state" / "constrained-agent" / "history"

    def test_nobody_else_may_read_it_and_it_comes_back(self, root):
        first = histories.history(root)
        first.append_string("Do it\nin two lines.")
        first.append_string("half \ud800 of a pair")
        assert stat.S_IMODE(self.file.stat().st_mode) == 0o600
        self.file.chmod(0o666)
        assert list(histories.history(root).load_history_strings()) == [
            "half ? of a pair",
            "Do it\nin two lines.",
        ]
        assert stat.S_IMODE(self.file.stat().st_mode) == 0o600

    def test_a_file_that_is_gone_meanwhile_is_made_anew_as_private(self, root):
        kept = histories.history(root)
        self.file.unlink()
        kept.append_string("x")
        assert stat.S_IMODE(self.file.stat().st_mode) == 0o600

    def test_a_long_one_loses_its_older_half(self, root, monkeypatch):
        monkeypatch.setattr(histories, "MAX_BYTES", 2_000)
        first = histories.history(root)
        for n in range(100):
            first.append_string(f"line {n}")
        again = list(histories.history(root).load_history_strings())
        assert again[0] == "line 99"
        assert again == [f"line {n}" for n in range(99, 99 - len(again), -1)]
        assert len(again) < 40
        assert self.file.stat().st_size <= 1_000
        assert stat.S_IMODE(self.file.stat().st_mode) == 0o600

    def test_a_link_is_not_followed(self, root, tmp_path):
        self.file.parent.mkdir(parents=True)
        other = tmp_path / "other"
        other.write_text("")
        self.file.symlink_to(other)
        histories.history(root).append_string("secret")
        assert other.read_text() == ""

    def test_where_none_can_be_had_one_is_kept_in_memory(self, root, monkeypatch):
        def full(root):
            raise OSError

        monkeypatch.setattr(histories, "state_folder", full)
        kept = histories.history(root)
        kept.append_string("x")
        assert kept.get_strings() == ["x"]


class Heard:
    """Hands that write down what they are told."""

    def __init__(self):
        self.came = []
        self.news = threading.Event()

    def line(self, text, mode):
        self._add((mode, text))

    def interrupt(self):
        self._add("interrupt")

    def end(self):
        self._add("end")

    def _add(self, what):
        self.came.append(what)
        self.news.set()

    def wait(self, n):
        while len(self.came) < n:
            assert self.news.wait(20), f"only {self.came} came"
            self.news.clear()
        return self.came


class TestLineEditor:
    @pytest.fixture
    def editor(self, tmp_path):
        from prompt_toolkit.history import InMemoryHistory

        with create_pipe_input() as keyboard, open(tmp_path / "screen", "w+") as real:
            self.screen = real
            self.history = InMemoryHistory()
            made = LineEditor(self.history, keyboard=keyboard, screen=DummyOutput(), real=real)
            made.type = keyboard.send_text
            yield made

    def test_lines_of_several_lines_and_pastes(self, editor):
        heard = Heard()
        with editor.open(heard):
            editor.type("one\ntwo\x1b\rthree\r")
            editor.type("\x1b[200~a\rb\r\nc\n\x1b[201~\r")
            heard.wait(2)
            editor.ask_for("message")
            editor.type("x\r")
            heard.wait(3)
        assert heard.came == [("task", "one\ntwo\nthree"), ("task", "a\nb\nc\n"), ("message", "x")]

    def test_history_holds_lines_but_no_answers(self, editor):
        heard = Heard()
        with editor.open(heard):
            editor.type("/help\r")
            heard.wait(1)
            editor.ask_for("answer")
            editor.type("y\r\x04")
            heard.wait(3)
        assert heard.came == [("task", "/help"), ("answer", "y"), ("answer", "")]
        assert self.history.get_strings() == ["/help"]

    def test_ctrl_c_and_ctrl_d(self, editor):
        heard = Heard()
        with editor.open(heard):
            editor.type("gone\x03")
            heard.wait(1)
            editor.ask_for("message")
            editor.type("kept\x03 on\r")
            heard.wait(3)
            editor.type("\x04")  # nothing: only Ctrl-C stops a task
            editor.type("last\r")
            heard.wait(4)
            editor.ask_for("task")
            editor.type("\r\r\x04")
            heard.wait(5)
        assert heard.came == ["interrupt", "interrupt", ("message", "kept on"), ("message", "last"), "end"]

    def test_what_is_given_back_stands_before_what_is_typed(self, editor):
        heard = Heard()
        with editor.open(heard):
            editor.type("first\r")
            heard.wait(1)
            editor.give_back("unsent\nlines")
            editor.give_back("more")
            editor.type(" typed\r")
            heard.wait(2)
        assert heard.came[1] == ("task", "more\nunsent\nlines typed")

    def test_bytes_that_are_no_text_are_replaced(self, editor):
        heard = Heard()
        with editor.open(heard):
            editor._session.app.input.send_bytes(b"a\xffb\r")
            heard.wait(1)
        assert heard.came == [("task", "a\ufffdb")]

    def test_all_that_was_written_is_there_at_the_end(self, editor, capsys):
        import sys

        with editor.open(Heard()):
            for n in range(200):
                print(f"line {n}", file=sys.stderr)
            print("half", end="", file=sys.stderr)
        assert not isinstance(sys.stderr, Above)
        self.screen.seek(0)
        assert self.screen.read().endswith("half\n")


def test_which_terminal(root, monkeypatch):
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert isinstance(terminal(root), PlainTerminal)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(terminal(root), PlainTerminal)


class TypedInto:
    """A terminal that a test types into: lines for when the program asks for a task, an answer or nothing."""

    def __init__(self, *tasks):
        self.tasks, self.answers = list(tasks), []
        self.given_back, self.asked = [], []

    @contextlib.contextmanager
    def open(self, hands):
        self.hands = hands
        yield

    def ask_for(self, mode):
        self.asked.append(mode)
        if mode == "task":
            self.press(self.tasks.pop(0) if self.tasks else "end", "task")
        elif mode == "answer":
            self.press(self.answers.pop(0), "answer")

    def press(self, what, mode="message"):
        if what == "end":
            self.hands.end()
        elif what == "ctrl-c":
            self.hands.interrupt()
        else:
            self.hands.line(what, mode)

    def status(self, text):
        pass

    def give_back(self, text):
        self.given_back.append(text)


class Talking:
    """A talk with a real agent over a scripted model."""

    def __init__(self, tiny_runtime, root, answers, *tasks, **settings):
        self.terminal = TypedInto(*tasks)
        self.talk = Talk(self.terminal)
        workspace = Watched(root)
        tools = Tools(workspace, Policy(ask=self.talk.ask))
        scripted = ScriptedAgent(tiny_runtime, root, answers)
        self.scripted = scripted
        self.agent = Agent(
            scripted.runtime,
            tools,
            scripted.agent._settings,
            transcript=(transcript := Transcript(str(scripted._log))),
            watcher=settings.pop("watcher", None),
            inbox=self.talk,
        )
        self.commands = Commands(self.agent, tools, workspace, transcript, 10_000, **settings)
        self.results = []

    def run(self, *files):
        return self.talk.run(self.agent, self.commands, self.results.append, files)

    @property
    def reasons(self):
        return [result.exit_reason for result in self.results]


@pytest.fixture
def talking(tiny_runtime, root):
    return lambda *args, **more: Talking(tiny_runtime, root, *args, **more)


class Presser:
    """A watcher that types when the first call of a run starts, or a turn."""

    def __init__(self, on, *keys):
        self._on, self._keys = on, keys
        self.terminal = None

    def __getattr__(self, name):
        def event(*args):
            if name == self._on and self.terminal is not None:
                terminal, self.terminal = self.terminal, None
                for key in self._keys:
                    terminal.press(key)

        return event


def pressing(talking, on, keys, answers, *tasks):
    presser = Presser(on, *keys)
    made = talking(answers, *tasks, watcher=presser)
    presser.terminal = made.terminal
    return made


class TestTalk:
    def test_tasks_until_the_end(self, talking):
        made = talking(["One.", "Two."], "First.", "", "//Second.")
        assert made.run("f.txt") == 0
        assert made.reasons == ["done", "done"]
        assert "I have read f.txt" in made.scripted.prompt_text(0)
        assert made.scripted.prompt_text(1).count("I have read f.txt") == 1
        assert "/Second." in made.scripted.prompt_text(1)
        assert "//Second." not in made.scripted.prompt_text(1)

    def test_an_error_ends_the_task_and_not_the_talk(self, talking, capsys):
        made = talking(["One."], "First.", "Second.")
        made.scripted.model.context_limit = 10
        made.terminal.ask_for = _then(
            made.terminal.ask_for, lambda: setattr(made.scripted.model, "context_limit", 10**5), 2
        )
        assert made.run() == 0
        assert made.reasons == ["done"]
        assert "error: the prompt has" in capsys.readouterr().err

    def test_words_meanwhile_go_to_the_model_and_later_ones_wait(self, talking):
        keys = ["Mind the tabs.", "> Third.", "> Fourth.", ">"]
        made = pressing(talking, "call_started", keys, [ONE_TO_TWO, "One.", "Three.", "Four."], "First.")
        assert made.run() == 0
        assert made.reasons == ["done"] * 3
        assert "Mind the tabs." in made.scripted.prompt_text(1)
        tasks = [event["task"] for event in made.scripted.events if event["event"] == "start"]
        assert tasks == ["First.", "Third.", "Fourth."]

    def test_words_that_came_too_late_are_the_next_task_before_later_ones(self, talking):
        keys = ["Too late.", "> Later.", "By far."]
        made = pressing(talking, "turn_ended", keys, ["One.", "Two.", "Three."], "First.")
        made.agent._settings = _limited(made.agent._settings, max_turns=1)
        assert made.run() == 0
        tasks = [event["task"] for event in made.scripted.events if event["event"] == "start"]
        assert tasks == ["First.", "Too late.\nBy far.", "Later."]

    def test_an_interrupt_gives_back_what_was_typed_before_it(self, talking):
        keys = ["More.", "> Later.", "ctrl-c"]
        made = pressing(talking, "call_started", keys, [ONE_TO_TWO, "Two."], "First.")
        assert made.run() == 0
        assert made.reasons == ["interrupted"]
        assert made.terminal.given_back == ["More.\n> Later."]

    def test_commands_that_were_typed_before_it_are_run(self, talking, capsys):
        keys = ["More.", "/help", "> Later.", "ctrl-c"]
        made = pressing(talking, "call_started", keys, [ONE_TO_TWO, "Two."], "First.")
        assert made.run() == 0
        assert made.terminal.given_back == ["More.\n> Later."]
        assert capsys.readouterr().err.count("Alt-Enter") == 1

    def test_two_interrupts_end_it(self, talking, capsys):
        made = talking([], "ctrl-c", "/help", "ctrl-c", "ctrl-c", "never")
        assert made.run() == 130
        err = capsys.readouterr().err
        assert err.count(HINT) == 2
        assert made.terminal.tasks == ["never"]

    def test_exit_while_working_waits_until_all_is_done(self, talking):
        made = pressing(
            talking, "call_started", ["/exit", "> Second."], [ONE_TO_TWO, "One.", "Two."], "First.", "never"
        )
        assert made.run() == 0
        assert made.reasons == ["done", "done"]
        assert made.terminal.tasks == ["never"]

    def test_exit_when_idle_is_at_once(self, talking):
        made = talking([], "/exit", "never")
        assert made.run() == 0
        assert made.terminal.tasks == ["never"]


def _then(function, after, nth):
    calls = []

    def called(*args):
        calls.append(args)
        if len([mode for (mode,) in calls if mode == "task"]) == nth:
            after()
        return function(*args)

    return called


def _limited(settings, **limits):
    from dataclasses import replace

    return replace(settings, limits=replace(settings.limits, **limits))


class TestTheQuestion:
    COMMAND = call("exec_command", command="touch asked")

    def test_yes_no_and_what_is_neither(self, talking, root, capsys):
        made = talking([self.COMMAND, "Done."], "Go.")
        made.terminal.answers = ["why?", "maybe", "y"]
        assert made.run() == 0
        assert (root / "asked").exists()
        err = capsys.readouterr().err
        assert err.count("that is no answer") == 2
        assert "run exec_command: command='touch asked'" in err
        assert "why?" in made.scripted.prompt_text(1)

    @pytest.mark.parametrize("answer", ["n", "", "end"])
    def test_no(self, talking, root, answer):
        made = talking([self.COMMAND, "I see."], "Go.")
        made.terminal.answers = [answer]
        assert made.run() == 0
        assert not (root / "asked").exists()
        assert "the person refused" in made.scripted.prompt_text(1)

    def test_a_line_from_before_the_question_is_no_answer(self, talking, root):
        made = pressing(talking, "call_started", ["y"], [self.COMMAND, "I see."], "Go.")
        made.terminal.answers = ["n"]
        made.run()
        assert not (root / "asked").exists()

    def test_an_interrupt_stops_the_run(self, talking, root):
        made = talking([self.COMMAND, "Here."], "Go.", "Are you there?")
        made.terminal.answers = ["ctrl-c"]
        assert made.run() == 0
        assert made.reasons == ["interrupted", "done"]
        assert "interrupted by the person" in made.scripted.prompt_text(1)


class TestCommands:
    def said(self, made, capsys, *lines):
        made.terminal.tasks += lines
        assert made.run() == 0
        return capsys.readouterr().err

    def test_nothing_of_them_goes_to_the_model(self, talking, capsys):
        lines = ["/nonsense", "/diff x", "/diff", "/undo", "/files", "/constraint", "/help", "/x\ny"]
        err = self.said(made := talking([]), capsys, *lines)
        assert made.scripted.model.prompts == []
        assert "there is no command /nonsense; there are /undo, /diff, /files, /tokens" in err
        assert "/diff takes nothing after it" in err
        assert "no patch changed anything so far" in err
        assert "there is no patch to take back" in err
        assert "no file was read or changed so far" in err
        assert "constraint: grammar" in err
        assert "Alt-Enter" in err
        assert "there is no command /x;" in err

    def test_undo_tells_the_model_and_the_transcript(self, talking, root, capsys):
        made = talking([ONE_TO_TWO, "One.", "Two."], "First.", "/undo", "/undo", "Second.")
        err = self.said(made, capsys)
        assert (root / "f.txt").read_text() == "one\n"
        assert "the patch is taken back:" in err
        assert "-two\n+one\n" in err
        assert "there is no patch to take back" in err
        assert "I took your last patch back:\nupdate f.txt (+1 -1)" in made.scripted.prompt_text(2)
        kinds = [event["event"] for event in made.scripted.events]
        assert kinds == ["start", "turn", "result", "turn", "end", "result", "start", "turn", "end"]
        undone = made.scripted.events[5]
        assert (undone["call_id"], undone["ok"]) == ("undo", True)
        assert undone["data"]["undone"] == made.scripted.events[2]["call_id"]
        assert undone["changes"][0]["path"] == "f.txt"

    def test_diff_is_over_all_tasks(self, talking, capsys):
        made = talking([ADD, "One.", ONE_TO_TWO, "Two."], "First.", "Second.")
        made.terminal.tasks += ["/diff", "/undo", "/undo", "/diff"]
        err = self.said(made, capsys)
        both, _, last = err.partition("the patch is taken back")
        assert both.count("+++ b/f.txt") == 1
        assert both.count("+++ b/new.txt") == 1
        assert "no patch changed anything so far" in last

    def test_files_by_what_may_be_done_with_them(self, talking, root, capsys):
        (root / "g.txt").write_text("g\n")
        made = talking([call("read_file", path="g.txt"), ONE_TO_TWO, "One."], "First.")
        made.terminal.tasks.append("/files")
        made.talk.line = _then_line(made.talk.line, "/files", lambda: (root / "g.txt").write_text("other\n"))
        made.run("f.txt")
        err = capsys.readouterr().err
        assert "read, may be edited:\n  f.txt\n" in err
        assert "to be read again before they are edited:\n  g.txt\n" in err
        assert "changed:\n  f.txt\n" in err

    def test_tokens_sum_to_the_prompt(self, talking, capsys):
        made = talking(["One."], "First.", "/tokens")
        err = self.said(made, capsys)
        head = made.agent.conversation.prompt()[-1]
        assert head[0] == "answer_head"
        n = made.agent.conversation.n_tokens + head[1]
        assert f"{n:,}  in all: {n / 10_000:.0%} of the context of 10,000" in err
        assert "task" in err

    def test_constraint(self, talking, capsys):
        made = talking(["One."], "/constraint off", "/constraint tight", "First.")
        err = self.said(made, capsys)
        assert made.agent.level == "off"
        assert "constraint: off" in err
        assert "there is no level 'tight'; there are off, grammar, located" in err
        held = talking([], "/constraint off", held_to_tool=True)
        assert "there is no level 'off'; there are grammar, located" in self.said(held, capsys)

    def test_between_two_answers_all_but_undo(self, talking, root, capsys):
        keys = ["/undo", "/tokens", "/constraint off", "/nonsense"]
        made = pressing(talking, "call_started", keys, [ONE_TO_TWO, "One."], "First.")
        err = self.said(made, capsys)
        assert "/undo has to wait" in err
        assert "in all" in err
        assert "there is no command /nonsense" in err
        assert made.agent.level == "off"
        assert (root / "f.txt").read_text() == "two\n"
        assert len(made.scripted.model.prompts) == 2


def _then_line(function, text, before):
    def called(line, mode):
        if line == text:
            before()
        function(line, mode)

    return called


def test_tables():
    assert list(tables.files([], [], (), [])) == ["no file was read or changed so far"]
    assert list(tables.files(["a", "b"], ["a", "c"], {"c"}, ["a"])) == [
        *("read, may be edited:", "  a", "read, too much to be edited at once:", "  c"),
        *(
            "read, but not as they were then; to be read again before they are edited:",
            "  b",
            "changed:",
            "  a",
        ),
    ]
    assert list(tables.tokens([("task", 5), ("answer", 1_200)], 2_410)) == [
        *("    5  task", "1,200  answer", "1,205  in all: 50% of the context of 2,410")
    ]


def test_a_pipe_in_place_of_stdin_is_read_line_by_line(monkeypatch):
    ours, theirs = os.pipe()
    with open(ours, closefd=True) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        heard = Heard()
        with PlainTerminal().open(heard):
            os.write(theirs, "é\nha".encode())
            heard.wait(1)
            os.write(theirs, b"lf\n")
            heard.wait(2)
            os.close(theirs)
            heard.wait(3)
    assert heard.came == [("task", "é"), ("task", "half"), "end"]
