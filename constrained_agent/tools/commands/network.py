"""Programs that talk to other machines: fetching is a write at home, sending changes something elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping

from constrained_agent.tools.commands import options, paths
from constrained_agent.tools.commands.options import names
from constrained_agent.tools.commands.programs import Judge, arguments
from constrained_agent.tools.commands.scene import UNKNOWN, UNKNOWN_OUTPUT, Call
from constrained_agent.tools.commands.verdict import Judgement, Risk, danger, reads, remote, worst, writes

_LOCAL = re.compile(
    r"(?:https?://)?(?:[\w.-]+@)?(?:localhost|127(?:\.\d{1,3}){3}|0\.0\.0\.0|\[::1?\])(?:[:/?][^@]*)?",
    re.IGNORECASE,
)
_CURL_VALUED = "AbcCdDeEFhHKmoPQrtTuUwxXyYz"
_CURL_VALUED_NAMES = names(
    "--output --user-agent --header --user --proxy --max-time --connect-timeout --retry --retry-delay --write-out "
    "--cookie --cookie-jar --referer --range --cacert --cert --key --resolve --dump-header --limit-rate --interface "
    "--request --url --output-dir --config --trace --trace-ascii --stderr --netrc-file --proto --aws-sigv4 "
    "--oauth2-bearer --data --data-raw --data-binary --data-urlencode --data-ascii --form --form-string "
    "--upload-file --json --quote"
)
_CURL_SENDS = names(
    "--data --data-raw --data-binary --data-urlencode --data-ascii --form --form-string --upload-file --json --quote "
    "--mail-from --mail-rcpt"
)
_SAFE_METHODS = frozenset(["GET", "HEAD", "OPTIONS"])
_HOST_PATH = re.compile(r"(?:[\w.-]+@)?[\w.-]+:(?!\\).*|(?:rsync|s?ftp|scp|ssh)://.*", re.DOTALL)


def _letters(args: list[str]) -> list[tuple[str, str]]:
    """curl's short options with their values: `-sXPOST` is s and X with POST."""
    found = []
    for number, word in enumerate(args):
        if not re.match(r"-[^-]", word):
            continue
        for place, letter in enumerate(word[1:], 1):
            following = args[number + 1] if number + 1 < len(args) else ""
            if letter in _CURL_VALUED:
                found.append((letter, word[place + 1 :] or following))
                break
            found.append((letter, ""))
    return found


def _curl(call: Call) -> Judgement:
    """`curl`: GET fetches; other methods and data send."""
    args = list(call.args)
    short = _letters(args)
    given = {letter for letter, _ in short}
    methods = [value for letter, value in short if letter == "X"] + options.values(args, "", "--request")
    sends = bool(given & set("dFTQ")) or options.flag(
        [w for w in args if w.startswith("--")], "", *_CURL_SENDS
    )
    asks = (
        "G" in given
        or "I" in given
        or options.flag([w for w in args if w.startswith("--")], "", "--get", "--head")
    )
    changing = [method for method in methods if method.upper() not in _SAFE_METHODS]
    urls = _curl_urls(args)
    found = writes("fetches over the network")
    if (sends and not asks) or changing or given & set("T"):
        found = _to(urls, "sends data to another machine")
    if any(letter == "K" for letter, _ in short) or options.flag(args, "", "--config"):
        found = worst(found, remote("takes its options from a file"))
    outputs = [value for letter, value in short if letter in "oDc"]
    outputs += options.values(
        args, "", "--output", "--output-dir", "--dump-header", "--cookie-jar", "--trace", "--trace-ascii"
    )
    found = worst(found, *(paths.writing(one, call.scene) for one in outputs if one != "-"))
    return worst(found, _written(outputs, call), _urls(urls, call), arguments(call))


def _curl_urls(args: list[str]) -> list[str]:
    valued = {f"-{letter}" for letter in _CURL_VALUED} | set(_CURL_VALUED_NAMES)
    return options.operands(args, valued) + options.values(args, "", "--url")


def _written(outputs: list[str], call: Call) -> Judgement:
    """Remember what was downloaded to where: running it in the same line is running it unseen."""
    for path in outputs:
        call.scene.files.update(dict.fromkeys(paths.absolute(path, call.scene), UNKNOWN_OUTPUT))
    return reads()


def _to(urls: list[str], reason: str) -> Judgement:
    if urls and all(_LOCAL.fullmatch(url) for url in urls):
        return writes("talks to a server on this machine")
    return remote(reason)


