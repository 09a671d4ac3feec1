"""WHL526 and WHL543: symbols of a wheel that nothing next to it defines, or not every torch of a range."""

from __future__ import annotations

import posixpath
from dataclasses import replace

from packaging.specifiers import SpecifierSet

from tests.rules.case import WARNING, Case
from tests.support.environments import library
from tests.support.wheel_facts import AARCH64, facts_of
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.gpu.targets import parse_gpus
from wheel_checks.facts.links.linking import lay_out, link
from wheel_checks.facts.links.unresolved import SymbolFacts, UnresolvedFile
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.model import need

MODULE = "demo/demo_cuda.cpython-312-aarch64-linux-gnu.so"
ERROR_NAME = "_ZN3c105ErrorC2ENS_14SourceLocationESs"
NEW_NAME = "torch_from_blob"
RAISE = "_ZN2at5raiseEv"
LACKS_TORCH = (
    f"demo_cuda.cpython-312-aarch64-linux-gnu.so needs at::raise ({RAISE}), which no library next to it defines",
)


def with_symbols(*files: UnresolvedFile, unread: str = "", fitting: tuple[str, ...] = ()) -> WheelFacts:
    """A wheel next to torch 2.11.0, whose symbols were looked up with this result."""
    built = WheelBuilder("demo", "1.0", "cp312-cp312-manylinux_2_28_aarch64").add(MODULE, library("", ["libc.so.6"]))
    facts = facts_of(built, depth=Depth.LINKS, target=AARCH64)
    links = link(lay_out(facts.file_name, need(facts.elfs)), (), AARCH64)
    open_ = ((MODULE, unread),) if unread else ()
    torch = "torch-2.11.0-cp312-cp312-manylinux_2_28_aarch64.whl"
    return replace(facts, links=replace(links, symbols=SymbolFacts(files, open_, 1, "2.11.0", torch, fitting)))


def of_torch(*names: str, far: tuple[str, ...] = ()) -> WheelFacts:
    """A wheel whose module needs these names of torch."""
    facts = with_symbols()
    links = need(facts.links)
    symbols = replace(need(links.symbols), of_torch={MODULE: names}, far=far)
    return replace(facts, links=replace(links, symbols=symbols))


def for_gpus(*names: str) -> WheelFacts:
    """A wheel that has its module once for Hopper and once for Blackwell; the first lacks these names."""
    built = WheelBuilder("demo", "1.0", "cp312-cp312-manylinux_2_28_aarch64")
    built.add("demo/__init__.py", "import ctypes\nfor n in (90, 100):\n  ctypes.CDLL(f'{__file__[:-11]}sm{n}/ops.so')")
    for sm in ("sm90", "sm100"):
        built.add(f"demo/{sm}/ops.so", library("", ["libc.so.6"]))
    facts = facts_of(built, depth=Depth.LINKS, target=AARCH64)
    sources = need(facts.sources)
    links = link(lay_out(facts.file_name, need(facts.elfs), sources=sources), (), AARCH64)
    found = lame(*names, path="demo/sm90/ops.so", imported=False)
    return replace(facts, links=replace(links, symbols=SymbolFacts((found,), (), 2)))


def bridge(
    *, requires: str = "", source: str = "from demo import _core", other: bool = True, torch: str = ""
) -> WheelFacts:
    """A wheel next to this torch, "" for none, one of whose modules uses torch."""
    built = WheelBuilder("demo", "1.0", "cp312-cp312-manylinux_2_28_aarch64").add(MODULE, library("", ["libc.so.6"]))
    built.add("demo/__init__.py", source).metadata(requires=[requires] if requires else [])
    if other:
        built.add("demo/_core.cpython-312-aarch64-linux-gnu.so", library("", ["libc.so.6"]))
    facts = facts_of(built, depth=Depth.LINKS, target=AARCH64)
    links = link(lay_out(facts.file_name, need(facts.elfs), sources=need(facts.sources)), (), AARCH64)
    return replace(facts, links=replace(links, symbols=SymbolFacts((lame(RAISE),), (), 2, torch)))


def lame(*names: str, path: str = MODULE, imported: bool = True) -> UnresolvedFile:
    return UnresolvedFile(path, names, tuple(name for name in names if "c10" in name or "2at" in name), imported)


