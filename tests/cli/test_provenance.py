"""``verify --provenance`` and ``release --require-attestations``: finding attestations, and reporting them.

The verifying itself, with the real package and real signatures, is shown by ``test_provenance_online.py``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Run, Wheelproof
from tests.support.attestations import provenance, stand_in
from tests.support.range_server import RangeServer, Resource, fail
from tests.support.sdists import SourceBuilder
from tests.support.simple_index import simple_index
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.provenance.attestations import LARGEST, MOST

WHEEL = WheelBuilder()
NAME = WHEEL.file_name
SHA256 = hashlib.sha256(WHEEL.build()).hexdigest()
HOLDS = {"sha256": SHA256}
PLACE = "/integrity/demo/1.0/provenance"
EXPECT = """\
project = "demo"
pythons = ["3.12"]

[[platform]]
name = "any"
tags = ["any"]
"""


@pytest.fixture
def library(tmp_path: Path) -> Iterator[None]:
    folder = tmp_path / "library"
    folder.mkdir()
    with stand_in(folder):
        yield


@pytest.fixture
def attested(wheelproof: Wheelproof) -> Path:
    """The wheel in the test's folder, and the attestation by it."""
    WHEEL.write(Path.cwd())
    return Path(f"{NAME}.provenance")


def verify(wheelproof: Wheelproof, document: bytes | Resource, *arguments: str, named: bool = True) -> Run:
    attributes = {NAME: f'data-provenance="{PLACE}"'} if named else {}
    pages = {**simple_index(WHEEL, attributes=attributes), PLACE: document}
    with RangeServer(pages) as server:
        index = ("--index-url", server.url("/simple"))
        run = wheelproof("verify", "demo", "--python", "3.12", "--provenance", *index, *arguments)
        requests = [request for request in server.requests if request.path == PLACE]
        assert bool(requests) == (named and "--offline" not in arguments)
        return run


def test_without_the_extra_it_says_what_is_missing(wheelproof: Wheelproof, attested: Path) -> None:
    for command in (("verify", NAME, "--provenance"), release_of(".")):
        run = wheelproof(*command)
        assert (run.status, run.out) == (3, "")
        assert "the package pypi-attestations is not installed" in run.err
        assert "-m pip install 'pypi-attestations>=0.0.30'" in run.err


