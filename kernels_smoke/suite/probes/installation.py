"""Probes that need no GPU: is torch the right one, does Triton fit it, can Triton assemble, and keep, what it makes."""

import importlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

from kernels_smoke.suite.advice import command, doctor, export, operand, pip, unset
from kernels_smoke.suite.probes.answer import Answer, first_line

OLDEST = {"torch": (2, 6), "triton": (3, 3)}
CACHE_ROOM = 64 << 20  # bytes: a kernel keeps some 0.3 MB there, in every form between Triton's and the machine's


def torch_build(device: str) -> Answer:
    """Is torch there, new enough, and, when a GPU is to be used, built for CUDA?"""
    try:
        torch = importlib.import_module("torch")
    except BaseException as error:  # a broken installation may raise anything, SystemExit too
        return not_importable("torch", f"{type(error).__name__}: {error}")
    built_for = torch.version.cuda or (f"ROCm {torch.version.hip}" if torch.version.hip else "the CPU alone")
    evidence = {"version": torch.__version__, "built for": f"CUDA {built_for}" if torch.version.cuda else built_for}
    evidence["path"] = str(torch.__file__)
    if (old := _too_old("torch", torch.__version__)) is not None:
        return Answer("fail", old, evidence, (doctor(),))
    if device == "cuda" and not torch.version.cuda:
        message = (
            f"torch {torch.__version__} is built for {built_for}; there is an NVIDIA GPU, and it needs a CUDA build"
        )
        return Answer("fail", message, evidence, (doctor(),))
    return Answer("pass", f"torch {torch.__version__}, built for {evidence['built for']}", evidence)


def triton_version(device: str) -> Answer:
    """Is Triton there, new enough, the one that this torch asks for, and does it have a back end for the GPU?"""
    try:
        triton = importlib.import_module("triton")
        backends = sorted(importlib.import_module("triton.backends").backends)
    except BaseException as error:
        return not_importable("triton", f"{type(error).__name__}: {error}")
    wanted = wanted_triton()
    evidence = {"version": triton.__version__, "path": str(triton.__file__), "back ends": ", ".join(backends)}
    evidence["torch asks for"] = wanted or "no version"
    if (old := _too_old("triton", triton.__version__)) is not None:
        return Answer("fail", old, evidence, (doctor(),))
    if device == "cuda" and "nvidia" not in backends:
        message = f"triton {triton.__version__} was built without its back end for NVIDIA GPUs"
        again = pip("install", "--force-reinstall", f"triton=={_public(triton.__version__)}")
        return Answer("fail", message, evidence, (again,))
    if wanted and _public(wanted) != _public(triton.__version__):
        message = f"triton {triton.__version__} is installed, and this torch asks for {wanted}: torch.compile may break"
        evidence["severity"] = "warning"  # the suite's kernels prove this Triton by themselves
        return Answer("fail", message, evidence, (pip("install", f"triton=={wanted}"),))
    return Answer("pass", f"triton {triton.__version__}" + (", as torch asks for" if wanted else ""), evidence)


def not_importable(package: str, said: str) -> Answer:
    """Why ``import torch`` or ``import triton`` failed, from what the exception ``said`` (type and text).

    Nothing can be checked without them.
    """
    evidence = {"interpreter": sys.executable, "error": said[-2000:]}
    absent = found[1] if (found := re.match(r"ModuleNotFoundError: No module named '([^']+)'", said)) else ""
    if absent == package:
        message = f"{package} is not installed in this environment"
        return Answer("error", message, evidence, (doctor(),))
    message = f"{package} is installed and cannot be imported: {first_line(said)}"
    fix = [doctor()]
    project = absent.partition(".")[0]
    if project.isidentifier() and project != package:
        fix = [pip("install", project)]
    if ".so" in said and (folders := os.environ.get("LD_LIBRARY_PATH")):
        evidence["LD_LIBRARY_PATH"] = folders
        fix.insert(0, unset("LD_LIBRARY_PATH", "its libraries go before those that the wheels bring"))
    return Answer("error", message, evidence, tuple(fix))


def wanted_triton() -> str:
    """The version of Triton that the metadata of the installed torch pins; "" when it pins none, as CPU builds do."""
    try:
        requirements = importlib.metadata.requires("torch") or []
    except importlib.metadata.PackageNotFoundError:
        return ""
    for requirement in requirements:
        if found := re.match(r"(?:pytorch-)?triton\s*\(?==\s*([\w.+!-]+)", requirement):
            return found[1]
    return ""


def _public(version: str) -> str:
    return version.partition("+")[0]


def _too_old(package: str, version: str) -> str | None:
    number = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if number >= OLDEST[package]:
        return None
    return f"{package} {version} is too old: these kernels need {'.'.join(map(str, OLDEST[package]))} or newer"


