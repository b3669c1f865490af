"""Programs of ours: git, and Python that judges or parses. What a model asks to be run goes through `shell`."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from constrained_agent.errors import ToolError
from constrained_agent.tools import environment


def capture(root: Path, program: Sequence[str], given: bytes, limit_bytes: int, timeout_s: float) -> bytes:
    """All that a program prints.

    Args:
        root: its working directory.
        given: its stdin.
        limit_bytes: of its stdout, which goes to a file first: memory holds no more than that.
        timeout_s: seconds until it is killed.

    Raises:
        ToolError: it could not be started, failed, took too long or printed too much.
        KeyboardInterrupt: passed on at once; whatever is raised, the program is gone then.
    """
    with tempfile.TemporaryFile() as out:
        env = {**os.environ, **environment.SETTINGS}
        try:
            running = subprocess.Popen(
                program, cwd=root, env=env, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.PIPE
            )
        except (OSError, ValueError) as error:
            raise ToolError(f"{program[0]} could not be run: {error}") from error
        try:
            _, said = running.communicate(given, timeout_s)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ToolError(f"{program[0]} could not be run: {error}") from error
        finally:
            _end(running)
        if running.returncode:
            raise ToolError(said.decode("utf-8", "backslashreplace").strip() or f"{program[0]} failed")
        if (size := os.fstat(out.fileno()).st_size) > limit_bytes:
            raise ToolError(f"{program[0]} printed {size:,} bytes; up to {limit_bytes:,} are read")
        out.seek(0)
        return out.read()


def _end(running: subprocess.Popen[bytes]) -> None:
    """Kill and reap it, if it still runs. subprocess.run leaves a killed child unreaped after Ctrl-C (bpo-25942)."""
    running.kill()
    running.wait()
    for pipe in (running.stdin, running.stderr):
        assert pipe is not None
        pipe.close()
