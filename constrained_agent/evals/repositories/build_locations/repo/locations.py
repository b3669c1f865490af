"""Finds what can be clicked in the output of a build: files with line numbers, and issues."""

import re
from typing import NamedTuple, Optional

# C:\work\main.c:12:5 as well as src/main.c:12; the column may be missing.
LOCATION = re.compile(r"(?P<path>(?:\b[A-Za-z]:[\/])?[\w.-]+(?:[\/][\w.-]+)*\.\w+):(?P<line>\d+)(?::(?P<column>\d+))?")

# TEAM-123, but not X-1 (one letter) or part of a longer word.
ISSUE = re.compile(r"(?<![\w-])[A-Z][A-Z0-9]+-[1-9]\d*(?![\w-])")

# What terminals use for colours: ESC [ numbers m.
COLOUR = re.compile(r"\x1b\[[\d;]*m")


class Location(NamedTuple):
    """A place in a source file; lines and columns count from one."""

    path: str
    line: int
    column: Optional[int]


def plain(text):
    """The text without colours."""
    return COLOUR.sub("", text)


def locations(text):
    """All places that are named in a text, in order."""
    found = []
    for match in LOCATION.finditer(plain(text)):
        column = match["column"]
        found.append(Location(match["path"], int(match["line"]), int(column) if column else None))
    return found


def issues(text):
    """The keys of all issues that are named in a text, each once, in order."""
    return list(dict.fromkeys(ISSUE.findall(plain(text))))
