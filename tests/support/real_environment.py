"""A real environment, filled by real installers from its own indexes.

environment = RealEnvironment(tmp_path)
own = environment.index("whl/cu128", torch("2.10.0+cu128", "cu128", "12.8"))
environment.run(f"{environment.pip} install --index-url {own} torch")       # as a user would paste it
environment.facts()                                                         # of a healthy H200 server that has it
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pip
from packaging.utils import canonicalize_name
from uv import find_uv_bin

from tests.support.hosts import healthy
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.software import Installed, Interpreter
from wheel_checks.fixes.commands import Step, in_words
from wheelproof.doctor.probes.installation.installed import read_installed_facts

HOUR = 3600.0


def torch(version: str, build: str, cuda: str, *requires: str) -> WheelBuilder:
    """A torch as PyTorch's index has it, or the package index: there METADATA does not name the build."""
    text = f"__version__ = '{version.partition('+')[0]}+{build}'\ncuda = {cuda!r}\n"
    built = WheelBuilder("torch", version).metadata(requires=requires).add("torch/version.py", text)
    return built.add("torch/__init__.py", "from torch.version import __version__\n")


class RealEnvironment:
    """An environment of this Python below ``root``. ``pip`` starts a pip for it, since it has none unless
    ``with_pip``.
    """

    def __init__(self, root: Path, *, with_pip: bool = False) -> None:
        self.root, self.folder = root, root / "env"
        self.variables = {**os.environ, "UV_OFFLINE": "1", "UV_CACHE_DIR": str(root / "cache"), "PIP_NO_CACHE_DIR": "1"}
        self.variables["PATH"] = f"{Path(find_uv_bin()).parent}:{os.environ['PATH']}"
        own = shlex.quote(sys.executable)
        self.run(f"uv venv -q --python {own} {self.folder}")
        self.with_pip, self.python = with_pip, f"{self.folder}/bin/python"
        self.pip = f"{own} -m pip --python {self.python}"
        (self.site_packages,) = self.folder.glob("lib/python3*/site-packages")
        if with_pip:  # this Python's own: to install one takes seconds
            (root / "with-pip").mkdir()
            (root / "with-pip" / "pip").symlink_to(Path(pip.__file__).parent)
            (self.site_packages / "pip.pth").write_text(str(root / "with-pip"))

    def index(self, name: str, *wheels: WheelBuilder) -> str:
        """The URL of an index with these wheels."""
        for wheel in wheels:
            page = self.root / name / canonicalize_name(wheel.name) / "index.html"
            page.parent.mkdir(parents=True, exist_ok=True)
            file = wheel.write(page.parent)
            with page.open("a") as links:
                links.write(f'<a href="{file.name}">{file.name}</a>\n')
        return (self.root / name).as_uri()

    def run(self, command: str) -> str:
        """Run a command as a user would paste it."""
        done = subprocess.run(["bash", "-c", command], env=self.variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def follow(self, *steps: Step) -> None:
        """Run the steps of a fix, as a user would paste them."""
        for step in steps:
            self.run(in_words(step))

    def torch(self) -> str:
        """The version of the torch that its Python imports."""
        return self.run(f"{self.python} -c 'import torch; print(torch.__version__)'").strip()

    def age(self) -> None:
        """Everything that is installed now was installed an hour ago."""
        for record in self.site_packages.glob("*.dist-info/RECORD"):
            seconds = record.stat().st_mtime - HOUR
            os.utime(record, (seconds, seconds))

    def facts(self) -> HostFacts:
        """The facts of a healthy H200 server that has this environment."""
        facts = healthy()
        assert isinstance(facts.interpreter, Interpreter)
        interpreter = replace(
            facts.interpreter,
            path=self.python,
            prefix=str(self.folder),
            purelib=str(self.site_packages),
            search_path=(str(self.site_packages),),
            working_directory=str(self.root),
            has_pip=self.with_pip,
        )
        installed = read_installed_facts(interpreter)
        assert isinstance(installed, Installed)
        return replace(facts, interpreter=interpreter, installed=installed)
