#!/usr/bin/env python3
"""Make a Debian root file system an image, from Debian's packages alone, for machines that reach no image registry.

    python3 docker/debian/build.py            # for this machine's architecture: wheelproof/debian:bookworm-amd64
    python3 docker/debian/build.py arm64      # wheelproof/debian:bookworm-arm64, on any machine

The packages are unpacked and never configured, so that nothing of another architecture runs: an image takes half a
minute. It holds Python with venv and headers, gcc, and the libraries that torch and Triton need (packages.txt). An
image of the same recipe, which is this file and packages.txt, is not made again, unless by ``--force``.

The image goes to the engine as an archive that `docker load` reads. `docker import --platform` would be shorter, but an
engine before version 23 notes its own architecture with the image that it makes.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

HERE = Path(__file__).resolve().parent
SUITE, PYTHON = "bookworm", (3, 11)
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
RECIPE_LABEL = "wheelproof.recipe"

# What the scripts of the packages would do (users, certificates); and away with what nobody reads in a container.
HOOKS = (
    'cp "$1/usr/share/base-passwd/passwd.master" "$1/etc/passwd"',
    'cp "$1/usr/share/base-passwd/group.master" "$1/etc/group"',
    'cat "$1"/usr/share/ca-certificates/mozilla/*.crt > "$1/etc/ssl/certs/ca-certificates.crt"',
    'find "$1/usr/share/doc" -type f ! -name copyright -delete',
    'rm -rf "$1"/usr/share/man "$1"/usr/share/info "$1"/usr/share/locale',
)
# Python's own modules, compiled: an emulated Python takes seconds to compile what torch imports, at every start. The
# files are the same on every architecture; so this interpreter makes them if it is of the same version.
if sys.version_info[:2] == PYTHON:
    COMPILE = f'"{sys.executable}" -m compileall -q -j 0 -s "$1" "$1/usr/lib/python{PYTHON[0]}.{PYTHON[1]}"'
else:
    COMPILE = f'chroot "$1" python3 -m compileall -q -j 0 /usr/lib/python{PYTHON[0]}.{PYTHON[1]}'


class BuildError(Exception):
    """The image could not be made; the message says what to do."""


def find_tools() -> None:
    """Raise BuildError unless all that is needed is installed."""
    for tool, package in (("mmdebstrap", "mmdebstrap"), ("docker", "docker.io")):
        if not shutil.which(tool):
            raise BuildError(f"{tool} is missing; on Debian and Ubuntu: apt-get install {package}")


def image_name(architecture: str) -> str:
    """What the image is called; the path component keeps an engine from asking a registry's library for it."""
    return f"wheelproof/debian:{SUITE}-{architecture}"


def recipe() -> str:
    """The digest of all that decides what is in the image, except for Debian's packages of the day."""
    return hashlib.sha256(Path(__file__).read_bytes() + (HERE / "packages.txt").read_bytes()).hexdigest()[:16]


def present_recipe(image: str) -> str:
    """The recipe by which ``image`` was made; empty when there is no such image, or none of ours."""
    form = '{{index .Config.Labels "' + RECIPE_LABEL + '"}}'
    answer = subprocess.run(["docker", "image", "inspect", "--format", form, image], capture_output=True, check=False)
    return answer.stdout.decode().strip()


def make_root(architecture: str, archive: Path) -> None:
    """Write the root file system to ``archive``, a tar file. Raises BuildError."""
    lines = (HERE / "packages.txt").read_text().splitlines()
    packages = ",".join(line for line in lines if line and not line.startswith("#"))
    command = [
        *("mmdebstrap", "--quiet", "--variant=extract", f"--architectures={architecture}", f"--include={packages}"),
        "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
        *(f"--extract-hook={hook}" for hook in (*HOOKS, COMPILE)),
        *(SUITE, str(archive)),
    ]
    if subprocess.run(command, stdout=sys.stderr, check=False).returncode:
        raise BuildError("mmdebstrap failed; its message is above. Are Debian's package servers reachable?")


def load(architecture: str, archive: Path, image: str) -> None:
    """Hand the root file system to the engine as ``image``. Raises BuildError."""
    with archive.open("rb") as file:
        layer = hashlib.file_digest(file, "sha256").hexdigest()
    configuration = as_json(image_configuration(architecture, layer))
    name = f"{hashlib.sha256(configuration).hexdigest()}.json"
    manifest = as_json([{"Config": name, "RepoTags": [image], "Layers": ["layer.tar"]}])
    with subprocess.Popen(["docker", "load", "--quiet"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as engine:
        assert engine.stdin is not None  # noqa: S101  # it was asked for
        try:
            with tarfile.open(fileobj=engine.stdin, mode="w|") as tar:
                add(tar, "manifest.json", len(manifest), io.BytesIO(manifest))
                add(tar, name, len(configuration), io.BytesIO(configuration))
                with archive.open("rb") as file:
                    add(tar, "layer.tar", archive.stat().st_size, file)
        except BrokenPipeError:
            pass  # the engine has ended and says why
    if engine.returncode:
        raise BuildError("`docker load` failed; its message is above. Does `docker version` show a server?")


def image_configuration(architecture: str, layer: str) -> dict[str, Any]:
    """The configuration of an image with one ``layer``, whose sha256 is given (the OCI image specification)."""
    created = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {
        RECIPE_LABEL: recipe(),
        "org.opencontainers.image.title": "wheelproof-debian",
        "org.opencontainers.image.description": f"Debian {SUITE} with Python and gcc, for the cells of a matrix",
        "org.opencontainers.image.created": created,
    }
    search_path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return {
        "architecture": architecture,
        "os": "linux",
        "created": created,
        "config": {"Env": [search_path, "LANG=C.UTF-8"], "Cmd": ["/bin/bash"], "Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer}"]},
        "history": [{"created": created, "created_by": "docker/debian/build.py"}],
    }


def as_json(value: object) -> bytes:
    """The bytes of ``value`` in JSON."""
    return json.dumps(value, separators=(",", ":")).encode()


def add(tar: tarfile.TarFile, name: str, size: int, content: IO[bytes]) -> None:
    """Append a file of ``size`` bytes."""
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o644
    tar.addfile(member, content)


def build(architecture: str, *, force: bool) -> str:
    """Make the image unless it is there; a sentence that says which. Raises BuildError."""
    image = image_name(architecture)
    if present_recipe(image) == recipe() and not force:
        return f"{image} is there, of recipe {recipe()}"
    with tempfile.TemporaryDirectory(prefix="wheelproof-debian-") as folder:
        archive = Path(folder, "root.tar")
        make_root(architecture, archive)
        load(architecture, archive, image)
    # The image that had this name has none any more.
    prune = ["docker", "image", "prune", "--force", "--filter", f"label={RECIPE_LABEL}"]
    subprocess.run(prune, stdout=subprocess.DEVNULL, check=False)
    return f"{image} made, of recipe {recipe()}"


def main() -> int:
    """Build what was asked for; 3 when that is not possible."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("architectures", nargs="*", choices=(*ARCHITECTURES.values(), []), metavar="amd64|arm64")
    parser.add_argument("--force", action="store_true", help="make it again, of today's packages")
    options = parser.parse_args()
    try:
        find_tools()
        for architecture in options.architectures or [ARCHITECTURES[platform.machine()]]:
            print(build(architecture, force=options.force), flush=True)
    except BuildError as error:
        print(f"docker/debian/build.py: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
