"""Names that a new file may have: paths of the patch language at which, and above which, nothing stands yet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

MAX_PARTS = 12
_MAX_INNER = 82
"""Characters of a part between its first and last: with up to three bytes each it stays below the 255 bytes that
file systems allow. Characters of four bytes are left out for the same reason."""

_LETTER = r"[^\/\x00-\x1f\x7f\U{10000}-\U{10ffff}]"
_BODY = rf"{_LETTER}{{0,{_MAX_INNER}}}"
_LAST = r"[^\/ \x00-\x1f\x7f\U{10000}-\U{10ffff}]"
_FIRST = r"[^\/ .\x00-\x1f\x7f\U{10000}-\U{10ffff}]"
# As PATH in grammars/apply_patch_strict.lark, shorter.
_PARTS = (
    rf"{_FIRST}({_BODY}{_LAST})?",
    rf"\.{_FIRST}({_BODY}{_LAST})?",
    rf"\.[ .]{_BODY}{_LAST}",
)
_GIT = r"(.*\/)?\.[gG][iI][tT](\/.*)?"


@dataclass(frozen=True, slots=True)
class NewPaths:
    """The names that are free.

    Attributes:
        files: names at which something other than a folder stands; nothing new may be there nor below.
        folders: nothing new may be there; below it may.
    """

    files: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()
    _pattern: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # The whole of the rules in Python, for those who read a patch along (`grammar.progress`).
        part = "|".join(_python(part) for part in _PARTS)
        pattern = rf"(?:{part})(?:/(?:{part})){{0,{MAX_PARTS - 1}}}"
        object.__setattr__(self, "_pattern", re.compile(pattern))

    def allows(self, path: str, others: Iterable[str] = ()) -> bool:
        """Whether a file can be made there, beside the `others` that a patch makes."""
        if not self._pattern.fullmatch(path) or re.fullmatch(_python(_GIT), path):
            return False
        above = {path[:at] for at, char in enumerate(path) if char == "/"}
        if path in self.files or path in self.folders or self.files & above:
            return False
        return all(
            other != path and other not in above and not other.startswith(path + "/") for other in others
        )

    def rules(self, name: str) -> Iterator[str]:
        """Lark rules of a terminal `name`; which names a patch takes itself, they can not say."""
        yield f"{name}: {name}_PATH & ~{name}_TAKEN"
        yield f'{name}_PATH: {name}_PART ("/" {name}_PART){{0,{MAX_PARTS - 1}}}'
        yield f"{name}_PART: " + " | ".join(f"/{_lark(part)}/" for part in _PARTS)
        taken = [_GIT, *([_alternatives(tree)] if (tree := self._tree()) else [])]
        yield f"{name}_TAKEN: " + " | ".join(f"/{part}/" for part in taken)

    def _tree(self) -> _Tree:
        """Folders as nested dicts, everything else as None: shared beginnings keep the expression small."""
        root: _Tree = {}
        for path in sorted(self.files):
            *above, name = path.split("/")
            folder: _Tree | None = root
            for part in above:
                folder = folder.setdefault(part, {}) if folder is not None else None
            if folder is not None:
                folder[name] = None
        for path in sorted(self.folders):
            folder = root
            for part in path.split("/"):
                folder = folder.setdefault(part, {}) if folder is not None else None
        return root


_Tree = dict[str, "_Tree | None"]


def _alternatives(tree: _Tree) -> str:
    """A regular expression for the names of a tree, the folders in it, and all below what is no folder."""
    parts = [
        _quoted(name) + (rf"(\/({_alternatives(below)}))?" if below else "")
        for name, below in tree.items()
        if below is not None
    ]
    if closed := [_quoted(name) for name, below in tree.items() if below is None]:
        parts.append(rf"({'|'.join(closed)})(\/.*)?")
    return "|".join(parts)


def _quoted(name: str) -> str:
    """A name for LLGuidance's regular expressions, which may quote every ASCII punctuation mark."""
    return re.sub(r"([^\w\s])", lambda found: "\\" + found[1] if found[1].isascii() else found[1], name)


def _lark(pattern: str) -> str:
    return re.sub(r"\\U\{(\w+)\}", r"\\x{\1}", pattern)


def _python(pattern: str) -> str:
    return re.sub(r"\\U\{(\w+)\}", lambda found: f"\\U{int(found[1], 16):08x}", pattern)