CASES = [
    Case(
        "WHL526",
        "a module that was built for the torch before",
        lambda: with_symbols(lame(ERROR_NAME), fitting=("2.9.1", "2.10.0")),
        (
            f"demo_cuda.cpython-312-aarch64-linux-gnu.so needs c10::Error::Error ({ERROR_NAME}), "
            "which torch 2.11.0 does not export; torch 2.9.1 to 2.10.0 do",
        ),
        member=MODULE,
        evidence=(ERROR_NAME, MODULE, "torch-2.11.0-cp312-cp312-manylinux_2_28_aarch64.whl", "2.9.1, 2.10.0"),
    ),
    Case(
        "WHL526",
        "two names in two files are one finding",
        lambda: with_symbols(lame(ERROR_NAME, RAISE), lame(RAISE, path="demo/other.so")),
        (
            f"demo_cuda.cpython-312-aarch64-linux-gnu.so needs at::raise ({RAISE}), which torch 2.11.0 does not export "
            "(2 such symbols in 2 files)",
        ),
    ),
    Case(
        "WHL526",
        "a function of another library",
        lambda: with_symbols(lame("ncclNewest")),
        ("demo_cuda.cpython-312-aarch64-linux-gnu.so needs ncclNewest, which no library next to it defines",),
    ),
    Case(
        "WHL526",
        "a library that nothing is known to open",
        lambda: with_symbols(lame(RAISE, path="demo/libplugin.so", imported=False)),
        (f"libplugin.so needs at::raise ({RAISE}), which torch 2.11.0 does not export",),
        WARNING,
    ),
    Case(
        "WHL526",
        "a table of symbols out of reach",
        lambda: with_symbols(unread="its table of symbols lies too far inside it"),
        (
            "not proven that demo loads: demo_cuda.cpython-312-aarch64-linux-gnu.so: its table of symbols lies too "
            "far inside it",
        ),
        undecided=True,
    ),
    Case(
        "WHL526",
        "the alternative for the GPU that is asked for",
        lambda: for_gpus("ncclNewest"),
        ("ops.so needs ncclNewest, which no library next to it defines",),
        expectations={"gpus": parse_gpus("H100")},
    ),
    Case(
        "WHL526",
        "the alternative for another GPU",
        lambda: for_gpus("ncclNewest"),
        expectations={"gpus": parse_gpus("B200")},
    ),
    Case(
        "WHL526",
        "a module for users of torch, which the wheel does not require",
        bridge,
        LACKS_TORCH,
        WARNING,
    ),
    *(
        Case(
            "WHL526",
            given,
            facts,
            LACKS_TORCH,
        )
        for given, facts in (
            ("a wheel whose only module needs torch", lambda: bridge(other=False)),
            ("a module whose torch is required", lambda: bridge(requires="torch")),
            ("a module that the source imports", lambda: bridge(source="from demo import demo_cuda")),
        )
    ),
    Case(
        "WHL526",
        "a module for users of torch next to another torch",
        lambda: bridge(torch="2.11.0"),
        (LACKS_TORCH[0].replace("no library next to it defines", "torch 2.11.0 does not export"),),
    ),
    Case("WHL526", "all is defined", with_symbols),
    Case(
        "WHL543",
        "a name that came with torch 2.11",
        lambda: of_torch(NEW_NAME),
        (f"{posixpath.basename(MODULE)} needs {NEW_NAME}, which torch 2.9.0 does not export",),
        member=MODULE,
        evidence=(NEW_NAME, ">=2.9"),
        expectations={"torch_abi": SpecifierSet(">=2.9")},
    ),
    Case(
        "WHL543",
        "a range that begins with the name",
        lambda: of_torch(NEW_NAME),
        expectations={"torch_abi": SpecifierSet(">=2.11")},
    ),
    Case("WHL543", "no name of torch", of_torch, expectations={"torch_abi": SpecifierSet(">=99")}),
    Case(
        "WHL543",
        "a torch that is not known",
        lambda: of_torch(NEW_NAME),
        ("not proven that the wheel loads with torch >=99: no torch >=99 is known for aarch64",),
        expectations={"torch_abi": SpecifierSet(">=99")},
        undecided=True,
    ),
    Case(
        "WHL543",
        "a file whose symbols are unknown",
        lambda: of_torch(far=(MODULE,)),
        (f"not proven that the wheel loads with torch >=2.9: the symbols of {MODULE} were not read",),
        expectations={"torch_abi": SpecifierSet(">=2.9")},
        undecided=True,
    ),
]
