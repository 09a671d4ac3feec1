"""The Python environment under diagnosis, and the libraries around it."""

from collections.abc import Mapping
from dataclasses import dataclass

DANGLING, NOT_EXECUTABLE, TOO_OLD = "it is a dangling link", "it has no executable bit", "it is older than Python 3.8"


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The target interpreter, as a program that uses the standard library alone reports it from inside."""

    path: str  # of what was started; "" if a log does not name it
    found: str  # why this one ("VIRTUAL_ENV names it")
    version: str  # such as 3.12.3
    implementation: str  # such as cpython
    prefix: str  # sys.prefix
    base_prefix: str  # sys.base_prefix
    purelib: str  # site-packages
    platlib: str  # site-packages of compiled modules
    search_path: tuple[str, ...]  # sys.path
    working_directory: str  # the current folder
    include: str  # where Python.h belongs
    python_h: bool  # whether Python.h is present
    machine: str  # ELF machine of its binary
    libc: tuple[str, str]  # its C library and the version
    tags: tuple[str, ...] = ()  # wheel tags it takes, best first (the first forty)
    free_threaded: bool = False  # as 3.13t
    user_site: str = ""  # the user's site-packages, if they are searched
    externally_managed: bool = False  # as defined by PEP 668
    has_pip: bool = True  # False in the environments that uv makes
    fault: str = ""  # what happened when it was started; if not "", the rest was read from its files
    # of the working directory, with names of modules of the standard library, if that folder is searched
    local_modules: tuple[str, ...] = ()
    obstacle: str = ""  # DANGLING, NOT_EXECUTABLE or TOO_OLD, if that is the fault

    @property
    def release(self) -> str:
        """Such as "3.12", and "3.13t" of a free-threaded build: what `uv venv --python` takes."""
        return ".".join(self.version.split(".")[:2]) + "t" * self.free_threaded

    @property
    def is_virtual(self) -> bool:
        """True for a virtual environment."""
        return self.prefix != self.base_prefix


@dataclass(frozen=True, slots=True)
class Package:
    """An installed distribution. ``name`` is normalized; ``installed`` seconds since 1970 of its metadata (0: unknown).

    ``requires`` are its Requires-Dist texts that matter to torch (torch itself, nvidia-*, triton, cuda-*), markers
    included. ``build`` is the accelerator that its version.py or local version names ("cu130", "cpu", "rocm6.4", "").
    """

    name: str
    version: str
    folder: str
    installer: str = ""
    requested: bool = False
    url: str = ""
    installed: float = 0.0
    requires: tuple[str, ...] = ()
    build: str = ""


@dataclass(frozen=True, slots=True)
class TorchFiles:
    """A torch, from its files. ``version`` is version.py's ("2.11.0+cu130"), ``cuda``, ``hip``, ``xpu`` too ("" for
    None).

    ``architectures`` is the list compiled into libtorch_python.so or libtorch_cuda.so ("sm_80", "compute_120"), empty
    if none exists. ``has_cuda_library`` says whether libtorch_cuda.so is there; ``triton`` is the requirement that
    its metadata has for this host ("triton==3.6.0", "" if none). ``rpath`` are the folders in which the loader
    looks for the libraries that torch's own need, as these name them.
    """

    folder: str
    version: str
    cuda: str
    hip: str
    xpu: str
    architectures: tuple[str, ...]
    has_cuda_library: bool
    triton: str = ""
    rpath: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileFinding:
    """What the rules for installed wheels (WHL701 and up) found: the rule, and what it says, as facts for the
    doctor.

    ``subject`` is the normalized name of a distribution, or the environment's folder; ``version`` is that of the
    distribution. ``paths`` are the files that it
    is about, libraries first, at most fifty of ``count``; ``distributions`` those that share, own or lack them.
    """

    rule: str
    subject: str
    severity: str
    message: str
    evidence: tuple[tuple[str, str], ...] = ()
    version: str = ""
    paths: tuple[str, ...] = ()
    distributions: tuple[str, ...] = ()
    count: int = 0


@dataclass(frozen=True, slots=True)
class MissingLibrary:
    """A library that the loader does not find. ``needed_by`` are the files that name it, ``user`` is the distribution
    of the first of them, ``owner`` the one whose RECORD lists such a file ("" if none); ``searched`` are the paths
    tried.
    """

    soname: str
    needed_by: tuple[str, ...]
    user: str = ""
    owner: str = ""
    searched: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnresolvedSymbol:
    """A symbol of torch's that a module compiled against torch needs, and that no library of this torch defines.

    ``path`` is the module, ``distribution`` whose it is; ``count`` how many there are, of which ``symbol`` is the
    first.
    """

    path: str
    distribution: str
    symbol: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class ExtensionCode:
    """The GPU code of a distribution that is compiled against torch: ``labels`` of its main library, ``member``
    ("sm_80", "compute_90"), as their file shows.
    """

    distribution: str
    member: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShadowModule:
    """A module that an import finds: ``path``, the entry of sys.path that has it, in the order of the search."""

    name: str
    path: str
    entry: str


@dataclass(frozen=True, slots=True)
class Installed:
    """What is installed. ``packages`` are those that matter (torch, its companions, nvidia-*, triton, who requires
    torch).

    ``modules`` are all torch and triton that the search path holds, the one that wins first. ``findings`` come from the
    rules for installed wheels. ``conda`` are the build strings of conda's torch packages. ``missing`` are needed
    libraries that are nowhere, ``unresolved`` the modules that were compiled against another torch. ``extension_code``
    is the GPU code of what was compiled against torch.
    """

    packages: tuple[Package, ...]
    torch: TorchFiles | None
    modules: tuple[ShadowModule, ...] = ()
    findings: tuple[FileFinding, ...] = ()
    conda: Mapping[str, str] | None = None
    missing: tuple[MissingLibrary, ...] = ()
    unresolved: tuple[UnresolvedSymbol, ...] = ()
    extension_code: tuple[ExtensionCode, ...] = ()

    def named(self, name: str) -> Package | None:
        """The first distribution of this normalized name."""
        return next((package for package in self.packages if package.name == name), None)


@dataclass(frozen=True, slots=True)
class CudaLibrary:
    """A libcuda.so.1, libnvidia-ml.so.1 or part of cuDNN on disk: its real file name's version ("" when it has none).

    ``kind`` is driver, stub, compat or unknown; ``where`` says how it is found: LD_LIBRARY_PATH, ld.so.cache, known
    folder.
    """

    name: str
    path: str
    version: str
    kind: str
    where: str
    size: int


@dataclass(frozen=True, slots=True)
class Loader:
    """What the dynamic loader does, in its own words (``ldd`` of torch's libraries with the user's variables).

    ``resolved`` maps a soname to the file that is taken, "" for one that is not found. ``error`` is what the loader
    said when it gave up. ``cuda_libraries`` are all libcuda and libnvidia-ml that exist; ``has_ldconfig`` whether
    /sbin/ldconfig is there; ``cached_libcuda`` whether ld.so.cache lists libcuda.so.1. ``preload_file`` is the content
    of /etc/ld.so.preload. ``cudnn`` are the libraries that the cuDNN next to torch opens by name, each as the file that
    it gets: kind "bundled" for its own, "other" for one from elsewhere.
    """

    resolved: Mapping[str, str]
    cuda_libraries: tuple[CudaLibrary, ...]
    has_ldconfig: bool
    cached_libcuda: bool
    preload_file: str = ""
    error: str = ""
    cudnn: tuple[CudaLibrary, ...] = ()


@dataclass(frozen=True, slots=True)
class Ptxas:
    """A ptxas that Triton may use: ``version`` "12.9.86" ("" when it does not run, ``error`` says why).

    ``role`` is the name of the binary (ptxas, ptxas-blackwell), or of the variable that names another one in its place
    (TRITON_PTXAS_PATH). ``knows`` are the SMs that it accepts by its own --help ("sm_90a"), oldest first.
    """

    path: str
    role: str
    version: str
    knows: tuple[str, ...]
    error: str = ""


@dataclass(frozen=True, slots=True)
class TritonFacts:
    """Triton, and what it needs at run time.

    ``compiler`` is the C compiler that it would take ("" if none), ``compiler_fault`` what is wrong with CC.
    ``blackwell_from`` is the SM number from which it uses ptxas-blackwell (90 or 100; 0: it has none; -1: its
    source does not say). ``cache`` is the folder of its cache, ``cache_error`` why it cannot be written ("" when it
    can), ``cache_type`` its file system. ``cached_targets`` are the architectures
    of what the cache holds.
    """

    version: str
    folder: str
    owners: tuple[str, ...]
    ptxas: tuple[Ptxas, ...]
    blackwell_from: int
    compiler: str
    compiler_fault: str
    cache: str
    cache_error: str
    cache_type: str = ""
    cache_noexec: bool = False
    temporary_noexec: bool = False
    cached_targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IndexSetting:
    """A setting of pip, uv or conda that says where packages come from: its value, and the file and line, or
    variable.
    """

    tool: str
    name: str
    value: str
    source: str
