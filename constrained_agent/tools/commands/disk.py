"""Programs that delete, move, copy and write files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace

from constrained_agent.tools.commands import options, paths
from constrained_agent.tools.commands.paths import Zone
from constrained_agent.tools.commands.programs import Judge, arguments, unknown
from constrained_agent.tools.commands.scene import NO_OUTPUT, UNKNOWN, Call, Scene
from constrained_agent.tools.commands.verdict import Judgement, danger, reads, worst, writes

_ALL = re.compile(r"[*?.]*\*[*?.]*|\.\.?|")


def deleting(path: str, scene: Scene, *, recursive: bool) -> Judgement:
    """What it means to delete a file, or a folder with all that is in it."""
    scene = scene if path.endswith("/") else _unlinked(path, scene)
    where = paths.zone(path, scene)
    name = path.rstrip("/").rpartition("/")[2]
    if path.startswith(paths.MADE_HERE):
        return writes("deletes what this line made")
    if UNKNOWN in path and (recursive or where is Zone.UNKNOWN):
        return danger("deletes something that is only known when it runs")
    if paths.is_root(path, scene):
        return danger("deletes the repository or what it lies in")
    if where in (Zone.RULES, Zone.PROTECTED):
        return danger(f"deletes {paths.shown(path)}, which git or the rules of permission live on")
    is_one = not _ALL.fullmatch(name) and not (recursive and re.search(r"[*?\[]", path))
    if where is Zone.TEMPORARY and is_one:
        return writes(f"deletes {paths.shown(path)}")
    if where is not Zone.INSIDE:
        return danger(f"deletes {paths.shown(path)}, which is outside the repository")
    if paths.is_build(path, scene):
        return writes(f"deletes {paths.shown(path)}, which a build makes anew")
    if _ALL.fullmatch(name):
        return danger("deletes all that a folder holds")
    if recursive and not _is_file(path, scene):
        return danger(f"deletes {paths.shown(path)} with all that is in it, and no build makes it anew")
    return writes(f"deletes {paths.shown(path)}")


def _unlinked(path: str, scene: Scene) -> Scene:
    """The scene for what is done to a link itself, not to what it leads to."""
    own, inner = paths.absolute(path, scene), scene.copy()
    inner.links = [one for one in scene.links if one[0] not in own]
    return inner


def _is_file(path: str, scene: Scene) -> bool:
    """Whether it is one file of a real repository, so that deleting it recursively changes nothing."""
    return scene.place.real and all(os.path.isfile(full) for full in paths.absolute(path, scene))


def _rm(call: Call) -> Judgement:
    recursive = options.flag(call.args, "rR", "--recursive")
    if options.flag(call.args, "", "--no-preserve-root"):
        return danger("deletes even the root of the disk")
    targets = options.operands(call.args)
    return worst(
        *(deleting(one, call.scene, recursive=recursive) for one in targets), writes("deletes nothing")
    )


def _rimraf(call: Call) -> Judgement:
    """Programs that always delete folders with all that is in them."""
    targets = options.operands(call.args)
    return worst(*(deleting(one, call.scene, recursive=True) for one in targets), writes("deletes nothing"))


def _unlink(call: Call) -> Judgement:
    targets = options.operands(call.args)
    return worst(*(deleting(one, call.scene, recursive=False) for one in targets), writes("deletes nothing"))


def _mv(call: Call) -> Judgement:
    operands = options.operands(call.args, ("-S", "-t"))
    targets = options.values(call.args, "t", "--target-directory")
    sources, target = (operands, targets[0]) if targets else (operands[:-1], operands[-1] if operands else "")
    found = worst(writes("moves files"), paths.writing(target, call.scene) if target else None)
    if paths.zone(target, call.scene) is Zone.SINK:
        return danger("moves files to where they are lost")
    _follow(sources, target, call.scene)
    for source in sources:
        where = paths.zone(source, call.scene)
        name = source.rstrip("/").rpartition("/")[2]
        if _ALL.fullmatch(name) and paths.zone(target, call.scene) is not Zone.INSIDE:
            found = worst(found, danger("moves all that a folder holds out of the repository"))
        # Under another such name they are as well guarded as before.
        kept = where is Zone.INSIDE and paths.secret(
            f"{target}/{name}" if target.endswith("/") else target, call.scene
        )
        if paths.secret(source, call.scene) and not kept:
            found = worst(found, danger(f"moves credentials ({paths.shown(source)})"))
        if where not in (Zone.INSIDE, Zone.TEMPORARY) or paths.is_root(source, call.scene):
            found = worst(found, danger(f"moves {paths.shown(source)} from where it belongs"))
    return found


def _cp(call: Call) -> Judgement:
    operands = options.operands(call.args, ("-S", "-t", "-m", "-o", "-g", "--mode"))
    targets = options.values(call.args, "t", "--target-directory")
    sources, target = (operands, targets[0]) if targets else (operands[:-1], operands[-1] if operands else "")
    found = worst(writes("copies files"), paths.writing(target, call.scene) if target else None)
    _follow(sources, target, call.scene)
    for source in sources:
        if paths.secret(source, call.scene) or paths.holds_home(source, call.scene):
            found = worst(found, danger(f"copies credentials ({paths.shown(source)})"))
    return found


def _follow(sources: list[str], target: str, scene: Scene) -> None:
    """A file that this line wrote is known under its new name, too."""
    for source in sources:
        for full in paths.absolute(source, scene):
            if full in scene.files:
                for name in (target, f"{target}/{full.rpartition('/')[2]}"):
                    scene.files.update(dict.fromkeys(paths.absolute(name, scene), scene.files[full]))


def _write_operands(call: Call) -> Judgement:
    """`touch`, `mkdir`, `tee` ...: each operand is written."""
    operands = options.operands(call.args, ("-m", "-d", "-r", "-t", "-s", "-A", "--mode", "--date", "--size"))
    return worst(*(paths.writing(one, call.scene) for one in operands), writes())


def _split(call: Call) -> Judgement:
    """`split --filter=COMMAND` runs it on each piece."""
    lines = [value for value in options.values(call.args, "", "--filter") if value]
    judged = [call.scene.engine.line(line, call.scene.copy()) for line in lines]
    return worst(_write_operands(call), *judged)


def _tee(call: Call) -> Judgement:
    found = worst(reads(), *(paths.writing(one, call.scene) for one in options.operands(call.args)))
    for operand in options.operands(call.args):
        for full in paths.absolute(operand, call.scene):
            call.scene.files[full] = call.stdin or NO_OUTPUT
    return found


def _ln(call: Call) -> Judgement:
    operands = options.operands(call.args, ("-S", "-t"))
    targets = options.values(call.args, "t", "--target-directory") or operands[1:][-1:] or ["."]
    found = worst(writes("makes a link"), paths.writing(targets[0], _unlinked(targets[0], call.scene)))
    sources = operands[:-1] if len(operands) > 1 and targets == operands[-1:] else operands
    for source in sources:
        _link(targets[0], source, call.scene, symbolic=options.flag(call.args, "s", "--symbolic"))
    if any(paths.secret(one, call.scene) for one in sources):
        found = worst(found, danger("makes a link to credentials"))
    return found


def _link(name: str, source: str, scene: Scene, *, symbolic: bool) -> None:
    """Remember a link: what is done to its name is done to its source. In a folder it gets the source's name."""
    inner = f"{name.rstrip('/')}/{paths.absolute(source, scene)[0].rpartition('/')[2]}"
    is_folder = name.endswith(("/", ".")) or (
        scene.place.real and any(os.path.isdir(full) for full in paths.absolute(name, scene))
    )
    for spelled in (inner,) if is_folder else (name, inner):
        beside = f"{spelled.rpartition('/')[0] or '.'}/{source}"  # what a relative source is relative to
        target = beside if symbolic and not source.startswith(("/", "~", UNKNOWN)) else source
        for full in paths.absolute(spelled, scene):
            scene.links += [(full, one) for one in paths.absolute(target, scene) if one != full]


