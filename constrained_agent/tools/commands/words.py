"""Words of the syntax tree to the words that a command gets: quotes, variables and substitutions resolved.

What cannot be resolved stands as `UNKNOWN` in the word. Commands in substitutions are read on the way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING

from constrained_agent.tools.commands import variables
from constrained_agent.tools.commands.options import names
from constrained_agent.tools.commands.quoting import (
    BREAK,
    MARKS,
    QUOTED,
    bare,
    double_quoted,
    fields,
    trimmed,
    unescape,
)
from constrained_agent.tools.commands.scene import (
    MAX_TEXT_CHARS,
    NO_OUTPUT,
    UNKNOWN,
    UNKNOWN_OUTPUT,
    Output,
    Scene,
)
from constrained_agent.tools.commands.source import decoded
from constrained_agent.tools.commands.verdict import Risk, Simple, shortened

if TYPE_CHECKING:
    from tree_sitter import Node

_PARAMETER = re.compile(r"\$?\{?([A-Za-z_]\w*|\d+|[@*#?$!_-])(?:\[([^\]]*)\])?\}?")
_TRIM = re.compile(r"\$\{([A-Za-z_]\w*|\d+)(%%?|##?)([^%#$`\"'\\(\[\]]*)\}")
_SUBSTITUTIONS = ("command_substitution", "process_substitution")


def text_of(node: Node) -> str:
    return decoded(node.text or b"")


def expand(nodes: Sequence[Node], scene: Scene) -> list[str]:
    """The words that these words of the line become; `UNKNOWN` in them is text known only at run time.

    Nodes that touch are one word: the grammar parts `'r'\\m` where a backslash follows a quote.
    """
    found: list[str] = []
    marked, end = "", -1
    for node, following in zip_longest(nodes, nodes[1:]):
        scene.record.step()
        if node.start_byte != end:
            found += fields(marked)
            marked = ""
        end = node.end_byte
        touches = following is not None and following.start_byte == end
        if touches and text_of(node) == "$":  # of `$"text"`
            continue
        marked += _marked(node, scene)
        if touches and _ends_with_sign(node):  # `a$b-c$d`: the grammar has ended the word there
            marked = marked[:-1] + UNKNOWN + BREAK + UNKNOWN
    found += fields(marked)
    found = [word if len(word) <= MAX_TEXT_CHARS else UNKNOWN for word in found]
    scene.record.step(sum(map(len, found)) // 200)
    return found


def _ends_with_sign(node: Node) -> bool:
    while node.children:
        node = node.children[-1]
    return node.text == b"$"


def first_word(nodes: Sequence[Node]) -> int:
    """How many of these nodes make up the first word: those that touch."""
    for number, (before, after) in enumerate(pairwise(nodes), 1):
        if before.end_byte != after.start_byte:
            return number
    return len(nodes)


def text(node: Node, scene: Scene) -> str:
    """A word where the shell does not split: the value of an assignment, a redirection's file.

    UNKNOWN where more of the word seems to follow than the grammar gave to it.
    """
    following = node.next_sibling or (node.parent and node.parent.next_sibling)
    if following is not None and following.is_named and following.start_byte == node.end_byte:
        return UNKNOWN
    return " ".join(expand([node], scene))


def heredoc(body: Node, scene: Scene, *, raw: bool) -> str:
    """The text of a here-document; `raw` where its delimiter is quoted."""
    source = text_of(body)
    if raw:
        return source
    for inner in _BACKTICKS.findall(source):  # the grammar does not see them here
        _read_backticks(inner, scene)
    if "`" in _BACKTICKS.sub("", source).replace("\\`", ""):
        note(scene, source, Risk.DANGEROUS, "holds a command that does not end")
    return _plain(_between(body, scene, double_quoted, quoted=True))


_BACKTICKS = re.compile(r"(?<!\\)`((?:[^`\\]|\\.)*)`", re.DOTALL)


def _read_backticks(inner: str, scene: Scene) -> None:
    """The command between backticks: it has lost one level of backslashes, so there may be backticks in it again."""
    with scene.level():
        scene.engine.line(re.sub(r"\\([$`\\])", r"\1", inner), scene.copy())


def read_inside(node: Node, scene: Scene) -> None:
    """Read the commands of all substitutions below a node, whatever surrounds them."""
    waiting = list(reversed(node.children))
    while waiting:
        child = waiting.pop()
        if child.type in _SUBSTITUTIONS:
            substitute(child, scene)
            continue
        if child.type in ("raw_string", "ansi_c_string") and holds_command(text_of(child)):
            note(scene, text_of(node), Risk.DANGEROUS, "evaluates text that holds a command")
        waiting += reversed(child.children)
    note_hidden(text_of(node), scene)


def substitute(node: Node, scene: Scene, stdin: Output | None = None) -> Output:
    """Read the commands of `$(...)` in a subshell; what they print."""
    source = text_of(node)
    if source.startswith("`") and "\\" in source:
        _read_backticks(source[1:-1], scene)
        return UNKNOWN_OUTPUT
    output = NO_OUTPUT
    with scene.level():
        inner = scene.copy()
        for child in node.named_children:
            output += scene.engine.statement(child, inner, stdin).output
    return output


def note_hidden(text: str, scene: Scene) -> None:
    """Values that arithmetic would evaluate once more may hold commands: `x='a[$(rm f)]'; echo $((x))`."""
    for name in set(re.findall(r"[A-Za-z_]\w*", text)):
        if any(holds_command(value) for value in scene.variables.get(name, ())):
            note(scene, text, Risk.DANGEROUS, "evaluates a variable that holds a command")


def note_unknown_sum(text: str, scene: Scene) -> None:
    """What a variable of a sum holds is evaluated in its turn: text that is not known may hold a command."""
    for name in set(re.findall(r"[A-Za-z_]\w*", text)):
        if any(UNKNOWN in value for value in scene.variables.get(name, ())):
            note(scene, text, Risk.WRITES, "evaluates a variable that is only known when it runs")


def holds_command(text: str) -> bool:
    return "$(" in text or "`" in text


def note(scene: Scene, part: str, risk: Risk, reason: str) -> None:
    """Record something of the line that is no simple command; no rule can allow it."""
    scene.record.found.append(Simple(shortened(part), risk, reason, shortened(part), certain=False))


def _process(node: Node, scene: Scene) -> str:
    """`<(...)` and `>(...)`: the name of a pipe, whose text is remembered."""
    name = f"/dev/fd/p{len(scene.files)}"
    into = text_of(node).startswith(">")
    scene.files[name] = substitute(node, scene, UNKNOWN_OUTPUT if into else None)
    return name


def _plain(marked: str) -> str:
    return MARKS.sub("", marked)


def _marked(node: Node, scene: Scene, *, quoted: bool = False) -> str:
    """A word as text with marks (see `quoting`); inside quotes expansions are not split."""
    kind = node.type
    if kind in _PLAIN:
        return bare(text_of(node))
    if kind == "raw_string":
        return QUOTED + text_of(node)[1:-1]
    if kind == "ansi_c_string":
        return QUOTED + unescape(text_of(node)[2:-1])
    with scene.level():
        return _compound(node, scene, quoted=quoted)


def _compound(node: Node, scene: Scene, *, quoted: bool) -> str:
    kind = node.type
    if kind in ("string", "translated_string"):
        if variables.is_empty_list(text_of(node), scene):
            return ""
        return QUOTED + _between(node, scene, double_quoted, quoted=True)
    if kind == "process_substitution":
        return _process(node, scene)
    if kind == "arithmetic_expansion":
        read_inside(node, scene)
        note_unknown_sum(text_of(node), scene)
        return "0"
    if kind not in _EXPANDED:
        return _between(node, scene, bare, quoted=False)
    value = _printed(substitute(node, scene)) if kind == "command_substitution" else _parameter(node, scene)
    return value if quoted else _split(value, scene)


_PLAIN = frozenset(
    names(
        "word number variable_name special_variable_name regex extglob_pattern test_operator file_descriptor "
        "brace_expression"
    )
)
_EXPANDED = frozenset(["command_substitution", "simple_expansion", "expansion"])


def _between(node: Node, scene: Scene, literal: Callable[[str], str], *, quoted: bool) -> str:
    """The parts of a node with what stands between them, which the tree does not name."""
    source, start = node.text or b"", node.start_byte
    position, last, size = 0, len(source), 0
    pieces: list[str] = []
    if node.type in ("string", "translated_string"):
        position, last = source.find(b'"') + 1, max(source.find(b'"') + 1, source.rfind(b'"'))
    for child in node.children:
        # Inside quotes only expansions mean something.
        if not child.is_named or (quoted and child.type not in (*_EXPANDED, "arithmetic_expansion")):
            continue
        begin, end = child.start_byte - start, child.end_byte - start
        pieces += [
            literal(decoded(source[position:begin])),
            _marked(child, scene, quoted=quoted),
        ]
        position, size = end, size + len(pieces[-1])
        if size > MAX_TEXT_CHARS:
            return UNKNOWN
    pieces.append(literal(decoded(source[position:last])))
    return "".join(pieces)


def _printed(output: Output) -> str:
    if output.text is not None:
        return output.text.rstrip("\n")
    return BREAK.join(output.paths) if output.paths else UNKNOWN


def _split(value: str, scene: Scene) -> str:
    """An expansion outside quotes: blanks in it part words. Quotes around it undo that."""
    separators = scene.value("IFS")
    if UNKNOWN in separators:
        return UNKNOWN
    return re.sub(f"[{re.escape(separators)}]+", BREAK, value) if separators else value


def _parameter(node: Node, scene: Scene) -> str:
    """The value of `$X`, `${X}`, `${X:-word}`, `$1`, `$@`; UNKNOWN for what is not worked out."""
    source = text_of(node)
    if plain := _PARAMETER.fullmatch(source):
        read_inside(node, scene)
        return variables.value(plain[1], plain[2], scene)
    if source.startswith("${#"):
        read_inside(node, scene)
        return "0"
    if trim := _TRIM.fullmatch(source):
        return trimmed(variables.value(trim[1], None, scene), trim[2], trim[3])
    if "@P}" in source:
        note(scene, source, Risk.DANGEROUS, "evaluates a variable's text once more")
    operator = re.match(r"\$\{([A-Za-z_]\w*|\d+)(:?[-=+]|\^\^|,,)", source)
    words = [child for child in node.named_children if child.type not in ("variable_name", "subscript")]
    if operator is None:
        read_inside(node, scene)
        return UNKNOWN
    value, sign = variables.value(operator[1], None, scene), operator[2]
    if sign in ("^^", ",,"):
        return value.upper() if sign == "^^" else value.lower()
    default = BREAK.join(expand(words, scene))
    if UNKNOWN in value:
        return value
    if sign.endswith("+"):
        return default if value else ""
    if sign.endswith("=") and not value:
        scene.variables[operator[1]] = (default.replace(BREAK, " "),)
    return value or default
