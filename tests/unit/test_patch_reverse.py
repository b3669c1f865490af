"""Patches taken back: exactly, or refused with a reason."""

from __future__ import annotations

import pytest

from constrained_agent.errors import PatchError
from constrained_agent.patch import parse, plan, plan_back

FILES = {"f": b"a\nb\nc\n", "g": b"def f():\n    x\n\ndef g():\n    x\n", "h": b"h\n"}


def patch(body: str) -> str:
    return f"*** Begin Patch\n{body}*** End Patch\n"


def forward(text: str, files: dict[str, bytes]) -> dict[str, bytes]:
    return after(plan(parse(text).patch, files.get).files, files)


def back(text: str, files: dict[str, bytes]) -> dict[str, bytes]:
    return after(plan_back(parse(text).patch, files.get).files, files)


def after(planned: tuple, files: dict[str, bytes]) -> dict[str, bytes]:
    result = dict(files)
    for file in planned:
        result.pop(file.path, None)
        if file.new is not None:
            result[file.new_path or file.path] = file.new
    return result


@pytest.mark.parametrize(
    "body",
    [
        "*** Update File: f\n@@\n-a\n+A\n+A2\n b\n@@\n c\n+d\n",
        "*** Update File: f\n@@\n a\n-b\n c\n",
        "*** Update File: f\n@@\n-c\n*** End of File\n",
        "*** Update File: f\n@@\n-a\n-b\n-c\n",
        "*** Update File: f\n@@\n+d\n",
        "*** Update File: h\n@@\n-h\n",
        "*** Update File: g\n@@ def g():\n-    x\n+    y\n",
        "*** Update File: g\n@@\n-def g():\n+def gg():\n@@ def g():\n-    x\n+    y\n",
        "*** Update File: g\n@@ def f():\n- x\n+ y\n",
        "*** Add File: n/m\n+x\n*** Update File: f\n*** Move to: sub/f\n@@\n-a\n+A\n",
        "*** Update File: f\n*** Move to: m\n",
        "*** Update File: f\n@@\n-a\n+A\n*** Update File: f\n@@\n-A\n+AA\n",
        "*** Add File: n\n+x\n*** Update File: n\n*** Move to: m\n@@\n-x\n+y\n",
        "*** Update File: f\n*** Move to: m\n*** Update File: m\n@@\n-a\n+A\n",
    ],
)
def test_there_and_back(body: str) -> None:
    there = forward(patch(body), FILES)
    assert there != FILES
    assert back(patch(body), there) == FILES


@pytest.mark.parametrize(
    ("body", "files", "kind"),
    [
        ("*** Delete File: f\n", {}, "file_not_found"),
        ("*** Update File: f\n@@\n-b\n", FILES | {"f": b"a\nc\n"}, "context_not_found"),
        ("*** Update File: f\n@@\n-a\n+A\n", FILES, "already_applied"),
        ("*** Update File: f\n@@\n-a\n+A\n", {"f": b"x\n"}, "context_not_found"),
        ("*** Update File: f\n@@\n-a\n+A\n", {"f": b"A\nA\n"}, "ambiguous"),
        ("*** Update File: f\n@@\n-a\n+A\n", {"f": b"A\na\n"}, "inexact_removal"),
        ("*** Update File: f\n@@\n+A\n", {"f": b"A\nb\n"}, "inexact_removal"),
        ("*** Add File: n\n+x\n", {"n": b"x\nmore\n"}, "inexact_removal"),
        ("*** Add File: n\n+x\n", {}, "file_not_found"),
        ("*** Update File: f\n*** Move to: g\n", {"f": b"x\n", "g": b"x\n"}, "exists"),
    ],
)
def test_refused(body: str, files: dict[str, bytes], kind: str) -> None:
    with pytest.raises(PatchError, match="in reverse") as caught:
        back(patch(body), files)
    assert caught.value.kind == kind


def test_lines_that_come_back_inherit_their_ending() -> None:
    """A patch does not hold it: of a removed line that ended otherwise than its neighbours, it is not known."""
    body = "*** Update File: f\n@@\n a\n-b\n c\n"
    assert back(patch(body), {"f": b"a\nc\n"}) == {"f": b"a\nb\nc\n"}
