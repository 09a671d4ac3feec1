"""Reads an ELF file of this host: only the parts that are requested, at their places."""

import os
import re
from collections.abc import Collection, Sequence

from wheel_checks.errors import FormatError
from wheel_checks.formats.elf.file import ElfFacts, Part, read_elf_by_ranges
from wheel_checks.formats.elf.header import MAGIC
from wheel_checks.sources.file_tree import FileTree
from wheel_checks.sources.regular_file import open_regular

_PARTS = frozenset({Part.DYNAMIC, Part.VERSIONS})
_LIBRARY = re.compile(r"\.so(?:\.\d+)*$")


def read_elf_file(tree: FileTree, path: str, parts: Collection[Part] = _PARTS) -> tuple[ElfFacts | str, int]:
    """The facts, or why there aren't any ("" for a file that is not an ELF), and how many bytes were read."""
    read = 0

    def read_many(ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        nonlocal read
        pieces = [os.pread(file.fileno(), length, offset) for offset, length in ranges]
        read += sum(map(len, pieces))
        if any(len(piece) != length for piece, (_, length) in zip(pieces, ranges, strict=True)):
            raise FormatError("the file was truncated while it was read")
        return pieces

    try:
        with open_regular(tree.outside(path)) as file:
            size = os.fstat(file.fileno()).st_size
            if os.pread(file.fileno(), len(MAGIC), 0) != MAGIC:
                # A linker script, or a placeholder of a few bytes, is not a library and is not meant to be.
                return ("it is empty" if not size and _LIBRARY.search(path) else ""), 0
            return read_elf_by_ranges(size, read_many, parts), read
    except FormatError as error:
        return str(error), read
    except OSError as error:
        return f"it cannot be read: {error.strerror}", read
