"""Reads GPU code out of a library that comes in pieces, front to back, and is never held."""

from __future__ import annotations

from collections.abc import Iterable

from wheel_checks.errors import FormatError
from wheel_checks.facts.gpu.places import bundle_spans, holds_code_as_data, loaded_spans, may_hold_code_as_data
from wheel_checks.formats.elf.bytes import StreamKeeper
from wheel_checks.formats.elf.file import Missing, Part, read_elf
from wheel_checks.formats.gpu.fatbin import FatbinScanner, GpuCode
from wheel_checks.formats.gpu.fatbin_search import FatbinFinder
from wheel_checks.formats.gpu.offload_bundle import BundleScanner
from wheel_checks.model import Unavailable

_HEAD = 4096  # bytes that hold the ELF header
_NAMES_ROOM = 1024 * 1024  # bytes around the section headers; linkers put their names right before them, lld does not
_OWN_NAME = b".shstrtab"
_MOST_PLACES = 8  # pieces that are held for the sake of names
_NO_CODE = GpuCode({}, "exact", {})


def scan(
    pieces: Iterable[bytes],
    size: int,
    spans: Iterable[tuple[int, int]],
    bundles: Iterable[tuple[int, int]] = (),
) -> GpuCode:
    """The GPU code in the ``(offset, length)`` spans of a file of ``size`` bytes that comes in ``pieces``.

    ``spans`` hold fat binaries, ``bundles`` offload bundles.

    Takes no more of the pieces than the spans need. Raises FormatError when a span holds something else, when two
    overlap, and what the pieces raise.
    """
    code = _NO_CODE
    stream = iter(pieces)
    position, piece = 0, memoryview(b"")  # where the piece begins, and what is left of it
    wanted = [(*span, FatbinScanner) for span in spans] + [(*span, BundleScanner) for span in bundles]
    for offset, length, kind in sorted(wanted, key=lambda item: item[:2]):
        if offset < position or offset + length > size:
            raise FormatError(
                f"the fat binaries lie at bytes {offset:#x} to {offset + length:#x}",
                expected=f"a place of their own inside the file of {size:#x} bytes",
            )
        scanner: FatbinScanner | BundleScanner = kind()
        while position < offset + length:
            if not piece:
                piece = memoryview(next(stream, b""))
                if not piece:
                    raise FormatError(f"the file ends at byte {position}", expected=f"{size} bytes")
            end = min(position + len(piece), offset + length)
            if end > offset:
                scanner.feed(piece[max(0, offset - position) : end - position])
            piece = piece[end - position :]
            position = end
        code += scanner.finish()
    return code


def search(pieces: Iterable[bytes], size: int, headers_offset: int) -> GpuCode | Unavailable:
    """The GPU code of an ELF file of ``size`` bytes, in ``pieces``, whose section headers are at ``headers_offset``.

    Everything is read, since the headers stand behind what they describe. Their names are looked for up to 1 MiB before
    them and behind, and around the first places that hold the name of the names. Without names, or without headers, the
    code is what is found anywhere. Raises FormatError when a section is no row of fat binaries, and what the pieces
    raise.
    """
    finder = FatbinFinder(size)
    start = max(0, headers_offset - _NAMES_ROOM)
    end = min(size, headers_offset + _NAMES_ROOM)
    keeper = StreamKeeper(size, [(0, min(size, _HEAD)), (start, max(0, end - start))])
    before, kept = b"", 0
    for piece in pieces:
        finder.feed(piece)
        keeper.feed(piece)
        if kept < _MOST_PLACES and _OWN_NAME in before[-len(_OWN_NAME) :] + piece:
            kept += 1
            keeper.regions.add(keeper.position - len(piece) - len(before), before + piece)
        before = piece
    sections = read_elf(keeper.regions, {Part.SECTIONS}).sections
    if isinstance(sections, Missing) or not sections.headers:
        if isinstance(sections, Missing) and finder.everywhere.counts:
            return Unavailable("the names of its sections are not where its headers say")
        return finder.everywhere
    if bundle_spans(sections):
        return Unavailable("that it has offload bundles was known only when they had passed")
    if holds_code_as_data(sections) or may_hold_code_as_data(sections):
        return finder.everywhere
    code = _NO_CODE
    for offset, length in loaded_spans(sections):
        code += finder.within(offset, length)
    return code


def search_everywhere(pieces: Iterable[bytes], size: int) -> GpuCode:
    """All GPU code in a file of ``size`` bytes that comes in ``pieces``. Raises FormatError, see FatbinFinder.feed."""
    finder = FatbinFinder(size)
    for piece in pieces:
        finder.feed(piece)
    return finder.everywhere
