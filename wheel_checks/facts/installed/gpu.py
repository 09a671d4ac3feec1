"""Reads the GPU code of installed libraries: their section headers, and the headers of their fat binaries alone."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from wheel_checks.errors import FormatError
from wheel_checks.facts.elf.file import read_elf_file
from wheel_checks.facts.gpu.code import GpuCodeFacts, LibraryGpuCode
from wheel_checks.facts.gpu.reading import LARGEST, cubins_beside, holds_code_as_data, loaded_spans, search_everywhere
from wheel_checks.facts.installed.facts import Distribution, RecordedFiles
from wheel_checks.formats.elf.file import ElfFacts, Part
from wheel_checks.formats.elf.sections import Sections
from wheel_checks.formats.gpu.fatbin import FatbinScanner, GpuCode
from wheel_checks.model import Unavailable
from wheel_checks.sources.environment import Environment
from wheel_checks.sources.file_tree import FileTree
from wheel_checks.sources.regular_file import open_regular

AT_ONCE = 4  # files read in parallel
_CHUNK = 1024 * 1024  # bytes read at once of what is searched
_PIECE = 4096  # bytes read at a header; most payloads are larger


def read_installed_gpu_code(
    environment: Environment, distributions: Sequence[Distribution], elfs: Iterable[str]
) -> Mapping[str, GpuCodeFacts]:
    """The GPU code of each distribution that has some, by the folder of its metadata; "" for files of no distribution.

    ``elfs`` are the paths of the ELF files; .fatbin and .cubin files are found among the others. Members are named as
    in a wheel, relative to the folder of imports, those of no distribution by their absolute paths. ``bytes_read`` are
    bytes of the disk. All is exact; what cannot be read is Unavailable.
    """
    owners = {
        path: distribution
        for distribution in reversed(distributions)
        if isinstance(distribution.files, RecordedFiles)
        for path in distribution.files.owned
    }
    others = [
        f"{e.path}/{file}" for e in environment.entries for file in e.files if file.endswith((".fatbin", ".cubin"))
    ]
    paths = sorted({*elfs, *others})
    with ThreadPoolExecutor(AT_ONCE, "gpu-code") as pool:
        read = list(pool.map(lambda path: _read(environment.tree, path), paths))
    found: defaultdict[str, dict[str, LibraryGpuCode]] = defaultdict(dict)
    for path, library in zip(paths, read, strict=True):
        if library is not None:
            owner = owners.get(path)
            name = library.member.removeprefix(f"{owner.entry}/") if owner else library.member
            found[owner.folder if owner else ""][name] = LibraryGpuCode(name, library.code, library.bytes_read)
    names = {distribution.folder: distribution.name for distribution in distributions}
    return {
        folder: GpuCodeFacts(tuple(libraries.values()), project=names.get(folder, ""))
        for folder, libraries in found.items()
    }


def _read(tree: FileTree, path: str) -> LibraryGpuCode | None:
    """The GPU code of one file, None when it has none."""
    if path.endswith(".cubin"):
        return cubins_beside(path)
    spans: list[tuple[int, int]] | None = None
    as_data = False
    if not path.endswith(".fatbin"):
        elf, _ = read_elf_file(tree, path, {Part.SECTIONS})
        if not isinstance(elf, ElfFacts):
            return LibraryGpuCode(path, Unavailable(f"it cannot be read: {elf}"))
        spans = loaded_spans(elf.sections) if isinstance(elf.sections, Sections) else []
        if not spans:
            return None
        as_data = isinstance(elf.sections, Sections) and holds_code_as_data(elf.sections)
    try:
        with open_regular(tree.outside(path)) as file:
            reader = _Reader(file.fileno(), os.fstat(file.fileno()).st_size)
            code = reader.search() if as_data else reader.read([(0, reader.size)] if spans is None else spans)
    except FormatError as error:
        return LibraryGpuCode(path, Unavailable(f"it cannot be read: {error}"))
    except OSError as error:
        return LibraryGpuCode(path, Unavailable(f"it cannot be read: {error.strerror}"))
    return LibraryGpuCode(path, code, reader.bytes_read)


@dataclass(slots=True)
class _Reader:
    """An open file of ``size`` bytes."""

    file: int
    size: int
    bytes_read: int = field(default=0, init=False)

    def read(self, spans: Iterable[tuple[int, int]]) -> GpuCode:
        """The GPU code in the ``(offset, length)`` spans. Raises FormatError when one is no row of fat binaries."""
        code = GpuCode({}, "exact", {})
        left = min(self.size, LARGEST)  # no byte twice: sections that overlap could multiply the work
        for offset, length in spans:
            left -= length
            if left < 0:
                raise FormatError("its fat binaries have more bytes than are read", expected=f"at most {LARGEST:,}")
            scanner, position = FatbinScanner(), 0
            while position < length:
                piece = os.pread(self.file, min(_PIECE, length - position), offset + position)
                if not piece:
                    raise FormatError("the file became shorter while it was read")
                self.bytes_read += len(piece)
                scanner.feed(piece)
                position = scanner.skip(length)
            code += scanner.finish()
        return code

    def search(self) -> GpuCode:
        """The GPU code wherever it lies. Raises FormatError, see :func:`search_everywhere`."""
        if self.size > LARGEST:
            raise FormatError(f"it has {self.size:,} bytes", expected=f"at most {LARGEST:,}")
        return search_everywhere(self._chunks(), self.size)

    def _chunks(self) -> Iterator[bytes]:
        while self.bytes_read < self.size and (chunk := os.pread(self.file, _CHUNK, self.bytes_read)):
            self.bytes_read += len(chunk)
            yield chunk
