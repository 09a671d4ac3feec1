"""Where a library holds GPU code, by its sections."""

from wheel_checks.formats.elf.sections import HIP_SECTION, Sections

_LOADED, _RELOCATABLE = ".nv_fatbin", "__nv_relfatbin"
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
    found = sections.named(HIP_SECTION)
    return [(section.offset, section.size) for section in found if section.in_file and section.size]


def holds_code_as_data(sections: Sections) -> bool:
    """True for a library with hardly any code where the CUDA runtime loads it, and megabytes of data.

    cuFFT 12.0 keeps its 24,000 fat binaries in .data and loads them itself; .nv_fatbin has 672 bytes, for sm_75, which
    is all that cuobjdump lists.
    """
    loaded = sum(size for _, size in loaded_spans(sections))
    return 0 < loaded < _STUB and _most_data(sections) >= _MUCH_DATA


def may_hold_code_as_data(sections: Sections) -> bool:
    """True for a library without any section for GPU code, of which one section of data is the most.

    cuFFT 12.5 has nothing but .data, 216 MB of 237. Whether there is code in such data, only its bytes say.
    """
    if loaded_spans(sections) or bundle_spans(sections):
        return False
    most = _most_data(sections)
    return most >= _MUCH_DATA and 2 * most >= sum(section.size for section in sections.headers if section.in_file)


def _most_data(sections: Sections) -> int:
    return max((section.size for section in sections.headers if section.name in _DATA and section.in_file), default=0)
