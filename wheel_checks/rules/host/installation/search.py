"""The search paths of Python and the loader, and the files found there."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Any

from wheel_checks.facts.host.advice import RECOMMENDED_PYTHON, new_environment
from wheel_checks.facts.host.commands import python_command, uninstall
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.log.symptoms import symptoms
from wheel_checks.facts.host.software import DANGLING, NOT_EXECUTABLE, TOO_OLD, Interpreter, Package, ShadowModule
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.fixes.commands import IMPORT_TORCH, IMPORT_TRITON, Unset, export, option, path, run
from wheel_checks.model import Evidence, Finding, Fix, Severity, Unavailable, need
from wheel_checks.parsing import numbers
from wheel_checks.registry import rule
from wheel_checks.rules.host.cause import CAUSES, KIND, Cause, Layer, cause
from wheel_checks.rules.host.installation.evidence import (
    again,
    bringer,
    complaints,
    findings,
    import_failed,
    installed,
    missing_of_torch,
    was_imported,
)
from wheel_checks.rules.host.installation.files import damaged_files
from wheel_checks.rules.host.observed import TORCH_FAILS, variable_shown

NOT_STARTED = "DOC200"
_UNDECLARED = ("libnvpl_", "libcudss")  # B23 reports these: no wheel of NVIDIA's that torch requires provides them
EXEC_FORMAT = "Exec format error"
PAGE_SIZE = "Unsupported system page size"

CAUSES[NOT_STARTED] = Cause("", Layer.PYTHON, ("torch:import", "torch:signal", "torch:hang"))


@rule(
    NOT_STARTED,
    "the Python interpreter starts",
    why="Python itself must start before torch can be examined: a .pth file or sitecustomize that hangs, PYTHONHOME of "
    "another installation, or a Python that is too old keeps every program from running.",
    example="PYTHONHOME=/opt/python3.9 with a Python 3.12: ModuleNotFoundError: No module named 'encodings'",
    fix="Remove the cause, which the finding names.",
    kind=KIND,
)
def interpreter_starts(facts: HostFacts, _expectations: Expectations) -> Iterator[Finding]:
    """Nothing when it ran; nor when its machine is another one, or jemalloc is to blame: A18 and B18 say that."""
    python = need(facts.interpreter)
    if not python.fault or EXEC_FORMAT in python.fault or PAGE_SIZE in python.fault:
        return
    variables = [name for name in ("PYTHONHOME", "PYTHONPATH") if name in facts.variables]
    evidence = [Evidence("interpreter", python.path, python.found)]
    evidence += [variable_shown(facts, name) for name in variables]
    if python.obstacle == TOO_OLD:
        fix = new_environment(facts, RECOMMENDED_PYTHON)
    elif python.obstacle == DANGLING:
        fix = new_environment(facts, python.release)
    elif python.obstacle == NOT_EXECUTABLE:
        fix = Fix("Make it executable.", (run("chmod", "+x", path(python.path)),))
    elif "Permission denied" in python.fault:  # the mode allows it
        fix = Fix(
            "Its file system is mounted with noexec, or a parent folder or the file is not accessible to this user: "
            "the commands show which.",
            (run("findmnt", "-T", path(python.path)), run("ls", "-ld", path(python.path))),
        )
    elif variables:
        fix = Fix("Start it without these variables.", (Unset(tuple(variables)), python_command(facts, "-c", "pass")))
    else:
        summary = (
            "The first command starts it without .pth files and sitecustomize; the second one shows how far the start "
            "gets."
        )
        commands = python_command(facts, "-I", "-S", "-c", "pass"), python_command(facts, "-v", "-c", "pass")
        fix = Fix(summary, commands)
    yield Finding(f"{python.path} cannot be started: {python.fault}", tuple(evidence), fix)


@cause(
    "B07",
    "`import torch` loads the environment's own torch",
    layer=Layer.PYTHON,
    explains=("torch:import", "torch:cpu-build", *TORCH_FAILS),
    why="Python imports torch from the first folder on sys.path that has one: PYTHONPATH and the user's site-packages "
    "precede those of the environment. The installed torch and the imported one then differ.",
    example="torch 2.5.1 in ~/.local shadows torch 2.11.0 of the environment",
    fix="Remove the other folder from sys.path, or remove the torch in it.",
    sources="textgen#1440, TTS-WebUI#433",
    tested="real environments with PYTHONPATH and .pth files, and the fix run; the user's site-packages as facts",
)
def two_torches(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A torch of another folder comes before the environment's own."""
    python = need(facts.interpreter)
    modules = [module for module in installed(facts).modules if module.name == "torch"]
    own = {python.purelib, python.platlib}
    if len(modules) < 2 or not modules[0].entry or modules[0].entry in own or not _in(modules[1:], own):
        return
    first, hidden = modules[0], next(module for module in modules[1:] if module.entry in own)
    torches = {module.entry: _torch_in(facts, module.entry) for module in modules}
    order = [
        Evidence(_place(number), _shown(module, torches[module.entry]), module.entry)
        for number, module in enumerate(modules)
    ]
    label, fix = _removal(facts, python, first)
    yield Finding(
        f"{label} shadows the environment's own torch: {_version(torches[first.entry])} is imported, and "
        f"{_version(torches[hidden.entry])} is installed in {hidden.entry}",
        tuple(order),
        fix,
        severity=_weight_of_hiding(facts, torches[first.entry], torches[hidden.entry]),
    )


