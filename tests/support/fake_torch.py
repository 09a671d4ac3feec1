"""An environment with torch 2.7.0+cu128, and a folder of wheels with only other torch builds.

world = World.create(tmp_path)          # a venv of a few milliseconds, offline by its variables
world.shell("uv pip install torch==2.8.0"); world.torch == "2.8.0"
world.shell("pip install needs-2-8", guard=folder)

All wheels are real and small; ``extension`` is a source archive whose build writes down which torch it saw.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

from uv import find_uv_bin

from tests.support.patience import PATIENCE
from tests.support.wheels import WheelBuilder

INSTALLED = "2.7.0+cu128"

# The build backend of ``extension``: it compiles nothing, and shows in its summary against which torch it was built.
_BACKEND = """
import zipfile
from importlib.metadata import version

PROJECT = "extension"
NAME, RECORDED = f"{PROJECT}-1.0-py3-none-any.whl", f"{PROJECT}-1.0.dist-info"


def get_requires_for_build_wheel(config_settings=None):
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = {
        "METADATA": f"Metadata-Version: 2.1\\nName: {PROJECT}\\nVersion: 1.0\\nSummary: {version('torch')}\\n",
        "WHEEL": "Wheel-Version: 1.0\\nGenerator: tests\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    files["RECORD"] = "".join(f"{RECORDED}/{name},,\\n" for name in (*files, "RECORD"))
    with zipfile.ZipFile(f"{wheel_directory}/{NAME}", "w") as archive:
        for name, text in files.items():
            archive.writestr(f"{RECORDED}/{name}", text)
    return NAME
"""
_PYPROJECT = """\
[build-system]
requires = ["torch"]
build-backend = "backend"
backend-path = ["."]

[project]
name = "extension"
version = "1.0"
"""


def torch(version: str) -> WheelBuilder:
    """A torch of that version, local part included, that requires nothing."""
    return WheelBuilder("torch", version)


def extension(name: str = "extension", computed: str = "") -> bytes:
    """The source archive of a package that is compiled against torch; a build computes the fields ``computed``."""
    stream = io.BytesIO()
    dynamic = f"dynamic = [{computed}]\n" if computed else ""
    files = {
        "pyproject.toml": _PYPROJECT.replace("extension", name) + dynamic,
        "backend.py": _BACKEND.replace("extension", name),
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
    }
    top = f"{name}-1.0"
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for path, text in files.items():
            member = tarfile.TarInfo(f"{top}/{path}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return stream.getvalue()


def fill_index(folder: Path) -> None:
    """A simple index as files (PEP 503): CPU torch builds without a local version, and packages that ask for one."""
    wheels = folder / "files"
    wheels.mkdir(parents=True)
    requiring = {
        ("torchvision", "0.22.0"): "torch==2.7.0",
        ("torchvision", "0.23.0"): "torch==2.8.0",
        ("needs_2_8", "1.0"): "torch==2.8.0",
        ("needs_any", "1.0"): "torch>=2.6",
    }
    for version in ("2.7.0", "2.8.0", "2.12.0"):
        torch(version).write(wheels)
    for (name, version), requirement in requiring.items():
        WheelBuilder(name, version).metadata(requires=[requirement]).write(wheels)
    (wheels / "extension-1.0.tar.gz").write_bytes(extension())
    (wheels / "computing-1.0.tar.gz").write_bytes(extension("computing", '"dependencies"'))
    for file in sorted(wheels.iterdir()):
        page = folder / "simple" / file.name.partition("-")[0].replace("_", "-") / "index.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        with page.open("a") as links:
            links.write(f'<a href="../../files/{file.name}">{file.name}</a>\n')


@dataclass(frozen=True)
class Done:
    """An installer's exit status, and all of its output."""

    status: int
    words: str


@dataclass
class World:
    """A virtual environment with a torch, and an index without that torch. ``variables`` are for every command."""

    root: Path
    variables: dict[str, str] = field(default_factory=dict)

    @classmethod
    def create(cls, root: Path, installed: str = INSTALLED) -> World:
        """A fresh environment below ``root``; nothing of this host's configuration or caches is used."""
        world = cls(root)
        fill_index(world.index)
        world.project.mkdir()
        own = root / "own-wheels"
        own.mkdir()
        torch(installed).write(own)
        world.variables = {
            "HOME": str(root / "home"),
            "XDG_CONFIG_DIRS": str(root / "no-configuration"),  # this host's pip.conf may have constraints
            "PATH": os.pathsep.join(
                [str(Path(find_uv_bin()).parent), str(Path(sys.executable).parent), os.environ["PATH"]]
            ),
            "UV_DEFAULT_INDEX": world.index_url,
            "UV_CACHE_DIR": str(root / "uv-cache"),
            "UV_PYTHON_DOWNLOADS": "never",
            "PIP_INDEX_URL": world.index_url,
            "PIP_CACHE_DIR": str(root / "pip-cache"),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "NO_COLOR": "1",
        }
        world.run(find_uv_bin(), "venv", "--quiet", "--python", sys.executable, str(world.venv))
        world.variables |= {"VIRTUAL_ENV": str(world.venv), "PIP_PYTHON": str(world.python)}
        done = world.shell(f"uv pip install --offline --no-deps {next(own.iterdir())}")
        assert done.status == 0, done.words
        return world

    @property
    def index(self) -> Path:
        """The folder of the index: its pages and its files."""
        return self.root / "index"

    @property
    def index_url(self) -> str:
        """The URL of the index."""
        return (self.index / "simple").as_uri()

    @property
    def venv(self) -> Path:
        """The virtual environment."""
        return self.root / "venv"

    @property
    def project(self) -> Path:
        """Where every command is started."""
        return self.root / "project"

    @property
    def python(self) -> Path:
        """The interpreter of the environment."""
        return self.venv / "bin" / "python"

    def run(self, *command: str) -> Done:
        """Run a command in the project folder."""
        done = subprocess.run(
            command,
            cwd=self.project if self.project.exists() else self.root,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        return Done(done.returncode, done.stdout)

    def shell(self, command: str, guard: Path | None = None) -> Done:
        """Run a line of shell, with the guard in that folder when one is named."""
        return self.run("sh", "-c", f". {guard}/guard.sh; {command}" if guard else command)

    def version(self, name: str) -> str:
        """The installed version of a distribution, "" if none exists."""
        folders = list(self.venv.glob(f"lib/python3*/site-packages/{name}-*.dist-info"))
        assert len(folders) < 2, folders
        return folders[0].name.removesuffix(".dist-info").partition("-")[2] if folders else ""

    @property
    def torch(self) -> str:
        """The installed torch version."""
        return self.version("torch")

    @property
    def built_against(self) -> str:
        """The torch that ``extension`` saw when it was built, "" when it is not installed."""
        found = list(self.venv.glob("lib/python3*/site-packages/extension-1.0.dist-info/METADATA"))
        return found[0].read_text().partition("Summary: ")[2].splitlines()[0] if found else ""
