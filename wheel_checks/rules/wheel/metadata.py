"""Is the metadata complete and well-formed, and does the index serve the same? (core metadata, PEP 508, PEP 658)"""

from __future__ import annotations

import re
from collections.abc import Iterable

from wheel_checks.data import load
from wheel_checks.facts.accelerator.signals import marker_fault
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.formats.wheel.core_metadata import CoreMetadata
from wheel_checks.formats.wheel.read_by_uv import corrected, corrected_requirement
from wheel_checks.model import Audience, Evidence, Finding, Fix, Location, Severity, Unavailable, need
from wheel_checks.parsing import specifiers_or_none
from wheel_checks.phrases import abbreviated
from wheel_checks.registry import rule
from wheel_checks.targets.of_wheel import exact_pythons
from wheel_checks.targets.target import this_machine

# Faults of these fields keep pip or uv from taking the wheel; all others are harmless for users. Metadata-Version is
# read by neither.
_READ_BY_INSTALLERS = re.compile(
    r"(Name|Version|Wheel-Version|Requires-Python|Requires-Dist)\b"
    r"|(METADATA|WHEEL) is (not UTF-8|malformed)|line \d+ has the key wheel-version",
    re.IGNORECASE,
)
_REPEATED = re.compile(r" is given (?:\d+ times|more than once)$")
_CORRECT = Fix("Correct the project's metadata (pyproject.toml), and rebuild the wheel.")


