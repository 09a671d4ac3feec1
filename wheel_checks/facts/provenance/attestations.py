"""Who attested a file, and what of that holds for the bytes that were read (PEP 740)."""

import importlib
import importlib.util
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from wheel_checks.errors import FormatError, WheelproofError
from wheel_checks.extras import how_to_install
from wheel_checks.model import Unavailable
from wheel_checks.phrases import shortened

LARGEST = 4 << 20
"""Bytes of one provenance object; that of pypi-attestations 0.0.19 has 9 kB."""

MOST = 32
"""Attestations of one file that are verified, each in some 40 ms."""

_LIBRARY = "pypi_attestations"
_UNKNOWN = (  # words of the libraries
    "no interior errors",  # no authority of the trust root has the name of the issuer
    "keyring: invalid signature",  # of a log: its key may be a newer one than the trust root has
)
_ISSUER = "1.3.6.1.4.1.57264.1.8"  # of Fulcio's certificates: who vouches for the identity,
_SOURCE = "1.3.6.1.4.1.57264.1.12"  # the URI of the repository,
_BUILD = "1.3.6.1.4.1.57264.1.18"  # and that of the file that configures the build, with its revision
_FORGES = {
    "https://token.actions.githubusercontent.com": ("https://github.com/", "GitHub"),
    "https://gitlab.com": ("https://gitlab.com/", "GitLab"),
    "https://oidc.circleci.com": ("", "CircleCI"),
}
_LONGEST = 300  # characters of a reason


@dataclass(frozen=True, slots=True)
class Attested:
    """One attestation. ``publisher`` is the kind ("GitHub"), ``source`` the repository, account or project.

    ``problem`` says why it proves nothing of the file, "" where it holds; ``is_open``: with another version of the
    library it might.
    """

    publisher: str
    source: str
    workflow: str = ""
    predicate: str = ""
    problem: str = ""
    is_open: bool = False

    @property
    def who(self) -> str:
        """Such as "GitHub octo/demo, release.yml"."""
        return ", ".join(filter(None, (f"{self.publisher} {self.source}".strip(), self.workflow)))


@dataclass(frozen=True, slots=True)
class FileProvenance:
    """What is known of the attestations of a file with this ``sha256``, "" where its bytes were not all read.

    ``place`` names where they are from, "" when none are offered: then ``attestations`` is empty. ``is_required``: the
    release stops without them.
    """

    file_name: str
    sha256: str
    place: str
    attestations: tuple[Attested, ...] | Unavailable
    is_required: bool = False


class MissingExtraError(WheelproofError):
    """What was requested needs packages that are installed with an extra only."""


def require_library() -> None:
    """Raises MissingExtraError where the library that verifies attestations is not installed."""
    if importlib.util.find_spec(_LIBRARY) is None:
        raise MissingExtraError(
            "attestations cannot be verified: the package pypi-attestations is not installed",
            hint=how_to_install("provenance"),
        )


def verify_provenance(document: bytes, file_name: str, sha256: str) -> tuple[Attested, ...]:
    """Each attestation of a provenance object, held against the publisher that it names and the bytes of the file.

    ``document`` may also be one attestation, as publishers keep them by a file: then the publisher is whoever the
    certificate names. Nothing is fetched: signatures are checked with the trust root that the library brings.

    Raises FormatError for a document that is neither, and MissingExtraError.
    """
    require_library()
    library = importlib.import_module(_LIBRARY)  # takes a second, and is an extra
    logging.getLogger("sigstore").setLevel(logging.ERROR)  # it warns of working offline, which is meant
    return tuple(
        _verified(library, attestation, publisher, file_name, sha256)
        for attestation, publisher in _attestations(library, document)
    )


def _attestations(library: Any, document: bytes) -> Iterator[tuple[Any, Any]]:
    """Each attestation, with the publisher that it must be of; None where the document names none."""
    try:
        if "attestation_bundles" in dict(json.loads(document)):
            bundles = library.Provenance.model_validate_json(document).attestation_bundles
            pairs = [(one, bundle.publisher) for bundle in bundles for one in bundle.attestations]
        else:
            pairs = [(library.Attestation.model_validate_json(document), None)]
    except (ValueError, TypeError, RecursionError) as error:  # pydantic's errors are ValueErrors
        reason = shortened(" ".join(str(error).split()), _LONGEST)
        raise FormatError(f"the attestations do not have the form of PEP 740: {reason}") from error
    if len(pairs) > MOST:
        raise FormatError(f"the file has {len(pairs):,} attestations", expected=f"at most {MOST}")
    yield from pairs


def _verified(library: Any, attestation: Any, publisher: Any, file_name: str, sha256: str) -> Attested:
    who = ("an unknown publisher", "", "")
    try:
        if publisher is None:
            who = _named_by_certificate(attestation)
            identity = importlib.import_module("sigstore.verify.policy").UnsafeNoOp()  # whoever it names
        else:
            who, identity = _named_by_index(publisher), publisher
        of_file = library.Distribution(name=file_name, digest=sha256)
        predicate, _ = attestation.verify(identity, of_file, offline=True)
    except library.AttestationError as error:
        reason = " ".join(str(error).removeprefix("Verification failed: ").split())
        return Attested(*who, problem=shortened(reason, _LONGEST), is_open=any(words in reason for words in _UNKNOWN))
    except OSError as error:
        return Attested(*who, problem=f"the trust root cannot be read: {error.strerror}", is_open=True)
    except Exception as error:  # noqa: BLE001  # hostile certificates make the libraries raise what they do not name
        reason = shortened(" ".join(str(error).split()), _LONGEST)
        return Attested(*who, problem=f"verifying it fails with {type(error).__name__}: {reason}")
    if not who[1]:
        return Attested(*who, predicate=str(predicate), problem="its certificate states no repository", is_open=True)
    return Attested(*who, predicate=str(predicate))


def _named_by_index(publisher: Any) -> tuple[str, str, str]:
    values: Mapping[str, Any] = publisher.model_dump()
    source = next((values[key] for key in ("repository", "email", "vcs_origin", "project_id") if values.get(key)), "")
    workflow = values.get("workflow") or values.get("workflow_filepath") or ""
    return str(values.get("kind", "")), str(source), str(workflow)


def _named_by_certificate(attestation: Any) -> tuple[str, str, str]:
    claims: Mapping[str, str] = attestation.certificate_claims
    issuer, source = claims.get(_ISSUER, ""), claims.get(_SOURCE, "")
    workflow = claims.get(_BUILD, "").removeprefix(f"{source}/").rpartition("@")[0].rpartition("/")[2]
    forge, kind = _FORGES.get(issuer, ("", issuer))
    return kind, source.removeprefix(forge), workflow
