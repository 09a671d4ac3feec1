"""The native files of one installed package, and what its Python source says of them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from packaging.utils import canonicalize_name

from wheel_checks.facts.installed.facts import Distribution, RecordedFiles
from wheel_checks.facts.links.decisive import Decisive, decisive_files
from wheel_checks.facts.links.linking import LaidOutWheel
from wheel_checks.facts.wheel.module_sources import collect_module_sources, joined, packages_of
from wheel_checks.formats.elf.file import ElfFacts
from wheel_checks.formats.wheel.python_source import MAX_SIZE
from wheel_checks.sources.environment import Environment
from wheel_checks.sources.file_tree import FileTree


class InstalledPackage:
    """One distribution, or a package that belongs to none: its libraries by absolute path with that in its folder, and
    what was read of its source. ``entry`` is the folder of imports that holds it.
    """

    def __init__(
        self, name: str, entry: str, owned: Iterable[str], files: Mapping[str, ElfFacts], tree: FileTree
    ) -> None:
        self.name = name
        self._tree = tree
        self._prefix = f"{entry}/"
        inside = [path for path in owned if path.startswith(self._prefix)]
        self.paths = {path: path.removeprefix(self._prefix) for path in inside if path in files}
        self._modules = dict.fromkeys((p.removeprefix(self._prefix) for p in inside if p.endswith(".py")), 1)
        laid_out = {name: files[path] for path, name in self.paths.items()}
        self.laid_out = LaidOutWheel(f"{name.replace('-', '_')}-0", laid_out, packages=packages_of(self._modules))
        self._is_read = False

    def absolute(self, path: str) -> str:
        """The absolute path of a file of the package."""
        return self._prefix + path

    def read(self, known: LaidOutWheel, roots: Iterable[str]) -> None:
        """Read the source that importing ``roots`` leads to, or for none its packages."""
        found = collect_module_sources(self._modules, self._read, known.files, tuple(roots))
        self.laid_out = replace(known, sources=joined(known.sources, found))

    def read_own(self) -> None:
        """Read the source that importing the package leads to, once."""
        if not self._is_read:
            self._is_read = True
            self.read(self.laid_out, ())

    def roles(self, interpreter: str) -> dict[str, Decisive]:
        """The role of each native file, by its absolute path, for this ``interpreter`` ("cp312", "" for any)."""
        found = decisive_files(self.laid_out.files, self.laid_out.sources, self.name, interpreter)
        return {self.absolute(path): role for path, role in found.items()}

    def _read(self, names: list[str]) -> dict[str, bytes]:
        read = ((name, self._tree.read(self.absolute(name), MAX_SIZE)) for name in names)
        return {name: data for name, data in read if data is not None}


def installed_packages(
    environment: Environment, distributions: Sequence[Distribution], files: Mapping[str, ElfFacts]
) -> list[InstalledPackage]:
    """Each distribution, then what has native ``files`` that no RECORD lists, by what is at the top of a folder."""
    tree = environment.tree
    owned: set[str] = set()
    found = []
    for one in distributions:
        if isinstance(one.files, RecordedFiles):
            owned |= one.files.owned.keys()
            found.append(InstalledPackage(one.name, one.entry, one.files.owned, files, tree))
    for entry in environment.entries:
        others: defaultdict[str, list[str]] = defaultdict(list)
        for file in entry.files:
            if f"{entry.path}/{file}" not in owned:
                others[file.partition("/")[0]].append(f"{entry.path}/{file}")
        for top, paths in others.items():
            package = InstalledPackage(canonicalize_name(top.partition(".")[0]), entry.path, paths, files, tree)
            found += [package] if package.paths else []
    return found
