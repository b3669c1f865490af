"""The program behind `syntax`: texts to the syntax errors in them.

It runs as a process of its own because most parsers are C code, fed with what a model wrote: they may take any time
or crash, and take nothing down with them here. On stdin it gets a JSON list of `[language, new, old]`, texts as
Latin-1 (each character is one byte); on stdout it answers with a JSON list of `[new, old]`, each a list of
`[line, column, message]`. Where the new text has no error, the old one is not looked at.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

Found = tuple[int, int, str]
"""Line and column, both from 1, and what is wrong there."""

MAX_FOUND = 200
"""Of one text: what comes after so many errors is noise."""

_MAX_QUOTED_CHARS = 30
_BOM = b"\xef\xbb\xbf"
_TOML_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)\Z")
_JSON_COMMENT = re.compile(rb"^\s*(?://|/\*|#)", re.MULTILINE)

_GRAMMARS = {
    "bash": ("tree_sitter_bash", "language"),
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
    "go": ("tree_sitter_go", "language"),
    "java": ("tree_sitter_java", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
}
"""Language to the package that brings its grammar, and the function there that gives it."""

LOOSE = frozenset({"c", "cpp", "tsx", "typescript"})
"""Languages whose grammar takes right code for wrong where it meets a macro, or what the language has learnt since: in
files of known projects, on 10 of 1,000 lines of C and on 3 of TypeScript, but on none of JavaScript, Java and Rust. Of
these, only what opens or closes other brackets than before counts as broken."""

_PAIRS = ((("(",), (")",)), (("[",), ("]",)), (("{", "${"), ("}",)))


def errors(language: str, data: bytes) -> list[Found]:
    """The syntax errors of a text, in file order; none where it is too deeply nested for its parser."""
    try:
        if language in EXACT:
            return EXACT[language](data)
        found = _by_grammar(language, data)
        return [] if found and language == "bash" and not _is_refused_by_bash(data) else found
    except (RecursionError, MemoryError, UnicodeDecodeError):
        return []


def _python(data: bytes) -> list[Found]:
    try:
        compile(data, "file", "exec", dont_inherit=True)
    except SyntaxError as error:
        return [(error.lineno or 1, error.offset or 1, error.msg)]
    except ValueError:  # NUL: not a text
        return []
    return []


def _json(data: bytes) -> list[Found]:
    try:
        json.loads(data.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        # Many programs take their settings as JSON with comments.
        return [] if _JSON_COMMENT.search(data) else [(error.lineno, error.colno, error.msg)]
    return []


def _toml(data: bytes) -> list[Found]:
    import tomllib

    try:
        tomllib.loads(data.decode("utf-8-sig").replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        if (place := _TOML_PLACE.search(message)) is None:
            return [(1, 1, message)]
        line, column = place.groups()
        last = data.rstrip(b"\n").count(b"\n") + 1
        return [(int(line or last), int(column or 1), message[: place.start()])]
    return []


def _yaml(data: bytes) -> list[Found]:
    import yaml

    if b"{{" in data or b"{%" in data:  # a template of YAML
        return []
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        for _ in yaml.parse(data, Loader=loader):
            pass
    except yaml.MarkedYAMLError as error:
        if (mark := error.problem_mark) is None:
            return []
        message = ": ".join(part for part in (error.context, error.problem) if part)
        return [(mark.line + 1, mark.column + 1, message)]
    except yaml.YAMLError:  # characters that YAML does not know
        return []
    return []


EXACT: dict[str, Callable[[bytes], list[Found]]] = {
    "json": _json,
    "python": _python,
    "toml": _toml,
    "yaml": _yaml,
}
"""Languages with a parser that makes no mistakes, but stops at the first error."""


def _by_grammar(language: str, data: bytes) -> list[Found]:
    lines = data.split(b"\n")
    found: list[Found] = []
    for node in islice(_faulty(_tree(language, data)), MAX_FOUND):
        row, n_bytes = node.start_point
        found.append((row + 1, len(lines[row][:n_bytes].decode("utf-8", "replace")) + 1, _message(node)))
    return found


def _tree(language: str, data: bytes) -> Node:
    from tree_sitter import Language, Parser

    package, name = _GRAMMARS[language]
    grammar = Language(getattr(importlib.import_module(package), name)())
    return Parser(grammar).parse(data).root_node


def _is_refused_by_bash(data: bytes) -> bool:
    """Whether bash itself, which reads the script and runs nothing of it, finds a syntax error too.

    The grammar is wrong about one in twelve of the scripts of a Linux system. Where there is no bash, none counts
    as broken.
    """
    environment = {"LC_ALL": "C", "PATH": os.environ.get("PATH", os.defpath)}
    program = ("bash", "--norc", "--noprofile", "-O", "extglob", "-n")
    try:
        done = subprocess.run(program, input=data, capture_output=True, check=False, env=environment)
    except OSError:
        return False
    return done.returncode != 0


def _faulty(root: Node) -> Iterator[Node]:
    """What the parser skipped, as the largest pieces, and what it put in."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.is_error or node.is_missing:
            yield node
        elif node.has_error:
            waiting += reversed(node.children)


def _open_brackets(language: str, data: bytes) -> list[int]:
    """For each kind of bracket, how many are opened more often than closed."""
    balance = [0] * len(_PAIRS)
    waiting = [_tree(language, data)]
    while waiting:
        node = waiting.pop()
        waiting += node.children
        if not node.children and not node.is_missing:
            for i, (opening, closing) in enumerate(_PAIRS):
                balance[i] += (node.type in opening) - (node.type in closing)
    return balance


def _message(node: Node) -> str:
    if node.is_missing:
        return f"missing {node.type.replace('_', ' ')}" if node.is_named else f'missing "{node.type}"'
    line = (node.text or b"").decode("utf-8", "replace").partition("\n")[0].rstrip()
    return f'syntax error at "{line[:_MAX_QUOTED_CHARS]}"' if line else "syntax error"


def compared(language: str, new: bytes, old: bytes | None) -> tuple[list[Found], list[Found]]:
    """The errors of the new text, and if there are any, those of the old one; see `LOOSE` for some languages."""
    new, old = new.removeprefix(_BOM), None if old is None else old.removeprefix(_BOM)
    found = errors(language, new)
    if not found or (
        language in LOOSE and _open_brackets(language, new) == _open_brackets(language, old or b"")
    ):
        return [], []
    return found, [] if old is None else errors(language, old)


def main() -> None:
    """Answer one request; see the module's docstring."""
    request: list[tuple[str, str, str | None]] = json.load(sys.stdin)
    answer = [
        compared(language, new.encode("latin-1"), None if old is None else old.encode("latin-1"))
        for language, new, old in request
    ]
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
