"""Recognises the names of sections among bytes that are known in part, by what their headers say of them.

The headers show at which index each name begins, and of some their types fix the name. So the place of the names can be
found, and a name of which some bytes are unknown is known when only one of the usual names fits. Sections that hold
GPU code are among the usual ones: a name that fits none of them is a different one.
"""

from collections.abc import Iterator, Sequence

from wheel_checks.formats.elf.sections import (
    GPU_CODE_SECTIONS,
    HIP_SECTION,
    OFFLOAD_PREFIX,
    SHT_DYNAMIC,
    SHT_DYNSYM,
    SHT_SYMTAB,
    HeaderRow,
)

_OWN_NAME = b".shstrtab"
_NAMES_OF_TYPES = {  # gABI, "Special Sections"; Linux Standard Base, "Additional Special Sections"
    SHT_SYMTAB: b".symtab",
    SHT_DYNAMIC: b".dynamic",
    SHT_DYNSYM: b".dynsym",
    0x6FFFFFF6: b".gnu.hash",
    0x6FFFFFFD: b".gnu.version_d",
    0x6FFFFFFE: b".gnu.version_r",
    0x6FFFFFFF: b".gnu.version",
}
_CUSTOMARY = (  # those that GNU ld, lld, gcc, clang, nvcc, hipcc, strip and patchelf write
    ".bss .comment .ctors .data .data.rel.ro .debug_abbrev .debug_aranges .debug_info .debug_line .debug_line_str "
    ".debug_ranges .debug_rnglists .debug_loc .debug_loclists .debug_str .dtors .dynamic .dynstr .dynsym .eh_frame "
    ".eh_frame_hdr .fini .fini_array .gcc_except_table .gnu.build.attributes .gnu.hash .gnu.version .gnu.version_d "
    ".gnu.version_r .gnu_debuglink .got .got.plt .hash .init .init_array .interp .jcr .lbss .ldata "
    ".lrodata .ltext .note .note.ABI-tag .note.gnu.build-id .note.gnu.property .note.stapsdt .plt "
    ".plt.got .plt.sec .preinit_array .rel.dyn .rel.plt .rela.dyn .rela.plt .relr.dyn .relro_padding .rodata .shstrtab "
    ".stapsdt.base .strtab .symtab .tbss .tdata .text .tm_clone_table __nv_module_id protodesc_cold malloc_hook"
)
_OF_GPU_CODE = {name.encode() for name in (*GPU_CODE_SECTIONS, HIP_SECTION, ".nvFatBinSegment", ".hipFatBinSegment")}
_NAMES = (*_OF_GPU_CODE.union(name.encode() for name in _CUSTOMARY.split()),)
_BEGINNINGS = (*(name.encode() + b"\0" for name in GPU_CODE_SECTIONS), HIP_SECTION.encode(), OFFLOAD_PREFIX.encode())
_UNKNOWN = b"?"


def find_names(rows: Sequence[HeaderRow], index: int, data: bytes) -> Iterator[int]:
    """Where in ``data`` the names of the sections may begin: header ``index`` calls these .shstrtab, and all fit."""
    own = rows[index]
    named = [(row.name, _NAMES_OF_TYPES[row.kind]) for row in rows if row.kind in _NAMES_OF_TYPES]
    at = data.find(_OWN_NAME)
    while at >= 0 and named:
        start = at - own.name
        if start >= 0 and start + own.size <= len(data):
            names = data[start : start + own.size]
            if all(names.startswith(name, place) for place, name in named):
                yield start
        at = data.find(_OWN_NAME, at + 1)


def complete_names(rows: Sequence[HeaderRow], names: Sequence[int | None]) -> bytes | None:
    """``names``, None where a byte is unknown, with what must be there; None when that is not certain enough.

    A name is taken to be the only customary one that fits. One that fits none, or several that have nothing to do with
    GPU code, keeps question marks for its unknown bytes. It is not certain enough when it may or may not be the name of
    GPU code, nor when it may end at two places.
    """
    starts = {row.name for row in rows}
    if names[0] or names[-1]:
        return None
    result: list[int | None] = [0, *names[1:-1], 0]
    for start in sorted(starts):
        if start >= len(names):
            return None
        end = next((at for at in range(start, len(names)) if result[at] == 0 or (at > start and at in starts)), -1)
        known = result[start:end] if end >= 0 else [None]
        if None not in known and result[end] == 0:
            continue
        fitting = [name for name in _NAMES if _fits(name, start, result, starts)]
        if len({len(name) for name in fitting}) > 1 or (len(fitting) > 1 and not _OF_GPU_CODE.isdisjoint(fitting)):
            return None
        if fitting:
            end = start + len(fitting[0])
            result[start : end + 1] = [*(fitting[0] if len(fitting) == 1 else result[start:end]), 0]
        elif end < 0 or result[end] != 0 or _may_begin(OFFLOAD_PREFIX.encode(), result[start:end]):
            return None
    return b"".join(_UNKNOWN if byte is None else bytes((byte,)) for byte in result)


def may_be_own_name(known: Sequence[int | None]) -> bool:
    """True when the name that begins here may be .shstrtab."""
    return _may_begin(_OWN_NAME + b"\0", known)


def may_name_gpu_code(known: Sequence[int | None]) -> bool:
    """True unless no string of .shstrtab, nor the end of one, can be the name of a section of GPU code.

    ``known`` is its content, None where a byte is not certain.
    """
    return any(
        _may_begin(text, known[start : start + len(text)])
        for start in range(len(known))
        for text in _BEGINNINGS
        if known[start] in (None, text[0])
    )


def _fits(name: bytes, start: int, names: Sequence[int | None], starts: set[int]) -> bool:
    """True when ``name`` and its zero may be at ``start``, and another name, or the end, comes next."""
    end = start + len(name) + 1
    if end > len(names) or (end < len(names) and end not in starts):
        return False
    return _may_begin(name + b"\0", names[start:end])


def _may_begin(text: bytes, name: Sequence[int | None]) -> bool:
    """True when ``name`` may start with ``text``, by the bytes of it that are known."""
    known = zip(text, name, strict=False)
    return len(name) >= len(text) and all(byte is None or byte == wanted for wanted, byte in known)
