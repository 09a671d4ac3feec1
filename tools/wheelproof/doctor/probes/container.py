"""Whether this is a container, which one, and what its sandbox keeps from CUDA."""

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from wheel_checks.errors import FormatError
from wheel_checks.facts.host.machine import CdiSpecification, Container
from wheel_checks.formats.documents import parse_toml
from wheelproof.doctor.children import Budget, run_child
from wheelproof.doctor.probes.files import LARGEST, found_in, text_of

_CDI_FOLDERS = ("etc/cdi", "var/run/cdi", "run/cdi")
_RUNTIME = "etc/nvidia-container-runtime/config.toml"
_TOOLKIT = ("usr/bin/nvidia-ctk", "usr/bin/nvidia-container-runtime", "usr/bin/nvidia-container-cli")
_CGROUPS = {  # what is in /proc/1/cgroup or /proc/self/mountinfo
    "kubernetes": re.compile(r"kubepods|/var/lib/kubelet/"),
    "docker": re.compile(r"/docker[-/]|/var/lib/docker/"),
    "podman": re.compile(r"libpod"),
    "containerd": re.compile(r"cri-containerd|/containerd/"),
    "lxc": re.compile(r"/lxc[./]"),
}

# Tried in a child: a seccomp filter may answer with SIGSYS. CUDA needs both (catalogue E09). Nothing is changed: the
# name that is written is the one that was read.
_TRIALS = """
import errno, os
def tell(name, error):
    print(name, errno.errorcode.get(error.errno, error.errno) if error else "", sep="=", flush=True)
def trial(name, work):
    try:
        work()
    except OSError as error:
        tell(name, error)
    else:
        tell(name, None)
def memory_file():
    if hasattr(os, "memfd_create"):
        return os.close(os.memfd_create("wheelproof"))
    import ctypes  # a Python built with glibc 2.17 lacks os.memfd_create, such as those of uv and conda
    create = getattr(ctypes.CDLL(None, use_errno=True), "memfd_create", None)
    number = create(b"wheelproof", 0) if create else None
    if number == -1:
        raise OSError(ctypes.get_errno(), "memfd_create")
    if number is not None:
        os.close(number)
def comm():
    path = "/proc/self/task/%d/comm" % os.getpid()  # of the first thread
    with open(path, "rb") as file:
        name = file.read()
    with open(path, "wb") as file:
        file.write(name)
trial("memfd_create", memory_file)
trial("write own comm", comm)
"""
_TRIAL_SECONDS = 5.0


def read_container(
    root: str = "/", environ: Mapping[str, str] | None = None, budget: Budget | None = None
) -> Container:
    """The container of this process, from the files below ``root`` and the variables ``environ``."""
    top, environ = Path(root), os.environ if environ is None else environ
    marks = tuple(_marks(top, environ))
    here = root == "/"
    return Container(
        kind=marks[0][0] if marks else "",
        marks=tuple(mark for _, mark in marks),
        seccomp=int(found_in(text_of(top / "proc/self/status"), r"^Seccomp:\s*(\d)") or 0),
        label=text_of(top / "proc/self/attr/current").strip("\0\n "),
        denied=_denied(budget or Budget(_TRIAL_SECONDS)) if here else None,
        cdi=tuple(_cdi(top)),
        toolkit=tuple(f"/{path}" for path in _TOOLKIT if (top / path).exists()),
        docker=_docker(top),
        runtime_options=_runtime_options(top),
    )


