"""Reads the facts of an installed environment."""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from packaging.utils import canonicalize_name

from wheel_checks.errors import FormatError
from wheel_checks.facts.accelerator.content import PARTS, content_of_files
from wheel_checks.facts.accelerator.verdict import AcceleratorFacts, judge
from wheel_checks.facts.elf.file import read_elf_file
from wheel_checks.facts.elf.native_members import is_library
from wheel_checks.facts.installed.closure import (
    installed_closure,
    loader_of,
    of_other_machines,
    read_elfs,
)
from wheel_checks.facts.installed.facts import (
    Distribution,
    InstalledEnvironment,
    PackageSymbols,
    RecordedFiles,
    UnmetRequirement,
)
from wheel_checks.facts.installed.gpu import read_installed_gpu_code
from wheel_checks.facts.installed.imports import as_imported
from wheel_checks.facts.installed.package import installed_packages
from wheel_checks.facts.installed.record import compare, read_record, shared_files, unowned_files, wrong_digests
from wheel_checks.facts.installed.requirements import Active, active_in, required_by, unmet
from wheel_checks.facts.installed.startup import read_startup
from wheel_checks.facts.installed.symbols import Given, installed_symbols
from wheel_checks.facts.installed.versions import with_wrong_versions
from wheel_checks.facts.links.symbol_versions import lacking_versions
from wheel_checks.formats.wheel.core_metadata import MAX_SIZE as LARGEST_METADATA
from wheel_checks.formats.wheel.core_metadata import CoreMetadata, parse_core_metadata
from wheel_checks.formats.wheel.record import Record, RecordRow
from wheel_checks.formats.wheel.version_file import MAX_SIZE as LARGEST_VERSION_FILE
from wheel_checks.formats.wheel.version_file import parse_version_file
from wheel_checks.model import Unavailable
from wheel_checks.sources.environment import Environment, PathEntry
from wheel_checks.sources.file_tree import FileTree
from wheel_checks.targets.target import DEFAULT_GLIBC, OLDEST_GLIBC, Target

