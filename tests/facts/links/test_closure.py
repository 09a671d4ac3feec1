"""The link closure as ld.so makes it: of wheels laid out as if installed, and against the machine's own loader."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.environments import library
from wheel_checks.facts.installed.closure import installed_closure, loader_of, read_elfs
from wheel_checks.facts.links.closure import LoaderEnvironment, Need, Status, SystemLibraries, close
from wheel_checks.formats.elf.bytes import WholeFile
from wheel_checks.formats.elf.file import ElfFacts, Part, read_elf
from wheel_checks.sources.environment import find_environment

LINUX = "/lib64/ld-linux-x86-64.so.2"


def elf(*needed: str, soname: str = "", machine: str = "aarch64", **options: Any) -> ElfFacts:
    return read_elf(WholeFile(library(soname, needed, machine, **options)))


def needs(files: Mapping[str, ElfFacts], *roots: str, **environment: Any) -> dict[tuple[str, str], Need]:
    closure = close(files, roots, LoaderEnvironment("aarch64", **environment))
    return {(need.elf, need.soname): need for need in closure.needs}


def system(files: Mapping[str, ElfFacts], **cache: tuple[str, ...]) -> SystemLibraries:
    return SystemLibraries({name.replace("_", "."): paths for name, paths in cache.items()}, ("/usr/lib",), files.get)


TORCH = "torch/_C.cpython-312-aarch64-linux-gnu.so"


def torch() -> dict[str, ElfFacts]:
    """A tree in torch's shape: RPATHs reach from torch into the packages of NVIDIA."""
    rpath = "$ORIGIN/../../nvidia/cu13/lib:$ORIGIN"
    return {
        TORCH: elf("libtorch_cuda.so", "libc.so.6", rpath="$ORIGIN/lib"),
        "torch/lib/libtorch_cuda.so": elf("libcublas.so.13", "libcuda.so.1", soname="libtorch_cuda.so", rpath=rpath),
        "nvidia/cu13/lib/libcublas.so.13": elf("libcublasLt.so.13", soname="libcublas.so.13"),
        "nvidia/cu13/lib/libcublasLt.so.13": elf(soname="libcublasLt.so.13"),
    }


def test_every_need_of_torch_is_resolved_or_comes_with_driver_or_system() -> None:
    found = needs(torch(), TORCH)

    assert {(n.soname, n.status, n.by) for n in found.values()} == {
        ("libtorch_cuda.so", Status.RESOLVED, "torch/lib/libtorch_cuda.so"),
        ("libc.so.6", Status.SYSTEM, ""),
        ("libcublas.so.13", Status.RESOLVED, "nvidia/cu13/lib/libcublas.so.13"),
        ("libcuda.so.1", Status.DRIVER, ""),
        ("libcublasLt.so.13", Status.RESOLVED, "nvidia/cu13/lib/libcublasLt.so.13"),
    }


def test_the_rpath_of_a_loader_serves_what_it_loads() -> None:
    found = needs(torch(), TORCH)["nvidia/cu13/lib/libcublas.so.13", "libcublasLt.so.13"]

    assert found.how == "RPATH of torch/lib/libtorch_cuda.so"


def test_a_removed_library_is_missing_for_exactly_those_that_need_it() -> None:
    files = torch()
    del files["nvidia/cu13/lib/libcublasLt.so.13"]

    (missing,) = (need for need in needs(files, TORCH).values() if need.status is Status.MISSING)
    assert (missing.elf, missing.soname) == ("nvidia/cu13/lib/libcublas.so.13", "libcublasLt.so.13")
    assert missing.searched == (
        "nvidia/cu13/lib/libcublasLt.so.13",
        "torch/lib/libcublasLt.so.13",
    )


def test_with_a_runpath_no_rpath_counts_neither_its_own_nor_its_loaders() -> None:
    files = torch()
    files["nvidia/cu13/lib/libcublas.so.13"] = elf("libcublasLt.so.13", soname="libcublas.so.13", runpath="$ORIGIN/x")

    found = needs(files, TORCH)["nvidia/cu13/lib/libcublas.so.13", "libcublasLt.so.13"]
    assert (found.status, found.searched) == (Status.MISSING, ("nvidia/cu13/lib/x/libcublasLt.so.13",))


def test_a_library_for_another_machine_is_passed_over() -> None:
    files = {
        "a/m.abi3.so": elf("libx.so", rpath="$ORIGIN/one:$ORIGIN/two"),
        "a/one/libx.so": elf(soname="libx.so", machine="x86_64"),
        "a/two/libx.so": elf(soname="libx.so"),
    }

    found = needs(files, "a/m.abi3.so")["a/m.abi3.so", "libx.so"]
    assert (found.by, found.searched) == ("a/two/libx.so", ("a/one/libx.so (for x86_64)", "a/two/libx.so"))


