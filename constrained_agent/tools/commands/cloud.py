"""Tools of registries, hosts and clouds: which of their words only ask, and which change something there."""

from __future__ import annotations

import re
from collections.abc import Mapping

from constrained_agent.tools.commands import options, paths, programs, tables
from constrained_agent.tools.commands.options import names
from constrained_agent.tools.commands.programs import Judge, unknown
from constrained_agent.tools.commands.scene import UNKNOWN, Call
from constrained_agent.tools.commands.verdict import Judgement, danger, reads, remote, worst, writes

_SECRET_WORDS = re.compile(
    r"auth token|print-(?:access|identity)-token|get-login-password|export-credentials|get-secret-value|"
    r"get-session-token|with-decryption|get-access-token|secrets? (?:get|list|show|view|access|versions)|"
    r"(?:get|describe) secrets?\b|get-caller-credentials|key ?vault secret|configure get|assume-role|show-token|"
    r"auth print|token (?:list|show)|config view --raw|output -raw|vault (?:read|kv)"
)


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
    if options.flag([w for w in call.args if w.startswith("--dry")], "", "--dry-run") and name not in (
        "kubectl",
        "helm",
    ):
        return found
    head = words[:4] if tool.asks else words[:3]
    if tool.loses and any(re.fullmatch(tool.loses, word) for word in words[:2]):
        found = worst(found, danger("deletes containers, images or volumes"))
    if not words and name in ("vercel", "now", "surge", "eas"):
        head = ["deploy"]  # what they do when nothing is said
    if tool.asks:
        asks = any(re.fullmatch(tool.asks, word) for word in (head or ["help"])) or (
            any(re.fullmatch(tool.asks, word) for word in call.args if word.startswith("-"))
        )
        return worst(found, None if asks and not _contradicts(name, words, line) else remote(tool.reason))
    if any(re.fullmatch(tool.changes, word) for word in head) or re.search(r"--push\b|type=registry", line):
        return worst(found, remote(tool.reason))
    return worst(found, _mounts(call) if name in ("docker", "podman", "nerdctl") else None)


def _contradicts(name: str, words: list[str], line: str) -> bool:
    """Words that change something although another word asks (`gh pr list` and `aws s3 rm ls`)."""
    changing = (
        r"create|delete|edit|merge|close|comment|review|reopen|rm|remove|put.*|update.*|set.*|add.*|attach.*|apply|destroy|"
        r"start|stop|cp|mv|sync|rb|mb|up|down|deploy\w*|import|taint|push|publish|login|exec|scale|patch|replace|restart|"
        r"terminate.*|reboot.*|modify.*|invoke|send.*|install|upgrade|uninstall|rollback|promote|release|add-.*|upload.*"
    )
    first = words[1:2] if name in ("gh", "glab") else words[: 3 if name in ("aws", "gcloud", "az") else 2]
    return any(re.fullmatch(changing, word) for word in first) or "-auto-approve" in line


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
    text = " ".join(call.args) + " " + ("" if call.stdin is None else call.stdin.text or "")
    if re.search(
        r"\\!|\\copy.*program|\.shell\b|\.system\b|\bsystem\s|copy\b.*\bprogram\b|\.load\b|load_extension",
        text,
        re.IGNORECASE,
    ):
        return danger("runs commands inside a database client")
    if re.search(
        r"\b(?:drop|truncate|flushall|flushdb|dropDatabase|dropdb|delete\s+from|shutdown)\b",
        text,
        re.IGNORECASE,
    ):
        if call.argv[0] == "sqlite3":
            return worst(writes("changes a database"), unknown(call))
        return danger("deletes data of a database")
    if call.argv[0].startswith("sqlite") or not re.search(
        r"\b(?:insert|update|alter|create|grant|revoke|set|del|hset|lpush|insertOne|insertMany|updateOne|deleteMany|remove)\b",
        text,
        re.IGNORECASE,
    ):
        return worst(writes("asks a database"), unknown(call))
    return remote("changes a database")


def _pip(call: Call) -> Judgement:
    if list(call.args) in (["list"], ["--version"], ["-V"], ["check"]):
        return writes("asks which packages are there")
    return unknown(call)


JUDGES: Mapping[str, Judge] = {
    **dict.fromkeys(tables.tools(), _tool),
    "gh": _gh_api,
    **dict.fromkeys(
        names(
            "sqlite3 sqlite psql mysql mariadb mongo mongosh redis-cli cqlsh clickhouse-client duckdb sqlcmd"
        ),
        _database,
    ),
    **dict.fromkeys(["pip", "pipx"], _pip),
}
