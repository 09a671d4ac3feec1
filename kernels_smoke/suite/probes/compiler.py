"""Can Triton build its launcher? At run time it needs a C compiler, Python.h, and libcuda.so.1 to link with.

Triton 3.3 to 3.9 compiles ``backends/nvidia/driver.c`` into an extension module at the first launch, and keeps it in
its cache (runtime/build.py, backends/nvidia/driver.py). Up to 3.6 it also compiles a launcher for each new signature of
a kernel, so that a missing compiler may show only weeks later.
"""

import importlib
import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from kernels_smoke.suite.advice import Advice, command, unset
from kernels_smoke.suite.probes.answer import Answer, first_line

NAME = "kernels_smoke_probe"
SOURCE = f"""\
#include <Python.h>
static struct PyModuleDef definition = {{PyModuleDef_HEAD_INIT, "{NAME}", NULL, -1, NULL}};
PyMODINIT_FUNC PyInit_{NAME}(void) {{ return PyModule_Create(&definition); }}
"""
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
# What brings a compiler, the C library's headers, and Python's, by package manager.
AS_ROOT = "as root"
PACKAGES = {
    "apt-get": (
        command("apt-get", "update", note=AS_ROOT),
        command("apt-get", "install", "-y", "gcc", "libc6-dev", f"{PYTHON}-dev", note=AS_ROOT),
    ),
    "dnf": (command("dnf", "install", "-y", "gcc", f"{PYTHON}-devel", note=AS_ROOT),),
    "zypper": (command("zypper", "install", "-y", "gcc", f"{PYTHON.replace('.', '')}-devel", note=AS_ROOT),),
    "pacman": (command("pacman", "-S", "--noconfirm", "gcc", "python", note=AS_ROOT),),
}


def c_compiler() -> Answer:
    """Find a compiler and Python.h as Triton does, build a module of three lines with its options, and load it."""
    compiler = os.environ["CC"] if "CC" in os.environ else shutil.which("gcc") or shutil.which("clang")
    headers = Path(_headers())
    evidence = {"compiler": compiler or "none", "CC": os.environ.get("CC", "not set"), "Python.h in": str(headers)}
    if compiler is None:
        message = "there is no C compiler (neither CC, nor gcc, nor clang); Triton builds its launcher with one"
        return Answer("fail", message, evidence, _packages())
    with tempfile.TemporaryDirectory(prefix="kernels-smoke-") as folder:
        source, module = Path(folder, f"{NAME}.c"), Path(folder, NAME + sysconfig.get_config_var("EXT_SUFFIX"))
        source.write_text(SOURCE, encoding="utf-8")
        build = [compiler, str(source), "-O3", "-shared", "-fPIC", "-Wno-psabi", "-o", str(module), f"-I{headers}"]
        try:
            built = subprocess.run(build, capture_output=True, text=True, check=False, timeout=60, errors="replace")
        except (OSError, subprocess.SubprocessError) as error:
            fix = (
                (unset("CC", "Triton takes its value as the name of one program, without options"),)
                if "CC" in os.environ
                else ()
            )
            message = f"the C compiler {compiler!r} does not run: {error}"
            return Answer("fail", message, evidence, (*fix, *_packages()))
        if built.returncode:
            return _refused(compiler, built.stderr, headers, evidence)
        if not os.statvfs(folder).f_flag & os.ST_NOEXEC:
            try:
                _load(module)
            except ImportError as error:
                message = f"what {compiler} builds cannot be loaded by this Python: {error}"
                fix = (unset("CC", "when it names a compiler for another machine"),)
                return Answer("fail", message, evidence, fix)
    return Answer("pass", f"{compiler} builds modules for this Python", evidence)


def _refused(compiler: str, complaint: str, headers: Path, evidence: dict[str, str]) -> Answer:
    evidence = evidence | {"complaint": complaint.strip()[-2000:]}
    if not (headers / "Python.h").is_file():
        message = f"Python.h is not in {headers}: Triton cannot build its launcher without Python's headers"
        return Answer("fail", message, evidence, _packages(of_python=True))
    message = f"{compiler} cannot build a Python module of three lines: {_first_error(complaint)}"
    return Answer("fail", message, evidence, _packages())


def _first_error(complaint: str) -> str:
    return next((line for line in complaint.splitlines() if "error" in line), first_line(complaint))


def _headers() -> str:
    """Where Python.h must be. Triton takes Debian's scheme for packages in /usr/local as the one for those in /usr."""
    scheme = sysconfig.get_default_scheme()
    return sysconfig.get_paths("posix_prefix" if scheme == "posix_local" else scheme)["include"]


def _packages(*, of_python: bool = False) -> tuple[Advice, ...]:
    """How a compiler, and Python's headers, are installed here."""
    if of_python and sys.base_prefix != "/usr":
        return (f"install a Python with its headers: the one in {sys.base_prefix} came without them",)
    found = next((commands for manager, commands in PACKAGES.items() if shutil.which(manager)), ())
    return found or (f"install gcc, the C library's headers, and the headers of {PYTHON}",)


def _load(path: Path) -> None:
    loader = importlib.machinery.ExtensionFileLoader(NAME, str(path))
    spec = importlib.util.spec_from_file_location(NAME, path, loader=loader)
    assert spec is not None  # noqa: S101  # a loader was given
    loader.create_module(spec)


def triton_launcher() -> Answer:
    """Let Triton build its own module, link it with libcuda.so.1, and load it: what the first launch would do.

    Needs a GPU, and does not start CUDA. It fills Triton's cache, so that no kernel waits for the compiler.
    """
    try:
        utilities = importlib.import_module("triton.runtime").driver.active.utils
    except Exception as error:  # assertions, compilers and linkers: each is this probe's answer
        message = f"Triton cannot build its launcher: {first_line(error) or type(error).__name__}"
        evidence = {"error": f"{type(error).__name__}: {error}"[-2000:]}
        if "libcuda" in str(error) or "ldconfig" in str(error):
            fix = (
                command("sudo", "ldconfig", note="Triton asks /sbin/ldconfig -p for libcuda.so.1"),
                "or name the folder of libcuda.so.1 in TRITON_LIBCUDA_PATH (see the probe driver)",
            )
            return Answer("fail", message, evidence, fix)
        return Answer("fail", message, evidence, ("see the probes c_compiler and jit_cache",))
    return Answer("pass", "Triton's launcher is built and loaded", {"module": type(utilities).__name__})
