"""Following exact pins through METADATA, as far as they lead."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import pytest
from packaging.requirements import Requirement

from tests.support.range_server import RangeServer, Resource
from tests.support.simple_index import simple_index
from tests.support.wheel_facts import AARCH64, X86_64
from tests.support.wheels import WheelBuilder
from wheel_checks.errors import NotFoundError
from wheel_checks.facts.wheel.resolution import Pins, exact_pin, is_pinned, metadata_reader, resolve_pins
from wheel_checks.formats.index.digests import WrongHash, WrongMetadataError
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.formats.wheel.core_metadata import CoreMetadata, parse_core_metadata
from wheel_checks.sources.client import HttpClient
from wheel_checks.targets.target import Target


def wheel(name: str, version: str, *requires: str, tags: str = "py3-none-any") -> WheelBuilder:
    return WheelBuilder(name, version, tags).metadata(requires=requires)


TOOLKIT = wheel(
    "cuda_toolkit",
    "13.0.2",
    'nvidia-cublas==13.1.0.3.*; extra == "cublas"',
    'nvidia-cudart==13.0.96.*; extra == "cudart"',
    'nvidia-npp==13.0.0.*; extra == "npp"',
)
WHEELS = [
    wheel(
        "torch",
        "2.11.0",
        'cuda-toolkit[cublas,cudart]==13.0.2; sys_platform == "linux"',
        'nvidia-nccl-cu13==2.28.9; platform_machine == "aarch64"',
        "filelock",
    ),
    TOOLKIT,
    wheel("nvidia_cublas", "13.1.0.3"),
    wheel("nvidia_cudart", "13.0.96"),
    wheel("nvidia_nccl_cu13", "2.28.9", tags="py3-none-manylinux_2_18_aarch64"),
]


def pins(*requirements: str, wheels: Sequence[WheelBuilder] = WHEELS, target: Target = AARCH64, skip: str = "") -> Pins:
    """The closure of the pins of these requirements among these wheels; ``skip`` is an irrelevant name."""
    by_name: dict[str, list[WheelBuilder]] = {}
    for built in wheels:
        by_name.setdefault(built.name.replace("_", "-"), []).append(built)

    def listing(name: str) -> Sequence[IndexFile]:
        if name not in by_name:
            raise NotFoundError(f"no project {name!r}")
        return [IndexFile(w.file_name, f"https://files.example.org/{w.file_name}") for w in by_name[name]]

    def metadata(file: IndexFile) -> CoreMetadata:
        (built,) = [w for w in wheels if w.file_name == file.file_name]
        text = built._dist_info_texts["METADATA"]
        assert isinstance(text, str)
        return parse_core_metadata(text)

    asked = [Requirement(text) for text in requirements]
    return resolve_pins(asked, target, listing, metadata, skip=lambda r: r.name == skip)


def test_pins_are_followed_with_their_extras_and_markers() -> None:
    found = pins("torch==2.11.0", skip="filelock")
    assert {(p.name, p.version): p.required_by for p in found.packages} == {
        ("torch", "2.11.0"): ("",),
        ("cuda-toolkit", "13.0.2"): ("torch",),
        ("nvidia-cublas", "13.1.0.3"): ("cuda-toolkit",),
        ("nvidia-cudart", "13.0.96"): ("cuda-toolkit",),
        ("nvidia-nccl-cu13", "2.28.9"): ("torch",),
    }
    assert not found.unpinned
    assert found.skipped == ("torch requires filelock",)


def test_a_requirement_without_a_pin_needs_a_resolver() -> None:
    found = pins("torch==2.11.0")
    assert found.unpinned == ("torch requires filelock, which is not an exact pin",)


def test_the_marker_of_another_machine_is_not_followed() -> None:
    assert "nvidia-nccl-cu13" not in {p.name for p in pins("torch==2.11.0", target=X86_64).packages}


def test_a_range_is_answered_by_the_pin_of_another() -> None:
    wheels = [wheel("a", "1", "c>=1"), wheel("b", "1", "c==2"), wheel("c", "2")]
    assert not pins("a==1", "b==1", wheels=wheels).unpinned
    wheels[0] = wheel("a", "1", "c>=3")
    found = pins("a==1", "b==1", wheels=wheels)
    assert found.unpinned == ("a requires c>=3, while another package pins c==2",)


def test_an_extra_that_is_asked_for_later_is_followed_too() -> None:
    wheels = [
        wheel("a", "1", "base==1", "b==1"),
        wheel("b", "1", "base[more]==1"),
        wheel("base", "1", 'extra1==1; extra == "more"'),
        wheel("extra1", "1"),
    ]
    assert "extra1" in {p.name for p in pins("a==1", wheels=wheels).packages}


def test_packages_that_require_each_other_end() -> None:
    wheels = [wheel("a", "1", "b==1"), wheel("b", "1", "a==1")]
    assert [p.name for p in pins("a==1", wheels=wheels).packages] == ["a", "b"]


def test_a_pin_without_a_wheel_on_the_target_is_told() -> None:
    wheels = [wheel("a", "1", "b==1"), wheel("b", "1", tags="cp312-cp312-manylinux_2_28_x86_64")]
    _, b = pins("a==1", wheels=wheels).packages
    assert (b.version, b.choice.chosen) == ("1", None)
    assert "its wheels are for manylinux_2_28_x86_64" in b.choice.explanation


def test_a_project_that_no_index_knows_is_an_error() -> None:
    with pytest.raises(NotFoundError):
        pins("nosuch==1")


@pytest.mark.parametrize(
    ("text", "pin", "pinned"),
    [
        ("a==1.0", "1.0", True),
        ("a===1.0", "1.0", True),
        ("a==13.1.0.3.*", "", True),
        ("a==13.1.0.*", "", True),
        ("a==13.1.*", "", False),
        ("a>=1.0", "", False),
        ("a", "", False),
        ("a @ https://example.org/a-1.0-py3-none-any.whl", "", False),
    ],
)
def test_what_is_a_pin(text: str, pin: str, pinned: bool) -> None:
    assert (exact_pin(Requirement(text)), is_pinned(Requirement(text))) == (pin, pinned)


@pytest.mark.parametrize("sidecar", [True, False], ids=["sidecar", "404 for an offered sidecar"])
def test_metadata_is_read_beside_the_wheel_or_from_it(sidecar: bool) -> None:
    demo = wheel("demo", "1.0", "base==1.0")
    files = simple_index(demo)
    path = f"/files/{demo.file_name}"
    if sidecar:
        files[f"{path}.metadata"] = Resource(b"Metadata-Version: 2.4\nName: demo\nVersion: 1.0\nRequires-Dist: other\n")
    with RangeServer(files) as server, HttpClient() as client:
        file = replace(IndexFile(demo.file_name, server.url(path)), core_metadata={})
        metadata = metadata_reader(client)(file)
    assert [str(r) for r in metadata.requirements] == ["other" if sidecar else "base==1.0"]


@pytest.mark.parametrize("heeded", [True, False], ids=["reported", "refused"])
def test_metadata_with_another_hash_than_stated_is_not_used(heeded: bool) -> None:
    demo = wheel("demo", "1.0", "base==1.0")
    files = simple_index(demo)
    path = f"/files/{demo.file_name}"
    body = b"Metadata-Version: 2.4\nName: demo\nVersion: 1.0\nRequires-Dist: evil\n"
    files[f"{path}.metadata"] = Resource(body)
    wrong: list[WrongHash] = []
    with RangeServer(files) as server, HttpClient() as client:
        file = IndexFile(demo.file_name, server.url(path), core_metadata={"sha256": "0" * 64})
        if heeded:
            metadata = metadata_reader(client, wrong.append)(file)
            assert [str(r) for r in metadata.requirements] == ["base==1.0"]
        else:
            with pytest.raises(WrongMetadataError, match=r"has sha256=\w+; expected sha256=0{64}, as the index states"):
                metadata_reader(client)(file)
    found = f"sha256={hashlib.sha256(body).hexdigest()}"
    assert wrong == [WrongHash(demo.file_name, f"sha256={'0' * 64}", found)] * heeded