def _in(modules: Sequence[ShadowModule], entries: set[str]) -> bool:
    return any(module.entry in entries for module in modules)


def _torch_in(facts: HostFacts, entry: str) -> Package | None:
    packages = installed(facts).packages
    return next((one for one in packages if one.name == "torch" and one.folder == entry), None)


def _version(package: Package | None) -> str:
    if package is None:
        return "a torch without metadata"
    build = f" ({package.build})" if package.build and "+" not in package.version else ""
    return f"torch {package.version}{build}"


def _place(number: int) -> str:
    return "imported" if not number else f"place {number + 1}"


def _shown(module: ShadowModule, package: Package | None) -> str:
    return f"{_version(package)}, {module.path}"


def _removal(facts: HostFacts, python: Interpreter, first: ShadowModule) -> tuple[str, Fix]:
    """The reason why the first folder is searched, and how to remove it from the search."""
    entries = [entry for entry in facts.variables.get("PYTHONPATH", "").split(":") if entry]
    left = [entry for entry in entries if posixpath.join(python.working_directory, entry).rstrip("/") != first.entry]
    if left != entries:
        command = export("PYTHONPATH", ":".join(left)) if left else Unset(("PYTHONPATH",))
        return f"PYTHONPATH ({first.entry})", Fix("Remove the folder from PYTHONPATH.", (command,))
    if first.entry == python.user_site:
        summary = "Remove that torch; to keep it, exclude the user's site-packages: PYTHONNOUSERSITE=1."
        return f"the user's site-packages ({first.entry})", Fix(summary, (uninstall(facts, "torch"),))
    summary = f"Remove the torch in {first.entry}, or the entry that adds that folder (a .pth file)."
    search = run("grep", "-rlF", "--include=*.pth", option("--regexp", first.entry), path(python.purelib))
    return first.entry, Fix(summary, (search,))


def _weight_of_hiding(facts: HostFacts, first: Package | None, hidden: Package | None) -> Severity:
    """An error when the import fails, or the imported one is a CPU build and the hidden one is not.

    With other symptoms it is a note: another cause than this has them. Without any it will surprise someone.
    """
    seen = symptoms(facts)
    cpu = "torch:cpu-build" in seen and hidden is not None and hidden.build not in {"", "cpu"}
    if import_failed(facts) or cpu:
        return Severity.ERROR
    same = first is not None and hidden is not None and (first.version, first.build) == (hidden.version, hidden.build)
    return Severity.NOTE if seen or same else Severity.WARNING


