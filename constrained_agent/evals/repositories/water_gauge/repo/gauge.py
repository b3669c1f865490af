"""Water levels at a gauge, and figures over the latest of them."""

from collections import deque


class Gauge:
    """Keeps the latest readings of one gauge, in centimetres.

    Every figure is over the latest `count` readings, or over all of them if there are fewer.
    """

    def __init__(self, name, capacity=288):
        self.name = name
        self._levels = deque(maxlen=capacity)

    def record(self, level_cm):
        """Take one reading; the oldest goes when there are too many."""
        self._levels.append(float(level_cm))

    def __len__(self):
        return len(self._levels)

    def mean(self, count):
        """The mean of the latest readings."""
        self._check(count)
        latest = list(self._levels)[-count:]
        return sum(latest) / len(latest)

    def lowest(self, count):
        """The lowest of the latest readings."""
        self._check(count)
        latest = list(self._levels)[-count:]
        return min(latest)

    def highest(self, count):
        """The highest of the latest readings."""
        self._check(count)
        latest = list(self._levels)[-count:]
        return max(latest)

    def change(self, count):
        """By how much the level rose (or fell, then negative) from the first of the latest readings to the last."""
        self._check(count)
        latest = list(self._levels)[-count - 1 :]
        return latest[-1] - latest[0]

    def spread(self, count):
        """The difference between the highest and the lowest of the latest readings."""
        self._check(count)
        latest = list(self._levels)[-count:]
        return max(latest) - min(latest)

    def _check(self, count):
        if count < 1:
            raise ValueError(f"{count} readings: at least one is needed")
        if not self._levels:
            raise ValueError(f"{self.name} has no readings yet")