def jit_cache() -> Answer:
    """Can Triton keep what it compiles? The steps of its cache: a folder, a file under a passing name, a rename."""
    folder = cache_folder()
    evidence = {"folder": str(folder)}
    key, content = folder / f"kernels-smoke-{uuid.uuid4().hex}", os.urandom(1 << 20)
    fix = (
        export("TRITON_CACHE_DIR", ["mktemp", "--directory"], "any folder that this user may write"),
        command("ls", "-ld", operand(folder), note="whose it is"),
        command("df", "-h", operand(folder), note="how full it is"),
    )
    try:
        key.mkdir(parents=True)
        passing, kept = key / f"tmp.pid_{os.getpid()}", key / "kernel.cubin"
        passing.write_bytes(content)
        passing.replace(kept)
        same = kept.read_bytes() == content
        free, loads = shutil.disk_usage(folder).free, not os.statvfs(folder).f_flag & os.ST_NOEXEC
    except OSError as error:
        message = (
            f"Triton's cache {folder} cannot be written: {error.strerror or error}; every kernel is compiled there"
        )
        return Answer("fail", message, evidence | {"error": f"{type(error).__name__}: {error}"}, fix)
    finally:
        shutil.rmtree(key, ignore_errors=True)
    evidence["free"] = f"{free >> 20} MiB"
    if not same:
        return Answer("fail", f"Triton's cache {folder} does not give back what was written to it", evidence, fix)
    if not loads:
        message = f"Triton's cache {folder} is mounted noexec: the launcher that Triton builds there cannot be loaded"
        return Answer("fail", message, evidence, fix[:1])
    if free < CACHE_ROOM:
        message = f"Triton's cache {folder} has {free >> 20} MiB left; the suite needs {CACHE_ROOM >> 20} MiB"
        return Answer("fail", message, evidence, fix)
    return Answer("pass", f"Triton's cache {folder} can be written", evidence)


def cache_folder() -> Path:
    """Triton's cache of kernels, found as Triton does (3.3 to 3.9: runtime/cache.py, knobs.py)."""
    if (folder := os.environ.get("TRITON_CACHE_DIR")) is not None:
        return Path(folder)
    home = os.environ.get("TRITON_HOME", os.path.expanduser("~"))
    return Path(home) / ".triton" / "cache"


def ptxas(target: str) -> Answer:
    """Does the assembler that Triton takes for ``target`` (sm_90) run, and does it know that architecture?"""
    number = int(target.removeprefix("sm_"))
    try:
        compiler = importlib.import_module("triton.backends.nvidia.compiler")
        tool, architecture = _tool(compiler, number), compiler.sm_arch_from_capability(number)
        listed = subprocess.run([tool, "--help"], capture_output=True, text=True, check=True, timeout=30).stdout
        version = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError, RuntimeError) as error:
        denied = isinstance(error, PermissionError) and bool(error.filename)
        fix = [command("chmod", "+x", operand(error.filename))] if denied else []  # type: ignore[union-attr]  # of an OSError
        fix.append(doctor())
        message = f"Triton's ptxas does not run: {first_line(error)}"
        return Answer("fail", message, {"error": str(error)[-2000:]}, tuple(fix))
    release = found[1] if (found := re.search(r"release ([\d.]+)", version)) else "of unknown version"
    evidence = {"ptxas": tool, "release": release, "architecture": architecture}
    evidence |= {name: value for name, value in os.environ.items() if re.fullmatch(r"TRITON_PTXAS\w*_PATH", name)}
    if not re.search(rf"\b{architecture}\b", listed):
        message = f"Triton's ptxas ({release}) does not know {architecture}: no kernel can be built for it"
        newer = (
            doctor("Triton comes with torch; sm_110 came with 3.7.1"),
            export(_variable(tool), "/usr/local/cuda/bin/ptxas", f"of a CUDA toolkit that knows {target}"),
        )
        return Answer("fail", message, evidence, newer)
    return Answer("pass", f"ptxas {release} runs and knows {architecture}", evidence)


def _tool(compiler: object, number: int) -> str:
    """The path of ptxas for the architecture ``number``, as each Triton shows it."""
    get = compiler.get_ptxas  # type: ignore[attr-defined]  # a module that is only known when it is there
    tool = get(number) if get.__code__.co_argcount else get()  # 3.4 and 3.5 had one ptxas for all
    return str(getattr(tool, "path", None) or tool[0])  # 3.3 answers (path, version)


def _variable(tool: str) -> str:
    """The environment variable by which Triton takes another ptxas instead of ``tool``."""
    named = (name for name, value in os.environ.items() if value == tool and name.startswith("TRITON_PTXAS"))
    return next(named, f"TRITON_{Path(tool).name.upper().replace('-', '_')}_PATH")
