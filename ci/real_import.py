"""Installs packages into a virtual environment and imports them in a child process: the truth for the experiments in
ci/.

Used by ci/abi_pairs.py and ci/closures.py. The child sees only that environment: no CUDA variables, no LD_LIBRARY_PATH
but the folder of a stub driver. A CUDA toolkit of the host would hide a missing library. The child therefore runs in a
mount namespace in which an empty folder covers every folder of the linker's cache with a CUDA library; without that
right, `unmasked` names the remaining folders.

The stub driver (libcuda.so.1, libnvidia-ml.so.1) exports each cu and nvml name that a file of the environment needs;
every function returns "no device". Libraries loaded only for a GPU are not seen here.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROBE = Path(__file__).with_name("import_probe.py")
TOOLKIT = re.compile(
    r"lib(?:cudart|cublas|cudnn|cupti|nvrtc|nvvm|nvJitLink|cufft|curand|cusparse|cusolver|nccl|cufile)\b"
)
FOREIGN = ("UV_FIND", "UV_EXTRA", "UV_INDEX", "UV_DEFAULT", "VIRTUAL_ENV")  # other builds of a package
INSTALL_SECONDS = 1500
PROBE_SECONDS = 1800  # each of tensorflow's hundred files is opened twice, with a gigabyte that it needs
UNDEFINED = re.compile(r"undefined symbol: ([^\s,()]+)")
ABSENT = re.compile(r"([\w.+-]+\.so[\w.]*): cannot open shared object file")
UNFOUND = re.compile(r'Failure finding "(\S+\.so[\w.]*)')  # cuda-pathfinder
VERSION = re.compile(r"version `([^']+)' not found")


@dataclass(frozen=True)
class Stub:
    """A library compiled for the import: its exported names, their version, and their return value."""

    names: str
    version: str = ""
    answer: int = 0
    always: tuple[str, ...] = ()  # names that Python code looks up


NO_DEVICE, DRIVER_NOT_LOADED = 100, 9
DRIVER: Mapping[str, Stub] = {
    "libcuda.so.1": Stub(r"cu(?!File|TENSOR|DNN|BLAS)[A-Z]\w+", answer=NO_DEVICE),
    "libnvidia-ml.so.1": Stub(
        r"nvml\w+", answer=DRIVER_NOT_LOADED, always=("nvmlInit", "nvmlInit_v2", "nvmlInitWithFlags", "nvmlShutdown")
    ),
}


@dataclass(frozen=True)
class Loaded:
    """The result of a real import; `error` if nothing could be imported (the install or the child failed)."""

    error: str
    answer: dict[str, Any]
    installed: tuple[str, ...] = ()


def install(requirements: list[str], environment: Path, python: str, *extra: str) -> str:
    """Installs with uv into a virtual environment, made on the first call; empty, or the end of uv's message."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
    made = ["uv", "venv", "--quiet", "--no-config", "--python", interpreter(python), str(environment)]
    command = ["uv", "pip", "install", "--quiet", "--no-config", "--only-binary", ":all:", *extra, *requirements]
    for step in (made, [*command, "--python", str(environment / "bin" / "python")]):
        if step is made and (environment / "bin").exists():
            continue
        done = subprocess.run(
            step, check=False, capture_output=True, text=True, timeout=INSTALL_SECONDS, env=variables
        )  # fmt: skip
        if done.returncode:
            return done.stderr.strip()[-1500:] or f"uv ended with {done.returncode}"
    return ""


def uninstall(requirement: str, environment: Path) -> None:
    """Remove one package, so that the environment serves the next one that needs the same torch."""
    name = re.split(r"[\[=]", requirement)[0]
    command = ["uv", "pip", "uninstall", "--quiet", "--python", str(environment / "bin" / "python"), name]
    subprocess.run(command, check=False, capture_output=True, timeout=INSTALL_SECONDS)


def interpreter(python: str) -> str:
    """The path of an interpreter of that version. Raises SystemExit when uv finds none."""
    done = subprocess.run(["uv", "python", "find", "--no-project", python], check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"no Python {python}: `uv python install {python}`")
    return done.stdout.strip()


