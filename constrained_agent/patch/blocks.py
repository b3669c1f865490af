"""The indented block below a line, for any language that indents."""

from __future__ import annotations

from collections.abc import Sequence

_BLANK = 1 << 30
_TAB_WIDTH = 8


class Blocks:
    """Ends of blocks and enclosing lines in one file; one linear pass, then nearly constant per question.

    A block is the lines below a line that are blank or deeper than it. A line at its own depth that begins
    with a brace or a closing bracket belongs to it too: `{` on its own line, or the end of a long signature.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        # Twice the depth, plus one for a bracket line: the first later line with a value of at most twice
        # the depth of a line ends its block.
        self._depths = [_depth(text) for text in texts]
        self._shallower = [len(texts)] * len(texts)
        stack: list[int] = []
        for i in range(len(texts) - 1, -1, -1):
            while stack and self._depths[stack[-1]] >= self._depths[i]:
                stack.pop()
            self._shallower[i] = stack[-1] if stack else len(texts)
            stack.append(i)

    def end(self, line: int) -> int:
        """The line (0-based) behind the block below `line`."""
        limit = self._depths[line] & ~1
        i = line + 1
        while i < len(self._depths) and self._depths[i] > limit:
            i = self._shallower[i]
        return i


def _depth(text: str) -> int:
    code = text.lstrip()
    if not code:
        return _BLANK
    depth = len(text[: len(text) - len(code)].expandtabs(_TAB_WIDTH))
    return 2 * depth + (code[0] in "{})]")


def enclosing(texts: Sequence[str], line: int, limit: int = 5000) -> list[int]:
    """Lines (0-based) whose blocks hold `line`, innermost first; looks at most `limit` lines up."""
    found: list[int] = []
    depth = _depth(texts[line]) & ~1
    for i in range(line - 1, max(-1, line - 1 - limit), -1):
        if depth == 0:
            break
        above = _depth(texts[i])
        if above < depth and not above & 1:
            found.append(i)
            depth = above
    return found
