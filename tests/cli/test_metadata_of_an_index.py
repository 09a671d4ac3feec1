"""METADATA that an index serves apart from the wheel (PEP 658, 714), by HTML and JSON, as ``verify`` judges it."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from typing import Any

import pytest

from tests.conftest import Wheelproof
from tests.support.range_server import RangeServer, Resource
from tests.support.wheels import WheelBuilder

WHEEL = WheelBuilder()
NAME = WHEEL.file_name
OWN = b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n"
OTHER = OWN + b"Requires-Dist: evil\n"
JSON = "application/vnd.pypi.simple.v1+json"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def html(stated: str) -> Resource:
    link = f'<a href="/files/{NAME}" data-dist-info-metadata="sha256={stated}">{NAME}</a>'
    return Resource(link.encode(), "text/html")


def as_json(stated: str) -> Resource:
    file = {"filename": NAME, "url": f"/files/{NAME}", "hashes": {}, "core-metadata": {"sha256": stated}}
    return Resource(json.dumps({"meta": {"api-version": "1.1"}, "name": "demo", "files": [file]}).encode(), JSON)


@pytest.mark.parametrize("page", [html, as_json])
@pytest.mark.parametrize(
    ("served", "stated", "rules"),
    [
        (OTHER, sha256(OWN), ["WHL111"]),  # replaced on the way: not used
        (OWN, sha256(OTHER), ["WHL111"]),
        (OTHER, sha256(OTHER), ["WHL109", "WHL112"]),  # replaced on the index, which states its hash
    ],
)
def test_metadata_that_is_not_the_stated_or_not_the_wheels(
    wheelproof: Wheelproof, page: Any, served: bytes, stated: str, rules: list[str]
) -> None:
    assert failed(wheelproof, page(stated), served) == rules


@pytest.mark.parametrize("page", [html, as_json])
def test_the_wheels_own_metadata_with_its_hash(wheelproof: Wheelproof, page: Any) -> None:
    own = own_metadata()
    assert failed(wheelproof, page(sha256(own)), own) == []


def own_metadata() -> bytes:
    """The METADATA that the builder writes into the wheel."""
    return zipfile.ZipFile(io.BytesIO(WHEEL.build())).read("demo-1.0.dist-info/METADATA")


def failed(wheelproof: Wheelproof, page: Resource, served: bytes) -> list[str]:
    """The rules about METADATA that fail, as an error or a warning."""
    whole: dict[str, bytes | Resource] = {f"/files/{NAME}": WHEEL.build(), f"/files/{NAME}.metadata": served}
    with RangeServer({"/simple/demo/": page, **whole}) as server:
        run = wheelproof("verify", "demo", "--python", "3.12", "--index-url", server.url("/simple"), "--format", "json")
    results = [result for subject in json.loads(run.out)["subjects"] for result in subject["results"]]
    rules = sorted({one["rule"] for one in results if one["outcome"] == "fail" and one["severity"] != "note"})
    assert run.status == (1 if "WHL111" in rules or "WHL109" in rules else 0)
    return rules
