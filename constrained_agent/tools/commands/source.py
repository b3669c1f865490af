"""Text to the bytes that the grammar can read, and back.

The grammar's scanner asks C for the class of each character, and C's tables end at 255: a character far beyond (an
emoji, a Chinese one) may crash the process. To a shell all characters beyond ASCII are plain text, so each is written
here as seven letters that are harmless.
"""

from __future__ import annotations

import re

_START, _DIGITS = "\u00ff", "".join(map(chr, range(0xE0, 0xF0)))
_WRITTEN = re.compile(f"{_START}([{_DIGITS}]{{6}})")


def encoded(text: str) -> bytes:
    """The text for the grammar; no longer than 14 bytes for a character."""
    return re.sub(r"[^\x00-\x7f]", _written, text).encode()


def decoded(data: bytes) -> str:
    """The text that a part of `encoded` stands for."""
    return _WRITTEN.sub(_read, data.decode("utf-8", "replace"))


def _written(match: re.Match[str]) -> str:
    return _START + "".join(_DIGITS[int(digit, 16)] for digit in f"{ord(match[0]):06x}")


def _read(match: re.Match[str]) -> str:
    return chr(int("".join(f"{_DIGITS.index(letter):x}" for letter in match[1]), 16))
