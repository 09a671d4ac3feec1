"""A module's imports and opened libraries, by its text: given this source, these actions."""

from __future__ import annotations

import textwrap

import pytest

from wheel_checks.formats.wheel.python_source import (
    MAX_SIZE,
    Action,
    ActionKind,
    extension_module_name,
    imported_modules,
    matches,
    parse_python_source,
)


def actions(text: str, kind: ActionKind, member: str = "pkg/__init__.py") -> list[Action]:
    source = parse_python_source(member, textwrap.dedent(text).encode())
    assert source.fault == ""
    return [action for action in source.actions if action.kind is kind]


def loads(text: str, member: str = "pkg/__init__.py") -> list[tuple[str, ...]]:
    return [action.names for action in actions(text, ActionKind.LOAD, member)]


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        (
            "import ctypes, os\nctypes.CDLL(os.path.join(os.path.dirname(__file__), 'lib', 'libx.so'))",
            "pkg/lib/libx.so",
        ),
        ("from ctypes import cdll\ncdll.LoadLibrary(__file__[:3] + 'x')", "*x"),
        (
            "import torch\nfrom pathlib import Path\ntorch.ops.load_library(Path(__file__).parent / '_C.so')",
            "pkg/_C.so",
        ),
        (
            "import torch as t, glob\nfor f in glob.glob(f'{t.__path__[0]}/_C*.so'):\n  t.ops.load_library(f)",
            "torch/_C*.so",
        ),
        ("import ctypes\nfor n in ('a', 'b'):\n  ctypes.CDLL('pkg/lib%s.so' % n)", "pkg/lib*.so"),
        (
            "from importlib.resources import files\nimport ctypes\nctypes.CDLL(str(files('a.b') / 'x.so'))",
            "a/b/x.so",
        ),
        (
            "import sys, ctypes\nif sys.platform == 'win32':\n  ctypes.CDLL('a/x.dll')\nelse:\n  ctypes.CDLL('a/x.so')",
            "a/x.so",
        ),
    ],
    ids=["os.path", "sliced", "pathlib", "glob", "percent", "resources", "platform"],
)
def test_paths_are_evaluated_as_far_as_literals_go(text: str, pattern: str) -> None:
    assert [name for names in loads(text) for name in names] == [pattern]


def test_functions_of_the_module_are_followed_with_their_arguments() -> None:
    text = """
        import os, torch
        def _load(name, folder=os.path.dirname(__file__)):
            torch.ops.load_library(os.path.join(folder, name))
        for name in ["one", "two"]:
            _load(f"{name}.so")
    """
    assert loads(text) == [("pkg/one.so",), ("pkg/two.so",)]


def test_two_branches_are_alternatives_of_one_opening() -> None:
    text = """
        import ctypes, torch
        from pathlib import Path
        path = Path(__file__).parent / "cpu.so"
        if torch.cuda.is_available():
            path = Path(__file__).parent / f"cuda{torch.version.cuda}.so"
        ctypes.CDLL(str(path))
    """
    (names,) = loads(text)
    assert set(names) == {"pkg/cpu.so", "pkg/cuda*.so"}


@pytest.mark.parametrize(
    ("text", "tried", "conditional"),
    [
        ("import x", False, False),
        ("try:\n  import x\nexcept ImportError:\n  pass", True, False),
        ("try:\n  import x\nexcept ImportError as error:\n  raise RuntimeError from error", False, False),
        ("try:\n  import x\nexcept KeyError:\n  pass", False, False),
        ("try:\n  import x\nexcept ImportError:\n  import y", True, False),
        ("import contextlib\nwith contextlib.suppress(OSError):\n  import x", True, False),
        ("import os\nif os.environ.get('X'):\n  import x", False, True),
        ("if True:\n  import x", False, False),
        ("try:\n  SETUP\nexcept NameError:\n  SETUP = False\nif not SETUP:\n  import x", False, False),
    ],
)
def test_guards_of_an_import(text: str, *, tried: bool, conditional: bool) -> None:
    (found,) = (a for a in actions(text, ActionKind.IMPORT) if a.target == "x")
    assert (found.tried, found.conditional) == (tried, conditional)


