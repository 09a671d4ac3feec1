"""Would the public index take the METADATA of the wheel?

What packaging itself finds wrong is WHL106: required fields, the version of the metadata that introduced a field, the
licence expression, the type of the description, Requires-Python. These rules hold what the index adds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from email.utils import parseaddr

from packaging.requirements import InvalidRequirement, Requirement

from wheel_checks.data import load
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.formats.wheel.core_metadata import METADATA_VERSIONS
from wheel_checks.formats.wheel.metadata_fields import SINGLE_USE, MetadataFields
from wheel_checks.model import Audience, Evidence, Finding, Fix, Unavailable, need
from wheel_checks.phrases import abbreviated, joined, summarised
from wheel_checks.registry import rules_of
from wheel_checks.rules.release.upload import KIND, refused, unproven

rule = rules_of(KIND, Audience.PUBLISHER)
_CORRECT = Fix("Correct the project's metadata (pyproject.toml), and rebuild the wheel.")
_ADDRESS = re.compile(r"https?:", re.IGNORECASE)  # the index looks at the scheme, not at the characters that follow
_PLACEHOLDER = "UNKNOWN"  # setuptools wrote it up to 2021, and twine left it out up to version 5
_SHOWN = 5
_LONGEST = 160  # characters of a classifier that a message shows


def _fields(wheel: WheelFacts) -> MetadataFields:
    return need(need(wheel.upload).fields)


@rule(
    "REL304",
    "the index accepts the classifiers",
    why="The index accepts only the classifiers of its list. `Private ::` exists to keep a package off the index.",
    example="`Classifier: Private :: Do Not Upload`, or `Programming Language :: Python :: 3.99`",
    fix="Use the classifiers of the list (trove-classifiers).",
)
def classifiers(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """None is private, unknown or deprecated."""
    stated = [abbreviated(text, _LONGEST) for text in _fields(wheel).of("classifier")]
    private = [text for text in stated if text.lower().startswith("private ::")]
    for text in private:
        fix = Fix("Do not upload it to the index, or remove the classifier.")
        yield refused(wheel, "classifier", f"the classifier {text!r} keeps the wheel off the index", fix=fix)
    found = need(wheel.upload).classifiers
    if isinstance(found, Unavailable):
        if len(private) < len(stated):
            yield from unproven(wheel, found.reason, Fix(found.hint))
        return
    listed = (Evidence("list", f"trove-classifiers {found.version}"),)
    for text in (abbreviated(text, _LONGEST) for text in found.unknown):
        if text not in private:
            fix = Fix("Use a classifier of the list; a newer trove-classifiers may include it.")
            yield refused(wheel, "classifier", f"the index has no classifier {text!r}", fix=fix, evidence=listed)
    for text, instead in found.deprecated:
        message = f"the classifier {text!r} is deprecated" + (f": use {joined(list(instead))}" if instead else "")
        yield refused(wheel, "deprecated-classifier", message, fix=_CORRECT, evidence=listed)


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
    expression = fields.first("license-expression")
    if expression and fields.first("license"):
        message = "METADATA has License and License-Expression; the index accepts only one of them"
        yield refused(
            wheel, "license", message, fix=_CORRECT, evidence=(Evidence("License-Expression", abbreviated(expression)),)
        )
    stated = [text for text in fields.of("classifier") if text.startswith("License ::")]
    if expression and stated:
        message = (
            f"METADATA has the classifier {abbreviated(stated[0], _LONGEST)!r} as well as License-Expression (PEP 639)"
        )
        evidence = (Evidence("License-Expression", abbreviated(expression)),)
        yield refused(
            wheel, "license-classifier", message, fix=Fix("Remove the licence classifiers."), evidence=evidence
        )
    members = {member.name for member in need(wheel.archive).members}
    folder = f"{name.distribution}-{name.version}.dist-info/licenses"
    if fields.first("metadata-version") not in METADATA_VERSIONS[: METADATA_VERSIONS.index("2.4")]:
        for file in fields.of("license-file"):
            if f"{folder}/{file}" not in members:
                fix, shown = (
                    Fix("Build with a backend that supports PEP 639, which puts the files there."),
                    abbreviated(file),
                )
                yield refused(wheel, "license", f"License-File {shown} is not in the wheel, in {folder}/", fix=fix)


@rule(
    "REL306",
    "METADATA contains single-use fields only once",
    why="Installers use the first of two values; the index rejects the upload.",
    example="two `Summary:` lines",
    fix="Build with a current build backend.",
)
def repeated(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """No single-use field of the specification stands twice."""
    for field, values in sorted(_fields(wheel).values.items()):
        if field in SINGLE_USE and len(values) > 1:
            shown = [abbreviated(value) for value in values[: _SHOWN + 1]]
            evidence = (Evidence(field.title(), summarised(shown, _SHOWN), "METADATA"),)
            message = f"METADATA has {field.title()} {len(values)} times; the index accepts it once"
            yield refused(wheel, "repeated-field", message, fix=_CORRECT, evidence=evidence)


@rule(
    "REL307",
    "the description renders, and the index supports the metadata version",
    why="The index renders the description at upload, and rejects one that fails: without Description-Content-Type it "
    "is treated as reStructuredText.",
    example="a table of reStructuredText with a column that is too narrow",
    fix="Set the content type (`readme` in pyproject.toml does), and run `twine check`.",
)
def description(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """readme_renderer renders it; Metadata-Version is one that the index takes."""
    fields, table = _fields(wheel), load("upload_rules")["metadata"]
    version = fields.first("metadata-version")
    if version in METADATA_VERSIONS and version not in table["versions"]:
        reason = f"it accepted Metadata-Version up to {table['versions'][-1]} in {load('upload_rules')['collected']}"
        yield from unproven(wheel, f"{reason}, but this is {version}", Fix("Build with an older metadata version."))
    fault = need(wheel.upload).render_fault
    if isinstance(fault, Unavailable):
        yield from unproven(wheel, fault.reason, Fix(fault.hint or "Run `twine check` on the wheel."))
    elif fault:
        kind = fields.first("description-content-type") or "reStructuredText, the default"
        message = f"the description does not render as {kind}: {fault}"
        yield refused(wheel, "description", message, fix=_CORRECT)


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
            evidence = (Evidence("Requires-Dist", str(requirement), "METADATA"),)
            message = f"the index rejects the direct reference to {requirement.name}"
            yield refused(wheel, "requirement-url", message, fix=_CORRECT, evidence=evidence)
    for field in ("Provides-Dist", "Obsoletes-Dist"):
        for text in _fields(wheel).of(field):
            try:
                fault = "is a direct reference" if Requirement(text).url else ""
            except InvalidRequirement:
                fault = "does not parse"
            if fault:
                yield refused(wheel, "requirement-url", f"{field} {abbreviated(text)!r} {fault}", fix=_CORRECT)


@rule(
    "REL309",
    "URLs and e-mail addresses have the form that the index accepts",
    why="Project-URL is a label of at most 32 characters, a comma, and an http or https URL.",
    example="`Project-URL: https://example.org`, which has no label",
    fix="Write [project.urls] as label = URL.",
)
def links(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Project-URL, Home-Page, Download-URL, and the e-mail addresses of author and maintainer."""
    fields = _fields(wheel)
    for message in _link_faults(fields):
        key = "placeholder" if f" {_PLACEHOLDER!r} " in message else "links"
        yield refused(wheel, key, message, fix=_CORRECT)
    for field in ("Author-Email", "Maintainer-Email"):
        address = parseaddr(fields.first(field))[1]
        local, sign, domain = address.rpartition("@")
        if address and not (local and sign and "." in domain.strip(".") and not re.search(r"[\s<>]", address)):
            key = "placeholder" if address == _PLACEHOLDER else "email"
            yield refused(wheel, key, f"{field}: {abbreviated(address)!r} is not an e-mail address", fix=_CORRECT)


def _link_faults(fields: MetadataFields) -> Iterator[str]:
    longest = load("upload_rules")["limits"]["label"]["characters"]
    labels: set[str] = set()
    for value in fields.of("project-url"):
        label, _, address = (part.strip() for part in value.partition(","))
        if not label or not address:
            yield f"Project-URL {value[:200]!r} is not `label, address`"
        elif len(label) > longest:
            yield f"the label {label[:80]!r} of a Project-URL has {len(label)} characters; the limit is {longest}"
        elif label in labels:
            yield f"two Project-URLs have the label {label!r}"
        elif not _ADDRESS.match(address):
            yield f"the address {address[:200]!r} of a Project-URL is not an http or https URL"
        labels.add(label)
    for field in ("Home-Page", "Download-URL"):
        address = fields.first(field)
        if address and not _ADDRESS.match(address):
            yield f"{field} {address[:200]!r} is not an http or https URL"


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
    text = _fields(wheel).first("summary")
    if len(text) > longest:
        message = f"the summary has {len(text)} characters; the limit is {longest}"
        yield refused(wheel, "summary", message, fix=_CORRECT)
