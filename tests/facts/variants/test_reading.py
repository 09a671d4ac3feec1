"""The variants at the place of a variant wheel: the document, found and read once; the wheels by label."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.range_server import RangeServer
from tests.support.variants import document, variant
from tests.support.wheel_facts import INDEX, facts_of, listed
from tests.support.wheels import WheelBuilder
from wheel_checks.errors import FormatError
from wheel_checks.facts.difference.pairing import pair_files
from wheel_checks.facts.variants.reading import is_variants_file, variants_in_folder, variants_on_index
from wheel_checks.facts.wheel.siblings import find_siblings
from wheel_checks.facts.wheel.variant import VariantIndex
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.formats.wheel.wheel_name import parse_wheel_name
from wheel_checks.model import Unavailable
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.variant_files import VariantFiles
from wheel_checks.targets.target import Target

CU13 = ["nvidia :: cuda_version_lower_bound :: 13.0"]
PLAIN = "demo_pkg-1.0-cp312-cp312-manylinux_2_28_x86_64.whl"
NAME = parse_wheel_name("demo_pkg-1.0-cp312-cp312-manylinux_2_28_x86_64-cu13.whl")


@pytest.mark.parametrize(
    ("file_name", "is_the_document"),
    [
        ("demo_pkg-1.0-variants.json", True),
        ("Demo.Pkg-1.0.0-variants.json", True),
        ("demo-pkg-1.0-variants.json", True),
        ("demo_pkg-1.1-variants.json", False),
        ("demo-1.0-variants.json", False),
        ("demo_pkg-1.0-variants.json.metadata", False),
        ("demo_pkg-variants.json", False),
        (PLAIN, False),
    ],
)
def test_the_document_is_found_however_its_name_is_normalised(file_name: str, is_the_document: bool) -> None:
    assert is_variants_file(file_name, NAME) is is_the_document


def test_wheels_and_document_of_one_index_and_one_release() -> None:
    files = [
        listed(NAME.file_name),
        listed(PLAIN),
        listed("demo_pkg-1.1-cp312-cp312-manylinux_2_28_x86_64-cu14.whl"),
        IndexFile("demo_pkg-1.0-py3-none-any-other.whl", "https://else.example.org/x.whl", index="https://else"),
    ]

    with HttpClient() as client:
        index = variants_on_index(NAME, files, INDEX, VariantFiles(client))

    assert index.wheels == {"": (PLAIN,), "cu13": (NAME.file_name,)}
    assert index.metadata == Unavailable(f"{INDEX} does not list demo_pkg-1.0-variants.json")
    assert not index.listed


def test_wheels_of_the_release_count_however_their_names_are_normalised(tmp_path: Path) -> None:
    names = [
        NAME.file_name,
        "Demo.Pkg-1.0.0-cp312-cp312-manylinux_2_28_x86_64-cu12.whl",
        "demo_pkg-1.0-1-cp312-cp312-manylinux_2_28_x86_64-cpu.whl",
        "demo-1.0-cp312-cp312-manylinux_2_28_x86_64-other.whl",
        "demo_pkg-1.0.1-cp312-cp312-manylinux_2_28_x86_64-later.whl",
        "demo_pkg-nonsense-cp312-cp312-any-x.whl",
    ]
    for name in (*names, "Demo_Pkg-1.0.0-variants.json"):
        (tmp_path / name).write_text("{}")
    with HttpClient() as client:
        on_index = variants_on_index(NAME, [listed(name) for name in names], INDEX, VariantFiles(client))
        in_folder = variants_in_folder(NAME, tmp_path, VariantFiles(client))

    assert list(on_index.wheels) == ["cpu", "cu12", "cu13"]
    assert isinstance(in_folder, VariantIndex)
    assert in_folder.file_name == "Demo_Pkg-1.0.0-variants.json"
    assert list(in_folder.wheels) == ["cpu", "cu12", "cu13"]


def test_a_document_is_fetched_once_whatever_it_holds() -> None:
    sound = json.dumps(document({"cu13": CU13})).encode()
    with RangeServer({"/sound": sound, "/broken": b"<html>"}) as server, HttpClient() as client:
        files = VariantFiles(client)
        for _ in range(3):
            metadata, size = files.read(IndexFile("demo-1.0-variants.json", server.url("/sound")))
            with pytest.raises(FormatError, match="is not valid JSON"):
                files.read(IndexFile("demo-1.0-variants.json", server.url("/broken")))

        assert (list(metadata.variants), size) == (["cu13"], len(sound))
        assert [len(server.requests_for(path)) for path in ("/sound", "/broken")] == [1, 1]


def test_a_document_that_the_index_calls_too_large_is_not_fetched() -> None:
    with RangeServer({"/huge": b"{}"}) as server, HttpClient() as client:
        with pytest.raises(FormatError, match="has 5,000,000 bytes; expected at most 4,194,304"):
            VariantFiles(client).read(IndexFile("a", server.url("/huge"), size=5_000_000))

        assert server.requests_for("/huge") == []


def test_a_folder_may_hold_a_document_beside_its_wheels(tmp_path: Path) -> None:
    wheel = variant("cu13", CU13, name="demo_pkg").write(tmp_path)
    WheelBuilder("demo_pkg", "1.0", "cp312-cp312-manylinux_2_28_x86_64").write(tmp_path)
    name = parse_wheel_name(wheel.name)
    with HttpClient() as client:
        without = variants_in_folder(name, tmp_path, VariantFiles(client))
        (tmp_path / "demo_pkg-1.0-variants.json").write_text(json.dumps(document({"cu13": CU13})))
        index = variants_in_folder(name, tmp_path, VariantFiles(client))

    assert without == Unavailable("demo_pkg-1.0-variants.json is missing next to the wheel")
    assert isinstance(index, VariantIndex)
    assert index.wheels == {"": (PLAIN,), "cu13": (wheel.name,)}
    assert not isinstance(index.metadata, Unavailable)
    assert list(index.metadata.variants) == ["cu13"]


def test_a_wheel_without_label_and_metadata_is_no_variant() -> None:
    assert facts_of(WheelBuilder("demo", "1.0")).variant is None


def test_siblings_and_counterparts_are_of_the_same_variant() -> None:
    names = [
        f"demo-1.0-cp312-cp312-manylinux_2_28_{machine}{label}.whl"
        for machine in ("aarch64", "x86_64")
        for label in ("", "-cu13")
    ]
    wheel = facts_of(variant("cu13", CU13).build(), names[3], target=Target((3, 12), "x86_64", (2, 39)))

    siblings = find_siblings(wheel, [listed(name) for name in names], {})

    assert [sibling.file_name for sibling in siblings] == [names[1]]
    assert pair_files(names[:2], names[2:]).pairs == ((names[0], names[2]), (names[1], names[3]))
