"""Reading files and folders for the model, inside the repository.

Answers are bounded and say what they left out. Lines are counted as patches count them: only `\\n` ends one.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constrained_agent.errors import PatchError, ToolError
from constrained_agent.messages import ToolSpec
from constrained_agent.patch import textfile
from constrained_agent.patch.textfile import TextFile

if TYPE_CHECKING:
    from constrained_agent.tools.workspace import Workspace

MAX_ENTRIES = 200
"""Of a folder: about 2,000 tokens."""

DEFAULT_LINES, MAX_LINES = 400, 1_000
"""Of one read: most source files whole, about 5,000 tokens."""

MAX_READ_CHARS = 20_000
"""Of one read, about 6,000 tokens; a page ends before the line that would exceed it."""

MAX_LINE_CHARS = 500
"""Of one line: minified files would fill a page with nothing to edit."""

MAX_FILE_BYTES = 20_000_000
"""A file is read whole, for its line count and its stamp; 20 MB take some 0.1 s."""

_LONE_CR = "␍"
_UNDECODABLE = re.compile("[\udc80-\udcff]")  # how `textfile` keeps bytes that are not UTF-8


def _spec(name: str, description: str, properties: dict[str, Any], *required: str) -> ToolSpec:
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    return ToolSpec(name, description, schema, effect="read")


LIST_DIR = _spec(
    "list_dir",
    "List one folder: names, sizes, / after folders. Not recursive; to find text use search_text. "
    'path: relative to the repository root, "." for the root.',
    {"path": {"type": "string"}},
    "path",
)

READ_FILE = _spec(
    "read_file",
    "Read a text file, each line as NUMBER│TEXT; number and │ are not part of the file. "
    "Do this before you patch it. To find something in many files use search_text. "
    f"offset: first line, 1 if left out. limit: lines, {DEFAULT_LINES} if left out, at most {MAX_LINES}.",
    {
        "path": {"type": "string"},
        "offset": {"type": "integer", "minimum": 1},
        "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LINES},
    },
    "path",
)


def list_dir(workspace: Workspace, path: str) -> str:
    """The entries of one folder by name, one a line.

    Raises:
        PatchError: there is nothing at this path of the repository.
        ToolError: it is a file.
    """
    folder = existing(workspace, path)
    if not folder.is_dir():
        raise ToolError(f"{path} is a file, not a folder: use read_file")
    entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    count = "1 entry" if len(entries) == 1 else f"{len(entries)} entries"
    lines = [f"{shown(workspace, folder)}: {count}"]
    lines += [_entry(entry, workspace.root) for entry in entries[:MAX_ENTRIES]]
    if len(entries) > MAX_ENTRIES:
        lines.append(f"[{len(entries) - MAX_ENTRIES} more entries are not shown]")
    return "\n".join(lines)


def read_file(workspace: Workspace, path: str, offset: int = 1, limit: int = DEFAULT_LINES) -> str:
    """Numbered lines of one text file, which counts as read from now on, as far as the page goes.

    Args:
        workspace: where the file lies, and what remembers the read and its lines.
        path: relative to the root.
        offset: 1-based first line.
        limit: lines at most; the page also ends at `MAX_READ_CHARS`.

    Raises:
        PatchError: there is no such file in the repository, or it is no text.
        ToolError: it is too large, or shorter than `offset`.
    """
    where = workspace.resolve(path)
    if where.is_file() and (size := where.stat().st_size) > MAX_FILE_BYTES:
        raise ToolError(f"{path} has {size:,} bytes, too many to read: use a command like grep or sed")
    content = workspace.read_bytes(path)
    file = textfile.decode(content, path)
    total = len(file.texts)
    if offset > max(1, total):
        raise ToolError(f"{path} has {total} lines: there is no line {offset}")
    page = _page(file, offset, limit)
    last = offset + len(page) - 1
    workspace.record_read(path, content, range(offset - 1, last))
    about = f"lines {offset}-{last} of {total}" if page else "0 lines, the file is empty"
    head = "; ".join([f"{shown(workspace, where)}: {about}", *_peculiarities(file)])
    rest = [f"[{total - last} more lines: go on with offset {last + 1}]"] if last < total else []
    return "\n".join([head, *page, *rest])


def existing(workspace: Workspace, path: str) -> Path:
    """The real place of a path that the model named.

    Raises:
        PatchError: it is outside the repository, or there is nothing.
    """
    where = workspace.resolve(path)
    if not os.path.exists(where):
        reason = "there is no such file or folder; list_dir shows what there is"
        raise PatchError("file_not_found", reason, path=path)
    return where


def numbered(texts: Iterable[str], first: int, width: int) -> Iterator[str]:
    """Lines as the model is shown them, so that no number is mistaken for text of the file.

    Args:
        texts: lines as `textfile` has them.
        first: number of the first one.
        width: characters of the longest number.
    """
    for number, line in enumerate(texts, first):
        text = _valid(line).replace("\r", _LONE_CR)
        if len(text) > MAX_LINE_CHARS:
            text = f"{text[:MAX_LINE_CHARS]}… [cut: the line has {len(text):,} characters]"
        yield f"{number:>{width}}│{text}"


def _page(file: TextFile, offset: int, limit: int) -> list[str]:
    """Numbered lines from `offset`, as many as the limits allow and at least one if there is one."""
    wanted = file.texts[offset - 1 : offset - 1 + limit]
    page: list[str] = []
    n_chars = 0
    for line in numbered(wanted, offset, len(str(offset + len(wanted) - 1))):
        n_chars += len(line) + 1
        if page and n_chars > MAX_READ_CHARS:
            break
        page.append(line)
    return page


def _peculiarities(file: TextFile) -> Iterator[str]:
    """What the numbered lines do not show by themselves."""
    n_crlf = file.endings.count("\r\n")
    if file.bom:
        yield "starts with a byte-order mark"
    if n_crlf:
        n_ended = len(file.endings) - file.endings.count("")
        yield "lines end in CRLF" if n_crlf == n_ended else f"{n_crlf} of {n_ended} lines end in CRLF"
    if any("\r" in text for text in file.texts):
        yield f"{_LONE_CR} is a carriage return inside a line"
    if "" in file.endings:
        yield "no newline at the end"
    if any(_UNDECODABLE.search(text) for text in file.texts):
        yield "bytes that are not UTF-8 are shown as \\xNN"


def _entry(entry: os.DirEntry[str], root: Path) -> str:
    name = _printable(entry.name)
    if entry.is_symlink():
        inside = Path(os.path.realpath(entry.path)).is_relative_to(root)
        target = _printable(os.readlink(entry.path))
        return f"{name} -> {target}" + ("" if inside else "  (outside the repository)")
    if entry.is_dir(follow_symlinks=False):
        return name + "/"
    facts = entry.stat(follow_symlinks=False)
    return f"{name}  {facts.st_size:,} bytes" if stat.S_ISREG(facts.st_mode) else f"{name}  (no regular file)"


def shown(workspace: Workspace, where: Path) -> str:
    """A path as the model is told of it."""
    return _printable(where.relative_to(workspace.root).as_posix())


def _printable(name: str) -> str:
    """A file name as one line of valid text, whatever bytes it has."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in _valid(name))


def _valid(text: str) -> str:
    """Text that can be encoded: bytes that were not UTF-8 become `\\xNN`."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
