"""Tells work on the CPU that a running pass hides from work that the device waits for."""

from __future__ import annotations

import time


class Clock:
    """Adds up the loop's own work, draw by draw.

    States: a pass *runs*, or the device is *idle*. The time that the model's own code and the wait for the device
    take counts as neither.

    Attributes:
        hidden_us, exposed_us: for each draw, microseconds of work since the draw before it while a pass ran, and
            while none did.
        idle_s: how long the device had been idle when the last pass was started.
        pass_s: how long the last pass took, from its start until its first token was known.
    """

    def __init__(self) -> None:
        self.hidden_us: list[float] = []
        self.exposed_us: list[float] = []
        self.idle_s = self.pass_s = 0.0
        self._hidden = self._exposed = 0.0
        self._runs = False
        self._last = self._started = self._idle_since = time.perf_counter()

    def _note(self) -> float:
        now = time.perf_counter()
        if self._runs:
            self._hidden += now - self._last
        else:
            self._exposed += now - self._last
        self._last = now
        return now

    def model_called(self) -> None:
        """The model's code begins."""
        self._started = self._note()
        self.idle_s = 0.0 if self._runs else self._started - self._idle_since

    def model_returned(self) -> None:
        """A pass runs now."""
        self._last = time.perf_counter()
        self._runs = True

    def waits(self) -> None:
        """For a token that is being computed."""
        self._note()

    def token_known(self, *, runs_on: bool) -> None:
        """The wait is over, and so is a draw; `runs_on`: another pass is queued already."""
        self._last = self._idle_since = time.perf_counter()
        self.pass_s = self._last - self._started
        self._runs = runs_on
        self.hidden_us.append(self._hidden * 1e6)
        self.exposed_us.append(self._exposed * 1e6)
        self._hidden = self._exposed = 0.0
