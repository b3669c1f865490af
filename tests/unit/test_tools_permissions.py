"""Who may do what: by effect, by what a command may do, by rules."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from constrained_agent.errors import ToolError
from constrained_agent.messages import Effect, ToolCall, ToolSpec
from constrained_agent.tools import permissions
from constrained_agent.tools.commands import Risk, Verdict, classify
from constrained_agent.tools.registry import Tools
from constrained_agent.tools.rules import Rules
from constrained_agent.tools.workspace import Workspace

Policy = partial(permissions.Policy, judge=classify)  # in this process: a hundred others would take a minute


LINES: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("test_tools_commands.toml").read_text(encoding="utf-8")
)


def _spec(effect: Effect) -> ToolSpec:
    return ToolSpec("tool", "", {}, effect)


class Person:
    """Answers every question alike and remembers what was asked."""

    def __init__(self, answer: bool) -> None:
        self.answer = answer
        self.asked: list[tuple[str, Risk]] = []

    def __call__(self, spec: ToolSpec, arguments: Mapping[str, Any], verdict: Verdict) -> bool:
        self.asked.append((arguments["command"], verdict.risk))
        return self.answer


YES, NO = Person(True), Person(False)

READ, WRITE, SEND, DANGER = "cat a", "touch a", "git push", "git push --force"


def _runs(policy: permissions.Policy, command: str) -> bool:
    try:
        policy.check(_spec("exec"), {"command": command})
    except ToolError:
        return False
    return True


@pytest.mark.parametrize(
    ("policy", "offered", "commands"),
    [
        (Policy(), "read write", ()),  # nobody to ask
        (Policy(ask=YES), "read write exec", (READ, WRITE, SEND, DANGER)),
        (Policy(ask=NO), "read write exec", (READ,)),
        (Policy(yes=True), "read write exec", (READ, WRITE)),
        (Policy(yes=True, ask=NO), "read write exec", (READ, WRITE)),
        (Policy(yes=True, ask=YES), "read write exec", (READ, WRITE, SEND, DANGER)),
        (Policy(no_exec=True, yes=True), "read write", ()),
        (Policy(read_only=True, yes=True), "read", ()),
        (Policy(read_only=True, no_exec=True, ask=YES), "read", ()),
        (Policy(rules=Rules(allow=("touch a",))), "read write exec", (READ, WRITE)),
        (Policy(rules=Rules(repository_allow=("touch a",))), "read write", ()),
    ],
)
def test_policies(policy: permissions.Policy, offered: str, commands: tuple[str, ...]) -> None:
    effects: tuple[Effect, ...] = ("read", "write", "exec")
    assert " ".join(effect for effect in effects if policy.offers(effect)) == offered
    for effect in ("read", "write"):
        if effect in offered.split():
            policy.check(_spec(effect), {})
        else:
            with pytest.raises(ToolError):
                policy.check(_spec(effect), {})
    assert tuple(one for one in (READ, WRITE, SEND, DANGER) if _runs(policy, one)) == commands


def test_yes_refuses_all_that_is_dangerous_or_changes_other_machines() -> None:
    """Every line that the classes are tested with; with a person there, every one is asked about."""
    person = Person(False)
    without, asking = Policy(yes=True), Policy(yes=True, ask=person)
    lines = [
        line
        for table in (LINES, LINES["nasty"])
        for name in ("dangerous", "remote_changing")
        for line in table[name]
    ]
    assert [line for line in lines if _runs(without, line) or _runs(asking, line)] == []
    assert [command for command, _ in person.asked] == lines
    assert len(lines) > 700


def test_yes_asks_about_nothing_that_is_everyday() -> None:
    lines = [line for name in ("everyday", "read_only", "writes") for line in LINES[name]]
    person = Person(False)
    assert [line for line in lines if not _runs(Policy(yes=True, ask=person), line)] == []
    assert person.asked == []


def test_the_question_holds_the_call_and_what_it_may_do() -> None:
    person = Person(True)
    policy = Policy(ask=person)
    policy.check(_spec("read"), {})
    policy.check(_spec("write"), {})
    policy.check(_spec("exec"), {"command": "ls && cat a | sort"})
    policy.check(_spec("exec"), {"command": "make"})
    policy.check(_spec("exec"), {"command": "make && git push"})
    assert person.asked == [("make", Risk.WRITES), ("make && git push", Risk.REMOTE_CHANGING)]


class TestRules:
    def test_deny_wins_over_ask_and_ask_over_allow(self) -> None:
        rules = Rules(allow=("make*",), ask=("make test*",), deny=("make test-all",))
        person = Person(True)
        policy = Policy(ask=person, rules=rules)
        assert [_runs(policy, one) for one in ("make", "make test", "make test-all")] == [True, True, False]
        assert [command for command, _ in person.asked] == ["make test"]

    def test_what_is_to_be_asked_is_asked_also_under_yes(self) -> None:
        rules = Rules(ask=("git commit*", "ls*"))
        assert not _runs(Policy(yes=True, rules=rules), "git commit -m x")
        assert not _runs(Policy(yes=True, ask=NO, rules=rules), "ls")
        assert _runs(Policy(yes=True, ask=YES, rules=rules), "git add a && git commit -m x")

    def test_each_simple_command_must_be_allowed(self) -> None:
        policy = Policy(ask=NO, rules=Rules(allow=("pytest*",)))
        for command in (
            "pytest -q",
            "cd src && pytest -q | tail -5",
            "timeout 60 pytest",
            "bash -c 'pytest -x'",
            "'py'test",
        ):
            assert _runs(policy, command), command
        for command in (
            "pytest; touch a",
            "pytest $(touch a)",
            "pytest > out.txt",
            "./pytest",
            "LD_PRELOAD=./x.so pytest",
            "PATH=.:$PATH; pytest",
            "pytest $X",
            "pytest | sh",
            "pytest () { touch a; }; pytest",
            "bash -c 'pytest; touch a'",
        ):
            assert not _runs(policy, command), command

    def test_a_redirection_can_be_allowed(self) -> None:
        policy = Policy(ask=NO, rules=Rules(allow=("pytest*", "> build/*")))
        assert _runs(policy, "pytest > build/log")
        assert not _runs(policy, "pytest > src/a.py")
        assert not _runs(policy, "pytest > build/../../x")

    @pytest.mark.parametrize(
        ("rules", "allowed"),
        [
            (Rules(allow=("*",)), (READ, WRITE, SEND)),
            (Rules(repository_allow=("*",)), (READ, WRITE)),
            (Rules(allow=("git push origin*",)), (READ,)),
            (Rules(allow=("git*",)), (READ, SEND)),
        ],
    )
    def test_how_far_allowing_goes(self, rules: Rules, allowed: tuple[str, ...]) -> None:
        policy = Policy(ask=NO, rules=rules)
        assert tuple(one for one in (READ, WRITE, SEND, DANGER) if _runs(policy, one)) == allowed

    def test_pushing_somewhere_can_be_allowed_but_not_with_force(self) -> None:
        policy = Policy(yes=True, rules=Rules(allow=("git push origin*",)))
        assert _runs(policy, "git commit -m x && git push origin main")
        for command in (
            "git push origin +main",
            "git push origin main --force",
            "git push upstream",
            "git push origin $X",
        ):
            assert not _runs(policy, command), command

    @pytest.mark.parametrize(
        "command",
        [
            "git push",
            "git  push x",
            "/usr/bin/git push",
            "git -C a push",
            "timeout 5 git push",
            "sh -c 'git push'",
            "g'it' push",
            "ls; git push",
        ],
    )
    def test_what_is_denied_is_denied_in_other_words(self, command: str) -> None:
        assert not _runs(Policy(ask=YES, rules=Rules(deny=("git push*",))), command)

    @pytest.mark.parametrize(
        "command",
        [
            "setsid git push",
            "daemonize -c x git push",
            "screen -dmS x git push",
            "tmux new -d -s x 'git push'",
            "tmux new -d git push",
            "systemd-run --unit x git push",
            "start-stop-daemon --start --exec git -- push",
            "echo git push | at now",
        ],
    )
    def test_what_is_denied_is_denied_where_it_would_outlive_the_command(self, command: str) -> None:
        with pytest.raises(ToolError, match="a rule of the person denies"):
            Policy(ask=YES, rules=Rules(deny=("git push*",))).check(_spec("exec"), {"command": command})

    def test_reading_can_be_denied(self) -> None:
        policy = Policy(yes=True, rules=Rules(deny=("cat*private*",)))
        assert _runs(policy, "cat a")
        assert not _runs(policy, "cat private/a")


class TestMessages:
    def test_tell_the_model_what_to_do(self) -> None:
        with pytest.raises(ToolError, match="no terminal to ask on"):
            Policy().check(_spec("exec"), {"command": READ})
        with pytest.raises(ToolError, match="the person refused"):
            Policy(ask=NO).check(_spec("exec"), {"command": WRITE})
        with pytest.raises(ToolError, match="read-only"):
            Policy(read_only=True).check(_spec("write"), {})

    def test_without_a_terminal_say_which_part_is_refused_and_why(self) -> None:
        with pytest.raises(ToolError) as caught:
            Policy(yes=True).check(_spec("exec"), {"command": "pytest && git push origin main; rm -rf /"})
        text = str(caught.value)
        assert "'git push origin main' (remote-changing: it sends commits to another repository)" in text
        assert "'rm -rf /' (dangerous: it deletes the repository or what it lies in)" in text
        assert "what the person should do" in text
        assert "pytest" not in text

    def test_name_the_rule_that_denies(self) -> None:
        with pytest.raises(ToolError, match=r"denies 'git pu\*'.*'git push'"):
            Policy(ask=YES, rules=Rules(deny=("git pu*",))).check(_spec("exec"), {"command": "ls; git push"})


def test_tools_judge_a_command_where_it_runs(tmp_path: Path) -> None:
    """The same path is inside one repository and outside another."""
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "notes").write_text("n\n")
    (tmp_path / "other").write_text("o\n")
    person = Person(False)
    tools = Tools(Workspace(repo), permissions.Policy(ask=person))
    for path, ok in ((repo / "notes", True), (tmp_path / "other", False)):
        assert tools.run(ToolCall("1", "exec_command", {"command": f"cat {path}"})).ok is ok
    assert len(person.asked) == 1


def test_commands_get_the_variables_of_the_policy(tmp_path: Path) -> None:
    tools = Tools(Workspace(tmp_path), Policy(yes=True, environment={"MINE": "x", "PATH": "/usr/bin:/bin"}))
    assert "MINE=x" in tools.run(ToolCall("1", "exec_command", {"command": "env"})).text
    assert tools.run_tests('test "$MINE" = x').ok
