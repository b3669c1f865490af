"""The page: self-contained, every character once with its expectation, nothing of the text taken for markup."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from constrained_agent.grammar import page, prefix, sources
from constrained_agent.grammar.sources import Grammar

PATCH = sources.load("apply_patch")


class Reader(HTMLParser):
    """Text and classes of the numbered characters, and the text of the list."""

    def __init__(self) -> None:
        super().__init__()
        self.places: list[tuple[str, str]] = []
        self.tags: list[str] = []
        self._classes: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = dict(attrs)
        self._classes = given["class"] if "data-i" in given else None

    def handle_data(self, data: str) -> None:
        if self._classes is not None:
            self.places.append((self._classes, data))
            self._classes = None


def read(
    data: bytes, grammar: Grammar = PATCH, specials: tuple[str, ...] = ()
) -> tuple[Reader, dict[str, Any], str]:
    text = page.rendered(data, grammar, prefix.check(data, grammar, specials=specials), specials=specials)
    reader = Reader()
    reader.feed(text)
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found
    return reader, json.loads(found[1]), text


def expected_at(data: dict[str, Any], index: int) -> list[str]:
    entries: list[str] = data["expected"][data["places"][index][1]]
    return entries


def test_an_invalid_text() -> None:
    reader, data, text = read(b"*** Begin Patch\n*** Delete File: <b>&\n*** Foo")

    shown = "".join(character for _, character in reader.places).replace("⏎", "\n")
    assert shown == "*** Begin Patch\n*** Delete File: <b>&\n*** F"
    assert reader.places[-1] == ("refused", "F")
    assert expected_at(data, -1) == ['"Add File: "', '"Delete File: "', '"End Patch"', '"Update File: "']
    assert reader.places[0] == ("forced", "*")
    assert reader.places[20] == ("free", "D")
    assert "Refused at line 3, column 5" in text
    assert '<span class="rest">oo</span>' in text
    assert len(data["places"]) == len(reader.places)


def test_a_prefix_shows_its_completion() -> None:
    reader, data, text = read(b"*** Begin Patch\n")

    assert reader.places[-1] == ("here", "▏")
    assert data["places"][-1][0] == "end of text"
    assert '<span class="ghost">*** Add File: a</span>' in text


def test_a_complete_text_shows_where_it_could_have_ended() -> None:
    reader, data, _ = read(b"ab", sources.from_regex("ab*"))

    assert [classes for classes, _ in reader.places] == ["forced", "free end", "here"]
    assert expected_at(data, -1) == ['"b"', "end of text"]


def test_special_tokens_are_one_place() -> None:
    reader, data, _ = read(b"x<call>", Grammar("g", "lark", 'start: /[a-z]+/ <call> "y"'), ("<call>",))

    assert [shown for _, shown in reader.places] == ["x", "<call>", "▏"]
    assert "<call>" in expected_at(data, 1)


@pytest.mark.parametrize(
    "text", [b"</script><script>alert(1)</script>", b"@@data@@ @@text@@", b"a\x00\xff\x1b", b"caf\xc3", b""]
)
def test_no_text_breaks_the_page(text: bytes) -> None:
    reader, data, made = read(text, Grammar("</title><b>", "lark", "start: /(.|\\n)*/"))

    assert reader.tags.count("script") == 2
    assert "</title><b>" not in made
    assert made.isprintable() or set(re.findall(r"[^ -~]", made)) <= set("\n⏎▏·é…")
    assert len(data["places"]) == len(reader.places)


def test_nothing_comes_from_outside() -> None:
    _, _, text = read(b"x")

    assert not re.search(r"https?:|<link|src=|url\(|@import", text)


def test_long_texts_show_their_end() -> None:
    text = b"*** Begin Patch\n*** Add File: a\n" + b"+line\n" * 2_000 + b"x"

    reader, _, made = read(text)

    assert len(reader.places) == page.MAX_CHARACTERS
    assert reader.places[-1] == ("refused", "x")
    assert "the last 4,000 of the 12,033 characters" in made
    assert "counter-reset: n 1335" in made
