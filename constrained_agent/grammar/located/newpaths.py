"""Names that a new file may have: paths of the patch language at which, and above which, nothing stands yet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

MAX_PARTS = 12
_MAX_INNER = 82
"""Characters of a part between its first and last: with up to three bytes each it stays below the 255 bytes that
file systems allow. Characters of four bytes are left out for the same reason."""

# Not in names: what other systems or shells forbid or take for something else, controls, blanks but the plain one,
# and characters that are not seen (they make `.git` out of something that looks otherwise).
_NEVER = (
    r"\/\\:*?\x22<>|!;`\x00-\x1f\x7f-\x{a0}\x{ad}\x{600}-\x{605}\x{61c}\x{6dd}\x{70f}\x{890}\x{891}\x{8e2}\x{1680}"
    r"\x{180e}\x{2000}-\x{200f}\x{2028}-\x{202f}\x{205f}-\x{206f}\x{3000}\x{feff}\x{fff9}-\x{fffb}\x{10000}-\x{10ffff}"
)
_BODY = rf"[^{_NEVER}]{{0,{_MAX_INNER}}}"
_LAST = rf"[^{_NEVER} ]"
_FIRST = rf"[^{_NEVER} .,~#%&'=^-]"
_PARTS = (rf"{_FIRST}({_BODY}{_LAST})?", rf"\.{_FIRST}({_BODY}{_LAST})?")
# git's own, and the rules of what may run unasked: applying refuses both.
_CLOSED = r"(.*\/)?\.(git|constrained-agent\.toml)(\/.*)?"


@dataclass(frozen=True, slots=True)
class NewPaths:
    """The names that are free, on a disk that ignores case as on one that does not.

    Attributes:
        files: names at which something other than a folder stands; nothing new may be there nor below.
        folders: nothing new may be there; below it may.
    """

    files: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()
    _pattern: re.Pattern[str] = field(init=False, repr=False, compare=False)
    _closed: frozenset[str] = field(init=False, repr=False, compare=False)
    _open: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # The whole of the rules in Python, for those who read a patch along (`located.progress`).
        part = "|".join(_python(part) for part in _PARTS)
        pattern = rf"(?:{part})(?:/(?:{part})){{0,{MAX_PARTS - 1}}}"
        object.__setattr__(self, "_pattern", re.compile(pattern))
        object.__setattr__(self, "_closed", frozenset(map(str.lower, self.files)))
        object.__setattr__(self, "_open", frozenset(map(str.lower, self.folders)))

    def allows(self, path: str, others: Iterable[str] = ()) -> bool:
        """Whether a file can be made there, beside the `others` that a patch makes."""
        if not self._pattern.fullmatch(path) or re.fullmatch(_CLOSED, path, re.IGNORECASE):
            return False
        path = path.lower()
        above = {path[:at] for at, char in enumerate(path) if char == "/"}
        if path in self._closed or path in self._open or self._closed & above:
            return False
        made = [other.lower() for other in others]
        return all(
            other != path and other not in above and not other.startswith(path + "/") for other in made
        )

    def rules(self, name: str) -> Iterator[str]:
        """Lark rules of a terminal `name`; which names a patch takes itself, they can not say."""
        yield f"{name}: {name}_PATH & ~{name}_TAKEN"
        yield f'{name}_PATH: {name}_PART ("/" {name}_PART){{0,{MAX_PARTS - 1}}}'
        yield f"{name}_PART: " + " | ".join(f"/{part}/" for part in _PARTS)
        taken = [_CLOSED, *([_alternatives(tree)] if (tree := self._tree()) else [])]
        yield f"{name}_TAKEN: " + " | ".join(f"/(?i:{part})/" for part in taken)

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


def _python(pattern: str) -> str:
    return re.sub(r"\\x\{(\w+)\}", lambda found: f"\\U{int(found[1], 16):08x}", pattern)
