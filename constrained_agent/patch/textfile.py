"""The bytes of a text file as lines with their endings, and back, byte for byte."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from constrained_agent.errors import PatchError

_BOM = "\ufeff"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file's lines. Only `\\n` ends a line; one CR before it belongs to the ending.

    Attributes:
        texts: lines without ending and without byte-order mark. Bytes that are not UTF-8 stand as U+DC80 to
            U+DCFF.
        endings: `\\n` or `\\r\\n` for each line; the last one may be empty.
        bom: the file starts with the UTF-8 byte-order mark.
    """

    texts: Sequence[str]
    endings: Sequence[str]
    bom: bool = False


def decode(data: bytes, path: str) -> TextFile:
    """Bytes to lines; `encode` gives the same bytes back.

    Args:
        path: the file's name for the message.

    Raises:
        PatchError: `not_text` for NUL bytes or a UTF-16 mark.
    """
    if data.startswith(_UTF16_MARKS):
        raise PatchError("not_text", "the file is UTF-16; only UTF-8 text can be patched", path=path)
    if (at := data.find(b"\0")) >= 0:
        raise PatchError("not_text", f"byte {at} of the file is NUL: it is not a text file", path=path)
    text = data.decode("utf-8", "surrogateescape")
    bom = text.startswith(_BOM)
    texts = (text[1:] if bom else text).split("\n")
    endings = ["\n"] * len(texts)
    if "\r" in text:
        for i, line in enumerate(texts[:-1]):
            if line.endswith("\r"):
                texts[i], endings[i] = line[:-1], "\r\n"
    if texts[-1]:
        endings[-1] = ""
    else:
        del texts[-1], endings[-1]
    return TextFile(texts, endings, bom)


def encode(file: TextFile) -> bytes:
    """Lines back to bytes."""
    if set(file.endings) == {"\n"}:
        body = "\n".join(file.texts) + "\n"
    else:
        body = "".join(text + ending for text, ending in zip(file.texts, file.endings, strict=True))
    return ((_BOM if file.bom else "") + body).encode("utf-8", "surrogateescape")


def count_lines(data: bytes | None) -> int:
    """Lines of a file, an unterminated last one included; 0 for no file."""
    return data.count(b"\n") + (not data.endswith(b"\n")) if data else 0
