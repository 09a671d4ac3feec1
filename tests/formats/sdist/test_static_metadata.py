"""The metadata of an unbuilt source archive: the cases that uv takes for static, and the others."""

from __future__ import annotations

import pytest

from tests.support.sdists import SourceBuilder
from wheel_checks.errors import FormatError
from wheel_checks.formats.sdist.static_metadata import BuildSystem, read_build_system, read_static_metadata

PROJECT = """
[project]
name = "Demo"
version = "1.0"
requires-python = ">=3.9"
dependencies = ["torch>=2", "base; sys_platform == 'linux'"]
[project.optional-dependencies]
test = ["pytest; python_version < '4'"]
"""


def pkg_info(**of: object) -> bytes:
    return SourceBuilder("demo", requires=["torch"], **of).pkg_info.encode()  # type: ignore[arg-type]  # any field


def test_pkg_info_of_a_version_that_says_what_is_static() -> None:
    found = read_static_metadata("demo", "1.0", pkg_info(requires_python=">=3.10"), None)
    assert (found.origin, found.requirements, found.requires_python, found.computed) == (
        "PKG-INFO",
        ("torch",),
        ">=3.10",
        "",
    )


@pytest.mark.parametrize(
    ("of", "why"),
    [
        ({"metadata_version": "2.1"}, "PKG-INFO has Metadata-Version 2.1: a build computes them"),
        ({"computed": ["requires-dist"]}, "PKG-INFO says `Dynamic: Requires-Dist`"),
        (
            {"computed": ["Provides-Extra", "Requires-Python"]},
            "PKG-INFO says `Dynamic: Requires-Python, Provides-Extra`",
        ),
        ({"computed": ["Description", "Version"]}, ""),
    ],
)
def test_what_a_build_computes(of: dict[str, object], why: str) -> None:
    found = read_static_metadata("demo", "1.0", pkg_info(**of), None)
    assert (found.requirements, found.computed) == (("torch",), why)


def test_a_static_project_table_comes_first() -> None:
    found = read_static_metadata("demo", "1.0", pkg_info(computed=["Requires-Dist"]), PROJECT.encode())
    assert (found.origin, found.computed, found.extras) == ("pyproject.toml", "", ("test",))
    assert found.requirements == (
        "torch>=2",
        'base; sys_platform == "linux"',
        "pytest ; (python_version < \"4\") and extra == 'test'",
    )


@pytest.mark.parametrize(
    "text",
    [
        PROJECT.replace("[project.opt", 'dynamic = ["dependencies"]\n[project.opt'),
        PROJECT.replace('"torch>=2"', '"torch >= two"'),
        PROJECT.replace('"1.0"', '"2.0"'),
        PROJECT.replace("Demo", "other"),
        '[project]\nname = "demo"\n[tool.poetry.dependencies]\ntorch = "*"\n',
        "[build-system]\nrequires = []\n",
    ],
)
def test_a_project_table_that_does_not_count(text: str) -> None:
    assert read_static_metadata("demo", "1.0", pkg_info(), text.encode()).origin == "PKG-INFO"


def test_a_version_that_a_build_writes_is_that_of_the_file() -> None:
    text = PROJECT.replace('version = "1.0"', 'dynamic = ["version"]')
    assert read_static_metadata("demo", "1.0", None, text.encode()).version == "1.0"


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        (None, "has no PKG-INFO"),
        (b"Metadata-Version: 2.4\nName: other\n", "is of 'other'"),
        (b"Metadata-Version: 2.4\nName: demo\nVersion: 2.0\n", "is of version '2.0'"),
        (b"Metadata-Version: 2.4\nName: demo\nVersion: two\n", "is of version 'two'"),
    ],
)
def test_an_archive_that_does_not_say(metadata: bytes | None, says: str) -> None:
    with pytest.raises(FormatError, match=says):
        read_static_metadata("demo", "1.0", metadata, None)


def test_the_metadata_of_a_wheel_that_stands_for_it() -> None:
    found = read_static_metadata("demo", "1.0", pkg_info(requires_python=">=3\n .10"), None)
    assert found.text == (
        "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\nRequires-Python: >=3 .10\nRequires-Dist: torch\n"
    )


def test_build_systems() -> None:
    text = '[build-system]\nrequires = ["setuptools", "torch"]\nbuild-backend = "mine"\nbackend-path = ["."]\n'
    assert read_build_system(text.encode()) == BuildSystem(("setuptools", "torch"), "mine", in_tree=True)
    assert read_build_system(None) == read_build_system(b"[tool.x]\n") == BuildSystem()
    with pytest.raises(FormatError, match="not a list of requirements"):
        read_build_system(b'[build-system]\nrequires = "setuptools"\n')


@pytest.mark.parametrize(("stated", "of"), [("1.0.0", "1.0"), ("1.0b1", "1.0-beta.1"), ("1.0", "1.0+local")])
def test_the_same_version_written_otherwise(stated: str, of: str) -> None:
    metadata = f"Metadata-Version: 2.4\nName: demo\nVersion: {stated}\n".encode()
    assert read_static_metadata("demo", of, metadata, None).version == of
