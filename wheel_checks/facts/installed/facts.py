"""Everything that the rules may know about an installed environment and its distributions."""

from collections.abc import Mapping
from dataclasses import dataclass

from packaging.requirements import Requirement

from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.gpu.code import GpuCodeFacts
from wheel_checks.facts.installed.startup import EnvironmentStartup
from wheel_checks.facts.links.closure import Closure
from wheel_checks.facts.links.symbol_versions import LackingVersions
from wheel_checks.facts.links.unresolved import SymbolFacts
from wheel_checks.formats.wheel.core_metadata import CoreMetadata
from wheel_checks.formats.wheel.record import Record
from wheel_checks.model import Unavailable
from wheel_checks.sources.environment import Environment
from wheel_checks.targets.target import Target

_NO_SYMBOLS = Unavailable("no symbol was looked up: the libraries were not read")
_NO_STARTUP = Unavailable("start-up files were not read")
_NO_GPU_CODE = Unavailable("GPU code was not read", "--gpu GB200, or --depth gpu")


@dataclass(frozen=True, slots=True)
class WrongFile:
    """A file that is not what RECORD says: its absolute path, and both values, sizes in bytes or ``sha256=...``."""

    path: str
    recorded: str
    actual: str


@dataclass(frozen=True, slots=True)
class RecordedFiles:
    """RECORD against the disk. ``owned`` are the absolute paths with what RECORD says of their content ("" when it says
    nothing), ``missing`` those that are not present; ``digests`` shows the wrong ones among those that were compared.
    """

    owned: Mapping[str, str]
    missing: tuple[str, ...]
    sizes: tuple[WrongFile, ...]
    digests: tuple[WrongFile, ...] | Unavailable


@dataclass(frozen=True, slots=True)
class UnmetRequirement:
    """A requirement that is active in the environment and not met. ``found`` is the installed version, "" if none."""

    requirement: Requirement
    found: str


@dataclass(frozen=True, slots=True)
class Distribution:
    """One installed distribution. ``name`` is normalized; ``folder`` is the absolute path of its metadata.

    ``installer`` is INSTALLER ("uv", "pip", "conda", "debian", ""); ``requested`` whether REQUESTED is there;
    ``editable`` whether direct_url.json says so, ``url`` where it came from instead of an index.
    """

    name: str
    version: str
    entry: str
    folder: str
    installer: str
    requested: bool
    url: str
    editable: bool
    metadata: CoreMetadata | Unavailable
    record: Record | Unavailable
    files: RecordedFiles | Unavailable
    shadowed_by: str = ""

    @property
    def dist_info(self) -> str:
        """The name of the metadata folder: ``torch-2.11.0.dist-info``."""
        return self.folder.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class SharedFile:
    """A file that several distributions install, with different content."""

    path: str
    owners: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WrongElf:
    """A library that the loader cannot take: for another machine, or not readable as ELF."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class PackageSymbols:
    """What came of looking up the symbols of a package: a distribution, or what is in a folder that none owns."""

    name: str
    facts: SymbolFacts


@dataclass(frozen=True, slots=True)
class InstalledEnvironment:
    """One environment."""

    environment: Environment  # its folders
    target: Target | Unavailable  # that markers are evaluated for
    distributions: tuple[Distribution, ...]  # in order of importance: torch, what torch requires, others by name
    leftovers: tuple[str, ...]  # ``~`` entries that pip leaves when it is interrupted: absolute paths
    shared: tuple[SharedFile, ...]  # files of several distributions
    unowned: tuple[str, ...]  # files of accelerator packages that no RECORD lists: absolute paths
    unmet: Mapping[str, tuple[UnmetRequirement, ...]] | Unavailable  # by the name of the distribution that requires
    closure: Closure | Unavailable  # libraries and what they need
    wrong_elfs: tuple[WrongElf, ...]  # libraries for another machine
    accelerator: AcceleratorFacts | Unavailable  # the build of torch
    lacking_versions: tuple[LackingVersions, ...] = ()  # libraries of the closure without the needed symbol versions
    undecided: frozenset[str] = frozenset()  # files that lack a library, if it is unknown whether an import loads them
    # of each package with libraries; paths are absolute
    symbols: tuple[PackageSymbols, ...] | Unavailable = _NO_SYMBOLS
    # by folder of the distribution; "" for libraries of none
    gpu_code: Mapping[str, GpuCodeFacts] | Unavailable = _NO_GPU_CODE
    startup: EnvironmentStartup | Unavailable = _NO_STARTUP  # what runs when Python starts
    recognised: frozenset[str] = frozenset()  # paths of files that a guard of torch wrote
    bytes_read: int = 0  # metadata, ELF structures, headers of GPU code, and what was hashed
    seconds: float = 0.0  # spent reading

    def owner_of(self, path: str) -> Distribution | None:
        """The distribution whose RECORD lists this absolute path; None when none does."""
        recorded = (d for d in self.distributions if isinstance(d.files, RecordedFiles) and path in d.files.owned)
        return next(recorded, None)

    def named(self, name: str) -> Distribution | None:
        """The distribution of this normalized name that imports find."""
        return next((d for d in self.distributions if d.name == name and not d.shadowed_by), None)

    def relative(self, path: str) -> str:
        """``path`` within the folder of imports that holds it, for people."""
        entries = (entry.path for entry in self.environment.entries if path.startswith(f"{entry.path}/"))
        return path.removeprefix(f"{max(entries, key=len, default='')}/")


@dataclass(frozen=True, slots=True)
class InstalledDistribution:
    """One distribution next to its environment: what the rules of kind "distribution" judge."""

    distribution: Distribution
    inside: InstalledEnvironment

    @property
    def gpu_code(self) -> GpuCodeFacts | Unavailable:
        """The GPU code of the distribution's files, as far as RECORD says which these are."""
        code = self.inside.gpu_code
        if isinstance(code, Unavailable):
            return code
        if isinstance(self.distribution.files, Unavailable):
            return self.distribution.files
        return code.get(self.distribution.folder, GpuCodeFacts(()))
