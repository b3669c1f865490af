"""What an answer does to a repository: in a fresh copy, under limits, judged by the task's tests.

What the answer brings about is a result, also where it makes its tests crash or hang. What the machine cannot do (a
full disk, no more processes) is raised instead: it must not count against an arm.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from constrained_agent.agent.cut import temporary_copy
from constrained_agent.errors import PatchError, ToolError
from constrained_agent.evals.compare.outcomes import of_patch_error
from constrained_agent.evals.tasks import Task
from constrained_agent.patch import Patch
from constrained_agent.tools import environment
from constrained_agent.tools.commands import Risk
from constrained_agent.tools.commands.apart import classify_apart
from constrained_agent.tools.output import shortened
from constrained_agent.tools.shell import CommandResult, exec_command, report
from constrained_agent.tools.workspace import Workspace

TEST_TIMEOUT_S = 30
"""Of one task's tests, which take about a second."""

MEMORY_KB = 2_000_000
"""Of data, for a task's tests and commands. Kept on Linux; macOS takes the limit and does not keep it."""

FILE_BLOCKS = 200_000
"""Of one file that they write: 200 MB where blocks have 1,024 bytes (bash), half of that with sh."""

_SHOWN_CHARS = 2_000  # of what tests printed

_OF_THE_MACHINE = frozenset(
    (
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EIO,
        errno.EROFS,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.EAGAIN,
    )
)
"""Errors that no answer can bring about, under the limits above."""

_NOT_PERMITTED = frozenset((errno.EACCES, errno.EPERM))
"""In a fresh copy, which belongs to whoever runs this, the machine's too; after a command they may be the command's."""

_SYNTAX_LINE = re.compile(r"^[^\n]*?\b(?:line )?(\d+): ")
"""Where a shell says that it cannot read on: `bash: -c: line 3: ...`, `sh: 3: ...`."""

_OF_PYTHON = re.compile(r'"/[^"\n]*/(python3\.\d+/)')
"""In a traceback: where this machine has its libraries, before the part that is alike everywhere."""


@dataclass(frozen=True, slots=True)
class Landed:
    """What came of running an answer.

    Attributes:
        outcome: `passed`, `tests_failed`, or why it could not be run.
        lands: it changed the repository as it says.
        error_kind: of the error.
        message: of the error, or what the tests printed.
        failed_patch: number of the patch that could not be applied, from 0.
        path, hunk: where in it, as the error says.
    """

    outcome: str
    lands: bool
    error_kind: str = ""
    message: str = ""
    failed_patch: int | None = None
    path: str | None = None
    hunk: int | None = None


def patched(task: Task, patches: Sequence[Patch]) -> Landed:
    """Apply patches in a copy, and run the tests there. Cost: that of the tests, and some 10 ms.

    Raises:
        OSError, ToolError: the machine could not.
    """
    with _copy(task) as root:
        workspace = Workspace(root)
        for path in task.files:
            workspace.record_read(path, workspace.read_bytes(path))
        for number, patch in enumerate(patches):
            try:
                workspace.apply(patch)
            except PatchError as error:
                if _errno(error) in _OF_THE_MACHINE | _NOT_PERMITTED:
                    raise
                outcome = of_patch_error(error.kind)
                return Landed(outcome, False, error.kind, str(error), number, error.path, error.hunk)
        return tested(task, root)


def unreadable_command(command: str) -> tuple[str, int] | None:
    """What is wrong with the syntax of a shell block, and in which of its lines (from 1); None if nothing is.

    The shell that would run it is asked, and told to run nothing. It would run the lines before the wrong one; here
    such a block counts as one that cannot be read, as a call does that is half right. Cost: some 5 ms.

    Raises:
        OSError, ToolError: the machine could not.
    """
    if "\0" in command:
        return "a command cannot hold a NUL", command.count("\n", 0, command.index("\0")) + 1
    with temporary_copy(Path("block")) as root:
        root.mkdir()
        try:
            result = exec_command(root, f"set -n\n{command}", TEST_TIMEOUT_S, variables(root))
        except ToolError as error:
            if _errno(error) in _OF_THE_MACHINE:
                raise
            return str(error), 1  # too long, half a surrogate pair
    if result.exit_code == 0 and not result.timed_out:
        return None
    message = result.stderr.strip() or report(result)
    line = _SYNTAX_LINE.match(message)
    return message[:_SHOWN_CHARS], max(1, int(line[1]) - 1) if line else 1


