"""Where a library holds GPU code, by its sections."""

from __future__ import annotations

from wheel_checks.formats.elf.sections import Sections

_LOADED, _RELOCATABLE = ".nv_fatbin", "__nv_relfatbin"
_HIP = ".hip_fatbin"
_STUB = 64 * 1024  # bytes of loaded fat binaries below which there may be more of them in other sections
_MUCH_DATA = 16 * 1024 * 1024  # bytes of such a section from which it is worth a search
_DATA = (".data", ".rodata", ".ldata", ".lrodata")  # the last two: x86-64 psABI, large code model


def loaded_spans(sections: Sections) -> list[tuple[int, int]]:
    """The ``(offset, size)`` of what is loaded, as cuobjdump lists it: relocatable code only when there is no other."""
    filled = [section for section in sections.gpu_code if section.size]
    names = {section.name for section in filled}
    wanted = _LOADED if _LOADED in names else _RELOCATABLE
    return [(section.offset, section.size) for section in filled if section.name == wanted]


def bundle_spans(sections: Sections) -> list[tuple[int, int]]:
    """The ``(offset, size)`` of the offload bundles that the HIP runtime loads."""
    return [(section.offset, section.size) for section in sections.named(_HIP) if section.in_file and section.size]


def holds_code_as_data(sections: Sections) -> bool:
    """True for a library with hardly any code where the CUDA runtime loads it, and megabytes of data.

    cuFFT 12 keeps its 24,000 fat binaries in .data and loads them itself; .nv_fatbin has 672 bytes, for sm_75, which is
    all that cuobjdump lists.
    """
    loaded = sum(size for _, size in loaded_spans(sections))
    return 0 < loaded < _STUB and any(
        section.name in _DATA and section.in_file and section.size >= _MUCH_DATA for section in sections.headers
    )
