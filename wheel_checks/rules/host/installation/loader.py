"""What the dynamic loader takes instead of torch's own libraries, or refuses."""

import re
from collections.abc import Iterator
from typing import Any

from wheel_checks.commands import Command, NoCommand, Step, Unset, export
from wheel_checks.facts.host.commands import install, install_with_conda, is_of_conda, is_whole
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.log.symptoms import symptoms
from wheel_checks.facts.host.probes import Counterfactual, CudaProbe, NvmlProbe, TorchProbe
from wheel_checks.facts.host.software import CudaLibrary, Interpreter
from wheel_checks.facts.links.known_libraries import nvidia_project
from wheel_checks.goal import Goal
from wheel_checks.model import Evidence, Finding, Fix, Severity, Unavailable, need
from wheel_checks.rules.host.cause import Layer, cause
from wheel_checks.rules.host.installation.evidence import (
    bringer,
    complaints,
    file_name,
    findings,
    import_failed,
    installed,
    was_imported,
)
from wheel_checks.rules.host.installation.search import PAGE_SIZE
from wheel_checks.rules.host.observed import library_path, variable_shown, without_entries

_OF_LIBSTDCXX = re.compile(r"(?:GLIBCXX|CXXABI)_[\d.]+")
_REFUSED = re.compile(r"(?<!\S)(\S+?): version [`']((?:GLIBCXX|CXXABI)_[\d.]+)' not found \(required by (\S+?)\)")
_LIBRARY = re.compile(r"/[^\s:]*\.so(?:\.\d+)*")
_STATIC_TLS = re.compile(r"(?<!\S)(\S+?): cannot allocate memory in static TLS block")
_TOOLKIT = re.compile(r"cuda|cudnn|nccl|cublas", re.IGNORECASE)
_OF_DRIVER = re.compile(r"/(?:compat|stubs)(?:/|$)")
_HOOKS = re.compile(r"cuda|nccl|nvidia|jemalloc|tcmalloc|mimalloc|gomp|omp|hook|stub|vgpu|fake", re.IGNORECASE)
_OF_LIBRARIES = re.compile(r"undefined symbol|CUBLAS|cublas|cudnn|CUDNN|nccl|NCCL|nvJitLink|cusparse", re.ASCII)


