"""Notices that a model has begun to write the same span, or blanks, over and over."""

from __future__ import annotations

from collections.abc import Collection, Sequence

MAX_SPAN = 128
"""Longest span, in tokens, that is looked for: a long line or a short paragraph."""

MAX_REPEATS = 8
"""So many times in a row is a loop ..."""

MIN_LENGTH = 64
"""... if it makes up so many tokens: a row of dashes or eight blank lines is not one. As many tokens of nothing but
blanks are a loop in any order."""


def repeats(tokens: Sequence[int], blank_ids: Collection[int] = (), start: int = 0) -> bool:
    """Whether the tokens end in one span repeated `MAX_REPEATS` times, over at least `MIN_LENGTH` tokens.

    Args:
        blank_ids: tokens of white space alone; `MIN_LENGTH` of them in a row count as a loop, too.
        start: tokens before this place do not count.

    Cost: some microseconds; meant to be asked after every token.
    """
    n = len(tokens) - start
    last = tokens[-1] if n else None
    if n >= MIN_LENGTH and last in blank_ids and all(token in blank_ids for token in tokens[-MIN_LENGTH:]):
        return True
    for span in range(1, min(MAX_SPAN, n // MAX_REPEATS) + 1):
        if tokens[-1 - span] != last:
            continue
        length = max(span * MAX_REPEATS, MIN_LENGTH)
        if n >= length and all(tokens[-i] == tokens[-i - span] for i in range(1, length - span + 1)):
            return True
    return False