def test_an_import_that_is_tried_again_is_certain() -> None:
    text = (
        "try:\n  import x\nexcept ImportError:\n  try:\n    import torch\n  except ImportError:\n    pass\n  import x"
    )
    first, *_ = (a for a in actions(text, ActionKind.IMPORT) if a.target == "x")
    assert (first.tried, first.conditional) == (False, False)


def test_an_exception_that_nothing_guards() -> None:
    source = parse_python_source("demo/__init__.py", b"import os\nraise ImportError('no', os)\n")
    assert (source.raises, source.raised_at) == ("ImportError: no", 2)
    assert parse_python_source("demo/__init__.py", b"if 1:\n  raise ImportError\n").raises == ""


def test_what_only_a_type_checker_reads_is_no_import() -> None:
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n  import x"
    assert [a.target for a in actions(text, ActionKind.IMPORT)] == ["typing"]


def test_the_first_of_a_loop_that_works() -> None:
    text = """
        import ctypes
        for version in ("8", "7"):
            try:
                ctypes.CDLL(f"pkg/core{version}.so")
                break
            except OSError:
                continue
    """
    assert [(a.names, a.one_of) for a in actions(text, ActionKind.LOAD)] == [
        (("pkg/core8.so",), True),
        (("pkg/core7.so",), True),
    ]


def test_relative_imports_are_named_from_the_top() -> None:
    text = "from . import _C\nfrom ..other import x\nimport importlib\nimportlib.import_module('.y', __package__)"
    found = [(a.target, a.names) for a in actions(text, ActionKind.IMPORT, "pkg/sub/__init__.py")]
    assert found == [("pkg.sub", ("_C",)), ("pkg.other", ("x",)), ("importlib", ()), ("pkg.sub.y", ())]


def test_cuda_pathfinder_finds_by_name() -> None:
    text = "from cuda.pathfinder import load_nvidia_dynamic_lib\nload_nvidia_dynamic_lib('cublas')"
    assert [a.names for a in actions(text, ActionKind.FIND)] == [("cublas",)]


def test_a_function_that_nothing_calls_keeps_its_parameters() -> None:
    source = parse_python_source("pkg/load.py", b"import ctypes\ndef load(name):\n  ctypes.CDLL('pkg/' + name)")
    assert source.actions[1:] == ()
    assert source.function("load").actions[0].names == ("pkg/\x01name\x02",)  # type: ignore[union-attr]  # it is present


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"def f(:", "cannot be parsed as Python: invalid syntax (line 1)"),
        (b"x = '\0'", "cannot be parsed as Python"),
        (b"x = " + b"(" * 5000, "cannot be parsed as Python"),
        (b"x = " + b"-" * 90_000 + b"1", "cannot be parsed as Python"),
        (b"#" * (MAX_SIZE + 1), "it has 1,048,578 bytes; at most 1,048,576 are parsed"),
        (b"\n".join(b"def f%d(): f%d(); f%d()" % (i, i + 1, i + 1) for i in range(3000)), "too many steps"),
    ],
    ids=["syntax", "null", "brackets", "minus", "large", "calls"],
)
def test_what_cannot_be_followed_is_a_fact(data: bytes, fault: str) -> None:
    assert fault in parse_python_source("pkg/__init__.py", data + b"\n").fault


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("a/b.so", "a/b.so", True),
        ("a/*.so", "a/b.so", True),
        ("a/*.so", "b/b.so", False),
        ("*/nvidia/*/lib/libx.so*", "nvidia/cu13/lib/libx.so.12", True),
        ("ab*ba", "aba", False),
    ],
)
def test_patterns(pattern: str, path: str, *, expected: bool) -> None:
    assert matches(pattern, path) is expected


def test_the_modules_of_an_import_and_the_name_of_an_extension() -> None:
    action = Action(ActionKind.IMPORT, "a.b", ("c", "*"), 1)
    assert imported_modules(action) == ("a", "a.b", "a.b.c")
    assert extension_module_name("a/b/_C.cpython-312-x86_64-linux-gnu.so") == "a.b._C"
    assert extension_module_name("a/libx.so.1") == ""
