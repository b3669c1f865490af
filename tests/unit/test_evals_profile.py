"""The profile of a step: what is counted where, and all of it on a small scale."""

from __future__ import annotations

import json

import pytest

from constrained_agent.evals import profile


def test_every_moment_of_a_step_belongs_to_one_part() -> None:
    """Two steps of a text; what comes before the first bitmask and after the last one is left out."""
    spans = [
        ("copy", 0.0, 1.0),
        ("module", 2.0, 3.0),
        ("forward", 1.5, 4.0),
        ("bitmask", 10.0, 11.0),
        ("module", 13.5, 14.0),
        ("forward_lazy", 13.0, 15.0),
        ("confirm", 18.0, 18.5),
        ("copy", 18.5, 19.0),
        ("consume", 20.0, 21.0),
        ("bitmask", 24.0, 26.0),
        ("copy", 30.0, 31.0),
        ("module", 33.0, 36.0),
        ("forward", 32.0, 37.0),
        ("bitmask", 38.0, 39.0),
        ("copy", 50.0, 51.0),
    ]
    queued, waiting = profile.steps([(name, begun / 1e6, ended / 1e6) for name, begun, ended in spans])
    assert queued == pytest.approx(
        {"bitmask": 1, "graph": 0.5, "start": 1.5, "draw": 2 + 3, "follow": 2, "rest": 1 + 3, "queued": 1}
    )
    assert waiting == pytest.approx(
        {"bitmask": 2, "graph": 3, "start": 2, "draw": 4, "follow": 1, "rest": 1 + 1, "queued": 0}
    )
    assert sum(queued.values()) - queued["queued"] == pytest.approx(24 - 10)
    assert sum(waiting.values()) - waiting["queued"] == pytest.approx(38 - 24)


class Counter:
    """Something with a property, a fact, a method and copies."""

    vocab_size = 7

    def __init__(self, n: int = 0) -> None:
        self.n = n

    @property
    def stopped(self) -> bool:
        return self.n > 1

    def consume(self, n: int) -> int:
        self.n += n
        return self.n

    def copy(self) -> Counter:
        return Counter(self.n)


def test_timers_change_nothing_but_note_what_was_called() -> None:
    watch = profile.Stopwatch()
    timed = profile.Timed(Counter(), watch)
    other = timed.copy()
    assert (timed.consume(1), other.consume(5), timed.stopped, other.stopped, other.vocab_size) == (
        1,
        5,
        False,
        True,
        7,
    )
    assert [name for name, _, _ in watch.spans] == ["copy", "consume", "consume", "stopped", "stopped"]
    assert all(begun <= ended for _, begun, ended in watch.spans)
    with pytest.raises(AttributeError):
        timed.missing  # noqa: B018


def test_every_place_is_written_with_the_real_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "MAX_TOKENS", 90)
    told: list[str] = []
    figures = json.loads(json.dumps(profile.profile(told.append, n_draws=4, n_layers=2)))
    assert told[1:] == [f"profile: {name}" for name in figures["places"]]
    assert list(figures["places"]) == ["located patch", "JSON calls", "free text", "off"]
    assert (figures["layers"], figures["logit_width"], figures["file_lines"]) == (2, 151_936, 1_000)
    for place in figures["places"].values():
        assert place["draws"] >= 4
        assert list(place["us"]) == list(profile.PARTS)
        for spread in place["us"].values():
            low, high = spread["quartiles"]
            assert 0 <= low <= spread["median"] <= high
    patch, calls, free, off = figures["places"].values()
    assert patch["forced_tokens"] > 0
    assert calls["forced_tokens"] > calls["tokens"] / 2
    assert free["forced_tokens"] == off["forced_tokens"] == 0
    assert free["queued_share"] == off["queued_share"] == 1
    rows = [row for row in profile.table(figures).splitlines() if row.startswith("|")]
    assert rows[0] == "| | located patch | JSON calls | free text | off |"
    assert len(rows) == 5 + len(profile.PARTS)
    assert {row.count("|") for row in rows} == {6}
