"""Options and operands of a command: enough of their customs to find what matters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence


def names(text: str) -> list[str]:
    """A table of words, written as one text."""
    return text.split()


def flag(args: Iterable[str], letters: str = "", *names: str) -> bool:
    """Whether one of the options is given: a letter in a cluster (`-rf`), a long name or a beginning of it."""
    for arg in args:
        if arg == "--":
            return False
        if arg.startswith("--"):
            head = arg.partition("=")[0]
            if any(name.startswith(head) for name in names):
                return True
        elif arg.startswith("-") and any(letter in arg[1:] for letter in letters):
            return True
    return False


def split(args: Sequence[str], valued: Collection[str] = ()) -> tuple[list[str], list[str]]:
    """Options and operands apart.

    Args:
        valued: options whose value is the next word, which is then neither.
    """
    options: list[str] = []
    operands: list[str] = []
    position = 0
    while position < len(args):
        arg = args[position]
        position += 1
        if arg == "--":
            return options, [*operands, *args[position:]]
        if not arg.startswith("-") or arg == "-":
            operands.append(arg)
            continue
        options.append(arg)
        if arg in valued or (not arg.startswith("--") and len(arg) > 2 and f"-{arg[-1]}" in valued):
            position += 1
    return options, operands


def operands(args: Sequence[str], valued: Collection[str] = ()) -> list[str]:
    return split(args, valued)[1]


def values(args: Sequence[str], letter: str, *names: str) -> list[str]:
    """All values of an option: `-C dir`, `-Cdir`, `--directory dir`, `--directory=dir`."""
    found: list[str] = []
    for number, arg in enumerate(args):
        head, sign, value = arg.partition("=")
        following = args[number + 1] if number + 1 < len(args) else ""
        if arg.startswith("--"):
            if len(head) > 3 and any(name.startswith(head) for name in names):
                found.append(value if sign else following)
        elif letter and arg.startswith("-") and letter in arg[1:]:
            rest = arg[arg.index(letter, 1) + 1 :]
            found.append(rest or following)
    return found


def first_of(args: Sequence[str], valued: Collection[str]) -> tuple[str, list[str]]:
    """The subcommand of a program and what follows it; global options before it are skipped."""
    position = 0
    while position < len(args):
        arg = args[position]
        if not arg.startswith("-"):
            return arg, list(args[position + 1 :])
        position += 2 if arg in valued else 1
    return "", []
