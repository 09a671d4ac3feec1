"""The executor of cells in containers: obstacles of a cell, its place, and leftovers of killed runs."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from wheel_checks.errors import SourceError
from wheel_checks.fixes.commands import in_words, option, run
from wheel_checks.model import Unavailable
from wheel_checks.phrases import joined
from wheel_checks.process.child import Ended
from wheelproof.matrix.executors.base import Mount
from wheelproof.matrix.executors.docker import container, emulation
from wheelproof.matrix.executors.docker.engine import EngineError, answering, connect
from wheelproof.matrix.executors.docker.image import SUITES, Image
from wheelproof.matrix.executors.docker.ownership import OWNER_LABEL, RUN_LABEL, is_gone, this_process
from wheelproof.matrix.model import Cell

if TYPE_CHECKING:  # the SDK is an extra, and takes a third of a second to import
    from docker import APIClient

# Variables of every command: a writable home, and a user name, which /etc/passwd lacks.
ENVIRON = {"HOME": "/tmp", "TMPDIR": "/tmp", "USER": "wheelproof", "LOGNAME": "wheelproof", "LANG": "C.UTF-8"}  # noqa: S108  # inside


@dataclass(frozen=True, slots=True)
class DockerPlace:
    """A place whose commands run in a container each, all with the same mounts; /tmp lasts for one command."""

    client: APIClient
    specification: container.Specification
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def python(self) -> str:
        """The interpreter of the cell's Python, which the container looks up on its PATH."""
        return self.specification.python

    def inside(self, path: Path) -> str:
        """The path inside for a path below one of the mounts. Raises ValueError for any other path."""
        absolute = Path(os.path.abspath(path))  # noqa: PTH100  # a link inside a mount is kept
        for mount in sorted(self.specification.mounts, key=lambda mount: -len(mount.source.parts)):
            source = Path(os.path.abspath(mount.source))  # noqa: PTH100  # as above
            if absolute.is_relative_to(source):
                return str(PurePosixPath(mount.target, absolute.relative_to(source)))
        raise ValueError(f"{path} is not below any mount")

    def run(
        self, command: Sequence[str], *, environ: Mapping[str, str], output: Path, log: Path, deadline: float
    ) -> Ended:
        """As of the protocol. Raises EngineError when the engine cannot, SourceError when a file cannot be written."""
        try:
            return container.run(
                self.client,
                self.specification,
                command,
                environ=ENVIRON | dict(self.environ) | dict(environ),
                output=output,
                log=log,
                deadline=deadline,
            )
        except OSError as error:
            raise SourceError(f"output of a command cannot be written to {output.parent}: {error.strerror}") from error


@dataclass
class DockerExecutor:
    """Runs cells in containers: without capabilities, network and a writable root, as the user who runs this."""

    limits: container.Limits = field(default_factory=container.Limits)
    network: str = "none"
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    binfmt: Path = emulation.BINFMT
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    name: str = "docker"

    @functools.cached_property
    def client(self) -> APIClient:
        """The engine. Raises EngineError if none exists, each time that it is requested."""
        return connect(self.environ)

    def blocker(self, cell: Cell) -> Unavailable | None:
        """Why ``cell`` cannot run in a container here, with a fix; None if it can."""
        try:
            return (
                emulation.blocker(cell.platform, platform.machine(), self.binfmt)
                or self._image_blocker(cell)
                or (self._gpu_blocker() if cell.needs_gpu else None)
            )
        except EngineError as error:
            return Unavailable(error.what, error.hint)

    @contextlib.contextmanager
    def place(self, cell: Cell, mounts: Sequence[Mount]) -> Iterator[DockerPlace]:
        """The place of ``cell``; each command has removed its container when it ends. Raises EngineError."""
        blocker = self.blocker(cell)
        if blocker:
            raise EngineError(f"{cell.id} cannot run in a container: {blocker.reason}", hint=blocker.hint)
        yield DockerPlace(
            self.client,
            container.Specification(
                image_of(cell),
                f"linux/{emulation.DOCKER_NAMES[cell.platform]}",
                python_of(cell),
                tuple(mounts),
                {RUN_LABEL: self.run_id, OWNER_LABEL: str(this_process())},
                self.limits,
                gpu=cell.needs_gpu,
                network=self.network,
            ),
            emulation.quick_cpu(cell.platform, platform.machine(), self.environ),
        )

    def sweep(self) -> Sequence[str]:
        """Remove the containers of runs whose process has gone; their names. Raises EngineError."""
        client = self.client
        with answering("listing containers"):
            ours = list(client.containers(all=True, filters={"label": OWNER_LABEL}))
        return [
            found["Names"][0].removeprefix("/")
            for found in ours
            if is_gone(found["Labels"]) and container.remove(client, found["Id"])
        ]

    def _image_blocker(self, cell: Cell) -> Unavailable | None:
        client = self.client  # before the SDK is imported: it may not be installed
        import docker.errors

        image, architecture = image_of(cell), emulation.DOCKER_NAMES[cell.platform]
        ours = Image.named(image) if cell.image else debian_image(cell)
        if ours:
            where = [option("--platform", cell.platform), option("--python", ours.python)]
            where += [option("--system-package", package) for package in ours.more]
            hint = in_words(run("wheelproof", "matrix", "image", *where))
        else:
            pull = run("docker", "pull", option("--platform", f"linux/{architecture}"), operands=[image])
            hint = in_words(pull)
        with answering(f"looking for the image {image}"):
            try:
                found = client.inspect_image(image)["Architecture"]  # type: ignore[no-untyped-call]  # so in the stubs
            except docker.errors.ImageNotFound:
                return Unavailable(f"the Docker engine has no image {image}", hint)
        if found != architecture:
            return Unavailable(f"the image {image} is for {found}, not {architecture}", hint)
        return None

    def _gpu_blocker(self) -> Unavailable | None:
        with answering("listing its runtimes"):
            info = self.client.info()
        if "nvidia" in info.get("Runtimes", {}) or info.get("DiscoveredDevices"):
            return None
        return Unavailable(
            "the Docker engine has no GPU runtime",
            "install the NVIDIA Container Toolkit, then `nvidia-ctk runtime configure --runtime=docker` and restart it",
        )


def image_of(cell: Cell) -> str:
    """The image in which ``cell`` runs: its own, else our Debian. Raises EngineError without one."""
    if cell.image:
        return cell.image
    image = debian_image(cell)
    if image is None:
        raise EngineError(
            f"no Debian release has Python {cell.python}to build an image from",
            hint=f"Debian has {joined(list(SUITES))}; or set the key image of the cell to an image that has it",
        )
    return image.name


def debian_image(cell: Cell) -> Image | None:
    """The image of Debian with the Python and the packages of ``cell``; None when no release has that Python."""
    python = python_of(cell).removeprefix("python")
    name = emulation.DOCKER_NAMES[cell.platform]
    return Image(python, name, cell.system_packages) if python in SUITES else None


def python_of(cell: Cell) -> str:
    """The name of its interpreter on the PATH of the image: ``python3.11``, ``python3.13t``."""
    target = cell.target
    return f"python{target.python[0]}.{target.python[1]}{'t' if target.free_threaded else ''}"
