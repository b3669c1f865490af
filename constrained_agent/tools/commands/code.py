"""Program text in other languages, searched for what deletes, runs commands or hides: conservative, by words."""

from __future__ import annotations

import re

from constrained_agent.tools.commands import paths
from constrained_agent.tools.commands.paths import Zone
from constrained_agent.tools.commands.scene import UNKNOWN, UNKNOWN_OUTPUT, Scene
from constrained_agent.tools.commands.verdict import Judgement, danger, reads, remote, worst, writes

_RUNS = re.compile(
    r"\bsubprocess\b|\bos\s*\.\s*(?:system|popen|exec\w*|spawn\w*|posix_spawn\w*|fork\w*|startfile|kill\w*)\b|\bpty\b"
    r"|\bfrom\s+os\s+import\b[^\n;]*(?:\b(?:system|popen|exec\w*|spawn\w*|fork|kill\w*|remove\w*|unlink|rmdir)\b|\*)"
    r"|child_process|\bexec(?:File)?Sync\b|\bspawnSync\b|\bexecFile\b|\bBun\s*\.\s*(?:spawn|\$)|\bDeno\s*\.\s*(?:Command|run)\b"
    r"|\bprocess\s*\.\s*(?:kill|binding)\b|(?<!platform\.)\bsystem\s*[(\"'q$@]|\bqx\b|\bpopen\w*\b|\bproc_open\b|\bpassthru\b"
    r"|\bshell_exec\b|(?<![.\w-])exec\b|(?<![-/.\w])fork\b|(?<![\"'.\w])spawn\s*[(\"']|\bOpen3\b|%x[({\[]|\bIO\s*\.\s*popen\b"
    r"|do\s+shell\s+script|\bctypes\b|\bcffi\b|\bcreate_subprocess_\w+"
    r"|open\s*\(?\s*(?:my\s+)?(?:[$\w]+\s*,\s*)?[\"'][^\"']*\||(?<![\w.'\"-])kill\s*\(?\s*[\"'\w-]+\s*,|\bProcess\s*\.\s*kill\b"
)
_ALIAS_OF_OS = re.compile(
    r"\bos\s+as\s+(\w+)|\b(\w+)\s*=\s*os\b(?!\s*\.)|\bimport_module\s*\(\s*([\"'])os\3\s*\)"
)
_TICKS = re.compile(r"perl|ruby|php|julia")
"""Languages in which text in backticks is a command."""

_LISTED = re.compile(
    r"\bsubprocess\s*\.\s*(?:run|call|check_call|check_output|Popen)\s*\(\s*"
    r"\[\s*((?:'[^'\\\n]*'|\"[^\"\\\n]*\")(?:\s*,\s*(?:'[^'\\\n]*'|\"[^\"\\\n]*\"))*)\s*,?\s*\]\s*(?=\)|,\s*\w+\s*=)"
)
"""A program that Python starts by a list of plain words."""

_HARMLESS_OF_SUBPROCESS = re.compile(
    r"\bimport\s+(?:\w+\s*,\s*)*subprocess\b(?!\s*(?:as\b|\.))|\bsubprocess\s*\.\s*(?:PIPE|DEVNULL|STDOUT|\w+Error|TimeoutExpired)\b"
)
_UNPLAIN = re.compile(r"\bshell\b|\bexecutable\b|\bpreexec_fn\b|\benv\b|\bstart_new_session\b|\*\*")
_DELETES = re.compile(
    r"\brmtree\b|\brm_rf?\b|\bremove_tree\b|\bremovedirs\b|\brm(?:dir)?Sync\b|\bfs\w*\s*\.\s*(?:promises\s*\.\s*)?rm(?:dir)?\b"
    r"|\bunlink(?:Sync)?\b|\bos\s*\.\s*(?:remove|rmdir|truncate)\b|\bFileUtils\b|\.\s*rmdir\s*\(|\bDeno\s*\.\s*remove(?:Sync)?\b"
    r"|\bremove_dir_all\b|\brimraf\b|\bdelete_tree\b|\bFile\s*\.\s*delete\b|\bfile\s*\.\s*remove\b"
    r"|(?<![.\w])rm\s*\(\s*[\"'`]|[\"'](?:node:)?fs(?:/promises)?[\"'][\s\S]*\brm(?:dir)?\s*\("
)
_HIDES = re.compile(
    r"(?<![.\w])eval\b|\bexecfile\b|\b__import__\b|\bimport_module\s*\(\s*[^\"'\s]|\bspec_from_file\w*|(?<![.\w])compile\s*\("
    r"|\bmarshal\b|\bbuiltins\b|__builtins__|__subclasses__|__globals__|\bgetattr\s*\(|\bglobals\s*\(|\bvars\s*\("
    r"|\bnew\s+Function\b|\brunpy\b|\brun_path\b|\bloadstring\b|\bcode\s*\.\s*interact|\brequire\s*\(\s*[^\"'\s]"
)
_SENDS = re.compile(
    r"(?:https?|urllib\w*|session)\s*\.\s*(?:post|put|patch|delete)\b"
    r"|\b(?:requests|httpx|axios|aiohttp)\b[\s\S]*(?<!mock)\.\s*(?:post|put|patch|delete)\b"
    r"|\b(?:requests|httpx)\s+import\b[^\n;]*\b(?:post|put|patch|delete|request|\*)|\.\s*request\s*\(\s*[\"'](?:POST|PUT|PATCH|DELETE)"
    r"|method\s*[:=]\s*[\"'](?:POST|PUT|PATCH|DELETE)|\bsmtplib\b|\bsocket\s*\.\s*(?:socket|create_connection)\b"
    r"|\bparamiko\b|\bftplib\b|\btelnetlib\b|\bnet\s*\.\s*(?:connect|createConnection)\b|\bIO::Socket\b|\bTCPSocket\b"
    r"|\bboto3\b|\bfsockopen\b|urlopen\s*\([^)]*,|\bRequest\s*\([^)]*\bdata\b|\bWebSocket\b"
)
_SECRET = re.compile(
    r"\benviron\b.*/proc|/proc/.*\benviron\b|\bkeyring\b|\bgetpass\b|\bdotenv\b|\bkeychain\b", re.IGNORECASE
)
_WRITES = re.compile(
    r"\bopen\w*\s*\(|\bopen\s+[$\w]|\bwrite\w*\b|\bappend_text\b|\bmkdir\w*\b|\btouch\b|\bsymlink\w*\b|\bcopy\w*\b|\bcreate\w*\b"
    r"|\brename\w*\b|\bdump\b|\bmove\b|\breplace\s*\(|\bchmod\b|\bchown\b"
)
_STRING = re.compile(
    r"\"\"\"(.*?)\"\"\"|'''(.*?)'''|\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'|`([^`]*)`", re.DOTALL
)
_READ_MODE = re.compile(r"open\s*\(\s*[^,()]*\)|open\s*\(\s*[^,()]*,\s*['\"](?:r|rb|rt)['\"]")
MAX_STRINGS = 400


