"""WHL530 and WHL531: names of Python and of glibc that a library uses, against the promises of its tags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.rules.case import NOTE, WARNING, Case
from tests.support.elf import Elf, Symbol
from tests.support.wheel_facts import AARCH64, facts_of
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.links.linking import lay_out, link
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.model import need
from wheel_checks.targets.target import Target

MODULE = "demo/_C.abi3.so"
CUFILE = "nvidia/cu13/lib/libcufile.so.0"
OLD_GLIBC = Target((3, 12), "aarch64", (2, 28))


def using(*names: str, needed: Sequence[str] = ("libc.so.6",), soname: str = "") -> bytes:
    """A library that needs these names of others, without versions."""
    symbols = [Symbol(name, defined=False) for name in names]
    return Elf(machine=183, soname=soname, needed=needed, symbols=[*symbols, Symbol("PyInit__C")]).build().data


def stable(*names: str, tag: str = "cp310-abi3", target: Target = AARCH64, member: str = MODULE) -> WheelFacts:
    built = WheelBuilder("demo", "1.0", f"{tag}-manylinux_2_28_aarch64").add(member, using(*names))
    return facts_of(built, depth=Depth.LINKS, target=target)


def cufile(
    library: bytes, *others: WheelBuilder, tag: str = "manylinux_2_27_aarch64", target: Target = AARCH64
) -> WheelFacts:
    """The wheel of a library, next to others."""
    built = WheelBuilder("nvidia_cufile", "1.15.1.6", f"py3-none-{tag}").add(CUFILE, library)
    facts, *rest = (facts_of(one, depth=Depth.LINKS, target=target) for one in (built, *others))
    own, *beside = (lay_out(one.file_name, need(one.elfs)) for one in (facts, *rest))
    return replace(facts, links=link(own, beside, target))


CASES = [
    Case(
        "WHL530",
        "a symbol of a later Python than the tag's, on a Python without it",
        lambda: stable("PyObject_Call", "PyType_GetName", target=Target((3, 10), "aarch64", (2, 39))),
        ("_C.abi3.so uses PyType_GetName, which Python has only since 3.11: tagged for 3.10, it fails on Python 3.10",),
        member=MODULE,
        evidence=("PyType_GetName (3.11)",),
    ),
    Case(
        "WHL530",
        "a symbol of a later Python than the tag's",
        lambda: stable("PyObject_Vectorcall", tag="cp39-abi3"),
        (
            "_C.abi3.so uses PyObject_Vectorcall, which Python has only since 3.12: tagged for 3.9, it fails on "
            "Python 3.9 to 3.11",
        ),
    ),
    Case(
        "WHL530",
        "symbols outside the limited API",
        lambda: stable("_PyThreadState_UncheckedGet", "PyUnicode_EqualToUTF8", "PyFrame_GetBack"),
        (
            "_C.abi3.so uses PyUnicode_EqualToUTF8, which Python has only since 3.13: tagged for 3.10, it fails on "
            "Python 3.10 to 3.12",
            "_C.abi3.so uses symbols outside Python's limited API: PyFrame_GetBack and 1 more symbol",
        ),
    ),
    Case(
        "WHL530",
        "a file for the stable ABI in a wheel for one Python",
        lambda: stable("PyFrame_GetBack", tag="cp312-cp312"),
        ("_C.abi3.so uses symbols outside Python's limited API: PyFrame_GetBack",),
    ),
    Case("WHL530", "the limited API of the tag's Python", lambda: stable("PyType_GetName", tag="cp311-abi3")),
    Case(
        "WHL530",
        "a file for one Python in a wheel for one Python",
        lambda: stable("PyFrame_GetBack", tag="cp312-cp312", member="demo/_C.cpython-312-aarch64-linux-gnu.so"),
    ),
    Case("WHL530", "names that only look like Python's", lambda: stable("Pyramid", "Pyramid_new", "PyInit_other")),
    Case(
        "WHL531",
        "shared memory without librt",
        lambda: cufile(using("shm_open", "shm_unlink", needed=("libpthread.so.0", "libstdc++.so.6", "libc.so.6"))),
        (
            "libcufile.so.0 uses shm_open and 1 more symbol but does not need librt.so.1: it cannot be loaded before "
            "glibc 2.34, but the wheel is tagged for glibc 2.27",
        ),
        member=CUFILE,
        evidence=("RHEL 8 (2.28), Debian 10 (2.28), Ubuntu 20.04 (2.31), Debian 11 (2.31)",),
    ),
    Case(
        "WHL531",
        "in a stack for a newer glibc",
        lambda: cufile(using("mq_open")),
        (
            "libcufile.so.0 uses mq_open but does not need librt.so.1: it cannot be loaded before glibc 2.34, but "
            "the wheel is tagged for glibc 2.27",
        ),
        NOTE,
        expectations={"in_stack": True},
    ),
    Case(
        "WHL531",
        "in a stack for an older glibc, where another package may bring the library",
        lambda: cufile(using("mq_open"), target=OLD_GLIBC),
        (
            "libcufile.so.0 uses mq_open but does not need librt.so.1: it cannot be loaded before glibc 2.34, but "
            "the wheel is tagged for glibc 2.27",
        ),
        WARNING,
        expectations={"in_stack": True},
    ),
    Case("WHL531", "librt is needed", lambda: cufile(using("shm_open", needed=("librt.so.1", "libc.so.6")))),
    Case(
        "WHL531",
        "librt comes with what is needed",
        lambda: cufile(
            using("shm_open", needed=("libother.so.1", "libc.so.6")),
            WheelBuilder("other", "1.0", "py3-none-manylinux_2_28_aarch64").add(
                "nvidia/cu13/lib/libother.so.1", using(needed=("librt.so.1",), soname="libother.so.1")
            ),
        ),
    ),
    Case(
        "WHL531",
        "the driver's library, which may bring librt",
        lambda: cufile(using("shm_open", needed=("libcuda.so.1", "libc.so.6"))),
    ),
    Case("WHL531", "a tag for the glibc that has it", lambda: cufile(using("shm_open"), tag="manylinux_2_34_aarch64")),
    Case("WHL531", "what the interpreter itself needs", lambda: cufile(using("dlopen", "openpty", "pthread_create"))),
]