@rule(
    "WHL106",
    "METADATA and WHEEL exist and are valid",
    why="Indexes reject metadata without required fields or with an unknown version, and installers may fail on it.",
    example="METADATA without `Version`, or WHEEL with `Wheel-Version: 2.0`",
    fix="Build with a current build backend.",
)
def well_formed(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Required fields present, versions known, values valid; a field that occurs twice is a warning (see REL306)."""
    need(wheel.archive)
    for label, file in (("METADATA", wheel.metadata), ("WHEEL", wheel.wheel_file)):
        if isinstance(file, Unavailable):
            yield Finding(file.reason, fix=_CORRECT, location=Location(label))
            continue
        for fault in file.faults:
            if isinstance(file, CoreMetadata) and (finding := _mended(wheel, file, fault)):
                yield finding
                continue
            is_repeated = _REPEATED.search(fault)  # pip 26.3 and uv 0.13.9 take the first value, an index refuses both
            audience = Audience.PUBLISHER if is_repeated or not _READ_BY_INSTALLERS.match(fault) else None
            was_taken = audience is Audience.PUBLISHER and _was_uploaded_before(wheel)
            severity = Severity.WARNING if is_repeated or was_taken else None
            yield Finding(f"{label}: {fault}", (), _CORRECT, Location(label), severity, audience=audience)


def _mended(wheel: WheelFacts, metadata: CoreMetadata, fault: str) -> Finding | None:
    """For a Requires-Python that is malformed, which pip ignores; an index refuses the upload since 2024."""
    if not fault.startswith("Requires-Python: "):
        return None
    meant, message, place = corrected(metadata.requires_python), f"METADATA: {fault}", Location("METADATA")
    evidence = (Evidence("pip 26.3", "ignores it"), Evidence("uv 0.13.8", f"reads {meant}" if meant else "rejects it"))
    if not meant:
        return Finding(message, evidence, _CORRECT, place, refused_by="uv")
    severity = Severity.WARNING if _was_uploaded_before(wheel) else None
    return Finding(message, evidence, _CORRECT, place, severity, decides=False)


def _was_uploaded_before(wheel: WheelFacts) -> bool:
    """Whether an index has the file from the time when it did not look at each field."""
    uploaded = wheel.listing.upload_time[:10] if wheel.listing else ""
    day: str = load("upload_rules")["since"]["core-metadata"]["day"]
    return bool(uploaded) and uploaded < day


@rule(
    "WHL107",
    "every requirement can be parsed",
    why="One malformed Requires-Dist line makes pip reject the release, and uv, too, unless it can correct the line. "
    "For who installs it that is an error if the installer that is meant rejects it (uv for a uv.lock, pip for a "
    "requirements file with hashes that uv did not compile), and a warning if that is not known and only one of them "
    "does.",
    example="`Requires-Dist: triton=>3.6`",
    fix="Write the requirement as PEP 508 specifies, and rebuild the wheel.",
)
def requirement_syntax(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Requires-Dist lines are valid PEP 508, uv takes them, too, and their markers have a value."""
    metadata = need(wheel.metadata)
    for text, reason in metadata.bad_requirements:
        evidence = (Evidence("Requires-Dist", text, "METADATA"), Evidence("reason", reason))
        place, message = Location("METADATA"), f"the requirement {text!r} cannot be parsed"
        if meant := corrected_requirement(text):
            corrects = Evidence("uv 0.13.8", f"reads {meant}")
            yield Finding(f"{message} by pip", (*evidence, corrects), _CORRECT, place, refused_by="pip")
        else:
            yield Finding(message, evidence, _CORRECT, place)
    for text, reason in metadata.refused_requirements:
        evidence = (Evidence("Requires-Dist", text, "METADATA"), Evidence("uv 0.13.8", reason))
        message = f"uv rejects the requirement {text!r}: {reason}"
        yield Finding(message, evidence, _CORRECT, Location("METADATA"), refused_by="uv")
    environment = (wheel.target or this_machine().target).markers()
    for requirement in metadata.requirements:
        if reason := marker_fault(requirement, environment):
            evidence = (Evidence("Requires-Dist", str(requirement), "METADATA"), Evidence("reason", reason))
            message = f"the marker of the requirement {requirement.name} cannot be evaluated"
            yield Finding(message, evidence, _CORRECT, Location("METADATA"))


@rule(
    "WHL108",
    "no requirement is a URL",
    Severity.WARNING,
    why="Public indexes reject wheels with URL requirements, and no resolver can replace the URL: mirrors, constraints "
    "and overrides have no effect on it.",
    example="`Requires-Dist: torch @ https://example.org/torch-2.11.0-...whl`",
    fix="Require the name and a version, and document which index has it.",
)
def url_requirements(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """No `name @ URL`."""
    for requirement in need(wheel.metadata).requirements:
        if requirement.url:
            evidence = (Evidence("Requires-Dist", f"{requirement.name} @ {requirement.url}", "METADATA"),)
            yield Finding(f"{requirement.name} is required from a URL", evidence, _CORRECT, Location("METADATA"))


@rule(
    "WHL109",
    "the index serves the wheel's own METADATA",
    why="uv and pip resolve with the METADATA that the index serves for the wheel (PEP 658), but install the wheel's "
    "own: if they differ, the resolved and the installed packages differ.",
    example="an index that serves nvidia requirements for a wheel without them",
    fix="Have the index extract the METADATA again.",
)
def sidecar(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Name, version, Requires-Python and requirements are equal."""
    own = need(wheel.metadata)
    fix = Fix("Have the index extract the METADATA again, or upload the wheel again.")
    if isinstance(wheel.sidecar, Unavailable) and isinstance(wheel.sidecar_difference, tuple):
        yield Finding(f"the index serves unreadable METADATA: {wheel.sidecar.reason}", fix=fix)
        return
    served = need(wheel.sidecar)
    for field in ("name", "version", "requires_python"):
        a, b = getattr(served, field), getattr(own, field)
        if a != b:
            evidence = (Evidence("served", a or "none", "index"), Evidence("in the wheel", b or "none", "METADATA"))
            yield Finding(
                f"{field.replace('_', '-')} differs between the index's METADATA and the wheel's", evidence, fix
            )
    a_requirements, b_requirements = ({str(r) for r in metadata.requirements} for metadata in (served, own))
    if a_requirements != b_requirements:
        evidence = (
            Evidence("only served", "; ".join(sorted(a_requirements - b_requirements)) or "none", "index"),
            Evidence("only in the wheel", "; ".join(sorted(b_requirements - a_requirements)) or "none", "METADATA"),
        )
        yield Finding("the requirements differ between the index's METADATA and the wheel's", evidence, fix)


@rule(
    "WHL111",
    "the METADATA that an index serves has the hash that the index states",
    why="uv and pip resolve with the METADATA that an index serves (PEP 658), and reject METADATA with another hash "
    "than the index states (PEP 714): it was replaced or damaged, on the index or on the way.",
    example="`data-core-metadata=sha256=9f3a...` for METADATA with sha256=1c22...",
    fix="Have the index extract the METADATA again; until then do not resolve with it.",
)
def sidecar_hash(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """The served METADATA of the wheel, and of the wheels that it requires if these were read."""
    fix = Fix("Find out what changed. Have the index extract the METADATA again, or upload the wheel again.")
    for other in wheel.wrong_metadata:
        evidence = (Evidence("stated", other.stated, "index"), Evidence("served", other.found, other.file_name))
        message = (
            f"the METADATA that the index serves for the requirement {other.file_name} does not have the stated hash"
        )
        yield Finding(message, evidence, fix)
    own = wheel.sidecar_hash if wheel.wrong_metadata else need(wheel.sidecar_hash)
    if isinstance(own, Unavailable):
        return
    if not own.found and not wheel.wrong_metadata:
        need(Unavailable(f"the index states {own.stated}, a hash algorithm that is not supported"))
    if own.is_wrong:
        evidence = (Evidence("stated", own.stated, "index"), Evidence("served", own.found, "PEP 658"))
        yield Finding(
            "the METADATA that the index serves does not have the stated hash, and is not used", evidence, fix
        )


@rule(
    "WHL112",
    "the METADATA that the index serves has the same bytes as the wheel's",
    Severity.WARNING,
    audience=Audience.PUBLISHER,
    why="By PEP 658 an index serves the contents of the wheel's METADATA. If the two resolve to the same result, "
    "WHL109 reports nothing; but an index that rewrites METADATA may rewrite requirements tomorrow.",
    example="an index that sorts the fields, or uses Windows line endings",
    fix="Have the index extract the METADATA without changing it.",
)
def sidecar_bytes(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Equal bytes; the first line that differs is shown."""
    difference = need(wheel.sidecar_difference)
    if difference is not None:
        served, own = map(abbreviated, difference)
        evidence = (
            Evidence("served", served or "nothing", "index"),
            Evidence("in the wheel", own or "nothing", "METADATA"),
        )
        fix = Fix("Have the index extract the METADATA again, without changing it.")
        yield Finding("the index serves METADATA with bytes that differ from the wheel's", evidence, fix)


@rule(
    "WHL110",
    "Requires-Python is the same in METADATA and on the index, and includes the wheel's Python",
    Severity.WARNING,
    why="Installers select files by the index's data-requires-python; a wheel for a Python that its own metadata "
    "excludes is never selected, or fails afterwards.",
    example="a cp310 wheel with `Requires-Python: >=3.11`",
    fix="Correct requires-python, or do not build for that Python.",
)
def requires_python(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Equal as specifiers; each Python that the file name's tags name is inside (``abi3`` and ``py3`` name none)."""
    own = need(wheel.metadata).requires_python
    listed = wheel.listing.requires_python if wheel.listing else ""
    if listed and own and specifiers_or_none(listed) != specifiers_or_none(own):
        evidence = (Evidence("index", listed, "data-requires-python"), Evidence("wheel", own, "METADATA"))
        yield Finding("Requires-Python differs between the index and the wheel", evidence, _CORRECT)
    admitted = specifiers_or_none(own)
    if admitted is None or isinstance(wheel.name, Unavailable):
        return
    for major, minor in exact_pythons(wheel.name.tags):
        patches = (f"{major}.{minor}.{patch}" for patch in range(40))
        if not any(admitted.contains(version, prereleases=True) for version in patches):
            evidence = (Evidence("Requires-Python", own, "METADATA"), Evidence("file name", wheel.file_name))
            message = (
                f"Requires-Python {own} excludes Python {major}.{minor}, but this wheel is for Python {major}.{minor}"
            )
            yield Finding(message, evidence, _CORRECT)


@rule(
    "WHL126",
    "an installer accepts the wheel for the requested platform and Python",
    why="pip and uv refuse a wheel whose tags or Requires-Python exclude the host: `is not a supported wheel on this "
    "platform`, `requires a different Python`.",
    example="`wheelproof verify demo-1.0-cp313-cp313-manylinux_2_28_aarch64.whl --python 3.11 --platform x86_64`",
    fix="Use a wheel for that platform and Python; `verify NAME==VERSION` shows which one an installer takes.",
)
def installable(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """One of the tags is among those of the target, and its Python is in Requires-Python."""
    target = wheel.target if wheel.is_target_requested else None
    if target is None:
        need(Unavailable("no platform or Python was named", "--platform aarch64, --python 3.12"))
        return
    name = need(wheel.name)
    fix = Fix("Use a wheel for that platform and Python, or name those of this wheel.")
    if name.tags.isdisjoint(target.supported_tags()):
        evidence = (Evidence("tags", abbreviated(", ".join(sorted(map(str, name.tags))), 300), wheel.file_name),)
        yield Finding(f"the wheel is not built for {target.described}", evidence, fix)
    requires = "" if isinstance(wheel.metadata, Unavailable) else wheel.metadata.requires_python
    admitted = specifiers_or_none(requires)
    if admitted is not None and not admitted.contains(python := target.python_full_version, prereleases=True):
        evidence = (Evidence("Requires-Python", requires, "METADATA"),)
        yield Finding(f"the wheel requires Python {requires}, not {python}", evidence, fix)
