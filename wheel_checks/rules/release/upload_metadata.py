"""Would the public index take the METADATA of the wheel?

packaging decides whether fields can be read (REL306) and are valid (WHL106), readme_renderer whether the description
renders (REL307). The other rules are additions of the index.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from email.utils import parseaddr
from typing import Any

from wheel_checks.data import load
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.facts.wheel.upload import PRIVATE
from wheel_checks.formats.wheel.core_metadata import METADATA_VERSIONS
from wheel_checks.model import Audience, Evidence, Finding, Fix, Unavailable, need
from wheel_checks.parsing import requirement_or_none
from wheel_checks.phrases import abbreviated, summarised
from wheel_checks.registry import rules_of
from wheel_checks.rules.release.upload import CORRECT, KIND, refused, unproven

rule = rules_of(KIND, Audience.PUBLISHER)
_ADDRESS = re.compile(r"https?:", re.IGNORECASE)  # the index looks at the scheme, not at the characters that follow
_MAILBOX = re.compile(r"[^\s<>]+@[^\s<>@.]+(?:\.[^\s<>@.]+)+")
_SHOWN = 5
_LONGEST = 160  # characters of a value that a message shows


def _fields(wheel: WheelFacts) -> Mapping[str, Any]:
    return need(wheel.upload).fields


@rule(
    "REL304",
    "the index accepts the classifiers",
    why="The index accepts only the classifiers of its list. `Private ::` exists to keep a package off the index.",
    example="`Classifier: Private :: Do Not Upload`, or `Programming Language :: Python :: 3.99`",
    fix="Use the classifiers of the list (trove-classifiers).",
)
def classifiers(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """None is private, unknown or deprecated."""
    stated, faults = _fields(wheel).get("classifiers", ()), need(wheel.upload).classifier_faults
    private = [text for text in stated if text.lower().startswith(PRIVATE)]
    for text in private:
        message = f"the classifier {abbreviated(text, _LONGEST)!r} keeps the wheel off the index"
        fix = Fix("Do not upload it to the index, or remove the classifier.")
        yield refused(wheel, "classifier", message, fix)
    if not isinstance(faults, Unavailable):
        fix = Fix("Use a classifier of the list; a newer trove-classifiers may include it.")
        yield from (refused(wheel, "classifier", fault, fix) for fault in faults)
    elif len(private) < len(stated):
        yield from unproven(wheel, faults.reason, Fix(faults.hint))


@rule(
    "REL305",
    "the licence is stated once, and its files are in the wheel",
    why="PEP 639: License-Expression replaces License and the licence classifiers, and the files listed as "
    "License-File are in `.dist-info/licenses`.",
    example="`License-File: LICENSE` in a wheel without `demo-1.0.dist-info/licenses/LICENSE`",
    fix="Build with a backend that supports PEP 639, and remove the licence classifiers.",
)
def licence(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """License and licence classifiers are not given with License-Expression; from 2.4 on each License-File exists."""
    fields, name = _fields(wheel), need(wheel.name)
    if expression := fields.get("license_expression"):
        shown = Evidence("License-Expression", abbreviated(expression))
        if fields.get("license"):
            message = "METADATA has License and License-Expression; the index accepts only one of them"
            yield refused(wheel, "license", message, CORRECT, shown)
        if stated := [text for text in fields.get("classifiers", ()) if text.startswith("License ::")]:
            classifier = abbreviated(stated[0], _LONGEST)
            message = f"METADATA has the classifier {classifier!r} as well as License-Expression (PEP 639)"
            yield refused(wheel, "license-classifier", message, Fix("Remove the licence classifiers."), shown)
    if fields.get("metadata_version") in METADATA_VERSIONS[: METADATA_VERSIONS.index("2.4")]:
        return
    members = {member.name for member in need(wheel.archive).members}
    folder = f"{name.distribution}-{name.version}.dist-info/licenses"
    for file in fields.get("license_files", ()):
        if f"{folder}/{file}" not in members:
            fix = Fix("Build with a backend that supports PEP 639, which puts the files there.")
            message = f"License-File {abbreviated(file)} is not in the wheel, in {folder}/"
            yield refused(wheel, "license", message, fix)


@rule(
    "REL306",
    "packaging can read every field of METADATA",
    why="Installers use the first of two values and ignore unknown fields. twine reads METADATA by packaging, and "
    "uploads neither such a file nor one with two links of one label.",
    example="two `Summary:` lines",
    fix="Build with a current build backend.",
)
def unread(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """No field is repeated, unknown or malformed for packaging."""
    for field, values in sorted(need(wheel.upload).unread.items()):
        name, times = abbreviated(field.title()), "once" if len(values) == 1 else f"{len(values)} times"
        found = Evidence(name, summarised([*map(abbreviated, values)], _SHOWN), "METADATA")
        message = f"packaging cannot read {name}, which METADATA has {times}"
        yield refused(wheel, "unread-field", message, CORRECT, found)


@rule(
    "REL307",
    "the description renders, and the index supports the metadata version",
    why="The index renders the description at upload, and rejects one that fails: without Description-Content-Type it "
    "is treated as reStructuredText.",
    example="a table of reStructuredText with a column that is too narrow",
    fix="Set the content type (`readme` in pyproject.toml does), and run `twine check`.",
)
def description(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """readme_renderer renders it; the index accepts its Metadata-Version."""
    table, version = load("upload_rules"), _fields(wheel).get("metadata_version")
    accepted = table["metadata"]["versions"]
    if version in METADATA_VERSIONS and version not in accepted:
        reason = f"it accepted Metadata-Version up to {accepted[-1]} in {table['collected']}, but this is {version}"
        yield from unproven(wheel, reason, Fix("Build with an older metadata version."))
    fault = need(wheel.upload).render_fault
    if isinstance(fault, Unavailable):
        yield from unproven(wheel, fault.reason, Fix(fault.hint or "Run `twine check` on the wheel."))
    elif fault:
        kind = _fields(wheel).get("description_content_type") or "reStructuredText, the default"
        message = f"the description does not render as {kind}: {fault}"
        yield refused(wheel, "description", message)


@rule(
    "REL308",
    "no requirement is a URL",
    why="A public index rejects direct references: their targets can change or disappear.",
    example="`Requires-Dist: torch @ https://example.org/torch-2.11.0-...whl`",
    fix="Require the name and a version, and document which index has it.",
)
def direct_references(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Neither in Requires-Dist nor in Provides-Dist and Obsoletes-Dist, which must parse, too."""
    for requirement in need(wheel.metadata).requirements:
        if requirement.url:
            message = f"the index rejects the direct reference to {requirement.name}"
            stated = Evidence("Requires-Dist", str(requirement), "METADATA")
            yield refused(wheel, "requirement-url", message, CORRECT, stated)
    for field in ("Provides-Dist", "Obsoletes-Dist"):
        for text in _fields(wheel).get(field.lower().replace("-", "_"), ()):
            parsed = requirement_or_none(text)
            fault = "does not parse" if parsed is None else "is a direct reference" if parsed.url else ""
            if fault:
                yield refused(wheel, "requirement-url", f"{field} {abbreviated(text)!r} {fault}")