def test_a_library_that_is_loaded_already_counts_wherever_it_lies() -> None:
    files = {
        "m.abi3.so": elf("liba.so", "libb.so", rpath="$ORIGIN/one"),
        "one/liba.so": elf(soname="liba.so"),
        "one/libb.so": elf("liba.so", soname="libb.so", runpath="/nowhere"),
    }

    found = needs(files, "m.abi3.so")["one/libb.so", "liba.so"]
    assert (found.status, found.by, found.how) == (Status.RESOLVED, "one/liba.so", "loaded already")


def test_what_only_another_package_loads_is_a_preload() -> None:
    vision = {"torchvision/_C.so": elf("libtorch_cuda.so", "libcublas.so.13")}

    found = needs(torch() | vision, TORCH, "torchvision/_C.so")
    assert found["torchvision/_C.so", "libtorch_cuda.so"].status is Status.PRELOAD
    assert found["torchvision/_C.so", "libcublas.so.13"].by == "nvidia/cu13/lib/libcublas.so.13"


def test_a_library_that_is_there_but_that_nobody_reaches_is_missing() -> None:
    files = torch()
    files["torch/lib/libtorch_cuda.so"] = elf("libcublas.so.13", soname="libtorch_cuda.so", rpath="$ORIGIN")

    assert needs(files, TORCH)["torch/lib/libtorch_cuda.so", "libcublas.so.13"].status is Status.MISSING


def test_what_a_package_opens_by_path_first_is_a_preload() -> None:
    files = torch()
    files["torch/lib/libtorch_cuda.so"] = elf("libcublas.so.13", soname="libtorch_cuda.so", rpath="$ORIGIN")

    found = needs(files, TORCH, preloaded=("nvidia/cu13/lib/libcublas.so.13",))
    assert found["torch/lib/libtorch_cuda.so", "libcublas.so.13"].status is Status.PRELOAD


def test_what_is_opened_first_brings_what_it_needs_itself() -> None:
    files = {
        "x/_C.abi3.so": elf("libx.so", "libcurand.so.10"),
        "x/lib/libx.so": elf("libcurand.so.10", soname="libx.so", runpath="$ORIGIN/../../nvidia/lib"),
        "nvidia/lib/libcurand.so.10": elf("libcudart.so.13", soname="libcurand.so.10"),
    }

    found = needs(files, "x/_C.abi3.so", preloaded=("x/lib/libx.so",))
    assert found["x/_C.abi3.so", "libcurand.so.10"].by == "nvidia/lib/libcurand.so.10"
    assert [need.soname for need in found.values() if need.status is Status.MISSING] == ["libcudart.so.13"]


def test_who_needs_torch_gets_torch_s_libraries_and_not_those_of_a_toolkit() -> None:
    toolkit = {"/usr/lib/libcublas.so.13": elf(soname="libcublas.so.13")}
    files = torch() | {
        "torchvision/_C.so": elf("libtorch_cuda.so", "libcublas.so.13"),
        "other/_C.abi3.so": elf("libcublas.so.13"),
    }
    found = needs(files, TORCH, "torchvision/_C.so", "other/_C.abi3.so", system=system(toolkit))

    need = found["torchvision/_C.so", "libcublas.so.13"]
    assert (need.status, need.by) == (Status.PRELOAD, "nvidia/cu13/lib/libcublas.so.13")
    alone = found["other/_C.abi3.so", "libcublas.so.13"]  # nothing says that torch is imported before it
    assert (alone.status, alone.by) == (Status.SYSTEM, "/usr/lib/libcublas.so.13")


def test_what_a_plugin_needs_is_optional() -> None:
    files = {"nvidia/nvshmem/lib/nvshmem_bootstrap_mpi.so.3": elf("libmpi.so.40")}

    assert [need.status for need in needs(files).values()] == [Status.OPTIONAL]


def test_a_bundled_library_with_a_mangled_name_is_found_in_its_libs_folder() -> None:
    files = {
        "demo/m.cpython-312-aarch64-linux-gnu.so": elf("libz-1a2b3c4d.so.1", rpath="$ORIGIN/../demo.libs"),
        "demo.libs/libz-1a2b3c4d.so.1": elf(soname="libz-1a2b3c4d.so.1"),
        "demo.libs/libother-5e6f.so": elf(soname="libother-5e6f.so"),
    }

    closure = close(files, ["demo/m.cpython-312-aarch64-linux-gnu.so"], LoaderEnvironment("aarch64"))
    assert [need.by for need in closure.needs] == ["demo.libs/libz-1a2b3c4d.so.1"]
    assert closure.orphans == ("demo.libs/libother-5e6f.so",)


