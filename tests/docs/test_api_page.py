"""The examples of the page on the API run, and print the shown output."""

from __future__ import annotations

import doctest
import shutil
from pathlib import Path

import pytest

import wheel_checks
from tests.support.wheels import WheelBuilder
from wheel_checks import registry
from wheel_checks.catalogue import all_rules

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "api.md"


def test_the_examples_print_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(DOCS / "files", tmp_path, dirs_exist_ok=True)
    (tmp_path / "dist").mkdir()
    WheelBuilder().write(tmp_path / "dist")
    monkeypatch.chdir(tmp_path)
    all_rules()  # ours are registered now, and not later into the copy
    monkeypatch.setattr(registry, "_RULES", dict(registry._RULES))

    result = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.ELLIPSIS)

    assert result.attempted > 15
    assert not result.failed


def test_the_page_names_every_public_name() -> None:
    promised = PAGE.read_text(encoding="utf-8").partition("## What is promised")[2]

    assert [name for name in wheel_checks.__all__ if f"`{name}`" not in promised] == []


def test_the_promised_fields_of_facts_are_there() -> None:
    wheel = {"file_name", "size", "name", "metadata", "wheel_file", "record", "accelerator", "gpu_code"}
    host = {"system", "driver", "pci", "interpreter", "installed", "variables", "cuda", "torch"}

    assert wheel <= set(wheel_checks.WheelFacts.__dataclass_fields__)
    assert host <= set(wheel_checks.HostFacts.__dataclass_fields__)
