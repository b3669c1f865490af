"""Command lines and their classes. The lines stand in the TOML file beside this one; none of them is ever run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrained_agent.tools.commands import MAX_TEXT_CHARS, Risk, classify
from constrained_agent.tools.commands.quoting import fields, unescape
from constrained_agent.tools.rules import REPOSITORY_NAME

CASES: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
NASTY: dict[str, list[str]] = CASES["nasty"]


def _each(commands: list[str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("command", commands, ids=lambda command: " ".join(command.split()))


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository with the names that the lines below speak of. No `build`: with one, `cd build` cannot fail."""
    root = tmp_path_factory.mktemp("lists") / "repo"
    for folder in ("src", "sub", "tests", "docs", "dist", "node_modules"):
        (root / folder).mkdir(parents=True)
        (root / folder / "a.py").write_text("a\n")
    for name in ("README.md", "a.py", "a", "b", "x.patch", "package.json"):
        (root / name).write_text("x\n")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


@pytest.fixture(params=["nowhere", "in a repository"])
def root(request: pytest.FixtureRequest) -> Path | None:
    """Where the lines of the lists run: nowhere, or in a real repository, whose paths and links are looked at."""
    if request.param == "nowhere":
        return None
    found: Path = request.getfixturevalue("repository")
    return found


ENVIRONMENT = {"HOME": "/home/me", "PATH": "/usr/bin:/bin"}


class TestTheLists:
    @_each(CASES["dangerous"])
    def test_dangerous(self, command: str, root: Path | None) -> None:
        assert classify(command, root).risk is Risk.DANGEROUS

    @_each(CASES["remote_changing"])
    def test_remote_changing(self, command: str, root: Path | None) -> None:
        assert classify(command, root).risk is Risk.REMOTE_CHANGING

    @_each(CASES["everyday"])
    def test_everyday(self, command: str, root: Path | None) -> None:
        verdict = classify(command, root)
        assert verdict.risk <= Risk.WRITES, verdict.reason

    @_each(CASES["read_only"])
    def test_read_only(self, command: str, root: Path | None) -> None:
        verdict = classify(command, root)
        assert verdict.risk is Risk.READ_ONLY, verdict.reason

    @_each(CASES["writes"])
    def test_asked_about_though_it_looks_harmless(self, command: str, root: Path | None) -> None:
        verdict = classify(command, root)
        assert verdict.risk is Risk.WRITES, verdict.reason

    @_each(NASTY["dangerous"])
    def test_dangerous_in_disguise(self, command: str, root: Path | None) -> None:
        assert classify(command, root).risk is Risk.DANGEROUS

    @_each(NASTY["remote_changing"])
    def test_remote_changing_in_disguise(self, command: str, root: Path | None) -> None:
        assert classify(command, root).risk >= Risk.REMOTE_CHANGING

    @_each(CASES["environment"]["dangerous"])
    def test_dangerous_with_variables_that_are_empty(self, command: str, root: Path | None) -> None:
        assert classify(command, root, ENVIRONMENT).risk is Risk.DANGEROUS

    @_each(CASES["environment"]["everyday"])
    def test_everyday_with_variables_that_are_empty(self, command: str, root: Path | None) -> None:
        verdict = classify(command, root, ENVIRONMENT)
        assert verdict.risk <= Risk.WRITES, verdict.reason

    def test_there_are_enough_and_none_stands_twice(self) -> None:
        lists = [*NASTY.values(), *(one for one in CASES.values() if isinstance(one, list))]
        assert all(len(one) >= 40 for one in lists)
        assert len(CASES["dangerous"]) + len(CASES["remote_changing"]) >= 60
        assert len(CASES["everyday"]) >= 60
        for one in lists:
            assert len(set(one)) == len(one)


