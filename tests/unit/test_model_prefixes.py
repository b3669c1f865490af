"""What prompts begin with is run once and then comes from the disk; what is not right there is not used."""

import contextlib
import copy
import dataclasses
import json
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.models import cache as kv

from constrained_agent.cli import app
from constrained_agent.decode.generate import generate
from constrained_agent.decode.sampling import Sampling
from constrained_agent.model import cards, prefixes, weights
from constrained_agent.model.session import Session

PREFIX = tuple(range(1000, 1100))
PROMPT = [*PREFIX, 151644, 872, 198, 6023, 151645]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("CONSTRAINED_AGENT_PREFIXES", raising=False)
    monkeypatch.setenv("CONSTRAINED_AGENT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "prefixes"


@pytest.fixture
def other_loaded(tiny_qwen3_dir):
    """The same model once more, to be changed."""
    return weights.load(cards.resolve(str(tiny_qwen3_dir)))


def begun(loaded, prefix=PREFIX):
    session = Session(loaded)
    session.prefix = prefix
    return session


def logits_of(session, ids):
    """How many ids were reused, and the logits after the last one."""
    with session.running():
        reused = session.prefill(ids)
        return reused, np.array(session.forward([ids[-1]])[-1])


def save(loaded, prefix=PREFIX):
    """Have the state after a prefix written; returns the file."""
    logits_of(begun(loaded, prefix), [*prefix, 5])
    return prefixes.saved()[0].path


# What is loaded is what would have been run


def test_another_session_loads_it_and_goes_on_the_same(tiny_loaded):
    first, expected = logits_of(begun(tiny_loaded), PROMPT)
    session = begun(tiny_loaded)
    second, loaded = logits_of(session, PROMPT)
    assert (first, second) == (0, len(PREFIX))
    assert np.array_equal(loaded, expected)
    assert session.ids == tuple(PROMPT)
    _, cold = logits_of(Session(tiny_loaded), PROMPT)
    assert np.allclose(loaded, cold, atol=1e-4)


def written(session, runtime, sampling):
    return generate(session, runtime.unconstrained(), PROMPT, sampling=sampling, max_tokens=40)


def test_the_greedy_text_is_the_same(tiny_loaded, tiny_runtime):
    sessions = (Session(tiny_loaded), begun(tiny_loaded), begun(tiny_loaded))
    texts = [written(session, tiny_runtime, Sampling(temperature=0)) for session in sessions]
    assert [text.reused_tokens for text in texts] == [0, 0, len(PREFIX)]
    assert texts[0].tokens == texts[1].tokens == texts[2].tokens


def test_the_drawn_text_is_the_same(tiny_loaded, tiny_runtime):
    run, loaded = (
        written(begun(tiny_loaded), tiny_runtime, Sampling(temperature=1.0, seed=3)) for _ in range(2)
    )
    assert (run.reused_tokens, loaded.reused_tokens) == (0, len(PREFIX))
    assert run.tokens == loaded.tokens
    assert len(set(run.tokens)) > 1


def test_what_is_loaded_are_the_saved_bits(tiny_loaded):
    session = begun(tiny_loaded)
    logits_of(session, PROMPT)
    loaded = session._prefixes.load(PREFIX)
    for ours, theirs in zip(session._cache, loaded, strict=True):
        assert theirs.keys.shape[2] == theirs.offset == len(PREFIX)
        assert mx.array_equal(ours.keys[..., : len(PREFIX), :], theirs.keys)
        assert mx.array_equal(ours.values[..., : len(PREFIX), :], theirs.values)


def test_sixteen_bit_caches_come_back_too(other_loaded):
    other_loaded.module.set_dtype(mx.bfloat16)
    loaded = dataclasses.replace(other_loaded, float_type="bfloat16")
    _, expected = logits_of_16_bits(begun(loaded))
    reused, logits = logits_of_16_bits(begun(loaded))
    assert reused == len(PREFIX)
    assert np.array_equal(logits, expected)


def logits_of_16_bits(session):
    with session.running():
        reused = session.prefill(PROMPT)
        return reused, np.array(session.forward([PROMPT[-1]])[-1].astype(mx.float32))


def test_prefill_says_where_it_stands(tiny_loaded):
    save(tiny_loaded)
    seen = []
    session = begun(tiny_loaded)
    with session.running():
        session.prefill(PROMPT, lambda done, total: seen.append((done, total)))
    assert seen == [(len(PREFIX), len(PROMPT)), (len(PROMPT), len(PROMPT))]


def test_a_worker_thread_loads_and_the_main_thread_goes_on(tiny_loaded):
    save(tiny_loaded)
    session, results = begun(tiny_loaded), []
    worker = threading.Thread(target=lambda: results.append(logits_of(session, PROMPT)[0]))
    worker.start()
    worker.join()
    assert results == [len(PREFIX)]
    reused, warm = logits_of(session, [*PROMPT, 3])
    _, cold = logits_of(Session(tiny_loaded), [*PROMPT, 3])
    assert reused == len(PROMPT)
    assert np.allclose(warm, cold, atol=1e-4)


# When it is loaded and saved


def test_a_cache_that_holds_something_else_makes_room(tiny_loaded):
    save(tiny_loaded)
    session = begun(tiny_loaded)
    logits_of(session, [*PREFIX[:20], 7, 8, 9])
    reused, warm = logits_of(session, PROMPT)
    _, cold = logits_of(Session(tiny_loaded), PROMPT)
    assert reused == len(PREFIX)
    assert np.allclose(warm, cold, atol=1e-4)


def test_a_cache_that_holds_it_already_is_used(tiny_loaded):
    session = begun(tiny_loaded)
    logits_of(session, PROMPT)
    held = session._cache
    assert logits_of(session, [*PROMPT, 3])[0] == len(PROMPT)
    assert logits_of(session, [*PREFIX, 9, 9])[0] == len(PREFIX)
    assert session._cache is held


def test_what_older_conversations_left_in_the_cache_is_not_written(tiny_loaded, folder):
    session = Session(tiny_loaded)
    logits_of(session, [*PREFIX[:20], *range(2000, 2300)])
    session.prefix = PREFIX
    assert logits_of(session, PROMPT)[0] == 20
    (file,) = prefixes.saved()
    assert 0 < file.n_bytes - len(PREFIX) * tiny_loaded.kv_bytes_per_token < 4_000
    assert logits_of(begun(tiny_loaded), PROMPT)[0] == len(PREFIX)


def test_an_interrupt_in_the_prefix_leaves_nothing_wrong(tiny_loaded):
    class Interrupted:
        """Layers that one pass is interrupted in."""

        n_passes = 0

        def __call__(self, tokens, cache):
            self.n_passes += 1
            logits = tiny_loaded.module(tokens, cache=cache)
            if self.n_passes == 2:
                raise KeyboardInterrupt
            return logits

        def __getattr__(self, name):
            return getattr(tiny_loaded.module, name)

    session = begun(dataclasses.replace(tiny_loaded, module=Interrupted()))
    with pytest.raises(KeyboardInterrupt):
        logits_of(session, PROMPT)
    assert prefixes.saved() == []
    _, cold = logits_of(Session(tiny_loaded), PROMPT)
    assert np.allclose(logits_of(session, PROMPT)[1], cold, atol=1e-4)
    reused, loaded = logits_of(begun(tiny_loaded), PROMPT)
    assert reused == len(PREFIX)
    assert np.allclose(loaded, cold, atol=1e-4)


@pytest.mark.parametrize(
    ("prefix", "prompt"),
    [
        (PREFIX[: prefixes.MIN_IDS - 1], PROMPT),
        (PREFIX, list(PREFIX)),
        (PREFIX, [*PREFIX[:-1], 7, 8, 9]),
        ((), PROMPT),
    ],
    ids=["short", "nothing follows", "another beginning", "none"],
)
def test_nothing_is_kept(tiny_loaded, prefix, prompt):
    logits_of(begun(tiny_loaded, prefix), prompt)
    assert prefixes.saved() == []


def test_the_shortest_prefix_that_is_kept(tiny_loaded):
    save(tiny_loaded, PREFIX[: prefixes.MIN_IDS])
    assert logits_of(begun(tiny_loaded, PREFIX[: prefixes.MIN_IDS]), PROMPT)[0] == prefixes.MIN_IDS


def test_it_can_be_switched_off(tiny_loaded, monkeypatch, folder):
    save(tiny_loaded)
    monkeypatch.setenv("CONSTRAINED_AGENT_PREFIXES", "none")
    assert logits_of(begun(tiny_loaded), PROMPT)[0] == 0
    assert (prefixes.directory(), prefixes.saved()) == (None, [])


def test_it_can_lie_elsewhere(tiny_loaded, monkeypatch, tmp_path):
    monkeypatch.setenv("CONSTRAINED_AGENT_PREFIXES", str(tmp_path / "elsewhere"))
    assert save(tiny_loaded).parent == tmp_path / "elsewhere"


def test_caches_that_forget_are_not_kept(tiny_loaded):
    module = copy.copy(tiny_loaded.module)
    module.make_cache = lambda: [kv.RotatingKVCache(max_size=64) for _ in tiny_loaded.module.layers]
    session = begun(dataclasses.replace(tiny_loaded, module=module))
    logits_of(session, PROMPT)
    assert prefixes.saved() == []


# Another model, another prefix


def test_another_prefix_is_another_file(tiny_loaded):
    save(tiny_loaded)
    other = (*PREFIX[:-1], 7)
    assert logits_of(begun(tiny_loaded, other), [*other, 5, 6])[0] == 0
    assert len(prefixes.saved()) == 2


def test_other_weights_do_not_load_it(tiny_loaded, other_loaded):
    save(tiny_loaded)
    assert logits_of(begun(other_loaded), PROMPT)[0] == len(PREFIX), "loaded again, it is the same model"
    norm = other_loaded.module.layers[1].input_layernorm
    norm.weight = norm.weight * 1.01
    session = begun(other_loaded)
    assert logits_of(session, PROMPT)[0] == 0
    assert len(prefixes.saved()) == 2


def test_other_float_types_do_not_load_it(tiny_loaded, other_loaded):
    save(tiny_loaded)
    other_loaded.module.set_dtype(mx.float16)
    assert logits_of(begun(dataclasses.replace(other_loaded, float_type="float16")), PROMPT)[0] == 0


def test_packed_weights_do_not_load_it(tiny_loaded, other_loaded):
    from mlx import nn

    save(tiny_loaded)
    nn.quantize(other_loaded.module, group_size=32, bits=4)
    assert logits_of(begun(other_loaded), PROMPT)[0] == 0


def test_other_settings_do_not_load_it(tiny_loaded, other_loaded):
    save(tiny_loaded)
    other_loaded.module.args.rope_theta = 10_000.0
    assert logits_of(begun(other_loaded), PROMPT)[0] == 0


def test_weight_files_that_changed_do_not_load_it(tiny_loaded, tmp_path):
    origin = tmp_path / "model"
    origin.mkdir()
    for name in ("model.safetensors", "config.json"):
        (origin / name).write_text("{}")
    loaded = dataclasses.replace(tiny_loaded, origin=origin)
    save(loaded)
    assert logits_of(begun(loaded), PROMPT)[0] == len(PREFIX)
    os.utime(origin / "model.safetensors", (1, 1))
    assert logits_of(begun(loaded), PROMPT)[0] == 0
    (origin / "config.json").unlink()
    assert logits_of(begun(loaded), PROMPT)[0] == 0
    assert len(prefixes.saved()) == 2, "what it was made from is unknown now"


# Files that are not right


def rewritten(change):
    """Save the cache in a file once more, after a change of its layers or of what is said of it."""

    def damage(path):
        cache, facts = kv.load_prompt_cache(str(path), return_metadata=True)
        mx.eval([layer.state for layer in cache])
        cache = change(cache, facts) or cache
        kv.save_prompt_cache(str(path), cache, facts)

    return damage


def bytes_changed(change):
    return lambda path: path.write_bytes(change(path.read_bytes()))


def flipped(data):
    at = len(data) // 2
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def other_ids(cache, facts):
    facts["ids"] = facts["ids"].replace("1050", "1051")


def no_facts(cache, facts):
    facts.clear()


def other_shape(cache, facts):
    """Consistent in itself, as if another model had written it."""
    for layer in cache:
        layer.keys, layer.values = layer.keys[..., :8], layer.values[..., :8]


def shorter(cache, facts):
    for layer in cache:
        layer.keys, layer.values, layer.offset = layer.keys[..., :50, :], layer.values[..., :50, :], 50


def fewer_layers(cache, facts):
    facts["digest"] = prefixes._digest(cache[:1])
    return cache[:1]


def other_class(cache, facts):
    rotating = [kv.RotatingKVCache(max_size=1000) for _ in cache]
    for new, old in zip(rotating, cache, strict=True):
        new.update_and_fetch(old.keys, old.values)
    return rotating


@pytest.mark.parametrize(
    "damage",
    [
        bytes_changed(lambda data: b""),
        bytes_changed(lambda data: data[:100]),
        bytes_changed(lambda data: data[:-1]),
        bytes_changed(lambda data: data[: len(data) // 2]),
        bytes_changed(lambda data: bytes(len(data))),
        bytes_changed(lambda data: data[: len(data) // 2] + bytes(len(data) - len(data) // 2)),
        bytes_changed(flipped),
        bytes_changed(lambda data: data.replace(b'"KVCache"', b'"NoCache"')),
        bytes_changed(lambda data: data.replace(b'"scalar"', b'"scalxr"')),
        rewritten(other_ids),
        rewritten(no_facts),
        rewritten(other_shape),
        rewritten(shorter),
        rewritten(fewer_layers),
        rewritten(other_class),
        lambda path: mx.save_safetensors(str(path), {"a": mx.zeros(3)}),
    ],
    ids=[
        *(
            "empty",
            "head cut",
            "a byte short",
            "half",
            "zeros",
            "half zeros",
            "a bit flipped",
            "no such class",
        ),
        *("no such type", "other ids", "no facts", "other shape", "shorter", "fewer layers", "other class"),
        "no cache",
    ],
)
def test_a_file_that_is_not_right_is_removed_and_the_prompt_runs(tiny_loaded, damage):
    _, expected = logits_of(begun(tiny_loaded), PROMPT)
    (file,) = prefixes.saved()
    damage(file.path)
    assert begun(tiny_loaded)._prefixes.load(PREFIX) is None
    assert not file.path.exists()

    logits_of(begun(tiny_loaded), PROMPT)
    damage(file.path)
    reused, logits = logits_of(begun(tiny_loaded), PROMPT)
    assert reused == 0
    assert np.allclose(logits, expected, atol=1e-4)
    assert logits_of(begun(tiny_loaded), PROMPT)[0] == len(PREFIX), "written anew"


def test_random_damage(tiny_loaded):
    """Any byte of a file may be any other: it is loaded as it was saved, or not at all."""
    path = save(tiny_loaded)
    session = begun(tiny_loaded)
    whole, saved = path.read_bytes(), session._prefixes.load(PREFIX)
    n_head = 8 + int.from_bytes(whole[:8], "little")
    rng = np.random.default_rng(1)
    n_loaded = 0
    for number in range(300):
        data = bytearray(whole)
        # Most of them where the file says what is in it.
        for at in rng.integers(n_head if number % 5 else len(whole), size=rng.integers(1, 4)):
            data[at] = rng.integers(256)
        path.write_bytes(data)
        if loaded := session._prefixes.load(PREFIX):
            n_loaded += 1
            assert all(mx.array_equal(a.keys, b.keys) for a, b in zip(loaded, saved, strict=True))
            assert all(mx.array_equal(a.values, b.values) for a, b in zip(loaded, saved, strict=True))
    assert n_loaded < 30


# The folder


def test_only_its_owner_can_read_it(tiny_loaded, folder):
    path = save(tiny_loaded)
    assert path.parent == folder
    assert (path.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [file.name for file in folder.iterdir()] == [path.name]


def test_a_folder_that_cannot_be_made_costs_nothing_but_time(tiny_loaded, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CONSTRAINED_AGENT_CACHE", str(tmp_path / "file"))
    assert logits_of(begun(tiny_loaded), PROMPT)[0] == 0
    assert logits_of(begun(tiny_loaded), PROMPT)[0] == 0


def test_a_folder_that_is_read_only_is_read(tiny_loaded, folder):
    """Where the tests are root, who may write everywhere, it shows only that the file is used."""
    save(tiny_loaded)
    folder.chmod(0o500)
    try:
        assert logits_of(begun(tiny_loaded), PROMPT)[0] == len(PREFIX)
        logits_of(begun(tiny_loaded, PREFIX[:80]), PROMPT)
    finally:
        folder.chmod(0o700)


def test_a_full_disk_costs_nothing_but_time(tiny_loaded, folder):
    """A limit on the size of files stands for it: writes fail halfway."""
    session = begun(tiny_loaded)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        reused, logits = logits_of(session, PROMPT)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert reused == 0
    assert list(folder.iterdir()) == []
    assert np.allclose(logits, logits_of(Session(tiny_loaded), PROMPT)[1], atol=1e-4)


def aged(path, used):
    os.utime(path, (used, used))
    return path


def test_the_least_recently_used_files_go(tiny_loaded, folder, monkeypatch):
    monkeypatch.setattr(prefixes, "MAX_FILES", 3)
    oldest, middle, newest = (
        aged(save(tiny_loaded, (*PREFIX, n)), used) for n, used in ((1, 100), (2, 200), (3, 300))
    )
    strange = folder / "model.safetensors"
    strange.write_text("somebody else's")
    assert logits_of(begun(tiny_loaded, (*PREFIX, 1)), [*PREFIX, 1, 9])[0] == len(PREFIX) + 1
    added = save(tiny_loaded, (*PREFIX, 4))
    assert {file.path for file in prefixes.saved()} == {oldest, newest, added}
    assert not middle.exists()
    assert strange.exists()


def test_files_go_until_they_are_small_enough_together(tiny_loaded, monkeypatch):
    old = aged(save(tiny_loaded), 100)
    monkeypatch.setattr(prefixes, "MAX_BYTES", old.stat().st_size * 3 // 2)
    new = save(tiny_loaded, (*PREFIX, 1))
    assert [file.path for file in prefixes.saved()] == [new]
    monkeypatch.setattr(prefixes, "MAX_BYTES", 1_000)
    logits_of(begun(tiny_loaded, (*PREFIX, 2)), [*PREFIX, 2, 5])
    assert [file.path for file in prefixes.saved()] == [new], "one that is too large alone is not written"


SAVE_OFTEN = """
import sys
from constrained_agent.model import cards, weights
from constrained_agent.model.session import Session

session = Session(weights.load(cards.resolve(sys.argv[1])))
session.prefix = tuple(range(1000, 1100))
with session.running():
    session.prefill([*session.prefix, 5])
print("ready", flush=True)
sys.stdin.readline()
for _ in range(100):
    session._prefixes.save(session.prefix, session._cache)
"""


def test_two_processes_save_while_a_third_loads(tiny_loaded, tiny_qwen3_dir, folder):
    with contextlib.ExitStack() as ended:
        writers = [
            ended.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", SAVE_OFTEN, str(tiny_qwen3_dir)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
                )
            )
            for _ in range(2)
        ]
        for writer in writers:
            assert writer.stdout.readline() == "ready\n"
        session = begun(tiny_loaded)
        for writer in writers:
            writer.stdin.write("go\n")
            writer.stdin.flush()
        while any(writer.poll() is None for writer in writers):
            assert session._prefixes.load(PREFIX), "at every moment one whole file has the name"
    assert [writer.returncode for writer in writers] == [0, 0]
    assert session._prefixes.load(PREFIX)
    assert len(list(folder.iterdir())) == 1


# `models prefixes`


def test_they_can_be_looked_at_and_removed(tiny_loaded, folder, capsys, monkeypatch):
    assert app.run(["models", "prefixes"]) == 0
    assert capsys.readouterr().out == f"{folder}: files: 0, 0 MB\n"
    path = save(tiny_loaded)
    assert app.run(["models", "prefixes", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["folder"] == str(folder)
    assert [file["path"] for file in found["files"]] == [str(path)]
    assert app.run(["models", "prefixes", "--clear"]) == 0
    assert list(folder.iterdir()) == []
    monkeypatch.setenv("CONSTRAINED_AGENT_PREFIXES", "none")
    capsys.readouterr()
    assert app.run(["models", "prefixes"]) == 0
    assert "CONSTRAINED_AGENT_PREFIXES=none" in capsys.readouterr().out
