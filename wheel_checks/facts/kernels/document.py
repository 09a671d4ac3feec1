"""The suite's report, ``kernels_smoke/1``, read into facts.

What it omits, and what it says beyond this, is not a fault. A value of another type than expected, or an ending that
is unknown, is one: what cannot be understood must not pass for a success.
"""

from wheel_checks.decode import Policy, decode
from wheel_checks.errors import FormatError
from wheel_checks.facts.kernels.facts import SmokeDocument
from wheel_checks.formats.documents import parse_json

SCHEMA = "kernels_smoke/1"
LARGEST = 64 << 20  # bytes; a deep run of all kernels has about 1 MB
_WHAT = "the suite's report"
_POLICY = Policy(unknown_keys=True, null_is_absent=True)


def parse_smoke_document(data: bytes) -> SmokeDocument:
    """The document. Raises FormatError, naming the place, when it is not what the suite writes."""
    values = parse_json(data, _WHAT, LARGEST, SCHEMA)
    if isinstance(values, dict) and (schema := values.get("schema")) != SCHEMA:
        raise FormatError(f"{_WHAT} is of the form {str(schema or '')[:80]!r}", expected=SCHEMA)
    return decode(SmokeDocument, values, _POLICY, _WHAT)
