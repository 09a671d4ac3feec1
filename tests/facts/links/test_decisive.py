"""Which files of a package decide about its import: given these modules and libraries, these roles."""

from __future__ import annotations

import textwrap

from wheel_checks.facts.links.decisive import Role, decisive_files, taken_of_group
from wheel_checks.facts.links.failing import Loaded, counted_as_imported
from wheel_checks.facts.links.opened_first import by_module, certainly_opened, opened_libraries
from wheel_checks.formats.wheel.python_source import ModuleSources, parse_python_source
from wheel_checks.model import Unavailable


def sources(roots: tuple[str, ...] = ("pkg",), **modules: str) -> ModuleSources:
    parsed = [
        parse_python_source(
            f"{name.replace('__', '/')}.py".replace("/init", "/__init__"), textwrap.dedent(text).encode()
        )
        for name, text in modules.items()
    ]
    return ModuleSources(tuple(parsed), roots)


def roles(files: list[str], read: ModuleSources | Unavailable) -> dict[str, Role]:
    return {path: one.role for path, one in decisive_files(files, read, "pkg").items()}


def test_what_the_import_loads_and_what_only_a_function_loads() -> None:
    read = sources(pkg__init="from pkg import a\nfrom pkg.core import run", pkg__core="def run():\n  import pkg.b")
    files = ["pkg/a.abi3.so", "pkg/b.abi3.so", "pkg/tool.abi3.so"]
    assert roles(files, read) == {files[0]: Role.LOADED, files[1]: Role.OPTIONAL, files[2]: Role.OPTIONAL}


def test_a_swallowed_error_does_not_make_the_only_binary_module_optional() -> None:
    read = sources(pkg__init="try:\n  from pkg import tool\nexcept ImportError:\n  pass")
    assert roles(["pkg/tool.abi3.so"], read) == {"pkg/tool.abi3.so": Role.LOADED}


def test_a_module_that_is_tried_beside_a_certain_one_is_optional() -> None:
    read = sources(pkg__init="from pkg import base\ntry:\n  from pkg import tool\nexcept ImportError:\n  pass")
    assert roles(["pkg/base.abi3.so", "pkg/tool.abi3.so"], read)["pkg/tool.abi3.so"] is Role.OPTIONAL


def test_the_binary_module_counts_by_its_name_where_a_lazy_import_hides_it() -> None:
    read = sources(pkg__init="", pkg__ops="def f():\n  import pkg._C")
    assert roles(["pkg/_C.abi3.so"], read) == {"pkg/_C.abi3.so": Role.LOADED}


def test_a_module_for_another_python_is_not_imported() -> None:
    read = sources(pkg__init="from pkg import core")
    files = [f"pkg/core.cpython-{tag}-x86_64-linux-gnu.so" for tag in ("312", "313")]
    found = decisive_files(files, read, "pkg", "cp312")
    assert [found[path].role for path in files] == [Role.LOADED, Role.OPTIONAL]


def test_which_modules_the_import_fails_without() -> None:
    init = "from pkg import core, plain\nimport ctypes\nctypes.CDLL('pkg/tool.cpython-313-x86_64-linux-gnu.so')"
    read = sources(pkg__init=init, pkg__plain="x = 1", pkg__late="def f():\n  from pkg import other")
    names = ("core", "plain", "tool", "other")
    files = {name: f"pkg/{name}.cpython-313-x86_64-linux-gnu.so" for name in names}
    found = decisive_files(files.values(), read, "pkg", "cp312")
    assert [name for name in names if found[files[name]].imported] == ["core"]
    beside = "_other.cpython-310-x86_64-linux-gnu.so"  # at the top of a wheel whose package does without it
    assert not decisive_files([beside], read, "pkg", "cp312")[beside].imported
    assert decisive_files(["one.cpython-313-x86_64-linux-gnu.so"], ModuleSources())[
        "one.cpython-313-x86_64-linux-gnu.so"
    ].imported


