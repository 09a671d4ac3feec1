"""Fat binaries: the GPU code inside a host library, in its sections ``.nv_fatbin`` and ``__nv_relfatbin``.

NVIDIA does not publish the format. These rules were derived from files of nvcc 13.0 and from libraries on the package
index, and are compared with the output of ``cuobjdump`` for the same files:

* a section is a row of containers, each at a multiple of 8 bytes, zeros between them;
* a container is u32 magic, u16 version, u16 header size, u64 size of the entries that follow;
* an entry is a header of 64 bytes or more and a payload: u16 kind, u16 attributes, u32 header size, u64 payload size
  (padded), u32 size as compressed (0: not compressed), u32 offset of options, u16 minor and u16 major version (of PTX:
  that of its instruction set; the minor one of a cubin is the ABI version of its ELF header), u32 architecture, u32 and
  u32 offset and size of an identifier, u64 flags, u64 unused, u64 size as inflated.

The toolkit that made the code is shown by e_version of a cubin of ABI version 7 (128: CUDA 12.8), the note
``.note.nv.tkinfo`` of one of ABI version 8, where it is not compressed, and else by the versions in the header: CUDA
12.9 writes ABI version 8 for sm_100 and newer alone, CUDA 13 for all targets (bitsandbytes 0.50.2, cupy-cuda12x 14.2.0,
warp-lang 1.19.0, triton 3.9.0; read 2026-11).

The CUDA runtime loads ``.nv_fatbin``. ``__nv_relfatbin`` is relocatable code for the device linker; nothing loads it,
and ``cuobjdump`` lists it only with ``--all-fatbin`` when the file has both.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from wheel_checks.errors import FormatError

SECTIONS = (".nv_fatbin", "__nv_relfatbin")
MAX_TARGETS = 1000
"""At most so many different targets, and different combinations of them, in one section (real libraries: under 30)."""

Certainty = Literal["exact", "sampled", "declared"]
_CERTAINTIES: tuple[Certainty, ...] = ("exact", "sampled", "declared")  # from the surest to the least sure

_CONTAINER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_MAGIC = 0xBA55ED50
_ALIGNMENT = 8
_MAX_HEADER = 1 << 20  # options of the compiler are kept in it, seldom more than 100 bytes

_KINDS = {1: "ptx", 2: "elf", 8: "lto"}
_PREFIXES = {"ptx": "compute", "elf": "sm"}  # as nvcc names them
_OLD_ABI, _NEW_ABI = 7, 8
_FIRST_OF_NEW_ABI = 100  # sm_100: the first target for which CUDA 12 writes the new ABI
_ABI_AT, _VERSION_AT = 8, 20  # e_ident[EI_ABIVERSION] and e_version of an ELF header
_OLDEST, _NEWEST = 70, 130  # e_version of CUDA 7.0, and that of CUDA 13.0, which no longer writes it
_HEAD = 256  # bytes of an entry's header and of the cubin after it that are read together
_LZ4, _ZSTD, _ARCHITECTURE_SPECIFIC, _FAMILY_SPECIFIC = 0x2000, 0x8000, 0x100000, 0x200000

K = TypeVar("K", bound=Hashable)
Buffer = bytes | bytearray | memoryview

_PADDING = re.compile(rb"\0*")  # matches everywhere
_RELEASE = re.compile(rb"Cuda compilation tools, release (\d{1,2}\.\d)")
_LONGEST_RELEASE = 40  # bytes that are longer than any match


@dataclass(frozen=True, slots=True)
class GpuEntry:
    """One image in a fat binary.

    ``kind`` is "elf" (a cubin: machine code), "ptx" (compiled at first use), "lto" (for the device linker), or, if
    unknown, "kind" and its number. ``sm`` is the architecture as in sm_100. ``suffix`` is "a" (for that architecture
    only), "f" (for its family) or "". ``size`` is the stored payload size in bytes. ``compression`` is "zstd", "lz4",
    "unknown", or "" if none. ``ptx_isa`` is the version of PTX's instruction set ("9.0"), "" for anything else.
    ``toolkit`` is as in :class:`GpuCode`.
    """

    kind: str
    sm: int
    suffix: str
    size: int
    compression: str
    ptx_isa: str = ""
    toolkit: str = ""

    @property
    def label(self) -> str:
        """The target as nvcc's ``code=`` names it: "sm_100a", "compute_90", "lto_80"."""
        return f"{_PREFIXES.get(self.kind, self.kind)}_{self.sm}{self.suffix}"


