"""Every torch and triton that an import could find, without importing any."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wheel_checks.facts.host.software import ShadowModule
from wheel_checks.sources.file_tree import FileTree
from wheelproof.doctor.probes.installation.distributions import folder_names

NAMES = ("torch", "triton")


def find_modules(tree: FileTree, search_path: Iterable[str], working_directory: str) -> tuple[ShadowModule, ...]:
    """Every torch and triton that an import could find, in the order of the search: the first of a name is taken.

    Of a folder and a module beside it the folder is taken; a folder without ``__init__.py`` counts for nothing while
    there is any other.
    """
    folders = [(entry, entry or working_directory) for entry in search_path]
    found: dict[tuple[str, str], ShadowModule] = {}
    for entry, folder in folders:
        names = [name for name in folder_names(tree, folder) if name.partition(".")[0] in NAMES] if folder else []
        for module in NAMES:
            if path := _module(tree, folder, module, names):
                found.setdefault((module, tree.real(path)), ShadowModule(module, path, entry))
    return tuple(sorted(found.values(), key=lambda one: NAMES.index(one.name)))


def _module(tree: FileTree, folder: str, module: str, names: Sequence[str]) -> str:
    """The file that ``import module`` would run in this folder, "" for none (importlib's FileFinder)."""
    if module in names and tree.is_file(f"{folder}/{module}/__init__.py"):
        return f"{folder}/{module}/__init__.py"
    candidates = [name for name in names if name.startswith(f"{module}.") and name.endswith((".so", ".py", ".pyc"))]
    candidates.sort(key=lambda name: (not name.endswith(".so"), not name.endswith(".py")))
    return next((f"{folder}/{name}" for name in candidates if tree.is_file(f"{folder}/{name}")), "")
