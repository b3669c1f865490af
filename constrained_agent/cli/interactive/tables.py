"""What `/files`, `/tokens` and `/help` show, as lines. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence


def files(
    shown: Sequence[str], intact: Sequence[str], too_large: Collection[str], changed: Sequence[str]
) -> Iterator[str]:
    """Files read, by whether they may be edited, and files changed.

    Args:
        shown: files that the model was shown.
        intact: files that are as the model knows them, those that it wrote included.
        too_large: those of them that are too much for a grammar.
        changed: files that patches changed.
    """
    groups = {
        "read, may be edited": [path for path in intact if path not in too_large],
        "read, too much to be edited at once": [path for path in intact if path in too_large],
        "read, but not as they were then; to be read again before they are edited": [
            path for path in shown if path not in intact
        ],
        "changed": list(changed),
    }
    for title, paths in groups.items():
        if paths:
            yield f"{title}:"
            yield from (f"  {path}" for path in paths)
    if not any(groups.values()):
        yield "no file was read or changed so far"


def tokens(counts: Iterable[tuple[str, int]], limit: int) -> Iterator[str]:
    """Each message's tokens, their sum, and how much of the context that is.

    Args:
        limit: tokens that the context holds.
    """
    counts = list(counts)
    total = sum(n for _, n in counts)
    width = len(f"{total:,}")
    yield from (f"{n:>{width},}  {name}" for name, n in counts)
    yield f"{total:>{width},}  in all: {total / limit:.0%} of the context of {limit:,}"


def help_lines(commands: Mapping[str, str]) -> Iterator[str]:
    """The commands and the keys.

    Args:
        commands: what each does, by how it is typed.
    """
    keys = {
        "> TASK": "do this when the present task is done",
        "//TEXT": "TEXT with one slash, for the model",
        "Alt-Enter, Ctrl-J": "a new line",
        "Ctrl-C": "stop what is going on; twice: end the program",
        "Ctrl-D": "end the program, in an empty line",
    }
    width = max(map(len, [*commands, *keys]))
    yield from (f"{typed:<{width}}  {does}" for typed, does in {**commands, **keys}.items())
    yield "A line that is typed while the model works goes into its next turn."