class TestTheVerdict:
    def test_names_the_part_that_decides(self) -> None:
        verdict = classify("cd src && ls; git   push origin main | cat")
        assert (verdict.risk, verdict.part) == (Risk.REMOTE_CHANGING, "git push origin main")
        assert verdict.reason == "sends commits to another repository"
        assert str(verdict.risk) == "remote-changing"

    def test_lists_the_simple_commands_without_their_quotes(self) -> None:
        verdict = classify("X=1 pytest -k 'a b' > out.txt && timeout 5 git -C sub push; sh -c \"r'm' x\"")
        found = {one.text: (one.risk, one.certain, one.looked_through) for one in verdict.commands}
        assert found["pytest -k a b"] == (Risk.WRITES, True, False)
        assert found["> out.txt"] == (Risk.WRITES, True, False)
        assert found["timeout 5 git -C sub push"] == (Risk.READ_ONLY, True, True)
        assert found["git -C sub push"] == (Risk.REMOTE_CHANGING, True, False)
        assert found["rm x"] == (Risk.WRITES, True, False)
        assert any("git push" in one.spellings for one in verdict.commands)

    @pytest.mark.parametrize("command", ["pytest $X", "LD_PRELOAD=x pytest", "pytest $(cat x)"])
    def test_what_is_not_certain_is_said(self, command: str) -> None:
        (one,) = (one for one in classify(command).commands if one.text.startswith("pytest"))
        assert not one.certain

    def test_a_reason_cannot_redraw_a_terminal(self) -> None:
        verdict = classify("cat '/x\x1b[2K\r'")
        assert verdict.reason.isprintable()

    @pytest.mark.parametrize("command", ["", "   ", "\n\n", "# nothing"])
    def test_nothing_is_read_only(self, command: str) -> None:
        assert classify(command).risk is Risk.READ_ONLY

    @pytest.mark.parametrize(
        "command",
        [
            "ls " + "a" * MAX_TEXT_CHARS,
            "ls\0",
            "ls;" * 6_000,
            "X=a;" + "X=$X$X;" * 60 + "$X",
            "for a in 1 2 3 4 5 6 7 8; do " * 12 + "ls" + "; done" * 12,
            "f() { f2; }; f2() { f3; }; f3() { f; }; f",
            "awk '" * 4_000,
            "f=ls; " + "eval '" * 30 + "$f",
        ],
        ids=lambda command: command[:12],
    )
    def test_what_is_too_much_to_read_is_refused(self, command: str) -> None:
        verdict = classify(command)
        assert verdict.risk is Risk.DANGEROUS
        assert len(verdict.part) < 200

    @pytest.mark.parametrize(
        "command",
        ["(" * 5_000, "$(" * 5_000, 'sh -c "' * 500, "a=(" + "x " * 300 + '); "${a[@]}"', "<<<", "`", '"'],
    )
    def test_what_does_not_parse_never_runs_without_a_question(self, command: str) -> None:
        assert classify(command).risk >= Risk.WRITES