@dataclass(frozen=True, slots=True)
class GpuCode:
    """The targets that a library has code for, and the certainty of that.

    ``counts`` is the number of entries for each label ("sm_100a": 3). ``containers`` is the number of containers for
    each set of labels: a container has the kernels of one compiled file, and runs on a GPU if any of its labels
    supports it. ``certainty`` is "exact" when every byte was read; "sampled" when parts were, so that there may be code
    for other labels; "declared" when only a string in the library says so: every count is 0 then, and ``containers`` is
    empty. ``ptx_isa`` is the latest PTX instruction set version of each PTX label ("compute_90": "8.7").

    ``toolkits`` is the number of containers for each statement about their CUDA: a release ("12.8"), "PTX 8.7", "ABI 7"
    for CUDA 12 or older, "ABI 8" for CUDA 13 or newer, "ABI 8 from sm_100" for either, "" for none; 0 for releases that
    only a text names.
    """

    counts: Mapping[str, int]
    certainty: Certainty
    containers: Mapping[frozenset[str], int]
    ptx_isa: Mapping[str, str] = field(default_factory=dict)
    toolkits: Mapping[str, int] = field(default_factory=dict)

    @property
    def sass(self) -> tuple[str, ...]:
        """The labels of machine code, by architecture: ("sm_90", "sm_90a", "sm_100")."""
        return self._labels("sm_")

    @property
    def ptx(self) -> tuple[str, ...]:
        """The labels of PTX, by architecture: ("compute_90",)."""
        return self._labels("compute_")

    @property
    def gfx(self) -> tuple[str, ...]:
        """The targets of AMD's code objects, sorted: ("gfx90a:xnack+", "gfx942")."""
        return tuple(sorted(label for label in self.counts if label.startswith("gfx")))

    def __add__(self, other: GpuCode) -> GpuCode:
        """Both together, as sure as the less sure of them."""
        return GpuCode(
            _sum(self.counts, other.counts),
            max(self.certainty, other.certainty, key=_CERTAINTIES.index),
            _sum(self.containers, other.containers),
            newest_isa((*self.ptx_isa.items(), *other.ptx_isa.items())),
            _sum(self.toolkits, other.toolkits),
        )

    def _labels(self, prefix: str) -> tuple[str, ...]:
        return tuple(sorted((label for label in self.counts if label.startswith(prefix)), key=_by_architecture))


