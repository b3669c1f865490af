"""Programs of ours: what they print, and that none is left."""

import os
import signal
import sys
import threading

import pytest

from constrained_agent.errors import ToolError
from constrained_agent.tools.capture import capture


def python(code):
    return [sys.executable, "-c", code]


ECHO = python("import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())")


def test_what_a_program_prints(tmp_path):
    given = os.urandom(300_000)
    assert capture(tmp_path, ECHO, given, 300_000, 10) == given


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (python("raise SystemExit('no such revision')"), "no such revision"),
        (python("raise SystemExit(3)"), "failed"),
        (python("print('x' * 2_000)"), r"printed 2,001 bytes; up to 1,000 are read"),
        (python("import time; time.sleep(60)"), "could not be run: .* timed out after 0.5 seconds"),
        (["no-such-program"], "no-such-program could not be run"),
        (["a\0b"], "could not be run"),
    ],
)
def test_a_program_that_fails(tmp_path, program, message):
    with pytest.raises(ToolError, match=message):
        capture(tmp_path, program, b"", 1_000, 0.5 if "sleep" in program[-1] else 10)
    assert_no_child_is_left()


def test_a_program_that_does_not_read(tmp_path):
    assert capture(tmp_path, python("print('done')"), b"x" * 1_000_000, 1_000, 10) == b"done\n"


def test_ctrl_c_leaves_nothing_behind(tmp_path):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a test runner ignores it
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            capture(tmp_path, python("import time; time.sleep(60)"), b"", 1_000, 60)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert_no_child_is_left()


def assert_no_child_is_left():
    """Neither running nor unreaped."""
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
