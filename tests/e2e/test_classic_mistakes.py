"""The task `dateparse` with a model that makes every mistake that small models are known for, and mends both bugs
at last: real loop, tokenizer, grammars, tools, files and test runs; only the words are scripted.

Whatever it writes, the bytes on disk are what they should be after every turn, and at every event within one.
"""

import hashlib
from dataclasses import dataclass

import pytest

from constrained_agent.agent.editable import editable
from constrained_agent.agent.watch import NoWatcher
from constrained_agent.evals import tasks
from tests.agents import ScriptedAgent, call, patch_call

TASK = tasks.load("dateparse")
FILE = "dateparse.py"

RETURN = "        return datetime.date(year, month, day)\n"
INDEX = "        month = MONTHS.index(name.lower())\n"
INDEX_MENDED = "        month = MONTHS.index(name.lower()) + 1\n"
GROUPS = "        month, day, year = map(int, match.groups())\n"
GROUPS_MENDED = "        day, month, year = map(int, match.groups())\n"

START = (TASK.path / FILE).read_text(encoding="utf-8")
ONE_MENDED = START.replace(INDEX, INDEX_MENDED)
TOUCHED = ONE_MENDED.replace("three forms", "3 forms")
BOTH_MENDED = TOUCHED.replace(GROUPS, GROUPS_MENDED)


def hunk(old, new, context="", header="@@"):
    return f"{header}\n{context and ' ' + context}-{old}+{new}"


def update(*hunks, path=FILE):
    return patch_call(f"*** Update File: {path}\n" + "".join(hunks))


def patch_text(answer):
    """The patch of a call, without the call around it."""
    return answer[answer.index("*** Begin Patch") :].removesuffix("\n</tool_call>")


MEND_INDEX = update(hunk(INDEX, INDEX_MENDED))
MEND_GROUPS = update(hunk(GROUPS, GROUPS_MENDED))
AMBIGUOUS = update(hunk(RETURN, RETURN.replace("month, day", "day, month")))
AMBIGUOUS_CONTEXT = update(f"@@ def parse_date(text):\n {RETURN}+\n")
WRONG_NAME = update(hunk(INDEX, INDEX_MENDED), path="date_parse.py")
STALE_CONTEXT = update(
    hunk(
        old="        return datetime.date(int(year), month, int(day))\n",
        new="        return datetime.date(int(year), month + 1, int(day))\n",
        context=INDEX,  # as it was before the model's own patch
    )
)
TWICE_AS_ONE_OF_TWO = update(hunk(GROUPS, GROUPS_MENDED), hunk(INDEX, INDEX_MENDED))
BAD_ESCAPE = (
    '<tool_call>\n{"name": "exec_command", "arguments": {"command": "grep \'\\d\' *.py"}}\n</tool_call>'
)
RAW_LINE_BREAKS = MEND_INDEX.replace('"}\n***', '", "arguments": {"patch": "***').replace(
    "\n</tool", '"}}\n</tool'
)
IN_A_SHELL_BLOCK = f"This mends it:\n```bash\napply_patch <<'EOF'\n{patch_text(MEND_INDEX)}\nEOF\n```"
AS_A_COMMAND = call("exec_command", command=f"apply_patch <<'EOF'\n{patch_text(MEND_INDEX)}\nEOF")
UNCLOSED = MEND_INDEX.removesuffix("\n</tool_call>")
CLAIM = "I have fixed both bugs in dateparse.py."
TOUCH = call("exec_command", command=f"sed -i '1s/three/3/' {FILE}")  # another change, past the patch tool
READ = call("read_file", path=FILE)


@dataclass(frozen=True)
class Step:
    """One answer of the model.

    Attributes:
        kind: of the error that it gets; empty for none.
        told: words that the model gets to see next.
        after: what the file holds from then on; None leaves it.
        at: the levels at which the mistake can be made.
    """

    answer: str
    kind: str
    told: tuple[str, ...]
    after: str | None = None
    at: tuple[str, ...] = ("off", "grammar")


