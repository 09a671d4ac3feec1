"""Values of frozen dataclasses as JSON-ready data, which :func:`wheel_checks.decode.decode` reads back."""

import dataclasses
import functools
import typing
from collections.abc import Mapping
from typing import Any

from wheel_checks.decode import key_of


def encode(value: Any, *, defaults: bool = True) -> Any:
    """JSON-ready data of ``value``; without ``defaults`` objects lack the fields that have their default value.

    Where a field may be one of several dataclasses that require no key, only ``defaults`` distinguishes them.
    """
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, (tuple, list, frozenset)):
        items = [encode(item, defaults=defaults) for item in value]
        return sorted(items) if isinstance(value, frozenset) else items
    if isinstance(value, Mapping):
        pairs = [[encode(name), encode(item, defaults=defaults)] for name, item in value.items()]
        return dict(pairs) if all(isinstance(name, str) for name in value) else pairs
    return {
        key: encode(getattr(value, field.name), defaults=defaults)
        for field, key in _fields(value.__class__)
        if defaults or not _is_default(field, getattr(value, field.name))
    }


@functools.cache
def _fields(kind: Any) -> tuple[tuple[dataclasses.Field[Any], str], ...]:
    """The fields of a dataclass, each with its key. Raises TypeError for other classes."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return tuple((field, key_of(field.name, hints[field.name])) for field in dataclasses.fields(kind))


def _is_default(field: dataclasses.Field[Any], value: Any) -> bool:
    if field.default is not dataclasses.MISSING:
        return bool(value == field.default)
    return field.default_factory is not dataclasses.MISSING and bool(value == field.default_factory())
