"""Which parts of a download are there, which are missing, and what to ask the server for.

All ranges are half-open, [start, end), as in Python; only the texts of HTTP headers count the last byte in.
"""

import re
from bisect import bisect_right
from typing import NamedTuple


class RangeError(ValueError):
    """A range that ends before it starts, or a header that cannot be read."""


class Span(NamedTuple):
    """The bytes from start up to, not including, end."""

    start: int
    end: int

    @property
    def size(self):
        """How many bytes these are."""
        return self.end - self.start

    def overlaps(self, other):
        """Whether both have a byte in common."""
        return self.start < other.end and other.start < self.end

    def touches(self, other):
        """Whether both together are one span without a gap."""
        return self.start <= other.end and other.start <= self.end


def span(start, end):
    """A span that was checked.

    Raises RangeError if it starts below zero or ends before it starts.
    """
    if start < 0 or end < start:
        raise RangeError(f"not a range of bytes: {start} to {end}")
    return Span(start, end)


class RangeSet:
    """A set of bytes, kept as the fewest spans: sorted, none empty, none touching the next."""

    def __init__(self, spans=()):
        self._spans = []
        for start, end in spans:
            self.add(start, end)

    @classmethod
    def _of(cls, spans):
        """A set of spans that are in order already."""
        made = cls()
        made._spans = list(spans)
        return made

    def __iter__(self):
        return iter(self._spans)

    def __len__(self):
        return len(self._spans)

    def __bool__(self):
        return bool(self._spans)

    def __eq__(self, other):
        if not isinstance(other, RangeSet):
            return NotImplemented
        return self._spans == other._spans

    def __repr__(self):
        inside = ", ".join(f"({start}, {end})" for start, end in self._spans)
        return f"RangeSet([{inside}])"

    @property
    def size(self):
        """How many bytes the set has."""
        return sum(each.size for each in self._spans)

    def copy(self):
        """A set of its own with the same bytes."""
        return RangeSet._of(self._spans)

    # Changing

    def add(self, start, end):
        """Put bytes into the set; those that are there already do no harm."""
        new = span(start, end)
        if not new.size:
            return
        before = [each for each in self._spans if each.end < new.start]
        after = [each for each in self._spans if each.start > new.end]
        joined = self._spans[len(before) : len(self._spans) - len(after)]
        if joined:
            new = Span(min(new.start, joined[0].start), max(new.end, joined[-1].end))
        self._spans = [*before, new, *after]

    def discard(self, start, end):
        """Take bytes out of the set; those that are not there do no harm."""
        gone = span(start, end)
        kept = []
        for each in self._spans:
            if not each.overlaps(gone):
                kept.append(each)
                continue
            if each.start < gone.start:
                kept.append(Span(each.start, gone.start))
            if gone.end < each.end:
                kept.append(Span(gone.end, each.end))
        self._spans = kept

    # Asking

    def __contains__(self, offset):
        return self._at(offset) is not None

    def _at(self, offset):
        """The span that holds a byte, or None."""
        number = bisect_right(self._spans, (offset, float("inf"))) - 1
        if number >= 0 and offset < self._spans[number].end:
            return self._spans[number]
        return None

    def covers(self, start, end):
        """Whether all of these bytes are in the set."""
        wanted = span(start, end)
        if not wanted.size:
            return True
        found = self._at(start)
        return found is not None and end <= found.end

    def first_missing(self, start=0):
        """The first byte from `start` on that is not in the set."""
        found = self._at(start)
        return start if found is None else found.end

    # Combining

    def union(self, other):
        """The bytes of either set."""
        left, right = self._spans, other._spans
        i = j = 0
        merged = []
        while i < len(left) or j < len(right):
            if j == len(right) or (i < len(left) and left[i].start <= right[j].start):
                following = left[i]
                i += 1
            else:
                following = right[j]
                j += 1
            if merged and merged[-1].touches(following):
                merged[-1] = Span(merged[-1].start, max(merged[-1].end, following.end))
            else:
                merged.append(following)
        return RangeSet._of(merged)

    def intersection(self, other):
        """The bytes that both sets have."""
        left, right = self._spans, other._spans
        i = j = 0
        shared = []
        while i < len(left) and j < len(right):
            start = max(left[i].start, right[j].start)
            end = min(left[i].end, right[j].end)
            if start < end:
                shared.append(Span(start, end))
                i += 1
            if left[i].end <= right[j].end:
                i += 1
            else:
                j += 1
        return RangeSet._of(shared)

    def difference(self, other):
        """The bytes of this set that the other lacks."""
        left, right = self._spans, other._spans
        j = 0
        rest = []
        for start, end in left:
            while j < len(right) and right[j].end <= start:
                j += 1
            number = j
            while number < len(right) and right[number].start < end:
                if start < right[number].start:
                    rest.append(Span(start, right[number].start))
                start = right[number].end
                number += 1
            if start < end:
                rest.append(Span(start, end))
        return RangeSet._of(rest)

    def missing(self, total):
        """What a file of `total` bytes still lacks."""
        return RangeSet([(0, total)]).difference(self)

    def shifted(self, by):
        """The same bytes further on, as if the file had got a longer beginning."""
        return RangeSet((start + by, end + by) for start, end in self._spans)


