"""Writes the automata of files as the grammar of their patches.

A rule is a state, its alternatives are what may come next, and the last thing in each is the state after: nothing may
be empty, so the parser's rows stay small. Rules of file 1: `f1s7` is state 7, `f1o7` the old line that follows it,
`f1n7` the hunk after one that ends there. So for the lines `a`, `b`, `a`, a hunk `-b` goes f0 → f0s0 (`@@`) → f0o0
(`-`) → f0s2 (`b`), where `b` is unique and the hunk may end. What a state does not tell stands in the parameter that
LLGuidance hands from rule to rule:

    bits 0-23   lines of the file that are behind: the end of the hunk before, and the old lines of this one
    bits 24-35  lines that the hunk, or the new file, has added
    bit 36      the hunk has removed a line
    bits 37-40  files that the patch has added
    bits 41-63  files that the patch has named

Functions of the parameter stand behind a terminal only: LLGuidance 1.9.1 loses or refuses some that do not.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import lru_cache

from constrained_agent.grammar import patches
from constrained_agent.grammar.located.automaton import ROOT, LineAutomaton, State
from constrained_agent.grammar.located.offer import MAX_NEW_FILES, Editable, LocatedPatches, locate
from constrained_agent.grammar.sources import Grammar

_N_POSITION, _N_ADDED = 24, 12
_REMOVED = _N_POSITION + _N_ADDED
_FIRST_NEW = _REMOVED + 1
_FIRST_FILE = _FIRST_NEW + 4
_POSITION, _ADDED = f"[0:{_N_POSITION}]", f"[{_N_POSITION}:{_REMOVED}]"
_NEW_FILES = f"[{_FIRST_NEW}:{_FIRST_FILE}]"
_CHANGED = f"gt([{_N_POSITION}:{_FIRST_NEW}], 0)"
_LEAVE = f"bit_and({(1 << 64) - (1 << _FIRST_NEW):#x})"
"""Keeps nothing but the files."""

_TO_SECTION = f'"*** " section::{_LEAVE}'
_LF = "\n"
_ADDED_LINE = r"\+[^\n\x00]*\n"


@lru_cache(maxsize=8)  # by identity: the same languages are asked for again and again
def written(located: LocatedPatches) -> str:
    """Lark rules in which `patches.RULE` is a patch, without a newline after its end."""
    return "\n".join(_Writer(located).rules()) + "\n"


def grammar(located: LocatedPatches) -> Grammar:
    """The grammar of a text that is one patch."""
    names = ", ".join(f"{file.path} ({file.automaton.n_lines:,} lines)" for file in located.files)
    return Grammar(
        f"located patch ({names or 'new files'})", "lark", f"start: {patches.RULE}\n{written(located)}"
    )


def patch_grammar(editable: Editable, max_added_lines: int = patches.MAX_ADDED_LINES) -> Grammar:
    """The grammar of a text that is one patch of these files."""
    return grammar(locate(editable, max_added_lines=max_added_lines))


class _Writer:
    def __init__(self, located: LocatedPatches) -> None:
        self._located = located
        self._terminals: dict[str, str] = {}

    def rules(self) -> Iterator[str]:
        sections = list(self._sections())
        yield _rule(patches.RULE, [f"{self._literal(f'*** Begin Patch{_LF}*** ')} first_section::0"])
        yield _rule("first_section::_", sections)
        yield _rule("section::_", ['"End Patch"', *sections])
        yield _rule("after_delete::_", [_TO_SECTION])
        yield _rule("added_lines::_", [self._added("added_lines"), _TO_SECTION])
        yield f"ADDED: /{self._located.carrier.pattern(_ADDED_LINE)}/"
        yield from self._located.new_paths.rules("NEW")
        for i, file in enumerate(self._located.files):
            yield from self._file(i, file.automaton)
        for text, name in self._terminals.items():
            yield _rule(name, [self._literal(f"{text}\n")])

    def _sections(self) -> Iterator[str]:
        room = f"%if lt({_NEW_FILES}, {MAX_NEW_FILES})"
        yield f'"Add File: " NEW {self._literal(_LF)} added_lines::incr({_NEW_FILES}) {room}'
        for i, file in enumerate(self._located.files):
            bit = _FIRST_FILE + i
            once = f"set_bit({bit}) %if bit_clear({bit})"
            if self._located.renames or file.automaton.states:
                yield f"{self._literal(f'Update File: {file.path}{_LF}')} f{i}::{once}"
            yield f"{self._literal(f'Delete File: {file.path}{_LF}')} after_delete::{once}"

    def _added(self, after: str) -> str:
        return f"ADDED {after}::incr({_ADDED}) %if lt({_ADDED}, {self._located.max_added_lines})"

    def _file(self, i: int, lines: LineAutomaton) -> Iterator[str]:
        hunks = []
        if lines.states:
            first = f"{self._literal(f'@@{_LF}')} f{i}s{ROOT}::_"
            hunks = [first, *self._lines(i, ROOT, lines.states[ROOT], lines)]
        if self._located.renames:
            yield _rule(f"f{i}moved::_", [_TO_SECTION, *hunks])
            yield _rule(f"f{i}::_", [f'"*** Move to: " NEW {self._literal(_LF)} f{i}moved::_', *hunks])
        elif hunks:
            yield _rule(f"f{i}::_", hunks)
        for number, state in enumerate(lines.states):
            onward = [*self._lines(i, number, state, lines), *self._ends(i, number, state, lines)]
            yield _rule(f"f{i}s{number}::_", onward)
            if state.next:
                yield _rule(f"f{i}o{number}::_", self._old_lines(i, state, lines))
            if _may_go_on(state, lines):
                yield _rule(f"f{i}n{number}::_", [f"{self._literal(_LF)} f{i}s{ROOT}::bit_or({state.end})"])
        if any(state.at_end and state.end is not None for state in lines.states):
            sections = ['"End Patch"', *self._sections()]
            end_of_file = self._literal(f"End of File{_LF}*** ")
            yield _rule(f"f{i}last::_", [f"{end_of_file} section::_", *sections])

    def _lines(self, i: int, number: int, state: State, lines: LineAutomaton) -> Iterator[str]:
        """Alternatives for one more line of a hunk."""
        if state.next:
            latest = max(lines.states[target].latest_end for target in state.next.values())
            yield f'" " f{i}o{number}::_{_in_time(latest, state)}'
            yield f'"-" f{i}o{number}::set_bit({_REMOVED}){_in_time(latest, state)}'
        yield self._added(f"f{i}s{number}")

    def _old_lines(self, i: int, state: State, lines: LineAutomaton) -> Iterator[str]:
        for line, target in state.next.items():
            in_time = _in_time(lines.states[target].latest_end, state)
            yield f"{self._terminal(lines.texts[line])} f{i}s{target}::incr({_POSITION}){in_time}"

    def _ends(self, i: int, number: int, state: State, lines: LineAutomaton) -> Iterator[str]:
        """Alternatives for the end of a hunk."""
        if _may_go_on(state, lines):
            yield f'"@@" f{i}n{number}::{_LEAVE} %if {_CHANGED}'
        if state.end is not None:
            after = f"f{i}last" if state.at_end else "section"
            yield f'"*** " {after}::{_LEAVE} %if {_CHANGED}'
        elif state.at_end:
            end_of_file = self._literal(f"*** End of File{_LF}*** ")
            yield f"{end_of_file} section::{_LEAVE} %if {_CHANGED}"

    def _terminal(self, text: str) -> str:
        return self._terminals.setdefault(text, f"L{len(self._terminals)}")

    def _literal(self, text: str) -> str:
        """A raw text as a string of Lark, spelled as the patch carries it."""
        return json.dumps(self._located.carrier.spell(text), ensure_ascii=False).replace("\x7f", "\\u007f")


def _in_time(latest_end: int, state: State) -> str:
    """The condition that after one more line the hunk can still end somewhere.

    Every text that has come to a state is in time there; where the next one has a line more, all still are.
    """
    return "" if latest_end > state.latest_end else f" %if lt({_POSITION}, {latest_end})"


def _may_go_on(state: State, lines: LineAutomaton) -> bool:
    """Whether another hunk fits behind this place."""
    return state.end is not None and bool(lines.n_lines) and state.end <= lines.states[ROOT].latest_end


def _rule(name: str, alternatives: Iterable[str]) -> str:
    first, *others = alternatives
    if name.endswith("::_") and not others and "%if" not in first:
        # LLGuidance 1.9.1 panics where it puts the only alternative of a rule in the place of the rule.
        first += f" %if ge({_POSITION}, 0)"
    return f"{name}: {' | '.join([first, *others])}"