def judge_code(text: str, scene: Scene, language: str) -> Judgement:
    """What program text may do, by the words in it. Not by what it computes: text can be made from pieces.

    Args:
        language: a text that holds the name of its program, such as a first line `#!/usr/bin/perl`.
    """
    for alias in _ALIAS_OF_OS.finditer(text):
        scene.record.step(1 + len(text) // 200)
        name = alias[1] or alias[2]
        text = re.sub(rf"\b{name}\s*\.", "os.", text) if name else text.replace(alias[0], "os")
    found, rest = _listed(text, scene)
    if _RUNS.search(rest) or (_TICKS.search(language) and text.count("`") > 1):
        found = worst(found, danger("runs program text that starts other programs"))
    if _DELETES.search(text):
        found = worst(found, danger("runs program text that deletes or moves files"))
    if _HIDES.search(text):
        found = worst(found, danger("runs program text that may hide what it does"))
    if _SECRET.search(text):
        found = worst(found, danger("runs program text that reads credentials"))
    if _SENDS.search(text):
        found = worst(found, remote("runs program text that sends data to other machines"))
    writes_files = _WRITES.search(_READ_MODE.sub(" ", text)) is not None
    for number, match in enumerate(_STRING.finditer(text)):
        scene.record.step()
        string = next((group for group in match.groups() if group is not None), "")
        if number >= MAX_STRINGS:
            break
        found = worst(found, _judge_string(string, scene, writes_files=writes_files))
    return worst(found, writes("runs program text") if writes_files else None)


def _listed(text: str, scene: Scene) -> tuple[Judgement, str]:
    """Commands that stand there word by word, judged as such, and the text without what starts them."""
    found = reads("runs program text")
    if _UNPLAIN.search(text):
        return found, text
    inner = scene.copy()
    if re.search(r"\bcwd\b|\bchdir\b", text):
        inner.cwds = frozenset([UNKNOWN])
    for call in _LISTED.finditer(text):
        words = [one[1:-1] for one in re.findall(r"'[^']*'|\"[^\"]*\"", call[1])]
        judged = scene.engine.command(words, inner, UNKNOWN_OUTPUT)
        found = worst(found, Judgement(judged.risk, judged.reason))
    return found, _HARMLESS_OF_SUBPROCESS.sub(" ", _LISTED.sub(" ", text))


def _judge_string(string: str, scene: Scene, *, writes_files: bool) -> Judgement:
    string = re.sub(r"^\s*(?:\+?>{1,2}|\+<)\s*", "", string)  # `open F, ">>/etc/x"`
    if len(string) > 300 or "\n" in string:
        return reads()
    if paths.secret(string, scene):
        return danger(f"runs program text that speaks of credentials ({paths.shown(string)})")
    if writes_files and re.match(r"[/~]|\.\.|\.git\b|\.constrained", string) and len(string) > 1:
        where = paths.zone(string, scene)
        if where in (Zone.RULES, Zone.PROTECTED):
            return danger(
                f"runs program text that may write {paths.shown(string)}, which is not for programs"
            )
        if where in (Zone.OUTSIDE, Zone.DEVICE):
            return danger(
                f"runs program text that may write {paths.shown(string)}, which is outside the repository"
            )
    return reads()
