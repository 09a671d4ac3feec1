"""What Triton needs around it: a C compiler, headers, libcuda, a cache."""

import posixpath
import re
from collections.abc import Iterator
from typing import Any

from wheel_checks.commands import Command, Export, NoCommand, Step, Unset, export, run
from wheel_checks.facts.host.commands import is_whole
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.software import Interpreter
from wheel_checks.facts.host.triton_use import (
    kernel_error,
    kernel_words,
    triton_gpus,
    weight,
)
from wheel_checks.model import Evidence, Finding, Fix, Severity, Unavailable, need
from wheel_checks.rules.host.cause import Layer, causes_in
from wheel_checks.rules.host.observed import DEBIAN, RED_HAT, library_path

KERNEL = ("kernel:failed",)


NETWORK = {"nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "cifs", "smb3", "9p", "fuse.sshfs", "fuse.juicefs"}


NO_LINKER = r"cannot find .?ld\b|unable to execute .?ld\b|collect2: fatal error: cannot find"


LARGE_TEMPORARY = "/var/tmp"  # noqa: S108  # where mktemp makes a folder of the user's
_VERSION = re.compile(r"\d+\.\d+", re.ASCII)

cause = causes_in(Layer.TRITON, KERNEL)


def _empty_folder(name: str, parent: str = "") -> tuple[str, ...]:
    """The command that makes an empty folder, which no other user can have made before, and prints its path."""
    return "mktemp", "--directory", f"--tmpdir={parent}" if parent else "--tmpdir", f"{name}-XXXXXXXX"


LOCAL_CACHE = Export("TRITON_CACHE_DIR", _empty_folder("triton"))


def _package(facts: HostFacts, debian: str, red_hat: str) -> tuple[Command, ...]:
    """The command that installs a package of the operating system, where its installer is known."""
    if isinstance(facts.system, Unavailable):
        return ()
    sudo = () if facts.system.root else ("sudo",)
    if facts.system.os_id in DEBIAN:
        return (Command((*sudo, "apt-get", "install", "-y", debian)),)
    return (Command((*sudo, "dnf", "install", "-y", red_hat)),) if facts.system.os_id in RED_HAT else ()


@cause(
    "H01",
    "Triton finds a C compiler",
    why="Triton compiles a helper in C when it first runs, so it needs a C compiler: CC, else gcc, else clang on PATH. "
    "Runtime images omit it.",
    example="RuntimeError: Failed to find C compiler. Please specify via CC environment variable",
    fix="Install gcc, or set CC to a compiler.",
    sources="ml-cross-entropy#5, runtime/build.py of Triton 3.9",
    tested="folders of PATH on a fake root; facts",
)
def no_compiler(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """Neither CC, gcc nor clang; or one that finds no linker."""
    triton = need(facts.triton)
    if triton is None:
        return
    if triton.compiler:
        if weight(facts, NO_LINKER) is Severity.ERROR:
            yield Finding(
                f"the C compiler {triton.compiler} cannot link: `ld` is not found",
                (Evidence("PATH", facts.variables.get("PATH", ""), "environment"), *kernel_error(facts)),
                Fix("Install the linker, or add its folder to PATH.", _package(facts, "binutils", "binutils")),
            )
        return
    severity = weight(facts, "Failed to find C compiler")
    if severity is None:
        return
    yield Finding(
        "Triton needs a C compiler, but CC is not set and neither gcc nor clang is on PATH",
        (Evidence("PATH", facts.variables.get("PATH", ""), "environment"), *kernel_error(facts)),
        Fix("Install a C compiler (in conda: conda install -c conda-forge gcc).", _package(facts, "gcc", "gcc")),
        severity=severity,
    )


@cause(
    "H02",
    "the headers of Python are installed",
    why="The helper that Triton compiles includes Python.h. Linux distributions put it in a separate package; the "
    "Pythons of uv and conda include it.",
    example="fatal error: Python.h: No such file or directory",
    fix="Install the headers of this Python, or use a Python that includes them.",
    sources="sglang PR18644, tabbyAPI PR456",
    tested="facts",
)
def no_headers(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """No Python.h where sysconfig says that it is."""
    triton, python = need(facts.triton), need(facts.interpreter)
    severity = weight(facts, r"Python\.h")
    if triton is None or python.python_h or severity is None:
        return
    yield Finding(
        f"{python.include} has no Python.h, which Triton's helper is compiled with",
        (Evidence("include", python.include, python.path), *kernel_error(facts)),
        _headers(facts, python),
        severity=severity,
    )


def _headers(facts: HostFacts, python: Interpreter) -> Fix:
    version = ".".join(python.version.split(".")[:2])
    if not _VERSION.fullmatch(version):
        return Fix("Use a Python that includes them, such as one of uv's.")
    packages = _package(facts, f"python{version}-dev", f"python{version}-devel")
    if python.include.startswith("/usr/include/") and packages:
        return Fix("Install the headers.", packages)
    command = Command(("uv", "python", "install", version))
    return Fix(f"Use a Python that includes them, such as uv's own {version}.", (command,))


def _driver_folders(facts: HostFacts) -> list[str]:
    """Where libcuda.so.1 is, LD_LIBRARY_PATH included."""
    libraries = need(facts.loader).cuda_libraries
    return [one.path.rpartition("/")[0] for one in libraries if one.name == "libcuda.so.1" and one.kind != "stub"]


@cause(
    "H03",
    "Triton finds libcuda",
    why="Triton searches for libcuda.so.1 with `/sbin/ldconfig -p`, that is in the loader's cache, and then in "
    "LD_LIBRARY_PATH. A libcuda that was mounted into a container later is in neither, while CUDA itself works.",
    example="AssertionError: libcuda.so cannot found!",
    fix="Refresh the loader's cache, or set TRITON_LIBCUDA_PATH to the folder.",
    sources="triton PR1981, triton PR2019, pytorch#107960",
    tested="facts",
)
def libcuda_not_cached(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A libcuda that is on disk, and neither in the cache nor in LD_LIBRARY_PATH."""
    triton, loader, folders = need(facts.triton), need(facts.loader), _driver_folders(facts)
    searched = [entry.rstrip("/") for entry in library_path(facts)]
    if triton is None or loader.cached_libcuda or not loader.has_ldconfig or facts.variables.get("TRITON_LIBCUDA_PATH"):
        return
    severity = weight(facts, r"libcuda\.so cannot found|libcuda\.so")
    if severity is not None and folders and not set(folders) & set(searched):
        yield Finding(
            f"libcuda.so.1 is in {folders[0]}, but the loader's cache, where Triton searches, does not list it",
            (Evidence("/sbin/ldconfig -p", "no libcuda.so.1", "ld.so.cache"), *kernel_error(facts)),
            Fix("Set TRITON_LIBCUDA_PATH to its folder (or, as root, run ldconfig).", (_name_libcuda(folders[0]),)),
            severity=severity,
        )


@cause(
    "H04",
    "/sbin/ldconfig exists",
    why="Triton runs /sbin/ldconfig to find libcuda; NixOS and images without a shell do not have it.",
    example="FileNotFoundError: [Errno 2] No such file or directory: '/sbin/ldconfig'",
    fix="Set TRITON_LIBCUDA_PATH to the folder of libcuda.so.1.",
    sources="triton#2878, kernels PR670",
    tested="facts",
)
def no_ldconfig(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """No ldconfig, and no variable that makes it unnecessary."""
    triton, loader = need(facts.triton), need(facts.loader)
    severity = weight(facts, "/sbin/ldconfig")
    if triton is None or loader.has_ldconfig or facts.variables.get("TRITON_LIBCUDA_PATH") or severity is None:
        return
    folders = _driver_folders(facts)
    yield Finding(
        "/sbin/ldconfig is missing, which Triton runs to find libcuda",
        (Evidence("/sbin/ldconfig", "no such file"), *kernel_error(facts)),
        Fix("Set TRITON_LIBCUDA_PATH to the folder of libcuda.so.1.", tuple(map(_name_libcuda, folders[:1]))),
        severity=severity,
    )


def _name_libcuda(folder: str) -> Step:
    return export("TRITON_LIBCUDA_PATH", folder)


@cause(
    "H09",
    "Triton's cache is writable",
    why="Triton writes what it compiles below TRITON_CACHE_DIR, else TRITON_HOME, else HOME. Containers that run as an "
    "arbitrary user often have HOME=/ or no HOME, and read-only file systems.",
    example="PermissionError: [Errno 13] Permission denied: '/.triton'",
    fix="Set TRITON_CACHE_DIR to a writable folder.",
    sources="fms-hf-tuning#367, triton#518",
    tested="a file in the way, a read-only mount, modes; facts",
)
def cache_not_writable(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """By mode, mount, or lack of space; or the kernel's own error names the folder, where the files look innocent."""
    triton = need(facts.triton)
    if triton is None:
        return
    itself = rf"(FileNotFoundError|PermissionError|NotADirectoryError|OSError).*{re.escape(triton.cache)}"
    words = r"PermissionError|Permission denied|Read-only file system|No space left|NotADirectory"
    refused = weight(facts, itself) is Severity.ERROR
    severity = weight(facts, rf"{words}|{itself}")
    if severity is None or not (triton.cache_error or refused):
        return
    named = [name for name in ("TRITON_CACHE_DIR", "TRITON_HOME", "HOME") if name in facts.variables][:1]
    yield Finding(
        f"Triton's cache {triton.cache} is not writable" + (f": {triton.cache_error}" if triton.cache_error else ""),
        (*(Evidence(name, facts.variables[name], "environment") for name in named), *kernel_error(facts)),
        Fix("Put it in a folder that this user can write to.", (LOCAL_CACHE,)),
        severity=severity,
    )


@cause(
    "H10",
    "Triton's cache is not on a network file system",
    why="Triton replaces files of its cache while other processes read them. On network file systems those processes "
    "then get stale handles, or miss files.",
    example="OSError: [Errno 116] Stale file handle, below ~/.triton/cache",
    fix="Put the cache on a local disk.",
    sources="pytorch#173679, triton#4002",
    tested="mount tables; facts; no race was made",
)
def cache_on_network(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A network file system, and a kernel that failed with the words for it."""
    triton = need(facts.triton)
    words = r"Stale file handle|Errno 116|FileNotFoundError.*(triton|cache)|Device or resource busy.*\.nfs"
    if triton is not None and triton.cache_type in NETWORK and weight(facts, words) is Severity.ERROR:
        yield Finding(
            f"Triton's cache {triton.cache} is on a network file system ({triton.cache_type})",
            (Evidence("file system", triton.cache_type, "/proc/self/mountinfo"), *kernel_error(facts)),
            Fix("Put it on a local disk.", (LOCAL_CACHE,)),
        )


@cause(
    "H11",
    "the mounts of Triton's cache and of TMPDIR allow libraries to be loaded",
    why="Triton loads the helper that it compiled from its cache, and torch.compile its own from TMPDIR. A mount with "
    "noexec forbids that.",
    example="ImportError: ...: failed to map segment from shared object",
    fix="Put the cache, or TMPDIR, on a mount without noexec.",
    sources="pytorch PR184362, pytorch#123054",
    tested="a real noexec mount; facts",
)
def noexec(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The cache alone is an error; a temporary folder matters to torch.compile only, which was not tried."""
    triton = need(facts.triton)
    severity = weight(facts, "failed to map segment|Operation not permitted")
    if triton is None:
        return
    if triton.cache_noexec and severity is not None:
        yield Finding(
            f"Triton's cache {triton.cache} is on a mount with noexec: compiled libraries cannot be loaded from there",
            (Evidence("mount", f"{triton.cache_type}, noexec", "/proc/self/mountinfo"), *kernel_error(facts)),
            Fix(
                "Put it on a mount without noexec.",
                (
                    Command(
                        ("findmnt", "--target", LARGE_TEMPORARY, "-no", "OPTIONS"),
                        "its options must not contain noexec",
                    ),
                    Export("TRITON_CACHE_DIR", _empty_folder("triton", LARGE_TEMPORARY)),
                ),
            ),
            severity=severity,
        )
    if triton.temporary_noexec and severity is not None and not facts.variables.get("TORCHINDUCTOR_CACHE_DIR"):
        folder = facts.variables.get("TMPDIR") or "/tmp"  # noqa: S108  # as tempfile does
        yield Finding(
            f"{folder} is on a mount with noexec: torch.compile cannot load compiled libraries from there",
            (Evidence("TMPDIR", facts.variables.get("TMPDIR", "not set"), "environment"),),
            Fix("Set TMPDIR to another folder.", (_inductor_cache(facts),)),
            severity=Severity.NOTE,
        )


def _inductor_cache(facts: HostFacts) -> Step:
    """Below the home folder; where that is not known, an empty folder of the user's."""
    home = facts.variables.get("HOME", "")
    if not is_whole(home):
        return Export("TORCHINDUCTOR_CACHE_DIR", _empty_folder("inductor", LARGE_TEMPORARY))
    return export("TORCHINDUCTOR_CACHE_DIR", posixpath.join(home, ".cache/torchinductor"))


@cause(
    "H13",
    "CC is the path of a compiler",
    why="Triton runs the value of CC as one program, without splitting off options and without checking that it "
    "exists.",
    example="CC=/usr/bin, or CC='ccache gcc': PermissionError or FileNotFoundError when a kernel is first run",
    fix="Unset CC, or set it to the path of a compiler.",
    sources="triton-windows#30, triton-windows#91",
    tested="folders, files and options as values of CC, on a fake root; facts",
)
def wrong_compiler(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """CC that is no program."""
    triton = need(facts.triton)
    severity = weight(facts, r"PermissionError|FileNotFoundError|NotADirectory|Exec format|No such file")
    if triton is None or not triton.compiler_fault or severity is None:
        return
    yield Finding(
        f'CC is "{triton.compiler}", which Triton cannot run: {triton.compiler_fault}',
        (Evidence("CC", triton.compiler, facts.variables_origin.get("CC", "environment")), *kernel_error(facts)),
        Fix("Unset CC: Triton then searches for gcc or clang itself.", (Unset(("CC",)),)),
        severity=severity,
    )


INVALID_IMAGE = r"image is invalid|no kernel image|\[CUDA\].*(invalid|kernel image)"


@cause(
    "H17",
    "Triton's cache is for this GPU",
    why="Before 3.0 Triton's cache did not distinguish GPUs: a home folder moved to another host contains code for "
    "another GPU.",
    example="RuntimeError: Triton Error [CUDA]: device kernel image is invalid, after a move to another machine",
    fix="Delete the cache.",
    sources="triton#1323",
    tested="metadata of real caches; facts; no such old Triton was run",
    certain=False,
)
def stale_cache(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """An old Triton, a cache for other GPUs only, and a kernel that says that its image is invalid."""
    triton, gpus = need(facts.triton), triton_gpus(facts)
    if triton is None or not gpus or not triton.cached_targets or weight(facts, INVALID_IMAGE) is not Severity.ERROR:
        return
    here = {f"sm_{gpu.sm}" for gpu in gpus}
    if re.match(r"[12]\.", triton.version) and not here & set(triton.cached_targets):
        held = ", ".join(triton.cached_targets)
        yield Finding(
            f"Triton's cache {triton.cache} contains code for {held}, but the GPU is {gpus[0].product}",
            (Evidence("cache", held, triton.cache), *kernel_error(facts)),
            Fix("Delete the cache.", (_without_cache(triton.cache),)),
        )


def _without_cache(cache: str) -> Step:
    """Deletes the folder of Triton's name alone: TRITON_CACHE_DIR may name any other."""
    return run("rm", "-r", cache) if is_whole(cache) and cache.endswith("/.triton/cache") else LOCAL_CACHE


@cause(
    "H18",
    "Triton can link against libcuda.so",
    why="Older releases of Triton link their helper with -lcuda, which needs a file libcuda.so; drivers are often "
    "installed without that link. Newer releases use libcuda.so.1.",
    example="/usr/bin/ld: cannot find -lcuda: No such file or directory",
    fix="Create the link next to libcuda.so.1, or install a newer torch and Triton.",
    sources="mamba#123, triton PR3053",
    tested="facts; no such old Triton was run",
)
def links_with_lcuda(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The linker said so."""
    triton, loader = need(facts.triton), need(facts.loader)
    said = next((line for line in kernel_words(facts).splitlines() if re.search(r"cannot find -lcuda\b", line)), "")
    if triton is None or not said:
        return
    drivers = [one for one in loader.cuda_libraries if one.name == "libcuda.so.1" and one.kind == "driver"]
    links = tuple(_link(one.path) for one in drivers[:1])
    yield Finding(
        f"Triton {triton.version} links with -lcuda, but there is no libcuda.so next to libcuda.so.1",
        (Evidence("linker", said.strip()), *(Evidence(one.name, one.path, one.where) for one in drivers[:1])),
        Fix("Create the link.", links),
    )


def _link(library: str) -> Step:
    """Root makes the link, so it has to lie next to a libcuda.so.1 by its whole path."""
    folder, _, name = library.rpartition("/")
    if not is_whole(library) or name != "libcuda.so.1":
        return NoCommand(f"{library!a} is not the absolute path of libcuda.so.1")
    return run("sudo", "ln", "-s", "libcuda.so.1", f"{folder}/libcuda.so")
