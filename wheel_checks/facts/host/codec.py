"""Facts of a host as JSON, and back: what ``--save-facts`` writes and ``--facts`` and the scenarios of the tests read.

A dataclass becomes an object without the fields that have their default value; ``Unavailable`` becomes
``{"unavailable": reason, "hint": ...}``. Reading checks every value against the type that its field declares.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Mapping
from typing import Any

from wheel_checks.errors import FormatError
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.model import Unavailable

SCHEMA = "wheelproof.host/1"


def to_json(facts: HostFacts) -> dict[str, Any]:
    """JSON-ready data of ``facts``."""
    return {"schema": SCHEMA, **_plain(facts)}


def from_json(data: Any) -> HostFacts:
    """The facts that :func:`to_json` wrote. Raises FormatError, which names the place, for anything else."""
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        found = data.get("schema") if isinstance(data, dict) else type(data).__name__
        raise FormatError(f"these are no facts of a host: the schema is {found!r}", expected=SCHEMA)
    rest = {name: value for name, value in data.items() if name != "schema"}
    facts: HostFacts = _read(rest, HostFacts, "facts")
    return facts


def _plain(value: Any) -> Any:
    if isinstance(value, Unavailable):
        return {"unavailable": value.reason, "hint": value.hint}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((field, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {field.name: _plain(item) for field, item in fields if not _is_default(field, item)}
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value


def _is_default(field: dataclasses.Field[Any], value: Any) -> bool:
    if field.default is not dataclasses.MISSING:
        return bool(value == field.default)
    return field.default_factory is not dataclasses.MISSING and bool(value == field.default_factory())


def _read(value: Any, kind: Any, where: str) -> Any:  # noqa: PLR0911  # one answer for each kind of type
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in {types.UnionType, typing.Union}:
        return _read_union(value, arguments, where)
    if kind is Unavailable:
        return Unavailable(str(value["unavailable"]), str(value.get("hint", "")))
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _read_dataclass(value, kind, where)
    if origin is tuple:
        return _read_tuple(value, arguments, where)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, dict):
            raise _fault(value, "an object", where)
        return {str(name): _read(item, arguments[1], f"{where}.{name}") for name, item in value.items()}
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise _fault(value, kind.__name__, where)
    return value


def _read_tuple(value: Any, kinds: tuple[Any, ...], where: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise _fault(value, "a list", where)
    if kinds[-1] is Ellipsis:
        return tuple(_read(item, kinds[0], f"{where}[{index}]") for index, item in enumerate(value))
    if len(value) != len(kinds):
        raise _fault(value, f"a list of {len(kinds)}", where)
    return tuple(_read(item, kind, where) for item, kind in zip(value, kinds, strict=True))


def _read_union(value: Any, kinds: tuple[Any, ...], where: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    if isinstance(value, dict) and "unavailable" in value and Unavailable in kinds:
        return _read(value, Unavailable, where)
    return _read(value, next(kind for kind in kinds if kind not in {type(None), Unavailable}), where)


def _read_dataclass(value: Any, kind: type, where: str) -> Any:
    if not isinstance(value, dict):
        raise _fault(value, "an object", where)
    hints = _hints(kind)
    if unknown := sorted(set(value) - set(hints)):
        raise FormatError(f"{where} has the unknown field {unknown[0]}", expected=", ".join(sorted(hints)))
    arguments = {name: _read(item, hints[name], f"{where}.{name}") for name, item in value.items()}
    try:
        return kind(**arguments)
    except TypeError as error:
        raise FormatError(f"{where} is incomplete: {error}") from error


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _fault(value: Any, expected: str, where: str) -> FormatError:
    return FormatError(f"{where} is {type(value).__name__} {str(value)[:60]!r}", expected=expected)
