"""What is known while a command line is read: folders, variables, functions, files that it wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from constrained_agent.tools import environment
from constrained_agent.tools.commands.verdict import Judgement, Simple

if TYPE_CHECKING:
    from tree_sitter import Node

UNKNOWN = "\0"
"""Stands in a word for text that is only known when the command runs. No command can hold a NUL."""

MAX_STEPS = 3_000
"""Commands, judgements and expansions of one line. What needs more is not read to its end, and refused."""

MAX_DEPTH = 40
"""Of strings in strings, functions in functions and statements in statements."""

MAX_FIELDS = 256
"""Of one word, after braces and variables: more count as unknown."""

MAX_TEXT_CHARS = 20_000
"""Of a line, of a word and of what a command prints: what is longer is not followed."""

OUTSIDE = "/\ufffc"
"""A root that no command can name, for lines that are read without a repository."""


_HARMLESS = re.compile(
    r"(?!\w+_proxy|npm_)[a-z][a-z0-9_]*|[A-Z_]|LANG|LANGUAGE|LC_[A-Z]+|TZ|NO_COLOR|FORCE_COLOR|CLICOLOR(_FORCE)?|COLUMNS|"
    r"LINES|TERM|CI|DEBUG|VERBOSE|PYTHONDONTWRITEBYTECODE|PYTHONUNBUFFERED|PYTHONHASHSEED|RUST_BACKTRACE|RUST_LOG|NODE_ENV"
)
_OF_THE_SHELL = re.compile(
    r"_|BASH\w*|PPID|E?UID|GROUPS|HOST(?:NAME|TYPE)|MACHTYPE|OSTYPE|OLDPWD|SH\w+|S?RANDOM|SECONDS|LINENO|EPOCH\w+|"
    r"PIPESTATUS|DIRSTACK|HIST\w+|OPT\w+|PS\d|COMP\w*|COPROC\w*|REPLY|MAPFILE|READLINE\w*|FUNCNAME|COLUMNS|LINES|TERM|"
    r"PATH|IFS|FC\w+|PWD|HOME"
)
"""Variables that a shell may set by itself."""


def is_harmless(name: str) -> bool:
    """Whether a variable changes at most how things look."""
    return _HARMLESS.fullmatch(name) is not None


class TooMuchError(Exception):
    """A line is too long or too nested to be read to its end."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a command prints, as far as it is known beforehand.

    Attributes:
        text: exactly that; None where it is not known.
        paths: words like those it prints (`find` and its kin), for commands that take them as arguments.
    """

    text: str | None
    paths: tuple[str, ...] = ()

    def __add__(self, other: Output) -> Output:
        if self.text is None or other.text is None:
            return Output(None, self.paths + other.paths)
        text = self.text + other.text
        return Output(text if len(text) <= MAX_TEXT_CHARS else None)


NO_OUTPUT = Output("")
UNKNOWN_OUTPUT = Output(None)


@dataclass(frozen=True, slots=True)
class Result:
    """How a statement ends: what it prints, and the scene where it succeeded (in any case: the scene itself)."""

    output: Output
    succeeded: Scene


class Engine(Protocol):
    """What the judges of single commands need of the reader that called them."""

    def statement(self, node: Node, scene: Scene, stdin: Output | None) -> Result:
        """Read a statement of the tree; `stdin` is None where nothing is piped in."""

    def line(self, text: str, scene: Scene) -> Judgement:
        """Read text as a shell would, in this very scene."""

    def command(self, argv: Sequence[str], scene: Scene, stdin: Output | None) -> Judgement:
        """Judge a command that another one runs, and record it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the command runs.

    Attributes:
        root: of the repository, absolute, without links.
        home: the person's home.
        temporary: folders for temporary files.
        rules: the folder of the person's own rules of permission, as it is named and where it really is.
        real: the root exists, so links in it can be followed.
    """

    root: str
    home: str
    temporary: tuple[str, ...]
    rules: tuple[str, ...]
    real: bool


@dataclass(slots=True)
class Record:
    """What all scenes of one line share.

    Attributes:
        text: the line itself.
        environment: the variables that it gets; None where they are not known.
        strangers: something that is not read here may have set variables, such as a file.
    """

    engine: Engine
    place: Place
    text: str
    environment: Mapping[str, str] | None
    strangers: bool = False
    found: list[Simple] = field(default_factory=list)
    uncalled: dict[str, Node] = field(default_factory=dict)
    steps: int = 0

    def variable(self, name: str) -> str:
        """What a variable is at first; `UNKNOWN` where it may have been set in a way that is not followed."""
        if name == environment.MARK:  # each command has its own
            return UNKNOWN
        if self.environment is not None and name in self.environment:
            return self.environment[name]
        if self.environment is None or self.strangers or _OF_THE_SHELL.fullmatch(name):
            return UNKNOWN
        if "BASH_ENV" in self.environment or "ENV" in self.environment:  # a file that shells read first
            return UNKNOWN
        # Named where it is not read (`${X}`), something sets it: `((X = 1))`, `wait -p X`.
        elsewhere = rf"(?<![\w$])(?<!\$\{{){re.escape(name)}(?!\w)"
        return UNKNOWN if re.search(elsewhere, self.text) else ""

    def step(self, n_steps: int = 1) -> None:
        """Count steps; raises TooMuchError past the limit."""
        self.steps += n_steps
        if self.steps > MAX_STEPS:
            raise TooMuchError


@dataclass(slots=True)
class Scene:
    """The state of one shell. Statements change it; a subshell or a branch gets a copy.

    Attributes:
        cwds: the folders it may be in; `UNKNOWN` among them after a `cd` to somewhere.
        variables: values of variables set in this line; arrays have several.
        functions: all bodies that a name was given.
        files: what was written in this line to which absolute path.
        links: the links that this line makes, with what they lead to; absolute.
        positional: `$1`, `$2` ...
        called: names of the functions that are being called.
        part: the text that is being judged, for the record.
        input: what the shell itself reads from, after `exec < FILE`.
        moved: the folders of a `cd` that succeeded, until the next command.
        hidden: text inside an argument of an unknown program: only what is plainly bad counts.
    """

    record: Record
    cwds: frozenset[str]
    variables: dict[str, tuple[str, ...]] = field(default_factory=dict)
    functions: dict[str, tuple[Node, ...]] = field(default_factory=dict)
    files: dict[str, Output] = field(default_factory=dict)
    links: list[tuple[str, str]] = field(default_factory=list)
    positional: tuple[str, ...] = ()
    called: tuple[str, ...] = ()
    depth: int = 0
    part: str = ""
    moved: frozenset[str] | None = None
    input: Output | None = None
    hidden: bool = False

    @property
    def engine(self) -> Engine:
        return self.record.engine

    @property
    def place(self) -> Place:
        return self.record.place

    def copy(self) -> Scene:
        """A subshell; the files that it writes stay."""
        return replace(self, variables=dict(self.variables), functions=dict(self.functions))

    @contextmanager
    def level(self) -> Iterator[None]:
        """One level down and back; raises TooMuchError at the bottom."""
        if self.depth >= MAX_DEPTH:
            raise TooMuchError
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def merge(self, other: Scene) -> None:
        """After a branch that may have run: what differs is unknown from now on."""
        self.cwds |= other.cwds
        for name in self.variables.keys() | other.variables.keys():
            if self.variables.get(name) != other.variables.get(name):
                self.variables[name] = (UNKNOWN,)
        for name, bodies in other.functions.items():
            self.define(name, *bodies)

    def define(self, name: str, *bodies: Node) -> None:
        """Give a function one more body; the older ones may still be called."""
        known = self.functions.get(name, ())
        self.functions[name] = known + tuple(body for body in bodies if body not in known)

    def value(self, name: str) -> str:
        """A variable's text; `UNKNOWN` where neither this line nor the environment tells it."""
        if name in self.variables:
            values = self.variables[name]
            return values[0] if values else ""
        if name == "PWD":
            return next(iter(self.cwds)) if len(self.cwds) == 1 else UNKNOWN
        defaults = {"HOME": self.place.home, "IFS": " \t\n", "SHELL": "/bin/bash", "BASH": "/bin/bash"}
        value = self.record.variable(name)
        return defaults.get(name, value) if value == UNKNOWN else value


@dataclass(frozen=True, slots=True)
class Call:
    """A command with its words, as a judge sees it."""

    argv: Sequence[str]
    scene: Scene
    stdin: Output | None = None

    @property
    def args(self) -> Sequence[str]:
        return self.argv[1:]
