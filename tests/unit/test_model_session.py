"""The KV cache belongs to the ids that were run, whatever happened before."""

import threading

import mlx.core as mx
import numpy as np
import pytest

from constrained_agent.errors import PromptTooLongError
from constrained_agent.model.session import Session

PROMPT = [151644, 872, 198, 6023, 151645, 198, 9, 8, 7, 6, 5]


@pytest.fixture
def session(tiny_loaded):
    return Session(tiny_loaded)


def logits_of(session, ids):
    with session.running():
        reused = session.prefill(ids)
        return reused, np.array(session.forward([ids[-1]])[-1])


def test_a_longer_prompt_runs_only_what_is_new(session, tiny_loaded):
    logits_of(session, PROMPT)
    longer = [*PROMPT, 1, 2, 3]
    reused, warm = logits_of(session, longer)
    assert reused == len(PROMPT)
    _, cold = logits_of(Session(tiny_loaded), longer)
    assert np.allclose(warm, cold, atol=1e-4)
    assert list(session.ids) == longer


def test_another_prompt_keeps_the_common_prefix(session, tiny_loaded):
    logits_of(session, PROMPT)
    other = [*PROMPT[:4], 99, 98, 97]
    reused, warm = logits_of(session, other)
    assert reused == 4
    _, cold = logits_of(Session(tiny_loaded), other)
    assert np.allclose(warm, cold, atol=1e-4)


def test_the_same_prompt_again_reruns_its_last_id(session):
    _, first = logits_of(session, PROMPT)
    reused, second = logits_of(session, PROMPT)
    assert reused == len(PROMPT) - 1
    assert np.allclose(first, second, atol=1e-4)


def test_a_pass_over_an_unknown_token_equals_one_over_a_known(session, tiny_loaded):
    with session.running():
        session.prefill(PROMPT)
        drawn = mx.argmax(session.forward([PROMPT[-1]])[-1]).astype(mx.int32)
        lazy = session.forward_lazy(drawn)
        session.confirm(int(drawn.item()))
        lazy = np.array(lazy[-1])
    _, known = logits_of(Session(tiny_loaded), [*PROMPT, int(drawn.item())])
    assert np.allclose(lazy, known, atol=1e-4)
    assert session.ids == (*PROMPT, int(drawn.item()))


def test_what_an_interrupt_left_in_the_cache_is_trimmed(session, tiny_loaded):
    """Ctrl-C between a pass and its record: the cache is ahead of the ids, in some layers only."""
    with session.running():
        session.prefill(PROMPT)
        session.forward([PROMPT[-1]])
        session.forward_lazy(mx.array(5))  # never confirmed
        session._cache[0].offset -= 1  # this layer was not reached
    reused, warm = logits_of(session, [*PROMPT, 17])
    assert reused == len(PROMPT)
    _, cold = logits_of(Session(tiny_loaded), [*PROMPT, 17])
    assert np.allclose(warm, cold, atol=1e-4)


def test_a_cache_that_cannot_be_trimmed_is_refilled(session, tiny_loaded, monkeypatch):
    from constrained_agent.model import session as module

    logits_of(session, PROMPT)
    monkeypatch.setattr(module.kv, "can_trim_prompt_cache", lambda cache: False)
    reused, warm = logits_of(session, [*PROMPT[:4], 99])
    assert reused == 0
    _, cold = logits_of(Session(tiny_loaded), [*PROMPT[:4], 99])
    assert np.allclose(warm, cold, atol=1e-4)


def test_a_trim_that_trims_less_than_asked_is_refilled(session, monkeypatch):
    logits_of(session, PROMPT)
    monkeypatch.setattr(session._cache[1], "trim", lambda n: 0)
    reused, _ = logits_of(session, [*PROMPT[:4], 99])
    assert reused == 0


def test_long_prompts_run_in_chunks_and_report(session, tiny_loaded):
    ids = list(range(1000, 1500))
    seen = []
    with session.running():
        session.prefill(ids, lambda done, total: seen.append((done, total)))
    assert seen[0] == (0, 500)
    assert seen[-1] == (500, 500)
    assert len(seen) > 3
    assert session.ids == tuple(ids[:-1])


def test_a_prompt_beyond_the_context_is_refused_before_any_work(session):
    with pytest.raises(PromptTooLongError, match="40,960"):
        session.prefill([1] * session.context_limit)
    assert session.ids == ()


def test_memory_limits_the_context(tiny_loaded, monkeypatch):
    from constrained_agent.model import memory

    monkeypatch.setattr(memory, "available_bytes", lambda: tiny_loaded.kv_bytes_per_token * 400)
    session = Session(tiny_loaded)
    assert session.context_limit == 300
    with pytest.raises(PromptTooLongError, match="fits into memory"):
        session.room(300)


def test_a_worker_thread_goes_on_where_the_main_thread_was(session, tiny_loaded):
    logits_of(session, PROMPT)
    results = []
    worker = threading.Thread(target=lambda: results.append(logits_of(session, [*PROMPT, 3])))
    worker.start()
    worker.join()
    reused, warm = results[0]
    assert reused == len(PROMPT)
    _, cold = logits_of(Session(tiny_loaded), [*PROMPT, 3])
    assert np.allclose(warm, cold, atol=1e-4)
    assert logits_of(session, [*PROMPT, 3, 4])[0] == len(PROMPT) + 1


def test_a_cache_that_cannot_be_trimmed_is_kept_when_it_only_grows(session, monkeypatch):
    from constrained_agent.model import session as module

    logits_of(session, PROMPT)
    monkeypatch.setattr(module.kv, "can_trim_prompt_cache", lambda cache: False)
    assert logits_of(session, [*PROMPT, 3, 4])[0] == len(PROMPT)


@pytest.mark.parametrize("trimmable", [True, False])
def test_cut_takes_the_last_id_back(session, tiny_loaded, monkeypatch, trimmable):
    from constrained_agent.model import session as module

    monkeypatch.setattr(module.kv, "can_trim_prompt_cache", lambda cache: trimmable)
    with session.running():
        session.prefill(PROMPT)
        session.forward([PROMPT[-1]])
        session.forward_lazy(mx.array(5))
        session.confirm(5)
        session.cut(1)
        assert session.ids == tuple(PROMPT)
        warm = np.array(session.forward([17])[-1])
    _, cold = logits_of(Session(tiny_loaded), [*PROMPT, 17])
    assert np.allclose(warm, cold, atol=1e-4)
