"""Commands: the only module through which a model starts processes (`capture` runs programs of ours).

Covered: no input, no terminal to ask on, a time limit that ends a command with all that it started, bounded output, no
secrets in variables. Not covered: this is no sandbox. A command has the rights of the person who runs the agent
(`permissions` looks at it first), and `sessions` says which processes can still outlive it.
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from constrained_agent.errors import ToolError
from constrained_agent.messages import ToolSpec
from constrained_agent.tools import environment
from constrained_agent.tools.output import Kept
from constrained_agent.tools.outputs import Outputs
from constrained_agent.tools.sessions import Started

DEFAULT_TIMEOUT_S = 30
"""Long enough for one test file, short enough that a hung command does not eat the run's time."""

MAX_TIMEOUT_S = 600
"""What a model may ask for: a full test suite, not a night."""

STDOUT_LIMIT, STDERR_LIMIT = 20_000, 5_000
"""Characters shown, half head and half tail: about 8,000 tokens, which a model can still read."""

MIN_LIMIT = 600
"""However small the model's context is: a mark of the cut, and something around it."""

_CHUNK_BYTES = 65_536  # the size of a Linux pipe
_POLL_S = 0.05  # how late the end of a shell may be noticed while a child keeps its pipe open
_DRAIN_S = 0.5  # how long a helper of a finished shell (`> >(tee log)`) may still write
_TERM_GRACE_S = 0.3  # to clean up after SIGTERM; an interrupt has one second in all
_KILL_ROUNDS = 5  # a process that forks while it is being killed is met in the next round

