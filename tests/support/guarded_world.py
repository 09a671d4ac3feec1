"""An environment with a torch, the libraries of its closure, a real pip and a real uv, and an index without that torch.

index = Index.create(folder)                      # once: small wheels, and pip and uv packed again
world = GuardedWorld.create(folder, index)        # an environment of a second
world.install_guard(); world.shell("python -m pip install torch==2.8.0"); world.is_intact

Nothing of this host's configuration or caches is used. What is intact is asked of the files, never of the guard.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from uv import find_uv_bin

from tests.support.fake_torch import extension
from tests.support.patience import PATIENCE
from tests.support.wheels import WheelBuilder

TORCH = "2.7.0+cu128"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
CUDNN, NCCL = "nvidia/cudnn/lib/libcudnn.so.9", "nvidia/nccl/lib/libnccl.so.2"

# A torch that imports as the real one does: with the libraries of its closure, each by its own content.
_TORCH = """
import os
import sympy, triton
__version__ = "{version}"
for library, expected in {libraries!r}.items():
    path = os.path.join(os.path.dirname(os.path.dirname(__file__)), library)
    with open(path) as file:
        found = file.read()
    if found != expected:
        raise ImportError(f"{{library}} is {{found}}, not {{expected}}")
"""
_LIBRARIES = {CUDNN: "cudnn 9.7", NCCL: "nccl 2.26"}

# The build backend of the projects: a wheel of METADATA alone, with the requirements of the project.
_BACKEND = """
import os, tomllib, zipfile

