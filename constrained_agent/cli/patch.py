"""`patch`: apply a patch without a model, like `git apply`, whole or not at all; or write one, like `git diff`."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from constrained_agent.errors import PatchError, UserError
from constrained_agent.patch import FilePlan, Patch, derive, parse, plan, render, unified_diff
from constrained_agent.tools.workspace import Applied, Workspace

if TYPE_CHECKING:
    from constrained_agent.tools.revisions import Tree

_LETTERS = {"add": "A", "update": "M", "delete": "D", "move": "R"}
_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_CONTROLS = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class _Flags:
    file: str | None
    root: str
    dry_run: bool
    reverse: bool
    from_git: str | None
    json: bool


@click.command(
    name="patch",
    help="Apply a patch without a model, like git apply: whole or not at all. FILE holds the patch; without it, "
    "or with -, it comes from stdin. With --from-git, print a patch instead, like git diff.",
)
@click.argument("file", required=False)
@click.option("--root", default=".", show_default=True, help="Folder that the patch's paths are relative to.")
@click.option("--dry-run", is_flag=True, help="Check everything and show the result; write nothing.")
@click.option(
    "--reverse", is_flag=True, help="Take the patch back; with --from-git, print the patch that leads back."
)
@click.option(
    "--from-git",
    metavar="REV",
    help="Print, as a patch, how the files that git tracks differ from commit REV, or what A..B changes.",
)
@click.option("--json", is_flag=True, help="Print one JSON object instead of the list and the diff.")
def command(**given: Any) -> int:
    flags = _Flags(**given)
    if flags.from_git is not None and (flags.file is not None or flags.dry_run):
        raise click.UsageError(
            "--from-git writes a patch and reads none: it goes with neither FILE nor --dry-run"
        )
    workspace = Workspace(flags.root)
    try:
        return _apply(workspace, flags) if flags.from_git is None else _from_git(workspace.root, flags)
    except PatchError as error:
        if not flags.json:
            raise
        click.echo(json.dumps(_error_facts(error)))
        return 1


def _apply(workspace: Workspace, flags: _Flags) -> int:
    parsed = parse(_decode(_read(flags.file or "-")))
    applied = workspace.apply(parsed.patch, dry_run=flags.dry_run, reverse=flags.reverse)
    if applied.recovered:
        click.echo("note: first undid or cleaned up a patch that had been interrupted", err=True)
    if parsed.leniencies:
        counts = ", ".join(f"{name} {n}" for name, n in parsed.leniencies.items())
        click.echo(f"note: not quite the format, but clear: {counts}", err=True)
    if flags.json:
        _print_json(applied, dict(parsed.leniencies))
    else:
        click.echo("\n".join([*map(_row, applied.files), ""]).encode("utf-8", "surrogateescape"))
        _print(applied.diff)
    return 0


def _from_git(root: Path, flags: _Flags) -> int:
    from constrained_agent.tools.revisions import trees  # only this starts processes

    assert flags.from_git is not None
    old, new = trees(root, flags.from_git)
    if flags.reverse:
        old, new = new, old
    patch = derive(old.files, new.files)
    text = _text(patch)
    files = plan(parse(text).patch, old.files.get).files if text else ()
    for file in files:  # tried out before anybody sees it
        assert file.new == new.files.get(file.new_path or file.path), f"the patch does not give {file.path}"
    notes = [f"{note}, which a patch cannot say" for note in _changed_modes(old, new, files)]
    for note in notes:
        click.echo(f"note: {note}", err=True)
    if flags.json:
        facts = {"files": _file_facts(files), "diff": unified_diff(files), "notes": notes}
        click.echo(json.dumps({"ok": True, "patch": text, **facts}))
    else:
        _print(text)
    return 0


def _changed_modes(old: Tree, new: Tree, files: Sequence[FilePlan]) -> Iterator[str]:
    came_from = {file.new_path: file.path for file in files}
    for path in sorted(new.files):
        can_now = path in new.executable
        if can_now != (came_from.get(path, path) in old.executable):
            yield f"{path} becomes executable" if can_now else f"{path} is executable no more"


def _text(patch: Patch) -> str:
    """The patch's text; empty if there is nothing to change."""
    for section in patch.sections:
        try:
            render(Patch((section,))).encode()
        except UnicodeEncodeError as error:
            reason = "a line that the patch must name is not UTF-8, and a patch is UTF-8 text"
            raise PatchError("not_text", reason, path=section.path) from error
    return render(patch) if patch.sections else ""


def _read(file: str) -> bytes:
    if file == "-":
        if sys.stdin.isatty():
            click.echo("reading the patch from the terminal; Ctrl-D ends it", err=True)
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}; give a patch file, or - to read it from stdin") from error


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = "it is UTF-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else f"byte {error.start} is not"
        reason = f"the patch is not UTF-8 text: {what}; save it as UTF-8"
        raise PatchError("bad_envelope", reason, lines=(line,)) from error


def _error_facts(error: PatchError) -> dict[str, Any]:
    facts = {"kind": error.kind, "message": str(error), "path": error.path, "hunk": error.hunk}
    return {"ok": False, "error": {**facts, "lines": list(error.lines)}}


def _file_facts(files: Sequence[FilePlan]) -> list[dict[str, Any]]:
    keys = ("path", "action", "new_path", "added", "removed")
    return [{key: getattr(file, key) for key in keys} for file in files]


def _print_json(applied: Applied, leniencies: dict[str, int]) -> None:
    state = {"ok": True, "dry_run": applied.dry_run, "recovered": applied.recovered}
    facts = {"files": _file_facts(applied.files), "diff": applied.diff, "leniencies": leniencies}
    # ASCII, so that bytes of the files that are not UTF-8 do not break the output.
    click.echo(json.dumps({**state, **facts}))


def _row(file: FilePlan) -> str:
    name = file.path if file.new_path is None else f"{file.path} -> {file.new_path}"
    return f"{_LETTERS[file.action]} {name} +{file.added} -{file.removed}"


def _print(text: str) -> None:
    """A diff or a patch: to the byte for a pipe, for the files may hold what is not UTF-8; in colour for people."""
    if sys.stdout.isatty():
        # What a file holds must not steer the terminal.
        text = _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
        if not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
            text = "\n".join(_coloured(text.split("\n")))
    click.echo(text.encode("utf-8", "surrogateescape"), nl=False, color=True)


def _coloured(lines: Iterable[str]) -> Iterator[str]:
    """Lines of a unified diff or of a patch, with terminal colours."""
    from rich.style import Style  # only for a terminal

    styles = {mark: Style.parse(style) for mark, style in _STYLES.items()}
    bold = Style.parse("bold")
    in_header = False
    for line in lines:
        if line.startswith("diff --git "):
            in_header = True
        elif line.startswith("@@"):
            in_header = False
        style = bold if in_header or line.startswith("***") else styles.get(line[:1])
        yield line if style is None else style.render(line)