class TestInARepository:
    """With a real root, paths and links in it are looked at."""

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        root = tmp_path / "repo"
        (root / "src").mkdir(parents=True)
        (root / "src" / "a.py").write_text("a\n")
        (root / "notes").write_text("n\n")
        (tmp_path / "secret").write_text("s\n")
        (root / "out").symlink_to(tmp_path / "secret")
        (root / "links").mkdir()
        (root / "links" / "x").symlink_to(tmp_path / "secret")
        (root / "build").symlink_to(tmp_path)
        (root / "inner").symlink_to(root / "src")
        return root

    @pytest.mark.parametrize(
        ("command", "risk"),
        [
            ("cat notes", Risk.READ_ONLY),
            ("cat inner/a.py", Risk.READ_ONLY),
            ("cat out", Risk.WRITES),
            ("cat o?t", Risk.WRITES),
            ("cat links/*", Risk.WRITES),
            ("cat src/*", Risk.READ_ONLY),
            ("cat build/secret", Risk.WRITES),
            ("cat {root}/notes", Risk.READ_ONLY),
            ("cat {root}/../secret", Risk.WRITES),
            ("cat /proc/self/cwd/notes", Risk.WRITES),
            ("rm -rf notes", Risk.WRITES),  # one file
            ("rm -rf src", Risk.DANGEROUS),
            ("rm -rf build/x", Risk.DANGEROUS),  # the link leads out
            ("rm -rf dist", Risk.WRITES),
            ("rm -rf {root}/dist", Risk.WRITES),
            ("rm -rf {root}", Risk.DANGEROUS),
            ("rm -rf $PWD", Risk.DANGEROUS),
            ("rm -rf inner/../../dist", Risk.DANGEROUS),
            ("echo x > out", Risk.DANGEROUS),
            ("echo x > src/b.py", Risk.WRITES),
            ("echo x > {root}/src/b.py", Risk.WRITES),
            ("git checkout src/a.py", Risk.DANGEROUS),
            ("git checkout notes", Risk.DANGEROUS),
            ("git checkout topic/x.y", Risk.WRITES),
            ("git status", Risk.READ_ONLY),
        ],
    )
    def test_paths(self, root: Path, command: str, risk: Risk) -> None:
        verdict = classify(command.replace("{root}", str(root)), root)
        assert verdict.risk is risk, verdict.reason

    def test_its_rules_and_its_git_are_not_to_be_written(self, root: Path) -> None:
        (root / "rules").symlink_to(REPOSITORY_NAME)
        (root / "here").symlink_to(".")
        of_rules = [REPOSITORY_NAME, f"src/{REPOSITORY_NAME}", f"here/{REPOSITORY_NAME}", "rules"]
        of_git = [".git/config", "sub/.git/hooks/x", ".GIT/config", "here/.git/config"]
        for path in (*of_rules, *of_git):
            for command in ("echo x > {}", "cp notes {}", "sed -i s/a/b/ {}"):
                verdict = classify(command.format(path), root)
                assert verdict.risk is Risk.DANGEROUS, (command, path, verdict.reason)
        for path in of_rules:
            assert classify(f"some-formatter {path}", root).risk is Risk.DANGEROUS, path

    def test_its_rules_may_be_read_and_no_star_finds_them(self, root: Path) -> None:
        (root / REPOSITORY_NAME).touch()
        (root / ".git").mkdir()
        for command in (f"cat {REPOSITORY_NAME}", f"ls {REPOSITORY_NAME}", "ls s*", "cat not*", "head -1 n*"):
            assert classify(command, root).risk is Risk.READ_ONLY, command
        assert classify("touch n*", root).risk is Risk.WRITES
        assert classify("touch .c*", root).risk is Risk.DANGEROUS

    @pytest.mark.parametrize(
        ("command", "risk"),
        [
            ("cd src; pytest > ../log", Risk.WRITES),
            ("cd src && rm -f ../notes; ls > ../log", Risk.WRITES),
            ("rm -rf sub; cd sub; ls > ../log", Risk.DANGEROUS),  # it may be gone
            ("touch x; cd src; ls > ../log", Risk.DANGEROUS),
            ("cd sub; ls > ../log", Risk.DANGEROUS),  # there is none
            ("cd src x; ls > ../log", Risk.DANGEROUS),
            ("cd src & ls > ../log", Risk.DANGEROUS),
            ("cd src && ls & ls > ../log", Risk.DANGEROUS),
            ("if true; then cd src & fi; ls > ../log", Risk.DANGEROUS),
            ("(cd src); ls > ../log", Risk.DANGEROUS),
            ("cd src | cat; ls > ../log", Risk.DANGEROUS),
            ("timeout 5 cd src; ls > ../log", Risk.DANGEROUS),
            ("cd() { :; }; cd src; ls > ../log", Risk.DANGEROUS),
            ("ls ../other; rm -rf ../other", Risk.DANGEROUS),
            ("ln -s /etc links; ls > links/etc/x", Risk.DANGEROUS),
        ],
    )
    def test_where_a_line_goes(self, root: Path, command: str, risk: Risk) -> None:
        verdict = classify(command, root)
        assert verdict.risk is risk, verdict.reason

    @pytest.mark.parametrize(
        "path", ["src/$X/a", "$X", "a$X", "links/$X", "out$X", "src/$X/*", "*/$X", "~/$X", "/$X/*"]
    )
    def test_half_a_path_is_looked_at_as_far_as_it_is_known(self, root: Path, path: str) -> None:
        for command in (
            "cat {}",
            "ls > {}",
            "cp a {}",
            "rm -rf {}",
            "touch {}",
            "cd {} && touch x",
            "cat .env{}",
        ):
            assert classify(command.format(path), root).risk >= Risk.WRITES, command

    def test_half_a_path_that_may_be_the_rules_or_gits(self, root: Path) -> None:
        for path in (".git$X/config", ".gi$X/config", ".constrained$X", "inner/.git/$X"):
            assert classify(f"echo x > {path}", root).risk is Risk.DANGEROUS, path
        assert classify("echo x > build/$X", root).risk is Risk.DANGEROUS  # the link leads out

    def test_a_repository_may_be_reached_by_a_link(self, root: Path, tmp_path: Path) -> None:
        (tmp_path / "door").symlink_to(root)
        assert classify("cat notes", tmp_path / "door").risk is Risk.READ_ONLY

    def test_the_home_of_the_rules_is_not_to_be_written_even_inside(self, root: Path) -> None:
        home = {"HOME": str(root)}
        assert classify("echo x > ~/.config/constrained-agent/config.toml", root, home).risk is Risk.DANGEROUS
        assert classify("echo x > ~/notes", root, home).risk is Risk.WRITES
        elsewhere = {"HOME": "/home/me", "XDG_CONFIG_HOME": str(root / "src")}
        assert classify("echo x > src/constrained-agent/config.toml", root, elsewhere).risk is Risk.DANGEROUS