OFF = ("off",)
FIRST_BUG = "datetime.date(2024, 9, 3) != datetime.date(2024, 3, 9) : DD/MM/YYYY"
STEPS = [
    Step(AMBIGUOUS, "ambiguous", ("lines 31, 36", "line 31:", "line 36:", "month, day, year = map")),
    Step(AMBIGUOUS_CONTEXT, "ambiguous", ("lines 31, 36",)),
    Step(WRONG_NAME, "file_not_found", ("date_parse.py", f"did you mean {FILE}")),
    Step(BAD_ESCAPE, "json_invalid", ("invalid escape at position", "resend"), at=OFF),
    Step(RAW_LINE_BREAKS, "json_invalid", ("control character", "resend"), at=OFF),
    Step(IN_A_SHELL_BLOCK, "", ("only printed changes nothing",)),
    Step(AS_A_COMMAND, "", ("apply_patch: command not found",)),
    Step(CLAIM, "", ("not done yet", "tests failed", FIRST_BUG)),
    Step(UNCLOSED, "wrapper_unclosed", ("does not end with </tool_call>",), at=OFF),
    # The first fix mends one of two bugs: the tests show the other one.
    Step(MEND_INDEX, "", ("the patch is applied", "tests failed", FIRST_BUG), after=ONE_MENDED),
    Step(MEND_INDEX, "already_applied", ("already there, at line 41", "sent this very call before")),
    Step(TWICE_AS_ONE_OF_TWO, "already_applied", ("hunk 2", "line 41")),
    Step(STALE_CONTEXT, "context_not_found", ('file: line 41 is "' + INDEX_MENDED.rstrip("\n"),)),
    Step(CLAIM, "", ("not done yet", FIRST_BUG)),
    Step(TOUCH, "", ("exit code 0",), after=TOUCHED),
    Step(MEND_GROUPS, "changed_on_disk", ("changed since it was read", "read it again")),
    Step(READ, "", ("the 3 forms",)),
    Step(MEND_GROUPS, "", ("the patch is applied", "tests passed"), after=BOTH_MENDED),
    Step(MEND_INDEX, "already_applied", ("nothing is left to do",)),
    Step("Both bugs are mended.", "", ()),
]


def tree(root):
    """A hash over the names, modes and bytes of everything in a folder."""
    found = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        mode = path.lstat().st_mode
        content = path.read_bytes() if path.is_file() else b""
        found.update(f"{path.relative_to(root)}\0{mode}\0{len(content)}\0".encode() + content)
    return found.hexdigest()


class Bytes(NoWatcher):
    """Holds the tree at every event against what it should be.

    Attributes:
        n_turns: turns that were looked at.
    """

    def __init__(self, root, steps):
        self._root, self.n_turns, self._at = root, 0, 0
        self._trees = [tree(root)]
        original = (root / FILE).read_bytes()
        for step in steps:
            if step.after is None:
                self._trees.append(self._trees[-1])
            else:
                (root / FILE).write_bytes(step.after.encode())
                self._trees.append(tree(root))
        (root / FILE).write_bytes(original)

    def turn_started(self, number):
        self.n_turns = self._at = number
        self._holds(number - 1)

    def turn_ended(self, turn):
        self._holds(self._at - 1)

    def call_started(self, call):
        self._holds(self._at - 1)

    def call_ended(self, result):
        if result.call_id != "tests":
            self._holds(self._at)

    def note(self, text):
        self._holds(self._at)

    def ended(self):
        """After the last turn."""
        self._holds(len(self._trees) - 1)

    def _holds(self, n_done):
        assert tree(self._root) == self._trees[n_done], f"the tree after turn {n_done}"


def answered(agent, n):
    """What the model was told after turn `n`, counted from 0."""
    return agent.prompt_text(n + 1)[len(agent.prompt_text(n)) :].partition("<|im_start|>user")[2]


def result_kinds(agent, n_turns):
    """For each turn, the error kinds of its calls; runs of the test command are left out."""
    kinds = [[] for _ in range(n_turns)]
    turn = -1
    for event in agent.events:
        turn += event["event"] == "turn"
        if event["event"] == "result" and event["call_id"] != "tests":
            kinds[turn].append(event["error_kind"])
    return kinds


@pytest.mark.parametrize("level", ["off", "grammar"])
def test_every_mistake_is_refused_and_told_and_the_task_gets_done(tiny_runtime, tmp_path, level):
    steps = [step for step in STEPS if level in step.at]
    root = tmp_path / "repo"
    TASK.copy_to(root)
    watcher = Bytes(root, steps)
    agent = ScriptedAgent(
        tiny_runtime,
        root,
        [step.answer for step in steps],
        level=level,
        max_turns=0,
        test_command=TASK.test_command,
        watcher=watcher,
    )
    result = agent.run(TASK.instruction, TASK.files)
    watcher.ended()
    assert (result.exit_reason, result.tests_passed, result.succeeded) == ("done", True, True)
    assert (result.turns, watcher.n_turns) == (len(steps), len(steps))
    assert result.changed_files == (FILE,)
    for n, (step, kinds) in enumerate(zip(steps, result_kinds(agent, len(steps)), strict=True)):
        assert [kind for kind in kinds if kind] == [kind for kind in [step.kind] if kind], step.answer
        if step.told:
            told = answered(agent, n)
            assert all(words in told for words in step.told), told
    turns = [event["text"] for event in agent.events if event["event"] == "turn"]
    assert turns == [step.answer for step in steps], "the mask lets every one of them through"


