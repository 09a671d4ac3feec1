"""What the dynamic loader does with torch's libraries, in its own words, and which driver libraries there are.

The loader of the interpreter is asked to trace the interpreter with torch's libraries preloaded, in the user's
environment, as ldd does: nothing of them is run, and neither DT_RPATH nor a library that Python has loaded already is
missed.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from wheel_checks.facts.elf.file import read_elf_file
from wheel_checks.facts.host.probes import ChildEnd
from wheel_checks.facts.host.software import Installed, Interpreter, Loader, TorchFiles
from wheel_checks.formats.elf.file import ElfFacts, Part
from wheel_checks.model import Unavailable
from wheel_checks.sources.file_tree import FileTree
from wheelproof.doctor.children import Budget, run_child
from wheelproof.doctor.probes.cuda_libraries import cudnn_libraries, driver_libraries, read_cache
from wheelproof.doctor.probes.files import text_of

SECONDS = 10.0
LONGEST_ERROR = 2_000  # characters

# torch opens the first of these before its extension module: what it brings is loaded when the others need it.
_OPENED_FIRST = ("libtorch_global_deps.so", "libtorch_cuda.so", "libtorch_hip.so", "libtorch_cpu.so")
_RESOLVED = re.compile(r"^\t(\S+) => (?:(/.*) \(0x[0-9a-f]+\)|not found)$", re.MULTILINE)
_COMPLAINT = re.compile(
    r"error while loading|not found \(required by|cannot be preloaded|: undefined|: invalid|too short"
)


def read_loader(
    interpreter: Interpreter | Unavailable,
    installed: Installed | Unavailable,
    root: str = "/",
    environ: Mapping[str, str] | None = None,
    budget: Budget | None = None,
) -> Loader:
    """The loader's facts for the torch of ``installed``, with the variables ``environ``. Below another ``root`` nothing
    is traced: only the files are inspected.
    """
    environ = os.environ if environ is None else environ
    tree = FileTree(os.path.realpath(root))
    machine = "" if isinstance(interpreter, Unavailable) else interpreter.machine
    cache = read_cache(tree, machine or os.uname().machine)
    library_path = [folder for folder in re.split("[:;]", environ.get("LD_LIBRARY_PATH", "")) if folder]
    torch = None if isinstance(installed, Unavailable) else installed.torch
    resolved: dict[str, str] = {}
    error = ""
    if torch and tree.is_this_machine and not isinstance(interpreter, Unavailable):
        resolved, error = _trace(torch, interpreter, environ, budget or Budget(SECONDS))
    return Loader(
        resolved=resolved,
        cuda_libraries=driver_libraries(tree, library_path, cache, machine or os.uname().machine),
        has_ldconfig=tree.is_file("/sbin/ldconfig"),
        cached_libcuda="libcuda.so.1" in cache,
        preload_file=" ".join(text_of(Path(tree.outside("/etc/ld.so.preload")), 4096).split()),
        error=error,
        cudnn=cudnn_libraries(tree, torch.rpath if torch else (), library_path, cache),
    )


def _trace(
    torch: TorchFiles, interpreter: Interpreter, environ: Mapping[str, str], budget: Budget
) -> tuple[dict[str, str], str]:
    """The file for every soname, "" for one that is not found, and what the loader complained of."""
    program = os.path.realpath(interpreter.path)
    elf, _ = read_elf_file(FileTree(), program, {Part.INTERPRETER})
    loader = elf.interpreter if isinstance(elf, ElfFacts) else None
    if not isinstance(loader, str):
        return {}, f"{program} names no dynamic loader"
    resolved: dict[str, str] = {}
    errors = []
    named = (f"{torch.folder}/lib/{name}" for name in _OPENED_FIRST)
    for library in [path for path in named if os.path.isfile(path)][:2]:
        # LD_PRELOAD is split at spaces and colons, and cannot name such a path: then the library is traced alone.
        alone = bool(re.search(r"[\s:]", library))
        environment = {**environ, "LD_TRACE_LOADED_OBJECTS": "1"}
        if not alone:
            environment["LD_PRELOAD"] = f"{environ.get('LD_PRELOAD', '')} {library}".strip()
        command = [loader, library if alone else program]
        end, output = run_child(command, deadline=budget.step(SECONDS), environment=environment)
        text = output.decode("utf-8", "replace")
        for match in _RESOLVED.finditer(text):
            resolved.setdefault(match[1], _tidy(match[2]) if match[2] else "")
        errors += _complaints(end, text)
    return resolved, "\n".join(dict.fromkeys(errors))[:LONGEST_ERROR]


def _tidy(path: str) -> str:
    """The path without ``..``; where these lead through a link, the real one."""
    text, real = os.path.normpath(path), os.path.realpath(path)
    return text if os.path.realpath(text) == real else real


def _complaints(end: ChildEnd, output: str) -> list[str]:
    if end.hang:
        return [f"the loader did not finish within {end.seconds:.0f} s"]
    if end.signal:
        return [f"the loader was killed by {end.signal} while it mapped the libraries"]
    lines = [line.strip() for line in (*end.output.splitlines(), *output.splitlines())]
    told = [line for line in lines if _COMPLAINT.search(line)]
    return told or ([end.output or f"the loader exited with code {end.exit_code}"] if end.exit_code else [])