def _patch(call: Call) -> Judgement:
    """`patch FILE PATCH`: without names it changes what the patch says, below this folder."""
    files = options.operands(
        call.args, ("-p", "-i", "-d", "-o", "-F", "-r", "-B", "-D", "-z", "-V", "-Y", "-g")
    )
    return worst(unknown(call), *(paths.writing(one, call.scene) for one in files[:1]))


def _dd(call: Call) -> Judgement:
    found = writes("copies bytes")
    for word in call.args:
        name, _, value = word.partition("=")
        if name == "of":
            found = worst(found, paths.writing(value, call.scene))
        elif name == "if" and paths.zone(value, call.scene) is not Zone.SINK:
            found = worst(found, paths.reading(value, call.scene))
    return found


def _chmod(call: Call) -> Judgement:
    """`chmod`: what is changed must lie in the repository, and must not gain another's rights."""
    words = [arg for arg in call.args if not re.fullmatch(r"-[Rfvch]+|--[a-z-]+", arg)]
    mode, operands = words[:1], words[1:]
    if mode and re.fullmatch(r"[0-7]?[2-7][0-7]{3}|[ugoa]*\+[rwxXt]*s[rwxXst]*", mode[0]):
        return danger("lets a program run with another's rights")
    recursive = options.flag(call.args, "R", "--recursive")
    if recursive and any(paths.is_root(one, call.scene) and one.startswith(("/", "~")) for one in operands):
        return danger("changes the rights of all files of a disk, a home or the repository")
    return worst(
        writes("changes rights of files"),
        *(_owned(one, call.scene) for one in operands),
        arguments_of(call, "--reference"),
    )


