"""Facts of a host as JSON, and back: what ``--save-facts`` writes and ``--facts`` and the scenarios of the tests read.

A dataclass becomes an object without the fields that have their default value; ``Unavailable`` becomes
``{"unavailable": reason, "hint": ...}``.
"""

from typing import Any

from wheel_checks.decode import Policy, decode
from wheel_checks.decode.encode import encode
from wheel_checks.errors import FormatError
from wheel_checks.facts.host.facts import HostFacts

SCHEMA = "wheelproof.host/1"
_POLICY = Policy()


def to_json(facts: HostFacts) -> dict[str, Any]:
    """JSON-ready data of ``facts``."""
    return {"schema": SCHEMA, **encode(facts, defaults=False)}


def from_json(data: Any) -> HostFacts:
    """The facts that :func:`to_json` wrote. Raises FormatError, which names the place, for anything else."""
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        found = data.get("schema") if isinstance(data, dict) else type(data).__name__
        raise FormatError(f"these are no facts of a host: the schema is {found!r}", expected=SCHEMA)
    rest = {name: value for name, value in data.items() if name != "schema"}
    return decode(HostFacts, rest, _POLICY, "the facts of the host")
