"""What a file is written in, as far as there is a parser for it. Pure."""

from __future__ import annotations

import posixpath
import re

_SUFFIXES = {
    ".bash": "bash",
    ".c": "c",
    ".cc": "cpp",
    ".cjs": "javascript",
    ".cpp": "cpp",
    ".cts": "typescript",
    ".cxx": "cpp",
    ".go": "go",
    ".h": "cpp",  # C's headers are C++ but for a few words
    ".hh": "cpp",
    ".hpp": "cpp",
    ".hxx": "cpp",
    ".java": "java",
    ".js": "javascript",
    ".json": "json",
    ".jsx": "javascript",
    ".mjs": "javascript",
    ".mts": "typescript",
    ".py": "python",
    ".pyi": "python",
    ".pyw": "python",
    ".rs": "rust",
    ".sh": "bash",
    ".toml": "toml",
    ".ts": "typescript",
    ".tsx": "tsx",
    ".yaml": "yaml",
    ".yml": "yaml",
}
_SHEBANG = re.compile(rb"#![^\n]*\b(python|bash|sh|node)[0-9.]*[ \t\r]*(?:\n|\Z)")
_SHELLS = {b"python": "python", b"bash": "bash", b"sh": "bash", b"node": "javascript"}

# JSON by name, but with comments or commas of their own.
_LOOSE_JSON = re.compile(
    r"(?:ts|js)config[^/]*\.json|\.?devcontainer\.json|\.(?:eslintrc|swcrc|babelrc)(?:\.json)?"
)


def language(path: str, data: bytes) -> str | None:
    """What a file is written in, by its name, or else by its first line; None if there is no parser for it."""
    folder, name = posixpath.split(path)
    suffix = posixpath.splitext(name)[1].lower()
    if name.endswith(".d.ts") or _LOOSE_JSON.fullmatch(name) or posixpath.basename(folder) == ".vscode":
        return None  # declarations have words of their own, which their grammar does not know
    if suffix:
        return _SUFFIXES.get(suffix)
    shebang = _SHEBANG.match(data)
    return _SHELLS[shebang[1]] if shebang else None
