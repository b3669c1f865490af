"""A run cut after one of its turns: the tree as it was then, in a copy, and what the tests say there."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from constrained_agent.agent.compared import is_as_left, not_at_start, start_difference, whole_tree
from constrained_agent.agent.events import Changed, Result, Run
from constrained_agent.agent.replay import Replayed, Report, check_record, replay
from constrained_agent.errors import UserError
from constrained_agent.messages import ToolResult
from constrained_agent.tools.permissions import Policy
from constrained_agent.tools.registry import Tools
from constrained_agent.tools.rooted import digest
from constrained_agent.tools.snapshot import entry, look, put
from constrained_agent.tools.state import state_places
from constrained_agent.tools.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Cut:
    """What came of a cut.

    Attributes:
        rewound: the copy was as the run left it, and was taken back to the start first.
        tests: of the command; None without one, or where the tree is not that of the record.
    """

    replayed: Replayed
    rewound: bool
    tests: ToolResult | None


def cut(
    run: Run,
    repo: Path,
    copy: Path,
    after: int,
    *,
    test_command: str | None = None,
    run_commands: bool = False,
    report: Report | None = None,
    ignored: Collection[str] = (),
) -> Cut:
    """Replay a run in a copy up to a turn, and run the tests there.

    Args:
        repo: the repository as it was at the start of the run, or as the run left it; it is not changed.
        copy: where the copy goes; nothing, or an empty folder.
        after: the last turn that counts; 0 for the start.
        test_command: what to run; None runs nothing.
        ignored: paths that are none of the repository's files: of the transcript, if it lies there.

    Raises:
        UserError: the repository is in neither state, or the record does not suffice.

    Cost: that of a copy of all of the repository.
    """
    source = Workspace(repo)
    check_record(run, after, run_commands=run_commands)
    wrong = start_difference(run, source)
    texts = _texts_before(run, source) if wrong is not None and is_as_left(run, source) else None
    if wrong is not None and texts is None:
        raise UserError(not_at_start(run, source, wrong))
    workspace = _copied(source.root, copy)
    # Removals first, since a folder may have stood in a file's place.
    for path, (before, text) in sorted((texts or {}).items(), key=lambda item: item[1][1] is not None):
        put(workspace, path, text, before)
    whole = whole_tree(run, look(workspace.root, ignored=ignored))  # with its links as they were
    _turn_links(source.root, workspace.root)
    replayed = replay(
        run, copy, to_turn=after, run_commands=run_commands, report=report, ignored=ignored, whole=whole
    )
    tests = None
    if test_command is not None and replayed.difference is None:
        tests = Tools(workspace, Policy(yes=True)).run_tests(test_command)
    return Cut(replayed, texts is not None, tests)


@contextlib.contextmanager
def temporary_copy(repo: Path) -> Iterator[Path]:
    """A place for a copy of a repository, under its name; nothing is left of it afterwards."""
    with tempfile.TemporaryDirectory(prefix="constrained-agent-cut-", ignore_cleanup_errors=True) as folder:
        copy = Path(os.path.realpath(folder), Path(os.path.realpath(repo)).name or "repo")
        try:
            yield copy
        finally:
            for journal in state_places(copy):
                shutil.rmtree(journal, ignore_errors=True)


def _copied(source: Path, copy: Path) -> Workspace:
    """A copy of a repository, as a workspace; links by full path still lead into the original.

    Raises:
        UserError: there is something at its place already, or it cannot be written.
    """
    target = Path(os.path.realpath(copy))
    if target.is_relative_to(source):
        raise UserError(f"{copy} lies in {source}: name a place outside of it")
    if os.path.lexists(target) and not (target.is_dir() and not any(target.iterdir())):
        raise UserError(f"{copy} is there already: name a folder that does not exist, or an empty one")
    try:
        shutil.copytree(source, target, symlinks=True, ignore=_no_files, dirs_exist_ok=True)
    except (shutil.Error, OSError) as error:
        raise UserError(f"{source} cannot be copied to {copy}: {error}") from error
    return Workspace(target)


def _no_files(folder: str, names: list[str]) -> list[str]:
    """Pipes, sockets and devices, which cannot be copied."""
    found = []
    for name in names:
        where = Path(folder, name)
        if not (where.is_symlink() or where.is_file() or where.is_dir()):
            found.append(name)
    return found


def _turn_links(source: Path, target: Path) -> None:
    """Links by full path into the original lead into the copy instead: the original must not be changed through it.

    Raises:
        UserError: one of them cannot be written.
    """
    for folder, folders, files in os.walk(target):
        for link in (Path(folder, name) for name in (*folders, *files)):
            to = Path(os.readlink(link)) if link.is_symlink() else None
            if to is None or not to.is_absolute() or not to.is_relative_to(source):
                continue
            try:
                link.unlink()
                link.symlink_to(target / to.relative_to(source))
            except OSError as error:
                raise UserError(f"{link} cannot be made to lead into the copy: {error}") from error


def _texts_before(run: Run, workspace: Workspace) -> dict[str, tuple[str | None, str | None]]:
    """The files that a run changed: path to entry and text at its start, both None where there was no file.

    Args:
        workspace: the repository as the run left it.

    Raises:
        UserError: the record does not say what was there.
    """
    events = [event for event in run.events if isinstance(event, (Result, Changed))]
    changes = [change for event in events for change in event.changes]
    known = {text for change in changes for text in (change.text, change.before_text) if text is not None}
    texts = {digest(text.encode("utf-8", "surrogatepass")): text for text in known}
    found: dict[str, tuple[str | None, str | None]] = {}
    for path, before in {change.path: change.before for change in reversed(changes)}.items():
        text = None if before is None else texts.get(before.split()[-1], _text_now(workspace, path, before))
        if (before is not None and text is None) or any(event.changes_left_out for event in events):
            raise UserError(
                f"the repository is as run {run.number} left it, and the record does not hold {path} from before (a "
                "command changed what the model had not read, it is no UTF-8 text, too long, or held a secret): "
                "bring back the files that the run began with"
            )
        found[path] = (before, text)
    return found


def _text_now(workspace: Workspace, path: str, wanted: str) -> str | None:
    """A file's text if it is what it was before: its mode alone changed, or it was changed back."""
    now = entry(workspace, path)
    if now is not None and now.split()[-1] == wanted.split()[-1]:
        with contextlib.suppress(UnicodeDecodeError):
            return workspace.read_bytes(path).decode("utf-8")
    return None
