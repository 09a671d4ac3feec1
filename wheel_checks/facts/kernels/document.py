"""The suite's report, ``kernels_smoke/1``, read into facts.

Missing and additional fields are not faults. A value of another type than expected, or an unknown ending, is one:
unreadable results must not pass for a success.
"""

from __future__ import annotations

from wheel_checks.decode import Policy, decode
from wheel_checks.errors import FormatError
from wheel_checks.facts.kernels.facts import SmokeDocument
from wheel_checks.formats.documents import parse_json

SCHEMA = "kernels_smoke/1"
LARGEST = 64 << 20  # bytes; a deep run of all kernels has about 1 MB
_WHAT = "the suite's report"
_POLICY = Policy(unknown_keys=True, null_is_absent=True)


def parse_smoke_document(data: bytes) -> SmokeDocument:
    """The document. Raises FormatError, naming the place, when the suite would not write it."""
    values = parse_json(data, _WHAT, LARGEST, SCHEMA)
    if isinstance(values, dict) and (schema := values.get("schema")) != SCHEMA:
        raise FormatError(f"{_WHAT} is of the form {str(schema or '')[:80]!r}", expected=SCHEMA)
    return decode(SmokeDocument, values, _POLICY, _WHAT)