def test_what_a_package_without_modules_opens_on_demand_is_what_it_is_for() -> None:
    read = sources(pkg__init="import ctypes\ndef load_library():\n  ctypes.CDLL('pkg/lib64/libpkg.so')")
    assert roles(["pkg/lib64/libpkg.so"], read) == {"pkg/lib64/libpkg.so": Role.UNKNOWN}
    read = sources(pkg__init="def start():\n  from pkg import mpich, openmpi")
    assert set(roles(["pkg/mpich.abi3.so", "pkg/openmpi.abi3.so"], read).values()) == {Role.OPTIONAL}


def test_libraries_for_each_cuda_are_alternatives() -> None:
    text = """
        import ctypes, torch
        path = "pkg/libpkg_cpu.so"
        if torch.cuda.is_available():
            path = f"pkg/libpkg_cuda{torch.version.cuda}.so"
        ctypes.CDLL(path)
    """
    files = ["pkg/libpkg_cpu.so", "pkg/libpkg_cuda128.so", "pkg/libpkg_cuda130.so"]
    found = decisive_files(files, sources(pkg__init=text), "pkg")
    assert {one.role for one in found.values()} == {Role.ALTERNATIVE}
    assert len({one.group for one in found.values()}) == 1
    assert taken_of_group(found, "13") == [files[2]]
    assert taken_of_group(found, "11") == [files[0]]
    assert taken_of_group(found, "") == files


def test_without_source_nothing_is_known_but_the_main_module() -> None:
    unread = Unavailable("not read")
    assert roles(["pkg/a.abi3.so", "pkg/libb.so"], unread) == {
        "pkg/a.abi3.so": Role.UNKNOWN,
        "pkg/libb.so": Role.UNKNOWN,
    }


def test_a_call_into_another_package_opens_its_libraries() -> None:
    read = sources(
        pkg__init="try:\n  import libx\nexcept ImportError:\n  pass\nelse:\n  libx.load_library()",
        libx__init="from libx.load import load_library",
        libx__load="""
            import ctypes, os
            def load_library():
                import liby
                liby.load_library()
                return _load("libx.so")
            def _load(soname):
                return ctypes.CDLL(os.path.join(os.path.dirname(__file__), "lib64", soname))
        """,
        liby__init="import ctypes\ndef load_library():\n  ctypes.CDLL('liby/lib64/liby.so')",
    )
    files = ["libx/lib64/libx.so", "liby/lib64/liby.so", "libz/lib64/libz.so"]
    assert opened_libraries(["pkg"], by_module(read.modules), files) == files[:2]
    assert certainly_opened(["pkg"], by_module(read.modules), files) == ["libx/lib64/libx.so", "liby/lib64/liby.so"]
    assert certainly_opened(["libx"], by_module(read.modules), files) == []


def test_a_function_that_swallows_the_linkers_error_matters_only_for_what_is_needed() -> None:
    read = sources(
        pkg__init="import libx\nlibx.load_library()",
        libx__init="""
            import ctypes
            def load_library():
                ctypes.CDLL("libx/libfirst.so")
                if prefer_system():
                    ctypes.CDLL("libx/libx.so")
                try:
                    ctypes.CDLL("libx/libx.so")
                except OSError:
                    pass
        """,
    )
    first, swallowed = files = ["libx/libfirst.so", "libx/libx.so"]
    assert certainly_opened(["pkg"], by_module(read.modules), files) == [first]
    assert certainly_opened(["pkg"], by_module(read.modules), files, {swallowed}) == [first, swallowed]


def test_files_that_are_named_after_a_torch() -> None:
    read = sources(pkg__init="import ctypes\nctypes.CDLL(name())", pkg__core="def f():\n  import pkg._C")
    files = ["pkg/libaddon_torch29-cuda.so", "pkg/build/torch210-cxx11-cu130/_ops.abi3.so", "pkg/libtorch_ops.so"]
    found = decisive_files(files, read, "pkg", "cp312", "2.9.1")
    assert [found[path].is_for_another for path in files] == [False, True, False]
    assert found[files[1]].role is Role.OPTIONAL
    assert not any(one.is_for_another for one in decisive_files(files, read, "pkg").values())
    found = decisive_files(files[:2], read, "pkg", "cp312", "2.15.0")
    assert [one.role for one in found.values()] == [Role.OPTIONAL, Role.OPTIONAL]
    assert counted_as_imported(Loaded(frozenset()), found) == frozenset()
