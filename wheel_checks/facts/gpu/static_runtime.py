"""CUDA runtimes that are linked into libraries: no soname shows them, and they need a driver as the shared one does.

The texts of the runtime show that it is there, and its major version (``data/accelerators.toml``, ``static_runtime``).
"""

from __future__ import annotations

import re
from collections.abc import Collection

from wheel_checks.data import load
from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.archive.inflation import unpackable
from wheel_checks.facts.elf.native_members import is_library
from wheel_checks.facts.gpu.first_use import search_member
from wheel_checks.facts.gpu.reading import data_offsets
from wheel_checks.facts.gpu.toolkit import StaticRuntime
from wheel_checks.model import Unavailable
from wheel_checks.sources.byte_source import ByteSource


def read_static_runtimes(source: ByteSource, archive: Archive, shared: Collection[str]) -> tuple[StaticRuntime, ...]:
    """The runtimes in the libraries of a wheel but those that need the ``shared`` one. Raises SourceError."""
    table = load("accelerators")["static_runtime"]
    texts = {row["text"].encode(): row["cuda"] for row in table["text"]}
    pattern = re.compile(b"|".join(map(re.escape, (table["sign"].encode(), *texts))))
    libraries = [m for m in unpackable(archive.members) if is_library(m.name) and m.name not in shared]
    found = []
    for member, start in zip(libraries, data_offsets(source, archive, libraries), strict=True):
        seen = set[bytes]() if isinstance(start, Unavailable) else search_member(source, member, start, pattern)
        if table["sign"].encode() in seen:
            majors = [cuda for text, cuda in texts.items() if text in seen]
            found.append(StaticRuntime(member.name, max(majors, default=table["oldest"])))
    return tuple(found)
