"""A stand-in for the package pypi-attestations: the same names, and a hash in place of a signature.

For tests about finding, fetching and reporting attestations. ``tests/cli/test_provenance_online.py`` shows, with the
package itself, that signatures are verified.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAME = "pypi_attestations"
SOURCE = """\
import json
from types import SimpleNamespace

class AttestationError(ValueError):
    pass

class Publisher:
    def __init__(self, values):
        self.values = values

    def model_dump(self):
        return self.values

class Distribution(SimpleNamespace):
    pass

class Attestation:
    certificate_claims = {}

    def __init__(self, values):
        self.values = values

    @classmethod
    def model_validate_json(cls, text):
        return cls(json.loads(text)["attests"])

    def verify(self, identity, distribution, *, offline):
        assert offline
        if "raises" in self.values:
            raise KeyError(self.values["raises"])
        if self.values["sha256"] != distribution.digest:
            raise AttestationError("Verification failed: subject does not match distribution digest")
        return "https://docs.example.org/attestations/publish/v1", None

class Provenance:
    def __init__(self, bundles):
        self.attestation_bundles = bundles

    @classmethod
    def model_validate_json(cls, text):
        return cls([
            SimpleNamespace(
                publisher=Publisher(bundle["publisher"]),
                attestations=[Attestation(one) for one in bundle["attestations"]],
            )
            for bundle in json.loads(text)["attestation_bundles"]
        ])
"""


@contextmanager
def stand_in(folder: Path) -> Iterator[None]:
    """It can be imported inside the ``with`` block, from ``folder``, and not afterwards."""
    (folder / f"{NAME}.py").write_text(SOURCE)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop(NAME, None)


def provenance(*attestations: dict[str, str], repository: str = "octo/demo") -> bytes:
    """An object as an index serves it, of one publisher."""
    publisher = {"kind": "GitHub", "repository": repository, "workflow": "release.yml"}
    bundle = {"publisher": publisher, "attestations": list(attestations)}
    return json.dumps({"version": 1, "attestation_bundles": [bundle]}).encode()