def test_a_module_at_the_top_of_site_packages_has_an_origin_too() -> None:
    files = {"m.abi3.so": elf("libx.so", rpath="$ORIGIN/x.libs"), "x.libs/libx.so": elf(soname="libx.so")}

    assert needs(files, "m.abi3.so")["m.abi3.so", "libx.so"].by == "x.libs/libx.so"


def test_a_known_machine_must_have_what_manylinux_promises() -> None:
    files = {"m.abi3.so": elf("libGL.so.1", "libc.so.6")}
    known = system({"/usr/lib/libc.so.6": elf(soname="libc.so.6")})

    found = needs(files, "m.abi3.so", system=known)
    assert found["m.abi3.so", "libGL.so.1"].status is Status.MISSING
    assert (found["m.abi3.so", "libc.so.6"].status, found["m.abi3.so", "libc.so.6"].by) == (
        Status.SYSTEM,
        "/usr/lib/libc.so.6",
    )


def test_ld_library_path_comes_before_runpath_and_after_rpath() -> None:
    other = system({"/other/libx.so": elf(soname="libx.so")})
    for option, by in (("runpath", "/other/libx.so"), ("rpath", "lib/libx.so")):
        files = {"m.abi3.so": elf("libx.so", **{option: "$ORIGIN/lib"}), "lib/libx.so": elf(soname="libx.so")}

        found = needs(files, "m.abi3.so", system=other, library_path=("/other",))
        assert found["m.abi3.so", "libx.so"].by == by


def test_facts_that_are_not_known_are_told_and_uncertain_ones_are_marked() -> None:
    whole = library("libx.so", ["liby.so"])
    unsure = replace(read_elf(WholeFile(whole)), possible=frozenset({Part.DYNAMIC}))
    files = {"a.so": read_elf(WholeFile(whole), {Part.SECTIONS}), "b.so": unsure}

    closure = close(files, [], LoaderEnvironment("aarch64"))
    assert closure.unread == ("a.so",)
    assert [(need.elf, need.certain) for need in closure.needs] == [("b.so", False)]


# Against ld.so itself.


@pytest.mark.skipif(not Path(LINUX).exists() or platform.machine() != "x86_64", reason="needs the loader of x86_64")
@pytest.mark.parametrize("inherited", ["rpath", "runpath"])
@pytest.mark.parametrize("own", ["", "rpath", "runpath"])
@pytest.mark.parametrize("library_path", [False, True])
def test_the_search_order_is_that_of_ld_so(tmp_path: Path, inherited: str, own: str, library_path: bool) -> None:
    """m.so loads liba.so, which loads libb.so; three folders hold a libb.so."""
    for folder in ("inherited", "own", "path"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "libb.so").write_bytes(library("libb.so", machine="x86_64"))
    options = {own: "$ORIGIN/../own"} if own else {}
    (tmp_path / "inherited" / "liba.so").write_bytes(library("liba.so", ["libb.so"], "x86_64", **options))
    module = tmp_path / "m.abi3.so"
    module.write_bytes(library("", ["liba.so"], "x86_64", **{inherited: "$ORIGIN/inherited"}))
    variables = {"LD_LIBRARY_PATH": str(tmp_path / "path")} if library_path else {}
    told = subprocess.run([LINUX, "--list", str(module)], env=variables, capture_output=True, text=True, check=False)
    listed = re.search(r"libb\.so => (/\S+)", told.stdout)
    assert listed or "libb.so: cannot open" in told.stderr, told

    files = {str(path): read_elf(WholeFile(path.read_bytes())) for path in tmp_path.rglob("*.so")}
    loader = LoaderEnvironment("x86_64", tuple(variables.values()), system=SystemLibraries({}, (), files.get))
    (found,) = (n for n in close(files, [str(module)], loader).needs if n.soname == "libb.so")
    assert found.by == (str(Path(listed[1]).resolve()) if listed else "")


@pytest.mark.skipif(platform.machine() != "x86_64" or not Path(LINUX).exists(), reason="needs the loader of x86_64")
def test_the_modules_of_this_environment_link_as_ld_so_says() -> None:
    environment = find_environment(sys.executable, variables={})
    elfs = read_elfs(environment)
    loader = loader_of(environment, elfs.files, host_machine="x86_64", library_path=())
    assert isinstance(loader, LoaderEnvironment)
    closure = installed_closure(elfs.files, loader)
    modules = sorted({need.elf for need in closure.needs})[:5]
    assert modules
    for module in modules:
        told = subprocess.run([LINUX, "--list", module], env={}, capture_output=True, text=True, check=True).stdout
        listed = {m[1]: str(Path(m[2]).resolve()) for m in re.finditer(r"(\S+) => (\S+)", told)}
        found = {n.soname: str(Path(n.by).resolve()) for n in closure.needs if n.elf == module and n.soname in listed}
        assert found == {soname: listed[soname] for soname in found}
        assert found
