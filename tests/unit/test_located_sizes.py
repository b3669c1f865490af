"""Files of every size and shape can be edited by a located patch, and none of them ends the process.

LLGuidance overflows the stack where a grammar is a long chain of rules, and that no test can catch; so each case has a
process of its own, whose exit status says how it ended.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PERIOD = 7
MIDDLE = 50
"""Lines that are read of a file that is too large to be on offer whole."""

SHAPES = {
    "equal": lambda i: "the same line",
    "different": lambda i: f"line {i}",
    "periodic": lambda i: f"line {i % PERIOD}",
}
CASES = [
    ("equal", 0, "all"),
    ("equal", 1, "all"),
    *((shape, n, "all") for n in (100, 1_000, 3_000, 10_000, 200_000) for shape in SHAPES),
    *((shape, n, "middle") for n in (10_000, 200_000) for shape in SHAPES),
]


@pytest.mark.parametrize(("shape", "n_lines", "read"), CASES)
def test_a_file_can_be_edited(shape: str, n_lines: int, read: str) -> None:
    command = [sys.executable, __file__, shape, str(n_lines), read]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr[-2_000:]
    facts = json.loads(done.stdout)
    print(facts)
    assert facts["removed"]["lines"] < 0 or n_lines == 0
    assert facts["added"]["lines"] == 1
    if shape == "different" and n_lines and read == "middle":
        # The place is one that was read, not the end of the file.
        assert abs(facts["removed"]["line"] - n_lines // 2) <= MIDDLE


def edit(shape: str, n_lines: int, read: str) -> dict[str, Any]:
    """Compile the language of one file and write two patches of it; needs a deep stack."""
    from constrained_agent.grammar.located.offer import Editable, OfferedFile, locate
    from constrained_agent.grammar.located.placing import compile_patch
    from constrained_agent.grammar.matcher import byte_tokenizer

    lines = [SHAPES[shape](i) for i in range(n_lines)]
    middle = range(n_lines // 2, min(n_lines, n_lines // 2 + MIDDLE))
    offered = OfferedFile("f", tuple(lines), (middle,) if read == "middle" else None)
    started = time.perf_counter()
    located = locate(Editable((offered,)))
    built = time.perf_counter()
    matcher = compile_patch(byte_tokenizer(["<|im_end|>"]), located)
    compiled = time.perf_counter()
    matcher.warm()
    return {
        "case": [shape, n_lines, read],
        "states": len(located.files[0].automaton.states),
        "removed": applied(matcher, "@@\n", lines),
        "added": applied(matcher, "@@\n+new\n", lines),
        "locate_s": round(built - started, 2),
        "compile_s": round(compiled - built, 2),
        "all_s": round(time.perf_counter() - started, 2),
    }


def applied(matcher: Any, begun: str, lines: list[str]) -> dict[str, Any]:
    """Bring a hunk to its end the shortest way and apply it: how many lines more the file has, and from which on."""
    from constrained_agent.patch import parse, plan

    matcher = matcher.fresh()
    begun = f"*** Begin Patch\n*** Update File: f\n{begun}"
    for byte in begun.encode():  # every mask on the way, as when a model writes
        assert matcher.bitmask()[byte // 32] >> (byte % 32) & 1, f"byte {byte} of {begun!r} is not offered"
        matcher.consume([byte])
    way = matcher.closing()
    assert way is not None
    matcher.consume(way)
    assert matcher.accepting
    text = begun + bytes(way).decode()
    old = "".join(f"{line}\n" for line in lines)
    (file,) = plan(parse(text, lenient=False).patch, {"f": old.encode()}.get).files
    assert file.new is not None
    assert file.new != file.old
    assert "".join(line[1:] + "\n" for line in text.split("\n") if line[:1] in (" ", "-")) in old
    return {"lines": file.added - file.removed, "line": file.changes[0].old_start, "patch": text[-120:]}


def main(shape: str, n_lines: str, read: str) -> None:
    from constrained_agent.grammar.deepstack import started

    facts = started(lambda: edit(shape, int(n_lines), read)).result()
    # Kilobytes on Linux, bytes on macOS.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    print(json.dumps({**facts, "peak_mb": round(peak)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