@rule(
    "REL309",
    "URLs and e-mail addresses have the form that the index accepts",
    why="Project-URL is a label of at most 32 characters, a comma, and an http or https URL.",
    example="`Project-URL: https://example.org`, which has no label",
    fix="Write [project.urls] as label = URL.",
)
def links(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Project-URL, Home-Page, Download-URL, and the e-mail addresses of author and maintainer."""
    fields, longest = _fields(wheel), load("upload_rules")["limits"]["label"]["characters"]
    faults = []
    for label, address in fields.get("project_urls", {}).items():
        shown = abbreviated(address, _LONGEST)
        if not label or not address:
            faults.append(f"Project-URL {abbreviated(label, _LONGEST) or shown!r} is not `label, address`")
        elif len(label) > longest:
            length = f"has {len(label)} characters; the limit is {longest}"
            faults.append(f"the label {abbreviated(label)!r} of a Project-URL {length}")
        elif not _ADDRESS.match(address):
            faults.append(f"the address {shown!r} of a Project-URL is not an http or https URL")
    for field in ("Home-Page", "Download-URL"):
        address = fields.get(field.lower().replace("-", "_"))
        if address and not _ADDRESS.match(address):
            faults.append(f"{field} {abbreviated(address, _LONGEST)!r} is not an http or https URL")
    yield from (refused(wheel, "links", fault) for fault in faults)
    for field in ("Author-Email", "Maintainer-Email"):
        address = parseaddr(fields.get(field.lower().replace("-", "_"), ""))[1]
        if address and not _MAILBOX.fullmatch(address):
            message = f"{field}: {abbreviated(address)!r} is not an e-mail address"
            yield refused(wheel, "email", message)


@rule(
    "REL310",
    "the summary is within the length limit",
    why="The index accepts one line of at most 512 characters; the rest belongs in the description.",
    example="a whole README as `description` in pyproject.toml",
    fix="Write one sentence.",
)
def summary(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """At most 512 characters; that it is one line is WHL106."""
    longest = load("upload_rules")["limits"]["summary"]["characters"]
    if (length := len(_fields(wheel).get("summary", ""))) > longest:
        message = f"the summary has {length} characters; the limit is {longest}"
        yield refused(wheel, "summary", message)
