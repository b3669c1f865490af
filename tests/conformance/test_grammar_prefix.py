"""Texts against the public patch language and small Lark grammars: complete, beginning, or where they die."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from constrained_agent.errors import GrammarError
from constrained_agent.grammar import prefix, sources

CASES = json.loads((Path(__file__).parent / "cases" / "grammar_prefix.json").read_text(encoding="utf-8"))


def grammar_of(case: dict[str, Any]) -> sources.Grammar:
    given = case["input"]
    if case["kind"] == "lark":
        return sources.Grammar(case["id"], "lark", given["grammar_text"])
    return sources.load(given["grammar"])


def text_of(case: dict[str, Any]) -> bytes:
    given = case["input"]
    return base64.b64decode(given["b64"]) if "b64" in given else given["text"].encode()


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(case: dict[str, Any]) -> None:
    right = case["right"]
    if right.get("grammar_error"):
        with pytest.raises(GrammarError) as caught:
            prefix.check(text_of(case), grammar_of(case))
        assert all(word in str(caught.value) for word in right["error_names"])
        return

    report = prefix.check(text_of(case), grammar_of(case))

    assert (report.status == "complete") == right["complete"]
    if "prefix_ok" in right:
        assert (report.status in ("complete", "prefix")) == right["prefix_ok"]
    if "first_bad_byte" in right:
        assert report.status == "invalid"
        assert report.valid_bytes == right["first_bad_byte"]


def test_every_expectation_is_looked_at() -> None:
    known = {"complete", "prefix_ok", "first_bad_byte", "grammar_error", "error_names"}

    assert {key for case in CASES for key in case["right"]} <= known
