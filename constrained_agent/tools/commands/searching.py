"""`find` and `xargs`: commands that are run on files that a search names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from constrained_agent.tools.commands import disk, options, paths, programs
from constrained_agent.tools.commands.options import names
from constrained_agent.tools.commands.programs import Judge
from constrained_agent.tools.commands.scene import UNKNOWN, UNKNOWN_OUTPUT, Call
from constrained_agent.tools.commands.verdict import Judgement, danger, reads, worst, writes

_NAME_TESTS = frozenset(["-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex"])
_ONE_WORD = frozenset(
    names(
        "-type -maxdepth -mindepth -mtime -atime -ctime -mmin -amin -cmin -newer -size -user -group -perm -empty "
        "-links -printf -newermt -samefile -fstype -inum"
    )
)
_EXECUTE = frozenset(["-exec", "-execdir", "-ok", "-okdir"])
_WRITE = frozenset(["-fprint", "-fprint0", "-fprintf", "-fls"])
_XARGS_VALUED = frozenset(
    names(
        "-a -d -E -I -L -n -P -s --arg-file --delimiter --max-args --max-procs --max-lines --max-chars --replace "
        "--process-slot-var -J -R -S"
    )
)
MAX_NAMES = 32
"""Patterns of one search that are tried one by one; more count as any name."""


@dataclass(slots=True)
class _Search:
    """A `find` taken apart.

    Attributes:
        names: patterns of which one surely fits each file that is found; empty where any file may be found.
        commands: with whether each runs in the folder of the file (`-execdir`).
        plain: no negation, and no alternatives except among names.
    """

    starts: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    commands: list[tuple[bool, list[str]]] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    deletes: bool = False
    follows: bool = False
    plain: bool = True
    unknown: bool = False


def _take_apart(args: Sequence[str]) -> _Search:
    search, position = _Search(), 0
    while position < len(args) and (
        args[position] in ("-H", "-L", "-P") or args[position].startswith(("-O", "-D"))
    ):
        search.follows |= args[position] in ("-H", "-L")
        position += 2 if args[position] == "-D" else 1
    while position < len(args) and not re.match(r"[-(!]", args[position]):
        search.starts.append(args[position])
        position += 1
    search.unknown = any(UNKNOWN in start for start in search.starts[1:])
    search.starts = search.starts or ["."]
    n_alternatives = n_names = 0
    while position < len(args):
        word, following = args[position], args[position + 1 : position + 2]
        position += 1
        if word in _EXECUTE:
            end = next((i for i in range(position, len(args)) if args[i] in (";", "+")), len(args))
            search.commands.append((word.endswith("dir"), list(args[position:end])))
            position = end + 1
        elif word in _NAME_TESTS:
            search.names += following
            n_names += 1
            position += 1
        elif word in _WRITE:
            search.written += following
            position += 2 if word == "-fprintf" else 1
        elif word in _ONE_WORD:
            position += word != "-empty"
        elif word in ("-o", "-or", ","):
            n_alternatives += 1
        search.deletes |= word == "-delete"
        search.follows |= word == "-follow"
        search.unknown |= UNKNOWN in word
        search.plain &= word not in ("!", "-not") and word != ","
    if n_alternatives:
        # Names joined by -o: between the first and the last of them nothing else may stand.
        search.plain &= n_alternatives == n_names - 1 and _only_names(args)
    return search


def _only_names(args: Sequence[str]) -> bool:
    """Whether all alternatives are names in one pair of parentheses: `( -name a -o -name b ) ...`."""
    text = " ".join(
        "N" if word in _NAME_TESTS else word if word in ("(", ")", "-o", "-or") else "w" for word in args
    )
    return re.fullmatch(r"[^()]*\( N w(?: -o(?:r)? N w)* \)[^()o]*", text) is not None


def _samples(search: _Search) -> tuple[str, ...]:
    """Words like those that the search finds."""
    plain = search.plain and len(search.names) <= MAX_NAMES
    names = [name.rpartition("/")[2] or name for name in search.names] if plain else []
    return tuple(f"{start.rstrip('/') or '/'}/{name}" for start in search.starts for name in names or ["*"])


def found_paths(call: Call) -> tuple[str, ...]:
    """What `find` prints, as examples."""
    return _samples(_take_apart(call.args))


def _find(call: Call) -> Judgement:
    search = _take_apart(call.args)
    found = reads()
    for start in search.starts:
        found = worst(found, paths.reading(start, call.scene))
    if search.follows:
        found = worst(found, writes("follows links out of the repository"))
    if search.unknown:
        found = worst(found, danger("is told what to do by something that is only known when it runs"))
    found = worst(found, *(paths.writing(target, call.scene) for target in search.written))
    if search.deletes:
        found = worst(found, *(_deleting(sample, search, call) for sample in _samples(search)))
    for in_folder, command in search.commands:
        for sample in _samples(search):
            found = worst(found, _executing(command, sample, search, call, in_folder=in_folder))
    return found


def _deleting(sample: str, search: _Search, call: Call) -> Judgement:
    """Deleting all files of a name: everyday for leftovers of builds, a loss for anything else."""
    name = sample.rpartition("/")[2]
    if search.plain and (paths.is_litter(name) or paths.is_build_name(name)):
        return disk.deleting(sample, call.scene, recursive=False)
    if paths.is_build(sample, call.scene):
        return writes("deletes what a build makes anew")
    return danger("deletes all files that a search finds")


def _executing(command: list[str], sample: str, search: _Search, call: Call, *, in_folder: bool) -> Judgement:
    if not command:
        return danger("runs a command that cannot be read")
    argv = [word.replace("{}", sample) for word in command]
    name = programs.name_of(argv[0])
    scene = call.scene
    if in_folder:
        scene = scene.copy()
        scene.cwds = frozenset(paths.absolute(sample.rpartition("/")[0] or "/", scene))
        argv = [word.replace("{}", f"./{sample.rpartition('/')[2]}") for word in command]
    inner = scene.engine.command(argv, scene, UNKNOWN_OUTPUT)
    if name in ("rm", "unlink", "mv") and not options.flag(argv[1:], "rR", "--recursive"):
        return worst(inner, _deleting(sample, search, call))
    return Judgement(inner.risk, inner.reason) if inner.risk > 1 else inner


def _xargs(call: Call) -> Judgement:
    """`xargs CMD`: the words that are piped in become arguments, in each place where they may stand."""
    given, command = _xargs_command(call.args)
    if not command:
        command = ["echo"]
    stdin = call.stdin or UNKNOWN_OUTPUT
    words: list[str] = [UNKNOWN]
    if stdin.text is not None and not options.flag(given, "a", "--arg-file"):
        words = [word.strip("'\"") for word in stdin.text.replace("\0", UNKNOWN).split()]
        if options.flag(given, "0d", "--null", "--delimiter"):
            words = [stdin.text.strip("\n")]
    elif stdin.paths:
        words = list(stdin.paths)
    marks = [*options.values(given, "I", "--replace"), *options.values(given, "J")]
    marks += ["{}"] if any(word in ("-i", "--replace") for word in given) else []
    if marks := [mark for mark in marks if mark]:
        if stdin.text is not None:
            words = stdin.text.splitlines()
        return worst(
            *(
                call.scene.engine.command(
                    [part.replace(marks[0], word) for part in command], call.scene, None
                )
                for word in words or ["x"]
            )
        )
    return call.scene.engine.command([*command, *words], call.scene, None)


def _xargs_command(args: Sequence[str]) -> tuple[list[str], list[str]]:
    position = 0
    while position < len(args) and args[position].startswith("-"):
        if args[position] == "--":
            position += 1
            break
        position += 2 if args[position] in _XARGS_VALUED else 1
    return list(args[:position]), list(args[position:])


def _fd(call: Call) -> Judgement:
    """`fd PATTERN -x CMD`."""
    args = list(call.args)
    marks = [number for number, word in enumerate(args) if word in ("-x", "-X", "--exec", "--exec-batch")]
    if not marks:
        return worst(*(paths.reading(one, call.scene) for one in options.operands(args)[1:]))
    command = args[marks[0] + 1 :]
    argv = [word.replace("{}", "./*") for word in command]
    return call.scene.engine.command(
        argv if "{}" in " ".join(command) else [*argv, "./*"], call.scene, UNKNOWN_OUTPUT
    )


JUDGES: Mapping[str, Judge] = {
    "find": _find,
    "xargs": _xargs,
    "parallel": lambda call: worst(programs.unknown(call), _xargs(call)),
    **dict.fromkeys(["fd", "fdfind"], _fd),
}
