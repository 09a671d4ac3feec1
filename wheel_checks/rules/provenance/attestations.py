"""Is a file attested by its publisher, and does that hold for its bytes? (PEP 740)"""

from collections.abc import Iterable

from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.provenance.attestations import FileProvenance
from wheel_checks.model import Evidence, Finding, Fix, Unavailable, need
from wheel_checks.registry import rules_of

rule = rules_of("file-provenance")


@rule(
    "WHL421",
    "the index or the folder has attestations of the file",
    why="An attestation (PEP 740) is a signed statement of who published exactly these bytes: which repository, by "
    "which workflow. Without one, anyone with a token of the project, or of the index, can replace the file.",
    example="a wheel for which the index lists no provenance, under `wheelproof release --require-attestations`",
    fix="Publish from a workflow as a trusted publisher, with attestations. A local file uses the attestations next to "
    "it: demo-1.0-py3-none-any.whl.publish.attestation.",
)
def offered(provenance: FileProvenance, _: Expectations) -> Iterable[Finding]:
    """The index names a provenance object, or one is next to the file; undecided where it cannot be read."""
    found = provenance.attestations
    fix = Fix("Publish as a trusted publisher, with attestations; users of the file can ask the project for that.")
    if isinstance(found, Unavailable):
        hint = Fix(found.hint) if found.hint else None
        yield Finding(f"the origin of the file is not proven: {found.reason}", fix=hint, undecided=True)
    elif not found and provenance.is_required:
        yield Finding("the file has no attestation", fix=fix)
    elif not found:
        message = "the origin of the file is not proven: it has no attestation"
        yield Finding(message, fix=fix, undecided=True)


@rule(
    "WHL422",
    "every attestation is valid for the bytes that were read",
    why="The signature, the publisher's certificate, the entry in the public log and the hash of the file are checked. "
    "If one of these fails, the file is not the published one, or the statement is forged.",
    example="a wheel in which one byte was changed after it was attested",
    fix="Do not use the file before you know the reason; ask the project for the file's hash.",
)
def holding(provenance: FileProvenance, _: Expectations) -> Iterable[Finding]:
    """Each verifies, for its publisher and for the sha256 of the whole file."""
    found = need(provenance.attestations)
    if not found:
        need(Unavailable("the file has no attestation"))
    for attested in found:
        if not attested.problem:
            continue
        evidence = (
            Evidence("publisher", attested.who, provenance.place),
            Evidence("sha256 of the file", provenance.sha256, "every byte"),
        )
        if attested.is_open:
            newer = Fix("A newer pypi-attestations may support the authority: pip install -U pypi-attestations")
            message = f"the attestation of {attested.who} is not proven: {attested.problem}"
            yield Finding(message, evidence, newer, undecided=True)
        else:
            fix = Fix("Do not use the file before you know why it differs from the published one.")
            yield Finding(f"the attestation of {attested.who} is invalid: {attested.problem}", evidence, fix)