def _urls(urls: list[str], call: Call) -> Judgement:
    """Fetching from an address that is made of something unknown may send it."""
    found = reads()
    for url in urls:
        if UNKNOWN in url and not _LOCAL.fullmatch(url):
            found = worst(
                found, remote("fetches from an address that is only known when it runs, so it may send data")
            )
        if url.startswith("file://"):
            found = worst(found, paths.reading(url, call.scene))
        if "/" in url:  # what `-O` and wget would save it as
            _written([url.rpartition("/")[2].partition("?")[0]], call)
    return found


def _wget(call: Call) -> Judgement:
    args = list(call.args)
    urls = options.operands(
        args, ("-O", "-P", "-o", "-a", "-t", "-T", "-U", "--header", "-i", "-e", "--user-agent")
    )
    found = writes("fetches over the network")
    methods = options.values(args, "", "--method")
    if options.flag(args, "", "--post-data", "--post-file", "--body-data", "--body-file") or any(
        method.upper() not in _SAFE_METHODS for method in methods
    ):
        found = _to(urls, "sends data to another machine")
    if options.flag(args, "", "--use-askpass", "--execute") or "-e" in args:
        found = worst(found, danger("takes settings that may run programs"))
    outputs = [one for one in options.values(args, "O", "--output-document") if one != "-"]
    outputs += options.values(args, "", "--directory-prefix", "--output-file")
    outputs += [args[n + 1] for n, word in enumerate(args[:-1]) if word == "-P"]
    found = worst(found, *(paths.writing(one, call.scene) for one in outputs))
    return worst(found, _written(outputs, call), _urls(urls, call), arguments(call))


def _http(call: Call) -> Judgement:
    """HTTPie: `http POST URL field=value`."""
    words = options.operands(call.args)
    methods = [word for word in words if re.fullmatch(r"[A-Z]+", word)]
    sends = any(re.match(r"[\w-]+(?:=|:=|@)", word) for word in words) or options.flag(
        call.args, "f", "--form", "--raw"
    )
    if sends or any(word not in _SAFE_METHODS for word in methods):
        return _to([word for word in words if re.search(r"[./:]", word)][:1], "sends data to another machine")
    return worst(writes("fetches over the network"), arguments(call))


def _remote_shell(call: Call) -> Judgement:
    if len(call.args) == 1 and call.args[0] == "-V":
        return reads("asks for its version")
    return worst(remote("runs commands on another machine or sends data there"), arguments(call))


def _copy_to_host(call: Call) -> Judgement:
    """`scp`, `rsync`: to or from a host; between folders rsync is a copy, which may delete."""
    operands = options.operands(
        call.args, ("-e", "-P", "-i", "-F", "-o", "-l", "-f", "--exclude", "--include", "--rsh", "--filter")
    )
    found = writes("copies files")
    if call.argv[0].endswith("scp") or any(_HOST_PATH.fullmatch(word) for word in operands):
        found = remote("copies files to or from another machine")
    for program in options.values(call.args, "e", "--rsh", "--rsync-path"):
        judged = call.scene.engine.line(program, call.scene.copy())
        found = worst(found, Judgement(judged.risk, judged.reason))
    deletes = any(re.match(r"--(?:del|remove-source)", word) for word in call.args)
    if deletes and not all(paths.is_build(word, call.scene) for word in operands[-1:]):
        found = worst(found, danger("deletes files that are not in what it copies"))
    if found.risk < Risk.REMOTE_CHANGING and operands:
        found = worst(found, paths.writing(operands[-1], call.scene))
    if any(paths.secret(one, call.scene) or paths.holds_home(one, call.scene) for one in operands[:-1]):
        found = worst(found, danger("copies credentials"))
    return found


def _socket(call: Call) -> Judgement:
    """`nc`: opens connections, or waits for them and may start a shell."""
    if options.flag(call.args, "ec", "--exec", "--sh-exec") or any(
        "exec:" in word.casefold() for word in call.args
    ):
        return danger("lets another machine run commands here")
    if options.flag(call.args, "z"):
        return writes("asks whether a port is open")
    return worst(remote("sends data to another machine"), arguments(call))


def _lookup(call: Call) -> Judgement:
    if any(UNKNOWN in word for word in call.args):
        return remote("asks for a name that is only known when it runs, so it may send data")
    return writes("asks other machines")


JUDGES: Mapping[str, Judge] = {
    "curl": _curl,
    "wget": _wget,
    **dict.fromkeys(["http", "https", "httpie", "xh"], _http),
    **dict.fromkeys(
        names("ssh sftp mosh telnet rsh rlogin ftp lftp ssh-copy-id autossh sshfs sshpass"), _remote_shell
    ),
    **dict.fromkeys(["scp", "rsync", "pscp"], _copy_to_host),
    **dict.fromkeys(["nc", "ncat", "netcat", "socat"], _socket),
    **dict.fromkeys(names("ping ping6 dig nslookup host traceroute drill whois"), _lookup),
}
