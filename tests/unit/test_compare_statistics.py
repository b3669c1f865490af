"""Rates with intervals, and differences of pairs."""

import random

import pytest
from scipy.stats import binomtest

from constrained_agent.evals.compare import statistics


def alone(k, n):
    """As many items as answers."""
    return [(f"item {number}", number < k) for number in range(n)]


def pairs(gained=0, lost=0, both=0, neither=0):
    kinds = [(False, True)] * gained + [(True, False)] * lost + [(True, True)] * both
    kinds += [(False, False)] * neither
    return [(f"item {n}", *kind) for n, kind in enumerate(kinds)]


def repeated(answers, samples):
    """The same answers so many times: samples that are all alike."""
    return [answer for answer in answers for _ in range(samples)]


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    # z = 1.959964; low, high = (k + z²/2 ± z √(k (n-k) / n + z²/4)) / (n + z²)
    [(0, 10, 0.0, 0.277533), (5, 10, 0.236593, 0.763407), (10, 10, 0.722467, 1.0), (1, 1, 0.206549, 1.0)],
)
def test_wilson(k, n, low, high):
    found = statistics.rate(alone(k, n))
    assert (found.k, found.n, found.n_effective, found.share) == (k, n, n, k / n)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-6)


@pytest.mark.parametrize("n", [1, 2, 34, 200])
def test_with_one_sample_it_is_what_scipy_calls_wilson(n):
    for k in range(n + 1):
        expected = binomtest(k, n).proportion_ci(0.95, method="wilson")
        found = statistics.rate(alone(k, n))
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_a_rate_of_nothing():
    assert statistics.rate([]) == statistics.Rate(0, 0, 0.0, 0.0, 1.0)
    assert statistics.rate([]).share == 0.0


@pytest.mark.parametrize(("k", "n"), [(0, 34), (4, 34), (17, 34), (34, 34), (1, 1)])
@pytest.mark.parametrize("samples", [2, 5])
def test_samples_that_are_all_alike_tell_nothing_more(k, n, samples):
    found, once = statistics.rate(repeated(alone(k, n), samples)), statistics.rate(alone(k, n))
    assert (found.k, found.n) == (k * samples, n * samples)
    assert found.n_effective == pytest.approx(n)
    assert (found.low, found.high) == pytest.approx((once.low, once.high))


def test_samples_that_have_nothing_in_common_count_each():
    rng = random.Random(0)
    found = statistics.rate([(f"item {n // 4}", rng.random() < 0.3) for n in range(4_000)])
    assert 3_500 < found.n_effective <= 4_000
    opposite = statistics.rate([(f"item {n // 2}", n % 2 == 0) for n in range(40)])
    assert opposite.n_effective == 40, "never more than there are"


def test_samples_of_one_item_tell_of_that_item_alone():
    assert statistics.rate([("one", n < 4) for n in range(9)]).n_effective == 1


@pytest.mark.parametrize("resemblance", [0.1, 0.5, 0.9])
def test_intervals_hold_the_truth_as_often_as_they_say(resemblance):
    rng, share, found = random.Random(1), 0.3, 0
    a, b = (one * (1 - resemblance) / resemblance for one in (share, 1 - share))
    for _ in range(200):
        of_items = [(f"item {n}", rng.betavariate(a, b)) for n in range(34)]
        made = statistics.rate([(item, rng.random() < p) for item, p in of_items for _ in range(5)])
        found += made.low <= share <= made.high
    assert found >= 180, "about 190 are expected, and some 140 if samples counted as independent"


@pytest.mark.parametrize(
    ("gained", "lost", "p"),
    # Two-sided: 2 × the sum of (n choose i) / 2ⁿ up to the smaller of both, 1 at most
    [
        (5, 0, 0.0625),
        (0, 5, 0.0625),
        (6, 0, 0.03125),
        (8, 2, 2 * 56 / 1024),
        (3, 3, 1.0),
        (1, 0, 1.0),
        (0, 0, 1.0),
    ],
)
@pytest.mark.parametrize("samples", [1, 5])
def test_mcnemar_whatever_the_number_of_equal_samples(gained, lost, p, samples):
    found = statistics.difference(repeated(pairs(gained, lost, both=3, neither=4), samples))
    assert found.p == pytest.approx(p)
    assert (found.n, found.n_items) == ((gained + lost + 7) * samples, gained + lost + 7)
    assert (found.gained, found.lost) == (gained, lost)
    assert found.difference == pytest.approx((gained - lost) / (gained + lost + 7))
    if found.low is not None:
        assert found.low <= found.difference <= found.high


def test_an_item_counts_by_the_mean_over_its_samples():
    more = [("a", False, True), ("a", False, True), ("a", True, False)]
    tie = [("b", False, True), ("b", True, False)]
    less = [("c", True, False), ("c", True, True)]
    found = statistics.difference([*more, *tie, *less])
    assert (found.n, found.n_items, found.gained, found.lost, found.p) == (7, 3, 1, 1, 1.0)
    assert found.difference == 0


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ([], "no pairs"),
        (pairs(gained=1), "one item"),
        ([("one", False, True)] * 9, "one item"),  # samples of one item are no evidence about others
        (pairs(both=2, neither=2), "no pair differs"),
        (repeated(pairs(both=2, neither=2), 3), "no pair differs"),
        (pairs(gained=4), "all items differ alike"),
        (repeated(pairs(lost=4), 2), "all items differ alike"),
        ([("a", True, False), ("a", False, True), ("b", True, True)], "all items differ alike"),
    ],
)
def test_where_nothing_varies_there_is_no_interval(found, why):
    made = statistics.difference(found)
    assert (made.low, made.high, made.no_interval) == (None, None, why)


def test_bootstrap():
    made = statistics.difference(pairs(gained=30, lost=10, both=60))
    # Of 100 differences, 30 × 1, 10 × -1: mean 0.2, standard error √(0.4 - 0.04) / 10 = 0.06
    assert (made.low, made.high) == pytest.approx((0.2 - 1.96 * 0.06, 0.2 + 1.96 * 0.06), abs=0.02)
    assert statistics.difference(pairs(gained=30, lost=10, both=60)) == made, "no chance in it"
    many = [(f"item {n // 4}", False, n % 8 < 4) for n in range(160)]  # 40 items, 4 equal samples each
    alone = [(f"item {n}", False, n % 2 == 0) for n in range(160)]
    assert width(many) > 1.5 * width(alone)


def width(found):
    made = statistics.difference(found)
    return made.high - made.low
