"""Values of a shell's variables and parameters, by the names that stand behind a `$`."""

from __future__ import annotations

import re

from constrained_agent.tools.commands.quoting import BREAK
from constrained_agent.tools.commands.scene import UNKNOWN, Scene

_MOVING = frozenset(["_", "REPLY", "OPTARG", "BASH_COMMAND", "FUNCNAME", "MAPFILE", "BASH_EXECUTION_STRING"])
_NUMBERS = {"?": "1", "#": "1", "!": "4242", "$": "4242", "PPID": "1"}
"""`$!` and `$$` are the line's own processes; its parent is one that it did not start, like the first of all."""

_LIST = re.compile(r"\"\$(?:@|\{@\}|\{(\w+)\[@\]\})\"")


def value(name: str, index: str | None, scene: Scene) -> str:
    """The text of `$name` or `${name[index]}`, BREAK between several words; UNKNOWN for what is not worked out."""
    if name in ("@", "*"):
        return BREAK.join(scene.positional)
    if name in _NUMBERS:
        return _NUMBERS[name]
    if name == "0" and name not in scene.variables:
        return "bash"
    if name in _MOVING:
        return UNKNOWN
    if name.isdigit() and name != "0":
        number = int(name[:6])
        return scene.positional[number - 1] if number <= len(scene.positional) else ""
    values = scene.variables.get(name)
    if index is None or values is None:
        return scene.value(name)
    if index in ("@", "*"):
        return BREAK.join(values)
    return values[int(index)] if index.isdigit() and int(index) < len(values) else UNKNOWN


def is_empty_list(source: str, scene: Scene) -> bool:
    """Whether a quoted word is `"$@"` or `"${a[@]}"` with nothing in it: no word at all, where `""` is an empty one."""
    name = _LIST.fullmatch(source)
    if name is None:
        return False
    return not (scene.positional if name[1] is None else scene.variables.get(name[1], (UNKNOWN,)))
