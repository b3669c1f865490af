"""The prompts of the bench of speed: small edits to write freely, and real edits of the corpus whose patch is known."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from constrained_agent.agent.runtime import Level, Runtime
from constrained_agent.decode.needs import Constraint
from constrained_agent.evals.corpus import Edit
from constrained_agent.evals.masking import patch_of
from constrained_agent.evals.patch_prompt import PatchPrompt, patch_prompt
from constrained_agent.evals.small_edits import SmallEdit
from constrained_agent.evals.speed_arms import Case, Models
from constrained_agent.evals.teacher import walk
from constrained_agent.grammar import patches
from constrained_agent.grammar.located.placing import PlacingMatcher
from constrained_agent.grammar.matcher import EngineTokenizer
from constrained_agent.grammar.sources import Grammar
from constrained_agent.model.teacher import Script

MIN_TOKENS, MAX_TOKENS = 60, 300
"""Of a known patch: shorter ones say little, longer ones take long."""

_SPARE = 1_000
"""Tokens beyond those of a known patch, so that no limit narrows its choices."""

_INSTRUCTION = "Change {path} as its next release does."


def free_cases(runtime: Runtime, edits: Sequence[SmallEdit], max_tokens: int) -> list[Case]:
    """Small edits, to be written as the model likes best."""
    cases = []
    for edit in edits:
        prompt = patch_prompt(runtime, edit.instruction, edit.path, edit.content.encode())
        limit = min(max_tokens, runtime.session.room(len(prompt.ids)))
        cases.append(Case(edit.name, prompt.ids, prompt.editable.files, _constraints(runtime, prompt), limit))
    return cases


def taught_cases(
    models: Models, edits: Sequence[Edit], n: int, *, progress: Callable[[str], None]
) -> list[Case]:
    """The smallest edits, to be written as they are.

    The rule: of the edits whose patch has `MIN_TOKENS` to `MAX_TOKENS` tokens of this model, those whose old file and
    patch have the fewest bytes together. One that the located grammar does not take is told and left out.

    Cost: about 0.1 s for each.
    """
    cases: list[Case] = []
    for edit in ranked(edits, models.runtime.tokenizer.encode_plain):
        if len(cases) == n:
            break
        case = _taught_case(models.runtime, models.runtime.engine, edit)
        located = case.constraints["located"]()
        assert isinstance(located, PlacingMatcher)
        if refusal := walk(located, patch_of(edit)).refusal:
            progress(f"left out: {edit}: refused at {refusal}")
            continue
        cases.append(case)
    if len(cases) < n:
        progress(f"of {len(edits)} real edits {len(cases)} are of the right size, fewer than {n}")
    return cases


def ranked(edits: Sequence[Edit], encode: Callable[[str], Collection[int]]) -> list[Edit]:
    """The edits whose patch has the right size, the smallest first."""
    fitting = []
    for edit in edits:
        patch = patch_of(edit)
        if MIN_TOKENS <= len(encode(patch.decode("utf-8", "replace"))) <= MAX_TOKENS:
            fitting.append((len(edit.old) + len(patch), str(edit), edit))
    return [edit for *_, edit in sorted(fitting, key=lambda entry: entry[:2])]


def _taught_case(runtime: Runtime, engine: EngineTokenizer, edit: Edit) -> Case:
    prompt = patch_prompt(runtime, _INSTRUCTION.format(path=edit.path), edit.path, edit.old)
    tokenizer = runtime.tokenizer
    script = Script(patch_of(edit), engine.encode_bytes, tokenizer.token_bytes, tokenizer.end_ids[0])
    limit = min(len(script.ids) + _SPARE, runtime.session.room(len(prompt.ids)))
    return Case(str(edit), prompt.ids, prompt.editable.files, _constraints(runtime, prompt), limit, script)


def _constraints(runtime: Runtime, prompt: PatchPrompt) -> dict[Level, Callable[[], Constraint]]:
    """The patch language; and it with the real lines of the file, as `generate --edit` has it."""
    grammar = Grammar("patch", "lark", f"start: {patches.RULE}\n{patches.freeform_rules()}")
    return {
        "grammar": lambda: runtime.grammar_constraint(grammar),
        "located": lambda: runtime.patch_constraint(prompt.editable, patches.MAX_ADDED_LINES).result(),
    }