def probe(
    environment: Path,
    python: str,
    distribution: str,
    first: list[str],
    modules: list[str],
    stubs: Mapping[str, Stub] = DRIVER,
) -> Loaded:
    """Imports in a child with a stub driver and without the host's CUDA libraries."""
    target = environment / "lib" / f"python{python}" / "site-packages"
    with tempfile.TemporaryDirectory(prefix="stub") as name:
        folder = Path(name)
        stub_libraries(target, folder, stubs)
        (folder / "empty").mkdir()
        variables = {"PATH": "/usr/bin:/bin", "HOME": name, "LD_LIBRARY_PATH": name, "LC_ALL": "C.UTF-8"}
        cached = f"pycache_prefix={environment.parent / 'bytecode'}"
        inner = [str(environment / "bin" / "python"), "-I", "-X", cached, str(PROBE)]
        inner += [str(target), distribution, ",".join(first), ",".join(modules)]
        hidden = host_cuda_folders()
        masks = " && ".join(f"mount --bind '{name}/empty' '{covered}'" for covered in hidden)
        outer = ["unshare", "--mount", "sh", "-c", f'{masks} && exec "$@"', "sh"] if hidden and may_mask() else []
        try:
            done = subprocess.run(
                [*outer, *inner],
                check=False, capture_output=True, text=True, errors="replace",
                timeout=PROBE_SECONDS, env=variables, cwd=name,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Loaded("the import did not end", {})
    try:
        answer = json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return Loaded(f"the child ended with {done.returncode}: {done.stderr.strip()[-800:]}", {})
    installed = tuple(sorted(path.name.removesuffix(".dist-info") for path in target.glob("*.dist-info")))
    return Loaded("", answer, installed)


def host_cuda_folders() -> list[str]:
    """The folders of the linker's cache that have CUDA libraries, except system folders."""
    listed = subprocess.run(["/sbin/ldconfig", "-p"], check=False, capture_output=True, text=True).stdout
    paths = {line.split("=> ")[1].strip() for line in listed.splitlines() if "=> " in line and TOOLKIT.search(line)}
    folders = {str(Path(path).resolve().parent) for path in paths}
    return sorted(folder for folder in folders if "cuda" in folder.lower())


def may_mask() -> bool:
    """Whether this user may cover a folder in a mount namespace."""
    return subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode == 0


def unmasked() -> list[str]:
    """The host's CUDA folders that the child sees: faults of packages may be hidden by them."""
    return [] if may_mask() else host_cuda_folders()


def stub_libraries(target: Path, folder: Path, stubs: Mapping[str, Stub]) -> None:
    """Compiles libraries by name, with the functions that the files of the target need of them."""
    needed: set[tuple[str, str]] = set()
    files = [str(path) for path in target.rglob("*.so*") if path.is_file()]
    for start in range(0, len(files), 200):
        done = subprocess.run(
            ["nm", "-D", "--undefined-only", "--format=posix", *files[start : start + 200]],
            check=False, capture_output=True, text=True, errors="replace",
        )  # fmt: skip
        words = [line.split()[0].partition("@") for line in done.stdout.splitlines() if line.strip()]
        needed |= {(name, version.lstrip("@")) for name, _, version in words}
    for library, stub in stubs.items():
        wanted = {name for name, version in needed if version == stub.version and re.fullmatch(stub.names, name)}
        names = sorted(wanted.union(stub.always))
        source, script = folder / "stub.c", folder / "stub.map"
        source.write_text("".join(f"int {name}(void) {{ return {stub.answer}; }}\n" for name in names) or "int stub;\n")
        script.write_text(f"{stub.version} {{ *; }};\n")
        linked = ["cc", "-shared", "-fPIC", f"-Wl,-soname,{library}", "-o", str(folder / library), str(source)]
        linked += [f"-Wl,--version-script={script}"] if stub.version else []
        subprocess.run(linked, check=True)


def cause(text: str) -> str:
    """The library, symbol or version that a linker's message names; empty for another message."""
    for pattern in (UNDEFINED, ABSENT, VERSION, UNFOUND):
        found = pattern.search(text)
        if found:
            return found[1]
    return ""


def own_files(loaded: Loaded) -> list[str]:
    """The distribution's files that the import itself opened, in the order of the first try."""
    native = loaded.answer.get("after_modules", {})
    tried = [path for path in loaded.answer.get("tried", []) if path in native]
    return tried or [path for path in loaded.answer.get("mapped", []) if path in native]


def scratch(root: Path, name: str) -> Path:
    """An empty folder for one install."""
    folder = root / re.sub(r"[^\w.+-]+", "_", name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
