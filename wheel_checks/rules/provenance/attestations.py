"""Is a file attested by its publisher, and does that hold for its bytes? (PEP 740)"""

from __future__ import annotations

from collections.abc import Iterable

from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.provenance.attestations import FileProvenance
from wheel_checks.model import Evidence, Finding, Fix, Unavailable, need
from wheel_checks.registry import rules_of

rule = rules_of("file-provenance")


@rule(
    "WHL421",
    "attestations of the file are offered",
    why="An attestation (PEP 740) is a signed statement of who published these very bytes: which repository, by which "
    "workflow. Without one, whoever has a token of the project, or of the index, can replace what you expect.",
    example="a wheel of which the index names no provenance, under `wheelproof release --require-attestations`",
    fix="Publish from a workflow as a trusted publisher, with attestations. A local file is judged by those that lie "
    "by it: demo-1.0-py3-none-any.whl.publish.attestation.",
)
def offered(provenance: FileProvenance, _: Expectations) -> Iterable[Finding]:
    """The index names a provenance object, or one lies by the file; undecided where it cannot be read."""
    found = provenance.attestations
    fix = Fix("Publish as a trusted publisher, with attestations; who installs the file can ask the project to.")
    if isinstance(found, Unavailable):
        hint = Fix(found.hint) if found.hint else None
        yield Finding(f"where the file comes from is not proven: {found.reason}", fix=hint, undecided=True)
    elif not found and provenance.is_required:
        yield Finding("no attestation of the file is offered", fix=fix)
    elif not found:
        message = "where the file comes from is not proven: no attestation of it is offered"
        yield Finding(message, fix=fix, undecided=True)


@rule(
    "WHL422",
    "every attestation holds for the bytes that were read",
    why="The signature, the certificate of the publisher, the entry in the public log and the hash of the file are "
    "checked. Where one of these fails, the file is not what was published, or the statement was made up.",
    example="a wheel of which one byte was changed after it was attested",
    fix="Do not use the file before you know why; ask the project which hash the file has.",
)
def holding(provenance: FileProvenance, _: Expectations) -> Iterable[Finding]:
    """Each verifies, for its publisher and for the sha256 of the whole file."""
    found = need(provenance.attestations)
    if not found:
        need(Unavailable("no attestation of the file is offered"))
    for attested in found:
        if not attested.problem:
            continue
        evidence = (
            Evidence("publisher", attested.who, provenance.place),
            Evidence("sha256 of the file", provenance.sha256, "every byte"),
        )
        if attested.is_open:
            newer = Fix("A newer pypi-attestations may know the authority: pip install -U pypi-attestations")
            message = f"the attestation of {attested.who} is not proven: {attested.problem}"
            yield Finding(message, evidence, newer, undecided=True)
        else:
            fix = Fix("Do not use the file before you know why it differs from what was published.")
            yield Finding(f"the attestation of {attested.who} does not hold: {attested.problem}", evidence, fix)
