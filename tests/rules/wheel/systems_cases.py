"""WHL540 to WHL542: native files for the system, the machine and the macOS of the tags."""

from __future__ import annotations

from tests.rules.case import WARNING, Case
from tests.support.macho import mach_o, universal
from tests.support.pe import ARM64, I386, Pe
from tests.support.wheel_facts import facts_of, listed
from tests.support.wheels import WheelBuilder, elf_stub
from wheel_checks.facts.wheel.facts import WheelFacts

MACOS, UNIVERSAL = "cp312-cp312-macosx_11_0_arm64", "cp312-cp312-macosx_10_9_universal2"
WINDOWS, LINUX = "cp312-cp312-win_amd64", "cp312-cp312-manylinux_2_28_x86_64"
ELF, PE, MACH_O = elf_stub(), Pe().build().data, mach_o()
BOTH = universal(mach_o("x86_64", (10, 9), old=True), mach_o("arm64", (11, 0)))


def holding(tags: str, *, remote: bool = False, **members: bytes) -> WheelFacts:
    """A wheel with these members; ``__`` replaces a dot, so that they can be keywords."""
    wheel = WheelBuilder(tags=tags)
    for name, data in members.items():
        wheel.add(f"demo/{name.replace('__', '.')}", data)
    return facts_of(wheel, remote=remote)


def at(tags: str, path: str, data: bytes) -> WheelFacts:
    """A wheel with one member."""
    return facts_of(WheelBuilder(tags=tags).add(path, data))


CASES = [
    Case(
        "WHL540",
        "a library of Linux for macOS",
        lambda: holding(MACOS, core__so=ELF, fine__so=MACH_O),
        ("1 file for Linux (ELF) in a wheel for macOS",),
        member="demo/core.so",
    ),
    Case(
        "WHL540",
        "a library of Linux for Windows, read from afar",
        lambda: holding(WINDOWS, remote=True, core__so=ELF, fine__pyd=PE),
        ("1 file for Linux (ELF) in a wheel for Windows",),
    ),
    Case(
        "WHL540",
        "libraries of macOS and Windows for Linux",
        lambda: holding(LINUX, a__so=MACH_O, b__so=PE, c__so=ELF),
        ("1 file for macOS (Mach-O) in a wheel for Linux", "1 file for Windows (PE) in a wheel for Linux"),
    ),
    Case(
        "WHL540",
        "a module of Linux, whose name says so",
        lambda: at(MACOS, "demo/core.cpython-312-x86_64-linux-gnu.so", ELF),
        ("1 file for Linux (ELF) in a wheel for macOS",),
    ),
    Case("WHL540", "an agent for Linux next to one for macOS", lambda: at(MACOS, "demo/agent/linux/core.so", ELF)),
    Case("WHL540", "a program of Windows, as data for Linux", lambda: holding(LINUX, launcher__exe=PE, core__so=ELF)),
    Case("WHL540", "libraries of each kind where they belong", lambda: holding(WINDOWS, core__pyd=PE, help__dll=PE)),
    Case("WHL540", "a linker script", lambda: holding(MACOS, core__so=b"INPUT(libcore.1.so)\n")),
    Case(
        "WHL541",
        "one machine of two",
        lambda: holding(UNIVERSAL, core__so=MACH_O, fine__so=BOTH),
        ("1 file for arm64 in a wheel for universal2",),
        member="demo/core.so",
    ),
    Case(
        "WHL541",
        "Intel for Apple silicon",
        lambda: holding(MACOS, core__dylib=mach_o("x86_64", (10, 9))),
        ("1 file for x86_64 in a wheel for arm64",),
    ),
    Case(
        "WHL541",
        "Arm and 32 bits for Windows on x64",
        lambda: holding(WINDOWS, a__pyd=Pe(machine=ARM64).build().data, b__dll=Pe(machine=I386, bits=32).build().data),
        ("1 file for aarch64 in a wheel for amd64", "1 file for x86 in a wheel for amd64"),
    ),
    Case(
        "WHL541",
        "a runtime of another machine that perhaps nothing loads",
        lambda: holding(WINDOWS, core__pyd=PE, vcruntime__dll=Pe(machine=ARM64).build().data),
        ("1 file for aarch64 in a wheel for amd64",),
        WARNING,
    ),
    Case(
        "WHL541",
        "a program of 32 bits, which Windows on x64 runs, as ninja.exe",
        lambda: holding(WINDOWS, ninja__exe=Pe(machine=I386, bits=32).build().data),
    ),
    Case(
        "WHL541",
        "a program for Arm, which Windows on x64 does not run",
        lambda: holding(WINDOWS, ninja__exe=Pe(machine=ARM64).build().data),
        ("1 file for aarch64 in a wheel for amd64",),
    ),
    Case("WHL541", "libraries of Windows as data for macOS", lambda: holding(MACOS, core__so=MACH_O, core__dll=PE)),
    Case("WHL541", "more machines than the tag names", lambda: holding(MACOS, core__so=BOTH)),
    Case(
        "WHL541",
        "a helper whose name says 32 bits",
        lambda: at(WINDOWS, "demo/inject_x86.dll", Pe(machine=I386, bits=32).build().data),
    ),
    Case(
        "WHL542",
        "built on a newer macOS",
        lambda: holding(MACOS, core__so=mach_o("arm64", (15, 0))),
        ("1 file needs macOS 15.0 on arm64, but the tag macosx_11_0 allows 11.0",),
        member="demo/core.so",
    ),
    Case(
        "WHL542",
        "an old load command, in one slice of two",
        lambda: holding(UNIVERSAL, core__so=universal(mach_o("x86_64", (10, 15), old=True), mach_o("arm64", (11, 0)))),
        ("1 file needs macOS 10.15 on x86_64, but the tag macosx_10_9 allows 10.9",),
    ),
    Case(
        "WHL542",
        "a wheel that is published",
        lambda: facts_of(
            WheelBuilder(tags=MACOS).add("demo/core.so", mach_o("arm64", (15, 0))), listing=listed("demo.whl")
        ),
        ("1 file needs macOS 15.0 on arm64, but the tag macosx_11_0 allows 11.0",),
        WARNING,
    ),
    Case("WHL542", "a minor version of the same macOS", lambda: holding(MACOS, core__so=mach_o("arm64", (11, 3)))),
    Case("WHL542", "arm64 begins with 11", lambda: holding(UNIVERSAL, core__so=BOTH)),
    Case("WHL542", "no version at all", lambda: holding(MACOS, core__so=mach_o("arm64", None))),
]
