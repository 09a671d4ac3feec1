"""Reads GPU code out of a library that comes in pieces, front to back, and is never held."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace

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
_STEP = 2 * 1024 * 1024  # bytes after which it is asked whether that was enough
_NO_CODE = GpuCode({}, "exact", {})

Enough = Callable[[GpuCode], bool]
"""Whether what was seen, as "sampled", answers the question for which a library is read."""


def all_of_it(_: GpuCode) -> bool:
    """Never enough: everything is read."""
    return False


class _Watch:
    """Asks now and then whether the code that was seen until now is enough."""

    def __init__(self, enough: Enough) -> None:
        self._enough = enough
        self._left = _STEP

    def is_over(self, passed: int, seen: Callable[[], GpuCode]) -> bool:
        """True once it is, asked after each ``_STEP`` bytes; ``passed`` more have passed."""
        self._left -= passed
        if self._left > 0 or self._enough is all_of_it:
            return False
        self._left = _STEP
        return self._enough(replace(seen(), certainty="sampled"))


def scan(
    pieces: Iterable[bytes],
    size: int,
    spans: Iterable[tuple[int, int]],
    bundles: Iterable[tuple[int, int]] = (),
    *,
    seen: Collection[str] = (),
    enough: Enough = all_of_it,
) -> GpuCode:
    """The GPU code in the ``(offset, length)`` spans of a file of ``size`` bytes that comes in ``pieces``.

    ``spans`` hold fat binaries, ``bundles`` offload bundles. Where these lack labels that were ``seen`` in the file, it
    is the code of the whole file. As soon as what has passed is ``enough``, it is that, as "sampled".

    Takes no more of the pieces than it needs. Raises FormatError when a span contains something else, when two overlap,
    and what the pieces raise.
    """
    finder = FatbinFinder(size) if seen else None
    watch = _Watch(enough)
    fats, bundled = _NO_CODE, _NO_CODE
    stream = _passing(pieces, finder)
    position, piece = 0, memoryview(b"")  # where the piece begins, and what is left of it
    for offset, length, kind in _in_order(spans, bundles, size):
        scanner: FatbinScanner | BundleScanner = kind()
        while position < offset + length:
            if not piece:
                piece = memoryview(next(stream, b""))
                if not piece:
                    raise FormatError(f"the file ends at byte {position}", expected=f"{size} bytes")
            end = min(position + len(piece), offset + length)
            if end > offset:
                scanner.feed(piece[max(0, offset - position) : end - position])
                if watch.is_over(end - max(offset, position), lambda: fats + bundled + scanner.so_far):  # noqa: B023  # called at once
                    return replace(fats + bundled + scanner.so_far, certainty="sampled")
            piece = piece[end - position :]
            position = end
        if kind is FatbinScanner:
            fats += scanner.finish()
        else:
            bundled += scanner.finish()
    if finder is None or set(seen) <= {*fats.counts, *bundled.counts}:
        return fats + bundled
    if any(watch.is_over(len(rest), lambda: finder.everywhere + bundled) for rest in stream):
        return replace(finder.everywhere + bundled, certainty="sampled")
    return finder.everywhere + bundled


def _in_order(
    spans: Iterable[tuple[int, int]], bundles: Iterable[tuple[int, int]], size: int
) -> list[tuple[int, int, type[FatbinScanner | BundleScanner]]]:
    """All spans with what reads them. Raises FormatError when two overlap, or one leaves the file."""
    fats: list[tuple[int, int, type[FatbinScanner | BundleScanner]]] = [(*span, FatbinScanner) for span in spans]
    wanted = sorted([*fats, *((*span, BundleScanner) for span in bundles)], key=lambda item: item[:2])
    position = 0
    for offset, length, _ in wanted:
        if offset < position or offset + length > size:
            raise FormatError(
                f"the fat binaries are at bytes {offset:#x} to {offset + length:#x}",
                expected=f"their own place inside the file of {size:#x} bytes",
            )
        position = offset + length
    return wanted


def _passing(pieces: Iterable[bytes], finder: FatbinFinder | None) -> Iterator[bytes]:
    for piece in pieces:
        if finder is not None:
            finder.feed(piece)
        yield piece


def search(
    pieces: Iterable[bytes], size: int, headers_offset: int, enough: Enough = all_of_it
) -> GpuCode | Unavailable:
    """The GPU code of an ELF file of ``size`` bytes, in ``pieces``, whose section headers are at ``headers_offset``.

    Everything is read, since the headers stand after what they describe. Their names are searched for up to 1 MiB
    before them and behind, and around the first places that hold the name of the names. Without names, or without
    headers, the code is what is found anywhere. As soon as that is ``enough``, nothing more is read, and it is
    "sampled". Raises FormatError when a section is not a row of fat binaries, and what the pieces raise.
    """
    finder = FatbinFinder(size)
    start = max(0, headers_offset - _NAMES_ROOM)
    end = min(size, headers_offset + _NAMES_ROOM)
    keeper = StreamKeeper(size, [(0, min(size, _HEAD)), (start, max(0, end - start))])
    before, kept = b"", 0
    watch = _Watch(enough)
    for piece in pieces:
        finder.feed(piece)
        if watch.is_over(len(piece), lambda: finder.everywhere):
            return replace(finder.everywhere, certainty="sampled")
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
        return Unavailable("its offload bundles were recognised only after they had been read past")
    if holds_code_as_data(sections) or may_hold_code_as_data(sections):
        return finder.everywhere
    code = _NO_CODE
    for offset, length in loaded_spans(sections):
        code += finder.within(offset, length)
    return code


def search_everywhere(pieces: Iterable[bytes], size: int, enough: Enough = all_of_it) -> GpuCode:
    """All GPU code in a file of ``size`` bytes that comes in ``pieces``; as "sampled" what is ``enough`` of it.

    Raises FormatError, see FatbinFinder.feed.
    """
    finder = FatbinFinder(size)
    watch = _Watch(enough)
    for piece in pieces:
        finder.feed(piece)
        if watch.is_over(len(piece), lambda: finder.everywhere):
            return replace(finder.everywhere, certainty="sampled")
    return finder.everywhere
