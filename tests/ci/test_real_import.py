"""The experiments with real imports: the probe of a small package, and the verdict."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ci import abi_pairs, closures, real_import
from ci.real_import import Loaded

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
SYMBOL = "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib"
SWALLOWS = """
import ctypes, os
folder = os.path.dirname(__file__)
ctypes.CDLL(os.path.join(folder, "core.so"))
try:
    ctypes.CDLL(os.path.join(folder, "kernels.so"))
except OSError:
    pass
"""


def loaded(error: str = "", *, tried: tuple[str, ...] = (), mapped: tuple[str, ...] = (), **files: str) -> Loaded:
    """The answer of a probe: the import's error, the files that it opened, and the linker's error for each file."""
    answer = {
        "first": [{"module": "torch", "error": ""}],
        "modules": [{"module": "ext", "error": error}],
        "tried": list(tried),
        "tried_by_name": [],
        "mapped": list(mapped),
        "after_first": files,
        "after_modules": files,
        "owners": {},
        "version": "1.0",
    }
    return Loaded("", answer, ("torch-2.11.0",))


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        (f"OSError: ext/_C.so: undefined symbol: {SYMBOL}", SYMBOL),
        ("libcudart.so.12: cannot open shared object file: No such file or directory", "libcudart.so.12"),
        ("/lib/libstdc++.so.6: version `GLIBCXX_3.4.32' not found (required by ext.so)", "GLIBCXX_3.4.32"),
        ('Failure finding "libnvJitLink.so.13": No such file', "libnvJitLink.so.13"),
        ("RuntimeError: Found no NVIDIA driver on your system", ""),
    ],
)
def test_the_cause_is_what_the_linker_names(message: str, cause: str) -> None:
    assert real_import.cause(message) == cause


def test_a_package_that_swallows_the_error_does_not_work() -> None:
    missing = "libcudart.so.12: cannot open shared object file"
    verdict = abi_pairs.judged(loaded(tried=("k",), k=missing), {})
    assert (verdict["works"], verdict["reason"], verdict["swallowed"]) == (False, "libcudart.so.12", True)


def test_a_file_that_the_import_does_not_open_decides_nothing() -> None:
    verdict = abi_pairs.judged(
        loaded(tried=("core",), mapped=("core",), core="", plugin="libx.so.1: cannot open shared"), {}
    )
    assert verdict["works"]


def test_an_error_of_the_package_itself_is_a_failure_unless_it_is_the_hosts() -> None:
    answer = loaded("RuntimeError: no GPU found", tried=("core",), mapped=("core",), core="")
    assert not abi_pairs.judged(answer, {})["works"]
    assert abi_pairs.judged(answer, {"host": "no GPU"})["works"]


def test_one_of_the_alternatives_is_enough() -> None:
    answer = loaded(tried=("core8", "core7"), mapped=("core7",), core8="libavutil.so.60: cannot open shared", core7="")
    assert abi_pairs.judged(answer, {"any_of": r"core\d"})["works"]
    assert not abi_pairs.judged(answer, {})["works"]


def test_a_symbol_may_be_named_demangled() -> None:
    assert abi_pairs.expected(SYMBOL) == f"{SYMBOL}|c10_cuda_check_implementation"
    assert abi_pairs.expected("libcudart.so.12") == r"libcudart\.so\.12"
    assert abi_pairs.expected("") == ""


@pytest.mark.parametrize("table", [abi_pairs.TABLE, closures.TABLE])
def test_no_measured_row_names_a_folder_of_the_machine_that_measured(table: Path) -> None:
    rows = json.loads(table.read_text(encoding="utf-8"))
    assert rows["measured"]
    assert "/site-packages/" not in json.dumps(rows)


def test_a_real_import_is_probed(tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    site = environment / "lib" / f"python{PYTHON}" / "site-packages"
    (site / "ext").mkdir()
    (site / "ext" / "__init__.py").write_text(SWALLOWS)
    compile_library(tmp_path, site / "ext" / "core.so", "int core(void) { return 1; }")
    compile_library(tmp_path, site / "ext" / "kernels.so", "int absent(void); int kernels(void) { return absent(); }")
    info = site / "ext-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ext\nVersion: 1.0\n")
    (info / "RECORD").write_text("ext/__init__.py,,\next/core.so,,\next/kernels.so,,\n")
    seen = real_import.probe(environment, PYTHON, "ext", ["json"], ["ext"])
    assert seen.error == ""
    assert real_import.own_files(seen) == ["ext/core.so", "ext/kernels.so"]
    verdict = abi_pairs.judged(seen, {})
    assert (verdict["works"], verdict["reason"], verdict["files_loaded"]) == (False, "absent", "1/2")


def compile_library(folder: Path, library: Path, source: str) -> None:
    """Compiles one C source into a shared library, with every symbol resolved at load."""
    (folder / "source.c").write_text(source)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(folder / "source.c")], check=True)
