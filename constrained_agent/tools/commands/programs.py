"""Which judge knows which program, and what is said of programs that none knows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise

from constrained_agent.tools.commands import paths, tables
from constrained_agent.tools.commands.options import names
from constrained_agent.tools.commands.paths import Zone
from constrained_agent.tools.commands.scene import UNKNOWN, Call, Scene
from constrained_agent.tools.commands.verdict import Judgement, Risk, danger, reads, remote, worst, writes

Judge = Callable[[Call], Judgement]

_SYSTEM_FOLDERS = re.compile(r"/(?:usr/(?:local/)?)?s?bin/|/opt/homebrew/bin/")
_VERSIONED = re.compile(r"(python|pypy|pip|perl|ruby|php|lua|node|bash|clang|gcc|g\+\+)[\d.]+")
_PREFIXED = frozenset(
    names("rm mv cp dd ln chmod chown find sed awk xargs tar timeout env shred truncate tee")
)
_SHIPPING = re.compile(
    r"(?:^|[^a-z])(?:deploy|publish|release|undeploy|redeploy|promote|rollout|rollback|ship|upload|push)(?:s|ed)?"
    r"(?=$|[^a-z]|(?-i:[A-Z]))",
    re.IGNORECASE,
)
_RELEASE_OF_ITS_KIND = re.compile(
    r"(?:build|compile|assemble|bundle|test|check|lint|clean)[-_:.]release|release[-_:.]?(?:notes?|builds?|tests?)",
    re.IGNORECASE,
)
"""There the word is no verb: a build for release, notes of one."""

_SHIPS = frozenset(tables.names("tasks", "ships"))
_TEST_NAME = re.compile(r"(?:^|/)test[_-]|[_-]tests?\.\w+$|^tests?/|/tests?/", re.IGNORECASE)
_ENGLISH = frozenset(
    names(
        "at batch halt init mount host service passwd security shutdown reboot open su install make test time watch "
        "mail write command source link format split head tail less more kill history "
        "pass op route port snap skill bless task please now render modal surge screen daemon daemonize"
    )
)
"""Names of programs that are also words: as an argument of an unknown program they mean nothing."""


_VERSION_WORDS = frozenset(
    ["python -V", "python3 -V", "pip -V", "node -v", "npm -v", "ruby -v", "perl -v", "php -v", "go version"]
)
"""Not for `python -v` and `bash -v`: these go on to read a program."""

_VERSIONED_TOOLS = frozenset(tables.names("readers", "versioned"))


@cache
def _table() -> Mapping[str, Judge]:
    from constrained_agent.tools.commands import (
        builtins,
        cloud,
        disk,
        git,
        interpreters,
        leaving,
        network,
        readers,
        searching,
        system,
        wrappers,
    )

    modules = (
        *(readers, system, disk, builtins, cloud, network, git, interpreters, wrappers, searching),
        leaving,
    )
    return {name: judge for module in modules for name, judge in module.JUDGES.items()}


def name_of(word: str) -> str:
    """The program's name without folders, versions, and the `g` of GNU tools on a Mac."""
    name = word.rpartition("/")[2].casefold().removesuffix(".exe")
    if versioned := _VERSIONED.fullmatch(name):
        return versioned[1]
    if name.startswith("g") and name[1:] in _PREFIXED:
        return name[1:]
    return "mkfs" if name.startswith(("mkfs.", "newfs_")) else name


def judge(call: Call) -> Judgement:
    """What a command may do."""
    word = call.argv[0]
    if UNKNOWN in word:
        return danger("runs a program that is only known when it runs")
    if re.search(r"[*?\[]", word) and word not in ("[", "[["):
        return danger("lets the shell find a program by a pattern")
    if call.scene.functions.get(word):
        return _function(call)
    if _asks_for_version(call):
        return reads("asks for its version or its help")
    written = [
        call.scene.files[full] for full in paths.absolute(word, call.scene) if full in call.scene.files
    ]
    if "/" in word and written:
        return script(call, written[0].text)
    from constrained_agent.tools.commands.ruled import guarded

    judged = guarded(call, _table().get(name_of(word), unknown)(call))
    if "/" in word and not _SYSTEM_FOLDERS.match(word):
        return worst(judged, writes("runs a program of its own"))
    return judged


def is_known(word: str) -> bool:
    """Whether a word is the name of a program of which more is known, and not an English word as well."""
    return name_of(word) not in _ENGLISH and name_of(word) in _table()


def _asks_for_version(call: Call) -> bool:
    """`python --version` and the like, of a well-known tool that is found by its name."""
    if len(call.argv) != 2 or call.argv[0] not in _VERSIONED_TOOLS:
        return False
    return call.argv[1] in ("--version", "--help") or " ".join(call.argv) in _VERSION_WORDS


def script(call: Call, text: str | None) -> Judgement:
    """A file that was written in this very line, run as a program."""
    if text is None:
        return danger("runs a file that this line makes, unseen")
    if re.match(r"#!.*\b(?:ba|da|z|k)?sh\b", text) or not text.startswith("#!"):
        return worst(call.scene.engine.line(text, call.scene.copy()), writes())
    from constrained_agent.tools.commands.code import judge_code

    return worst(judge_code(text, call.scene, text.partition("\n")[0]), writes("runs a script"))


