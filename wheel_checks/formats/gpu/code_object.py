"""GPU code that is an ELF file or a text by itself: cubins, AMD's code objects, and PTX.

Source: LLVM, ``BinaryFormat/ELF.h`` (EF_CUDA_SM, EF_CUDA_ACCELERATORS_V1, EF_AMDGPU_MACH and the features of code
objects of version 4 and newer), and cubins of the package index; read 2026-11. In cubins of the older form the
architecture is in the lowest byte of e_flags, and bit 11 is the ``a``; of the newer form (ABI version 8, CUDA 13) it is
in the second byte. ptxas 12.9 sets bit 3 of it for ``a``, ptxas 13.0 sets no bit: the note of the compiler repeats
``-arch sm_100f``.
"""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

from wheel_checks.errors import FormatError
from wheel_checks.formats.gpu.fatbin import releases_in, toolkit_of_abi, toolkit_of_cubin

UNKNOWN_SUFFIX = "?"
"""Of a label: whether it has a suffix is unknown."""

_ELF64_LITTLE, _HEADER_SIZE = b"\x7fELF\x02\x01", 64
_EM_CUDA, _EM_AMDGPU = 190, 224
_NEW_ABI = 8  # e_ident[EI_ABIVERSION]
_ABI_AT = 8
_ACCELERATORS_V1, _ACCELERATORS = 0x800, 0x8
_FIRST_CODE_OBJECT_V4 = 2  # e_ident[EI_ABIVERSION] of ELFABIVERSION_AMDGPU_HSA_V4
_XNACK, _SRAMECC = {0x200: "-", 0x300: "+"}, {0x800: "-", 0xC00: "+"}
_ARCHITECTURE = re.compile(rb"(?<![\w-])-arch[ =](sm_[1-9]\d{1,2}[af]?)(?![\w])")
_PTX_TARGET = re.compile(rb"^\s*\.target\s+sm_([1-9]\d{1,2}[af]?)\b", re.MULTILINE)
_PTX_ISA = re.compile(rb"^\s*\.version\s+(\d{1,2}\.\d)\b", re.MULTILINE)
_PTX_HEAD = 64 * 1024  # bytes of PTX that include the target, after comments


def read_cubin(data: bytes) -> str:
    """The label of a cubin: "sm_90a", "sm_100f". Raises FormatError for anything else.

    Without the note of the compiler, code of the newer form may be only for its architecture: "sm_100?".
    """
    flags = _flags(data, _EM_CUDA, "a cubin")
    new = data[_ABI_AT] >= _NEW_ABI
    sm = (flags >> 8 if new else flags) & 0xFF
    stated = _ARCHITECTURE.findall(data)
    label = stated[-1].decode() if stated else ""
    if label.rstrip("af") == f"sm_{sm}":
        return label
    is_specific = flags & (_ACCELERATORS if new else _ACCELERATORS_V1)
    return f"sm_{sm}{'a' if is_specific else UNKNOWN_SUFFIX if new else ''}"


def toolkit_of_file(data: bytes) -> str:
    """The CUDA of a cubin, or of PTX as text, as in :class:`~wheel_checks.formats.gpu.fatbin.GpuCode`."""
    releases = [*releases_in(data)]
    if data.startswith(_ELF64_LITTLE):
        sm = int(read_cubin(data).removeprefix("sm_").rstrip("af?"))
        return releases[-1] if releases else toolkit_of_cubin(data) or toolkit_of_abi(data[_ABI_AT], sm)
    isa = _PTX_ISA.search(data, 0, _PTX_HEAD)
    return f"PTX {isa[1].decode()}" if isa else ""


class CodeObject(NamedTuple):
    """``machine`` is EF_AMDGPU_MACH; ``features`` as in a target: ":xnack+"."""

    machine: int
    features: str


def read_code_object(data: bytes) -> CodeObject:
    """The header of one of AMD's code objects. Raises FormatError for anything else."""
    flags = _flags(data, _EM_AMDGPU, "AMD's GPU code")
    if data[_ABI_AT] < _FIRST_CODE_OBJECT_V4:
        return CodeObject(flags & 0xFF, "")
    features = {"sramecc": _SRAMECC.get(flags & 0xC00), "xnack": _XNACK.get(flags & 0x300)}
    return CodeObject(flags & 0xFF, "".join(f":{name}{sign}" for name, sign in features.items() if sign))


def _flags(data: bytes, machine: int, expected: str) -> int:
    """e_flags of an ELF file of 64 bits for this machine (gABI, figure 4-3). Raises FormatError for anything else."""
    if len(data) < _HEADER_SIZE or not data.startswith(_ELF64_LITTLE):
        raise FormatError(f"it starts with {data[:6].hex(' ')}", expected=f"{expected}, an ELF file of 64 bits")
    (found,) = struct.unpack_from("<H", data, 18)
    if found != machine:
        raise FormatError(f"it is an ELF file for machine {found}", expected=expected)
    (flags,) = struct.unpack_from("<I", data, 48)
    return int(flags)


def read_ptx(data: bytes) -> str:
    """The label of PTX as text: "compute_90a". Raises FormatError when it names no target."""
    target = _PTX_TARGET.search(data, 0, _PTX_HEAD)
    if target is None:
        raise FormatError("the PTX has no .target", expected="one such as .target sm_90")
    return f"compute_{target[1].decode()}"