PROJECT = tomllib.load(open("pyproject.toml", "rb"))["project"]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = PROJECT["name"]
    recorded = f"{name}-1.0.dist-info"
    requires = "".join(f"Requires-Dist: {one}\\n" for one in PROJECT.get("dependencies", []))
    files = {
        "METADATA": f"Metadata-Version: 2.1\\nName: {name}\\nVersion: 1.0\\n{requires}",
        "WHEEL": "Wheel-Version: 1.0\\nGenerator: tests\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    files["RECORD"] = "".join(f"{recorded}/{file},,\\n" for file in (*files, "RECORD"))
    with zipfile.ZipFile(os.path.join(wheel_directory, f"{name}-1.0-py3-none-any.whl"), "w") as archive:
        for file, text in files.items():
            archive.writestr(f"{recorded}/{file}", text)
    return f"{name}-1.0-py3-none-any.whl"


build_editable = build_wheel
"""


def torch(version: str, *, is_cuda: bool = False) -> WheelBuilder:
    """A torch; the CUDA build needs its libraries, the others bring nothing."""
    if is_cuda:
        requires = ["sympy", "triton==3.3.0", "nvidia-cudnn-cu12==9.7", "nvidia-nccl-cu12==2.26"]
        text = _TORCH.format(version=version, libraries=_LIBRARIES)
        built = WheelBuilder("torch", version).metadata(requires=requires)
        return built.add("torch/__init__.py", text).add("torch/lib/libtorch.so", f"torch {version}")
    text = f'__version__ = "{version}"\n'
    return WheelBuilder("torch", version).add("torch/__init__.py", text).metadata(requires=["sympy"])


def _library(name: str, version: str, path: str, content: str) -> WheelBuilder:
    return WheelBuilder(name.replace("-", "_"), version).add(path, content)


def _needs(name: str, *requires: str, version: str = "1.0") -> WheelBuilder:
    return WheelBuilder(name.replace("-", "_"), version).metadata(requires=requires)


def _module(name: str, version: str, *requires: str) -> WheelBuilder:
    text = f'__version__ = "{version}"\n'
    return WheelBuilder(name, version).add(f"{name}/__init__.py", text).metadata(requires=requires)


HELD = ("torch", "torchvision", "triton", "nvidia_cudnn_cu12", "nvidia_nccl_cu12")
INSTALLED = (  # what is in the environment and, but for torch and its companion, on the index, too
    torch(TORCH, is_cuda=True),
    _module("torchvision", "0.22.0+cu128", f"torch=={TORCH}"),
    _module("triton", "3.3.0"),
    _module("sympy", "1.13"),
    _library("nvidia-cudnn-cu12", "9.7", CUDNN, "cudnn 9.7"),
    _library("nvidia-nccl-cu12", "2.26", NCCL, "nccl 2.26"),
)
OFFERED = (
    torch("2.7.0"),
    torch("2.8.0"),
    torch("2.12.0"),
    _module("torchvision", "0.22.0", "torch==2.7.0"),
    _module("torchvision", "0.23.0", "torch==2.8.0"),
    _module("torchaudio", "2.7.0", "torch==2.7.0"),
    _module("torchaudio", "2.8.0", "torch==2.8.0"),
    _module("triton", "3.4.0"),
    _module("sympy", "1.14"),
    _library("nvidia-cudnn-cu12", "9.10", CUDNN, "cudnn 9.10"),
    _library("nvidia-nccl-cu12", "2.27", NCCL, "nccl 2.27"),
    _library("nvidia-cudnn-cu13", "9.12", CUDNN, "cudnn 9.12"),  # another name, the same file
    _module("six", "1.16"),
    _module("six", "1.17"),
    _needs("needs-2-8", "torch==2.8.0"),
    _needs("needs-any", "torch>=2.6"),
    _needs("needs-any", "torch>=2.6", version="1.1"),
    _needs("needs-cudnn", "nvidia-cudnn-cu12>=9.8"),
    _needs("needs-nccl", "nvidia-nccl-cu12>=2.27"),
    _needs("needs-triton", "triton>=3.4"),
    _needs("needs-cu13", "nvidia-cudnn-cu13"),
    WheelBuilder("impostor", "1.0").add("torch/__init__.py", "__version__ = '9'\n"),
    WheelBuilder("jax", "0.6").metadata("Provides-Extra: cuda12", requires=["jax-cuda12-plugin; extra == 'cuda12'"]),
    _needs("jax-cuda12-plugin", "nvidia-cudnn-cu12>=9.8", version="0.6"),
)


def _packed(name: str, folder: Path) -> Path:
    """The wheel of an installed distribution, packed again from its files; its programs are those of the wheel."""
    found = metadata.distribution(name)
    version = found.version
    target = folder / f"{name}-{version}-py3-none-any.whl"
    recorded = f"{name}-{version}.dist-info"
    rows = []
    with zipfile.ZipFile(target, "w") as archive:
        for file in found.files or ():
            path = Path(str(found.locate_file(file)))
            inside = str(file)
            if inside.startswith(".."):
                if name != "uv":
                    continue
                inside = f"{name}-{version}.data/scripts/{path.name}"
            if path.suffix == ".pyc" or path.name in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json"):
                continue
            archive.write(path, inside)
            rows.append(f"{inside},,\n")
        archive.writestr(f"{recorded}/RECORD", "".join(rows) + f"{recorded}/RECORD,,\n")
    return target


@dataclass(frozen=True)
class Index:
    """A simple index as files, and the wheels of the environment that it does not have."""

    folder: Path

    @classmethod
    def create(cls, folder: Path) -> Index:
        """Make the index below ``folder``."""
        index = cls(folder)
        index.files.mkdir(parents=True)
        index.own.mkdir()
        for wheel in INSTALLED:
            wheel.write(index.own)
            if "+" not in wheel.version:
                wheel.write(index.files)
        for wheel in OFFERED:
            wheel.write(index.files)
        (index.files / "extension-1.0.tar.gz").write_bytes(extension())
        for name in ("pip", "uv"):
            _packed(name, index.files)
        for file in sorted(index.files.iterdir()):
            page = index.pages / file.name.partition("-")[0].replace("_", "-") / "index.html"
            page.parent.mkdir(parents=True, exist_ok=True)
            with page.open("a") as links:
                digest = hashlib.sha256(file.read_bytes()).hexdigest()
                links.write(f'<a href="../../files/{file.name}#sha256={digest}">{file.name}</a>\n')
        return index

    @property
    def files(self) -> Path:
        """The folder of the files."""
        return self.folder / "files"

    @property
    def pages(self) -> Path:
        """The folder of the pages."""
        return self.folder / "simple"

    @property
    def own(self) -> Path:
        """The wheels of the environment."""
        return self.folder / "own"


@dataclass(frozen=True)
class Done:
    """How a command ended, and what it said."""

    status: int
    words: str


@dataclass
class GuardedWorld:
    """One environment; ``variables`` are those of every command, as in a shell that activated it."""

    root: Path
    index: Index
    variables: dict[str, str] = field(default_factory=dict)
    before: dict[str, str] = field(default_factory=dict)
    imported: str = TORCH

    @classmethod
    def create(cls, root: Path, index: Index, *, uv_inside: bool = False, venv: str = "project/.venv") -> GuardedWorld:
        """A fresh environment below ``root``, which is the .venv of a project unless ``venv`` says otherwise."""
        world = cls(root, index)
        world.project.mkdir(parents=True)
        world.home.mkdir()
        (root / "tools").mkdir()
        world.uv.symlink_to(find_uv_bin())
        world.place = root / venv
        world.variables = {
            "HOME": str(world.home),
            "XDG_CONFIG_DIRS": str(root / "no-configuration"),
            "PATH": os.pathsep.join([str(world.venv / "bin"), str(root / "tools"), "/usr/bin", "/bin"]),
            "VIRTUAL_ENV": str(world.venv),
            "UV_DEFAULT_INDEX": index.pages.as_uri(),
            "UV_PYTHON_DOWNLOADS": "never",
            "PIP_INDEX_URL": index.pages.as_uri(),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PYTHONPYCACHEPREFIX": str(index.folder / "pycache"),  # pip is compiled once, not in every environment
            "NO_COLOR": "1",
        }
        cache = ["env", f"UV_CACHE_DIR={index.folder}/uv-cache"]
        world.check(*cache, str(world.uv), "venv", "--quiet", "--python", sys.executable, str(world.venv))
        wheels = [str(path) for path in sorted(index.own.iterdir())]
        tools = ["pip", "uv"] if uv_inside else ["pip"]
        world.check(*cache, str(world.uv), "pip", "install", "--quiet", *wheels, *tools)
        world.settle()
        assert world.imported == TORCH
        return world

    def settle(self) -> None:
        """Take what is installed now for what must stay."""
        self.before, self.imported = self.files(), self.torch

    place: Path = Path()

    @property
    def venv(self) -> Path:
        """The environment."""
        return self.place

    @property
    def project(self) -> Path:
        """Where every command is started."""
        return self.root / "project"

    @property
    def home(self) -> Path:
        """The home folder of the user."""
        return self.root / "home"

    @property
    def uv(self) -> Path:
        """The uv outside the environment, the second on PATH."""
        return self.root / "tools" / "uv"

    @property
    def python(self) -> Path:
        """The interpreter of the environment."""
        return self.venv / "bin" / "python"

    @property
    def site(self) -> Path:
        """Its site-packages."""
        return self.venv / "lib" / f"python{PYTHON}" / "site-packages"

    def run(self, *command: str, cwd: Path | None = None) -> Done:
        """Run a command in the project's folder."""
        done = subprocess.run(
            command,
            cwd=cwd or self.project,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        return Done(done.returncode, done.stdout)

    def check(self, *command: str) -> None:
        """Run a command that must succeed."""
        done = self.run(*command)
        assert done.status == 0, (command, done.words)

    def shell(self, command: str) -> Done:
        """Run a line of shell."""
        return self.run("sh", "-c", command)

    def write(self, name: str, text: str) -> None:
        """Write a file of the project."""
        (self.project / name).parent.mkdir(parents=True, exist_ok=True)
        (self.project / name).write_text(text)

    def write_project(self, *requirements: str, build: bool = False, table: str = "") -> None:
        """Make the folder a project with these requirements; ``build`` with a build backend, in the tree."""
        listed = ", ".join(f'"{one}"' for one in requirements)
        text = f'[project]\nname = "demo"\nversion = "1.0"\nrequires-python = ">={PYTHON}"\ndependencies = [{listed}]\n'
        if build:
            text += '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
            self.write("backend.py", _BACKEND)
        else:
            text += f"[tool.uv]\npackage = false\n{table}"
        self.write("pyproject.toml", text)

    def files(self) -> dict[str, str]:
        """The sha256 of every file of what is held, by its path in site-packages: torch, its companion, its closure."""
        found = {}
        for top in ("torch", "torchvision", "triton", "nvidia", "sympy"):
            for path in sorted((self.site / top).rglob("*")):
                if path.is_file() and path.suffix != ".pyc":
                    found[str(path.relative_to(self.site))] = hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(self.site.glob("*.dist-info")):
            if path.name.partition("-")[0] in HELD:
                found[path.name] = ""
        return found

    @property
    def is_intact(self) -> bool:
        """Whether every held file is as it was, and torch imports as it did; sympy may be another version."""
        now = {path: digest for path, digest in self.files().items() if not path.startswith("sympy")}
        then = {path: digest for path, digest in self.before.items() if not path.startswith("sympy")}
        return now == then and self.torch == self.imported

    @property
    def torch(self) -> str:
        """The version of the torch that imports, else the error."""
        code = "import torch, torchvision; print(torch.__version__)"
        done = subprocess.run(
            [self.python, "-B", "-X", "pycache_prefix=/nonexistent", "-c", code],
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            env=self.variables,
        )
        return done.stdout.strip() or done.stderr.strip().splitlines()[-1]

    def tree(self) -> dict[str, tuple[str, int]]:
        """The content and mode of every file and link of the environment and the home folder, without caches."""
        found = {}
        for top in (self.venv, self.home):
            for path in sorted(top.rglob("*")):
                if "__pycache__" in path.parts or ".cache" in path.parts or path.is_dir():
                    continue
                content = str(path.readlink()) if path.is_symlink() else hashlib.sha256(path.read_bytes()).hexdigest()
                found[str(path)] = (content, path.lstat().st_mode)
        return found

    def folders(self) -> set[str]:
        """Every folder of the environment."""
        return {str(path) for path in self.venv.rglob("*") if path.is_dir() and path.name != "__pycache__"}

    def install_guard(self, *options: str) -> Done:
        """``wheelproof pins guard --install``, as a user runs it."""
        return self.guard("--install", "--yes", "--extension", "extension", *options)

    def guard(self, *options: str) -> Done:
        """``wheelproof pins guard OPTIONS``."""
        return self.run(sys.executable, "-m", "wheelproof", "pins", "guard", "--python", str(self.python), *options)

    def remove(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.root, ignore_errors=True)