def accepted(constraint, tokenizer, answer):
    """How much of an answer a constraint lets a model write."""
    ids = tokenizer.encode(answer)
    return tokenizer.decode(ids[: constraint.fresh().accepted_prefix(ids)])


@pytest.mark.parametrize(
    ("answer", "as_far_as"),
    [
        (BAD_ESCAPE, "\"grep '\\"),
        (RAW_LINE_BREAKS, '{"name": "apply_patch"'),
    ],
)
def test_what_does_not_parse_cannot_be_written_at_level_grammar(tiny_runtime, root, answer, as_far_as):
    tools = ScriptedAgent(tiny_runtime, root, []).tools
    constraint = tiny_runtime.turn_constraint("grammar", tools.specs, "auto", thinking=False).result()
    written = accepted(constraint, tiny_runtime.tokenizer, answer)
    assert written == answer[: len(written)]
    assert len(written) <= answer.index(as_far_as) + len(as_far_as)


def test_a_call_without_an_end_cannot_be_ended_at_level_grammar(tiny_runtime, root):
    tools = ScriptedAgent(tiny_runtime, root, []).tools
    constraint = tiny_runtime.turn_constraint("grammar", tools.specs, "auto", thinking=False).result()
    constraint.consume(tiny_runtime.tokenizer.encode(UNCLOSED))
    assert not constraint.accepting
    constraint.consume(tiny_runtime.tokenizer.encode("\n</tool_call>"))
    assert constraint.accepting


class Refusing(Bytes):
    """Tries at the start of each turn what a located patch may say then.

    Attributes:
        agent: set once it is there.
        tries: for each turn, answers and the words within which each is refused; None where all may be written.
    """

    def __init__(self, root, steps, tries):
        super().__init__(root, steps)
        self.tries, self.n_tried = tries, 0

    def turn_started(self, number):
        super().turn_started(number)
        runtime, tools = self.agent.runtime, self.agent.tools
        constraint = runtime.turn_constraint(
            "located", tools.specs, "auto", thinking=False, editable=editable(tools)
        ).result()
        for answer, stop in self.tries.get(number, ()):
            written = accepted(constraint, runtime.tokenizer, answer)
            start = len(answer) if stop is None else answer.index(stop)
            assert answer.startswith(written)
            assert start <= len(written) < start + len(stop or "."), (number, written)
            self.n_tried += 1


LOCATED = [
    Step(MEND_INDEX, "", ("tests failed", FIRST_BUG), after=ONE_MENDED),
    Step(TOUCH, "", ("exit code 0", "no longer holds"), after=TOUCHED),
    Step(READ, "", ("the 3 forms",)),
    Step(MEND_GROUPS, "", ("tests passed",), after=BOTH_MENDED),
    Step("Both bugs are mended.", "", ()),
]
TRIES = {
    1: [
        (MEND_INDEX, None),
        (TWICE_AS_ONE_OF_TWO, None),
        (AMBIGUOUS, "*** End Patch"),  # lines that stand twice cannot be all of a hunk
        (AMBIGUOUS_CONTEXT, "@@ def"),
        (AMBIGUOUS_CONTEXT.replace("@@ def parse_date(text):", "@@"), "*** End Patch"),
        (WRONG_NAME, "date_"),
    ],
    2: [
        (MEND_GROUPS, None),
        (MEND_INDEX, ".lower())\n"),  # the line goes on with " + 1" now
        (STALE_CONTEXT, ".lower())\n"),
        (TWICE_AS_ONE_OF_TWO, ".lower())\n"),
    ],
    3: [(MEND_GROUPS, "*** Update File"), (MEND_INDEX, "*** Update File")],  # not read since it changed
    4: [(MEND_GROUPS, None), (MEND_INDEX, ".lower())\n")],
    5: [(MEND_GROUPS, "month, day"), (MEND_INDEX, ".lower())\n")],
}


def test_at_level_located_what_is_ambiguous_or_stale_cannot_even_be_written(tiny_runtime, tmp_path):
    root = tmp_path / "repo"
    TASK.copy_to(root)
    watcher = Refusing(root, LOCATED, TRIES)
    watcher.agent = agent = ScriptedAgent(
        tiny_runtime,
        root,
        [step.answer for step in LOCATED],
        level="located",
        test_command=TASK.test_command,
        watcher=watcher,
    )
    result = agent.run(TASK.instruction, TASK.files)
    watcher.ended()
    assert (result.exit_reason, result.tests_passed, result.failures) == ("done", True, {})
    assert watcher.n_tried == sum(map(len, TRIES.values()))
    for n, step in enumerate(LOCATED[:-1]):
        assert all(words in answered(agent, n) for words in step.told), answered(agent, n)
