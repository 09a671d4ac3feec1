"""Makes a Debian root file system an image for cells, from Debian's packages alone: no image registry is needed.

The packages are unpacked and never configured, so that nothing of another architecture runs: an image takes half a
minute. It contains a Python with venv and headers, gcc, and the libraries that torch and Triton need (packages.txt). An
image of the same recipe, which is this file and packages.txt, is not made again, unless that is forced.

The image goes to the engine as an archive that `docker load` reads. `docker import --platform` would be shorter, but an
engine before version 23 notes its own architecture with the image that it makes.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import platform
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from wheel_checks.errors import SourceError
from wheel_checks.sources.scratch_folder import scratch_folder
from wheelproof.matrix.executors.docker.emulation import DOCKER_NAMES

HERE = Path(__file__).resolve().parent
REPOSITORY = "wheelproof/debian"  # the path component keeps an engine from asking a registry's library for it
SUITES: Mapping[str, str] = {"3.11": "bookworm", "3.13": "trixie", "3.14": "sid"}
"""The Debian release that has each Python, for amd64 and arm64 (packages.debian.org, 2026-11). None has 3.10 or 3.12
next to a current glibc, and none has a free-threaded one."""
RECIPE_LABEL = "wheelproof.recipe"
PACKAGES_LABEL = "wheelproof.packages"
_NAME = re.compile(rf"{REPOSITORY}:([a-z]+)-(amd64|arm64)")

# Commands in place of the packages' scripts (users, certificates), and removal of unneeded files.
HOOKS = (
    'cp "$1/usr/share/base-passwd/passwd.master" "$1/etc/passwd"',
    'cp "$1/usr/share/base-passwd/group.master" "$1/etc/group"',
    'cat "$1"/usr/share/ca-certificates/mozilla/*.crt > "$1/etc/ssl/certs/ca-certificates.crt"',
    'find "$1/usr/share/doc" -type f ! -name copyright -delete',
    'rm -rf "$1"/usr/share/man "$1"/usr/share/info "$1"/usr/share/locale',
)
# A mirror may be behind sid, whose index is valid for a week; its signature is still valid.
LATE_MIRROR = '--aptopt=Acquire::Check-Valid-Until "false"'


@dataclass(frozen=True, slots=True)
class Image:
    """Our own image: the Python that it has ("3.13"), the architecture as Debian names it ("arm64"), and the
    Debian packages that it has next to the usual ones.
    """

    python: str
    architecture: str
    more: tuple[str, ...] = ()

    @property
    def suite(self) -> str:
        """The Debian release. Raises KeyError for a Python that none has."""
        return SUITES[self.python]

    @property
    def name(self) -> str:
        """Its name in the engine: ``wheelproof/debian:trixie-arm64``, with a digest of further packages."""
        name = f"{REPOSITORY}:{self.suite}-{self.architecture}"
        more = " ".join(sorted(set(self.more)))
        return f"{name}-{hashlib.sha256(more.encode()).hexdigest()[:12]}" if more else name

    @classmethod
    def named(cls, name: str) -> Image | None:
        """Our image with this name, without further packages; None for any other."""
        found = _NAME.fullmatch(name)
        python = next((python for python, suite in SUITES.items() if found and suite == found[1]), None)
        return cls(python, found[2]) if found and python else None


def build(image: Image, *, force: bool = False) -> str:
    """Make ``image`` unless the engine has it; returns a sentence about it. Raises SourceError with a fix."""
    _find_tools()
    if _present_recipe(image.name) == _recipe() and not force:
        return f"{image.name} (Python {image.python}) exists, of recipe {_recipe()}"
    with scratch_folder("wheelproof-debian") as folder:
        archive = folder / "root.tar"
        _make_root(image, archive)
        _load(image, archive)
    # The image that had this name before has no name now.
    prune = ["docker", "image", "prune", "--force", "--filter", f"label={RECIPE_LABEL}"]
    subprocess.run(prune, stdout=subprocess.DEVNULL, check=False)
    return f"{image.name} (Python {image.python}) made, of recipe {_recipe()}"


def _find_tools() -> None:
    for tool, package in (("mmdebstrap", "mmdebstrap"), ("docker", "docker.io")):
        if not shutil.which(tool):
            raise SourceError(f"{tool} is not installed", hint=f"on Debian and Ubuntu: apt-get install {package}")


def _recipe() -> str:
    """The digest of all inputs of the image, except the versions of Debian's packages."""
    return hashlib.sha256(Path(__file__).read_bytes() + (HERE / "packages.txt").read_bytes()).hexdigest()[:16]


