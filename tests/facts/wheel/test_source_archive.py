"""Reading a source archive: its facts, its cost, and malicious archives."""

from __future__ import annotations

import gzip
import io
import random
import tarfile

import pytest

from tests.support.sdists import SourceBuilder, tar
from tests.support.wheel_facts import MemorySource
from wheel_checks.errors import FormatError, WheelproofError
from wheel_checks.facts.wheel import source_archive
from wheel_checks.facts.wheel.source_archive import SourceArchive, read_source_archive
from wheel_checks.formats.sdist.static_metadata import BuildSystem, StaticMetadata
from wheel_checks.model import Unavailable

PKG_INFO = SourceBuilder("demo", requires=["torch"]).pkg_info
OTHER = SourceBuilder("demo", requires=["other"]).pkg_info
PROJECT = '[project]\nname = "demo"\nversion = "1.0"\ndependencies = ["base"]\n'


def read(members: dict[str, bytes | str] | bytes, name: str = "demo-1.0.tar.gz") -> SourceArchive:
    data = members if isinstance(members, bytes) else gzip.compress(tar(members), mtime=0)
    return read_source_archive(MemorySource(data), "demo", "1.0", name)


def requires(archive: SourceArchive) -> tuple[str, ...]:
    assert isinstance(archive.metadata, StaticMetadata), archive.metadata
    return archive.metadata.requirements


def noise(size: int) -> bytes:
    return random.Random(size).randbytes(size)


@pytest.mark.parametrize("suffix", [".tar.gz", ".zip"])
def test_requirements_and_what_a_build_needs(suffix: str) -> None:
    files = {
        "pyproject.toml": '[build-system]\nrequires = ["setuptools", "numpy"]\n',
        "setup.py": "import torch, os\nimport numpy\nfrom torch.utils.cpp_extension import CUDAExtension\n",
        "src/kernel.cu": "",
        "src/bind.cpp": "",
        "tests/other.rs": "",
    }
    demo = SourceBuilder("demo", requires=["torch"], files=files, suffix=suffix)
    archive = read(demo.build(), demo.file_name)
    assert requires(archive) == ("torch",)
    assert archive.build == BuildSystem(("setuptools", "numpy"))
    assert archive.imported == ("torch",)
    assert archive.sources == ("a C++ compiler", "nvcc of a CUDA toolkit (CUDA sources)")
    assert archive.needs == (
        "setuptools, numpy",
        "a C++ compiler",
        "nvcc of a CUDA toolkit (CUDA sources)",
        "torch installed beforehand (its setup.py imports it: --no-build-isolation)",
    )


def test_a_cuda_toolkit_that_only_setup_py_names() -> None:
    archive = read({"demo-1.0/PKG-INFO": PKG_INFO, "demo-1.0/setup.py": "if CUDA_HOME: ...", "demo-1.0/a.c": ""})
    assert archive.sources == ("a C compiler", "a CUDA toolkit (its setup.py looks for one)")


@pytest.mark.parametrize(
    "members",
    [
        {"./demo-1.0/PKG-INFO": PKG_INFO},
        {"._demo-1.0": "resource fork", "demo-1.0/PKG-INFO": PKG_INFO},
        {"._demo-1.0/PKG-INFO": OTHER, "demo-1.0/PKG-INFO": PKG_INFO},
        {"a file": "", "demo-1.0/PKG-INFO": PKG_INFO},
        {"demo-1.0/PKG-INFO": PKG_INFO, "demo-1.0/demo.egg-info/PKG-INFO": OTHER},
        {"demo-1.0/PKG-INFO": PKG_INFO, "other/PKG-INFO": OTHER, "other/pyproject.toml": PROJECT},
        {"demo-1.0/PKG-INFO": PKG_INFO, "demo-1.0/../demo-1.0/PKG-INFO": OTHER, "/PKG-INFO": OTHER},
        {"demo-1.0/PKG-INFO": PKG_INFO, "again/../demo-1.0/PKG-INFO": OTHER},
    ],
)
def test_the_files_of_the_folder_of_the_archive_count(members: dict[str, bytes | str]) -> None:
    assert requires(read(members)) == ("torch",)


