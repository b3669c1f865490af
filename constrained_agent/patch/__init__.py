"""Patches as pure values: text to hunks, hunks to places, places to new texts.

    from constrained_agent.patch import parse, plan

    patch = parse(text).patch
    for file in plan(patch, read).files:      # read(path) gives bytes, or None for no file
        print(file.action, file.path, file.added, file.removed)

    text = render(derive(old, new))           # and from two trees, path to bytes, to the patch between them

`parse`, `plan`, `plan_back` and `derive` raise `PatchError`; nothing here touches the disk.
`tools.workspace.Workspace(root).apply(patch)` plans against a folder and writes all files or none.
"""

from constrained_agent.errors import PatchError
from constrained_agent.patch.derive import derive
from constrained_agent.patch.diff import FilePlan, Landing, LineChange, unified_diff
from constrained_agent.patch.format import Parsed, parse, render
from constrained_agent.patch.lenient import LENIENCIES
from constrained_agent.patch.plan import Plan, plan
from constrained_agent.patch.reverse import plan_back
from constrained_agent.patch.sections import AddFile, DeleteFile, Hunk, HunkLine, Patch, Section, UpdateFile

__all__ = [
    "LENIENCIES",
    "AddFile",
    "DeleteFile",
    "FilePlan",
    "Hunk",
    "HunkLine",
    "Landing",
    "LineChange",
    "Parsed",
    "Patch",
    "PatchError",
    "Plan",
    "Section",
    "UpdateFile",
    "derive",
    "parse",
    "plan",
    "plan_back",
    "render",
    "unified_diff",
]
