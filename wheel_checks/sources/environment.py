"""Finds a Python environment and lists its folders, without running anything of it.

The effect of ``site`` and the path configuration of CPython is read from the files: pyvenv.cfg, the folders of the
scheme, Debian's dist-packages, the user's site-packages, and the plain lines of .pth files.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from wheel_checks.errors import FormatError, NotFoundError
from wheel_checks.formats.elf.bytes import BytesNeeded, WholeFile
from wheel_checks.formats.elf.header import HEAD, MAGIC, read_header
from wheel_checks.sources.file_tree import FileTree

EXPECTED = "an interpreter, a virtual environment, a folder made with --target, or the root folder of a container"
_LARGEST_CONFIG = 64 * 1024  # bytes of pyvenv.cfg and of a .pth file; real ones have a few lines
_LARGEST_PTH_LINES = 1_000
_VERSION = re.compile(r"python(3)\.(\d{1,2})(t?)")
_SUFFIX = re.compile(r"\.cpython-3(\d{1,2})(t?)-(\w+?)-linux-\w+\.so$")
_MACHINES = {"arm": "armv7l", "powerpc64le": "ppc64le", "i386": "i686"}  # the compiler's names that differ from uname's
_METADATA_FOLDERS = (".dist-info", ".egg-info")
_CONTAINER_PREFIXES = (
    "/opt/venv",
    "/venv",
    "/app/.venv",
    "/root/.venv",
    "/workspace/.venv",
    "/opt/conda",
    "/usr/local",
    "/usr",
)


@dataclass(frozen=True, slots=True)
class PathEntry:
    """A folder from which modules are imported. ``files`` are sizes in bytes by path relative to it; a folder that a
    .pth file names is not listed but for ``names``, its own entries. ``origin`` says why it is here.
    """

    path: str
    origin: str
    names: tuple[str, ...]
    files: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Environment:
    """A Python environment. Paths are those of ``tree``; ``entries`` are in the order in which imports search them.

    ``kind`` is "venv", "base" or "target" (a flat folder). ``interpreter`` may be ""; ``python`` is (major, minor) and
    ``machine`` as platform tags name it, None and "" if unknown. ``found`` says how it was chosen; ``notes`` are
    sentences about assumptions and omissions.
    """

    tree: FileTree
    path: str
    kind: str
    entries: tuple[PathEntry, ...]
    interpreter: str = ""
    python: tuple[int, int] | None = None
    patch: int | None = None
    free_threaded: bool = False
    machine: str = ""
    found: str = ""
    notes: tuple[str, ...] = ()


def find_environment(path: str = "", *, variables: Mapping[str, str], root: str = "/") -> Environment:
    """The environment at ``path``, in the file system below ``root``.

    Without ``path`` the active one (VIRTUAL_ENV, CONDA_PREFIX), else that of the python3 on PATH; in another root the
    first with torch, or with any package. Raises NotFoundError if none exists, SourceError when it cannot be read.
    """
    tree = FileTree(os.path.realpath(root))
    if not tree.is_this_machine:
        if not path:
            return _in_root(tree, variables)
        inside = path.removeprefix(root.rstrip("/")) if path.startswith(root.rstrip("/") + "/") else path
        return _at(tree, posixpath.normpath("/" + inside.lstrip("/")), variables, "asked for")
    if not path:
        return _active(tree, variables)
    absolute = posixpath.normpath(posixpath.join(os.getcwd(), path))  # noqa: PTH109  # text, as all paths here
    if _is_root_folder(tree, absolute):
        return _in_root(FileTree(os.path.realpath(absolute)), variables)
    return _at(tree, absolute, variables, "asked for")


def _active(tree: FileTree, variables: Mapping[str, str]) -> Environment:
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if variables.get(name, "").startswith("/"):  # a relative one means another environment in every folder
            return _at(tree, variables[name], variables, f"{name} names it")
    for folder in variables.get("PATH", "").split(os.pathsep):
        candidate = posixpath.join(folder, "python3")
        # Neither scripts in the current folder, nor scripts that start another, such as a version manager's.
        if folder.startswith("/") and _machine_of(tree, candidate):
            return _at(tree, candidate, variables, "its python3 is the first on PATH")
    raise NotFoundError("no active environment, and no python3 on PATH", expected=f"--python with {EXPECTED}")


def _is_root_folder(tree: FileTree, path: str) -> bool:
    """Whether a folder is a whole file system: it has /usr and /etc, and is not an environment itself."""
    return path != "/" and tree.is_folder(f"{path}/usr") and tree.is_folder(f"{path}/etc") and not _is_flat(tree, path)


def _in_root(tree: FileTree, variables: Mapping[str, str]) -> Environment:
    found: dict[str, Environment] = {}
    for prefix in _CONTAINER_PREFIXES:
        try:
            environment = _at(tree, prefix, variables, f"found in {tree.root}")
        except NotFoundError:
            continue
        if any(name.endswith(_METADATA_FOLDERS) for entry in environment.entries for name in entry.names):
            found[prefix] = environment
    if not found:
        raise NotFoundError(
            f"no Python environment was found below {tree.root}",
            expected=f"one of {', '.join(_CONTAINER_PREFIXES)}",
            hint="name it: --root FOLDER --python PATH",
        )
    with_torch = [e for e in found.values() if any("torch" in entry.names for entry in e.entries)]
    chosen = (with_torch or list(found.values()))[0]
    others = [prefix for prefix, environment in found.items() if environment is not chosen]
    note = (f"there are other environments: {', '.join(others)} (see --python)",) if others else ()
    return replace(chosen, notes=(*chosen.notes, *note))


def _at(tree: FileTree, path: str, variables: Mapping[str, str], found: str) -> Environment:
    if tree.is_file(path):
        return _of_prefix(tree, posixpath.dirname(posixpath.dirname(path)), path, variables, found)
    if not tree.is_folder(path):
        raise NotFoundError(f"there is no {path}", expected=EXPECTED)
    if tree.is_file(f"{path}/pyvenv.cfg") or _versions(tree, path):
        return _of_prefix(tree, path, "", variables, found)
    if _is_flat(tree, path):
        return _of_folder(tree, path, found)
    raise NotFoundError(f"the folder {path} is no Python environment", expected=EXPECTED)


def _is_flat(tree: FileTree, path: str) -> bool:
    return any(name.endswith(_METADATA_FOLDERS) for name in tree.names(path))


def _of_folder(tree: FileTree, path: str, found: str) -> Environment:
    """A flat folder, or the site-packages of an environment, which it then is."""
    prefix = posixpath.dirname(posixpath.dirname(posixpath.dirname(path)))
    if posixpath.basename(path) in ("site-packages", "dist-packages") and tree.is_file(f"{prefix}/pyvenv.cfg"):
        return _of_prefix(tree, prefix, "", {}, found)
    entries = tuple(_entries(tree, [(path, "the folder itself")]))
    python, free_threaded, machine = _from_file_names(entries)
    return Environment(
        tree, path, "target", entries, python=python, free_threaded=free_threaded, machine=machine, found=found
    )


def _of_prefix(tree: FileTree, prefix: str, interpreter: str, variables: Mapping[str, str], found: str) -> Environment:
    config = _read_config(tree, f"{prefix}/pyvenv.cfg")
    interpreter = interpreter or _interpreter(tree, prefix)
    if config is None and interpreter:  # a link to a base installation elsewhere
        real = tree.real(interpreter)
        prefix = posixpath.dirname(posixpath.dirname(real)) if not _versions(tree, prefix) else prefix
    python, patch, free_threaded = _version(tree, prefix, interpreter, config or {})
    folders: list[tuple[str, str]] = []
    notes: list[str] = []
    library = f"python{python[0]}.{python[1]}{'t' * free_threaded}" if python else ""
    shares_system = config is not None and config.get("include-system-site-packages", "").lower() == "true"
    home = variables.get("HOME", "")
    if library and home and tree.is_this_machine and (config is None or shares_system):
        folders.append((f"{home}/.local/lib/{library}/site-packages", "the user's site-packages"))
    folders += _scheme(prefix, library, "site-packages")
    if shares_system and config is not None and library:
        base = posixpath.dirname(config.get("home", ""))
        folders += _scheme(base, library, "site-packages of the base installation")
        notes.append(f"pyvenv.cfg includes the site-packages of {base}")
    entries = tuple(_entries(tree, folders))
    if not entries:
        raise NotFoundError(
            f"{prefix} has no site-packages", expected=f"{prefix}/lib/{library or 'python3.*'}/site-packages"
        )
    python_of_names, free_threaded_by_names, machine_of_names = _from_file_names(entries)
    return Environment(
        tree,
        prefix,
        "base" if config is None else "venv",
        entries,
        interpreter,
        python or python_of_names,
        patch,
        free_threaded if python else free_threaded_by_names,
        _machine_of(tree, interpreter) or machine_of_names,
        found,
        tuple(notes),
    )


def _scheme(prefix: str, library: str, origin: str) -> list[tuple[str, str]]:
    """The folders of a base installation or venv, in the order of sys.path (sysconfig; Debian's python3 patches it)."""
    if not library:
        return []
    folders = [f"{prefix}/lib/{library}/site-packages", f"{prefix}/lib64/{library}/site-packages"]
    if prefix == "/usr":
        folders = [
            f"/usr/local/lib/{library}/dist-packages",
            "/usr/lib/python3/dist-packages",
            f"/usr/lib/{library}/dist-packages",
            f"/usr/local/lib/{library}/site-packages",
            f"/usr/local/lib64/{library}/site-packages",
            *folders,
        ]
    return [(folder, origin) for folder in folders]


def _entries(tree: FileTree, folders: Iterable[tuple[str, str]]) -> Iterator[PathEntry]:
    """The folders that exist, each once, and after each those that its .pth files name."""
    seen: set[str] = set()
    for folder, origin in folders:
        real = tree.real(folder)
        if real in seen or not tree.is_folder(folder):
            continue
        seen.add(real)
        names = tree.names(folder)
        yield PathEntry(folder, origin, names, tree.walk(folder))
        for name in names:
            if not name.endswith(".pth") or name.startswith("."):
                continue
            for line in _plain_lines(tree, f"{folder}/{name}"):
                extra = posixpath.normpath(posixpath.join(folder, line))
                if tree.is_folder(extra) and tree.real(extra) not in seen:
                    seen.add(tree.real(extra))
                    yield PathEntry(extra, f"named by {name}", tree.names(extra))


def _plain_lines(tree: FileTree, path: str) -> list[str]:
    """The paths of a .pth file. Lines that ``site`` would execute (``import ...``) are passed over."""
    content = tree.read(path, _LARGEST_CONFIG) or b""
    lines = [line.strip() for line in content.decode("utf-8", "replace").splitlines()[:_LARGEST_PTH_LINES]]
    return [line for line in lines if line and not line.startswith(("#", "import ", "import\t")) and "\0" not in line]


def _read_config(tree: FileTree, path: str) -> dict[str, str] | None:
    content = tree.read(path, _LARGEST_CONFIG)
    if content is None:
        return None
    pairs = (line.partition("=") for line in content.decode("utf-8", "replace").splitlines())
    return {key.strip().lower(): value.strip() for key, equals, value in pairs if equals}


def _interpreter(tree: FileTree, prefix: str) -> str:
    names = ("python3", "python", *(name for name in tree.names(f"{prefix}/bin") if _VERSION.fullmatch(name)))
    return next((f"{prefix}/bin/{name}" for name in names if tree.is_file(f"{prefix}/bin/{name}")), "")


def _versions(tree: FileTree, prefix: str) -> list[tuple[int, int, bool]]:
    """The Pythons for which a prefix has folders, newest first."""
    names = {name for library in ("lib", "lib64") for name in tree.names(f"{prefix}/{library}")}
    found = [match for name in names if (match := _VERSION.fullmatch(name))]
    return sorted(((int(m[1]), int(m[2]), bool(m[3])) for m in found), reverse=True)


def _version(
    tree: FileTree, prefix: str, interpreter: str, config: Mapping[str, str]
) -> tuple[tuple[int, int] | None, int | None, bool]:
    """(major, minor), patch or None, whether free-threaded: of pyvenv.cfg, else the interpreter's name or folders."""
    versions = _versions(tree, prefix)
    match = re.match(r"3\.(\d{1,2})(?:\.(\d{1,3}))?", config.get("version_info", "") or config.get("version", ""))
    if match:
        python = (3, int(match[1]))
        return python, int(match[2]) if match[2] else None, any(version == (*python, True) for version in versions)
    name = _VERSION.fullmatch(posixpath.basename(tree.real(interpreter))) if interpreter else None
    if name:
        return (3, int(name[2])), None, bool(name[3])
    return (versions[0][:2], None, versions[0][2]) if versions else (None, None, False)


def _machine_of(tree: FileTree, interpreter: str) -> str:
    head = (tree.read(interpreter, HEAD) if interpreter else None) or b""
    try:
        return read_header(WholeFile(head))[0].machine if head.startswith(MAGIC) else ""
    except (FormatError, BytesNeeded):
        return ""


def _from_file_names(entries: Iterable[PathEntry]) -> tuple[tuple[int, int] | None, bool, str]:
    """Python and machine that most extension modules are for, by their names (PEP 3149)."""
    found = Counter(match.groups() for entry in entries for path in entry.files if (match := _SUFFIX.search(path)))
    if not found:
        return None, False, ""
    minor, threads, machine = found.most_common(1)[0][0]
    return (3, int(minor)), bool(threads), _MACHINES.get(machine, machine)