EXEC_COMMAND = ToolSpec(
    name="exec_command",
    description=(
        "Run a shell command in the repository root, for example the tests. "
        "Returns exit code, stdout and stderr. It gets no input, and everything it started is ended with it. "
        "Do not edit files with it: use apply_patch. "
        f"timeout_s: {DEFAULT_TIMEOUT_S} if left out, at most {MAX_TIMEOUT_S}."
    ),
    parameters={
        "type": "object",
        "properties": {
            "command": {"type": "string"},
            "timeout_s": {"type": "integer", "minimum": 1, "maximum": MAX_TIMEOUT_S},
        },
        "required": ["command"],
        "additionalProperties": False,
    },
    effect="exec",
)


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended and what it said.

    Attributes:
        exit_code: the shell's; negative for the signal that ended it; None if it could not be ended.
        stdout, stderr: bounded by the limits above; a cut is marked inside.
        duration_s: from the start to the end of the shell, or to the time limit.
        timed_out: it was ended at the time limit.
        left_children: the shell ended by itself, but processes it had started ran on and were ended.
        stdout_whole, stderr_whole: the names under which all of a stream that was cut can be read (see `outputs`).
    """

    exit_code: int | None
    stdout: str
    stderr: str
    duration_s: float
    timed_out: bool
    left_children: bool
    stdout_whole: str | None = None
    stderr_whole: str | None = None


def exec_command(
    root: Path,
    command: str,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    variables: Mapping[str, str] | None = None,
    outputs: Outputs | None = None,
    share: float = 1.0,
) -> CommandResult:
    """Run a command line with bash, or with sh where there is no bash.

    Args:
        timeout_s: seconds until the command and its children are ended.
        variables: its environment; if None, this process's without what looks like a secret.
        outputs: keeps what is cut; if None, that is lost.
        share: of the limits, for a model that has no room for them.

    Returns:
        The result, also of a failing or overlong command, within two seconds after the shell ended or the
        time was over, whatever the command left behind. Memory: under 1 MB, whatever it prints; disk: see `spill`.

    Raises:
        ToolError: the command could not be started.
        KeyboardInterrupt: passed on within a second, after the command and its children were ended.
    """
    if not command.strip():
        raise ToolError("the command is empty")
    started = time.monotonic()
    variables = environment.for_commands(os.environ) if variables is None else variables
    kept = _streams(outputs, share)
    with _interrupts_held() as interrupts:
        running = _Running(root, command, variables, interrupts, kept)
        try:
            ended = running.wait(timeout_s)
            duration_s = time.monotonic() - started
            if ended:
                running.drain(_DRAIN_S)
        finally:
            left_children = running.end()
    return CommandResult(
        exit_code=running.process.returncode,
        stdout=running.stdout.text,
        stderr=running.stderr.text,
        duration_s=duration_s,
        timed_out=not ended and not interrupts,
        left_children=left_children and ended,
        stdout_whole=running.stdout.whole,
        stderr_whole=running.stderr.whole,
    )


def _streams(outputs: Outputs | None, share: float) -> tuple[Kept, Kept]:
    """What takes stdout and stderr."""
    spills = (None, None) if outputs is None else outputs.begin()
    limits = (max(MIN_LIMIT, int(limit * min(1.0, share))) for limit in (STDOUT_LIMIT, STDERR_LIMIT))
    stdout, stderr = (Kept(limit, spill) for limit, spill in zip(limits, spills, strict=True))
    return stdout, stderr


def report(result: CommandResult, notes: Sequence[str] = ()) -> str:
    """The result as the model is shown it, with what else there is to say about it."""
    took = f"{result.duration_s:.1f} s"
    if result.timed_out:
        lines = [f"timed out: ended with its children after {took}"]
    elif result.exit_code is not None and result.exit_code < 0:
        lines = [f"ended by signal {-result.exit_code} after {took}"]
    else:
        lines = [f"exit code {result.exit_code} after {took}"]
    for name, whole in (("stdout", result.stdout_whole), ("stderr", result.stderr_whole)):
        if whole is not None:
            # Here, too: of a result that is cut once more, the first lines stay.
            lines.append(f"note: {name} is cut below; read_file shows all of it as {whole}")
    if result.left_children:
        lines.append("note: processes that it had left in the background were ended")
    lines += [f"note: {note}" for note in notes]
    for name, text in (("stdout", result.stdout), ("stderr", result.stderr)):
        if text:
            lines += [f"--- {name}", text.rstrip("\n")]
    if not result.stdout and not result.stderr:
        lines.append("(no output)")
    return "\n".join(lines)


class _Running:
    """A started command.

    The constructor starts it; `wait` and `drain` read while it runs, and stop early once there is an interrupt;
    `end` comes last, exactly once, and leaves neither a process that it started nor an open pipe or file.
    """

    def __init__(
        self,
        root: Path,
        command: str,
        env: Mapping[str, str],
        interrupts: Sequence[object],
        kept: tuple[Kept, Kept],
    ) -> None:
        self._interrupts = interrupts
        mark = uuid.uuid4().hex
        shell = shutil.which("bash") or shutil.which("sh") or "/bin/sh"
        try:
            self.process = subprocess.Popen(
                [shell, "-c", command],
                cwd=root,
                env=environment.marked(env, mark, os.environ.get(environment.MARK, "")),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:  # too long, a NUL, half a surrogate pair, no such folder
            raise ToolError(f"the command could not be started: {error}") from error
        self._started = Started(self.process.pid, mark)
        self.stdout, self.stderr = kept
        self._open = selectors.DefaultSelector()
        for pipe, stream in ((self.process.stdout, self.stdout), (self.process.stderr, self.stderr)):
            assert pipe is not None
            self._open.register(pipe, selectors.EVENT_READ, stream)

    def wait(self, timeout_s: float) -> bool:
        """Read until the shell has ended. False: it has not, and the time is over or an interrupt came."""
        deadline = time.monotonic() + timeout_s
        while self.process.poll() is None:
            if self._interrupts or time.monotonic() >= deadline:
                return False
            self._read(deadline)
        return True

    def drain(self, timeout_s: float) -> None:
        """Read until nobody holds the pipes any more, or the time is over."""
        deadline = time.monotonic() + timeout_s
        while self._open.get_map() and time.monotonic() < deadline and not self._interrupts:
            self._read(deadline)

    def end(self) -> bool:
        """End every process that it started, close the pipes. True: there were some."""
        there_were = self._started.signal(signal.SIGTERM)
        deadline = time.monotonic() + _TERM_GRACE_S
        while time.monotonic() < deadline and (self.process.poll() is None or self._started.members()):
            self._read(deadline)
        for _ in range(_KILL_ROUNDS):
            if not self._started.signal(signal.SIGKILL):
                break
            there_were = True
            self._read(time.monotonic() + _POLL_S)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_TERM_GRACE_S)
        self.drain(_POLL_S)
        self._open.close()
        self.stdout.close()
        self.stderr.close()
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()
        return there_were

    def _read(self, deadline: float) -> None:
        """Take what the pipes hold now; wait for it no longer than one poll."""
        wait_s = max(0.0, min(_POLL_S, deadline - time.monotonic()))
        if not self._open.get_map():
            time.sleep(wait_s / 10)  # the shell closed both pipes and goes on
            return
        for key, _ in self._open.select(wait_s):
            if chunk := os.read(key.fd, _CHUNK_BYTES):
                key.data.add(chunk)
            else:
                self._open.unregister(key.fileobj)


@contextmanager
def _interrupts_held() -> Iterator[Sequence[object]]:
    """Hold Ctrl-C back, so that it comes neither between a fork and its record nor into the killing.

    Yields:
        The interrupts so far; the first one is handed on after the block. In other threads than the main one,
        where none is ever raised, it stays empty.
    """
    came: list[tuple[int, FrameType | None]] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    handler = signal.signal(signal.SIGINT, lambda *details: came.append(details))
    try:
        yield came
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if handler is None else handler)
    if came and callable(handler):
        handler(*came[0])
