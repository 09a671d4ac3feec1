"""Modules that were compiled against torch: does this torch define the symbols that they need of it?

The C++ names of a library change with its release and with the compiler's ABI, and METADATA shows neither. A module
that needs a name which is gone cannot be loaded.
"""

import functools
import mmap
import re
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

from wheel_checks.errors import FormatError
from wheel_checks.facts.elf.file import read_elf_file
from wheel_checks.facts.host.software import UnresolvedSymbol
from wheel_checks.formats.elf.bytes import WholeFile
from wheel_checks.formats.elf.dynamic import DynamicFacts
from wheel_checks.formats.elf.file import ElfFacts, Part
from wheel_checks.formats.elf.gnu_hash import ExportedSymbols
from wheel_checks.formats.elf.symbols import DynamicSymbols
from wheel_checks.sources.file_tree import FileTree
from wheel_checks.sources.regular_file import open_regular

MOST_MODULES = 64
MOST_SYMBOLS = 5_000  # of one module

# Names in the namespaces c10, at and torch, also after the prefixes of vtables, typeinfo and guards (Itanium C++ ABI).
_OF_TORCH = re.compile(r"_Z(?:T[VTIS]|GV)?N[rVK]*(?:3c10|2at|5torch)")
_TORCH_LIBRARY = re.compile(r"lib(?:torch|c10)\w*\.so")


def unresolved_symbols(
    tree: FileTree, torch_folder: str, modules: Iterable[tuple[str, str]], libraries: Mapping[str, str]
) -> tuple[UnresolvedSymbol, ...]:
    """The ``modules``, (path, distribution), that need symbols which no library of the torch in ``torch_folder``
    defines.

    ``libraries`` are those of other distributions, by file name: what a module needs of one of them is not torch's. A
    module that needs a whole library which this torch lacks is omitted, and nothing is said of a torch that is
    damaged.
    """
    folder = f"{torch_folder}/lib"
    own = [f"{folder}/{name}" for name in tree.names(folder) if _TORCH_LIBRARY.fullmatch(name)]
    found = []
    with ExitStack() as stack:

        @functools.cache
        def symbols_of(path: str) -> ExportedSymbols:
            with open_regular(tree.outside(path)) as file:  # what is mapped stays when the file is closed
                view = stack.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            return ExportedSymbols(WholeFile(view))

        try:
            offered = [symbols_of(path) for path in own]
            for path, distribution in list(modules)[:MOST_MODULES]:
                wanted, needed = _needs(tree, path)
                lacking = {name for name in needed if _TORCH_LIBRARY.fullmatch(name)} - {Path(one).name for one in own}
                if not wanted or lacking:
                    continue
                beside = [symbols_of(libraries[name]) for name in needed if name in libraries]
                missing = [name for name in wanted if not any(name in symbols for symbols in (*offered, *beside))]
                if missing:
                    found.append(UnresolvedSymbol(path, distribution, missing[0], len(missing)))
        except (FormatError, OSError, ValueError):  # ValueError: mmap of an empty file
            return ()
    return tuple(found)


def _needs(tree: FileTree, path: str) -> tuple[list[str], tuple[str, ...]]:
    """The symbols of torch's that a module must find elsewhere, and the libraries that it names."""
    elf, _ = read_elf_file(tree, path, {Part.DYNAMIC, Part.SYMBOLS})
    if not isinstance(elf, ElfFacts) or not isinstance(elf.symbols, DynamicSymbols):
        return [], ()
    wanted = [s.name for s in elf.symbols.undefined if s.binding == "GLOBAL" and _OF_TORCH.match(s.name)]
    needed = elf.dynamic.needed if isinstance(elf.dynamic, DynamicFacts) else ()
    return wanted[:MOST_SYMBOLS], needed
