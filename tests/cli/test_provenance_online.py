"""Attested files and their real attestations: they are valid, and with one byte changed they are not.

The index that is reachable may show no provenance, so the files are from pypi-attestations' own tests, in its source
archive, served by an index on loopback. The package itself, with some thirty others, is installed into a folder of the
test; it verifies with its own trust root.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.range_server import RangeServer, Resource
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.installers.config import configured_indexes
from wheel_checks.sources.simple_index import SimpleIndex

pytestmark = pytest.mark.online

ROOT = Path(__file__).parents[2]
LIBRARY = "pypi-attestations==0.0.30"
ARCHIVE = "pypi_attestations-0.0.30.tar.gz"
WHEEL = "circleci_sign_publish_example-0.0.1.dev137-py3-none-any.whl"
PROJECT = "circleci-sign-publish-example"
SDIST = "pypi_attestations-0.0.19.tar.gz"
STAGED = "rfc8785-0.1.2-py3-none-any.whl"  # attested with Sigstore's instance for tests, not with the real one
WHO = "CircleCI github.com/CircleCI-Public/sign-and-publish-examples"
PLACE = f"/integrity/{PROJECT}/provenance"

Index = dict[str, bytes | Resource]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pypi-attestations and its requirements."""
    folder = tmp_path_factory.mktemp("library")
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--target", str(folder), LIBRARY]
    subprocess.run(command, check=True, timeout=300)
    return folder


@pytest.fixture(scope="module")
def assets() -> dict[str, bytes]:
    """The files below test/assets of the source archive, by name."""
    with HttpClient() as client:
        index = SimpleIndex(client, configured_indexes(os.environ, Path.cwd()))
        (file,) = (file for file in index.files("pypi-attestations").files if file.file_name == ARCHIVE)
        source = client.open(file.url)
        size, _ = source.read_tail(0)
        data = source.read(0, size)
        source.close()
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        members = [member for member in archive if "/test/assets/" in member.name and member.isfile()]
        found = {member.name.rpartition("/")[2]: archive.extractfile(member) for member in members}
        return {name: file.read() for name, file in found.items() if file is not None}


