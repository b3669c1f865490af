"""What an answer does to a repository: in a fresh copy, under limits, judged by the task's tests."""

from __future__ import annotations

import os
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
from constrained_agent.tools.shell import exec_command, report
from constrained_agent.tools.workspace import Workspace

TEST_TIMEOUT_S = 30
"""Of one task's tests, which take about a second."""

MEMORY_KB = 2_000_000
"""Of data, for a task's tests and commands. Kept on Linux; macOS takes the limit and does not keep it."""

FILE_BLOCKS = 200_000
"""Of one file that they write: 200 MB where blocks have 1,024 bytes (bash), half of that with sh."""

_SHOWN_CHARS = 2_000  # of what tests printed


@dataclass(frozen=True, slots=True)
class Landed:
    """What came of running an answer.

    Attributes:
        outcome: `passed`, `tests_failed`, or why it could not be run.
        lands: it changed the repository as it says.
        kind: of the error.
        message: of the error, or what the tests printed.
        failed_patch: number of the patch that could not be applied, from 0.
        path, hunk: where in it, as the error says.
    """

    outcome: str
    lands: bool
    kind: str = ""
    message: str = ""
    failed_patch: int | None = None
    path: str | None = None
    hunk: int | None = None


def patched(task: Task, patches: Sequence[Patch]) -> Landed:
    """Apply patches in a copy, and run the tests there. Cost: that of the tests, and some 10 ms."""
    with _copy(task) as root:
        workspace = Workspace(root)
        for path in task.files:
            workspace.record_read(path, workspace.read_bytes(path))
        for number, patch in enumerate(patches):
            try:
                workspace.apply(patch)
            except PatchError as error:
                outcome = of_patch_error(error.kind)
                return Landed(outcome, False, error.kind, str(error), number, error.path, error.hunk)
        return tested(task, root)


def commanded(task: Task, command: str) -> Landed:
    """Run a shell block in a copy, and the tests there.

    What is dangerous, or changes other machines, is not run: nobody is there to ask.
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
            return Landed("other_patch_error", False, "not_started", str(error))
        if _tree(root) == before:
            if result.exit_code == 0:
                return Landed("no_change", False, "", "the command changed no file")
            return Landed("other_patch_error", False, "command_failed", report(result)[:_SHOWN_CHARS])
        return tested(task, root)


def tested(task: Task, root: Path) -> Landed:
    """Run a task's tests, as they were shipped, on a changed copy."""
    try:
        task.restore_tests(root)
        result = exec_command(root, _limited(task.test_command), TEST_TIMEOUT_S, variables(root))
    except (OSError, ToolError) as error:
        return Landed("tests_failed", True, "not_started", str(error))
    if result.exit_code == 0 and not result.timed_out:
        return Landed("passed", True)
    kind = "timed_out" if result.timed_out else ""
    return Landed("tests_failed", True, kind, report(result)[-_SHOWN_CHARS:])


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
