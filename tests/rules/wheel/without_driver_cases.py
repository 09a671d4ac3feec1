"""WHL608: the import on a host without NVIDIA's driver."""

from __future__ import annotations

from tests.rules.case import Case
from tests.rules.wheel.linking_cases import LINUX, linked, torch, unread
from tests.support.environments import library
from tests.support.wheel_facts import facts_of
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.facts import WheelFacts

NONE = {"drivers": ("none",)}
MODULE = "demo/_C.cpython-312-aarch64-linux-gnu.so"
GUARDED = "try:\n  from demo import _C\nexcept ImportError:\n  _C = None\n"


def demo(source: str, *needed: str, beside: tuple[str, ...] = ()) -> WheelFacts:
    """A package with this source, and a module that needs ``needed``; ``beside``: the needs of a library next to it."""
    built = WheelBuilder("demo", "1.0", f"cp312-cp312-{LINUX}").add("demo/__init__.py", source)
    built.add(MODULE, library("", needed, rpath="$ORIGIN"))
    return linked(built.add("demo/libdemo_gpu.so", library("libdemo_gpu.so", beside)))


CASES = [
    Case(
        "WHL608",
        "a module that the import loads needs libcuda",
        lambda: demo("from demo import _C\n", "libcuda.so.1", "libc.so.6"),
        (f"the import fails without a driver: {MODULE} needs libcuda.so.1",),
        member=MODULE,
        evidence=("libcuda.so.1",),
        expectations=NONE,
    ),
    Case(
        "WHL608",
        "a library that such a module needs does",
        lambda: demo("from demo import _C\n", "libdemo_gpu.so", beside=("libnvidia-ml.so.1", "libcuda.so.1")),
        ("the import fails without a driver: demo/libdemo_gpu.so needs libcuda.so.1 and libnvidia-ml.so.1",),
        expectations=NONE,
    ),
    Case(
        "WHL608",
        "a library of a wheel that it requires does",
        lambda: linked(torch("libcuda.so.1")),
        ("the import fails without a driver: torch/lib/libtorch_cuda.so needs libcuda.so.1",),
        expectations=NONE,
    ),
    Case(
        "WHL608",
        "the import opens libcuda by its name",
        lambda: demo("import ctypes\nctypes.CDLL('libcuda.so.1')\nfrom demo import _C\n", "libc.so.6"),
        ("the import fails without a driver: demo/__init__.py line 2 opens libcuda.so.1",),
        expectations=NONE,
    ),
    Case(
        "WHL608",
        "the package catches that its module cannot be imported",
        lambda: demo(GUARDED, "libcuda.so.1"),
        (f"not proven that the import works without a driver: whether it needs {MODULE} is unknown",),
        expectations=NONE,
        undecided=True,
    ),
    Case(
        "WHL608",
        "a library that the import loads was not read far enough",
        lambda: unread(demo("from demo import _C\n", "libdemo_gpu.so"), "demo/libdemo_gpu.so"),
        (
            "not proven that the import works without a driver: the needs of 1 loaded file are unknown "
            "(demo/libdemo_gpu.so)",
        ),
        expectations=NONE,
        undecided=True,
    ),
    Case(
        "WHL608",
        "only a library that the import does not load needs libcuda",
        lambda: demo("from demo import _C\n", "libc.so.6", beside=("libcuda.so.1",)),
        expectations=NONE,
    ),
    Case(
        "WHL608",
        "a function opens libcuda, and the import tries to",
        lambda: demo(
            "import ctypes\ntry:\n  ctypes.CDLL('libcuda.so.1')\nexcept OSError:\n  pass\n"
            "def start():\n  return ctypes.CDLL('libcuda.so.1')\nfrom demo import _C\n",
            "libc.so.6",
        ),
        expectations=NONE,
    ),
    Case(
        "WHL608",
        "the runtime is needed, which a host without a driver can load",
        lambda: demo("from demo import _C\n", "libcudart.so.13", "libc.so.6"),
        expectations=NONE,
    ),
    Case(
        "WHL608",
        "pure Python",
        lambda: facts_of(WheelBuilder("demo", "1.0", "py3-none-any"), depth=Depth.LINKS),
        expectations=NONE,
    ),
]
