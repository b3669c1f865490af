"""Programs whose children outlive the command: in a session of their own, under a service, or at a later time.

What they run is judged and recorded as well, so that a rule that denies it holds here, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from constrained_agent.tools.commands import builtins, options, programs
from constrained_agent.tools.commands.programs import Judge
from constrained_agent.tools.commands.scene import UNKNOWN, Call
from constrained_agent.tools.commands.verdict import Judgement, danger, reads, worst, writes
from constrained_agent.tools.commands.wrappers import after

_LEAVES = "leaves a process behind that nobody ends"
_STRANGE = "acts on sessions that it did not start"

_SYSTEMD_VALUED = """
-H -M -p -u -E --host --machine --property --unit --setenv --description --slice --service-type --uid --gid --nice
--working-directory --on-active --on-boot --on-startup --on-unit-active --on-unit-inactive --on-calendar
--timer-property --path-property --socket-property --background
"""
_SCREEN_VALUED = "cehpsStT"  # letters; the last of a cluster counts, as in `-dmS NAME`
_TMUX_VALUED = frozenset(["-c", "-f", "-L", "-S", "-T"])
_TMUX_NEW_VALUED = frozenset(options.names("-c -e -F -f -l -n -p -s -t -x -y"))
_TMUX_ASKS = frozenset(
    options.names("""
    ls list-sessions list-windows list-panes list-buffers list-clients list-commands list-keys lsw lsp lsb lsc lscm lsk
    has has-session info show show-options show-environment capture-pane capturep attach attach-session a at
    """)
)
_TMUX_STARTS = ("new", "split", "respawn", "run", "if", "start", "pipe", "popup", "display-popup")


def _leaver(valued: str) -> Judge:
    """`setsid CMD`: a command behind options, of which these take a value."""
    names = frozenset(options.names(valued))

    def judge(call: Call) -> Judgement:
        if call.args and all(word in ("--help", "--version", "-h", "-V") for word in call.args):
            return reads("asks for its version or its help")
        return _left(call, after(call.args, names))

    return judge


def _left(call: Call, inner: Sequence[str]) -> Judgement:
    """What is left behind, recorded by itself."""
    if inner:
        call.scene.engine.command(inner, call.scene, call.stdin)
    return danger(_LEAVES)


def _screen(call: Call) -> Judgement:
    """`screen -d -m CMD` starts detached; without a terminal anything else ends at once, or asks."""
    if options.flag(call.args, "X"):
        return danger(_STRANGE)
    if not (options.flag(call.args, "dD") and options.flag(call.args, "m")):
        return worst(writes("asks a terminal for its windows"), programs.arguments(call))
    position = 0
    while position < len(call.args) and call.args[position].startswith("-"):
        position += 2 if call.args[position][-1] in _SCREEN_VALUED else 1
    return _left(call, call.args[position:])


def _tmux(call: Call) -> Judgement:
    """`tmux new -d CMD`. A lone word is a line for a shell; `;` parts commands of tmux, `#(...)` runs one."""
    name, rest = options.first_of(call.args, _TMUX_VALUED)
    plain = not any("#(" in word or word.endswith(";") for word in call.args)
    if plain and (name in _TMUX_ASKS or not name):
        return worst(writes("asks a terminal for its windows"), programs.arguments(call))
    if not name.startswith(_TMUX_STARTS):
        return danger(_STRANGE)
    inner = after(rest, _TMUX_NEW_VALUED)
    if len(inner) == 1 and UNKNOWN not in inner[0]:
        call.scene.engine.line(inner[0], call.scene.copy())
        return danger(_LEAVES)
    return _left(call, inner)


def _start_stop_daemon(call: Call) -> Judgement:
    """`start-stop-daemon --start --exec PROGRAM -- WORDS`."""
    if options.flag(call.args, "K", "--stop"):
        return danger("ends processes that it did not start")
    words = list(call.args)
    own = words[: words.index("--")] if "--" in words else words
    unambiguous = [word for word in own if word != "--start"]
    program = options.values(unambiguous, "a", "--startas") or options.values(own, "x", "--exec")
    return _left(call, [*program[:1], *words[len(own) + 1 :]])


def _at(call: Call) -> Judgement:
    """`at TIME`, `batch`: commands from a pipe or, with `-f`, from a file."""
    files = options.values(call.args, "f")
    if files:
        builtins.run_file(call, files[0], [])
    elif call.stdin is not None:
        builtins.run_input(call)
    return danger("makes commands run later")


JUDGES: Mapping[str, Judge] = {
    "setsid": _leaver(""),
    "daemonize": _leaver("-c -e -E -l -o -p -u"),
    "daemon": _leaver("-l -L -m -n -o -p -P -R -s -t -T -u --name --pidfile --chdir --output --user"),
    **dict.fromkeys(["dtach", "abduco"], _leaver("-A -c -e -n -N -r")),
    "systemd-run": _leaver(_SYSTEMD_VALUED),
    "screen": _screen,
    "tmux": _tmux,
    "start-stop-daemon": _start_stop_daemon,
    **dict.fromkeys(["at", "batch"], _at),
}
