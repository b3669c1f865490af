"""The fields of one event of a transcript, taken out by name and type; what is wrong is named by line and field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from constrained_agent.errors import UserError


class Fields:
    """An event's object, or one inside it. Every method raises UserError where the type is another one."""

    def __init__(self, line: int, values: Mapping[str, Any], where: str) -> None:
        """Args: `where` names file and line, and the place in the event."""
        self.line, self.values, self.where = line, values, where
        self.where = f"{where} ({self.text('event')})" if "event" in values else where

    def base(self) -> tuple[int, str, float, bool, Mapping[str, Any]]:
        """What every event has."""
        masked = self.values.get("masked") is True
        return self.line, self.text("event"), self.number("time"), masked, self.values

    def text(self, key: str, default: str | None = None) -> str:
        return str(self._get(key, str, default))

    def optional_text(self, key: str) -> str | None:
        return None if self.values.get(key) is None else self.text(key)

    def integer(self, key: str, default: int | None = None) -> int:
        return int(self._get(key, int, default))

    def optional_integer(self, key: str) -> int | None:
        return None if self.values.get(key) is None else self.integer(key)

    def number(self, key: str) -> float:
        return float(self._get(key, (int, float), None))

    def flag(self, key: str) -> bool:
        return bool(self._get(key, bool, None))

    def optional_flag(self, key: str) -> bool | None:
        return None if self.values.get(key) is None else self.flag(key)

    def mapping(self, key: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._get(key, dict, {})
        return found

    def objects(self, key: str) -> Iterator[Fields]:
        """The objects of a list; none where there is no list."""
        for at, item in enumerate(self._get(key, list, [])):
            if not isinstance(item, dict):
                raise UserError(f"{self.where}: {key}[{at}] must be an object, not {type(item).__name__}")
            yield Fields(self.line, item, f"{self.where}: {key}[{at}]")

    def texts(self, key: str) -> tuple[str, ...]:
        """The texts of a list; none where there is no list."""
        return tuple(self._items(key, str))

    def counts(self, key: str) -> tuple[int, ...] | None:
        """The integers of a list, none of them below 0; None where there is no list."""
        if self.values.get(key) is None:
            return None
        counts: tuple[int, ...] = tuple(self._items(key, int))
        for at, count in enumerate(counts):
            if count < 0:
                raise UserError(f"{self.where}: {key}[{at}] must be 0 or more, not {count}")
        return counts

    def _items(self, key: str, kind: type) -> list[Any]:
        found: list[Any] = self._get(key, list, [])
        for at, item in enumerate(found):
            if not isinstance(item, kind) or isinstance(item, bool):
                raise UserError(
                    f"{self.where}: {key}[{at}] must be of type {kind.__name__}, not {type(item).__name__}"
                )
        return found

    def _get(self, key: str, kind: type | tuple[type, ...], default: Any) -> Any:
        value = self.values.get(key, default)
        if value is None:
            raise UserError(f"{self.where}: `{key}` is missing")
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            names = " or ".join(t.__name__ for t in (kind if isinstance(kind, tuple) else (kind,)))
            raise UserError(f"{self.where}: `{key}` must be of type {names}, not {type(value).__name__}")
        return value
