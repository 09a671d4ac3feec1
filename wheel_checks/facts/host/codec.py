"""Facts of a host as JSON, and back: what ``--save-facts`` writes and ``--facts`` and the scenarios of the tests read.

A dataclass becomes an object without the fields that have their default value; ``Unavailable`` becomes
``{"unavailable": reason, "hint": ...}``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from wheel_checks.decode import Policy, decode
from wheel_checks.errors import FormatError
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.model import Unavailable

SCHEMA = "wheelproof.host/1"
_POLICY = Policy()


def to_json(facts: HostFacts) -> dict[str, Any]:
    """JSON-ready data of ``facts``."""
    return {"schema": SCHEMA, **_plain(facts)}


def from_json(data: Any) -> HostFacts:
    """The facts that :func:`to_json` wrote. Raises FormatError, which names the place, for anything else."""
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        found = data.get("schema") if isinstance(data, dict) else type(data).__name__
        raise FormatError(f"these are no facts of a host: the schema is {found!r}", expected=SCHEMA)
    rest = {name: value for name, value in data.items() if name != "schema"}
    return decode(HostFacts, rest, _POLICY, "the facts of the host")


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
