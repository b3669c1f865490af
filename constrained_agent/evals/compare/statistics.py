"""Rates with intervals, and differences between arms on the same items.

One answer to each item: Wilson's interval (E. B. Wilson, 1927) for a rate; for two arms the exact McNemar test (a
binomial test of the pairs in which they differ; Q. McNemar, 1947) and a percentile bootstrap of the difference.

Several answers to each item resemble each other, so they are not as many independent ones. A rate's interval is then
Wilson's on an effective number of answers: their number divided by the design effect of clusters (L. Kish, 1965), by
which the spread of the items' own rates exceeds what independent answers would show. The test is an exact sign test of
items, by the mean over their samples. With one sample both are what stands above, to the digit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from typing import Literal

import numpy as np

LEVEL = 0.95
"""Of all intervals."""

N_RESAMPLES = 5_000
_SEED = 0  # the same records give the same figures

NO_PAIR_DIFFERS: Literal["no pair differs"] = "no pair differs"

NoInterval = Literal["", "no pairs", "no pair differs", "one item", "all items differ alike"]
"""Why there is no bootstrap interval, if there is none: it would be a single point, which looks certain and is not."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A share of all answers.

    Attributes:
        k, n: counted, and all.
        n_effective: independent answers that would tell as much; `n` where each item has one.
        low, high: the interval; 0 and 1 where there is nothing.
    """

    k: int
    n: int
    n_effective: float
    low: float
    high: float

    @property
    def share(self) -> float:
        return self.k / self.n if self.n else 0.0


@dataclass(frozen=True, slots=True)
class Difference:
    """Between two arms, in pairs of answers to the same item with the same seed.

    Attributes:
        n: pairs.
        n_items: items that they are about.
        gained, lost: items of which the second arm's answers count more often than the first's, and less often.
        difference: second minus first, as a share of all pairs.
        low, high: its bootstrap interval; items are drawn, each with all of its samples. None where there is none.
        no_interval: why not; empty where there is one.
        p: two-sided, of `gained` against `lost`; 1 where no item differs.
    """

    n: int
    n_items: int
    gained: int
    lost: int
    difference: float
    low: float | None
    high: float | None
    no_interval: NoInterval
    p: float


def rate(values: Sequence[tuple[str, bool]]) -> Rate:
    """The share of true ones.

    Args:
        values: item, whether it counts.
    """
    from scipy.stats import norm

    k, n = sum(counts for _, counts in values), len(values)
    if n == 0:
        return Rate(0, 0, 0.0, 0.0, 1.0)
    effective = _effective(values, k / n)
    z = float(norm.ppf((1 + LEVEL) / 2))
    share = k / n
    middle = (share + z**2 / (2 * effective)) / (1 + z**2 / effective)
    reach = z * sqrt(share * (1 - share) / effective + (z / (2 * effective)) ** 2) / (1 + z**2 / effective)
    low = middle - reach if k else 0.0
    high = middle + reach if k < n else 1.0
    return Rate(k, n, effective, low, high)


def difference(pairs: Sequence[tuple[str, bool, bool]]) -> Difference:
    """How much more often the second is true than the first.

    Args:
        pairs: item, first, second.
    """
    from scipy.stats import binomtest

    changes = _by_item([(item, int(second) - int(first)) for item, first, second in pairs])
    sums = [sum(found) for found in changes.values()]
    gained, lost = sum(one > 0 for one in sums), sum(one < 0 for one in sums)
    p = float(binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0
    reason = _no_interval(changes)
    low, high = (None, None) if reason else _bootstrap(sums, [len(found) for found in changes.values()])
    mean = sum(sums) / len(pairs) if pairs else 0.0
    return Difference(len(pairs), len(changes), gained, lost, mean, low, high, reason, p)


def _effective(values: Sequence[tuple[str, bool]], share: float) -> float:
    """Answers divided by the design effect, between the number of items (all samples of an item agree) and of answers.

    Where all answers agree, nothing is seen of how samples resemble each other: the number of items then.
    """
    items = _by_item([(item, int(counts)) for item, counts in values])
    n = len(values)
    if share in (0.0, 1.0) or len(items) == 1:
        return float(len(items))
    if len(items) == n:
        return float(n)
    spread = fsum((sum(found) - share * len(found)) ** 2 for found in items.values()) / n**2
    return n if spread == 0 else max(1.0, min(float(n), share * (1 - share) / spread))


def _by_item(values: Sequence[tuple[str, int]]) -> Mapping[str, list[int]]:
    """Values by item, items in order of their names: draws must not depend on the order of records."""
    found: dict[str, list[int]] = {item: [] for item in sorted({item for item, _ in values})}
    for item, value in values:
        found[item].append(value)
    return found


def _no_interval(changes: Mapping[str, list[int]]) -> NoInterval:
    if not changes:
        return "no pairs"
    if not any(any(found) for found in changes.values()):
        return NO_PAIR_DIFFERS
    if len(changes) == 1:
        return "one item"
    if len({sum(found) / len(found) for found in changes.values()}) == 1:
        return "all items differ alike"
    return ""


def _bootstrap(sums: Sequence[int], counts: Sequence[int]) -> tuple[float, float]:
    """The percentile interval of the mean difference, over items.

    Args:
        sums, counts: of each item's differences.
    """
    from scipy.stats import bootstrap

    def mean(sums: np.ndarray, counts: np.ndarray, axis: int) -> np.ndarray:
        shares: np.ndarray = sums.sum(axis=axis) / counts.sum(axis=axis)
        return shares

    found = bootstrap(
        (np.array(sums, dtype=float), np.array(counts, dtype=float)),
        mean,
        paired=True,
        vectorized=True,
        n_resamples=N_RESAMPLES,
        confidence_level=LEVEL,
        method="percentile",
        rng=np.random.default_rng(_SEED),
    ).confidence_interval
    return (float(found.low), float(found.high))
