"""Whether the value of an argument is among those that are right for it: loosely, as the leaderboard does, or exactly.

Values are JSON as Python reads it. That Python holds 1, 1.0 and True for equal is kept in the loose comparison,
since the leaderboard's own check is written in Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]

LEFT_OUT = ""
"""Among the right values: the argument may be left out. As a value it is right there, too."""

_PYTHON_TYPES = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
}
_NOT_COMPARED = str.maketrans({**dict.fromkeys(" ,./-_*^"), "'": '"'})


def fits(value: Any, schema: Schema, right: Sequence[Any]) -> bool:
    """Compare by the leaderboard's rules.

    - The type is the schema's; a whole number passes for a `number`, but not within an array. If the first right
      value is of another type than the schema's (it stands for a variable, or is null), that one passes as well,
      and values are compared as they are.
    - Strings are compared without case, without spaces and `,./-_*^`, and with one kind of quote; so are strings
      within an array and within an object, but none that lie deeper.
    - An array has the elements of a right one, in its order.
    - An object has no key that the right one lacks; each key has a list of right values, and may be left out if
      that holds `""`. The objects of an array are compared one by one.

    Args:
        value: the argument.
        schema: its schema; its `type` is one word.
        right: the right values.
    """
    type_of_schema = _PYTHON_TYPES[schema["type"]]
    type_of_right = _type_of_first(right, type_of_schema)
    if not _is(value, type_of_schema):
        return type(value) is type_of_right and value in right
    element = schema.get("items", {}).get("type")
    if element and not _elements_typed(value, _PYTHON_TYPES[element], right):
        return False
    if type_of_right is not type_of_schema:
        return value in right
    if isinstance(value, dict):
        return any(_object_fits(value, one) for one in right)
    if isinstance(value, list):
        same_array = _objects_fit if element == "object" else _array_fits
        return any(same_array(value, one) for one in right)
    return _plain(value) in [_plain(one) for one in right]


def same(value: Any, right: Sequence[Any]) -> bool:
    """Whether a right value is the same JSON: no text is altered, true is not 1; 1.0 is 1, and keys have no order."""
    return any(_same(value, one) for one in right)


def _same(value: Any, other: Any) -> bool:
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(_same(value[key], other[key]) for key in value)
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(_same, value, other))
    if isinstance(value, bool) or isinstance(other, bool):
        return value is other
    return bool(value == other)


def _is(value: Any, expected: type) -> bool:
    return type(value) is expected or (expected is float and type(value) is int)


def _type_of_first(right: Sequence[Any], default: type) -> type:
    """The type of the first right value that does not merely say that the argument may be left out."""
    return next((type(one) for one in right if one != LEFT_OUT), default)


def _elements_typed(array: list[Any], element: type, right: Sequence[Any]) -> bool:
    """Whether all elements have the schema's type or that of a right array; not asked where it may be left out."""
    return any(
        not isinstance(one, list) or all(type(v) in (element, _type_of_first(one, element)) for v in array)
        for one in right
    )


def _plain(value: Any) -> Any:
    return value.translate(_NOT_COMPARED).lower() if isinstance(value, str) else value


def _array_fits(array: list[Any], right: Any) -> bool:
    return [_plain(element) for element in array] == [_plain(element) for element in right]


def _objects_fit(array: list[Any], right: Any) -> bool:
    return len(array) == len(right) and all(map(_object_fits, array, right))


def _object_fits(value: Any, right: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(right, dict):
        return False
    for key, inner in value.items():
        if key not in right or _plain(inner) not in [_plain(one) for one in right[key]]:
            return False
    return all(key in value or LEFT_OUT in values for key, values in right.items())
