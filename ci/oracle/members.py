"""Run readelf and cuobjdump on one member of a wheel. No code is shared with wheelproof's readers.

The only bytes that are looked at here are magic numbers, to find fat binaries and cubins outside of the sections that
cuobjdump knows: those are cut out and given to cuobjdump and readelf, too.
"""

from __future__ import annotations

import mmap
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

FAT_BINARY = b"\x50\xed\x55\xba"
CUBIN = re.compile(rb"\x7fELF\x02\x01.{10}..\xbe\x00", re.DOTALL)
ELF = b"\x7fELF"
ARCHIVE = b"!<arch>\n"
GPU_SECTIONS = re.compile(
    r"nv_?fatbin|nv_relfatbin|NvFatBin|hip_fatbin|hipFatBin|__CLANG_OFFLOAD|omp_offload", re.IGNORECASE
)
CUDA_SONAMES = re.compile(
    rb"lib(?:cuda|cudart|cublas|cublasLt|cudnn|cufft|curand|cusolver|cusparse|nvrtc|nvJitLink|nvjpeg|cupti|nccl|nppc"
    rb"|amdhip64|hsa-runtime64|rocblas|MIOpen|sycl|ze_loader)\.so\.\d+"
)
GFX = re.compile(rb"amdgcn-amd-amdhsa--(gfx[0-9a-f]+)")
_SECTION = re.compile(r"^\s*\[\s*\d+\]\s(\S+)\s+\S+\s+[0-9a-f]{8,16}\s+([0-9a-f]{6,})\s+([0-9a-f]{6,})\s", re.MULTILINE)
_DYNAMIC = re.compile(r"\((NEEDED|SONAME)\).*\[(.*)\]")
_LISTED = re.compile(r"^(ELF|PTX) file\s+\d+:.*\.(?:sm|compute)_(\d+[a-z]?)\.(?:cubin|ptx)\s*$", re.MULTILINE)
_CUT_AT_MOST = 64
_ARCHITECTURES = (
    *(50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89, 90, "90a", 100, "100a", 101, "101a", 103, "103a"),
    *(110, "110a", 120, "120a", 121, "121a"),
)


@dataclass
class Member:
    """One native member. ``sass`` and ``ptx`` count code by architecture, such as ``100a``; ``outside`` is code found
    outside of the sections of fat binaries, in the same words.
    """

    path: str
    size: int
    kind: str = ""
    machine: str = ""
    soname: str = ""
    needed: list[str] = field(default_factory=list)
    gpu_sections: dict[str, int] = field(default_factory=dict)
    sass: dict[str, int] = field(default_factory=dict)
    ptx: dict[str, int] = field(default_factory=dict)
    gfx: list[str] = field(default_factory=list)
    outside: dict[str, int] = field(default_factory=dict)
    mentions: list[str] = field(default_factory=list)
    problem: str = ""


