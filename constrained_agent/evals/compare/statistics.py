"""Rates with intervals, and differences between arms on the same items.

Wilson's interval (E. B. Wilson, 1927) for one rate; for two arms on the same items and seeds the exact McNemar test (a
binomial test of the pairs in which they differ; Q. McNemar, 1947) and a percentile bootstrap of the difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LEVEL = 0.95
"""Of all intervals."""

N_RESAMPLES = 5_000
_SEED = 0  # the same records give the same figures


@dataclass(frozen=True, slots=True)
class Rate:
    """A share of all items.

    Attributes:
        k, n: counted, and all.
        low, high: Wilson's interval; 0 and 1 where there is nothing.
    """

    k: int
    n: int
    low: float
    high: float

    @property
    def share(self) -> float:
        return self.k / self.n if self.n else 0.0


@dataclass(frozen=True, slots=True)
class Difference:
    """Between two arms, in pairs.

    Attributes:
        n: pairs.
        gained, lost: pairs that count only in the second arm, and only in the first.
        difference: second minus first, as a share of all pairs.
        low, high: its bootstrap interval. Sources are drawn, each with all of its samples: samples of one source are
            no independent evidence.
        p: two-sided, exact McNemar; 1 where no pair differs.
    """

    n: int
    gained: int
    lost: int
    difference: float
    low: float
    high: float
    p: float


def rate(values: Sequence[bool]) -> Rate:
    """The share of true ones."""
    from scipy.stats import binomtest

    k, n = sum(values), len(values)
    if n == 0:
        return Rate(0, 0, 0.0, 1.0)
    interval = binomtest(k, n).proportion_ci(LEVEL, method="wilson")
    return Rate(k, n, float(interval.low), float(interval.high))


def difference(pairs: Sequence[tuple[str, bool, bool]]) -> Difference:
    """How much more often the second is true than the first.

    Args:
        pairs: source, first, second.
    """
    from scipy.stats import binomtest

    gained = sum(second and not first for _, first, second in pairs)
    lost = sum(first and not second for _, first, second in pairs)
    n = len(pairs)
    p = float(binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0
    low, high = _bootstrap(pairs)
    return Difference(n, gained, lost, (gained - lost) / n if n else 0.0, low, high, p)


def _bootstrap(pairs: Sequence[tuple[str, bool, bool]]) -> tuple[float, float]:
    """The percentile interval of the mean difference, over sources."""
    from scipy.stats import bootstrap

    sources = sorted({source for source, _, _ in pairs})
    if len(sources) < 2:
        return (-1.0, 1.0)
    number = {source: at for at, source in enumerate(sources)}
    sums, counts = np.zeros(len(sources)), np.zeros(len(sources))
    for source, first, second in pairs:
        sums[number[source]] += int(second) - int(first)
        counts[number[source]] += 1
    if not sums.any():
        return (0.0, 0.0)

    def mean(sums: np.ndarray, counts: np.ndarray, axis: int) -> np.ndarray:
        shares: np.ndarray = sums.sum(axis=axis) / counts.sum(axis=axis)
        return shares

    found = bootstrap(
        (sums, counts),
        mean,
        paired=True,
        vectorized=True,
        n_resamples=N_RESAMPLES,
        confidence_level=LEVEL,
        method="percentile",
        rng=np.random.default_rng(_SEED),
    ).confidence_interval
    return (float(found.low), float(found.high))
