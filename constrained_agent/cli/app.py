"""The command table, and the one place where errors become exit codes.

Exit codes: 0 done, 1 the task or check failed, 2 the call was wrong, 3 incomplete (`check` only), 130 interrupted.
"""

from __future__ import annotations

import difflib
import errno
import importlib
import io
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from constrained_agent import __version__
from constrained_agent.errors import ConstrainedAgentError, UserError

COMMANDS: dict[str, str] = {
    "run": "Let the agent work on a repository (the default command).",
    "generate": "One constrained generation.",
    "check": "Say where a text leaves a grammar, and what could have come instead.",
    "patch": "Apply a patch without a model, whole or not at all.",
    "compare": "Before and after: how often output parses, lands and is right, with the constraint and without.",
    "bench": "Speed beside plain mlx-lm, in one run.",
    "transcript": "Show a run, count its tokens, make it once more without a model.",
    "models": "List, fetch or show model cards.",
    "doctor": "Say what this machine has and lacks.",
}
"""Name and one-line help; `constrained_agent.cli.NAME` holds `command`, imported only when chosen."""

DEFAULT = "run"


class _Table(click.Group):
    """Imports a subcommand's module only when it is chosen: `--help` and `check` load no model code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command = importlib.import_module(f"constrained_agent.cli.{name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        args = {"help": ["--help"], "version": ["--version"]}.get(args[0] if args else "", []) or args
        if not args or (args[0] not in COMMANDS and args[0] not in ("--help", "-h", "--version")):
            if len(args) == 1 and (near := difflib.get_close_matches(args[0], COMMANDS, 1, cutoff=0.75)):
                raise click.UsageError(
                    f"there is no command {args[0]!r}; did you mean {near[0]!r}? "
                    f"(a task of one word: {DEFAULT} {args[0]!r})"
                )
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=_Table,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    help="A coding agent on local weights: every token masked by a grammar, every patch lands at one place or "
    "not at all. Results go to stdout, progress to stderr; --json prints one JSON object as the last line.",
)
@click.version_option(__version__, prog_name="constrained-agent")
def app() -> None:
    pass


def run(args: Sequence[str]) -> int:
    """Run one command line.

    Args:
        args: the arguments after the program's name.

    Returns:
        The exit code. Errors that a person can mend end in one message on stderr, never in a traceback; with
        `--json` also in `{"ok": false, "error": {...}}` on stdout.
    """
    _make_streams_robust()
    with _terminations_as_interrupts():
        try:
            result: Any = app.main(list(args), prog_name="constrained-agent", standalone_mode=False)
            sys.stdout.flush()
        except click.ClickException as error:
            error.show(sys.stderr)
            return _failed(args, error.format_message(), 2)
        except (click.Abort, KeyboardInterrupt):
            click.echo("interrupted", err=True)
            return 130
        except UserError as error:
            return _failed(args, _say(error), 2)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.startswith("constrained_agent"):
                raise
            return _failed(args, _say(_missing_package(error.name)), 1)
        except ConstrainedAgentError as error:
            return _failed(args, _say(error), 1)
        except BrokenPipeError:
            # The reader of stdout (head, less) went away: that is its right. What is buffered has nowhere to go.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        except OSError as error:
            # A full disk behind stdout, a working folder that is gone: nothing a traceback would explain better.
            _say(error)
            if error.errno == errno.ENOSPC:
                os._exit(1)  # flushing at exit would fail once more
            return 1
    return result if isinstance(result, int) else 0


def _missing_package(module: str) -> UserError:
    """A broken installation, told as what mends it."""
    name = module.partition(".")[0].replace("_", "-")
    return UserError(
        f"the package {name} is not installed: pip install {name} (constrained-agent doctor looks at the rest)"
    )


def _say(error: Exception) -> str:
    """Print an error; what a model or a file put into it must not steer the terminal."""
    message = "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in str(error))
    click.echo(f"error: {message}", err=True)
    return message


def _failed(args: Sequence[str], message: str, code: int) -> int:
    if "--json" in args:
        click.echo(json.dumps({"ok": False, "error": {"message": message}}))
    return code


def _make_streams_robust() -> None:
    """A closed stdin reads as empty; characters that the terminal's encoding lacks are escaped."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115  (for the life of the process)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def _terminations_as_interrupts() -> Iterator[None]:
    """`timeout`, a cancelled job and a closed terminal end a run as Ctrl-C does: with its report, and its
    commands ended. Signals that are ignored (nohup) stay so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    kinds = [kind for kind in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(kind) == signal.SIG_DFL]
    for kind in kinds:
        signal.signal(kind, signal.default_int_handler)
    try:
        yield
    finally:
        for kind in kinds:
            signal.signal(kind, signal.SIG_DFL)
