"""Programs that only read and print, and the few options with which they do more."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from constrained_agent.tools.commands import options, paths, tables
from constrained_agent.tools.commands.options import names
from constrained_agent.tools.commands.programs import Judge, hidden
from constrained_agent.tools.commands.scene import UNKNOWN, Call
from constrained_agent.tools.commands.verdict import Judgement, danger, reads, worst, writes

_GREP_VALUED = frozenset(
    names(
        "-A -B -C -m -e -f -d -D --include --exclude --exclude-dir --color --colour --context --max-count "
        "--after-context --before-context --regexp --file"
    )
)
_RG_VALUED = _GREP_VALUED | frozenset(
    names("-g -t -T -j -r -M --glob --iglob --type --type-not --sort --max-depth -E")
)
_VALUED: Mapping[str, Collection[str]] = {
    "head": ("-n", "-c", "--lines", "--bytes"),
    "tail": ("-n", "-c", "--lines", "--bytes", "--pid", "-s"),
    "cut": ("-d", "-f", "-c", "-b", "--delimiter", "--fields", "--output-delimiter"),
    "nl": ("-b", "-w", "-s", "-v", "-n"),
    "od": ("-A", "-j", "-N", "-t", "-w"),
    "column": ("-t", "-s", "-c", "-o", "-N"),
    "fold": ("-w",),
    "paste": ("-d",),
    "join": ("-t", "-1", "-2", "-o", "-e", "-a", "-j"),
    "diff": ("-U", "-C", "-x", "-I", "--label", "-W"),
    "strings": ("-n", "-t", "-e"),
    "hexdump": ("-n", "-s", "-e"),
    "du": ("-d", "-t", "--max-depth", "--exclude", "-B"),
    "tree": ("-L", "-I", "-P"),
    "stat": ("-c", "-f", "--format", "--printf"),
    "date": ("-d", "-r", "--date", "--reference"),
    "sort": ("-k", "-t", "-S", "-T", "--key", "--field-separator"),
    "uniq": ("-f", "-s", "-w"),
    "jq": ("--indent", "--tab", "-L"),
}


def files(call: Call, operands: list[str]) -> Judgement:
    """What reading these operands, and what options name (`--from=FILE`, `-fFILE`), means."""
    found = reads()
    for arg in call.args:
        if arg.startswith("-") and (start := re.search(r"[/~]", arg)):
            found = worst(found, paths.reading(arg[start.start() :], call.scene))
        elif arg.startswith("-") and paths.secret(arg, call.scene):
            found = worst(found, danger(f"reads credentials ({paths.shown(arg)})"))
    if any(paths.holds_home(operand, call.scene) for operand in operands):
        found = worst(found, danger("reads credentials, with all else that a home holds"))
    return worst(found, *(paths.reading(operand, call.scene) for operand in operands if operand != "-"))


def _content(call: Call) -> Judgement:
    return files(call, options.operands(call.args, _VALUED.get(call.argv[0], ())))


def _metadata(call: Call) -> Judgement:
    """Names, sizes and dates: not what stands in a file, so `.env` may be looked for."""
    if call.argv[0] == "file" and options.flag(call.args, "C", "--compile"):
        return writes("writes a table of kinds")
    if call.argv[0] == "tree" and options.flag(call.args, "oR"):
        return writes("writes its list to a file")
    found = reads()
    for operand in options.operands(call.args, _VALUED.get(call.argv[0], ())):
        where = paths.zone(operand, call.scene)
        if UNKNOWN in operand or where is paths.Zone.UNKNOWN:
            found = worst(found, writes("looks at a file that is only known when it runs"))
        elif where not in (paths.Zone.SINK, paths.Zone.INSIDE, paths.Zone.RULES):
            found = worst(found, writes(f"looks at {paths.shown(operand)}, which is outside the repository"))
            folder = operand.rstrip("/") + "/x"
            if paths.secret(folder, call.scene) and paths.secret(operand, call.scene):
                found = worst(found, danger(f"looks at credentials ({paths.shown(operand)})"))
    return found


def _text_only(call: Call) -> Judgement:
    name = call.argv[0]
    if name == "ps" and any(re.fullmatch(r"[a-df-zA-Z]*e[a-zA-Z]*|-\w*E\w*", arg) for arg in call.args):
        return danger("shows the environment of other processes")
    if name in ("which", "type", "echo", "printenv"):
        return reads()
    return reads("prints")


def _grep(call: Call) -> Judgement:
    """`grep PATTERN FILES`: the pattern is no path."""
    name = call.argv[0].rpartition("/")[2]
    is_rg = name in ("rg", "ag", "ack")
    given, operands = options.split(call.args, _RG_VALUED if is_rg else _GREP_VALUED)
    if is_rg and (options.flag(given, "", "--pre", "--hostname-bin", "--pager") or "-L" in given):
        found = worst(
            *(hidden(value, call.scene) for value in options.values(call.args, "", "--pre", "--pager"))
        )
        return worst(found, writes("runs another program on what it reads"))
    if not options.flag(given, "ef", "--regexp", "--file", "--files"):
        operands = operands[1:]
    if not is_rg and ("-R" in given or options.flag(given, "R", "--dereference-recursive")):
        return worst(files(call, operands), writes("follows links out of the repository"))
    patterns = options.values(call.args, "f", "--file")
    return worst(files(Call([name], call.scene), [*operands, *(one for one in patterns if one)]))


def _sort(call: Call) -> Judgement:
    operands = options.operands(call.args, _VALUED["sort"])
    found = files(call, operands)
    for target in options.values(call.args, "o", "--output"):
        found = worst(found, paths.writing(target, call.scene))
    for program in options.values(call.args, "", "--compress-program"):
        found = worst(found, hidden(program, call.scene), writes("runs another program"))
    return found


def _uniq(call: Call) -> Judgement:
    operands = options.operands(call.args, _VALUED["uniq"])
    found = files(call, operands[:1])
    return worst(found, *(paths.writing(target, call.scene) for target in operands[1:]))


def _xxd(call: Call) -> Judgement:
    operands = options.operands(call.args, ("-c", "-g", "-l", "-s", "-o", "-n"))
    return worst(files(call, operands[:1]), *(paths.writing(target, call.scene) for target in operands[1:]))


def _date(call: Call) -> Judgement:
    operands = options.operands(call.args, _VALUED["date"])
    if options.flag(call.args, "s", "--set") or any(not word.startswith("+") for word in operands):
        return danger("sets the clock or the name of the machine")
    return worst(*(paths.reading(one, call.scene) for one in options.values(call.args, "f", "--file")))


def _jq(call: Call) -> Judgement:
    """`jq FILTER FILES`; `yq -i` writes."""
    given, operands = options.split(call.args, _VALUED["jq"])
    if options.flag(given, "i", "--in-place", "--inplace") and call.argv[0].endswith("yq"):
        return worst(*(paths.writing(target, call.scene) for target in operands[1:]), writes())
    return files(call, operands if options.flag(given, "f", "--from-file") else operands[1:])


JUDGES: Mapping[str, Judge] = {
    **dict.fromkeys(tables.names("readers", "content"), _content),
    **dict.fromkeys(tables.names("readers", "metadata"), _metadata),
    **dict.fromkeys(tables.names("readers", "text"), _text_only),
    **dict.fromkeys(["grep", "egrep", "fgrep", "rg", "ag", "ack"], _grep),
    **dict.fromkeys(["sort", "base64"], _sort),
    "uniq": _uniq,
    "xxd": _xxd,
    **dict.fromkeys(["date", "hostname"], _date),
    **dict.fromkeys(["jq", "yq"], _jq),
}