class TestVariablesOfTheEnvironment:
    def test_are_known(self) -> None:
        assert classify("$PYTHON -m pytest", None, {"PYTHON": "python3"}).risk is Risk.WRITES
        assert classify("$PYTHON -m pytest", None, {"PYTHON": "rm -rf /;"}).risk is Risk.DANGEROUS
        assert classify("$PYTHON -m pytest").risk is Risk.DANGEROUS
        assert classify("$PYTHON -m pytest", None, {}).risk is Risk.WRITES  # runs `-m`
        assert classify("$PYTHON -m pytest", None, {"BASH_ENV": "x"}).risk is Risk.DANGEROUS  # `x` may set it

    def test_the_home_is_the_commands_own(self) -> None:
        assert classify("cat ~/x", None, {"HOME": "/home/me"}).reason.startswith(
            "reads ~/x, which is outside"
        )
        assert classify("cat /home/me/.ssh/x", None, {"HOME": "/home/me"}).risk is Risk.DANGEROUS

    def test_setting_one_that_programs_see_is_no_reading(self) -> None:
        assert classify("LESS=x; ls", None, {"LESS": "y"}).risk is Risk.WRITES
        assert classify("MINE=x; ls", None, {"LESS": "y"}).risk is Risk.READ_ONLY


# -- properties -------------------------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        *"\"'`$(){}[]<>|&;#\\!*?~=+-,.:%@^/ \n\t",
        "rm",
        "-rf",
        " / ",
        "ls",
        "git push",
        "$(",
        "${",
        "$((",
        "<<E\n",
        "\nE\n",
        "<<<",
        "<(",
        ">(",
        "&&",
        "||",
        ";;",
        "if ",
        " then ",
        " fi",
        "for x in ",
        "do ",
        " done",
        "case ",
        " esac",
        "[[ ",
        "]]",
        "$'",
        '$"',
        "x=",
        "x",
        "sh -c ",
        "eval ",
        "xargs ",
        "find . -exec ",
        "é",
        "\u00a0",
        "\ue004",
        "\udc80",
        "\0",
    ]
)


@given(st.lists(PIECES | st.text(max_size=6), max_size=40).map("".join))
@settings(max_examples=600, deadline=None)
def test_whatever_the_text_there_is_a_verdict(command: str) -> None:
    verdict = classify(command)
    assert verdict.reason
    assert (verdict.risk is Risk.READ_ONLY) or verdict.commands


def _ansi(text: str) -> str:
    return "$'" + "".join(f"\\{ord(one):03o}" for one in text) + "'"


QUOTINGS: list[Callable[[str], str]] = [
    lambda text: text,
    lambda text: "".join("\\" + one for one in text),
    lambda text: f"'{text}'",
    lambda text: f'"{text}"',
    lambda text: f"$'{text}'",
    _ansi,
    lambda text: f"''{text}\"\"",
]


