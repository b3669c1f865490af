"""The command table, and the one place where errors become exit codes.

Exit codes: 0 done, 1 the task or check failed, 2 the call was wrong, 3 incomplete (`check` only), 130 interrupted.
"""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Sequence
from typing import Any

import click

from constrained_agent import __version__
from constrained_agent.errors import ConstrainedAgentError, UserError

COMMANDS: dict[str, str] = {
    "run": "Let the agent work on a repository (the default command).",
    "generate": "One constrained generation.",
    "check": "Say where a text leaves a grammar, and what could have come instead.",
    "patch": "Apply a patch without a model, whole or not at all.",
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
        The exit code. Errors that a person can mend end in one message on stderr, never in a traceback.
    """
    try:
        result: Any = app.main(list(args), prog_name="constrained-agent", standalone_mode=False)
    except click.ClickException as error:
        error.show(sys.stderr)
        return 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return 130
    except UserError as error:
        click.echo(f"error: {error}", err=True)
        return 2
    except ConstrainedAgentError as error:
        click.echo(f"error: {error}", err=True)
        return 1
    except BrokenPipeError:
        # The reader of stdout (head, less) went away: that is its right.
        sys.stderr.close()
        return 1
    return result if isinstance(result, int) else 0