def run(library: Path, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """wheelproof, with the library, in an environment without any trust root of an earlier run."""
    path = os.pathsep.join(map(str, (library, ROOT / "tools", ROOT)))
    environment = {**os.environ, "PYTHONPATH": path, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    environment["XDG_DATA_HOME"] = str(home / "data")
    command = [sys.executable, "-m", "wheelproof", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, cwd=home, check=False)


def html_index(files: Mapping[str, bytes], document: bytes) -> Index:
    link = f'<a href="/files/{WHEEL}" data-provenance="{PLACE}">{WHEEL}</a>'
    return {f"/simple/{PROJECT}/": Resource(link.encode(), "text/html"), **pages(files, document)}


def json_index(files: Mapping[str, bytes], document: bytes) -> Index:
    listed = [{"filename": WHEEL, "url": f"/files/{WHEEL}", "hashes": {}, "provenance": PLACE}]
    page: dict[str, Any] = {"meta": {"api-version": "1.3"}, "name": PROJECT, "files": listed}
    kind = "application/vnd.pypi.simple.v1+json"
    return {f"/simple/{PROJECT}/": Resource(json.dumps(page).encode(), kind), **pages(files, document)}


def pages(files: Mapping[str, bytes], document: bytes) -> Index:
    return {f"/files/{WHEEL}": files[WHEEL], PLACE: document}


def changed(data: bytes, offset: int) -> bytes:
    return data[:offset] + bytes([data[offset] ^ 1]) + data[offset + 1 :]


def of_index(library: Path, home: Path, index: Index, *more: str) -> subprocess.CompletedProcess[str]:
    with RangeServer(index) as server:
        arguments = (f"{PROJECT}==0.0.1.dev137", "--python", "3.12", "--index-url", server.url("/simple"))
        return run(library, home, "verify", *arguments, "--provenance", *more)


@pytest.mark.parametrize("index", [html_index, json_index])
def test_an_attested_wheel_of_an_index(library: Path, assets: dict[str, bytes], tmp_path: Path, index: Any) -> None:
    found = of_index(library, tmp_path, index(assets, assets[f"{WHEEL}.provenance"]))
    assert found.returncode == 0, found.stdout + found.stderr
    assert f"attested by {WHO}" in found.stdout.splitlines()[0]


def test_with_one_byte_changed_it_fails(library: Path, assets: dict[str, bytes], tmp_path: Path) -> None:
    files = {**assets, WHEEL: changed(assets[WHEEL], 10)}  # the time of the first member: no checksum covers it
    found = of_index(library, tmp_path, html_index(files, assets[f"{WHEEL}.provenance"]), "--select", "WHL42")
    assert found.returncode == 1
    assert "subject does not match distribution digest" in found.stdout.splitlines()[0]


@pytest.mark.parametrize("part", ["statement", "signature", "certificate"])
def test_a_changed_attestation_is_none(library: Path, assets: dict[str, bytes], tmp_path: Path, part: str) -> None:
    document = json.loads(assets[f"{WHEEL}.provenance"])
    attestation = document["attestation_bundles"][0]["attestations"][0]
    holder = attestation["verification_material" if part == "certificate" else "envelope"]
    text = holder[part]
    holder[part] = text[:-8] + ("A" if text[-8] != "A" else "B") + text[-7:]
    found = of_index(library, tmp_path, html_index(assets, json.dumps(document).encode()))
    assert found.returncode == 1, found.stdout
    assert "WHL422" in found.stdout


def test_another_publisher_than_the_index_names(library: Path, assets: dict[str, bytes], tmp_path: Path) -> None:
    document = json.loads(assets[f"{WHEEL}.provenance"])
    document["attestation_bundles"][0]["publisher"]["vcs_origin"] = "github.com/someone/else"
    found = of_index(library, tmp_path, html_index(assets, json.dumps(document).encode()))
    assert found.returncode == 1, found.stdout
    assert "attestation of CircleCI github.com/someone/else is invalid" in found.stdout


def test_attestations_by_local_files(library: Path, assets: dict[str, bytes], tmp_path: Path) -> None:
    for name in (WHEEL, f"{WHEEL}.publish.attestation", STAGED, f"{STAGED}.publish.attestation"):
        (tmp_path / name).write_bytes(assets[name])
    found = run(library, tmp_path, "verify", WHEEL, "--provenance")
    assert found.returncode == 0, found.stdout + found.stderr
    assert f"attested by {WHO}" in found.stdout
    staged = run(library, tmp_path, "verify", STAGED, "--provenance")
    assert staged.returncode == 1
    assert "is invalid" in staged.stdout.splitlines()[0]


def test_a_release_with_and_without(library: Path, assets: dict[str, bytes], tmp_path: Path) -> None:
    dist = tmp_path / "dist"
    dist.mkdir()
    (tmp_path / "release.toml").write_text(
        f'project = "{PROJECT}"\npythons = ["3.12"]\n\n[[platform]]\nname = "any"\ntags = ["any"]\n'
    )
    (dist / WHEEL).write_bytes(assets[WHEEL])
    command = ("release", "dist", "--expect", "release.toml", "--require-attestations")
    without = run(library, tmp_path, *command)
    assert without.returncode == 1
    assert "the file has no attestation" in without.stdout.splitlines()[0]
    (dist / f"{WHEEL}.provenance").write_bytes(assets[f"{WHEEL}.provenance"])
    attested = run(library, tmp_path, *command)
    assert attested.returncode == 0, attested.stdout + attested.stderr


def test_a_source_archive_names_its_workflow(library: Path, assets: dict[str, bytes], tmp_path: Path) -> None:
    for name in (SDIST, f"{SDIST}.provenance"):
        (tmp_path / name).write_bytes(assets[name])
    (tmp_path / "release.toml").write_text(
        'project = "pypi-attestations"\npythons = ["3.12"]\n\n[[platform]]\nname = "any"\ntags = ["any"]\n'
    )
    command = ("release", SDIST, "--expect", "release.toml", "--require-attestations", "--format", "json")
    found = run(library, tmp_path, *command)
    (shown,) = json.loads(found.stdout)["subjects"][1]["facts"]["provenance"]
    assert (shown["publisher"], shown["source"], shown["workflow"]) == (
        "GitHub",
        "trailofbits/pypi-attestations",
        "release.yml",
    )
    assert shown["holds"] is True