@st.composite
def quoted(draw: st.DrawFn, word: str) -> str:
    """The word with pieces of it quoted in different ways; none of its characters means anything to the shell."""
    cuts = sorted(draw(st.sets(st.integers(0, len(word)), max_size=3)) | {0, len(word)})
    pieces = [word[start:end] for start, end in pairwise(cuts)]
    return "".join(draw(st.sampled_from(QUOTINGS))(piece) for piece in pieces)


PLAIN = [
    *(
        "rm -rf /",
        "rm -r src",
        "rm -rf .git",
        "git push",
        "git push --force",
        "git reset --hard",
        "git clean -fdx",
    ),
    *(
        "git checkout -- .",
        "chmod -R 777 /",
        "dd of=/dev/sda",
        "mkfs.ext4 /dev/sda1",
        "cat .env",
        "cat /etc/shadow",
    ),
    *(
        "find . -delete",
        "sh -c reboot",
        "timeout 5 rm -rf /",
        "npm publish",
        "kill -9 -1",
        "sudo ls",
        "xargs rm -rf",
    ),
    *("rm -rf build", "touch x", "pytest -q", "git commit -m x"),
]


@given(st.sampled_from(PLAIN), st.data())
@settings(max_examples=500, deadline=None)
def test_quoting_its_words_does_not_change_a_class(command: str, data: st.DataObject) -> None:
    spelled = " ".join(data.draw(quoted(word)) for word in command.split())
    assert classify(spelled).risk is classify(command).risk, spelled


WRAPPERS: list[Callable[[str], str]] = [
    lambda line: f"sh -c {shlex.quote(line)}",
    lambda line: f"bash -lc {shlex.quote(line)}",
    lambda line: f"eval {shlex.quote(line)}",
    lambda line: f"( {line}\n)",
    lambda line: f"{{ {line}\n}}",
    lambda line: f"if true; then {line}\nfi",
    lambda line: f"for i in 1 2; do {line}\ndone",
    lambda line: f"f() {{ {line}\n}}; f",
    lambda line: f"ls && {line}",
    lambda line: f"false || {line}",
    lambda line: f'echo "$({line}\n)"',
    lambda line: f"echo {shlex.quote(line)} | bash",
    lambda line: f"bash <<'END'\n{line}\nEND",
    lambda line: f"bash <(echo {shlex.quote(line)})",
    lambda line: f'x={shlex.quote(line)}; eval "$x"',
    lambda line: f"timeout 5 sh -c {shlex.quote(line)}",
    lambda line: f"env A=b nohup sh -c {shlex.quote(line)} &",
    lambda line: f"find . -name x -exec sh -c {shlex.quote(line)} \\;",
    lambda line: f"true | xargs -I% sh -c {shlex.quote(line)}",
    lambda line: f"trap {shlex.quote(line)} EXIT",
    lambda line: f"some-wrapper --run {shlex.quote(line)}",
    lambda line: f"echo {shlex.quote(line)} > x.sh; sh x.sh",
]


@given(
    st.sampled_from(["rm -rf /", "git push", "git reset --hard", "cat ~/.ssh/id_rsa", "X=rm; $X -rf /"]),
    st.lists(st.sampled_from(range(len(WRAPPERS))), max_size=3),
)
@settings(max_examples=500, deadline=None)
def test_wrapping_a_command_does_not_make_it_lighter(command: str, wrappers: list[int]) -> None:
    line, last = command, -1
    for number in wrappers:
        # A here-document inside text for `echo` is spelled by some shells' echo, and then counts as unknown.
        line, last = WRAPPERS[number](line), number
    assert classify(line).risk >= classify(command).risk, (last, line)


ANY = st.text("abc01 _-.,/{}*$\"'\\;|&()<>~#=!", min_size=1, max_size=8)


@st.composite
def spelled(draw: st.DrawFn) -> tuple[str, str]:
    """A word for bash, made of pieces quoted in different ways, and what it stands for (`v` has the value `a b`)."""
    pieces = draw(st.lists(ANY | st.none(), min_size=1, max_size=4))
    source = plain = ""
    for piece in pieces:
        if piece is None:
            source, plain = source + '"${v}"', plain + "a b"
            continue
        double = '"' + "".join("\\" + one if one in '$`"\\' else one for one in piece) + '"'
        bare = "".join("\\" + one for one in piece)
        source += draw(st.sampled_from([shlex.quote(piece), _ansi(piece), bare, double]))
        plain += piece
    return source, plain


