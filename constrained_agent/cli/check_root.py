"""What `check --root` holds a text to: the files that it names below a folder, and the names that are free there."""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from constrained_agent.agent.editable import editable
from constrained_agent.errors import PatchError
from constrained_agent.grammar.located import quoting
from constrained_agent.grammar.located.likeness import sharing_most
from constrained_agent.grammar.located.offer import MAX_FILES
from constrained_agent.grammar.located.prefix import Tree
from constrained_agent.patch.nearest import near_names
from constrained_agent.patch.textfile import decode
from constrained_agent.tools import names
from constrained_agent.tools.workspace import Workspace

_MAX_SHOWN = 6  # names: one more than a message has room for
_MAX_LOOKS = 200  # files that are looked into for one that a patch can name

_HEAD_BYTES = 1 << 16


class Root:
    """A folder, as a text speaks of it; naming a file counts as reading it.

    Args:
        folder: as the person gave it.

    Raises:
        UserError: there is no such folder.
    """

    def __init__(self, folder: str) -> None:
        self.where = "in this folder" if folder == "." else f"under {folder}"
        self._workspace = Workspace(folder)
        self._offered: tuple[str, ...] = ()
        self._near: dict[str, tuple[range, ...]] = {}

    def tree(self, data: bytes) -> Tree:
        """What a text is checked against.

        Files that it does not name whole are on offer only as far as it has begun to name them.

        Raises:
            UserError: it speaks of more lines than a grammar can hold.
        """
        sections = quoting.sections(data)
        named: dict[str, list[list[str]]] = {}
        begun = quoting.begun_path(data)
        for section in sections:
            if section.path in named or len(named) == MAX_FILES or not self._is_text(section.path):
                begun = section.path
                break
            named[section.path] = section.hunks
        for path, hunks in named.items():
            self._read(path, hunks)
        if begun is not None:
            for path in islice(self._on_the_way(begun, named), MAX_FILES - len(named)):
                self._read(path, [[]])
        offered = editable(self._workspace)
        files = (replace(file, read=self._near[file.path]) for file in offered.files)
        found = replace(offered, files=tuple(files))
        self._offered = tuple(file.path for file in found.files)
        lines = {file.path: file.lines for file in found.files}
        return Tree(quoting.located(found, named), lines, self)

    def near(self, path: str) -> Sequence[str]:
        """Files that a wrong path may mean, and that a patch can name."""
        likely = near_names(path, names.suggestions(self._workspace.root))
        if (inside := self._inside(path)) is not None:
            likely = [inside, *likely]
        return [name for name in dict.fromkeys(likely) if self._is_text(name)]

    def beginning(self, begun: bytes, but: Collection[str]) -> Sequence[str]:
        """A few of the files whose paths begin so."""
        found: list[str] = []
        fitting = (path for path in self._names if path.encode().startswith(begun) and path not in but)
        for path in islice(fitting, _MAX_LOOKS):
            if self._is_text(path):
                found.append(path)
            if len(found) == _MAX_SHOWN:
                break
        return found

    def trouble(self, path: str) -> str:
        """Why a patch cannot name what stands at a path; empty if nothing stands there or nothing is wrong."""
        try:
            real = self._workspace.resolve(path)
            if not os.path.exists(real):
                return ""
            decode(self._workspace.read_bytes(path), path)
            self._workspace.check_changeable(path)
        except PatchError as error:
            return f"{path}: {error.reason}"
        if (inside := self._inside(path)) != path:
            return f"the name of that file is {inside}"
        if not names.is_spelled_in_patches(path):
            return f"no patch can spell {path}: control characters, or blanks around a part"
        return "" if path in self._offered else f"a located patch names at most {MAX_FILES} files"

    @functools.cached_property
    def _names(self) -> tuple[str, ...]:
        return self._workspace.taken().files

    def _inside(self, path: str) -> str | None:
        """A path without links and detours; None if it leads nowhere in the folder."""
        try:
            return self._workspace.resolve(path).relative_to(self._workspace.root).as_posix()
        except PatchError:
            return None

    def _is_text(self, path: str) -> bool:
        """Whether a patch can name the file, under this path."""
        if self._inside(path) != path or not names.is_spelled_in_patches(path):
            return False
        try:
            real = self._workspace.resolve(path)
            if not os.path.isfile(real):
                return False
            self._workspace.check_changeable(path)
            with real.open("rb") as file:
                decode(file.read(_HEAD_BYTES), path)  # spares reading all of what is large and no text
            decode(self._workspace.read_bytes(path), path)
        except (PatchError, OSError):
            return False
        return True

    def _read(self, path: str, hunks: Sequence[Sequence[str]]) -> None:
        """Read a file, and note the lines of it that matter to hunks."""
        content = self._workspace.read_bytes(path)
        self._workspace.record_read(path, content)
        self._near[path] = tuple(quoting.near(decode(content, path).texts, hunks))

    def _on_the_way(self, begun: str, named: Collection[str]) -> Iterator[str]:
        """Files not named yet that share the longest beginning with a path: the first and the last of them."""
        others = {path for path in self._names if path not in named}
        while ends := sharing_most(others, begun):
            group = sorted(path for path in others if ends[0] <= path <= ends[-1])
            first = next(filter(self._is_text, group[:_MAX_LOOKS]), None)
            if first is not None:
                last = next(filter(self._is_text, group[: -_MAX_LOOKS - 1 : -1]), first)
                yield from dict.fromkeys((first, last))
                return
            others.difference_update(group)
