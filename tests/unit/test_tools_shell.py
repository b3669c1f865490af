"""Commands: their end, their children, their output. Real processes; `mark` makes a command line findable."""

from __future__ import annotations

import dataclasses
import os
import shlex
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from constrained_agent.errors import ToolError
from constrained_agent.tools import environment
from constrained_agent.tools.shell import (
    STDERR_LIMIT,
    STDOUT_LIMIT,
    CommandResult,
    exec_command,
    report,
)

GIVE_UP_S = 60
"""Nothing here takes this long; it only keeps a fault from hanging the whole suite."""


def _running(mark: str) -> list[str]:
    """Command lines of the processes, zombies aside, whose arguments hold the mark."""
    listing = subprocess.run(
        ["ps", "-A", "-ww", "-o", "stat=", "-o", "args="], capture_output=True, text=True, check=True
    )
    return [line for line in listing.stdout.splitlines() if mark in line and not line.startswith("Z")]


def _until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + GIVE_UP_S
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def mark() -> str:
    return f"mark-{uuid.uuid4().hex}"


def sleeper(mark: str) -> str:
    """Shell words that sleep for long, in one process that can be found by the mark."""
    return f"{sys.executable} -c 'import time; time.sleep(1000)' {mark}"


def test_exit_code_and_both_streams(tmp_path: Path) -> None:
    result = exec_command(tmp_path, "echo out; echo err >&2; pwd; exit 3")
    assert (result.exit_code, result.stderr, result.timed_out) == (3, "err\n", False)
    assert result.stdout == f"out\n{tmp_path.resolve()}\n"


def test_several_lines_and_shell_syntax(tmp_path: Path) -> None:
    assert exec_command(tmp_path, "for i in 1 2\ndo echo $i\ndone | sort -r").stdout == "2\n1\n"


@pytest.mark.parametrize(
    "command",
    [
        "{sleep}",
        "{sleep} | cat",
        "trap '' TERM; {sleep}; {sleep}",  # a shell that will not listen
        "cd / && {own_group}",  # as `timeout` makes one
        "set -m; {sleep} & {sleep}",  # job control, too
        "({sleep} &) ; {sleep}",
        "exec >&- 2>&-; {sleep}",
    ],
)
def test_timeout_ends_the_command_with_its_children(tmp_path: Path, mark: str, command: str) -> None:
    program = "import os, time; os.setpgid(0, 0); time.sleep(1000)"
    own_group = f"{sys.executable} -c '{program}' {mark}; true"
    result = exec_command(tmp_path, command.format(sleep=sleeper(mark), own_group=own_group), timeout_s=1)
    assert result.timed_out
    assert result.exit_code != 0
    assert _running(mark) == []


def test_output_before_the_timeout_is_kept(tmp_path: Path) -> None:
    result = exec_command(
        tmp_path, "echo first; trap 'echo last; exit 9' TERM; while :; do sleep 0.1; done", 1
    )
    assert result.timed_out
    assert result.stdout == "first\nlast\n"


@pytest.mark.parametrize("redirect", ["", ">/dev/null 2>&1"])
def test_background_children_do_not_outlive_the_command(tmp_path: Path, mark: str, redirect: str) -> None:
    result = exec_command(tmp_path, f"{sleeper(mark)} {redirect} & echo started")
    assert (result.exit_code, result.stdout, result.timed_out) == (0, "started\n", False)
    assert result.left_children
    assert _running(mark) == []
    assert "background" in report(result)


_LEAVE = {
    "a session": "os.setsid()",
    "a second fork": "os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0)",
    "another program": "os.setsid(); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])",
    "closed pipes": "os.setsid(); [os.close(n) for n in range(3)]",
    "deaf": "os.setsid(); signal.signal(signal.SIGTERM, signal.SIG_IGN)",
}


@pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere the environment of other processes is not relied on"
)
@pytest.mark.parametrize(
    ("way", "ends"), [*((way, True) for way in _LEAVE), ("a second fork", False), ("deaf", False)]
)
def test_a_daemon_does_not_outlive_the_command(tmp_path: Path, mark: str, way: str, ends: bool) -> None:
    """Once a process that left the session ran on, and nobody knew of it.

    Args:
        ends: the command does so by itself, and not at the limit.
    """
    stays = f"{_LEAVE[way]}; open('started', 'w').close(); time.sleep(1000)"
    sleeps = "import sys, time; open('started', 'w').close(); time.sleep(1000)"
    daemon = f'{sys.executable} -c "import os, signal, sys, time; {stays}" -c "{sleeps}" {mark}'
    until_then = "while [ ! -e started ]; do sleep 0.01; done"
    if ends:
        result = exec_command(tmp_path, f"{daemon} & {until_then}", GIVE_UP_S)
    else:
        result = exec_command(tmp_path, f"{daemon} & {until_then}; sleep 1000", 1)
    assert _running(mark) == []
    assert result.timed_out == (not ends)
    assert result.left_children == ends


@pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere the environment of other processes is not relied on"
)
def test_a_command_inside_a_command_ends_with_it(tmp_path: Path, mark: str) -> None:
    """An agent that a command starts has sessions of its own; killed, it cannot end them."""
    program = (
        "import pathlib, sys\n"
        "from constrained_agent.tools.shell import exec_command\n"
        "exec_command(pathlib.Path('.'), sys.argv[1], 1000)\n"
    )
    tmp_path.joinpath("inner.py").write_text(program, encoding="utf-8")
    inner = shlex.join([sys.executable, "inner.py", f"touch started; {sleeper(mark)}"])
    result = exec_command(
        tmp_path, f"{inner} & while [ ! -e started ]; do sleep 0.01; done; kill -9 $!", GIVE_UP_S
    )
    assert not result.timed_out
    assert _running(mark) == []


def test_others_are_let_live(tmp_path: Path, mark: str) -> None:
    """Neither what another command started, nor what the person did."""
    with ThreadPoolExecutor() as pool:
        longer = pool.submit(exec_command, tmp_path, f"touch started; sleep 1; echo lived; : {mark}")
        _until(tmp_path.joinpath("started").exists)
        exec_command(tmp_path, "sleep 1000 &")
        assert longer.result().stdout == "lived\n"


def test_late_output_of_a_helper_is_read(tmp_path: Path) -> None:
    assert exec_command(tmp_path, "(sleep 0.1; echo late) & echo early").stdout == "early\nlate\n"


def test_no_terminal(tmp_path: Path) -> None:
    result = exec_command(tmp_path, "test -t 0 || test -t 1 || test -t 2 || (: < /dev/tty) || echo none")
    assert result.stdout == "none\n"


def test_output_is_cut_in_the_middle(tmp_path: Path) -> None:
    result = exec_command(tmp_path, "echo head; seq 100000; echo tail; seq 100000 >&2")
    assert STDOUT_LIMIT - 10 <= len(result.stdout) <= STDOUT_LIMIT
    assert STDERR_LIMIT - 10 <= len(result.stderr) <= STDERR_LIMIT
    assert result.stdout.startswith("head\n1\n2\n")
    assert result.stdout.endswith("\n100000\ntail\n")
    assert "cut: the middle of 588,905 bytes is left out" in result.stdout


@pytest.mark.parametrize("n_characters", [STDOUT_LIMIT - 1, STDOUT_LIMIT, STDOUT_LIMIT + 1, 5 * STDOUT_LIMIT])
@pytest.mark.parametrize("character", ["x", "é", "🙂"])
def test_the_limit_counts_characters(tmp_path: Path, character: str, n_characters: int) -> None:
    tmp_path.joinpath("f").write_text(character * n_characters, encoding="utf-8")
    text = exec_command(tmp_path, "cat f").stdout
    assert len(text) <= STDOUT_LIMIT
    assert (text == character * n_characters) == (n_characters <= STDOUT_LIMIT)
    assert "\\x" not in text  # no character is cut in two


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("head -c 5G /dev/zero", "5,368,709,120 bytes"),
        ("yes | head -c 200M >&2", "209,715,200 bytes"),
    ],
)
def test_the_process_hardly_grows_with_the_output(tmp_path: Path, command: str, printed: str) -> None:
    program = (
        "import pathlib, resource, sys\n"
        "from constrained_agent.tools.outputs import Outputs\n"
        "from constrained_agent.tools.shell import exec_command\n"
        "def peak():\n"
        "    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == 'darwin' else 1024)\n"
        "root = pathlib.Path('.')\n"
        "outputs = Outputs(root)\n"
        "exec_command(root, 'true', outputs=outputs)\n"
        "before = peak()\n"
        "result = exec_command(root, sys.argv[1], 600, outputs=outputs)\n"
        "name = result.stdout_whole or result.stderr_whole\n"
        "page = outputs.read(name, 100, 10, 20_000)\n"
        "grown = peak() - before\n"
        "assert sys.argv[2] in result.stdout + result.stderr\n"
        "print(result.exit_code, name.partition('/')[0], grown)\n"
    )
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    done = subprocess.run(
        [sys.executable, "-c", program, command, printed],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    exit_code, name, grown_bytes = done.stdout.split()
    assert (exit_code, name) == ("0", "output:2")
    assert int(grown_bytes) < 50_000_000
    kept = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert 0 < sum(path.stat().st_size for path in kept) < 65_000_000


@pytest.mark.parametrize(
    ("printf", "text"),
    [
        (r"\033[1;31mred\033[0m plain\n", "red plain\n"),
        (r"\033]0;title\007a\033(Bb\n", "ab\n"),
        (r"one\r\ntwo\r\n", "one\ntwo\n"),
        (r"10%%\r20%%\n", "10%\n20%\n"),
        (r"tab\tbell\007 nul\000 \377\n", "tab\tbell\\x07 nul\\x00 \\xff\n"),
        (r"\303\244 cut \303", "ä cut \\xc3"),
    ],
)
def test_output_is_plain_text(tmp_path: Path, printf: str, text: str) -> None:
    assert exec_command(tmp_path, f"printf '{printf}'").stdout == text


def test_an_edit_within_one_second_does_not_run_as_old_bytecode(tmp_path: Path) -> None:
    module = tmp_path / "m.py"
    for word in ("one", "two"):
        module.write_text(f"print({word!r})\n", encoding="utf-8")
        os.utime(module, (1_000_000_000, 1_000_000_000))
        assert exec_command(tmp_path, f"{sys.executable} -c 'import m'").stdout == f"{word}\n"


@pytest.mark.parametrize("command", ["", " \n", "echo \0", "echo \ud83d", "echo " + "x" * 4_000_000])
def test_commands_that_cannot_be_started(tmp_path: Path, command: str) -> None:
    with pytest.raises(ToolError):
        exec_command(tmp_path, command)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="gone"):
        exec_command(tmp_path / "gone", "true")


