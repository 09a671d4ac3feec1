"""DOC801 to DOC818: Triton, and its requirements."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.rules.case import NOTE, Case
from tests.support.hosts import (
    SITE_PACKAGES,
    grace,
    healthy,
    kernel_fails,
    replaced,
    with_cpu_torch,
    with_torch,
    with_variables,
    without_gpu,
)
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.probes import CudaGpu, CudaProbe
from wheel_checks.facts.host.software import CudaLibrary, Ptxas
from wheel_checks.model import Unavailable

BIN = f"{SITE_PACKAGES}/triton/backends/nvidia/bin"
NO_COMPILER = "RuntimeError: Failed to find C compiler. Please specify via CC environment variable"
PYTHON_H = "/tmp/tmp1/cuda_utils.c:9:10: fatal error: Python.h: No such file or directory"
NOT_CACHED = "AssertionError: libcuda.so cannot found!"
NO_LDCONFIG = "FileNotFoundError: [Errno 2] No such file or directory: '/sbin/ldconfig'"
NOT_DEFINED = "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'"
INVALID = "RuntimeError: Triton Error [CUDA]: device kernel image is invalid"
DENIED = "PermissionError: [Errno 13] Permission denied: '/.triton'"
STALE = "OSError: [Errno 116] Stale file handle"
SEGMENT = "ImportError: cuda_utils.so: failed to map segment from shared object"
MISSING = "ModuleNotFoundError: No module named 'triton'"
ATTRS = "ImportError: cannot import name 'AttrsDescriptor' from 'triton.backends.compiler'"
LCUDA = "/usr/bin/ld: cannot find -lcuda: No such file or directory"
UNRELATED = "torch.OutOfMemoryError: CUDA out of memory."


def fails(error: str, facts: HostFacts | None = None, **triton: Any) -> HostFacts:
    """A kernel that fails with these words, and a Triton with these fields."""
    return works(kernel_fails(facts or healthy(), error), **triton)


def works(facts: HostFacts | None = None, **triton: Any) -> HostFacts:
    return replaced(facts or healthy(), "triton", **triton)


def untried(facts: HostFacts | None = None, **triton: Any) -> HostFacts:
    return works(replace(facts or healthy(), kernel=Unavailable("torch sees no GPU")), **triton)


def gpu(name: str, capability: tuple[int, int], facts: HostFacts | None = None, driver_cuda: int = 13000) -> HostFacts:
    """The same with another GPU."""
    facts = facts or healthy()
    assert isinstance(facts.cuda, CudaProbe)
    return replaced(facts, "cuda", gpus=(CudaGpu(0, name, capability),), driver_cuda=driver_cuda)


def ptxas(*more: Ptxas, own: str = "12.8.93", blackwell: str = "12.9.86", error: str = "") -> dict[str, Any]:
    """The two of a Triton, and those of variables."""
    known = ("sm_80", "sm_90a", "sm_100a", "sm_120a")
    both = (
        Ptxas(f"{BIN}/ptxas", "ptxas", "" if error else own, () if error else known, error),
        Ptxas(f"{BIN}/ptxas-blackwell", "ptxas-blackwell", blackwell, (*known, "sm_103a", "sm_121a")),
    )
    return {"ptxas": (*more, *both)}


def spark(error: str = NOT_DEFINED, **fields: Any) -> HostFacts:
    """A GB10 and a Triton whose newer ptxas does not know it."""
    triton = {"ptxas": (Ptxas(f"{BIN}/ptxas", "ptxas", "12.8.93", ("sm_90a", "sm_120a")),), "blackwell_from": 0}
    return fails(error, gpu("NVIDIA GB10", (12, 1)), **{**triton, **fields})


def named(variable: str, *knows: str, error: str = "") -> Ptxas:
    return Ptxas("/usr/local/cuda/bin/ptxas", variable, "" if error else "13.0.88", knows, error)


def ignored(**variables: str) -> HostFacts:
    """TRITON_PTXAS_PATH names a ptxas that knows the GPU, and Triton takes the other one."""
    own = Ptxas(f"{BIN}/ptxas-blackwell", "ptxas-blackwell", "12.8.93", ("sm_100a",))
    facts = fails(NOT_DEFINED, gpu("NVIDIA GB10", (12, 1)), ptxas=(named("TRITON_PTXAS_PATH", "sm_121a"), own))
    return with_variables(facts, TRITON_PTXAS_PATH="/usr/local/cuda/bin/ptxas", **variables)


def hopper_39(driver_cuda: int, error: str = INVALID) -> HostFacts:
    """Triton 3.9, which takes ptxas 13.4 for Hopper."""
    facts = gpu("NVIDIA H100", (9, 0), driver_cuda=driver_cuda)
    return fails(error, facts, version="3.9.0", blackwell_from=90, **ptxas(blackwell="13.4.59", own="12.9.86"))


def libcuda(folder: str, where: str = "known folder") -> dict[str, Any]:
    library = CudaLibrary("libcuda.so.1", f"{folder}/libcuda.so.1", "580.1", "driver", where, 98_000_000)
    return {"cuda_libraries": (library,), "cached_libcuda": False}


def two(facts: HostFacts, version: str = "3.6.0") -> HostFacts:
    return works(facts, owners=("triton", "pytorch-triton-rocm"), version=version)


def without_triton(facts: HostFacts) -> HostFacts:
    return replace(kernel_fails(facts, MISSING), triton=None)


def old_cache(version: str, *targets: str, error: str = INVALID) -> HostFacts:
    return fails(error, version=version, cached_targets=targets)


NOWHERE = "Triton needs a C compiler, but CC is not set and neither gcc nor clang is on PATH"
HEADERS = "/usr/include/python3.12 has no Python.h, which Triton's helper is compiled with"

CASES = [
    Case(
        "DOC801",
        "a compiler without a linker",
        lambda: fails("collect2: fatal error: cannot find ‘ld’"),  # noqa: RUF001  # gcc quotes so
        ("the C compiler /usr/bin/gcc cannot link: `ld` is not found",),
    ),
    Case("DOC801", "no compiler", lambda: fails(NO_COMPILER, compiler=""), (NOWHERE,), evidence=(NO_COMPILER,)),
    Case("DOC801", "no compiler, and no kernel was tried", lambda: untried(compiler=""), (NOWHERE,), NOTE),
    Case("DOC801", "no compiler, another failure", lambda: fails(UNRELATED, compiler=""), (NOWHERE,), NOTE),
    Case("DOC801", "no compiler, and the kernel works", lambda: works(compiler="")),
    Case("DOC801", "no compiler on a laptop", lambda: works(without_gpu(healthy()), compiler="")),
    Case(
        "DOC802",
        "no headers",
        lambda: fails(PYTHON_H, replaced(healthy(), "interpreter", python_h=False)),
        (HEADERS,),
    ),
    Case("DOC802", "no headers, and it works", lambda: replaced(healthy(), "interpreter", python_h=False)),
    Case(
        "DOC803",
        "mounted and not cached",
        lambda: fails(NOT_CACHED, replaced(healthy(), "loader", **libcuda("/.singularity.d/libs"))),
        ("libcuda.so.1 is in /.singularity.d/libs, but the loader's cache, where Triton searches, does not list it",),
    ),
    Case(
        "DOC803",
        "its folder is in LD_LIBRARY_PATH",
        lambda: fails(
            NOT_CACHED,
            with_variables(replaced(healthy(), "loader", **libcuda("/drv")), LD_LIBRARY_PATH="/a:/drv/"),
        ),
    ),
    Case(
        "DOC803",
        "its folder is named to Triton",
        lambda: fails(
            NOT_CACHED, with_variables(replaced(healthy(), "loader", **libcuda("/drv")), TRITON_LIBCUDA_PATH="/drv")
        ),
    ),
    Case(
        "DOC804",
        "no ldconfig",
        lambda: fails(NO_LDCONFIG, replaced(healthy(), "loader", has_ldconfig=False)),
        ("/sbin/ldconfig is missing, which Triton runs to find libcuda",),
    ),
    Case(
        "DOC804",
        "no ldconfig, and it is not needed",
        lambda: with_variables(
            fails(NO_LDCONFIG, replaced(healthy(), "loader", has_ldconfig=False)), TRITON_LIBCUDA_PATH="/drv"
        ),
    ),
    Case(
        "DOC805",
        "GB10 and ptxas 12.8",
        spark,
        ("Triton 3.6.0 uses ptxas 12.8.93 for NVIDIA GB10 (12.1), but that ptxas does not support sm_121a",),
        evidence=("12.8.93", "sm_120a"),
    ),
    Case("DOC805", "GB10 and the newer one", lambda: fails(NOT_DEFINED, gpu("NVIDIA GB10", (12, 1)))),
    Case("DOC805", "a ptxas that was not asked", lambda: spark(**ptxas(own="", error="not run"))),
    Case("DOC805", "a source that does not say which", lambda: spark(blackwell_from=-1)),
    Case("DOC805", "it works", lambda: works(gpu("NVIDIA GB10", (12, 1)), blackwell_from=0)),
    Case("DOC805", "H06 knows better", ignored),
    Case(
        "DOC806",
        "the other variable is set",
        ignored,
        ("Triton 3.6.0 reads only TRITON_PTXAS_BLACKWELL_PATH for NVIDIA GB10 (12.1), not TRITON_PTXAS_PATH",),
        evidence=("/usr/local/cuda/bin/ptxas", "sm_100"),
    ),
    Case("DOC806", "the right one is set, too", lambda: ignored(TRITON_PTXAS_BLACKWELL_PATH="/x/ptxas")),
    Case(
        "DOC806",
        "a path that does not answer",
        lambda: untried(**ptxas(named("TRITON_PTXAS_PATH", error="No such file or directory"))),
        ("TRITON_PTXAS_PATH is /usr/local/cuda/bin/ptxas, which does not run: Triton silently uses its own instead",),
        NOTE,
    ),
    Case("DOC806", "it is set and read", lambda: untried(**ptxas(named("TRITON_PTXAS_PATH", "sm_90a")))),
    Case(
        "DOC807",
        "ptxas 13.4 and a driver for 12.8",
        lambda: hopper_39(12080),
        (
            "ptxas 13.4.59, which Triton 3.9.0 uses for NVIDIA H100 (9.0), generates code for CUDA 13, but the "
            "driver supports 12.8",
        ),
        evidence=("13.4.59", "12.8"),
    ),
    Case("DOC807", "ptxas 13.4 and a driver for 13.0", lambda: hopper_39(13000)),
    Case(
        "DOC808",
        "the driver refuses the PTX",
        lambda: fails("RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain."),
        ("the driver, which supports CUDA 13.0, rejected PTX of a newer CUDA (222)",),
    ),
    Case("DOC808", "another error", lambda: fails(INVALID)),
    Case(
        "DOC809",
        "HOME is /",
        lambda: fails(DENIED, with_variables(healthy(), HOME="/"), cache="/.triton/cache", cache_error="/: mode 0755"),
        ("Triton's cache /.triton/cache is not writable: /: mode 0755",),
        evidence=("/",),
    ),
    Case(
        "DOC809",
        "a folder that looks innocent and takes nothing, such as one of /proc",
        lambda: fails("FileNotFoundError: [Errno 2] No such file or directory: '/proc/nope'", cache="/proc/nope"),
        ("Triton's cache /proc/nope is not writable",),
    ),
    Case("DOC809", "it works anyway", lambda: works(cache_error="/: mode 0755")),
    Case("DOC809", "it can be written", lambda: fails(DENIED)),
    Case(
        "DOC810",
        "a stale handle on NFS",
        lambda: fails(STALE, cache_type="nfs4"),
        ("Triton's cache /home/user/.triton/cache is on a network file system (nfs4)",),
    ),
    Case("DOC810", "NFS, and it works", lambda: works(cache_type="nfs4")),
    Case("DOC810", "NFS, and another failure", lambda: fails(NO_COMPILER, cache_type="nfs4")),
    Case("DOC810", "a stale handle elsewhere", lambda: fails(STALE)),
    Case(
        "DOC811",
        "a cache with noexec",
        lambda: fails(SEGMENT, cache_noexec=True),
        (
            "Triton's cache /home/user/.triton/cache is on a mount with noexec: compiled libraries cannot be loaded "
            "from there",
        ),
    ),
    Case(
        "DOC811",
        "a temporary folder with noexec",
        lambda: untried(temporary_noexec=True),
        ("/tmp is on a mount with noexec: torch.compile cannot load compiled libraries from there",),
        NOTE,
    ),
    Case("DOC811", "noexec, and it works", lambda: works(cache_noexec=True, temporary_noexec=True)),
    Case(
        "DOC812",
        "no executable bit",
        lambda: fails(
            f"PermissionError: [Errno 13] Permission denied: '{BIN}/ptxas'", **ptxas(error="Permission denied")
        ),
        (f"{BIN}/ptxas cannot be executed, but Triton needs it",),
        evidence=("Permission denied",),
    ),
    Case(
        "DOC812",
        "the one that this GPU does not need",
        lambda: fails(UNRELATED, gpu("NVIDIA B200", (10, 0)), **ptxas(error="Permission denied")),
    ),
    Case("DOC812", "it is missing, which other rules say", lambda: fails(UNRELATED, **ptxas(error="No such file"))),
    Case(
        "DOC813",
        "CC is a folder",
        lambda: fails(
            "PermissionError: [Errno 13] Permission denied: '/usr/bin'",
            compiler="/usr/bin",
            compiler_fault="it is a folder",
        ),
        ('CC is "/usr/bin", which Triton cannot run: it is a folder',),
    ),
    Case("DOC813", "CC is a folder, and it works", lambda: works(compiler="/usr/bin", compiler_fault="it is a folder")),
    Case("DOC813", "CC is a compiler", lambda: fails(DENIED)),
    Case(
        "DOC814",
        "the requirement of torch",
        lambda: without_triton(healthy()),
        ("Triton is not installed, but torch 2.11.0+cu130 needs triton==3.6.0 for torch.compile and kernels",),
        evidence=("triton==3.6.0",),
    ),
    Case(
        "DOC814",
        "a torch for aarch64 that does not require it",
        lambda: without_triton(with_torch(grace(), "2.10.0+cu128", cuda="12.8", triton="")),
        ("Triton is not installed, but torch 2.10.0+cu128 needs triton==3.6.0 for torch.compile and kernels",),
    ),
    Case("DOC814", "a torch for the CPU", lambda: with_cpu_torch(healthy())),
    Case("DOC814", "no GPU", lambda: replace(without_gpu(healthy()), triton=None)),
    Case("DOC814", "it is there", healthy),
    Case(
        "DOC815",
        "another release",
        lambda: fails(ATTRS, version="3.9.0"),
        ("Triton is 3.9.0, but torch 2.11.0+cu130 requires triton==3.6.0",),
    ),
    Case(
        "DOC815",
        "another release that works",
        lambda: works(version="3.6.1"),
        ("Triton is 3.6.1, but torch 2.11.0+cu130 requires triton==3.6.0",),
        NOTE,
    ),
    Case("DOC815", "a local build of the release", lambda: fails(ATTRS, version="3.6.0+git1")),
    Case("DOC815", "no requirement", lambda: fails(ATTRS, with_torch(healthy(), "2.10.0", triton=""), version="1.0")),
    Case(
        "DOC816",
        "two owners",
        lambda: two(fails(ATTRS)),
        ("triton and pytorch-triton-rocm both own the folder triton/, whose files are a mixture",),
    ),
    Case("DOC816", "one owner", lambda: fails(ATTRS)),
    Case(
        "DOC817",
        "an old Triton and the cache of another GPU",
        lambda: old_cache("2.1.0", "sm_80"),
        ("Triton's cache /home/user/.triton/cache contains code for sm_80, but the GPU is NVIDIA H200 (9.0)",),
    ),
    Case("DOC817", "a newer Triton", lambda: old_cache("3.6.0", "sm_80")),
    Case("DOC817", "a cache of this GPU, too", lambda: old_cache("2.1.0", "sm_80", "sm_90")),
    Case("DOC817", "another failure", lambda: old_cache("2.1.0", "sm_80", error=UNRELATED)),
    Case(
        "DOC818",
        "the linker finds no libcuda.so",
        lambda: fails(LCUDA, version="2.1.0"),
        ("Triton 2.1.0 links with -lcuda, but there is no libcuda.so next to libcuda.so.1",),
        evidence=(LCUDA,),
    ),
    Case("DOC818", "it lacks another library", lambda: fails("/usr/bin/ld: cannot find -lcudart", version="2.1.0")),
]
