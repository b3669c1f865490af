"""The edge of the program: what the surroundings may do to it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from constrained_agent.cli.app import run

ROOT = Path(__file__).parents[2]


def cli(*arguments, **more):
    return subprocess.run(
        [sys.executable, "-m", "constrained_agent", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **more.pop("env", {})},
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        **{"stdout": subprocess.PIPE, "cwd": ROOT, **more},
    )


@pytest.mark.parametrize("arguments", [["help"], ["version"], ["--help"]])
def test_words_that_ask_for_help(arguments, capsys):
    assert run(arguments) == 0
    assert "constrained-agent" in capsys.readouterr().out


def test_a_slip_is_no_task(capsys):
    assert run(["chek"]) == 2
    assert "did you mean 'check'" in capsys.readouterr().err


def test_stdin_may_be_closed():
    done = subprocess.run(
        f"exec '{sys.executable}' -m constrained_agent check <&-",
        shell=True,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 3  # an empty text is a prefix
    assert "Traceback" not in done.stderr


def python(code, cwd):
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL),
    )


def test_a_full_disk_behind_stdout(tmp_path):
    code = """
import errno, sys
from constrained_agent.cli import app

def full(*args, **more):
    raise OSError(errno.ENOSPC, "No space left on device")

app.app.main = full
sys.exit(app.run([]))
"""
    done = python(code, tmp_path)
    assert (done.returncode, done.stderr) == (1, "error: [Errno 28] No space left on device\n")


def test_a_terminal_that_lacks_characters():
    done = cli("check", "--regex", "→+x", "README.md", env={"PYTHONIOENCODING": "latin-1"})
    assert done.returncode == 1
    assert "\\u2192" in done.stdout
    assert done.stderr == ""


def test_escapes_in_an_error_do_not_reach_the_terminal(tmp_path):
    (tmp_path / "p").write_text("*** Begin Patch\n*** Delete File: \x1b[31mred\n*** End Patch\n")
    done = cli("patch", str(tmp_path / "p"), "--root", str(tmp_path))
    assert done.returncode == 1
    assert "\x1b" not in done.stderr


def test_sigterm_ends_a_run_with_its_report(tmp_path):
    """As `timeout` or a cancelled job sends it: the command is ended too, and the report comes."""
    code = """
import os, pathlib, signal, sys, threading
import click
from constrained_agent.cli import app
from constrained_agent.tools import shell

command = click.Command("x", callback=lambda: shell.exec_command(pathlib.Path("."), "sleep 98765"))
app.app.main = lambda *args, **more: command.main([], standalone_mode=False)
threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()
sys.exit(app.run([]))
"""
    done = python(code, tmp_path)
    assert done.returncode == 130, done.stderr
    assert "interrupted" in done.stderr
    assert subprocess.run(["pgrep", "-f", "sleep 98765"], capture_output=True).returncode == 1


def test_a_package_that_is_not_there_is_one_line():
    code = (
        "import sys; sys.modules['mlx'] = None; sys.modules['mlx.core'] = None; "
        "from constrained_agent.cli.app import run; "
        "raise SystemExit(run(['generate', '--model', 'smollm2-135m', '--prompt', 'x']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "the package mlx is not installed: pip install mlx" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_empty_name_of_a_model_is_told(capsys):
    assert run(["generate", "--model", "", "--prompt", "x"]) == 2
    assert "--model is empty" in capsys.readouterr().err
