"""Triton from its files, and what it needs at run time: ptxas, a C compiler, a cache that can be written.

Where Triton looks, and in which order, is what its own sources say: runtime/build.py, knobs.py and
backends/nvidia/compiler.py of 3.6.0, 3.7.1 and 3.9.0. Nothing is imported, nothing is written.
"""

import errno
import json
import os
import pwd
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from wheel_checks.facts.host.machine import Mount
from wheel_checks.facts.host.software import Ptxas, TritonFacts
from wheelproof.doctor.children import Budget, run_child
from wheelproof.doctor.probes.files import found_in, names_in, text_of

UNKNOWN_THRESHOLD = -1

_BINARIES = ("ptxas", "ptxas-blackwell")
_PTXAS_SECONDS = 10.0  # a cold file system has to read 50 MB
_MOST_CACHED = 200  # kernels of the cache that are inspected
_RELEASE = re.compile(rb"release [\d.]+, V([\d.]+)")
_ALLOWED = re.compile(r"Allowed values for this option:(.*?)(?:Default value|\n\s*\n)", re.DOTALL)


def read_triton(
    root: str = "/",
    *,
    search_path: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    budget: Budget | None = None,
) -> TritonFacts | None:
    """The Triton that ``search_path`` (sys.path of the interpreter) finds first; None if none exists.

    Programs of another ``root`` are not run: its ptxas have no version.
    """
    top, environ = Path(root), os.environ if environ is None else environ
    entry = next((e for e in search_path if e and os.path.isfile(_below(top, f"{e}/triton/__init__.py"))), None)
    if entry is None:
        return None
    folder = f"{entry.rstrip('/')}/triton"
    compiler, fault = _compiler(top, environ)
    cache = cache_folder(environ, here=root == "/")
    existing = _nearest(top, cache)
    mount = mount_of(top, str(existing))
    temporary = mount_of(top, str(_nearest(top, environ.get("TMPDIR") or "/tmp")))  # noqa: S108  # as tempfile does
    return TritonFacts(
        version=found_in(text_of(_below(top, f"{folder}/__init__.py")), r"^__version__\s*=\s*['\"]([^'\"]+)"),
        folder=folder,
        owners=tuple(_owners(top, entry)),
        ptxas=tuple(_ptxas(top, folder, environ, budget or Budget(_PTXAS_SECONDS))),
        blackwell_from=_threshold(text_of(_below(top, f"{folder}/backends/nvidia/compiler.py"))),
        compiler=compiler,
        compiler_fault=fault,
        cache=cache,
        cache_error=_write_fault(existing, mount),
        cache_type=mount.type if mount else "",
        cache_noexec=bool(mount and mount.noexec),
        temporary_noexec=bool(temporary and temporary.noexec),
        cached_targets=tuple(_cached_targets(_below(top, cache))),
    )


def cache_folder(environ: Mapping[str, str], *, here: bool = True) -> str:
    """Where Triton keeps what it compiled; ``here`` says whether the users of this host are meant.

    As os.path.expanduser does, an empty HOME gives "/", and a user without a name (an arbitrary number, as in
    containers) and without HOME a folder that is really called "~", in the current one.
    """
    if environ.get("TRITON_CACHE_DIR"):
        return environ["TRITON_CACHE_DIR"]
    home = environ.get("TRITON_HOME") or environ.get("HOME")
    if home is None:
        try:
            home = pwd.getpwuid(os.getuid()).pw_dir if here else "/root"
        except KeyError:
            home = "~"
    return f"{home.rstrip('/')}/.triton/cache"


def mount_of(top: Path, path: str) -> Mount | None:
    """The mount that holds ``path``, from /proc/self/mountinfo below ``top``; of two on one point the later one."""
    inside = path if top == Path("/") else "/" + str(Path(path).relative_to(top)) if path.startswith(str(top)) else path
    best = None
    for line in text_of(top / "proc/self/mountinfo").splitlines():
        first, _, last = line.partition(" - ")
        fields, types = first.split(), last.split()
        if len(fields) < 6 or not types:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4])
        holds = inside == point or inside.startswith(point.rstrip("/") + "/")
        if holds and (best is None or len(point) >= len(best.point)):
            options = {*fields[5].split(","), *(types[2].split(",") if len(types) > 2 else ())}
            best = Mount(path, point, types[0], "noexec" in fields[5].split(","), "ro" in options)
    return best


def _below(top: Path, path: str) -> Path:
    """A path of the file system below ``top``. A relative one is relative to the current folder."""
    return top / path.lstrip("/") if path.startswith("/") else Path.cwd() / path


def _owners(top: Path, entry: str) -> Iterator[str]:
    """The distributions named after Triton whose RECORD lists the package's first file."""
    for name in names_in(_below(top, entry)):
        if name.endswith(".dist-info") and "triton" in name.lower():
            record = text_of(_below(top, f"{entry}/{name}/RECORD"), 8 << 20)
            if re.search(r"^triton/__init__\.py,", record, re.MULTILINE):
                yield name.partition("-")[0].replace("_", "-").lower()


def _threshold(source: str) -> int:
    """The SM number from which ptxas-blackwell is taken, 0 when this Triton has none, -1 when it does not say."""
    if "blackwell" not in source:
        return 0
    body = re.search(r"^def \w*ptxas\w*\(.*?(?=^\S)", source + "\nend", re.MULTILINE | re.DOTALL)
    return int(found_in(body[0] if body else "", r"\barch\w* (?:>=|<) (\d{2,3})\b") or UNKNOWN_THRESHOLD)