def _present_recipe(image: str) -> str:
    """The recipe by which ``image`` was made; empty when the engine has no such image, or not ours."""
    form = '{{index .Config.Labels "' + RECIPE_LABEL + '"}}'
    answer = subprocess.run(["docker", "image", "inspect", "--format", form, image], capture_output=True, check=False)
    return answer.stdout.decode(errors="replace").strip()


def packages(image: Image) -> list[str]:
    """The packages of the image; mmdebstrap adds their requirements."""
    lines = (HERE / "packages.txt").read_text(encoding="utf-8").splitlines()
    usual = [line.replace("python3", f"python{image.python}") for line in lines if line and not line.startswith("#")]
    return [*usual, *image.more]


def _make_root(image: Image, archive: Path) -> None:
    """Write the root file system to ``archive``, a tar file. Raises SourceError."""
    command = [
        *("mmdebstrap", "--quiet", "--variant=extract", LATE_MIRROR, f"--architectures={image.architecture}"),
        f"--include={','.join(packages(image))}",
        "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
        *(f"--extract-hook={hook}" for hook in (*HOOKS, _link_hook(image.python), *compile_hooks(image))),
        *(image.suite, str(archive)),
    ]
    if subprocess.run(command, stdout=sys.stderr, check=False).returncode:
        raise SourceError(
            f"mmdebstrap could not make {image.name}; its messages are above",
            hint=f"check that Debian's package servers can be reached, and that the disk is not full{_doubt(image)}",
        )


def _doubt(image: Image) -> str:
    return f", and whether Debian {image.suite} has {', '.join(image.more)}" if image.more else ""


def _link_hook(python: str) -> str:
    """The command that makes ``python3`` the image's Python: Debian's own package links the release's Python."""
    return f'ln -sf python{python} "$1/usr/bin/python3"'


def compile_hooks(image: Image) -> tuple[str, ...]:
    """The command that compiles Python's own modules, which takes an emulated Python seconds at every start.

    The files are the same on every architecture, so this interpreter makes them if it has the same version; else the
    image's, unless it is emulated: that takes ten minutes, and a cell keeps its byte code elsewhere.
    """
    python = image.python
    if python == f"{sys.version_info[0]}.{sys.version_info[1]}":
        return (f'"{sys.executable}" -m compileall -q -j 0 -s "$1" "$1/usr/lib/python{python}"',)
    if image.architecture == DOCKER_NAMES.get(platform.machine()):
        return (f'chroot "$1" python{python} -m compileall -q -j 0 /usr/lib/python{python}',)
    return ()


def _load(image: Image, archive: Path) -> None:
    """Give the root file system to the engine. Raises SourceError."""
    with archive.open("rb") as file:
        layer = hashlib.file_digest(file, "sha256").hexdigest()
    configuration = _as_json(configuration_of(image, layer))
    name = f"{hashlib.sha256(configuration).hexdigest()}.json"
    manifest = _as_json([{"Config": name, "RepoTags": [image.name], "Layers": ["layer.tar"]}])
    with subprocess.Popen(["docker", "load", "--quiet"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as engine:
        pipe = engine.stdin
        assert pipe is not None  # noqa: S101  # PIPE was requested
        # If the pipe breaks, the engine has ended and reports why.
        with contextlib.suppress(BrokenPipeError), tarfile.open(fileobj=pipe, mode="w|") as tar:
            _add(tar, "manifest.json", len(manifest), io.BytesIO(manifest))
            _add(tar, name, len(configuration), io.BytesIO(configuration))
            with archive.open("rb") as file:
                _add(tar, "layer.tar", archive.stat().st_size, file)
    if engine.returncode:
        raise SourceError(
            f"`docker load` could not take {image.name}; its message is above",
            hint="does `docker version` show a server?",
        )


def configuration_of(image: Image, layer: str) -> dict[str, Any]:
    """The configuration of the image with one ``layer``, whose sha256 is given (the OCI image specification)."""
    created = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {
        RECIPE_LABEL: _recipe(),
        PACKAGES_LABEL: " ".join(image.more),
        "org.opencontainers.image.title": "wheelproof-debian",
        "org.opencontainers.image.description": f"Debian {image.suite} with Python {image.python} and gcc, for cells",
        "org.opencontainers.image.created": created,
    }
    search_path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return {
        "architecture": image.architecture,
        "os": "linux",
        "created": created,
        "config": {"Env": [search_path, "LANG=C.UTF-8"], "Cmd": ["/bin/bash"], "Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer}"]},
        "history": [{"created": created, "created_by": "wheelproof matrix image"}],
    }


def _as_json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _add(tar: tarfile.TarFile, name: str, size: int, content: IO[bytes]) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o644
    tar.addfile(member, content)
