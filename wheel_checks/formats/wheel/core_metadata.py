"""METADATA (core metadata specification), read leniently: every fault becomes a sentence."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from packaging.metadata import InvalidMetadata, Metadata, RawMetadata, parse_email
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier

from wheel_checks.errors import FormatError
from wheel_checks.formats.wheel.read_by_uv import requirement_fault, requires_python_fault

METADATA_VERSIONS = ("1.0", "1.1", "1.2", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6")
"""Legal values of Metadata-Version, November 2026. Source: core metadata specification, and packaging 26.3 for 2.6."""

MAX_SIZE = 5 * 1024 * 1024
_MAX_HEADER_LINES = 20_000
_MAX_FIELDS = 200
_MAX_VALUE = 4_096
_MAX_REQUIREMENT = 8_192
MAX_REQUIREMENTS = 512 * 1024
"""Characters of all Requires-Dist together: each comparison in a marker takes 60 microseconds, from parsing to judging.

Real wheels have up to 82,000 (apache-airflow 2.5, 1,374 requirements), in November 2026.
"""
_MAX_NESTING = 50
_MAX_MESSAGE = 300
_FIELD_LINE = re.compile(r"[!-9;-~]*:|[ \t]")
_LONG_FIELDS = frozenset({"description", "license"})


@dataclass(frozen=True, slots=True)
class CoreMetadata:
    """The fields that matter. ``faults`` are sentences about fields that are missing or malformed.

    ``requirements`` holds the Requires-Dist lines that parse, in their order; ``bad_requirements`` the texts of those
    that do not, each with the parser's reason, and ``refused_requirements`` those that parse and that uv refuses.
    ``license`` is License-Expression, or else License.
    ``dynamic`` names the fields that a build computes (PEP 643).
    """

    metadata_version: str
    name: str
    version: str
    requires_python: str
    requirements: tuple[Requirement, ...]
    bad_requirements: tuple[tuple[str, str], ...]
    provides_extra: tuple[str, ...]
    license: str
    faults: tuple[str, ...]
    dynamic: tuple[str, ...] = ()
    refused_requirements: tuple[tuple[str, str], ...] = ()


def parse_core_metadata(data: bytes | str) -> CoreMetadata:
    """The fields of METADATA, with a sentence for each that breaks the specification.

    Raises FormatError when it is larger than ``MAX_SIZE``, has an absurd number of fields, more than
    ``MAX_REQUIREMENTS`` characters of requirements, or when the email parser, which the specification makes the
    authority, gives up on it.
    """
    faults: list[str] = []
    raw, unparsed, _ = read_fields(data, faults)
    faults += _take_first_of_repeated(raw, unparsed)
    faults += _shorten(raw)
    requirements, bad_requirements, refused = _read_requirements(raw.get("requires_dist", []))
    faults += _validate(raw)
    faults += _refused_by_uv(raw.get("requires_python", ""))
    return CoreMetadata(
        metadata_version=raw.get("metadata_version", ""),
        name=raw.get("name", ""),
        version=raw.get("version", ""),
        requires_python=raw.get("requires_python", ""),
        requirements=requirements,
        bad_requirements=bad_requirements,
        provides_extra=tuple(raw.get("provides_extra", ())),
        license=raw.get("license_expression") or raw.get("license", ""),
        faults=tuple(faults),
        dynamic=tuple(raw.get("dynamic", ())),
        refused_requirements=refused,
    )


def read_fields(data: bytes | str, faults: list[str]) -> tuple[RawMetadata, dict[str, list[str]], str]:
    """The fields that packaging reads, the values of those that it cannot read, and the text after the fields.

    Adds to ``faults``. Raises FormatError as :func:`parse_core_metadata` does.
    """
    if len(data) > MAX_SIZE:
        raise FormatError(f"METADATA has {len(data)} bytes", expected=f"at most {MAX_SIZE}")
    text = data if isinstance(data, str) else _decode(data, faults)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    header = _header_block(text, faults)
    try:
        return *parse_email(header), text[len(header) :].strip("\n")
    except Exception as error:  # noqa: BLE001  # the email package raises errors of many types on malformed headers
        raise FormatError(f"METADATA cannot be parsed ({type(error).__name__}: {error})") from None


def _decode(data: bytes, faults: list[str]) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        faults.append(f"METADATA is not UTF-8 (line {data.count(bytes([10]), 0, error.start) + 1})")
        return data.decode("utf-8", "replace")


def _header_block(text: str, faults: list[str]) -> str:
    """The lines before the description, as far as the email parser would take them for fields.

    The description is not needed, and parsing it, or too many fields, could be made to take minutes.
    """
    lines: list[str] = []
    names: set[str] = set()
    for line in text.split("\n"):
        if not line:
            break
        if not _FIELD_LINE.match(line):
            faults.append(
                f"line {len(lines) + 1} is {line[:200]!r}; expected a field; the following fields are not read"
            )
            break
        lines.append(line)
        if not line[0].isspace():
            names.add(line.partition(":")[0].lower())
        if len(lines) > _MAX_HEADER_LINES or len(names) > _MAX_FIELDS:
            raise FormatError(
                f"METADATA has over {_MAX_HEADER_LINES} lines or {_MAX_FIELDS} kinds of field before its description",
                expected="the fields of the core metadata specification",
            )
    return "\n".join(lines) + "\n"


def _take_first_of_repeated(raw: RawMetadata, unparsed: dict[str, list[str]]) -> Iterator[str]:
    """Put the first value of a single-use field that is repeated into ``raw``; unknown fields are left alone."""
    for field, values in sorted(unparsed.items()):
        key = field.replace("-", "_")
        if key not in RawMetadata.__annotations__ or not values:
            continue
        first = str(values[0])
        if key in ("metadata_version", "name", "version", "requires_python", "license", "license_expression"):
            raw[key] = first  # type: ignore[literal-required]  # checked against the names of text fields just above
        yield f"{field.title()} is given {len(values)} times" if len(values) > 1 else f"{field.title()} cannot be read"


def _shorten(raw: RawMetadata) -> Iterator[str]:
    """Drop single-line fields of absurd length, on which validators spend quadratic time."""
    for key, value in list(raw.items()):
        if isinstance(value, str) and len(value) > _MAX_VALUE and key not in _LONG_FIELDS:
            del raw[key]  # type: ignore[misc]  # every key of RawMetadata may be absent
            yield f"{key.replace('_', '-').title()} has {len(value)} characters; expected at most {_MAX_VALUE}"


def _read_requirements(
    lines: list[str],
) -> tuple[tuple[Requirement, ...], tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """Those that parse, those that do not, and those of the first that uv refuses, with the reasons."""
    good: list[Requirement] = []
    bad: list[tuple[str, str]] = []
    refused: list[tuple[str, str]] = []
    total = sum(map(len, lines))
    if total > MAX_REQUIREMENTS:
        raise FormatError(
            f"METADATA has {total:,} characters of Requires-Dist", expected=f"at most {MAX_REQUIREMENTS:,}"
        )
    for line in lines:
        if len(line) > _MAX_REQUIREMENT or line.count("(") > _MAX_NESTING:
            bad.append((line[:200], f"it has {len(line)} characters or more than {_MAX_NESTING} parentheses"))
            continue
        try:
            good.append(Requirement(line))
            if reason := requirement_fault(line, good[-1]):
                refused.append((line, reason))
        except (InvalidRequirement, ValueError) as error:
            # The parser shows the place of the fault on separate lines.
            bad.append((line, str(error).partition("\n")[0][:_MAX_MESSAGE]))
    return tuple(good), tuple(bad), tuple(refused)


def _refused_by_uv(requires_python: str) -> Iterator[str]:
    """The fault of a Requires-Python that packaging takes."""
    try:
        reason = requires_python_fault(requires_python)
    except InvalidSpecifier:
        return  # which is a fault already
    if reason:
        yield f"Requires-Python: uv rejects {requires_python[:_MAX_MESSAGE]!r}: {reason}"


def _validate(raw: RawMetadata) -> list[str]:
    """What packaging finds wrong, all of it; requirements are read one by one elsewhere."""
    checked = raw.copy()
    version = checked.get("metadata_version", "")
    faults = []
    if version not in METADATA_VERSIONS:
        told = f"Metadata-Version is {version[:80]!r}" if version else "Metadata-Version is missing"
        faults.append(f"{told}; expected one of {', '.join(METADATA_VERSIONS)}")
    if "requires_dist" in checked:
        checked["requires_dist"] = []
    if version in METADATA_VERSIONS[: METADATA_VERSIONS.index("2.4")]:
        # setuptools wrote License-File for years before 2.4 defined it; installers and indexes ignore it there.
        checked.pop("license_files", None)
    if checked.get("license_expression", "").count("(") > _MAX_NESTING:
        faults.append("License-Expression is nested too deeply")
        del checked["license_expression"]
    try:
        Metadata.from_raw(checked)
    except ExceptionGroup as group:
        errors = [error for error in group.exceptions if isinstance(error, InvalidMetadata)]
        faults += sorted(_sentence(error) for error in errors if error.field != "metadata-version")
    except Exception as error:  # noqa: BLE001  # numbers too long, recursion: its validators let more than ValueError out
        faults.append(f"METADATA is malformed ({type(error).__name__}: {str(error)[:_MAX_MESSAGE]})")
    return faults


def _sentence(error: InvalidMetadata) -> str:
    field, message = error.field.title(), str(error).partition("\n")[0][:_MAX_MESSAGE]
    if message.endswith("is a required field"):
        return f"{field} is missing"
    if message.startswith(error.field):
        return field + message.removeprefix(error.field)
    return f"{field}: " + message.removesuffix(f" for {error.field!r}")
