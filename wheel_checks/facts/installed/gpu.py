"""Reads the GPU code of installed libraries: their section headers, and the headers of their fat binaries alone."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from wheel_checks.errors import FormatError
from wheel_checks.facts.elf.file import read_elf_file
from wheel_checks.facts.gpu.code import GpuCodeFacts, LibraryGpuCode
from wheel_checks.facts.gpu.loose import LARGEST_FILE, is_loose, label_of_file
from wheel_checks.facts.gpu.places import bundle_spans, holds_code_as_data, loaded_spans, may_hold_code_as_data
from wheel_checks.facts.gpu.reading import LARGEST
from wheel_checks.facts.gpu.streaming import search_everywhere
from wheel_checks.facts.installed.facts import Distribution, RecordedFiles
from wheel_checks.formats.elf.file import ElfFacts, Part
from wheel_checks.formats.elf.sections import Sections
from wheel_checks.formats.gpu.fatbin import FatbinScanner, GpuCode
from wheel_checks.formats.gpu.offload_bundle import BundleScanner
from wheel_checks.model import Unavailable
from wheel_checks.sources.environment import Environment
from wheel_checks.sources.file_tree import FileTree
from wheel_checks.sources.regular_file import open_regular

AT_ONCE = 4  # files read in parallel
_CHUNK = 1024 * 1024  # bytes of a searched file read at once
_PIECE = 4096  # bytes read at a header; most payloads are larger


def read_installed_gpu_code(
    environment: Environment, distributions: Sequence[Distribution], elfs: Iterable[str]
) -> Mapping[str, GpuCodeFacts]:
    """The GPU code of each distribution that has some, by the folder of its metadata; "" for files of no distribution.

    ``elfs`` are the paths of the ELF files; .fatbin and .cubin files are found among the others. Members are named as
    in a wheel, relative to the folder of imports, those of no distribution by their absolute paths. ``bytes_read`` are
    bytes of the disk. All results are exact; unreadable files are Unavailable.
    """
    owners = {
        path: distribution
        for distribution in reversed(distributions)
        if isinstance(distribution.files, RecordedFiles)
        for path in distribution.files.owned
    }
    others = [
        f"{e.path}/{file}"
        for e in environment.entries
        for file in e.files
        if file.endswith(".fatbin") or is_loose(file)
    ]
    paths = sorted({*elfs, *others})
    with ThreadPoolExecutor(AT_ONCE, "gpu-code") as pool:
        read = list(pool.map(lambda path: _read(environment.tree, path), paths))
    found: defaultdict[str, dict[str, LibraryGpuCode]] = defaultdict(dict)
    for path, library in zip(paths, read, strict=True):
        if library is not None:
            owner = owners.get(path)
            name = library.member.removeprefix(f"{owner.entry}/") if owner else library.member
            of_owner = found[owner.folder if owner else ""]
            of_owner[name] = _joined(of_owner.get(name), LibraryGpuCode(name, library.code, library.bytes_read))
    names = {distribution.folder: distribution.name for distribution in distributions}
    return {
        folder: GpuCodeFacts(tuple(libraries.values()), project=names.get(folder, ""))
        for folder, libraries in found.items()
    }


def _read(tree: FileTree, path: str) -> LibraryGpuCode | None:
    """The GPU code of one file, or None."""
    if is_loose(path):
        return _read_loose(tree, path)
    if path.endswith(".fatbin"):
        return _read_code(tree, path, lambda reader: reader.read([(0, reader.size)]))
    return _read_library(tree, path)


def _read_library(tree: FileTree, path: str) -> LibraryGpuCode | None:
    elf, _ = read_elf_file(tree, path, {Part.SECTIONS})
    if not isinstance(elf, ElfFacts):
        return LibraryGpuCode(path, Unavailable(f"it cannot be read: {elf}"))
    sections = elf.sections
    if not isinstance(sections, Sections):
        return LibraryGpuCode(path, Unavailable("the names of its sections cannot be read"))
    spans, bundles = loaded_spans(sections), bundle_spans(sections)
    if (spans or bundles) and not holds_code_as_data(sections):
        return _read_code(tree, path, lambda reader: reader.read(spans, bundles))
    if spans or not sections.headers or may_hold_code_as_data(sections):
        found = _read_code(tree, path, _Reader.search)
        return None if isinstance(found.code, GpuCode) and not found.code.counts else found
    return None


def _read_code(tree: FileTree, path: str, read: Callable[[_Reader], GpuCode]) -> LibraryGpuCode:
    try:
        with open_regular(tree.outside(path)) as file:
            reader = _Reader(file.fileno(), os.fstat(file.fileno()).st_size)
            code = read(reader)
    except FormatError as error:
        return LibraryGpuCode(path, Unavailable(f"it cannot be read: {error}"))
    except OSError as error:
        return LibraryGpuCode(path, Unavailable(f"it cannot be read: {error.strerror}"))
    return LibraryGpuCode(path, code, reader.bytes_read)


def _joined(one: LibraryGpuCode | None, other: LibraryGpuCode) -> LibraryGpuCode:
    """Files of one kind in one folder are one library; an unreadable one takes precedence."""
    if one is None or isinstance(other.code, Unavailable):
        return other
    if isinstance(one.code, Unavailable):
        return one
    code = one.code + other.code
    code = GpuCode(code.counts, code.certainty, {frozenset(code.counts): sum(code.containers.values())})
    return LibraryGpuCode(one.member, code, one.bytes_read + other.bytes_read)


def _read_loose(tree: FileTree, path: str) -> LibraryGpuCode:
    """The GPU code of a cubin, PTX or code object, called as all of its kind in its folder."""
    folder, slash, name = path.rpartition("/")
    stands_for = f"{folder}{slash}*.{name.rpartition('.')[2]}"
    try:
        with open_regular(tree.outside(path)) as file:
            data = file.read(LARGEST_FILE + 1)
        if len(data) > LARGEST_FILE:
            return LibraryGpuCode(stands_for, Unavailable(f"{name} has more than {LARGEST_FILE:,} bytes"))
        labels = label_of_file(path, data)
    except FormatError as error:
        return LibraryGpuCode(stands_for, Unavailable(f"{name} cannot be read: {error}", error.hint))
    except OSError as error:
        return LibraryGpuCode(stands_for, Unavailable(f"{name} cannot be read: {error.strerror}"))
    return LibraryGpuCode(stands_for, GpuCode(dict.fromkeys(labels, 1), "exact", {frozenset(labels): 1}), len(data))


@dataclass(slots=True)
class _Reader:
    """An open file of ``size`` bytes."""

    file: int
    size: int
    bytes_read: int = field(default=0, init=False)

    def read(self, spans: Iterable[tuple[int, int]], bundles: Iterable[tuple[int, int]] = ()) -> GpuCode:
        """The GPU code in the ``(offset, length)`` spans of fat binaries and offload bundles. Raises FormatError."""
        code = GpuCode({}, "exact", {})
        left = min(self.size, LARGEST)  # no byte twice: sections that overlap could multiply the work
        kinds = [(span, FatbinScanner) for span in spans] + [(span, BundleScanner) for span in bundles]
        for (offset, length), kind in kinds:
            left -= length
            if left < 0:
                raise FormatError("its fat binaries exceed the read limit", expected=f"at most {LARGEST:,}")
            scanner: FatbinScanner | BundleScanner = kind()
            position = 0
            while position < length:
                piece = os.pread(self.file, min(_PIECE, length - position), offset + position)
                if not piece:
                    raise FormatError("the file was truncated while it was read")
                self.bytes_read += len(piece)
                scanner.feed(piece)
                position = scanner.skip(length)
            code += scanner.finish()
        return code

    def search(self) -> GpuCode:
        """The GPU code wherever it is. Raises FormatError, see :func:`search_everywhere`."""
        if self.size > LARGEST:
            raise FormatError(f"it has {self.size:,} bytes", expected=f"at most {LARGEST:,}")
        return search_everywhere(self._chunks(), self.size)

    def _chunks(self) -> Iterator[bytes]:
        while self.bytes_read < self.size and (chunk := os.pread(self.file, _CHUNK, self.bytes_read)):
            self.bytes_read += len(chunk)
            yield chunk
