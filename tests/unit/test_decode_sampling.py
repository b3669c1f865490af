"""Drawing tokens: what each setting may give, and that a seed gives the same draw."""

import mlx.core as mx
import numpy as np
import pytest

from constrained_agent.decode import mask
from constrained_agent.decode.sampling import Sampling, _top, sample, sample_masked

LOGITS = mx.array([0.0, 3.0, -float("inf"), 2.0, 1.0, -1.0])


def draws(sampling, n=200):
    return [int(sample(LOGITS, sampling, mx.random.key(seed)).item()) for seed in range(n)]


def test_temperature_zero_takes_the_most_likely():
    assert set(draws(Sampling(), 3)) == {1}


def test_never_a_forbidden_token():
    assert 2 not in draws(Sampling(temperature=5.0))


def test_top_k_keeps_k():
    assert set(draws(Sampling(temperature=5.0, top_k=2))) == {1, 3}


def test_top_p_keeps_the_smallest_set_that_reaches_it():
    # probabilities at temperature 1: about 0.03, 0.62, 0, 0.23, 0.08, 0.01
    assert set(draws(Sampling(temperature=1.0, top_p=0.6))) == {1}
    assert set(draws(Sampling(temperature=1.0, top_p=0.8))) == {1, 3}


def test_top_k_wider_than_the_vocabulary_is_off():
    assert set(draws(Sampling(temperature=5.0, top_k=50))) == {0, 1, 3, 4, 5}


def test_top_k_with_fewer_allowed_tokens_than_k():
    logits = mx.array([-float("inf")] * 30 + [0.5])
    assert int(sample(logits, Sampling(temperature=1.0, top_k=20, top_p=0.9), mx.random.key(0)).item()) == 30


@pytest.mark.parametrize("width", [1, 31, 128 * 79, 128 * 80, 128 * 80 + 1, 151_936])
def test_the_k_most_likely_are_those_of_a_full_sort(width):
    """Widths below, at and beside those for which only some rows are sorted."""
    rng = np.random.default_rng(width)
    for k in (1, 20, 21):
        logits = rng.permutation(width).astype(np.float32)
        logits[rng.random(width) < 0.3] = -np.inf
        found = np.array(_top(mx.array(logits), min(k, width)))
        assert len(set(found.tolist())) == min(k, width)
        assert np.array_equal(np.sort(logits[found]), np.sort(logits)[-k:])


def test_the_k_most_likely_stand_together_and_some_are_alike():
    logits = np.zeros(128 * 100, dtype=np.float32)
    logits[640:660] = 2
    assert set(np.array(_top(mx.array(logits), 20)).tolist()) == set(range(640, 660))
    logits[640:645] = 1
    found = np.array(_top(mx.array(logits), 22))
    assert set(range(640, 660)) < set(found.tolist())
    assert len(set(found.tolist())) == 22


@pytest.mark.parametrize("setting", [Sampling(), Sampling(0.7, 0.8, 20), Sampling(1.0), Sampling(1.0, 0.9)])
def test_drawing_under_a_mask_is_drawing_what_the_mask_leaves(setting):
    rng = np.random.default_rng(4)
    logits = mx.array(rng.normal(size=12_800).astype(np.float32))
    words = rng.integers(0, 2**32, 400, dtype=np.uint32)
    for seed in range(20):
        key = mx.random.key(seed)
        token = int(sample_masked(logits, mx.array(words), setting, key).item())
        assert token == int(sample(mask.apply(logits, words), setting, key).item())
        assert words[token // 32] >> np.uint32(token % 32) & 1


def test_the_same_key_gives_the_same_token():
    setting = Sampling(temperature=1.0, top_p=0.9, top_k=3)
    assert draws(setting, 20) == draws(setting, 20)


def test_frequencies_follow_the_softmax():
    logits = mx.array([0.0, 1.0])
    drawn = np.mean(
        [int(sample(logits, Sampling(temperature=1.0), mx.random.key(seed)).item()) for seed in range(2000)]
    )
    assert drawn == pytest.approx(np.e / (1 + np.e), abs=0.04)


@pytest.mark.parametrize("bad", [{"temperature": -1}, {"top_p": 0}, {"top_p": 1.5}, {"top_k": -1}])
def test_settings_that_make_no_sense_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        Sampling(**bad)