@cause(
    "B08",
    "no file in the working directory shadows torch or triton",
    layer=Layer.PYTHON,
    explains=("torch:import", "kernel:failed"),
    why="`python -c` and `python -m` search the working directory first, and a script its own folder. A torch.py or a "
    "folder torch there is imported instead of the library.",
    example="No module named 'torch._C', started in a checkout of pytorch",
    fix="Rename the file, or start from another folder.",
    sources="pytorch#574",
    tested="real folders and files, really imported, and the fix run",
)
def shadowed_by_folder(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The first torch or triton of the search is in the working directory; a copy that was built there is no fault."""
    python, torch = need(facts.interpreter), installed(facts).torch
    for name in ("torch", "triton"):
        modules = [module for module in installed(facts).modules if module.name == name]
        if len(modules) < 2 or modules[0].entry:
            continue
        file = modules[0].path
        if name == "torch" and torch and file.startswith(f"{torch.folder}/") and not import_failed(facts):
            continue
        library, program = ("torch", IMPORT_TORCH) if name == "torch" else ("Triton", IMPORT_TRITON)
        yield Finding(
            f"{file} is imported instead of {library}: the working directory comes first",
            (
                Evidence("imported", file, "the working directory"),
                Evidence("not imported", modules[1].path, modules[1].entry),
            ),
            Fix(
                "Start from another folder, or rename it; the command removes the working directory from the search "
                "path.",
                (python_command(facts, _without_folder(python), "-c", program),),
            ),
        )


def _without_folder(python: Interpreter) -> str:
    """The option that leaves out the working directory: -P, and before 3.11 -I, which leaves out PYTHONPATH, too."""
    return "-P" if numbers(python.version)[:2] >= (3, 11) else "-I"


@cause(
    "B11",
    "torch and its libraries are in the same site-packages",
    layer=Layer.FILES,
    explains=("torch:import",),
    why="On systems with lib64, a virtual environment links lib64 to lib. Where lib64 is a separate folder, platform "
    "wheels are installed in one and pure ones in the other, and torch searches for NVIDIA's libraries next to itself.",
    example="libcudnn.so.8: cannot open shared object file, with lib/python3.9 and lib64/python3.9 both in use",
    fix="Recreate the environment.",
    sources="pytorch#104259",
    tested="facts; an environment with two real folders",
)
def split_library_folders(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """One of torch and NVIDIA's libraries is under lib, the other under lib64 of the same prefix."""
    python, torch = need(facts.interpreter), installed(facts).named("torch")
    strays = _strays(facts)
    if torch is None or not strays:
        return
    folder = strays[0].folder
    if {_library_folder(python, torch.folder), _library_folder(python, folder)} != {"lib", "lib64"}:
        return
    # An import that was not tried fails if nothing finds a library.
    broken = import_failed(facts) or (not was_imported(facts) and bool(missing_of_torch(facts)))
    yield Finding(
        f"torch is in {torch.folder}, but {strays[0].name} is in {folder}: lib64 is not a link to lib",
        (Evidence("torch", torch.folder), *(Evidence(one.name, one.folder) for one in strays[:3]), *_unfound(facts)),
        new_environment(facts, python.release),
        severity=Severity.ERROR if broken else Severity.NOTE,
    )


@cause(
    "B12",
    "the loader finds NVIDIA's libraries from torch's location",
    layer=Layer.FILES,
    explains=("torch:import",),
    why="torch's libraries have DT_RPATH with paths relative to themselves, ../../nvidia/...: the folder nvidia must "
    "be next to torch. Build systems that install each distribution in a separate folder break that.",
    example="libcudart.so.12: cannot open shared object file, under Bazel, Pants or PEX",
    fix="Install NVIDIA's libraries into the same site-packages, or add their folders to LD_LIBRARY_PATH.",
    sources="pytorch#131284",
    tested="environments with torch and its libraries in two folders, seen by the real loader; no CUDA torch imported",
)
def not_next_to_torch(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """Needed libraries of NVIDIA's that nothing finds, though no file of an installed distribution is gone."""
    torch, unfound = installed(facts).torch, _unfound_names(facts)
    gone = {path.rpartition("/")[2] for finding in findings(facts, "WHL702") for path in finding.paths}
    unfound = [name for name in unfound if name not in gone | damaged_files(facts)]
    if torch is None or not unfound or any(True for _ in split_library_folders(facts, None)):
        return
    owners = {name: bringer(facts, name) for name in unfound}
    elsewhere = [one for one in _strays(facts) if one.name in owners.values()]
    named = any(name in complaints(facts) for name in unfound)
    lost = {library.soname for library in missing_of_torch(facts)}.intersection(unfound)
    if not elsewhere and not (named and import_failed(facts)):
        return  # not installed at all: B03 reports that
    evidence = [
        Evidence("not found", ", ".join(unfound[:5]), "the loader"),
        Evidence("searched", ", ".join(torch.rpath[:6])),
    ]
    evidence += [Evidence(one.name, one.folder) for one in elsewhere[:5]]
    fix = Fix("Add the folders of the libraries to LD_LIBRARY_PATH, or reinstall torch together with them.")
    if elsewhere:
        fix = Fix(
            "Install them next to torch; where a build system decides the layout, add their folders to "
            "LD_LIBRARY_PATH.",
            again(facts, *(one.name for one in elsewhere)),
        )
    yield Finding(
        f"the loader does not find {', '.join(unfound[:3])} from {torch.folder}/lib"
        + (f": {elsewhere[0].name} is in {elsewhere[0].folder}" if elsewhere else ""),
        tuple(evidence),
        fix,
        severity=Severity.ERROR if named or lost or import_failed(facts) else Severity.NOTE,
    )


def _strays(facts: HostFacts) -> list[Package]:
    """The libraries of NVIDIA's that are in another folder of imports than torch."""
    torch = installed(facts).torch
    home = torch.folder.rpartition("/")[0] if torch else ""
    return [one for one in installed(facts).packages if one.name.startswith("nvidia-") and home and one.folder != home]


def _library_folder(python: Interpreter, folder: str) -> str:
    """The first part of a folder within the environment: lib or lib64."""
    return folder.removeprefix(f"{python.prefix}/").partition("/")[0] if folder.startswith(f"{python.prefix}/") else ""


def _unfound_names(facts: HostFacts) -> list[str]:
    """The libraries of NVIDIA's that torch's own need and the loader does not find, by itself or at all."""
    traced = {} if isinstance(facts.loader, Unavailable) else facts.loader.resolved
    names = [library.soname for library in missing_of_torch(facts)] + [
        name for name, path in traced.items() if not path
    ]
    return [
        name
        for name in dict.fromkeys(names)
        if (bringer(facts, name) or re.match(r"libcu|libnv|libnccl", name)) and not name.startswith(_UNDECLARED)
    ]


def _unfound(facts: HostFacts) -> Iterator[Evidence]:
    if names := _unfound_names(facts):
        yield Evidence("not found", ", ".join(names[:5]), "the loader")
