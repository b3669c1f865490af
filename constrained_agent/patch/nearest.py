"""What stands nearest to lines that were not found; only ever asked when a patch is refused."""

from __future__ import annotations

import difflib
import heapq
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

from constrained_agent.patch.match import Level, LineIndex, fold

# A line that occurs more often says little about the place, and counting it would cost.
_MAX_HITS_TO_VOTE = 200
_MAX_LINES = 100_000
_MAX_LENGTH = 300
_N_COMPARED = 40
_LEAST_LIKENESS = 0.5
_MAX_NAMES = 5_000


def best_start(index: LineIndex, old: Sequence[str]) -> int | None:
    """The start (0-based, may be negative) at which most of `old` stands in the file; None if no line does."""
    best, n_best = None, 0
    low, high = 0, len(old)
    while low < high:  # the longest beginning of `old` that stands somewhere
        middle = (low + high + 1) // 2
        if hits := index.hits(old[:middle], Level.FOLDED, limit=1):
            low, best, n_best = middle, hits[0], middle
        else:
            high = middle - 1
    votes: Counter[int] = Counter()
    hits_of = {line: index.hits([line], Level.FOLDED, _MAX_HITS_TO_VOTE) for line in old if line.strip()}
    for i, line in enumerate(old):
        if len(hits := hits_of.get(line, [])) < _MAX_HITS_TO_VOTE:
            votes.update(hit - i for hit in hits)
    if votes:
        start, n_votes = min(votes.items(), key=lambda item: (-item[1], item[0]))
        if n_votes > n_best or not any(line.strip() for line in old[:n_best]):
            best = start
    return best


def similar_lines(texts: Sequence[str], line: str, n: int = 3) -> list[int]:
    """The lines (0-based) most like `line`, best first; those with no likeness are left out."""
    line = fold(line)[:_MAX_LENGTH]
    words = set(re.findall(r"\w+", line.lower()))
    rated = []
    for i, text in enumerate(texts[:_MAX_LINES]):
        if text.strip():
            shared = len(words & set(re.findall(r"\w+", text[:_MAX_LENGTH].lower())))
            rated.append((-shared, abs(len(text.strip()) - len(line)), i))
    matcher = difflib.SequenceMatcher(b=line, autojunk=False)
    likely = []
    for _, _, i in heapq.nsmallest(_N_COMPARED, rated):
        matcher.set_seq1(fold(texts[i])[:_MAX_LENGTH])
        likely.append((-matcher.ratio(), i))
    return [i for minus_ratio, i in sorted(likely)[:n] if -minus_ratio >= _LEAST_LIKENESS]


def near_names(path: str, names: Iterable[str], n: int = 3) -> list[str]:
    """Existing files that a wrong path may mean: the same name elsewhere, else similar paths.

    Letters that are composed of several characters count as the one character that looks the same.
    """
    path = _plain(path.strip("`'\"<> ").replace("\\", "/"))
    known: dict[str, str] = {}
    for name, _ in zip(names, range(_MAX_NAMES), strict=False):
        known.setdefault(_plain(name), name)
    base = path.rsplit("/", 1)[-1].lower()
    same = [name for name in known if name.rsplit("/", 1)[-1].lower() == base]
    same.sort(key=lambda name: (-_n_common_parts(name, path), len(name), name))
    return [known[name] for name in same[:n] or difflib.get_close_matches(path, known, n, cutoff=0.7)]


def _plain(path: str) -> str:
    return unicodedata.normalize("NFC", path)


def _n_common_parts(a: str, b: str) -> int:
    """How many parts the two paths share, counted from their ends."""
    n = 0
    for x, y in zip(reversed(a.split("/")), reversed(b.split("/")), strict=False):
        if x.lower() != y.lower():
            break
        n += 1
    return n