@given(st.lists(spelled(), min_size=1, max_size=3))
@settings(max_examples=150, deadline=None)
def test_words_come_out_as_bash_has_them(words: list[tuple[str, str]]) -> None:
    """Each word, however it is quoted, is for `classify` what bash passes to a command.

    Once `'r'\\m` was two words: so the grammar parts it.
    """
    line = " ".join(source for source, _ in words)
    done = subprocess.run(["bash", "-c", f"v='a b'; printf '%s\\0' {line}"], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == [plain for _, plain in words]
    commands = classify(f"v='a b'; some-program {line}").commands
    if not any("cannot be parsed" in one.reason for one in commands):  # as a blank at the very end, `x \\ `
        text = " ".join(["some-program", *(plain for _, plain in words)])
        assert text in [one.text for one in commands]


def _marks_that_bash_runs(line: str) -> list[str]:
    """The marks with their words; none where the line does not end."""
    reading, writing = os.pipe()
    try:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(
                [
                    shutil.which("bash") or "bash",
                    "--norc",
                    "-c",
                    f"exec 9>&{writing}\n{CASES['bash']['marks']}{line}",
                ],
                cwd=folder,
                env={"PATH": "/nonexistent"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(writing,),
                timeout=20,
                check=False,
            )
    except subprocess.TimeoutExpired:
        return []
    finally:
        os.close(writing)
        with os.fdopen(reading, encoding="utf-8", errors="replace") as pipe:
            ran = pipe.read().split("\0")[:-1]
    return ran


@given(st.lists(st.sampled_from(CASES["bash"]["statements"]), min_size=1, max_size=7).map(" ".join))
@settings(max_examples=200, deadline=None)
def test_what_bash_runs_has_been_judged(line: str) -> None:
    """Harmless marks stand for commands; bash finds no program (its PATH is empty), and tells which marks it ran.

    Where this fails, the grammar reads a line in another way than bash does: once `M1 >log x` lost its `x`,
    and `\\ #` began a comment.
    """
    ran = _marks_that_bash_runs(line)
    verdict = classify(line)
    if any(
        re.search("cannot be parsed|two ways|too long|known when", one.reason) for one in verdict.commands
    ):
        return  # it is asked about, or looked at once more
    known = [re.split(r"\s*…\s*", one.text.strip()) for one in verdict.commands]
    patterns = [re.compile(".*".join(map(re.escape, pieces)), re.DOTALL) for pieces in known]
    for command in ran:
        assert any(pattern.fullmatch(command.strip()) for pattern in patterns), (command, line)


@pytest.mark.parametrize(
    "word",
    [
        "a{b,c}d",
        "{a,b}{1..3}",
        "a{b,{c,d}}e",
        "{3..1}",
        "{a..d}x",
        "a{b}c",
        "{,x}y",
        "{a,b",
        "a,b}",
        "x{1,2}{",
        "{}",
        "'{a,b}'",
    ],
)
def test_braces_come_out_as_bash_has_them(word: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f"printf '%s\\n' {word}"], capture_output=True, check=True, text=True
    )
    verdict = classify(f"some-program {word}")
    assert verdict.commands[-1].text == " ".join(["some-program", *done.stdout.split()])


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (r"\x72m", "rm"),
        (r"\162\155", "rm"),
        (r"\u0072m", "rm"),
        (r"a\tb\n", "a\tb\n"),
        (r"\\x72", r"\x72"),
        (r"\q", r"\q"),
    ],
)
def test_escapes(text: str, plain: str) -> None:
    assert unescape(text) == plain


def test_fields_are_bounded() -> None:
    assert len(fields("\ue001a\ue002b\ue003" * 20)) < 300


def test_the_program_starts_without_the_parser() -> None:
    code = "import sys; from constrained_agent.cli import app, run; app.run(['--help']); "
    code += "from constrained_agent.tools import registry, shell; "
    code += "print('tree_sitter' in sys.modules, 'constrained_agent.tools.commands' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.splitlines()[-1] == "False False"