# What to ask for


def pieces(wanted, size):
    """A set of bytes as spans of at most `size` bytes, in order."""
    if size < 1:
        raise RangeError(f"pieces of {size} bytes")
    found = []
    for start, end in wanted:
        found += [Span(at, min(at + size, end)) for at in range(start, end, size)]
    return found


def bridged(wanted, gap):
    """A set of bytes with holes of at most `gap` bytes filled: one request costs more than a few bytes."""
    filled = wanted.copy()
    spans = list(wanted)
    for before, after in zip(spans, spans[1:]):
        if after.start - before.end <= gap:
            filled.add(before.end, after.start)
    return filled


# Headers

_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")


def range_header(wanted):
    """The Range header that asks for a set of bytes, e.g. `bytes=0-99,200-299`."""
    if not wanted:
        raise RangeError("nothing to ask for")
    return "bytes=" + ",".join(f"{start}-{end - 1}" for start, end in wanted)


def read_range_header(text, total):
    """What a Range header asks for, in a file of `total` bytes.

    `5-` means all from byte 5 on, `-5` the last five bytes. Bytes past the end are left out.
    """
    unit, equals, parts = text.partition("=")
    if unit.strip() != "bytes" or not equals:
        raise RangeError(f"not a range of bytes: {text!r}")
    asked = RangeSet()
    for part in parts.split(","):
        first, dash, last = part.strip().partition("-")
        if not dash or not (first or last) or not (first + last).isdecimal():
            raise RangeError(f"cannot read {part.strip()!r} in {text!r}")
        if not first:
            asked.add(max(0, total - int(last)), total)
            continue
        start = int(first)
        end = int(last) + 1 if last else total
        if start < total:
            asked.add(start, min(end, total))
    return asked


def read_content_range(text):
    """The span and the total size (None if not known) of a Content-Range header."""
    match = _CONTENT_RANGE.fullmatch(text.strip())
    if match is None:
        raise RangeError(f"not a Content-Range: {text!r}")
    first, last, total = match.groups()
    return span(int(first), int(last) + 1), None if total == "*" else int(total)


# Keeping a note of it beside the file


def dumps(held):
    """A set of bytes as a line of text."""
    return " ".join(f"{start}:{end}" for start, end in held)


def loads(text):
    """The set of bytes of such a line."""
    found = RangeSet()
    for word in text.split():
        start, colon, end = word.partition(":")
        if not colon or not start.isdecimal() or not end.isdecimal():
            raise RangeError(f"cannot read {word!r}")
        found.add(int(start), int(end))
    return found


def progress(held, total):
    """How far the download is, e.g. `42 % (3 parts)`; an empty file is whole."""
    percent = 100 * held.size // total if total else 100
    parts = "1 part" if len(held) == 1 else f"{len(held)} parts"
    return f"{percent} % ({parts})"