def newest_isa(seen: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The latest version for each label; pairs without a version do not count."""
    found: dict[str, str] = {}
    for label, isa in seen:
        if isa and (label not in found or _numbers(isa) > _numbers(found[label])):
            found[label] = isa
    return found


def best_statement(statements: Iterable[str]) -> str:
    """The statement of a container about its toolkit: a release, the new ABI, the version of PTX, the old ABI."""
    new, old = f"ABI {_NEW_ABI}", f"ABI {_OLD_ABI}"
    return max(
        statements, key=lambda one: (one[:1].isdigit(), one == new, one.startswith("PTX"), one == old, one), default=""
    )


def releases_in(data: Buffer) -> dict[str, int]:
    """The CUDA releases that compilers and their notes name in ``data``, as in ``toolkits``."""
    return dict.fromkeys((match[1].decode("ascii") for match in _RELEASE.finditer(data)), 0)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split(".") if number.isdigit())


def _by_architecture(label: str) -> tuple[int, str]:
    number = label.rpartition("_")[2]
    return int(number.rstrip("af?")), number


def _sum(one: Mapping[K, int], other: Mapping[K, int]) -> dict[K, int]:
    return {key: one.get(key, 0) + other.get(key, 0) for key in (*one, *other)}


def read_fatbins(data: Buffer) -> tuple[GpuEntry, ...]:
    """The entries of a whole section, in order. Raises FormatError, see :class:`FatbinScanner`."""
    scanner = FatbinScanner()
    entries = scanner.feed(data)
    scanner.finish()
    return tuple(entries)


class FatbinScanner:
    """Reads the entries of one section, fed in chunks of any size.

    Payloads are skipped by their size: between chunks only the counts and less than one header are kept. A size that
    does not fit, a missing container, or an unknown version raises FormatError with the offset in the section; the
    scanner cannot be used after that.
    """

    def __init__(self) -> None:
        self._fed = 0  # offsets are those in the section
        self._header = 0  # offset of the next header
        self._end = 0  # end of the container around it; the same as _header between containers
        self._held = b""  # the beginning of a header whose end has not come yet
        self._labels: set[str] = set()
        self._counts: Counter[str] = Counter()
        self._containers: Counter[frozenset[str]] = Counter()
        self._isa: set[tuple[str, str]] = set()
        self._statements: set[str] = set()
        self._toolkits: Counter[str] = Counter()
        self._tail = b""  # in which the name of a release may begin

    def feed(self, chunk: Buffer) -> list[GpuEntry]:
        """The entries whose headers end in this chunk."""
        self._toolkits.update(releases_in(self._tail + bytes(chunk[:_LONGEST_RELEASE])) | releases_in(chunk))
        self._tail = (self._tail + bytes(chunk[-_LONGEST_RELEASE:]))[-_LONGEST_RELEASE:]
        start = self._fed - len(self._held)
        data = self._held + chunk if self._held else memoryview(chunk)
        self._fed = start + len(data)
        entries = []
        while (at := self._header - start) < len(data):
            if self._header < self._end:
                if at + min(_HEAD, max(_ENTRY.size, self._end - self._header)) > len(data):
                    break
                entries.append(self._read_entry(data, at))
            else:
                padding = _PADDING.match(data, at)
                at = padding.end() if padding else at
                self._header = self._end = start + at
                if at + _CONTAINER.size > len(data):
                    break
                self._read_container(data, at)
        self._held = bytes(data[max(0, self._header - start) :])
        return entries

    def skip(self, size: int) -> int:
        """Skip bytes without headers: the offset in the section, of ``size`` bytes, at which to continue feeding.

        For sections that can be read at any offset: payloads, nearly all of the section, need not be read.
        """
        self._fed = max(self._fed, min(self._header, size))
        return self._fed

    def finish(self) -> GpuCode:
        """The summary, when the whole section has been fed or skipped. Raises FormatError when it ends too early."""
        if self._held or self._end > self._fed:
            raise FormatError(
                f"the section of fat binaries ends at byte {self._fed}, inside a container",
                expected=f"at least {max(self._end, self._header + _CONTAINER.size)} bytes",
                hint="it is cut off, or a size in it is wrong",
            )
        return self._code("exact")

    @property
    def so_far(self) -> GpuCode:
        """The code found until now, as "sampled"."""
        return self._code("sampled")

    def _code(self, certainty: Certainty) -> GpuCode:
        found = dict(self._counts), certainty, dict(self._containers)
        return GpuCode(*found, newest_isa(self._isa), dict(self._toolkits))

    def _read_container(self, data: Buffer, at: int) -> None:
        magic, version, header_size, size = _CONTAINER.unpack_from(data, at)
        if magic != _MAGIC:
            raise self._fault("magic", f"0x{magic:08X}", f"0x{_MAGIC:08X}, or zeros to the end of the section")
        if self._header % _ALIGNMENT:
            raise self._fault("offset", str(self._header), f"a multiple of {_ALIGNMENT}")
        if version != 1:
            raise self._fault("version", str(version), "1")
        if header_size != _CONTAINER.size:
            raise self._fault("header size", str(header_size), str(_CONTAINER.size))
        self._header += header_size
        self._end = self._header + size
        self._labels, self._statements = set(), set()

    def _read_entry(self, data: Buffer, at: int) -> GpuEntry:
        entry, length = read_entry(data, at, self._end - self._header, self._header)
        self._header += length
        self._counts[entry.label] += 1
        self._labels.add(entry.label)
        if entry.kind in _PREFIXES:
            self._statements.add(entry.toolkit)
        if entry.ptx_isa and len(self._isa) < MAX_TARGETS:
            self._isa.add((entry.label, entry.ptx_isa))
        if self._header == self._end:
            self._containers[frozenset(self._labels)] += 1
            if self._statements:
                self._toolkits[best_statement(self._statements)] += 1
        if max(len(self._counts), len(self._containers), len(self._toolkits)) > MAX_TARGETS:
            raise self._fault("targets", f"no. {MAX_TARGETS + 1} of the section", f"at most {MAX_TARGETS}")
        return entry

    def _fault(self, field: str, found: str, expected: str) -> FormatError:
        return _fault(self._header, field, found, expected)


def read_entry(data: Buffer, at: int, left: int, where: int = 0) -> tuple[GpuEntry, int]:
    """The entry whose header begins at ``at`` of ``data``, and the length of both header and payload in bytes.

    ``left`` bytes are left in its container. ``data`` has 64 bytes of the header; its toolkit is read from more. Raises
    FormatError, which calls its place ``where``.
    """
    kind, _, header_size, size, stored, _, minor, major, sm, _, _, flags, _, _ = _ENTRY.unpack_from(data, at)
    if not _ENTRY.size <= header_size <= min(left, _MAX_HEADER):
        raise _fault(
            where,
            "entry's header size",
            str(header_size),
            f"at least {_ENTRY.size} and at most {min(left, _MAX_HEADER)}, what its container has left",
        )
    if size > left - header_size:
        expected = f"at most {left - header_size}, as its container says"
        raise _fault(where, "entry's payload size", str(size), expected)
    if not 20 <= sm <= 999:
        raise _fault(where, "entry's architecture", str(sm), "20 to 999, as in sm_100")
    suffix = "a" if flags & _ARCHITECTURE_SPECIFIC else "f" if flags & _FAMILY_SPECIFIC else ""
    compression = "zstd" if flags & _ZSTD else "lz4" if flags & _LZ4 else "unknown" if stored else ""
    name = _KINDS.get(kind, f"kind{kind}")
    isa = f"{major}.{minor}" if name == "ptx" else ""
    toolkit = f"PTX {isa}" if isa else ""
    if name == "elf":
        cubin = b"" if compression else bytes(data[at + header_size : at + header_size + min(size, _HEAD)])
        toolkit = toolkit_of_cubin(cubin) or toolkit_of_abi(minor, sm)
    return GpuEntry(name, sm, suffix, size, compression, isa, toolkit), header_size + size


def toolkit_of_cubin(cubin: bytes) -> str:
    """The CUDA release by e_version of a cubin of the old ABI ("12.8"), or ""."""
    if not cubin.startswith(b"\x7fELF\x02\x01") or len(cubin) < _VERSION_AT + 4 or cubin[_ABI_AT] != _OLD_ABI:
        return ""
    (version,) = struct.unpack_from("<I", cubin, _VERSION_AT)
    return f"{version // 10}.{version % 10}" if _OLDEST <= version < _NEWEST else ""


def toolkit_of_abi(abi: int, sm: int) -> str:
    """The statement of a cubin's ABI version for a target about its toolkit, as in :class:`GpuCode`."""
    if abi == _NEW_ABI:
        return f"ABI {abi}" if sm < _FIRST_OF_NEW_ABI else f"ABI {abi} from sm_{_FIRST_OF_NEW_ABI}"
    return f"ABI {_OLD_ABI}" if abi <= _OLD_ABI else ""


def _fault(where: int, field: str, found: str, expected: str) -> FormatError:
    return FormatError(f"the fat binary at byte {where} of its section has {field} {found}", expected=expected)


_MAX_DECLARATION = 1024
_LABEL = rb"(?:sm|compute)_[1-9]\d{1,2}[af]?"
_AMD_LABEL = rb"gfx[0-9a-f]{3,4}(?::(?:xnack|sramecc)[+-])*"
_DECLARATION, _OF_AMD = (re.compile(rb"\0(%b(?: %b)*)(?=\0)" % (one, one)) for one in (_LABEL, _AMD_LABEL))


def find_declared(chunks: Iterable[Buffer], *, amd: bool = False) -> GpuCode | None:
    """The targets that a library declares in a string, from its bytes in chunks of any size, or None.

    torch compiles the list that ``torch.cuda.get_arch_list()`` reports, "sm_80 sm_90 sm_100", into libtorch_python.so
    as a separate string; builds for ROCm have "gfx908 gfx90a" there (``amd``). Reading stops at the first list of two
    or more; a single label is accepted only when no list follows and no other single label occurs.
    """
    lone: set[bytes] = set()
    held = b"\0"
    for chunk in chunks:
        data = held + chunk
        for match in (_OF_AMD if amd else _DECLARATION).finditer(data):
            if b" " in match[1]:
                return _declared(match[1])
            lone.add(match[1])
        held = data[-_MAX_DECLARATION:]
    return _declared(lone.pop()) if len(lone) == 1 else None


def _declared(labels: bytes) -> GpuCode:
    return GpuCode(dict.fromkeys(labels.decode("ascii").split(" "), 0), "declared", {})
