"""JSON texts against schemas under LLGuidance's own whitespace rules, and schemas that must not load.

Three expectations of the cases are not about the grammar and are checked where the matter lies: `policy` (tool
schemas are closed), `parser` (repeated keys in a call's arguments) and `tool` (NUL in a path).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from constrained_agent.errors import GrammarError
from constrained_agent.grammar import prefix, sources

CASES = json.loads((Path(__file__).parent / "cases" / "json_schema.json").read_text(encoding="utf-8"))
ELSEWHERE = {"policy", "parser", "tool"}


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(case: dict[str, Any]) -> None:
    right = case["right"]
    text = case["input"].get("text", "")
    grammar = sources.from_json_schema(case["input"]["schema"], name=case["id"])
    if right.get("load_error"):
        with pytest.raises(GrammarError) as caught:
            prefix.check(text.encode(), grammar)
        assert all(word in str(caught.value) for word in right.get("error_names", []))
        return

    report = prefix.check(text.encode(), grammar)

    assert (report.status == "complete") == right["complete"]
    if "first_bad_byte" in right:
        assert report.status == "invalid"
        assert report.valid_bytes == right["first_bad_byte"]
    if "value" in right:
        assert json.loads(text) == right["value"]


def test_every_expectation_is_looked_at() -> None:
    known = {"complete", "first_bad_byte", "load_error", "error_names", "value"} | ELSEWHERE

    assert {key for case in CASES for key in case["right"]} <= known