_FIRST = "torch"
_SMALL = 64 * 1024  # bytes of INSTALLER and direct_url.json
_WITHOUT_RECORD = ("debian", "dpkg", "rpm", "conda", "")


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read: ``full`` hashes every file, ``library_path`` is LD_LIBRARY_PATH, ``host_machine`` this host's
    CPU as platform tags name it; ``gpu_code`` also reads the GPU code of libraries; ``advance`` gets the bytes of
    each file that was hashed, from any thread.
    """

    full: bool = False
    library_path: Sequence[str] = ()
    host_machine: str = ""
    gpu_code: bool = False
    advance: Callable[[int], None] = lambda _: None


def read_installed(environment: Environment, reading: Reading) -> InstalledEnvironment:
    """The facts of an environment; nothing of it is run. Raises SourceError when a folder or file cannot be read."""
    started = time.perf_counter()
    read = [_read_distribution(environment, entry, name) for entry, name in _metadata_folders(environment)]
    found = _without_shadowed([distribution for distribution, _, _ in read])
    hashed = 0
    if reading.full:
        found, hashed = _with_digests(environment, found, [(entry, rows) for _, entry, rows in read], reading)
    target = _target(environment)
    active: Active = {} if isinstance(target, Unavailable) else active_in(found, target.markers())
    first = list(required_by(_FIRST, active))
    distributions = tuple(
        sorted(found, key=lambda d: (first.index(d.name) if d.name in first else len(first), d.name, d.folder))
    )
    failing = target if isinstance(target, Unavailable) else unmet(active, distributions)
    facts = InstalledEnvironment(
        environment=environment,
        target=target,
        distributions=distributions,
        leftovers=_leftovers(environment),
        shared=shared_files(distributions),
        unowned=_unowned(environment, distributions),
        unmet=failing,
        closure=Unavailable("the libraries were not read"),
        wrong_elfs=(),
        accelerator=_accelerator(environment, distributions, target),
        startup=read_startup(environment),
        bytes_read=hashed + sum(size for entry in environment.entries for size in _metadata_sizes(entry)),
    )
    facts = _with_closure(facts, active, {} if isinstance(failing, Unavailable) else failing, reading)
    return replace(facts, seconds=time.perf_counter() - started)


def _metadata_folders(environment: Environment) -> list[tuple[PathEntry, str]]:
    suffixes = (".dist-info", ".egg-info")
    return [(e, name) for e in environment.entries for name in e.names if name.endswith(suffixes) and name[0] != "~"]


def _leftovers(environment: Environment) -> tuple[str, ...]:
    """What pip renames before it removes it, and leaves when it is interrupted: ``torch`` becomes ``~orch``."""
    return tuple(f"{entry.path}/{name}" for entry in environment.entries for name in entry.names if name[0] == "~")


def _metadata_sizes(entry: PathEntry) -> list[int]:
    return [size for path, size in entry.files.items() if ".dist-info/" in path and path.count("/") == 1]


def _read_distribution(
    environment: Environment, entry: PathEntry, folder_name: str
) -> tuple[Distribution, PathEntry, list[RecordRow]]:
    """A distribution, and the rows of its RECORD that can be compared by hash."""
    tree, folder = environment.tree, f"{entry.path}/{folder_name}"
    metadata = _metadata(tree, folder)
    name, _, version = folder_name.rpartition(".")[0].partition("-")
    if isinstance(metadata, CoreMetadata):
        name, version = metadata.name or name, metadata.version or version
    installer = _text(tree, f"{folder}/INSTALLER").strip().lower()
    record = _record(tree, folder, installer)
    files: RecordedFiles | Unavailable = Unavailable("RECORD is missing, so nothing can be compared")
    rows: list[RecordRow] = []
    if isinstance(record, Record):
        files, rows = compare(environment, entry, record)
    url, editable = _origin(tree, folder)
    distribution = Distribution(
        name=canonicalize_name(name),
        version=version,
        entry=entry.path,
        folder=folder,
        installer=installer,
        requested=tree.is_file(f"{folder}/REQUESTED"),
        url=url,
        editable=editable,
        metadata=metadata,
        record=record,
        files=files,
    )
    return distribution, entry, rows


def _metadata(tree: FileTree, folder: str) -> CoreMetadata | Unavailable:
    candidates = [folder] if tree.is_file(folder) else [f"{folder}/METADATA", f"{folder}/PKG-INFO"]
    for path in candidates:
        content = tree.read(path, LARGEST_METADATA)
        if content is not None:
            try:
                return parse_core_metadata(content)
            except FormatError as error:
                return Unavailable(f"{path.rpartition('/')[2]} cannot be read: {error}")
    return Unavailable(f"{folder.rpartition('/')[2]} has no METADATA")


def _record(tree: FileTree, folder: str, installer: str) -> Record | Unavailable:
    try:
        record = read_record(tree, folder)
    except FormatError as error:
        return Unavailable(f"RECORD cannot be read: {error}")
    if isinstance(record, Unavailable) and (folder.endswith(".egg-info") or installer in _WITHOUT_RECORD):
        return Unavailable(record.reason, "packages of the operating system and eggs have none")
    return record


def _text(tree: FileTree, path: str) -> str:
    return (tree.read(path, _SMALL) or b"").decode("utf-8", "replace")


def _origin(tree: FileTree, folder: str) -> tuple[str, bool]:
    """The URL and whether it is editable, of direct_url.json (direct URL origin specification)."""
    try:
        content = json.loads(_text(tree, f"{folder}/direct_url.json") or "{}")
    except (ValueError, RecursionError):
        return "", False
    if not isinstance(content, dict):
        return "", False
    info = content.get("dir_info")
    return str(content.get("url", "")), isinstance(info, dict) and info.get("editable") is True


def _without_shadowed(distributions: Sequence[Distribution]) -> list[Distribution]:
    """Mark those that an earlier folder hides. Two in one folder are another fault: neither hides the other."""
    first: dict[str, str] = {}
    marked = []
    for distribution in distributions:
        entry = first.setdefault(distribution.name, distribution.entry)
        marked.append(distribution if entry == distribution.entry else replace(distribution, shadowed_by=entry))
    return marked


def _with_digests(
    environment: Environment,
    found: Sequence[Distribution],
    read: Sequence[tuple[PathEntry, list[RecordRow]]],
    reading: Reading,
) -> tuple[list[Distribution], int]:
    compared = [(d, entry, rows) for d, (entry, rows) in zip(found, read, strict=True)]
    digests = wrong_digests(environment, compared, reading.advance)
    with_digests = [
        replace(d, files=replace(d.files, digests=wrong)) if isinstance(d.files, RecordedFiles) else d
        for d, wrong in zip(found, digests, strict=True)
    ]
    return with_digests, sum(row.size or 0 for d, _, rows in compared if d.installer != "conda" for row in rows)


def _target(environment: Environment) -> Target | Unavailable:
    if environment.python is None:
        return Unavailable("the environment's Python is unknown", "--python names an interpreter")
    if environment.machine not in OLDEST_GLIBC:
        machine = environment.machine or "an unknown machine"
        return Unavailable(f"the environment is for {machine}", f"markers are evaluated for {', '.join(OLDEST_GLIBC)}")
    return Target(environment.python, environment.machine, DEFAULT_GLIBC, environment.free_threaded, environment.patch)


def _unowned(environment: Environment, distributions: Sequence[Distribution]) -> tuple[str, ...]:
    """Nothing while a RECORD is missing that might list the files."""
    if any(isinstance(d.files, Unavailable) and not d.editable for d in distributions):
        return ()
    owned = {path: None for d in distributions if isinstance(d.files, RecordedFiles) for path in d.files.owned}
    return unowned_files(environment, owned)


def _accelerator(
    environment: Environment, distributions: Sequence[Distribution], target: Target | Unavailable
) -> AcceleratorFacts | Unavailable:
    torch = next((d for d in distributions if d.name == _FIRST and not d.shadowed_by), None)
    if torch is None:
        return Unavailable("torch is not installed")
    if isinstance(target, Unavailable):
        return target
    prefix = f"{torch.entry}/"
    entry = next(entry for entry in environment.entries if entry.path == torch.entry)
    owned = torch.files.owned if isinstance(torch.files, RecordedFiles) else {prefix + file: "" for file in entry.files}
    there = [path.removeprefix(prefix) for path in owned if path.removeprefix(prefix) in entry.files]
    content = environment.tree.read(f"{prefix}torch/version.py", LARGEST_VERSION_FILE)
    versions = []
    if content is not None:
        try:
            versions = [parse_version_file("torch/version.py", content)]
        except FormatError as error:
            return Unavailable(str(error))
    requirements = torch.metadata.requirements if isinstance(torch.metadata, CoreMetadata) else ()
    here = target.markers()
    elsewhere = [here | {"platform_machine": machine} for machine in OLDEST_GLIBC if machine != target.machine]
    libraries = {path: read_elf_file(environment.tree, prefix + path, PARTS)[0] for path in there if is_library(path)}
    return judge(there, versions, requirements, here, elsewhere, content_of_files(libraries))


def _with_closure(
    facts: InstalledEnvironment,
    active: Active,
    failing: Mapping[str, tuple[UnmetRequirement, ...]],
    reading: Reading,
) -> InstalledEnvironment:
    elfs = read_elfs(facts.environment)
    facts = replace(facts, wrong_elfs=elfs.wrong, bytes_read=facts.bytes_read + elfs.bytes_read)
    if reading.gpu_code:
        facts = _with_gpu_code(facts, elfs.files)
    loader = loader_of(
        facts.environment, elfs.files, host_machine=reading.host_machine, library_path=reading.library_path
    )
    if isinstance(loader, Unavailable):
        return replace(facts, closure=loader)
    target = facts.target
    packages = installed_packages(facts.environment, facts.distributions, elfs.files)
    given = Given(facts.environment.tree, elfs.files, loader)
    try:
        closure = installed_closure(elfs.files, loader)
        imports = as_imported(closure, packages, "" if isinstance(target, Unavailable) else target.interpreter)
        symbols: tuple[PackageSymbols, ...] | Unavailable = (
            target
            if isinstance(target, Unavailable)
            else installed_symbols(packages, imports, given, target, torch=_version_of_torch(facts))
        )
    except FormatError as error:
        return replace(facts, closure=Unavailable(str(error)))
    marked = with_wrong_versions(imports.closure, elfs.files, facts.distributions, active, failing)
    others = of_other_machines(imports.closure, elfs.files, loader.machine)
    system = loader.system
    lacking = lacking_versions(
        marked.needs, lambda path: elfs.files.get(path) or (system.read(path) if system else None)
    )
    facts = replace(facts, undecided=imports.undecided, symbols=symbols)
    facts = replace(facts, bytes_read=facts.bytes_read + given.bytes_read)
    return replace(facts, closure=marked, wrong_elfs=(*elfs.wrong, *others), lacking_versions=tuple(lacking))


def _version_of_torch(facts: InstalledEnvironment) -> str:
    if isinstance(facts.accelerator, AcceleratorFacts) and facts.accelerator.local_version:
        return facts.accelerator.local_version
    torch = facts.named(_FIRST)
    return torch.version if torch else ""


def _with_gpu_code(facts: InstalledEnvironment, elfs: Iterable[str]) -> InstalledEnvironment:
    code = read_installed_gpu_code(facts.environment, facts.distributions, elfs)
    read = sum(library.bytes_read for found in code.values() for library in found.libraries)
    return replace(facts, gpu_code=code, bytes_read=facts.bytes_read + read)
