"""The program behind `search_text`; imports nothing but the standard library.

It runs as a process of its own because `re` cannot be stopped, and a pattern may take exponential time. Its
one argument is JSON (pattern, start, root and the limits); it writes hits and remarks to stdout.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

_UNSEARCHED = frozenset(
    {".git", ".venv", "node_modules", "__pycache__", ".tox", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
)
"""Folders of installed packages and of tools' own data; they can be searched by naming them as path."""

BAD_PATTERN = 3
"""Exit code; the reason is on stdout. (2 is the interpreter's own.)"""

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Limits:
    """Attributes:
    hits: lines at most.
    hit_chars: characters of one line; of a longer one, the part where the hit begins.
    file_bytes: larger files are passed over.
    """

    hits: int
    hit_chars: int
    file_bytes: int


@dataclass(slots=True)
class Search:
    """One search under way: hits are written as they are found, what was passed over is counted.

    Attributes:
        passed_over: fits whole the names of files and folders that are searched only when they are named as path.
    """

    pattern: re.Pattern[str]
    root: str
    limits: Limits
    passed_over: re.Pattern[str]
    n_hits: int = 0
    n_passed_over: int = 0
    n_binary: int = 0
    n_large: int = 0
    n_unreadable: int = 0
    folders: set[str] = field(default_factory=set)

    def run(self, start: str) -> None:
        """Search a file, or the regular files below a folder, folder by folder; follow no links."""
        for path in self._files(start) if os.path.isdir(start) else [start]:
            if not self._look_into(path):
                _write(f"[stopped at {self.limits.hits} lines: use a narrower pattern or path]")
                break
        if not self.n_hits:
            _write(f"no line matches {self.pattern.pattern!r}")
        counts = {
            "binary files": self.n_binary,
            f"files over {self.limits.file_bytes:,} bytes": self.n_large,
            "unreadable files and folders": self.n_unreadable,
            "files and folders of credentials, to be searched by naming them as path": self.n_passed_over,
        }
        passed = [f"{what} ({count})" for what, count in counts.items() if count]
        passed += [f"folders named {name}" for name in sorted(self.folders)]
        if passed:
            _write(f"[not searched: {'; '.join(passed)}]")

    def _files(self, start: str) -> Iterator[str]:
        for folder, below, names in os.walk(start, onerror=self._unreadable):
            self.folders |= _UNSEARCHED.intersection(below) - {".git"}  # nobody expects that one
            below[:] = self._open_ones(set(below) - _UNSEARCHED)
            for path in (os.path.join(folder, name) for name in self._open_ones(names)):
                try:
                    regular = stat.S_ISREG(os.lstat(path).st_mode)
                except OSError as error:  # gone since it was listed
                    self._unreadable(error)
                    continue
                if regular:
                    yield path

    def _open_ones(self, names: Collection[str]) -> list[str]:
        found = sorted(name for name in names if not self.passed_over.fullmatch(name))
        self.n_passed_over += len(names) - len(found)
        return found

    def _look_into(self, path: str) -> bool:
        """Write the hits of one file. False: there are more than the limit."""
        try:
            if os.path.getsize(path) > self.limits.file_bytes:
                self.n_large += 1
                return True
            with open(path, "rb") as file:
                content = file.read()
        except OSError as error:
            self._unreadable(error)
            return True
        if b"\0" in content or content.startswith(_UTF16_MARKS):
            self.n_binary += 1
            return True
        for number, line in enumerate(content.removeprefix(_BOM).split(b"\n"), 1):
            text = line.removesuffix(b"\r").decode("utf-8", "backslashreplace")
            if found := self.pattern.search(text):
                if self.n_hits == self.limits.hits:
                    return False
                self.n_hits += 1
                shown = os.path.relpath(path, self.root).replace("\n", "\\n")
                _write(f"{shown}:{number}: {self._excerpt(text, found.start())}")
        return True

    def _excerpt(self, text: str, at: int) -> str:
        width = self.limits.hit_chars
        start = 0 if len(text) <= width else max(0, at - width // 4)
        part = text[start : start + width].replace("\r", "␍")
        return ("…" if start else "") + part + ("…" if start + len(part) < len(text) else "")

    def _unreadable(self, _: OSError) -> None:
        self.n_unreadable += 1


def _write(line: str) -> None:
    sys.stdout.buffer.write(line.encode("utf-8", "backslashreplace") + b"\n")
    sys.stdout.buffer.flush()  # so that hits found before a time limit are not lost


def main(request: str) -> int:
    """Run one request; see the module's docstring."""
    wanted = json.loads(request)
    try:
        pattern = re.compile(wanted["pattern"])
    except (re.error, RecursionError, OverflowError) as error:
        _write(str(error))
        return BAD_PATTERN
    passed_over = re.compile(wanted["passed_over"], re.IGNORECASE)
    Search(pattern, wanted["root"], Limits(**wanted["limits"]), passed_over).run(wanted["start"])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
