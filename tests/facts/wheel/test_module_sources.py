"""Which Python members of a wheel are read: given these files and modules, these are read."""

from __future__ import annotations

from collections.abc import Mapping

from wheel_checks.facts.wheel.module_sources import MOST_FILES, collect_module_sources, packages_of
from wheel_checks.formats.wheel.python_source import ModuleSources


def collect(files: Mapping[str, str], *native: str, roots: tuple[str, ...] = ()) -> ModuleSources:
    def read(names: list[str]) -> dict[str, bytes]:
        return {name: files[name].encode() for name in names}

    return collect_module_sources({name: len(text) for name, text in files.items()}, read, native, roots)


def members(found: ModuleSources) -> list[str]:
    return [source.member for source in found.modules]


def test_what_the_import_leads_to_is_read_and_nothing_else() -> None:
    files = {
        "pkg/__init__.py": "from pkg.core import run",
        "pkg/core.py": "def run():\n  import pkg.late",
        "pkg/late.py": "",
        "pkg/other.py": "",
        "tests/__init__.py": "import pkg.other",
    }
    found = collect(files)
    assert members(found) == ["pkg/__init__.py", "pkg/core.py"]
    assert (found.roots, found.unread) == (("pkg",), ())


def test_modules_next_to_a_library_that_no_import_leads_to_are_read_too() -> None:
    files = {"pkg/__init__.py": "", "pkg/ops/__init__.py": "", "pkg/ops/load.py": "import pkg.ops.fast"}
    assert "pkg/ops/load.py" in members(collect(files, "pkg/ops/fast.abi3.so"))
    assert "pkg/ops/load.py" not in members(collect(files))


def test_no_more_than_the_limit_is_read_and_the_rest_is_named() -> None:
    names = [f"m{number}" for number in range(MOST_FILES + 10)]
    files = {"pkg/__init__.py": "\n".join(f"import pkg.{name}" for name in names)}
    files |= {f"pkg/{name}.py": "" for name in names}
    found = collect(files)
    assert len(found.modules) == MOST_FILES
    assert len(found.unread) == 11


def test_of_another_wheel_only_what_its_roots_lead_to() -> None:
    files = {"a/__init__.py": "from a.load import load_library", "a/load.py": "", "b/__init__.py": ""}
    assert members(collect(files, "a/x.abi3.so", roots=("a",))) == ["a/__init__.py", "a/load.py"]


def test_the_outermost_packages() -> None:
    names = ["a/__init__.py", "a/b/__init__.py", "nvidia/c/__init__.py", "single.py", "no-name/__init__.py", "x/y.py"]
    assert packages_of(names) == {"a", "nvidia.c", "single"}
