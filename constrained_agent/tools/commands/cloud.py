"""Tools of registries, hosts and clouds: which of their words only ask, and which change something there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise

from constrained_agent.tools.commands import options, paths, programs, tables
from constrained_agent.tools.commands.options import names
from constrained_agent.tools.commands.programs import Judge, unknown
from constrained_agent.tools.commands.scene import UNKNOWN, Call
from constrained_agent.tools.commands.verdict import Judgement, danger, reads, remote, worst, writes

_SECRET_WORDS = re.compile(
    r"auth token|print-(?:access|identity)-token|get-login-password|export-credentials|get-secret-value|"
    r"get-session-token|with-decryption|get-access-token|secrets? (?:get|list|show|view|access|versions)|"
    r"(?:get|describe) secrets?\b|get-caller-credentials|key ?vault secret|configure get|assume-role|show-token|"
    r"auth print|token (?:list|show)|config view --raw|output -raw|vault (?:read|kv)|auth status\b.*\s-\w*t"
)
_CHANGING = re.compile(
    r"create|delete|edit|merge|close|comment|review|reopen|rm|remove|put.*|update.*|set.*|add.*|attach.*|apply|destroy|"
    r"start|stop|cp|mv|sync|rb|mb|up|down|deploy\w*|import|taint|push|publish|login|exec|scale|patch|replace|restart|"
    r"terminate.*|reboot.*|modify.*|invoke|send.*|install|upgrade|uninstall|rollback|promote|release|add-.*|upload.*"
)
_LOCAL_HOST = re.compile(r"localhost|127(?:\.\d{1,3}){3}|::1|\[::1?\]|0\.0\.0\.0|/.*|\.|")
_ESCAPES = re.compile(
    r"\\!|\\copy.*program|\.shell\b|\.system\b|\bsystem\s|copy\b.*\bprogram\b|\.load\b|load_extension",
    re.IGNORECASE,
)
_LOSES = re.compile(
    r"\b(?:drop|truncate|flushall|flushdb|dropDatabase|dropdb|delete\s+from|shutdown)\b", re.IGNORECASE
)
_CHANGES = re.compile(
    r"\b(?:insert|update|alter|create|grant|revoke|set|del|hset|lpush|insertOne|insertMany|updateOne|deleteMany|remove)\b",
    re.IGNORECASE,
)
_REMOVES = frozenset(["rm", "rmi", "remove", "down"])
_RESTORING = frozenset(["pg_restore", "mongorestore", "mysqlimport", "mongoimport"])


def _tool(call: Call) -> Judgement:
    name = programs.name_of(call.argv[0])
    tool = tables.tools()[name]
    words = [word for word in call.args if not word.startswith("-")]
    line = " ".join(call.args)
    found = worst(writes(f"runs {name}"), unknown(call))
    if _SECRET_WORDS.search(line):
        return danger("shows credentials")
    if any(UNKNOWN in word for word in call.args[:2]):
        return danger("runs a command of another tool that is only known when it runs")
    if is_dry(call):
        return found
    if targets := _fetched_to(words):
        if any(word.startswith("--del") for word in call.args):
            return danger("deletes files that are not in what it copies")
        return worst(found, *(paths.writing(one, call.scene) for one in targets))
    head = words[:4] if tool.asks else words[:3]
    if tool.loses and any(re.fullmatch(tool.loses, word) for word in words[:2]):
        found = worst(found, danger("loses work or data"))
    if not words and name in ("vercel", "now", "surge", "eas"):
        head = ["deploy"]  # what they do when nothing is said
    if tool.asks:
        asks = any(re.fullmatch(tool.asks, word) for word in (head or ["help"])) or (
            any(re.fullmatch(tool.asks, word) for word in call.args if word.startswith("-"))
        )
        return worst(found, None if asks and not _contradicts(name, words, line) else remote(tool.reason))
    if any(re.fullmatch(tool.changes, word) for word in head) or re.search(r"--push\b|type=registry", line):
        return worst(found, remote(tool.reason))
    return worst(found, _container(words, call) if name.startswith(("docker", "podman", "nerdctl")) else None)


def _contradicts(name: str, words: list[str], line: str) -> bool:
    """Words that change something although another word asks (`gh pr list` and `aws s3 rm ls`)."""
    first = words[1:2] if name in ("gh", "glab") else words[: 3 if name in ("aws", "gcloud", "az") else 2]
    return any(_CHANGING.fullmatch(word) for word in first) or "-auto-approve" in line


def is_dry(call: Call) -> bool:
    """Whether a command only tells what it would do: `--dry-run`, for kubectl with a value."""
    kubectl = call.argv[0] in ("kubectl", "oc")
    sure = r"--dry-run=(?:client|server)" if kubectl else r"--dry-?run(?:=(?:client|server|true))?"
    given = [(before, word) for before, word in pairwise(call.argv) if re.match(r"--(?:no-)?dry", word)]
    # After another option it may be the value of that; after `exec` it is for another program.
    plain = all(re.fullmatch(sure, word) and not before.startswith("-") for before, word in given)
    return bool(given) and plain and not {"false", "--", "exec", "run", "ssh"}.intersection(call.args)


def _fetched_to(words: list[str]) -> list[str]:
    """Where `aws s3 cp s3://bucket/x .` and its kin copy from another machine to this one; empty for anything else."""
    verb = next((number for number, word in enumerate(words) if word in ("cp", "sync")), len(words))
    source, *targets = words[verb + 1 :] or [""]
    copies_here = "://" in source and not any(
        "://" in word or UNKNOWN in word for word in (source, *targets)[1:]
    )
    return targets if copies_here else []


def _container(words: list[str], call: Call) -> Judgement:
    """What is lost with a container, an image or a volume, and what a container may do to this machine."""
    if words[:1] == ["cp"] and ":" not in words[-1]:
        return programs.outside(words[-1], call.scene)
    is_compose = "compose" in (*words[:1], *call.argv[0].split("-"))
    verbs = [number for number, word in enumerate(words[: 5 if is_compose else 2]) if word in _REMOVES]
    if not verbs:
        return _mounts(call)
    if options.flag(call.args, "va", "--volumes", "--all") or any(UNKNOWN in word for word in call.args):
        return danger("deletes volumes, or more than it names")
    if verbs[0] and not is_compose and words[0] not in ("container", "image", "network"):
        return danger("deletes volumes, services or secrets, or on another machine")
    return writes("deletes containers or images, which are made anew")


def _mounts(call: Call) -> Judgement:
    """A container that sees folders outside the repository, or the machine itself."""
    if options.flag(call.args, "", "--privileged") or any(
        re.search(r"docker\.sock|(?:pid|ipc|network|userns)[= ]host", w) for w in call.args
    ):
        return danger("gives a container rights over this machine")
    for value in options.values(call.args, "v", "--volume", "--mount"):
        source = re.sub(r".*(?:source|src)=", "", value).partition(":")[0].partition(",")[0]
        if source.startswith(("/", "~", "..")) and paths.zone(source, call.scene) is not paths.Zone.INSIDE:
            return danger(f"gives a container {paths.shown(source)}, which is outside the repository")
    return reads()


def _gh_api(call: Call) -> Judgement:
    """`gh api PATH`: a GET unless fields or another method are given."""
    if list(call.args[:1]) != ["api"]:
        if any(word in ("list", "view") for word in call.args[1:2]) and call.args[0] in (
            "secret",
            "variable",
        ):
            return writes("asks another machine")
        return _tool(call)
    methods = options.values(call.args, "X", "--method")
    sends = options.flag(call.args, "fF", "--field", "--raw-field", "--input")
    if (sends and not methods) or any(method.upper() != "GET" for method in methods):
        return remote("changes something on another machine")
    return writes("asks another machine")


def _database(call: Call) -> Judgement:
    """Clients of databases: statements that change or delete, and their escapes to a shell."""
    name = programs.name_of(call.argv[0])
    text = " ".join(call.args) + " " + ("" if call.stdin is None else call.stdin.text or "")
    found = worst(writes("asks a database"), unknown(call))
    if _ESCAPES.search(text):
        return danger("runs commands inside a database client")
    if _LOSES.search(text):
        return found if name.startswith("sqlite") else danger("deletes data of a database")
    if name.startswith("sqlite"):
        return found
    if (name in _RESTORING or _is_told_elsewhere(call, text)) and _is_elsewhere(call):
        return remote("changes a database on another machine, by what is only known when it runs")
    return remote("changes a database") if _CHANGES.search(text) else found


def _is_told_elsewhere(call: Call, text: str) -> bool:
    """Whether statements come from a file, or from a pipe that is not known."""
    if options.flag(call.args, "f", "--file") or re.search(r"\\i\b|\\\.|\bsource\s", text):
        return True
    piped = call.stdin is not None and call.stdin.text is None
    return piped and not options.flag(call.args, "ce", "--command", "--execute", "--eval")


def _is_elsewhere(call: Call) -> bool:
    """Whether a database client is told of a host that is not this machine."""
    hosts = [word[2:] for word in call.args if re.match(r"-h.", word)]
    hosts += [following for word, following in pairwise(call.args) if word == "-h"]
    hosts += options.values(call.args, "", "--host")
    hosts += [call.scene.value(name).replace(UNKNOWN, "") for name in ("PGHOST", "MYSQL_HOST")]
    for word in call.args:
        hosts += re.findall(r"\w://(?:[^/@]*@)?(\[[^]]*\]|[^:/?]*)", word) + re.findall(
            r"\bhost=([^\s&]*)", word
        )
    return any(UNKNOWN in word for word in call.args) or not all(
        _LOCAL_HOST.fullmatch(host) for host in hosts
    )


def _pip(call: Call) -> Judgement:
    if list(call.args) in (["list"], ["--version"], ["-V"], ["check"]):
        return writes("asks which packages are there")
    return worst(
        unknown(call), *(programs.outside(one, call.scene) for one in options.values(call.args, "t"))
    )


JUDGES: Mapping[str, Judge] = {
    **dict.fromkeys(tables.tools(), _tool),
    "gh": _gh_api,
    **dict.fromkeys(
        names(
            "sqlite3 sqlite psql mysql mariadb mongo mongosh redis-cli cqlsh clickhouse-client duckdb sqlcmd "
            "pg_restore mongorestore mysqlimport mongoimport"
        ),
        _database,
    ),
    **dict.fromkeys(["pip", "pipx"], _pip),
}
