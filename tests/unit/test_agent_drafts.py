"""What is looked up for the answers of a conversation: files and removed lines as added ones."""

from constrained_agent.agent import drafts
from constrained_agent.agent.drafts import PatchLookup
from constrained_agent.grammar.carriers import JSON
from constrained_agent.grammar.located.offer import OfferedFile

FILE = OfferedFile("a.py", ("def area(width, height):", "    return width + height", "größe = 1"))


def likely(runtime, lookup, text, n=12):
    """What is guessed to follow a text, token by token."""
    encode, ahead = runtime.tokenizer.encode_plain, []
    lookup.extend(encode(text))
    for _ in range(n):
        found = next(iter(lookup.guesses(ahead, None)), None)
        if found is None:
            break
        ahead.append(found[1])
    return runtime.tokenizer.decode(ahead)


def test_a_line_of_a_file_is_guessed_behind_a_plus(tiny_runtime):
    lookup = PatchLookup(tiny_runtime.engine)
    lookup.begin(tiny_runtime.tokenizer.encode_plain("task"), [FILE])
    assert likely(tiny_runtime, lookup, "\n+    return").startswith(" width + height\n")


def test_a_removed_line_is_guessed_behind_a_plus_and_beats_the_file(tiny_runtime):
    lookup = PatchLookup(tiny_runtime.engine)
    lookup.begin(tiny_runtime.tokenizer.encode_plain("task"), [FILE])
    assert likely(tiny_runtime, lookup, "\n-    return depth * 2\n+    return").startswith(" depth * 2\n")


def test_it_goes_on_from_turn_to_turn_and_forgets_when_it_is_full(tiny_runtime, monkeypatch):
    encode = tiny_runtime.tokenizer.encode_plain
    lookup = PatchLookup(tiny_runtime.engine)
    lookup.begin(encode("one two three four"), [FILE])
    n_read = lookup._lookup.n_read
    lookup.begin(encode("one two three four five"), [FILE])
    assert lookup._lookup.n_read == n_read + 1, "only what is new is read"
    monkeypatch.setattr(drafts, "_MAX_READ", 10)
    lookup.begin(encode("one two three four five six"), [FILE])
    assert lookup._lookup.n_read == n_read + 2, "all is read anew"
    assert likely(tiny_runtime, lookup, "\n+    return").startswith(" width + height\n")


def test_in_json_lines_are_looked_up_as_they_are_escaped(tiny_runtime):
    file = OfferedFile("a.py", ('say("hi", "there")', "größe = 1"))
    lookup = PatchLookup(tiny_runtime.engine)
    lookup.begin(tiny_runtime.tokenizer.encode_plain("task"), [file], JSON)
    opening = '{"patch": "*** Begin Patch\\n@@\\n+say(\\"hi'
    assert likely(tiny_runtime, lookup, opening).startswith('\\", \\"there\\")\\n')
    removed = '\\n-\\treturn \\"one\\" + two\\n+\\treturn'
    assert likely(tiny_runtime, lookup, removed).startswith(' \\"one\\" + two\\n')


def test_another_carrier_is_another_text(tiny_runtime):
    encode = tiny_runtime.tokenizer.encode_plain
    lookup = PatchLookup(tiny_runtime.engine)
    lookup.begin(encode("task"), [FILE], JSON)
    lookup.begin(encode("task"), [FILE])
    assert likely(tiny_runtime, lookup, "\n+    return").startswith(" width + height\n")