def is_native(name: str, head: bytes) -> bool:
    """True for files that may have GPU code or need libraries, by first bytes and name."""
    return head.startswith((ELF, FAT_BINARY, ARCHIVE, b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB")) or name.endswith(
        (".ptx", ".hsaco", ".fatbin", ".cubin")
    )


def is_cubin(head: bytes) -> bool:
    """True for an ELF file of a GPU of NVIDIA (EM_CUDA)."""
    return CUBIN.match(head) is not None


def read(path: Path, name: str, cuobjdump: str) -> Member:
    """The results of the tools for a file unpacked from ``name``."""
    member = Member(name, path.stat().st_size)
    with path.open("rb") as stream:
        head = stream.read(64)
    if head.startswith(ELF):
        _read_elf(path, member)
    else:
        member.kind = {FAT_BINARY: "fat binary", ARCHIVE[:4]: "archive"}.get(head[:4], "other")
    if member.kind == "other" and name.endswith(".ptx"):
        found = re.findall(rb"^\.target\s+sm_(\d+[a-z]?)", path.read_bytes(), re.MULTILINE)
        member.kind, member.ptx = "ptx", dict(Counter(arch.decode() for arch in found))
    elif member.kind in {"fat binary", "archive"} or any("nv" in name.lower() for name in member.gpu_sections):
        member.sass, member.ptx, member.problem = _list(path, cuobjdump)
    if member.size:
        _search(path, member, cuobjdump)
    return member


def read_cubins(paths: list[Path], names: list[str]) -> Iterator[tuple[str, str]]:
    """The ``-arch`` of each loose cubin by its note of the tools, as readelf prints it; empty when it has none."""
    for start in range(0, len(paths), 200):
        part = paths[start : start + 200]
        run = _run(["readelf", "-W", "-p", ".note.nv.tkinfo", *map(str, part)])
        texts = re.split(r"^File: ", run, flags=re.MULTILINE)[1:] if len(part) > 1 else [f"{part[0]}\n{run}"]
        found = {text.split("\n", 1)[0].strip(): text for text in texts}
        for path, name in zip(part, names[start : start + 200], strict=True):
            arch = re.search(r"-arch\s+sm_(\d+[a-z]?)", found.get(str(path), ""))
            yield name, arch[1] if arch else ""


def gpu_sections(text: str) -> list[tuple[str, int, int]]:
    """Name, start and end in the file of each section with GPU code, from the output of ``readelf -S -W``."""
    return [
        (name, int(offset, 16), int(offset, 16) + int(size, 16))
        for name, offset, size in _SECTION.findall(text)
        if GPU_SECTIONS.search(name)
    ]


def listed(text: str) -> tuple[dict[str, int], dict[str, int]]:
    """The amount of machine code and PTX by architecture, from the output of ``cuobjdump --list-elf``."""
    found = _LISTED.findall(text)
    sass, ptx = (Counter(arch for kind, arch in found if kind == wanted) for wanted in ("ELF", "PTX"))
    return dict(sass), dict(ptx)


def _read_elf(path: Path, member: Member) -> None:
    text = _run(["readelf", "-h", "-S", "-d", "-W", str(path)])
    machine = re.search(r"Machine:\s+(.*)", text)
    kind = re.search(r"^\s+Type:\s+(\S+)", text, re.MULTILINE)
    member.machine, member.kind = machine[1].strip() if machine else "?", kind[1] if kind else "?"
    if "NVIDIA CUDA" in member.machine:
        member.kind = "cubin"
    elif ("AMD" in member.machine and "GPU" in member.machine.upper()) or "AMDGPU" in member.machine:
        member.kind = "amd code object"
    for name, start, end in gpu_sections(text):
        member.gpu_sections[name] = member.gpu_sections.get(name, 0) + end - start
    for tag, value in _DYNAMIC.findall(text):
        if tag == "NEEDED":
            member.needed.append(value)
        else:
            member.soname = value


def _list(path: Path, cuobjdump: str) -> tuple[dict[str, int], dict[str, int], str]:
    """The listing of cuobjdump: by the first working one of several, joined by ``:``.

    A new one refuses a file with code for a GPU that it has forgotten, and an old one knows no new GPU: when all fail,
    each is asked for one architecture after the other.
    """
    problem = ""
    programs = cuobjdump.split(":")
    for program in programs:
        run = _cuobjdump(program, path)
        if run.returncode == 0 or "does not contain device code" in run.stderr:
            return *listed(run.stdout), ""
        problem = run.stderr.strip()[-200:] or f"cuobjdump returned {run.returncode}"
    sass, ptx = Counter[str](), Counter[str]()
    for arch in _ARCHITECTURES:
        for program in programs:
            run = _cuobjdump(program, path, "-arch", f"sm_{arch}")
            if run.returncode == 0 and (found := listed(run.stdout)) != ({}, {}):
                sass, ptx = sass + Counter(found[0]), ptx + Counter(found[1])
                break
    return dict(sass), dict(ptx), problem if not sass + ptx else ""


def _cuobjdump(program: str, path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [program, "--list-elf", "--list-ptx", *options, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")


def _search(path: Path, member: Member, cuobjdump: str) -> None:
    """Find content outside of sections: fat binaries and cubins in data, names of libraries loaded at run time."""
    text = _run(["readelf", "-S", "-W", str(path)]) if member.gpu_sections else ""
    known = [(start, end) for _name, start, end in gpu_sections(text)]
    outside: Counter[str] = Counter()
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if member.kind not in {"archive", "fat binary", "cubin"}:
            starts = [found.start() for found in re.finditer(re.escape(FAT_BINARY) + rb"\x01\x00\x10\x00", data)]
            fat = [start for start in starts if not _inside(start, known)]
            if fat:
                outside.update(_list_cut(data, fat, cuobjdump))
            cubins = [found.start() for found in CUBIN.finditer(data) if not _inside(found.start(), known)]
            for start in cubins[:_CUT_AT_MOST]:
                outside.update(_list_cubin(data[start : start + (32 << 20)]))
            if len(cubins) > _CUT_AT_MOST:
                outside["more cubins"] = len(cubins) - _CUT_AT_MOST
        member.gfx = sorted({found[1].decode() for found in GFX.finditer(data)})
        for magic in (b"CCOB\x02\x00", b"CCOB\x03\x00", b"CCOB\x01\x00"):
            if data.find(magic) >= 0:
                outside["compressed bundle of clang"] += 1
        member.mentions = sorted({found[0].decode() for found in CUDA_SONAMES.finditer(data)})
    member.outside = dict(outside)


def _inside(start: int, ranges: Iterable[tuple[int, int]]) -> bool:
    return any(first <= start < last for first, last in ranges)


def _list_cut(data: mmap.mmap, starts: list[int], cuobjdump: str) -> Counter[str]:
    """Put the fat binaries that begin at ``starts`` into the section of an object file, and have that listed."""
    with tempfile.TemporaryDirectory() as folder:
        cut, objects = Path(folder, "cut"), Path(folder, "cut.o")
        end = 0
        with cut.open("wb") as out:
            for start in starts:
                size = int.from_bytes(data[start + 8 : start + 16], "little") + 16
                if start >= end and start + size <= len(data):
                    out.write(data[start : start + size] + bytes(-size % 8))
                    end = start + size
        section = ".data=.nv_fatbin,alloc,load,readonly,data,contents"
        _run(["objcopy", "-I", "binary", "-O", "elf64-x86-64", "--rename-section", section, str(cut), str(objects)])
        sass, ptx, _problem = _list(objects, cuobjdump)
    return Counter({f"sass {arch}": count for arch, count in sass.items()}) + Counter(
        {f"ptx {arch}": count for arch, count in ptx.items()}
    )


def _list_cubin(data: bytes) -> Counter[str]:
    with tempfile.NamedTemporaryFile(suffix=".cubin") as cut:
        cut.write(data)
        cut.flush()
        ((_name, arch),) = read_cubins([Path(cut.name)], [""])
        return Counter({f"cubin {arch or _flags(Path(cut.name))}": 1})


def _flags(path: Path) -> str:
    found = re.search(r"Flags:\s+(0x[0-9a-f]+)", _run(["readelf", "-h", "-W", str(path)]))
    return f"flags {found[1]}" if found else "?"


def _run(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False, errors="replace").stdout
