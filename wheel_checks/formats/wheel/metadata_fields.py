"""METADATA as an index takes it at upload: every field with all of its values, and the description."""

from __future__ import annotations

import email.errors
import email.parser
import email.policy
from collections.abc import Mapping
from dataclasses import dataclass

from wheel_checks.errors import FormatError
from wheel_checks.formats.wheel.core_metadata import MAX_SIZE, header_block

SINGLE_USE = frozenset(
    {
        "author",
        "author-email",
        "description",
        "description-content-type",
        "download-url",
        "home-page",
        "keywords",
        "license",
        "license-expression",
        "maintainer",
        "maintainer-email",
        "metadata-version",
        "name",
        "requires-python",
        "summary",
        "version",
    }
)
"""Fields that may stand once (core metadata specification 2.5)."""


@dataclass(frozen=True, slots=True)
class MetadataFields:
    """The values of each field by its name in lower case, in their order, and the description ("" if none)."""

    values: Mapping[str, tuple[str, ...]]
    description: str = ""

    def of(self, field: str) -> tuple[str, ...]:
        """All values of a field."""
        return self.values.get(field.lower(), ())

    def first(self, field: str) -> str:
        """The first value of a field, "" where it is missing."""
        return next(iter(self.of(field)), "")


def parse_metadata_fields(data: bytes) -> MetadataFields:
    """The fields of METADATA. Raises FormatError as :func:`parse_core_metadata` does."""
    if len(data) > MAX_SIZE:
        raise FormatError(f"METADATA has {len(data)} bytes", expected=f"at most {MAX_SIZE}")
    text = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    header = header_block(text, [])
    try:
        message = email.parser.Parser(policy=email.policy.compat32).parsestr(header, headersonly=True)
        pairs = [(name.lower(), str(value)) for name, value in message.items()]
    except (email.errors.MessageError, ValueError, LookupError) as error:
        raise FormatError(f"METADATA cannot be parsed ({type(error).__name__}: {error})") from None
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value.strip())
    body = text[len(header) :].strip("\n")
    described = "\n".join(values.get("description", ()))
    return MetadataFields({name: tuple(found) for name, found in values.items()}, body or described)