def _ptxas(top: Path, folder: str, environ: Mapping[str, str], budget: Budget) -> Iterator[Ptxas]:
    """Those that variables name, then Triton's own."""
    for binary in _BINARIES:
        variable = f"TRITON_{binary.upper().replace('-', '_')}_PATH"
        if named := environ.get(variable):
            yield _ask(top, named, variable, environ, budget)
    for binary in _BINARIES:
        path = f"{folder}/backends/nvidia/bin/{binary}"
        if os.path.exists(_below(top, path)) or binary == "ptxas":
            yield _ask(top, path, binary, environ, budget)


def _ask(top: Path, path: str, role: str, environ: Mapping[str, str], budget: Budget) -> Ptxas:
    """Version and GPU names of one ptxas, in its own words."""
    if top != Path("/"):
        there = _below(top, path)
        fault = (
            "" if os.access(there, os.X_OK) else os.strerror(errno.EACCES if os.path.exists(there) else errno.ENOENT)
        )
        return Ptxas(path, role, "", (), fault)
    end, output = run_child([path, "--version"], deadline=budget.step(_PTXAS_SECONDS), environment=environ)
    version = _RELEASE.search(output)
    if version is None:
        hung = f"it did not answer within {end.seconds:g} s" if end.hang else ""
        return Ptxas(path, role, "", (), hung or end.signal or end.output or "it does not report its version")
    _, text = run_child([path, "--help"], deadline=budget.step(_PTXAS_SECONDS), environment=environ)
    allowed = _ALLOWED.search(text.decode(errors="replace").partition("--gpu-name")[2])
    names = re.findall(r"'(sm_\d{2,3}a?)'", allowed[1]) if allowed else []
    by_number = sorted(names, key=lambda name: (int(name[3:].rstrip("a")), name))
    return Ptxas(path, role, version[1].decode(), tuple(by_number))


def _compiler(top: Path, environ: Mapping[str, str]) -> tuple[str, str]:
    """The C compiler that Triton takes, and what is wrong with it: CC as one program's name, else gcc, else clang."""
    if (named := environ.get("CC")) is not None:
        return named, _compiler_fault(top, named, environ.get("PATH", os.defpath))
    folders = environ.get("PATH", os.defpath)
    return next((path for name in ("gcc", "clang") if (path := _which(top, name, folders))), ""), ""


def _compiler_fault(top: Path, named: str, folders: str) -> str:
    if not named.strip():
        return "it is empty"
    path = _below(top, named) if "/" in named else None
    if path is None and _which(top, named, folders):
        return ""
    if path is not None and os.path.isdir(path):
        return "it is a folder"
    if path is not None and os.path.isfile(path):
        return "" if os.access(path, os.X_OK) else "it is not executable"
    program = named.split(maxsplit=1)[0]
    if program != named and (_which(top, program, folders) or os.path.isfile(_below(top, program))):
        return "it contains options, but Triton takes the whole value as a program name"
    return "there is no such program"


def _which(top: Path, name: str, folders: str) -> str:
    """The first executable of this name in a list of folders like PATH; "" if none."""
    for folder in folders.split(":"):
        path = _below(top, f"{folder or '.'}/{name}")
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return f"{folder}/{name}"
    return ""


def _nearest(top: Path, path: str) -> Path:
    """``path`` below ``top``, or the nearest of its parents that exists, without symbolic links on this host."""
    wanted = _below(top, path)
    there = next((place for place in (wanted, *wanted.parents) if os.path.exists(place)), top)
    return there.resolve() if top == Path("/") else there


def _write_fault(place: Path, mount: Mount | None) -> str:
    """Why a folder cannot be made or filled at ``place``; "" when it can. Nothing is written."""
    if not os.path.isdir(place):
        return f"{place} is a file"
    if mount and mount.read_only:
        return f"{place} is on a read-only file system ({mount.point}, {mount.type})"
    if not os.access(place, os.W_OK | os.X_OK):
        status = place.stat()
        owner = f"mode {status.st_mode & 0o7777:04o}, owner {status.st_uid}, we are {os.getuid()}"
        return f"{place} may not be written: {owner}"
    try:
        sizes = os.statvfs(place)
    except OSError as error:
        return f"{place}: {error.strerror}"
    return f"no space is left on the file system of {place}" if sizes.f_blocks and not sizes.f_bavail else ""


def _cached_targets(cache: Path) -> list[str]:
    """The architectures that the cache was filled for, from the metadata next to the first kernels that it lists."""
    found = set()
    kernels = ((cache / name) for name in names_in(cache, _MOST_CACHED))
    for path in islice((k / n for k in kernels for n in names_in(k, 64) if n.endswith(".json")), 2 * _MOST_CACHED):
        try:
            target = json.loads(text_of(path, 1 << 16)).get("target")
        except (ValueError, AttributeError):  # not ours, cut off, or no object
            continue
        if isinstance(target, dict) and target.get("backend") == "cuda" and isinstance(target.get("arch"), int):
            found.add(target["arch"])
    return [f"sm_{arch}" for arch in sorted(found)]