def _function(call: Call) -> Judgement:
    """A function of this line: its body, with the words of the call."""
    scene, name = call.scene, call.argv[0]
    scene.record.uncalled.pop(name, None)
    if name in scene.called:
        return danger("is a function that calls itself: it may start processes without end")
    before = (scene.positional, scene.called)
    scene.positional, scene.called = tuple(call.args), (*scene.called, name)
    part = scene.part
    for body in scene.functions[name]:
        scene.engine.statement(body, scene, call.stdin)
    scene.positional, scene.called = before
    scene.part = part
    return Judgement(Risk.READ_ONLY, "calls a function of this line", looked_through=True)


def unknown(call: Call) -> Judgement:
    """A program that no judge knows: it may change files, and it may run its arguments as a command."""
    found = writes(f"runs {name_of(call.argv[0])[:40]}, which may change files")
    found = worst(found, arguments(call), *(outside(one, call.scene) for one in _targets(call)))
    if names_shipping(call.argv[0]):
        found = worst(found, remote("runs a program that is named for publishing"))
    return found


def outside(path: str, scene: Scene) -> Judgement:
    """What it means that a program is told to write there: nothing of note inside, or where that is not known."""
    where = paths.zone(path, scene)
    return (
        reads()
        if where in (Zone.SINK, Zone.INSIDE, Zone.TEMPORARY, Zone.UNKNOWN)
        else paths.writing(path, scene)
    )


_TARGET = re.compile(
    r"(?:-[od]|--(?:out(?:put)?|prefix|target|root|dest(?:ination)?)(?:[-_]?(?:dir|directory|file|path))?)(?:=(.*))?",
    re.DOTALL,
)
_SETS_UP = frozenset(["configure", "meson"])
"""Programs that only note down where something else will write."""


def _targets(call: Call) -> list[str]:
    """What options with the usual names say of where a program writes: `-o FILE`, `-o/`, `--prefix=DIR`."""
    if name_of(call.argv[0]) in _SETS_UP:
        return []
    found = [word[2:] for word in call.args if re.match(r"-[od](?=[/~.])", word)]
    for word, following in pairwise([*call.args, ""]):
        if named := _TARGET.fullmatch(word):
            found.append(following if named[1] is None else named[1])
    return found


def arguments(call: Call) -> Judgement:
    """What the arguments of a program say by themselves: credentials, commands that it may run."""
    found = reads()
    for position, word in enumerate(call.args):
        call.scene.record.step()
        if paths.secret(word, call.scene):
            found = worst(found, danger(f"is given credentials ({paths.shown(word)})"))
        # In text that may be prose any word is no command.
        if not call.scene.hidden and (is_known(word) or word in call.scene.functions):
            found = worst(found, _heavy(guess(Call(call.args[position:], call.scene))))
        for text in {word, word.partition("=")[2]}:
            if re.search(r"\s", text):
                found = worst(found, hidden(text, call.scene))
    return found


def guess(call: Call) -> Judgement:
    """A known command that may stand here; anything else is nothing."""
    if not call.argv or (name_of(call.argv[0]) not in _table() and call.argv[0] not in call.scene.functions):
        return reads()
    call.scene.record.step(1 + len(call.argv) // 10)
    scene = call.scene.copy()
    scene.hidden = True
    found = scene.record.found
    before = len(found)
    judgement = judge(Call(call.argv, scene))
    inner = [Judgement(one.risk, one.reason) for one in found[before:]]
    del found[before:]
    return worst(judgement, *inner)


def hidden(text: str, scene: Scene) -> Judgement:
    """Text that a program may run as a command line: only what is remote-changing or dangerous counts."""
    inner = scene.copy()
    inner.hidden = True
    found = scene.record.found
    before = len(found)
    with inner.level():
        scene.engine.line(text, inner)
    judged = worst(*(Judgement(one.risk, one.reason) for one in found[before:]))
    del found[before:]
    return _heavy(judged)


def _heavy(judgement: Judgement) -> Judgement:
    if judgement.risk <= Risk.WRITES:
        return reads()
    return Judgement(judgement.risk, f"may run a command that {judgement.reason}")


def names_shipping(word: str) -> bool:
    """Whether a script or target is named for what changes other machines: `deploy.sh`, `release`."""
    name = word.rpartition("/")[2].partition("@")[0]
    if name in _SHIPS:
        return True
    return (
        bool(_SHIPPING.search(name))
        and not _TEST_NAME.search(word)
        and not _RELEASE_OF_ITS_KIND.fullmatch(name)
    )


def spellings(argv: Sequence[str]) -> tuple[str, ...]:
    """Other words for the same command, for rules that deny: the bare name, git without its global options."""
    plain = [argv[0].rpartition("/")[2], *argv[1:]]
    found = [" ".join(plain)]
    if name_of(argv[0]) == "git":
        from constrained_agent.tools.commands.git import GLOBAL_VALUED
        from constrained_agent.tools.commands.options import first_of

        name, rest = first_of(argv[1:], GLOBAL_VALUED)
        found.append(" ".join(["git", name, *rest]))
    return tuple(text.replace(UNKNOWN, "…") for text in found)
