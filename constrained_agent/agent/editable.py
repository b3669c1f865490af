"""What the model may edit: the files that it has read and that are still as it read them, and new ones."""

from __future__ import annotations

from typing import Protocol

from constrained_agent.errors import PatchError
from constrained_agent.grammar.located.newpaths import NewPaths
from constrained_agent.grammar.located.offer import Editable, OfferedFile
from constrained_agent.patch.textfile import decode
from constrained_agent.tools.names import Taken
from constrained_agent.tools.reads import Reading


class Source(Protocol):
    """Where files were read; `tools.registry.Tools` and `tools.workspace.Workspace` are such."""

    def readings(self) -> list[Reading]: ...

    def taken(self) -> Taken: ...


def editable(source: Source, *, renames: bool = True) -> Editable:
    """What a patch may do at this moment. Costs a look at each file read, and at the names in the repository.

    Args:
        renames: whether it may move files. The compact prompt does not speak of that.
    """
    files = []
    for reading in source.readings():
        try:
            lines = tuple(decode(reading.content, reading.path).texts)
        except PatchError:
            continue  # no text
        files.append(OfferedFile(reading.path, lines, reading.ranges))
    taken = source.taken()
    # Of a root with too many names nothing is known: applying refuses what exists.
    names = frozenset(taken.files) - {"."}
    return Editable(tuple(files), NewPaths(names, frozenset(taken.folders)), renames=renames)
