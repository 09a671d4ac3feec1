"""The table of torch's exports that is in the package: questions with answers from real imports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from wheel_checks.errors import FormatError
from wheel_checks.facts.links import torch_exports as module
from wheel_checks.facts.links.torch_exports import (
    TorchExports,
    export_hash,
    known_releases,
    missing_exports,
    releases_that_export,
    stored_sets,
    torch_exports,
)

OLD_CHECK = "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib"
NEW_CHECK = "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb"


@pytest.fixture
def fresh_table() -> Iterator[None]:
    """A table that is read once more, before and after the test."""
    module._table.cache_clear()
    yield
    module._table.cache_clear()


def test_a_symbol_is_exported_by_its_library_and_by_no_other() -> None:
    exports = torch_exports("2.11.0", "x86_64")
    assert exports is not None
    assert exports.version == "2.11.0+cu130"
    assert export_hash(NEW_CHECK) in exports.libraries["libc10_cuda.so"]
    assert export_hash(NEW_CHECK) not in exports.libraries["libc10.so"]
    assert export_hash(OLD_CHECK) not in exports.libraries["libc10_cuda.so"]


def test_the_releases_that_export_a_symbol_come_in_their_order() -> None:
    assert releases_that_export([NEW_CHECK], "x86_64")[:3] == ("2.10.0", "2.11.0", "2.12.0")
    assert "2.15.0" not in releases_that_export([NEW_CHECK], "x86_64")
    assert releases_that_export([OLD_CHECK], "x86_64")[-1] == "2.9.1"
    assert releases_that_export([OLD_CHECK, NEW_CHECK], "x86_64") == ()
    assert releases_that_export([], "x86_64") == known_releases("x86_64")


def test_a_cpu_build_exports_nothing_of_cuda() -> None:
    exports = torch_exports("2.10.0", "aarch64")
    assert exports is not None
    assert exports.version == "2.10.0+cpu"
    assert "libc10_cuda.so" not in exports.libraries


@pytest.mark.parametrize(
    ("version", "machine"), [("1.13.1", "x86_64"), ("2.11.0+cpu", "x86_64"), ("99.0", "aarch64"), ("2.11.0", "riscv64")]
)
def test_a_torch_outside_the_table_is_unknown(version: str, machine: str) -> None:
    assert torch_exports(version, machine) is None


def test_what_only_some_pythons_have_is_undecided() -> None:
    exports = torch_exports("2.11.0", "aarch64")
    assert exports is not None
    library = "libtorch_python.so"
    assert exports.undecided[library]
    assert not exports.undecided[library] & exports.libraries[library]


def test_every_entry_of_the_table_is_sound() -> None:
    for machine in ("x86_64", "aarch64"):
        for release in known_releases(machine):
            stored = stored_sets(release, machine)
            assert stored is not None
            assert len(stored[1]["libtorch_cpu.so"]) > 10_000
            assert export_hash("THPVariableClass") in stored[1]["libtorch_python.so"]


@pytest.mark.usefixtures("fresh_table")
def test_a_damaged_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch_exports.bin").write_bytes(b"\0" * 100)
    monkeypatch.setattr("importlib.resources.files", lambda _: tmp_path)
    with pytest.raises(FormatError, match=r"torch_exports.bin, the table of torch's exports, is damaged"):
        known_releases("x86_64")


def test_exports_for_one_python_count_for_that_python(monkeypatch: pytest.MonkeyPatch) -> None:
    every, some = frozenset({export_hash("every")}), frozenset({export_hash("some")})
    table = TorchExports("2.11.0", "aarch64", {"libc10.so": every}, {"cp312": {"libtorch_python.so": some}})
    monkeypatch.setattr(module, "torch_exports", lambda *_: table)

    assert missing_exports(("every", "some", "none"), "2.11.0", "aarch64", "cp312") == ("none",)
    assert missing_exports(("every", "some", "none"), "2.11.0", "aarch64", "cp313") == ("some", "none")