def commanded(task: Task, command: str) -> Landed:
    """Run a shell block in a copy, and the tests there.

    It is judged by its effect: where the tests pass it passed, whatever its exit code was. Else a block that failed or
    ran out of time has not landed, though it may have changed files: it was told to its writer as failed. What is
    dangerous, or changes other machines, is not run: nobody is there to ask.

    Raises:
        OSError, ToolError: the machine could not.
    """
    with _copy(task) as root:
        verdict = classify_apart(command, root, variables(root))
        if verdict.risk in (Risk.DANGEROUS, Risk.REMOTE_CHANGING):
            why = f"not run: the command is {verdict.risk} ({verdict.reason})"
            return Landed("other_patch_error", False, "dangerous_command", why)
        before = _tree(root)
        try:
            result = exec_command(root, _limited(command), TEST_TIMEOUT_S, variables(root))
        except ToolError as error:
            if _errno(error) in _OF_THE_MACHINE:
                raise
            return Landed("other_patch_error", False, "not_started", str(error))
        failed = "timed_out" if result.timed_out else "command_failed" if result.exit_code != 0 else ""
        if _tree(root) == before:
            if not failed:
                return Landed("no_change", False, "", "the command changed no file")
            return Landed("other_patch_error", False, failed, shortened(_said(result, root), _SHOWN_CHARS))
        landed = tested(task, root)
        if failed and landed.outcome != "passed":
            return Landed("other_patch_error", False, failed, shortened(_said(result, root), _SHOWN_CHARS))
        return landed


def tested(task: Task, root: Path) -> Landed:
    """Run a task's tests, as they were shipped, on a changed copy.

    Raises:
        OSError, ToolError: the machine could not.
    """
    try:
        task.restore_tests(root)
        result = exec_command(root, _limited(task.test_command), TEST_TIMEOUT_S, variables(root))
    except (OSError, ToolError) as error:
        if _errno(error) in _OF_THE_MACHINE:
            raise
        # A folder that was made read-only, or taken away.
        return Landed("tests_failed", True, "not_started", str(error))
    if result.exit_code == 0 and not result.timed_out:
        return Landed("passed", True)
    kind = "timed_out" if result.timed_out else ""
    return Landed("tests_failed", True, kind, _end(_said(result, root)))


def _said(result: CommandResult, root: Path) -> str:
    """What a command printed, without places of this machine: those of the copy, and of Python's own files."""
    text = report(result).replace(str(root.resolve()), ".").replace(str(root), ".")
    return _OF_PYTHON.sub(r'"\1', text)


def _end(text: str) -> str:
    """The last lines of what tests printed: there they say what is wrong."""
    if len(text) <= _SHOWN_CHARS:
        return text
    tail = text[-_SHOWN_CHARS:]
    return "…\n" + (tail.partition("\n")[2] or tail)


def _errno(error: BaseException | None) -> int | None:
    """The number of the system's error that an error is, or came from."""
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__
    return None if error is None else error.errno


@contextmanager
def _copy(task: Task) -> Iterator[Path]:
    with temporary_copy(task.path) as root:
        task.copy_to(root)
        yield root


def _limited(command: str) -> str:
    # Soft limits: where one cannot be set the command runs without it.
    return f"ulimit -S -d {MEMORY_KB} 2>/dev/null\nulimit -S -f {FILE_BLOCKS} 2>/dev/null\n{command}"


def variables(root: Path) -> Mapping[str, str]:
    """No secrets, and a home in which nothing lies."""
    home = str(root.parent)
    return {**environment.for_commands(os.environ), "HOME": home, "PYTHONDONTWRITEBYTECODE": "1"}


def _tree(root: Path) -> dict[str, object]:
    """What stands where: a link's target, a file's bytes and whether it can be run, None for what cannot be read."""
    found: dict[str, object] = {}
    for path in root.rglob("*"):
        name = str(path.relative_to(root))
        try:
            if path.is_symlink():
                found[name] = os.readlink(path)
            elif path.is_file():
                found[name] = (path.read_bytes(), os.access(path, os.X_OK))
        except OSError:
            found[name] = None
    return found