def _owned(path: str, scene: Scene) -> Judgement:
    where = paths.zone(path, scene)
    if where in (Zone.INSIDE, Zone.TEMPORARY, Zone.SINK):
        return writes()
    return danger(
        f"changes rights of {paths.shown(path)}, which is outside the repository or only known when it runs"
    )


def arguments_of(call: Call, name: str) -> Judgement:
    return worst(*(paths.reading(value, call.scene) for value in options.values(call.args, "", name)))


def _tar(call: Call) -> Judgement:
    """`tar`: it can run programs, unpack anywhere, and delete what it packed."""
    if call.args and call.args[0].isalpha():  # `tar cf`: options without a dash, no word that names a program
        call = replace(call, argv=[call.argv[0], f"-{call.args[0]}", *call.args[1:]])
    found = writes("packs or unpacks files")
    if options.flag(call.args, "", "--remove-files"):
        found = worst(found, danger("deletes the files that it packs"))
    for name in (
        "--to-command",
        "--use-compress-program",
        "--checkpoint-action",
        "--rsh-command",
        "--info-script",
    ):
        for value in options.values(call.args, "", name):
            text = value.removeprefix("exec=")
            found = worst(
                found, call.scene.engine.line(text, call.scene.copy()), danger(f"runs a program ({name})")
            )
    if any(paths.holds_home(one, call.scene) for one in call.args[1:] if not one.startswith("-")):
        found = worst(found, danger("packs credentials"))
    for folder in options.values(call.args, "C", "--directory"):
        found = worst(found, paths.writing(folder, call.scene))
    return worst(
        found,
        (options.flag(call.args, "P", "--absolute-names") and danger("unpacks to anywhere")) or None,
        arguments(call),
    )


def _unzip(call: Call) -> Judgement:
    targets = options.values(call.args, "d")
    return worst(
        writes("unpacks files"), *(paths.writing(one, call.scene) for one in targets), arguments(call)
    )


JUDGES: Mapping[str, Judge] = {
    "rm": _rm,
    **dict.fromkeys(["rimraf", "del-cli", "trash", "rmtrash", "trash-put"], _rimraf),
    **dict.fromkeys(["unlink", "rmdir"], _unlink),
    "mv": _mv,
    **dict.fromkeys(["cp", "install"], _cp),
    **dict.fromkeys(["touch", "mkdir", "truncate", "mkfifo", "sponge", "csplit"], _write_operands),
    "split": _split,
    "tee": _tee,
    **dict.fromkeys(["ln", "link", "symlink"], _ln),
    "dd": _dd,
    "patch": _patch,
    "chmod": _chmod,
    **dict.fromkeys(["tar", "bsdtar"], _tar),
    "unzip": _unzip,
}