def test_interrupt_ends_the_children_and_is_passed_on(tmp_path: Path, mark: str) -> None:
    program = (
        "import pathlib, signal, sys\n"
        "from constrained_agent.tools.shell import exec_command\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a suite in the background ignores it\n"
        "try:\n"
        "    exec_command(pathlib.Path('.'), sys.argv[1], 1000)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    command = f"trap '' TERM; {sleeper(mark)} & {sleeper(mark)}"
    agent = subprocess.Popen(
        [sys.executable, "-c", program, command], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    _until(lambda: sum("trap" not in line for line in _running(mark)) == 2)
    agent.send_signal(signal.SIGINT)
    assert agent.communicate(timeout=GIVE_UP_S)[0] == "interrupted\n"
    assert _running(mark) == []


def test_the_interrupt_handler_is_put_back(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    exec_command(tmp_path, "true")
    assert signal.getsignal(signal.SIGINT) is before


def test_in_a_worker_thread(tmp_path: Path) -> None:
    with ThreadPoolExecutor() as pool:
        results = list(pool.map(lambda i: exec_command(tmp_path, f"sleep 0.1; echo {i}"), range(4)))
    assert [result.stdout for result in results] == ["0\n", "1\n", "2\n", "3\n"]


def test_no_file_stays_open(tmp_path: Path) -> None:
    exec_command(tmp_path, "echo")
    before = len(os.listdir("/dev/fd"))
    for command in ("echo", "sleep 1000 & echo", "exit 1"):
        exec_command(tmp_path, command)
    assert len(os.listdir("/dev/fd")) == before


def _result(**changes: Any) -> CommandResult:
    return dataclasses.replace(
        CommandResult(0, "", "", 1.25, timed_out=False, left_children=False), **changes
    )


def test_report() -> None:
    assert report(_result()) == "exit code 0 after 1.2 s\n(no output)"
    assert report(_result(exit_code=1, stdout="a\n", stderr="b")) == (
        "exit code 1 after 1.2 s\n--- stdout\na\n--- stderr\nb"
    )
    assert report(_result(exit_code=-9)).startswith("ended by signal 9 after")
    assert report(_result(exit_code=-15, timed_out=True, stdout="x")).startswith("timed out: ended with")


class TestTheEnvironment:
    """What commands get of the person's variables."""

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            *(
                (name, "x")
                for name in (
                    "API_TOKEN",
                    "github_token",
                    "MY_SECRET",
                    "DB_PASSWORD",
                    "PGPASSWORD",
                    "MYSQL_PWD",
                )
            ),
            *(
                (name, "x")
                for name in (
                    "OPENAI_API_KEY",
                    "APIKEY",
                    "SERVICE_APIKEY",
                    "AWS_PROFILE",
                    "GITHUB_ACTOR",
                    "GH_HOST",
                )
            ),
            *(
                (name, "x")
                for name in (
                    "ANTHROPIC_BASE_URL",
                    "HF_TOKEN",
                    "SSH_AUTH_SOCK",
                    "SSH_AGENT_PID",
                    "GIT_ASKPASS",
                )
            ),
            *(
                (name, "x")
                for name in (
                    "GOOGLE_APPLICATION_CREDENTIALS",
                    "PRIVATE_KEY",
                    "DEPLOY_KEY",
                    "AUTH",
                    "AUTHORIZATION",
                )
            ),
            *(
                (name, "x")
                for name in ("NPM_AUTH", "OAUTH_CLIENT", "KUBECONFIG", "SESSION_COOKIE", "VAULT_ADDR", "JWT")
            ),
            ("HARMLESS", "ghp_" + "a1" * 18),
            ("HARMLESS", "sk-" + "a1" * 20),
            ("HARMLESS", "AKIA" + "ABCDEFGHIJKLMNOP"),
            ("HARMLESS", "-----BEGIN RSA PRIVATE KEY-----\nx"),
            ("HARMLESS", "xoxb-1234567890"),
            ("HARMLESS", "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.x"),
            ("DATABASE_URL", "postgres://me:hunter2@db/x"),
        ],
    )
    def test_lacks_what_looks_like_a_secret(self, name: str, value: str) -> None:
        assert name not in environment.for_commands({name: value})
        assert environment.for_commands({name: value}, [name])[name] == value

    @pytest.mark.parametrize(
        "name",
        [
            *(
                "PATH",
                "HOME",
                "LANG",
                "LC_ALL",
                "VIRTUAL_ENV",
                "PWD",
                "OLDPWD",
                "USER",
                "SHELL",
                "TMPDIR",
                "PYTHONPATH",
                "CI",
            ),
            *(
                "GIT_AUTHOR_NAME",
                "GIT_COMMITTER_EMAIL",
                "TOKENIZERS_PARALLELISM",
                "HF_HOME",
                "XDG_CONFIG_HOME",
                "DISPLAY",
            ),
            *(
                "XAUTHORITY",
                "KEYBOARD",
                "MONKEY",
                "COMPASS",
                "NODE_ENV",
                "CUDA_VISIBLE_DEVICES",
                "DATABASE_URL",
                "PATHEXT",
            ),
        ],
    )
    def test_has_the_rest(self, name: str) -> None:
        assert environment.for_commands({name: "/a/sk-b:/task-list"})[name] == "/a/sk-b:/task-list"

    def test_is_what_a_command_sees(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MY_TOKEN", "do-not-tell")
        monkeypatch.setenv("MY_COLOUR", "blue")
        shown = exec_command(tmp_path, "env; cat /proc/self/environ 2>/dev/null").stdout
        assert "do-not-tell" not in shown
        assert "MY_COLOUR=blue" in shown
        given = environment.for_commands({"PATH": os.environ["PATH"], "MY_TOKEN": "told"}, ["MY_TOKEN"])
        assert exec_command(tmp_path, "echo $MY_TOKEN; echo $MY_COLOUR", 30, given).stdout == "told\n\n"

    def test_has_no_pager_or_editor_that_waits(self) -> None:
        of_the_person = dict.fromkeys(
            ("PAGER", "GIT_PAGER", "EDITOR", "VISUAL", "GIT_EDITOR", "KUBE_EDITOR"), "vi"
        )
        assert environment.for_commands(of_the_person) == environment.SETTINGS
        assert environment.for_commands(of_the_person, ["KUBE_EDITOR"])["KUBE_EDITOR"] == "vi"
        assert environment.SETTINGS.items() >= {("PAGER", "cat"), ("GIT_EDITOR", "true"), ("EDITOR", "false")}

    @pytest.mark.parametrize(
        ("command", "exit_code", "said"),
        [
            ("git commit", 1, "empty commit message"),
            ("git commit -qm a && git commit --amend && git log --format=%s", 0, "a"),
            ("git commit -qm a && git -c sequence.editor=vi rebase -i --root", 0, "Success"),
            ("$EDITOR f", 1, ""),
        ],
    )
    def test_lets_nothing_wait_for_an_editor(
        self, tmp_path: Path, command: str, exit_code: int, said: str
    ) -> None:
        subprocess.run("git init -q . && echo x > f && git add f", shell=True, cwd=tmp_path, check=True)
        name = "git config user.name a; git config user.email a@b; git config core.editor vi; "
        result = exec_command(tmp_path, name + command)
        assert (result.exit_code, result.timed_out) == (exit_code, False)
        assert said in result.stdout + result.stderr

    def test_has_a_value_of_the_command_beside_those_of_the_commands_around(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(environment.MARK, "outer")
        one, two = (exec_command(tmp_path, f"echo ${environment.MARK}").stdout.split() for _ in range(2))
        assert one[0] == two[0] == "outer"
        assert one[1] != two[1]
