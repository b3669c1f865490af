"""`patch`: apply a patch without a model, like `git apply`, whole or not at all."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from constrained_agent.errors import PatchError, UserError
from constrained_agent.patch import FilePlan, parse
from constrained_agent.tools.workspace import Applied, Workspace

_LETTERS = {"add": "A", "update": "M", "delete": "D", "move": "R"}
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@dataclass(frozen=True, slots=True)
class _Flags:
    file: str
    root: str
    dry_run: bool
    json: bool


@click.command(
    name="patch",
    help="Apply a patch without a model, like git apply: whole or not at all. FILE holds the patch; without it, "
    "or with -, it comes from stdin.",
)
@click.argument("file", default="-")
@click.option("--root", default=".", show_default=True, help="Folder that the patch's paths are relative to.")
@click.option("--dry-run", is_flag=True, help="Check everything and show the result; write nothing.")
@click.option("--json", is_flag=True, help="Print one JSON object instead of the list and the diff.")
def command(**given: Any) -> int:
    flags = _Flags(**given)
    workspace = Workspace(flags.root)
    data = _read(flags.file)
    try:
        parsed = parse(_decode(data))
        applied = workspace.apply(parsed.patch, dry_run=flags.dry_run)
    except PatchError as error:
        if not flags.json:
            raise
        click.echo(json.dumps(_error_facts(error)))
        return 1
    if parsed.leniencies:
        counts = ", ".join(f"{name} {n}" for name, n in parsed.leniencies.items())
        click.echo(f"note: not quite the format, but clear: {counts}", err=True)
    _print_json(applied, dict(parsed.leniencies)) if flags.json else _print(applied)
    return 0


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


def _print_json(applied: Applied, leniencies: dict[str, int]) -> None:
    keys = ("path", "action", "new_path", "added", "removed")
    files = [{key: getattr(file, key) for key in keys} for file in applied.files]
    facts = {"ok": True, "dry_run": applied.dry_run, "files": files, "diff": applied.diff}
    # ASCII, so that bytes of the files that are not UTF-8 do not break the output.
    click.echo(json.dumps({**facts, "leniencies": leniencies}))


def _print(applied: Applied) -> None:
    """The list, then the diff: as bytes, for the files may hold what is not UTF-8."""
    lines = [_row(file) for file in applied.files] + [""]
    coloured = sys.stdout.isatty()
    for line in applied.diff.split("\n"):
        colour = _COLOURS.get(line[:1]) if coloured else None
        lines.append(click.style(line, fg=colour) if colour else line)
    click.echo("\n".join(lines).encode("utf-8", "surrogateescape"), nl=False)


def _row(file: FilePlan) -> str:
    name = file.path if file.new_path is None else f"{file.path} -> {file.new_path}"
    return f"{_LETTERS[file.action]} {name} +{file.added} -{file.removed}"
