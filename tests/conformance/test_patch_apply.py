"""Every case of `cases/patch_apply.json` through the real workspace; some through the real command line."""

from __future__ import annotations

import base64
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from constrained_agent.errors import PATCH_ERROR_KINDS, PatchError
from constrained_agent.patch import parse
from constrained_agent.tools.workspace import Workspace

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "cases" / "patch_apply.json").read_text(encoding="utf-8")
)
THROUGH_THE_COMMAND = (
    "ambiguous_exact_refused",
    "crlf_file_stays_crlf",
    "non_utf8_bytes_survive",
    "move_keeps_the_mode",
    "A53-traversal",
    "A63-path-spaces-unicode",
)


def _bytes(spec: Any) -> bytes:
    if isinstance(spec, str):
        return spec.encode()
    if "b64" in spec:
        return base64.b64decode(spec["b64"])
    if "repeat" in spec:
        return (spec["repeat"] * spec["times"] + spec["then"]).encode()
    return spec["text"].encode()


def _lay_out(root: Path, files: dict[str, Any]) -> None:
    root.mkdir()
    (root.parent / "outside.txt").write_text("o\n")
    for name, spec in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(spec, dict) and "symlink" in spec:
            path.symlink_to(spec["symlink"])
            continue
        path.write_bytes(_bytes(spec))
        if isinstance(spec, dict) and "mode" in spec:
            path.chmod(int(spec["mode"], 8))


def tree(root: Path) -> dict[str, tuple[str, int, bytes]]:
    """Everything below a folder: kind, mode and content or link target."""
    found = {}
    for path in sorted(root.rglob("*")):
        facts = path.lstat()
        if path.is_symlink():
            content, kind = os.fsencode(os.readlink(path)), "link"
        elif path.is_dir():
            content, kind = b"", "folder"
        else:
            content, kind = path.read_bytes(), "file"
        found[str(path.relative_to(root))] = (kind, stat.S_IMODE(facts.st_mode), content)
    return found


def _fault(case_outcome: dict[str, Any], before: dict[str, Any], root: Path, error: PatchError | None) -> str:
    """Why the result is not this outcome; empty if it is."""
    after = tree(root)
    if "error" in case_outcome:
        if error is None:
            return f"applied instead of {case_outcome['error']}: {after}"
        if error.kind != case_outcome["error"]:
            return f"{error.kind} instead of {case_outcome['error']}: {error}"
        if "lines" in case_outcome and list(error.lines) != case_outcome["lines"]:
            return f"lines {error.lines}"
        missing = [name for name in case_outcome.get("message_names", []) if name not in str(error)]
        return f"{missing} not in: {error}" if missing else "" if after == before else "tree changed"
    if error is not None:
        return str(error)
    for name, spec in case_outcome["files"].items():
        kind, mode, content = after.get(name, ("absent", 0, b""))
        if isinstance(spec, dict) and "symlink" in spec:
            if (kind, content) != ("link", spec["symlink"].encode()):
                return f"{name}: {kind} {content!r}"
            continue
        if kind != "file" or content != _bytes(spec):
            return f"{name}: {kind} {content!r}"
        if isinstance(spec, dict) and "mode" in spec and mode != int(spec["mode"], 8):
            return f"{name}: mode {mode:o}"
    extra = (
        {name for name, entry in after.items() if entry[0] != "folder"}
        - set(case_outcome["files"])
        - set(before)
    )
    left = set(case_outcome.get("absent", [])) & set(after)
    return f"unexpected: {extra | left}" if extra | left else ""


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(case: dict[str, Any], tmp_path: Path) -> None:
    root = tmp_path / "root"
    _lay_out(root, case["files"])
    before = tree(root)
    error = None
    try:
        Workspace(root).apply(parse(case["patch"]).patch)
    except PatchError as raised:
        error = raised
        assert error.kind in PATCH_ERROR_KINDS
        assert str(error).count("\n") < 13
    faults = [_fault(outcome, before, root, error) for outcome in case["accept"]]
    assert "" in faults, faults
    assert (tmp_path / "outside.txt").read_text() == "o\n"


@pytest.mark.parametrize("case_id", THROUGH_THE_COMMAND)
def test_case_through_the_command(case_id: str, tmp_path: Path) -> None:
    case = next(case for case in CASES if case["id"] == case_id)
    root = tmp_path / "root"
    _lay_out(root, case["files"])
    before = tree(root)
    done = subprocess.run(
        [sys.executable, "-m", "constrained_agent", "patch", "-", "--root", root, "--json"],
        input=case["patch"].encode(),
        capture_output=True,
        check=False,
    )
    answer = json.loads(done.stdout.splitlines()[-1])
    error = None
    if not answer["ok"]:
        told = answer["error"]
        error = PatchError(told["kind"], told["message"], lines=tuple(told["lines"]))
    assert done.returncode == (0 if answer["ok"] else 1)
    assert b"Traceback" not in done.stderr
    faults = [_fault(outcome, before, root, error) for outcome in case["accept"]]
    assert "" in faults, faults