def _marks(top: Path, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(kind, mark), the surest first."""
    if (top / ".singularity.d").is_dir():
        yield "apptainer", "/.singularity.d"
    if environ.get("KUBERNETES_SERVICE_HOST"):
        yield "kubernetes", "KUBERNETES_SERVICE_HOST"
    if (top / "run/.containerenv").exists():
        yield "podman", "/run/.containerenv"
    if (top / ".dockerenv").exists():
        yield "docker", "/.dockerenv"
    for path in ("proc/1/cgroup", "proc/self/mountinfo"):
        lines = text_of(top / path).splitlines()
        if path.endswith("mountinfo"):  # of the mounts only that of the root folder tells
            lines = [line for line in lines if " / / " in line]
        for kind, pattern in _CGROUPS.items():
            if any(pattern.search(line) for line in lines):
                yield kind, f"/{path}"
    named = environ.get("container", "")
    if named:
        yield named if named in _CGROUPS else "lxc", f"container={named}"


def _denied(budget: Budget) -> dict[str, str]:
    """The trials that failed, with their errno names; a signal that ended them is named instead."""
    end, output = run_child(
        [sys.executable, "-I", "-c", _TRIALS], deadline=budget.step(_TRIAL_SECONDS), environment=dict(os.environ)
    )
    said = dict(line.split("=", 1) for line in output.decode(errors="replace").splitlines() if "=" in line)
    denied = {name: error for name, error in said.items() if error}
    if end.signal:
        missing = next((name for name in ("memfd_create", "write own comm") if name not in said), "memfd_create")
        denied[missing] = end.signal
    return denied


def _cdi(top: Path) -> Iterator[CdiSpecification]:
    for folder in _CDI_FOLDERS:
        if (top / folder).is_symlink() and folder.startswith("var"):  # /var/run is /run
            continue
        paths = sorted((top / folder).glob("*")) if (top / folder).is_dir() else []
        for path in paths[:32]:
            if path.suffix in {".json", ".yaml", ".yml"}:
                devices, wanted = _json_cdi(path) if path.suffix == ".json" else _yaml_cdi(path)
                missing = tuple(name for name in dict.fromkeys(wanted) if not (top / name.lstrip("/")).exists())
                yield CdiSpecification("/" + str(path.relative_to(top)), tuple(devices), missing)


def _json_cdi(path: Path) -> tuple[list[str], list[str]]:
    try:
        data = json.loads(text_of(path) or "{}")
    except ValueError:
        return [], []
    devices, wanted = [], []

    def walk(value: object) -> None:
        if isinstance(value, dict):
            if "containerEdits" in value and isinstance(value.get("name"), str):
                devices.append(value["name"])
            for name, item in value.items():
                if name in {"hostPath", "path"} and isinstance(item, str) and item.startswith("/"):
                    wanted.append(item) if name == "hostPath" or "hostPath" not in value else None
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    walk(data)
    return devices, [name for name in wanted if name.startswith(("/dev/", "/usr/", "/lib", "/run/", "/opt/"))]


_YAML_DEVICE = re.compile(r"^(?:- |  )name:\s*[\"']?([\w:.-]+)[\"']?\s*$")
_YAML_HOST_PATH = re.compile(r"^[\s-]*hostPath:\s*[\"']?(/[^\"'\s]+)[\"']?\s*$")
_YAML_NODE = re.compile(r"^[\s-]*path:\s*[\"']?(/dev/[^\"'\s]+)[\"']?\s*$")


def _yaml_cdi(path: Path) -> tuple[list[str], list[str]]:
    """Device names and host paths of a specification in YAML as ``nvidia-ctk cdi generate`` writes it.

    No YAML parser: it goes by lines, and understands block style alone, one key a line; what is in flow style
    (``{hostPath: ...}``) or after an anchor is not seen. A folded line is not seen either.
    """
    devices, wanted = [], []
    for line in text_of(path).splitlines():
        if match := _YAML_DEVICE.match(line):
            devices.append(match[1])
        if match := _YAML_HOST_PATH.match(line) or _YAML_NODE.match(line):
            wanted.append(match[1])
    return devices, wanted


def _runtime_options(top: Path) -> dict[str, str]:
    """Settings of the NVIDIA container runtime that keep devices out, with their line."""
    text = text_of(top / _RUNTIME)
    try:
        section = parse_toml(text, "it", LARGEST).get("nvidia-container-cli", {})
    except FormatError as error:
        return {"config": f"{error.what} (/{_RUNTIME})"}
    if not isinstance(section, dict) or section.get("no-cgroups") is not True:
        return {}
    line = next((n for n, row in enumerate(text.splitlines(), 1) if row.strip().startswith("no-cgroups")), 0)
    return {"no-cgroups": f"true (/{_RUNTIME}:{line})"}


def _docker(top: Path) -> str:
    """How Docker was installed on this host: "snap", "package", or "" for not at all."""
    if (top / "snap/docker").exists():
        return "snap"
    return "package" if (top / "usr/bin/dockerd").exists() else ""
