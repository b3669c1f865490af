"""Bytes to lines and back."""

from __future__ import annotations

import pytest

from constrained_agent.errors import PatchError
from constrained_agent.patch.textfile import count_lines, decode, encode


@pytest.mark.parametrize(
    ("data", "texts", "endings", "bom"),
    [
        (b"", [], [], False),
        (b"\n", [""], ["\n"], False),
        (b"a", ["a"], [""], False),
        (b"a\nb\n", ["a", "b"], ["\n", "\n"], False),
        (b"a\r\nb\nc", ["a", "b", "c"], ["\r\n", "\n", ""], False),
        (b"a\r\r\nb\r", ["a\r", "b\r"], ["\r\n", ""], False),
        (b"a\rb\n\n\n", ["a\rb", "", ""], ["\n", "\n", "\n"], False),
        (b"\xef\xbb\xbfa\n", ["a"], ["\n"], True),
        (b"\xef\xbb\xbf", [], [], True),
        (b"\xef\xbb\xbf\xef\xbb\xbfa", ["\ufeffa"], [""], True),
        (b"caf\xe9\n\x80", ["caf\udce9", "\udc80"], ["\n", ""], False),
        ("a\x0cb\x85c\u2028d\x1ce\n".encode(), ["a\x0cb\x85c\u2028d\x1ce"], ["\n"], False),
    ],
)
def test_lines_and_back(data: bytes, texts: list[str], endings: list[str], bom: bool) -> None:
    file = decode(data, "f")
    assert (list(file.texts), list(file.endings), file.bom) == (texts, endings, bom)
    assert encode(file) == data
    if not bom:
        assert count_lines(data) == len(texts)


@pytest.mark.parametrize("data", [b"a\0b\n", "x\n".encode("utf-16"), b"\xfe\xff\x00x", b"\xff\xfe", b"\0"])
def test_what_is_no_text(data: bytes) -> None:
    with pytest.raises(PatchError, match=r"f: .*") as caught:
        decode(data, "f")
    assert caught.value.kind == "not_text"


def test_no_file_has_no_lines() -> None:
    assert count_lines(None) == 0