@cause(
    "B16",
    "libstdc++ is new enough for torch and Triton",
    layer=Layer.FILES,
    explains=("torch:import", "kernel:failed"),
    why="The loader uses the first libstdc++.so.6 that it finds, or the one that Python has already loaded. An older "
    "one from the system or from conda lacks the symbol versions that newer libraries need.",
    example="version `GLIBCXX_3.4.30' not found (required by libtriton.so)",
    fix="Install a newer libstdc++ at its source, or remove its folder from LD_LIBRARY_PATH.",
    sources="triton#1543, triton#7946, pytorch#157709",
    tested="libraries that name a version which the system's libstdc++ lacks, refused by the real loader",
)
def old_libstdcxx(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """Versions that a library of torch's or Triton's needs and the libstdc++ that it gets does not define."""
    refused = next(iter(_refused(facts)), None)
    if refused is None:
        return
    library, version, user, source = refused
    entry = next((one for one in library_path(facts) if library.startswith(one.rstrip("/") + "/")), "")
    if entry:
        folders = {entry.rstrip("/")}
        fix = Fix("Remove the folder from the loader's path.", (without_entries(facts, folders),))
    elif is_of_conda(facts):
        fix = Fix(
            "Install a newer libstdc++ into the conda environment.", (install_with_conda(facts, "libstdcxx-ng>=13"),)
        )
    else:
        fix = Fix(
            "Install the newest libstdc++ of the system; if that is still too old, use a newer system or image.",
            (Command(("sudo", "apt-get", "install", "--only-upgrade", "libstdc++6")),) if _uses_apt(facts) else (),
        )
    yield Finding(
        f"{file_name(user)} needs {version}, which {library} does not have",
        (Evidence("needs", version, user), Evidence("found", library, source)),
        fix,
    )


def _refused(facts: HostFacts) -> Iterator[tuple[str, str, str, str]]:
    """(libstdc++, version, who needs it, who says so)."""
    for match in _REFUSED.finditer(complaints(facts)):
        yield match[1], match[2], match[3], "the loader"
    for finding in findings(facts, "WHL723"):
        lacking = _OF_LIBSTDCXX.search(dict(finding.evidence).get("needs", ""))
        if lacking and len(finding.paths) > 1 and _is_refused(facts, finding.paths[1]):
            yield finding.paths[0], lacking[0], finding.paths[1], "DT_VERNEED against DT_VERDEF"


def _is_refused(facts: HostFacts, user: str) -> bool:
    """Whether it is a library of torch's or Triton's, and none that has been loaded."""
    if "/triton/" in user:
        return isinstance(facts.kernel, Unavailable) or "kernel:failed" in symptoms(facts)
    return "/torch/" in user and not was_imported(facts)


def _uses_apt(facts: HostFacts) -> bool:
    return not isinstance(facts.system, Unavailable) and facts.system.os_id in {"debian", "ubuntu"}


@cause(
    "B17",
    "there is room in the static TLS block when libraries are loaded",
    layer=Layer.FILES,
    explains=("torch:import",),
    why="Libraries built for static thread-local storage (TLS), such as libgomp on aarch64, need space in a small "
    "block that every process has. A program that opens many libraries before torch has used it up. That "
    "GLIBC_TUNABLES=glibc.rtld.optional_static_tls=16384 helps with glibc 2.32 and later is inferred.",
    example="libgomp-d22c30c5.so.1.0.0: cannot allocate memory in static TLS block",
    fix="Import torch first, or load the library named in the error at the start with LD_PRELOAD.",
    sources="DALI PR5519, xgboost#8488, LightGBM#6509",
    tested="facts with the loader's message; no machine on which it happens",
    certain=False,
)
def static_tls(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The loader's message, in what the import said."""
    found = _STATIC_TLS.search(complaints(facts))
    if found is None:
        return
    yield Finding(
        f"{file_name(found[1])} was loaded too late: the block for static thread-local storage is full",
        (Evidence("loader", found[0], "import torch"), *_libc(facts)),
        Fix(
            "Import torch before everything else, or load the library when the program starts.",
            (_preload(facts, found[1]),),
        ),
    )


def _preload(facts: HostFacts, library: str) -> Step:
    """What is preloaded is run, and the path is out of a message: only a library of this Python, or of the system."""
    python = facts.interpreter
    own = (f"{python.prefix}/", f"{python.base_prefix}/") if isinstance(python, Interpreter) else ()
    if not (_LIBRARY.fullmatch(library) and is_whole(library) and library.startswith((*own, "/usr/", "/lib"))):
        return NoCommand(f"{library!a} is not the absolute path of a library of this Python or of the system")
    return export("LD_PRELOAD", ":".join(filter(None, (library, facts.variables.get("LD_PRELOAD", "")))))


def _libc(facts: HostFacts) -> Iterator[Evidence]:
    if isinstance(facts.interpreter, Interpreter) and facts.interpreter.libc[0]:
        yield Evidence("C library", " ".join(facts.interpreter.libc), facts.interpreter.machine)


@cause(
    "B18",
    "jemalloc supports the kernel's page size",
    layer=Layer.USERSPACE,
    explains=("nvml:signal", "nvml:-1", "cuda:signal", "cuda:-1", "torch:import", "torch:signal", "kernel:failed"),
    why="jemalloc is built for one maximum page size, and aborts when the kernel has larger pages. Kernels for Grace "
    "have pages of 64 KiB, and builds made on other machines expect 4 KiB.",
    example="<jemalloc>: Unsupported system page size",
    fix="Remove it from LD_PRELOAD, or use a jemalloc built for 64 KiB (5.3.1 and later on aarch64).",
    sources="jemalloc PR2845, falco#3954, difftastic#850",
    tested="a preloaded library that says so and ends the process, in a real child; no kernel with such pages",
)
def page_size(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The message of jemalloc, in what any child said."""
    said = [text for text in _words(facts) if PAGE_SIZE in text]
    if not said:
        return
    line = next(line.strip() for line in said[0].splitlines() if PAGE_SIZE in line)
    preload = facts.variables.get("LD_PRELOAD", "")
    evidence = [Evidence("message", line, "a child process")]
    if not isinstance(facts.system, Unavailable):
        evidence.append(Evidence("page size", f"{facts.system.page_size:,} bytes", facts.system.kernel))
    evidence += [Evidence("LD_PRELOAD", preload, "environment")] if preload else []
    fix = Fix("Install a jemalloc built for pages of 64 KiB.")
    if "jemalloc" in preload:
        left = [entry for entry in re.split(r"[\s:]+", preload) if entry and "jemalloc" not in entry]
        fix = Fix(
            "Do not preload jemalloc.", (export("LD_PRELOAD", ":".join(left)) if left else Unset(("LD_PRELOAD",)),)
        )
    yield Finding("jemalloc is built for smaller pages than the kernel has", tuple(evidence), fix)


def _words(facts: HostFacts) -> Iterator[str]:
    """What the children said."""
    yield complaints(facts)
    if isinstance(facts.interpreter, Interpreter):
        yield facts.interpreter.fault
    for probe in (facts.nvml, facts.cuda):
        if not isinstance(probe, Unavailable):
            yield f"{probe.fault}\n{probe.end.output}"


@cause(
    "B19",
    "cuDNN opens its own sublibraries",
    layer=Layer.FILES,
    explains=("torch:compute",),
    why="cuDNN opens its engines by name when they are first used. LD_LIBRARY_PATH takes precedence over its own "
    "folder, and a missing sublibrary is searched for in the whole system. A sublibrary of another release is "
    "rejected.",
    example="CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH",
    fix="Remove the other cuDNN, or remove it from the loader's path; or install a complete cuDNN next to torch.",
    sources="pytorch#188892, pytorch#185512, pytorch#187824",
    tested="libraries compiled by gcc, and what dlopen really takes; no GPU",
)
def foreign_cudnn(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """Parts that come from elsewhere, in another release or one that is not known."""
    package = next((one for one in installed(facts).packages if one.name.startswith("nvidia-cudnn")), None)
    others = [part for part in need(facts.loader).cudnn if part.kind == "other"]
    release = ".".join(package.version.split(".")[:3]) if package else ""
    wrong = [part for part in others if not package or part.version != release]
    if not wrong:
        return
    part = wrong[0]
    fix, lacking = _own_cudnn(facts, wrong, package.name if package else "")
    certain = bool(part.version and release)
    seen, told = symptoms(facts), complaints(facts)
    failing = "CUDNN" in told
    yield Finding(
        f"cuDNN {release or 'of torch'} opens {part.name} from {part.path}"
        + (f", which is of {part.version}" if part.version else ", whose release is not known")
        + (": its own folder lacks that sublibrary" if lacking else ""),
        tuple(Evidence(one.name, f"{one.path} ({one.version or 'unknown release'})", one.where) for one in wrong[:4]),
        fix,
        severity=Severity.ERROR if failing else Severity.NOTE if seen or not certain else Severity.WARNING,
    )


def _own_cudnn(facts: HostFacts, wrong: list[CudaLibrary], package: str) -> tuple[Fix, bool]:
    """How to keep the other one away, and whether cuDNN's own folder lacks the part."""
    folders = {part.path.rpartition("/")[0] for part in wrong if part.where == "LD_LIBRARY_PATH"}
    if folders:
        return Fix("Remove the other cuDNN from the loader's path.", (without_entries(facts, folders),)), False
    commands = install(facts, f"{package}>=9.24", no_deps=True) if package else ()
    goal = Goal(wanted=(f"{package}>=9.24",)) if package else None
    return Fix("Remove the system's cuDNN, or install a complete one next to torch.", commands, goal), True


@cause(
    "B20",
    "torch loads the NVIDIA libraries installed next to it",
    layer=Layer.USERSPACE,
    explains=("torch:import", "torch:compute"),
    why="torch's own libraries have DT_RPATH, which takes precedence over LD_LIBRARY_PATH; NVIDIA's have DT_RUNPATH, "
    "which does not. The wheel's libcublas then loads libcublasLt of an installed CUDA toolkit, which is another "
    "release.",
    example="undefined symbol: cublasLtHSHMatmulAlgoInit, version libcublasLt.so.12",
    fix="Start torch without that folder in LD_LIBRARY_PATH.",
    sources="pytorch PR174320, pytorch#91067",
    tested="libraries compiled by gcc and traced by the real loader; no CUDA toolkit of another release",
)
def shadowed_library(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A library of an installed distribution that the loader takes from elsewhere all the same."""
    shadowed = list(_shadowed(facts))
    if not shadowed:
        return
    soname, path, package = shadowed[0]
    folders = {one.rpartition("/")[0] for _, one, _ in shadowed}
    by_variable = {entry.rstrip("/") for entry in library_path(facts)}
    fix = Fix(f"Remove {path.rpartition('/')[0]} from the loader's path (ldconfig, or a DT_RPATH of Python).")
    if folders & by_variable:
        fix = Fix("Start torch without that folder.", (without_entries(facts, folders & by_variable),))
    failing = _OF_LIBRARIES.search(complaints(facts)) is not None and (
        import_failed(facts) or "torch:compute" in symptoms(facts)
    )
    yield Finding(
        f"the loader uses {soname} from {path} instead of the one in {package}",
        tuple(Evidence(name, one, "traced by the loader") for name, one, _ in shadowed[:4]),
        fix,
        severity=Severity.ERROR if failing else Severity.NOTE,
    )


def _shadowed(facts: HostFacts) -> Iterator[tuple[str, str, str]]:
    """(soname, the file that is taken, the distribution that has it, too)."""
    gone = {file_name(path) for finding in findings(facts, "WHL702") for path in finding.paths}
    for soname, path in need(facts.loader).resolved.items():
        owner = installed(facts).named(bringer(facts, soname))
        if path and owner and soname not in gone and not path.startswith(f"{owner.folder}/"):
            yield soname, path, f"{owner.name} {owner.version}"


@cause(
    "B21",
    "LD_LIBRARY_PATH does not affect torch's own libraries",
    Severity.NOTE,
    layer=Layer.USERSPACE,
    explains=(),
    why="Many guides advise removing CUDA from LD_LIBRARY_PATH, or adding it. torch's wheels find their libraries by "
    "DT_RPATH, which takes precedence over it: what counts is what the loader really uses.",
    example="LD_LIBRARY_PATH=/usr/local/cuda/lib64, and every library comes from site-packages",
    fix="No action is needed.",
    sources="ld.so(8)",
    tested="the real loader's trace, with and without the variable",
)
def harmless_library_path(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A toolkit's folder in the variable, and all of NVIDIA's libraries from next to torch."""
    loader = need(facts.loader)
    entries = [entry for entry in library_path(facts) if _TOOLKIT.search(entry) and not _OF_DRIVER.search(entry)]
    taken = {name: path for name, path in loader.resolved.items() if path and nvidia_project(name)}
    foreign = any(part.kind == "other" for part in loader.cudnn)
    if not entries or not taken or foreign or any(_is_under(path, entries) for path in taken.values()):
        return
    yield Finding(
        f"harmless: LD_LIBRARY_PATH names {entries[0]}, but torch's {len(taken)} NVIDIA libraries are loaded from "
        "elsewhere",
        (Evidence("LD_LIBRARY_PATH", facts.variables["LD_LIBRARY_PATH"], "environment"), *_traced(taken)),
        Fix("No action is needed."),
    )


def _is_under(path: str, folders: list[str]) -> bool:
    return any(path.startswith(folder.rstrip("/") + "/") for folder in folders)


def _traced(taken: dict[str, str]) -> Iterator[Evidence]:
    return (Evidence(name, path, "traced by the loader") for name, path in list(taken.items())[:2])


@cause(
    "B22",
    "no preloaded library breaks CUDA or torch",
    layer=Layer.USERSPACE,
    explains=("nvml:*", "cuda:*", "torch:import", "torch:signal", "torch:hang", "torch:unavailable", "torch:init"),
    why="Libraries in LD_PRELOAD and /etc/ld.so.preload are loaded into every program before anything else, and "
    "replace functions: allocators, hooks for sharing GPUs, stubs left behind by a test.",
    example="LD_PRELOAD=/opt/hooks/libcuda_hook.so of a container image",
    fix="Start without it.",
    sources="ld.so(8); no single report",
    tested="a preloaded library that breaks cuInit of a stub driver, and the experiment without it",
)
def preloaded(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """Proven by the CUDA probe without the variable; a note for a likely library and a crash."""
    value = facts.variables.get("LD_PRELOAD", "")
    experiment = next((one for one in facts.counterfactuals if one.variable == "LD_PRELOAD"), None)
    system = "" if isinstance(facts.loader, Unavailable) else facts.loader.preload_file
    proven = experiment is not None and experiment.proves
    suspicious = _HOOKS.search(f"{value} {system}") is not None and _crashed(facts) and experiment is None
    if not (proven or suspicious) or any(PAGE_SIZE in text for text in _words(facts)):
        return
    evidence = [variable_shown(facts, "LD_PRELOAD")] if value else []
    evidence += [Evidence("/etc/ld.so.preload", system)] if system else []
    if proven and experiment is not None:
        evidence.append(_proof(experiment))
    fix = Fix("Start without it.", (Unset(("LD_PRELOAD",)),))
    if not value:
        fix = Fix("Remove it from /etc/ld.so.preload.", (Command(("sudoedit", "/etc/ld.so.preload")),))
    yield Finding(
        f"{'LD_PRELOAD' if value else '/etc/ld.so.preload'} loads {value or system} into every program"
        + ("; CUDA works without it" if proven else ", which may be why it crashes (not tested without it)"),
        tuple(evidence),
        fix,
        severity=Severity.ERROR if proven else Severity.NOTE,
    )


def _proof(experiment: Counterfactual) -> Evidence:
    return Evidence(experiment.label, experiment.summary, "the CUDA probe, again")


def _crashed(facts: HostFacts) -> bool:
    """Whether a child was ended by a signal, hung, or could not import torch."""
    probes = [
        one for one in (facts.nvml, facts.cuda, facts.torch) if isinstance(one, NvmlProbe | CudaProbe | TorchProbe)
    ]
    return import_failed(facts) or any(one.end.signal or one.end.hang for one in probes)