@pytest.mark.usefixtures("library")
class TestOnAnIndex:
    def test_an_attested_file(self, wheelproof: Wheelproof) -> None:
        run = verify(wheelproof, provenance(HOLDS))
        assert run.status == 0, run.out
        assert "attested by GitHub octo/demo, release.yml" in run.out.splitlines()[0]

    def test_the_report_names_publisher_repository_and_workflow(self, wheelproof: Wheelproof) -> None:
        report = json.loads(verify(wheelproof, provenance(HOLDS), "--format", "json").out)
        (shown,) = report["subjects"][0]["facts"]["provenance"]
        assert (shown["publisher"], shown["source"], shown["workflow"]) == ("GitHub", "octo/demo", "release.yml")
        assert shown["holds"] is True

    @pytest.mark.parametrize(
        ("document", "says"),
        [
            (provenance({"sha256": "00" * 32}), "subject does not match distribution digest"),
            (provenance(HOLDS, {"sha256": "00" * 32}), "subject does not match distribution digest"),
            (provenance({"raises": "oid"}), "verifying it fails with KeyError"),
            (b"<html>", "do not have the form of PEP 740"),
            (b"[" * 100_000, "do not have the form of PEP 740"),
            (b"7", "do not have the form of PEP 740"),
            (provenance(*[HOLDS] * (MOST + 1)), f"the file has {MOST + 1} attestations"),
        ],
    )
    def test_what_does_not_hold_fails(self, wheelproof: Wheelproof, document: bytes, says: str) -> None:
        run = verify(wheelproof, document)
        assert run.status == 1
        assert says in run.out.splitlines()[0]

    @pytest.mark.parametrize(
        ("document", "says"),
        [
            (Resource(behave=[fail(404)]), "404"),
            (Resource(behave=[fail(503)]), "503"),
            (Resource(b"x" * (LARGEST + 1)), "too large"),
            (provenance(), "it has no attestation"),
        ],
    )
    def test_what_cannot_be_read_is_undecided(
        self, wheelproof: Wheelproof, document: bytes | Resource, says: str
    ) -> None:
        run = verify(wheelproof, document)
        assert run.status == 3
        assert "the origin of the file is not proven" in run.out.splitlines()[0]
        assert says in run.out

    def test_a_file_without_any_says_so(self, wheelproof: Wheelproof) -> None:
        run = verify(wheelproof, b"", named=False)
        assert run.status == 3
        assert "it has no attestation" in run.out.splitlines()[0]

    def test_offline_is_undecided_also_where_all_is_cached(self, wheelproof: Wheelproof) -> None:
        assert verify(wheelproof, provenance(HOLDS), "--depth", "full").status == 0
        pages = {**simple_index(WHEEL, attributes={NAME: f'data-provenance="{PLACE}"'}), PLACE: provenance(HOLDS)}
        with RangeServer(pages) as server:
            arguments = ("verify", "demo", "--python", "3.12", "--provenance", "--index-url", server.url("/simple"))
            assert wheelproof(*arguments).status == 0
            run = wheelproof(*arguments, "--offline")
        assert run.status == 3
        assert "attestations are not fetched with --offline" in run.out

    def test_no_tree_silences_it(self, wheelproof: Wheelproof) -> None:
        Path("pyproject.toml").write_text('[tool.wheelproof]\nignore = ["WHL42"]\n')
        run = verify(wheelproof, provenance({"sha256": "00" * 32}))
        assert run.status == 3, run.out

    def test_a_url_says_who_could_name_them(self, wheelproof: Wheelproof) -> None:
        with RangeServer(simple_index(WHEEL)) as server:
            run = wheelproof("verify", server.url(f"/files/{NAME}"), "--provenance")
        assert run.status == 3
        assert "no index was queried for it" in run.out


@pytest.mark.usefixtures("library")
class TestOnDisk:
    def test_what_lies_by_a_file_is_read(self, wheelproof: Wheelproof, attested: Path) -> None:
        attested.write_bytes(provenance(HOLDS))
        run = wheelproof("verify", NAME, "--provenance")
        assert run.status == 0, run.out
        assert "attested by GitHub octo/demo, release.yml" in run.out

    def test_a_changed_byte_fails(self, wheelproof: Wheelproof, attested: Path) -> None:
        attested.write_bytes(provenance(HOLDS))
        data = bytearray(Path(NAME).read_bytes())
        data[10] ^= 1  # the time of the first member, which no checksum covers
        Path(NAME).write_bytes(data)
        run = wheelproof("verify", NAME, "--provenance", "--select", "WHL42")
        assert run.status == 1
        assert "subject does not match distribution digest" in run.out

    def test_what_is_installed_has_none(self, wheelproof: Wheelproof) -> None:
        assert wheelproof("verify", "--installed", "--provenance").status == 2


def release_of(target: str, *arguments: str) -> tuple[str, ...]:
    Path("release.toml").write_text(EXPECT)
    return ("release", target, "--expect", "release.toml", "--require-attestations", *arguments)


@pytest.mark.usefixtures("library")
class TestRelease:
    def test_every_file_attested_ships(self, wheelproof: Wheelproof, attested: Path) -> None:
        attested.write_bytes(provenance(HOLDS))
        run = wheelproof(*release_of("."))
        assert run.status == 0, run.out
        assert run.out.startswith("may be uploaded\nSHIP  demo 1.0")

    def test_one_without_stops(self, wheelproof: Wheelproof, attested: Path) -> None:
        attested.write_bytes(provenance(HOLDS))
        archive = SourceBuilder("demo", "1.0")
        Path(archive.file_name).write_bytes(archive.build())
        run = wheelproof(*release_of("."))
        assert run.status == 1
        assert "the file has no attestation" in run.out.splitlines()[0]

    def test_without_the_option_nothing_is_queried(self, wheelproof: Wheelproof, attested: Path) -> None:
        arguments = [word for word in release_of(".") if word != "--require-attestations"]
        assert wheelproof(*arguments).status == 0
