"""Wheels of a plan that contain files of an installed package that stays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.support.wheels import WheelBuilder
from wheel_checks.facts.pins.import_order import Copy, ImportOrder
from wheel_checks.formats.index.page import file_from_url
from wheel_checks.model import Unavailable
from wheel_checks.sources.client import HttpClient
from wheelproof.pins.predict.overwriting import Overwriting, Wheel, overwriting

TORCH = {"torch/__init__.py": "version = 2", "tests/__init__.py": "of torch", "nvidia/__init__.py": ""}


def environment(root: Path, files: Mapping[str, str] = TORCH) -> ImportOrder:
    """Two folders of imports; the second one has a torch with these files."""
    folder = root / "site"
    recorded = folder / "torch-2.7.0.dist-info"
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    recorded.mkdir(parents=True)
    (recorded / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.7.0\n")
    (recorded / "RECORD").write_text("".join(f"{name},,\n" for name in files))
    copy = Copy("torch", "2.7.0", 1, (Requirement("x"),), frozenset(name.partition("/")[0] for name in files))
    return ImportOrder.of((str(root / "front"), str(folder)), [copy])


def compared(order: ImportOrder, wheel: Wheel, folder: int = 1) -> Overwriting:
    held = list(order.everything.values())
    with HttpClient(None) as client:
        return overwriting(order, folder, held, {"other": "1.0"}, lambda _: wheel, client)


def wheel_with(root: Path, path: str, text: str) -> Wheel:
    written = WheelBuilder("other", "1.0").add(path, text).write(root)
    return file_from_url(written.as_uri(), "")


@pytest.mark.parametrize(
    ("path", "text", "file"),
    [
        ("torch/__init__.py", "version = 9", "torch/__init__.py"),
        ("other-1.0.data/purelib/torch/__init__.py", "x", "torch/__init__.py"),
        ("other-1.0.data/data/lib/python3.12/site-packages/torch/__init__.py", "x", "torch/__init__.py"),
        ("torch/__init__.py", "version = 2", ""),  # the same content
        ("nvidia/__init__.py", "", ""),
        ("tests/__init__.py", "of other", ""),  # no import of torch reaches it
        ("torch/more.py", "x", ""),
        ("torchx/__init__.py", "x", ""),
        ("other-1.0.data/scripts/torch", "x", ""),
    ],
)
def test_files_of_a_package_that_stays(tmp_path: Path, path: str, text: str, file: str) -> None:
    found = compared(environment(tmp_path), wheel_with(tmp_path, path, text))

    assert found == Overwriting({"torch": f"other 1.0 ({file})"} if file else {})


def test_a_copy_in_front_of_it(tmp_path: Path) -> None:
    order = environment(tmp_path)

    assert compared(order, wheel_with(tmp_path, "torch/__init__.py", "x"), 0).by
    assert not compared(order, wheel_with(tmp_path, "torch/lib.py", "x"), 0).by


def test_a_package_behind_which_nothing_is_written(tmp_path: Path) -> None:
    order = environment(tmp_path)

    assert compared(order, wheel_with(tmp_path, "torch/__init__.py", "x"), 2) == Overwriting()


def test_a_described_package_has_unknown_files(tmp_path: Path) -> None:
    order = ImportOrder.of(("site-packages",), [Copy("torch", "2.7.0", 0)])

    assert compared(order, wheel_with(tmp_path, "torch/__init__.py", "x"), 0).by
    (sentence,) = compared(order, wheel_with(tmp_path, "torch/more.py", "x"), 0).open
    assert sentence == "whether torch/more.py of other 1.0 is a file of torch 2.7.0 is unknown"
    assert compared(order, wheel_with(tmp_path, "torchx/more.py", "x"), 0) == Overwriting()


def test_a_wheel_that_cannot_be_read(tmp_path: Path) -> None:
    order = environment(tmp_path)
    broken = tmp_path / "other-1.0-py3-none-any.whl"
    broken.write_bytes(b"no archive")

    (sentence,) = compared(order, file_from_url(broken.as_uri(), "")).open
    assert sentence.startswith("the files of other 1.0 could not be read: ")
    assert compared(order, Unavailable("no such file")).open
    assert compared(order, None) == Overwriting()  # a source archive
