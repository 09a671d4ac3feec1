"""WHL421 and WHL422: who attested a file."""

from __future__ import annotations

from typing import Any

from tests.rules.case import Case
from wheel_checks.facts.provenance.attestations import Attested, FileProvenance
from wheel_checks.model import Unavailable

PLACE = "https://index.example/integrity/demo/1.0/demo-1.0-py3-none-any.whl/provenance"
SHA256 = "ab" * 32
HOLDING = Attested("GitHub", "octo/demo", "release.yml", "https://docs.example.org/attestations/publish/v1")


def attested(*found: Attested, of: Unavailable | None = None, required: bool = False) -> FileProvenance:
    """The facts of a file with these attestations."""
    return FileProvenance("demo-1.0-py3-none-any.whl", SHA256, PLACE if found else "", of or found, required)


def broken(problem: str, **fields: Any) -> Attested:
    """An attestation that does not hold."""
    return Attested("GitHub", "octo/demo", "release.yml", problem=problem, **fields)


CASES = [
    Case(
        "WHL421",
        "none is offered, and they are required",
        lambda: attested(required=True),
        ("the file has no attestation",),
    ),
    Case(
        "WHL421",
        "none is offered, and someone asks",
        attested,
        ("the origin of the file is not proven: it has no attestation",),
        undecided=True,
    ),
    Case(
        "WHL421",
        "the service does not answer",
        lambda: attested(of=Unavailable("the server answers HTTP 503"), required=True),
        ("the origin of the file is not proven: the server answers HTTP 503",),
        undecided=True,
    ),
    Case("WHL421", "one is offered", lambda: attested(HOLDING, required=True)),
    Case(
        "WHL422",
        "another file was attested",
        lambda: attested(HOLDING, broken("subject does not match distribution digest")),
        ("the attestation of GitHub octo/demo, release.yml is invalid: subject does not match distribution digest",),
        evidence=(SHA256,),
    ),
    Case(
        "WHL422",
        "an authority that the library does not know",
        lambda: attested(broken("no such authority", is_open=True)),
        ("the attestation of GitHub octo/demo, release.yml is not proven: no such authority",),
        undecided=True,
    ),
    Case("WHL422", "two that hold", lambda: attested(HOLDING, HOLDING)),
]
