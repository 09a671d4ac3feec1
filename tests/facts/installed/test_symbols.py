"""Symbols of installed libraries, looked up in the real interpreter and C library of this host."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.compiling import compile_once
from tests.support.elf import AARCH64, Elf, Symbol
from tests.support.environments import Installed
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.installed.facts import InstalledEnvironment, PackageSymbols
from wheel_checks.model import need
from wheel_checks.targets.target import this_machine

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
MODULE = "demo/_C.abi3.so"
CALLS = """
void *{name}(void);
void *PyInit__C(void) {{ return {name}(); }}
"""


def environment(folder: Path) -> Installed:
    """A virtual environment of the interpreter that runs this test."""
    env = Installed(folder, f"lib/python{PYTHON}/site-packages")
    (folder / "bin").mkdir()
    (folder / "bin" / "python3").symlink_to(Path(sys.executable).resolve())
    (folder / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\nversion = {PYTHON}.0\n")
    return env


def looked_up(inside: InstalledEnvironment, name: str) -> PackageSymbols:
    (found,) = (package for package in need(inside.symbols) if package.name == name)
    return found


def install(env: Installed, source: str, *needed: Path) -> Path:
    """The module of a package "demo", compiled, and linked to the ``needed`` libraries."""
    env.install(WheelBuilder("demo", "1.0", "cp311-abi3-manylinux_2_28_x86_64").add(MODULE, b"\x7fELF"))
    return compile_once(env.site_packages / MODULE, ["-x", "c", "-Wl,-z,lazy"], source, needed)


@pytest.mark.parametrize(
    ("name", "is_there"),
    [("PyModule_Create2", True), ("PyNever_WasThere", False), ("malloc", True), ("no_function_of_c", False)],
)
def test_the_real_loader_agrees_about_the_interpreter_and_the_c_library(
    tmp_path: Path,
    name: str,
    is_there: bool,
) -> None:
    env = environment(tmp_path)
    module = install(env, CALLS.format(name=name))
    opened = subprocess.run(
        [sys.executable, "-c", "import ctypes, os, sys; ctypes.CDLL(sys.argv[1], os.RTLD_NOW)", str(module)],
        capture_output=True,
        check=False,
    )

    found = looked_up(env.facts(host_machine=this_machine().target.machine), "demo").facts

    assert (opened.returncode == 0) is is_there
    assert [item.names for item in found.unresolved] == ([] if is_there else [(name,)])
    assert found.unread == ()


def test_a_library_of_the_system_brings_what_it_needs_itself(tmp_path: Path) -> None:
    """The loader searches the whole closure of a library: zlib's names are found after a library that needs it."""
    inner = compile_once(
        tmp_path / "sys" / "libinner.so", ["-x", "c", "-Wl,-soname,libinner.so"], "int inner(void) { return 1; }"
    )
    options = ["-x", "c", "-Wl,-soname,libouter.so", "-Wl,--no-as-needed", f"-Wl,-rpath,{inner.parent}"]
    outer = compile_once(tmp_path / "sys" / "libouter.so", options, "int outer(void) { return 1; }", [inner])
    env = environment(tmp_path / "env")
    install(
        env,
        "int inner(void), outer(void), gone(void); int PyInit__C(void) { return inner() + outer() + gone(); }",
        outer,
    )
    machine = this_machine().target.machine

    found = looked_up(env.facts(host_machine=machine, library_path=(str(outer.parent),)), "demo").facts

    assert [item.names for item in found.unresolved] == [("gone",)]


def test_a_table_of_symbols_that_is_damaged_leaves_the_question_open(tmp_path: Path) -> None:
    built = Elf(machine=AARCH64, symbols=[Symbol("wanted", defined=False), Symbol("x")]).build()
    name = "demo/_C.cpython-312-aarch64-linux-gnu.so"
    demo = WheelBuilder("demo", "1.0", "cp312-cp312-manylinux_2_28_aarch64")
    inside = Installed(tmp_path).install(demo.add(name, built.with_fields({"DT_SYMENT": 3}))).facts()

    ((path, reason),) = looked_up(inside, "demo").facts.unread

    assert path.endswith(name)
    assert reason.startswith("DT_SYMENT is 3")
