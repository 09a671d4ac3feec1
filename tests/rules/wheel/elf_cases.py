"""WHL501 to WHL511: the promises of a wheel's ELF files, one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.rules.case import NOTE, WARNING, Case
from tests.support.elf import AARCH64, I386, X86_64, Elf
from tests.support.wheel_facts import AARCH64 as TARGET
from tests.support.wheel_facts import facts_of
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.gpu.targets import parse_gpus
from wheel_checks.facts.links.linking import lay_out, link
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.facts.wheel.native_heads import NativeHead, NativeHeads
from wheel_checks.formats.elf.bytes import ByteRange
from wheel_checks.formats.elf.file import ElfFacts, Missing
from wheel_checks.model import need

GRACE = Elf(machine=AARCH64, alignment=0x10000)
INTEL = Elf(machine=X86_64)
MODULE = "demo/_C.cpython-312-aarch64-linux-gnu.so"
FOREIGN = "demo/fast.cpython-311-aarch64-linux-gnu.so"
FOREIGN_SAID = f"{FOREIGN} is only for Python 3.11 in a wheel for Python 3.12"
LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 41\n"
MACH_O = b"\xcf\xfa\xed\xfe" + bytes(100)


def wheel_of(tags: str, members: Mapping[str, Elf | bytes]) -> WheelFacts:
    """The facts of a wheel with these members, as depth links reads them."""
    wheel = WheelBuilder("demo", "1.0", tags)
    for name, item in members.items():
        wheel.add(name, item if isinstance(item, bytes) else item.build().data)
    return facts_of(wheel, depth=Depth.LINKS)


def grace(members: Mapping[str, Elf | bytes], tags: str = "cp312-cp312-manylinux_2_28_aarch64") -> WheelFacts:
    return wheel_of(tags, members)


def intel(members: Mapping[str, Elf | bytes], tags: str = "cp312-cp312-manylinux_2_28_x86_64") -> WheelFacts:
    return wheel_of(tags, members)


FOR_CUDA = AcceleratorFacts("cuda", "12", "", ())
TOO_MANY = NativeHeads((NativeHead("demo/libdemo_cuda118.so", "ELF", "x86_64"),), unread=1)


def for_any(members: Mapping[str, Elf], depth: Depth = Depth.LINKS) -> WheelFacts:
    """A wheel tagged for any platform, judged for Linux on aarch64."""
    wheel = WheelBuilder("demo", "1.0", "py3-none-any")
    for name, item in members.items():
        wheel.add(name, item.build().data)
    return facts_of(wheel, depth=depth, target=TARGET)


def beside_source(members: Mapping[str, Elf], source: str) -> WheelFacts:
    """A wheel for aarch64 whose package has this source, with the files that its import loads."""
    wheel = WheelBuilder("demo", "1.0", "cp312-cp312-manylinux_2_28_aarch64").add("demo/__init__.py", source)
    for name, item in members.items():
        wheel.add(name, item.build().data)
    facts = facts_of(wheel, depth=Depth.LINKS, target=TARGET)
    laid_out = lay_out(facts.file_name, need(facts.elfs), sources=facts.sources)
    return replace(facts, links=link(laid_out, (), TARGET))


def on_glibc(minor: int, *versions: str) -> WheelFacts:
    """A wheel tagged for glibc 2.28 that is installed on a system with this one."""
    wheel = WheelBuilder("demo", "1.0", "cp312-cp312-manylinux_2_28_aarch64")
    wheel.add(MODULE, needing("libstdc++.so.6", *versions).build().data)
    return facts_of(wheel, depth=Depth.LINKS, target=replace(TARGET, glibc=(2, minor)))


def needing(library: str, *versions: str) -> Elf:
    return replace(GRACE, needed=(library,), needs={library: versions})


def read_in_part(*names: str, glibc: int = 28) -> WheelFacts:
    """A wheel whose library is so big that its dynamic section was not found, but these strings, if any."""
    facts = grace({"torch/lib/libtorch_cuda.so": GRACE})
    (elf,) = need(facts.elfs)
    assert isinstance(elf.facts, ElfFacts)
    unread = Missing((ByteRange(300_000_000, 500),))
    partly = replace(elf, facts=replace(elf.facts, dynamic=unread, versions=unread))
    if names:
        partly = replace(partly, possible_names=names)
    return replace(facts, elfs=(partly,), target=replace(TARGET, glibc=(2, glibc)))


CASES = [
    Case(
        "WHL501",
        "a pointer of git-lfs instead of the library",
        lambda: grace({"demo/libdemo.so.1": LFS_POINTER}),
        (
            "demo/libdemo.so.1 cannot be read as an ELF file: e_ident starts with 76 65 72 73; "
            "expected 7f 45 4c 46 as in every ELF file",
        ),
        member="demo/libdemo.so.1",
    ),
    Case(
        "WHL501",
        "a library cut short",
        lambda: grace({"demo/libdemo.so": GRACE.build().data[:300]}),
        (
            "demo/libdemo.so cannot be read as an ELF file: p_offset and p_filesz of program header 0 (PT_LOAD) are "
            "0x0 and 0x140; expected a place inside the file of 0x12c bytes (the ELF file is cut off or damaged)",
        ),
    ),
    Case("WHL501", "a library", lambda: grace({"demo/libdemo.so.1.2": GRACE})),
    Case("WHL501", "a script without an extension", lambda: grace({"demo/bin/run": b"#!/bin/sh\n" + b"#" * 90})),
    Case(
        "WHL501",
        "a module for macOS in a wheel for any platform",
        lambda: wheel_of("py3-none-any", {"demo/attach_darwin.so": MACH_O}),
    ),
    Case(
        "WHL502",
        "a library of x86_64 in a wheel for aarch64",
        lambda: grace({"demo/libdemo.so": INTEL, MODULE: GRACE}),
        ("1 file for x86_64 in a wheel for aarch64",),
        member="demo/libdemo.so",
        evidence=("demo/libdemo.so",),
    ),
    Case(
        "WHL502",
        "a module of x86_64, whose name says so too",
        lambda: grace({"demo/_C.cpython-312-x86_64-linux-gnu.so": INTEL}),
        ("1 file for x86_64 in a wheel for aarch64",),
    ),
    Case("WHL502", "the tagged machine", lambda: grace({MODULE: GRACE})),
    Case("WHL502", "musllinux", lambda: grace({"demo/_C.abi3.so": GRACE}, "cp312-abi3-musllinux_1_2_aarch64")),
    Case("WHL502", "a tag without a policy", lambda: intel({"demo/_C.abi3.so": INTEL}, "cp312-abi3-linux_x86_64")),
    Case(
        "WHL502",
        "agents for other machines, as a debugger or a phone's tool brings them",
        lambda: intel({"demo/agents/arm64/libagent.so": GRACE, "demo/attach_x86.so": Elf(machine=I386, bits=32)}),
    ),
    Case(
        "WHL502",
        "a wheel for any platform whose libraries are for another machine: bitsandbytes 0.42.0, debugpy",
        lambda: for_any({"demo/libdemo_cuda118.so": INTEL, "demo/libdemo_x86.so": Elf(machine=I386, bits=32)}),
        ("the libraries are for i686 and x86_64, none is for aarch64",),
        member="demo/libdemo_cuda118.so",
        evidence=("demo/libdemo_cuda118.so, demo/libdemo_x86.so", "py3-none-any"),
        undecided=True,
    ),
    Case(
        "WHL502",
        "a wheel for any platform whose GPU code is for another machine",
        lambda: replace(for_any({"demo/libdemo_cuda118.so": INTEL}, Depth.QUICK), accelerator=FOR_CUDA),
        ("the libraries are for x86_64, none is for aarch64",),
        expectations={"gpus": parse_gpus("GH200")},
    ),
    Case(
        "WHL502",
        "the same with more libraries than were looked at",
        lambda: replace(for_any({"demo/libdemo_cuda118.so": INTEL}), accelerator=FOR_CUDA, heads=TOO_MANY),
        ("the libraries are for x86_64, none is for aarch64",),
        expectations={"gpus": parse_gpus("GH200")},
        undecided=True,
    ),
    Case(
        "WHL502",
        "a wheel for any platform whose libraries are for another machine, without GPU code",
        lambda: for_any({"demo/attach_linux_amd64.so": INTEL}, Depth.QUICK),
        ("the libraries are for x86_64, none is for aarch64",),
        expectations={"gpus": parse_gpus("GH200")},
        undecided=True,
    ),
    Case(
        "WHL502",
        "a wheel for any platform that has a library for the target",
        lambda: for_any({"demo/libdemo_x86.so": INTEL, "demo/libdemo_arm.so": GRACE}),
    ),
    Case(
        "WHL503",
        "built on a newer system than its tag",
        lambda: grace({MODULE: needing("libc.so.6", "GLIBC_2.17", "GLIBC_2.34")}),
        ("1 file needs GLIBC_2.34, which manylinux_2_28 does not allow; manylinux_2_34_aarch64 is the matching tag",),
        member=MODULE,
        evidence=(MODULE, "GLIBC_2.28"),
    ),
    Case(
        "WHL503",
        "a newer libstdc++",
        lambda: intel({"demo/_C.abi3.so": replace(needing("libstdc++.so.6", "GLIBCXX_3.4.29"), machine=X86_64)}),
        (
            "1 file needs GLIBCXX_3.4.29, which manylinux_2_28 does not allow; manylinux_2_34_x86_64 is the matching "
            "tag",
        ),
    ),
    Case(
        "WHL503",
        "the older of two tags",
        lambda: grace(
            {MODULE: needing("libc.so.6", "GLIBC_2.28")}, "cp312-cp312-manylinux2014_aarch64.manylinux_2_28_aarch64"
        ),
        ("1 file needs GLIBC_2.28, which manylinux_2_17 does not allow; manylinux_2_28_aarch64 is the matching tag",),
    ),
    Case(
        "WHL503",
        "packed relative relocations",
        lambda: grace({MODULE: needing("libc.so.6", "GLIBC_ABI_DT_RELR")}),
        (
            "1 file needs GLIBC_ABI_DT_RELR, which manylinux_2_28 does not allow; manylinux_2_36_aarch64 is the "
            "matching tag",
        ),
    ),
    Case(
        "WHL503",
        "a newer libstdc++ than the tag promises, which the target has",
        lambda: on_glibc(39, "GLIBCXX_3.4.29"),
        (
            "1 file needs GLIBCXX_3.4.29, which manylinux_2_28 does not allow; manylinux_2_34_aarch64 is the "
            "matching tag",
        ),
        WARNING,
        evidence=("GLIBCXX_3.4.33",),
    ),
    Case(
        "WHL503",
        "a newer libstdc++ than the target has",
        lambda: on_glibc(31, "GLIBCXX_3.4.29"),
        (
            "1 file needs GLIBCXX_3.4.29, which manylinux_2_28 does not allow; manylinux_2_34_aarch64 is the "
            "matching tag",
        ),
    ),
    Case(
        "WHL503",
        "six versions in two files: one finding, and one tag",
        lambda: intel(
            {
                "demo/_C.abi3.so": replace(
                    needing("libc.so.6", "GLIBC_2.29", "GLIBC_2.32", "GLIBC_2.34", "GLIBC_2.35"), machine=X86_64
                ),
                "demo/_D.abi3.so": replace(
                    needing("libstdc++.so.6", "GLIBCXX_3.4.29", "GLIBCXX_3.4.30"), machine=X86_64
                ),
            }
        ),
        (
            "2 files need GLIBC_2.29, GLIBC_2.32, GLIBC_2.34, GLIBC_2.35, GLIBCXX_3.4.29 and GLIBCXX_3.4.30, which "
            "manylinux_2_28 does not allow; manylinux_2_35_x86_64 is the matching tag",
        ),
    ),
    Case(
        "WHL503",
        "newer than every policy",
        lambda: grace({MODULE: needing("libc.so.6", "GLIBC_2.99")}),
        ("1 file needs GLIBC_2.99, which manylinux_2_28 does not allow; no known policy does",),
    ),
    Case("WHL503", "just what is promised", lambda: grace({MODULE: needing("libc.so.6", "GLIBC_2.28")})),
    Case("WHL503", "a weak version", lambda: grace({MODULE: needing("libc.so.6", "GLIBC_2.17", "?GLIBC_2.34")})),
    Case(
        "WHL503",
        "a libstdc++ that the wheel brings, under auditwheel's name",
        lambda: grace(
            {
                MODULE: needing("libstdc++-6f8d2fd1.so.6", "GLIBCXX_3.4.33"),
                "demo.libs/libstdc++-6f8d2fd1.so.6.0.33": replace(GRACE, soname="libstdc++-6f8d2fd1.so.6"),
            }
        ),
    ),
    Case("WHL503", "versions of glibc's own", lambda: grace({MODULE: needing("libc.so.6", "GLIBC_PRIVATE")})),
    Case("WHL503", "versions of other libraries", lambda: grace({MODULE: needing("libnccl.so.2", "NCCL_2.99")})),
    Case(
        "WHL503",
        "a newer glibc among the strings of a library that was read in part",
        lambda: read_in_part("libc.so.6", "__fooGLIBC_2.29", "GLIBC_2.17", "GLIBCXX_3.4.19"),
        ("not proven that 1 file needs no GLIBC_2.29, newer than glibc 2.28 has",),
        member="torch/lib/libtorch_cuda.so",
        evidence=("torch/lib/libtorch_cuda.so",),
        undecided=True,
    ),
    Case(
        "WHL503",
        "the strings of a library that was read in part, within the target's glibc",
        lambda: read_in_part(
            "libc.so.6", "GLIBC_2.34", "GLIBC_PRIVATE", "GLIBCXX_3.4.30", "libGLIBC_2.99.so", glibc=39
        ),
    ),
    Case(
        "WHL504",
        "libraries for pages of 4 KiB",
        lambda: grace({"nvidia/nccl/lib/libnccl.so.2": replace(GRACE, alignment=0x1000), MODULE: GRACE}),
        ("1 file aligned to 4,096 bytes do not load on kernels with 64 KiB pages",),
        member="nvidia/nccl/lib/libnccl.so.2",
    ),
    Case("WHL504", "pages of 64 KiB", lambda: grace({MODULE: GRACE})),
    Case("WHL504", "4 KiB on x86_64", lambda: intel({"demo/_C.abi3.so": INTEL})),
    Case(
        "WHL505",
        "the driver's library",
        lambda: grace({"demo.libs/libcuda-1a2b3c4d.so.580.95.05": GRACE}),
        ("demo.libs/libcuda-1a2b3c4d.so.580.95.05 belongs to NVIDIA's driver",),
        member="demo.libs/libcuda-1a2b3c4d.so.580.95.05",
    ),
    Case(
        "WHL505",
        "the loader, as in torchvision 0.29.1",
        lambda: grace({"torchvision.libs/ld-linux-aarch64.5cbc5e90.so.1": GRACE}),
        ("torchvision.libs/ld-linux-aarch64.5cbc5e90.so.1 is a copy of the system's loader or C library",),
        WARNING,
    ),
    Case(
        "WHL505",
        "stubs to link with",
        lambda: grace({"nvidia/cu13/lib/stubs/libcuda.so": GRACE, "stubs/libnvidia-ml.so": GRACE}),
    ),
    Case(
        "WHL505",
        "names that begin alike",
        lambda: grace({"a/libcudart.so.13": GRACE, "a/libc10.so": GRACE, "a/libcublas.so.13": GRACE}),
    ),
    Case(
        "WHL506",
        "one library for CUDA 12 and one for CUDA 13",
        lambda: grace(
            {
                "demo.libs/libcudart-1a2b3c4d.so.12.8.90": replace(GRACE, soname="libcudart-1a2b3c4d.so.12"),
                "demo/libnew.so": replace(GRACE, needed=("libcudart.so.13",)),
            }
        ),
        ("the wheel uses the runtimes of CUDA 12 and 13",),
        WARNING,
        evidence=("demo.libs/libcudart-1a2b3c4d.so.12.8.90", "demo/libnew.so needs libcudart.so.13"),
    ),
    Case(
        "WHL506",
        "one CUDA",
        lambda: grace({f"demo/lib{name}.so": replace(GRACE, needed=("libcudart.so.13",)) for name in "ab"}),
    ),
    Case(
        "WHL506",
        "one library for each CUDA, of which one is opened, as in bitsandbytes",
        lambda: grace(
            {
                f"bitsandbytes/libbitsandbytes_cuda{cuda}.so": replace(GRACE, needed=(f"libcudart.so.{cuda[:2]}",))
                for cuda in ("126", "130")
            }
        ),
    ),
    Case(
        "WHL507",
        "the folders of a build",
        lambda: grace(
            {
                "demo/liba.so": replace(GRACE, rpath="$ORIGIN:/usr/local/cuda-12.8/lib64"),
                "demo/libb.so": replace(GRACE, runpath="/usr/local/cuda-12.8/lib64:"),
            }
        ),
        ("the search path of 2 files leads outside the environment",),
        WARNING,
        member="demo/liba.so",
        evidence=("demo/liba.so, demo/libb.so", "demo/libb.so"),
    ),
    Case(
        "WHL507",
        "paths of torch",
        lambda: grace({"torch/lib/libx.so": replace(GRACE, rpath="$ORIGIN/../../nvidia/cu13/lib:${ORIGIN}")}),
    ),
    Case("WHL507", "no path", lambda: grace({MODULE: GRACE})),
    Case(
        "WHL508",
        "a module for another Python",
        lambda: grace({"demo/_C.cpython-311-aarch64-linux-gnu.so": GRACE}),
        ("demo/_C.cpython-311-aarch64-linux-gnu.so is only for Python 3.11 in a wheel for Python 3.12",),
    ),
    Case(
        "WHL508",
        "a module for one Python in an abi3 wheel",
        lambda: grace({MODULE: GRACE}, "cp38-abi3-manylinux_2_28_aarch64"),
        (f"{MODULE} is only for Python 3.12 in a wheel for the tagged Python and later",),
        member=MODULE,
    ),
    Case(
        "WHL508",
        "a module for another machine",
        lambda: grace({"demo/_C.cpython-312-x86_64-linux-gnu.so": GRACE}),
        ("demo/_C.cpython-312-x86_64-linux-gnu.so is named for x86_64 in a wheel for aarch64",),
    ),
    Case(
        "WHL508",
        "a module for another Python that the import needs",
        lambda: beside_source({FOREIGN: GRACE, MODULE: GRACE}, "from . import _C\nfrom demo.fast import run\n"),
        (FOREIGN_SAID,),
    ),
    Case(
        "WHL508",
        "a module for another Python that the import only tries",
        lambda: beside_source(
            {FOREIGN: GRACE, MODULE: GRACE},
            "from . import _C\ntry:\n  from . import fast\nexcept ImportError:\n  fast = None\n",
        ),
        (FOREIGN_SAID,),
        WARNING,
    ),
    Case(
        "WHL508",
        "a module for another Python that nothing imports",
        lambda: beside_source({FOREIGN: GRACE, MODULE: GRACE}, "from . import _C\n"),
        (FOREIGN_SAID,),
        WARNING,
    ),
    Case("WHL508", "the tagged Python", lambda: grace({MODULE: GRACE})),
    Case("WHL508", "the limited API", lambda: grace({"a/_C.abi3.so": GRACE}, "cp38-abi3-manylinux_2_28_aarch64")),
    Case(
        "WHL508",
        "modules for several Pythons in one wheel",
        lambda: grace(
            {f"a/_C.cpython-3{minor}-aarch64-linux-gnu.so": GRACE for minor in (11, 12)},
            "py3-none-manylinux_2_28_aarch64",
        ),
    ),
    Case(
        "WHL508",
        "no threads locked",
        lambda: grace({"a/_C.cpython-313t-aarch64-linux-gnu.so": GRACE}, "cp313-cp313t-manylinux_2_28_aarch64"),
    ),
    Case(
        "WHL508",
        "where Debian and PEP 600 name a machine differently",
        lambda: wheel_of(
            "cp312-cp312-manylinux_2_17_i686",
            {"a/_C.cpython-312-i386-linux-gnu.so": Elf(machine=I386, bits=32)},
        ),
    ),
    Case(
        "WHL509",
        "assembly without a note",
        lambda: grace({"demo/libasm.so": replace(GRACE, stack_flags=7), MODULE: GRACE}),
        ("1 file asks for an executable stack",),
        WARNING,
        member="demo/libasm.so",
    ),
    Case("WHL509", "a stack to read and write", lambda: grace({MODULE: replace(GRACE, stack_flags=6)})),
    Case(
        "WHL510",
        "objects that are not position independent",
        lambda: grace({"demo/libold.so": replace(GRACE, text_relocations=True)}),
        ("1 file with text relocations",),
        WARNING,
        member="demo/libold.so",
    ),
    Case("WHL510", "position independent code", lambda: grace({MODULE: GRACE})),
    Case(
        "WHL511",
        "a library too big to find its dynamic section remotely, whose strings were read",
        lambda: read_in_part("libc.so.6", "GLIBC_2.17"),
        ("1 file not read far enough to check",),
        NOTE,
        evidence=("torch/lib/libtorch_cuda.so (dynamic, versions)",),
    ),
    Case(
        "WHL511",
        "a library whose symbol versions may be newer than the target's",
        read_in_part,
        ("not proven that the symbol versions of 1 file are in glibc 2.28: not read",),
        NOTE,
        evidence=("torch/lib/libtorch_cuda.so (dynamic, versions)",),
        undecided=True,
    ),
    Case(
        "WHL511",
        "unknown symbol versions, for a target with a recent glibc",
        lambda: read_in_part(glibc=39),
        ("1 file not read far enough to check",),
        NOTE,
    ),
    Case("WHL511", "a library read whole", lambda: grace({MODULE: GRACE})),
]
