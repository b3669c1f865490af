"""What a command printed as plain text, and as rows: lines with long ones broken, so that all of it can be paged. Pure.

A line ends at `\\n`, `\\r\\n` or `\\r` (a progress bar draws itself again after one). A row is a line, or a piece of
one that has more than `ROW_BYTES`; rows are numbered from 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

ROW_BYTES = 500
"""Of one row, as the bytes were printed: a minified file, or a terabyte without a newline, can be paged too."""

_END_BYTES = 2  # of `\r\n`, which is no piece of its own
_BLOCK_BYTES = 250_000  # read at a time
_TERMINAL_CODES = re.compile(  # colours and cursor; titles and links; the short ones
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of a stream.

    Attributes:
        rows: plain text, each with whether it goes on with the line of the row before.
        total: rows of the whole stream.
    """

    rows: tuple[tuple[str, bool], ...]
    total: int


def plain(data: bytes) -> str:
    """Decoded without fail, no terminal codes; other control characters and stray bytes as `\\xNN`."""
    text = _TERMINAL_CODES.sub("", data.decode("utf-8", "backslashreplace"))
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def page(stream: BinaryIO, offset: int, limit: int, max_chars: int) -> Page:
    """Rows from `offset` on: as many as the limits allow, and at least one if there is one.

    Args:
        stream: at its beginning; it is read to its end, for the count of rows.
        offset: 1-based first row.
        limit: rows at most.
        max_chars: of all rows together.

    Cost: some 20 ms for 10 MB, half a second where every line is one character; a few MB of memory.
    """
    found: list[tuple[str, bool]] = []
    total, n_chars, is_full, goes_on = 0, 0, False, False
    for batch in _batches(stream):
        first = max(0, offset - 1 - total)
        total += len(batch)
        if first < len(batch) and not is_full:
            goes_on = not _is_ended(batch[first - 1]) if first else goes_on
            for row in batch[first:]:
                text = plain(row).removesuffix("\n")
                n_chars += len(text) + 1
                is_full = len(found) >= limit or (bool(found) and n_chars > max_chars)
                if is_full:
                    break
                found.append((text, goes_on))
                goes_on = not _is_ended(row)
        goes_on = not _is_ended(batch[-1])
    return Page(tuple(found), total)


def row_of(data: bytes, n_chars: int) -> int:
    """The number of the row that the plain text has come to after so many characters; the last one past its end."""
    number = seen = 0
    for number, row in enumerate(_folded(data.splitlines(keepends=True)), 1):
        seen += len(plain(row))
        if seen > n_chars:
            return number
    return max(1, number)


def _batches(stream: BinaryIO) -> Iterator[Sequence[bytes]]:
    """All rows with their line ends, many at a time and at least one."""
    rest = b""
    while block := stream.read(_BLOCK_BYTES):
        # The last line may go on, be it only from `\r` to `\r\n`; of a long one all pieces but the last are certain.
        *lines, rest = (rest + block).splitlines(keepends=True)
        if len(rest) > ROW_BYTES + _END_BYTES:
            *pieces, rest = _folded([rest])
            lines += pieces
        if lines:
            yield _folded(lines)
    if rest:
        yield _folded([rest])


def _folded(lines: Sequence[bytes]) -> Sequence[bytes]:
    """Lines with those broken that are longer than a row; no character is cut in two."""
    if max(map(len, lines), default=0) <= ROW_BYTES + _END_BYTES:
        return lines
    return [piece for line in lines for piece in _pieces(line)]


def _pieces(line: bytes) -> Iterator[bytes]:
    start = 0
    while len(line) - start > ROW_BYTES + _END_BYTES:
        end = start + ROW_BYTES
        # A character of UTF-8 has up to three bytes after its first; more of them in a row are none.
        end = next((at for at in range(end, end - 4, -1) if line[at] & 0xC0 != 0x80), end)
        yield line[start:end]
        start = end
    yield line[start:]


def _is_ended(row: bytes) -> bool:
    return row.endswith((b"\n", b"\r"))
