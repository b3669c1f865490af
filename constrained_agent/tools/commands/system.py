"""Programs that act on the machine: rights, disks, processes, services, accounts, keys, packages."""

from __future__ import annotations

import re
from collections.abc import Mapping

from constrained_agent.tools.commands import options, tables
from constrained_agent.tools.commands.programs import Judge, arguments, outside
from constrained_agent.tools.commands.scene import Call
from constrained_agent.tools.commands.verdict import Judgement, danger, reads, worst, writes

_PACKAGE_READS = frozenset(tables.names("machine", "package_reads"))
_SERVICE_READS = frozenset(tables.names("machine", "service_reads"))
_VIEWERS = ("view", "less", "more", "man", "info", "gdb", "lldb")
_EDITORS = (
    "vim",
    "vi",
    "nvim",
    "ex",
    "vimdiff",
    "ed",
    "emacs",
    "emacsclient",
    "nano",
    "pico",
    "dc",
    "gnuplot",
    "octave",
    *_VIEWERS,
)
_ESCAPES = re.compile(r"!|\b(?:system|shell|call|delete|python|execute|job_start)\b|-command|process")


def _always(reason: str) -> Judge:
    def judge(_call: Call) -> Judgement:
        return danger(reason)

    return judge


def _kill(call: Call) -> Judgement:
    """`kill 1234`; a negative number as a process means a group, -1 everything."""
    words = list(call.args)
    if (
        words
        and re.fullmatch(r"-[A-Za-z]\w*|-\d{1,2}|--signal=\S+", words[0])
        and words[0] not in ("-1", "-s", "-n")
    ):
        words = words[1:]
    elif words and words[0] in ("-s", "-n", "--signal"):
        words = words[2:]
    elif words and words[0] == "-1" and len(words) > 1:
        words = words[1:]  # signal 1
    if any(re.fullmatch(r"-\d+|0|1", word) for word in words):
        return danger("ends processes that it did not start")
    return reads("lists signals") if words[:1] == ["-l"] else writes("ends processes")


def _crontab(call: Call) -> Judgement:
    return writes("lists jobs") if list(call.args) == ["-l"] else danger("makes commands run later")


def _systemctl(call: Call) -> Judgement:
    words = [word for word in call.args if not word.startswith("--")]
    if not words or words[0] in _SERVICE_READS or words[-1] in ("status",):
        return writes("asks the service manager")
    return danger("starts, stops or changes services of the machine")


def _packages(call: Call) -> Judgement:
    if any(word in _PACKAGE_READS for word in call.args[:1]):
        return writes("asks the package manager")
    return danger("changes the packages of the machine")


def _editor(call: Call) -> Judgement:
    """Editors and debuggers run commands of their own languages."""
    text = " ".join(call.args) + ("" if call.stdin is None else call.stdin.text or "!")
    if _ESCAPES.search(text):
        return danger("runs commands inside another program")
    files = options.operands(call.args) if call.argv[0] not in _VIEWERS else []
    return worst(writes("edits files"), arguments(call), *(outside(one, call.scene) for one in files))


def _openssl(call: Call) -> Judgement:
    if options.flag(call.args, "", "--engine") or "s_client" in call.args:
        return danger("opens a network connection or loads code")
    return worst(writes("makes or reads keys and certificates"), arguments(call))


JUDGES: Mapping[str, Judge] = {
    **{name: _always(reason) for name, reason in tables.always().items()},
    "kill": _kill,
    "crontab": _crontab,
    **dict.fromkeys(["systemctl", "service", "rc-service", "initctl"], _systemctl),
    **dict.fromkeys(tables.names("machine", "packages"), _packages),
    **dict.fromkeys(_EDITORS, _editor),
    "openssl": _openssl,
}