def test_two_files_of_one_name_are_refused() -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for text in (PKG_INFO, OTHER):
            member = tarfile.TarInfo("demo-1.0/PKG-INFO")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    with pytest.raises(FormatError, match="two PKG-INFO files with different contents"):
        read(gzip.compress(stream.getvalue()))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_not_followed(kind: bytes) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        member = tarfile.TarInfo("demo-1.0/PKG-INFO")
        member.type, member.linkname = kind, "/etc/hostname"
        archive.addfile(member)
    found = read(gzip.compress(stream.getvalue()))
    assert isinstance(found.metadata, Unavailable)
    assert "it has no PKG-INFO" in found.metadata.reason


@pytest.mark.parametrize("keep", [0, 10, 200, 0.5, 0.9])
def test_a_truncated_archive_is_no_crash(keep: float) -> None:
    whole = gzip.compress(tar({"demo-1.0/data": noise(4000), "demo-1.0/PKG-INFO": PKG_INFO}), mtime=0)
    try:
        found = read(whole[: int(keep * len(whole)) if keep < 1 else int(keep)])
    except WheelproofError:
        return
    assert isinstance(found.metadata, Unavailable)


def test_a_bomb_in_front_of_the_metadata_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wheel_checks.formats.sdist.tar_members.gunzip.__defaults__", (1 << 20,))
    with pytest.raises(FormatError, match="unpacks to more than 1,048,576 bytes"):
        read({"demo-1.0/zeros": bytes(8 << 20), "demo-1.0/PKG-INFO": PKG_INFO})


def test_metadata_that_is_too_large_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(source_archive._LIMITS, "PKG-INFO", 1000)
    found = read({"demo-1.0/PKG-INFO": PKG_INFO + "x" * 1000})
    assert isinstance(found.metadata, Unavailable)


def test_reading_ends_when_both_files_are_known() -> None:
    start: dict[str, bytes | str] = {"demo-1.0/PKG-INFO": PKG_INFO, "demo-1.0/pyproject.toml": "[tool.x]\n"}
    source = MemorySource(gzip.compress(tar({**start, "demo-1.0/data": noise(4 << 20)}), mtime=0))
    assert requires(read_source_archive(source, "demo", "1.0", "demo-1.0.tar.gz")) == ("torch",)
    assert source.cost.bytes_read <= 300_000


def test_a_static_project_table_needs_no_pkg_info_far_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_archive, "ENOUGH_BYTES", 1 << 18)
    start: dict[str, bytes | str] = {"demo-1.0/pyproject.toml": PROJECT}
    members = {**start, "demo-1.0/data": noise(6 << 20), "demo-1.0/PKG-INFO": PKG_INFO}
    source = MemorySource(gzip.compress(tar(members), mtime=0))
    assert requires(read_source_archive(source, "demo", "1.0", "demo-1.0.tar.gz")) == ("base",)
    assert source.cost.bytes_read < 1 << 20


def test_metadata_at_the_end_is_found_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    members: dict[str, bytes | str] = {"demo-1.0/data": noise(3 << 20), "demo-1.0/PKG-INFO": PKG_INFO}
    assert requires(read(members)) == ("torch",)
    monkeypatch.setattr(source_archive, "MOST_BYTES", 1 << 20)
    found = read(members)
    assert isinstance(found.metadata, Unavailable)
    assert found.metadata.reason.startswith("the requirements of demo-1.0.tar.gz are unknown: ")
    assert (found.computed, found.requirements) == (found.metadata.reason, ())


def test_requirements_that_do_not_parse_are_for_the_installer() -> None:
    found = read({"demo-1.0/PKG-INFO": SourceBuilder("demo", requires=["torch>=two", "base"]).pkg_info})
    assert list(map(str, found.requirements)) == ["base"]
    assert set(requires(found)) == {"torch>=two", "base"}
