"""Program text in other languages, searched for what deletes, runs commands or hides: conservative, by words."""

from __future__ import annotations

import re

from constrained_agent.tools.commands import paths
from constrained_agent.tools.commands.paths import Zone
from constrained_agent.tools.commands.scene import Scene
from constrained_agent.tools.commands.verdict import Judgement, danger, reads, remote, worst, writes

_RUNS = re.compile(
    r"\bsubprocess\b|\bos\s*\.\s*(?:system|popen|exec\w*|spawn\w*|posix_spawn\w*|fork\w*|startfile|kill\w*)\b|\bpty\b"
    r"|\bfrom\s+os\s+import\b[^\n;]*(?:\b(?:system|popen|exec\w*|spawn\w*|fork|kill\w*|remove\w*|unlink|rmdir)\b|\*)"
    r"|child_process|\bexec(?:File)?Sync\b|\bspawnSync\b|\bexecFile\b|\bBun\s*\.\s*(?:spawn|\$)|\bDeno\s*\.\s*(?:Command|run)\b"
    r"|\bprocess\s*\.\s*(?:kill|binding)\b|(?<!platform\.)\bsystem\s*[(\"'q$@]|\bqx\b|\bpopen\w*\b|\bproc_open\b|\bpassthru\b"
    r"|\bshell_exec\b|(?<![.\w-])exec\b|(?<![-/.\w])fork\b|(?<![\"'.\w])spawn\s*[(\"']|\bOpen3\b|%x[({\[]|\bIO\s*\.\s*popen\b"
    r"|do\s+shell\s+script|\bctypes\b|\bcffi\b|open\s*\(?\s*[\"'][^\"']*\||\bcreate_subprocess_\w+"
)
_DELETES = re.compile(
    r"\brmtree\b|\brm_rf?\b|\bremove_tree\b|\bremovedirs\b|\brm(?:dir)?Sync\b|\bfs\w*\s*\.\s*(?:promises\s*\.\s*)?rm(?:dir)?\b"
    r"|\bunlink(?:Sync)?\b|\bos\s*\.\s*(?:remove|rmdir|truncate)\b|\bFileUtils\b|\.\s*rmdir\s*\(|\bDeno\s*\.\s*remove\b"
    r"|\bremove_dir_all\b|\brimraf\b|\bdelete_tree\b|\bFile\s*\.\s*delete\b"
)
_HIDES = re.compile(
    r"(?<![.\w])eval\b|\bexecfile\b|\b__import__\b|\bimport_module\s*\(\s*[^\"'\s]|\bspec_from_file\w*|(?<![.\w])compile\s*\("
    r"|\bmarshal\b|\bbuiltins\b|__builtins__|__subclasses__|__globals__|\bgetattr\s*\(|\bglobals\s*\(|\bvars\s*\("
    r"|\bnew\s+Function\b|\brunpy\b|\brun_path\b|\bloadstring\b|\bcode\s*\.\s*interact|\brequire\s*\(\s*[^\"'\s]"
)
_SENDS = re.compile(
    r"(?:requests|httpx|axios|https?|aiohttp|urllib\w*|session)\s*\.\s*(?:post|put|patch|delete)\b"
    r"|method\s*[:=]\s*[\"'](?:POST|PUT|PATCH|DELETE)|\bsmtplib\b|\bsocket\s*\.\s*(?:socket|create_connection)\b"
    r"|\bparamiko\b|\bftplib\b|\btelnetlib\b|\bnet\s*\.\s*(?:connect|createConnection)\b|\bIO::Socket\b|\bTCPSocket\b"
    r"|\bboto3\b|\bfsockopen\b|urlopen\s*\([^)]*,|\bRequest\s*\([^)]*\bdata\b|\bWebSocket\b"
)
_SECRET = re.compile(
    r"\benviron\b.*/proc|/proc/.*\benviron\b|\bkeyring\b|\bgetpass\b|\bdotenv\b|\bkeychain\b", re.IGNORECASE
)
_WRITES = re.compile(
    r"\bopen\w*\s*\(|\bwrite\w*\b|\bappend_text\b|\bmkdir\w*\b|\btouch\b|\bsymlink\w*\b|\bcopy\w*\b|\bcreate\w*\b"
    r"|\brename\w*\b|\bdump\b|\bmove\b|\breplace\s*\(|\bchmod\b|\bchown\b"
)
_STRING = re.compile(
    r"\"\"\"(.*?)\"\"\"|'''(.*?)'''|\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'|`([^`]*)`", re.DOTALL
)
_READ_MODE = re.compile(r"open\s*\(\s*[^,()]*\)|open\s*\(\s*[^,()]*,\s*['\"](?:r|rb|rt)['\"]")
MAX_STRINGS = 400


def judge_code(text: str, scene: Scene) -> Judgement:
    """What program text may do, by the words in it. Not by what it computes: text can be made from pieces."""
    found = reads("runs program text")
    if _RUNS.search(text):
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


def _judge_string(string: str, scene: Scene, *, writes_files: bool) -> Judgement:
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
