"""Packages outside of our tree, built by uv and installed by uv into an environment of their own next to wheelproof."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.patience import PATIENCE

ROOT = Path(__file__).parents[2]

RULES = '''
from wheel_checks import Evidence, Finding, Severity, need, rule


@rule(
    "ACME001",
    "wheels have our prefix",
    Severity.WARNING,
    why="Our index serves nothing else.",
    example="demo-1.0-py3-none-any.whl",
    fix="Rename the project.",
    sources=["https://example.org/policy"],
)
def has_our_prefix(wheel, expectations):
    """The distribution's name starts with acme."""
    print("a plug-in may print")
    name = need(wheel.name).distribution
    if not name.startswith("acme"):
        yield Finding(f"{name} does not start with acme", (Evidence("name", name),))


@rule("ACME002", "wheels are small", why="Our disk.", example="torch", fix="Leave something out.")
def is_small(wheel, expectations):
    """At most a gigabyte."""
    if wheel.size > 1 << 30:
        yield Finding(f"{wheel.size} bytes")


@rule("ACME003", "hosts have an engine", why="Ours do.", example="-", fix="Install it.", kind="host")
def has_an_engine(host, expectations):
    """The probe has found it."""
    if need(host.probes["acme"]).values["engine"] == "none":
        yield Finding("no engine")
'''
FORMAT = """
def render(report, stream):
    stream.write(f"{report.command}: {report.verdict.value}\\n")
    for subject in report.subjects:
        stream.write(f"- {subject.id}\\n")
"""
PROBE = """
def probe():
    return {"engine": "none", "racks": 3}
"""


@dataclass
class Package:
    """A distribution with one module and entry points: ``{"rules": "acme_rules"}`` in the groups of wheelproof."""

    name: str
    source: str
    points: Mapping[str, str]
    version: str = "1.0"

    @property
    def module(self) -> str:
        return self.name.replace("-", "_")

    def build(self, folder: Path) -> Path:
        """The wheel, built by uv and its own build backend, which needs no index."""
        project = folder / self.name
        (project / "src" / self.module).mkdir(parents=True)
        (project / "src" / self.module / "__init__.py").write_text(self.source)
        groups = "".join(
            f'[project.entry-points."wheelproof.{kind}"]\n{point}\n' for kind, point in self.points.items()
        )
        (project / "pyproject.toml").write_text(
            f'[build-system]\nrequires = ["uv_build>=0.5,<2"]\nbuild-backend = "uv_build"\n'
            f'[project]\nname = "{self.name}"\nversion = "{self.version}"\nrequires-python = ">=3.11"\n{groups}'
        )
        uv("build", "--wheel", "--offline", "--quiet", "--out-dir", str(folder / "dist"), str(project))
        (wheel,) = (folder / "dist").glob(f"{self.module}-*.whl")
        return wheel


def uv(*arguments: str) -> None:
    done = subprocess.run(
        ["uv", *arguments], capture_output=True, text=True, check=False, env=_path(), timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr


def _path() -> dict[str, str]:
    folder = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}", "UV_NO_CONFIG": "1"}


@dataclass
class Outside:
    """An environment with wheelproof as it is here, its dependencies, and the packages that are installed."""

    folder: Path
    python: Path = field(init=False)

    def __post_init__(self) -> None:
        environment = self.folder / "env"
        uv("venv", "--offline", "--quiet", "--python", sys.executable, str(environment))
        self.python = environment / "bin/python"
        # Packages in .venv come after the environment's own; its plug-ins would not count.
        (site,) = environment.glob("lib/python*/site-packages")
        places = (ROOT / "tools", ROOT, sysconfig.get_paths()["purelib"])
        (site / "wheelproof.pth").write_text("".join(f"{place}\n" for place in places))

    def install(self, *packages: Package) -> None:
        wheels = [str(package.build(self.folder)) for package in packages]
        uv("pip", "install", "--offline", "--quiet", "--no-deps", "--python", str(self.python), *wheels)

    def wheelproof(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the command in its own folder."""
        command = [str(self.python), "-m", "wheelproof", *arguments]
        environment = {**os.environ, **variables}
        return subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=self.folder, env=environment, timeout=PATIENCE
        )

    def report(self, *arguments: str, **variables: str) -> dict[str, Any]:
        """The JSON report of a command, with its exit code as "status"."""
        done = self.wheelproof(*arguments, "--format", "json", **variables)
        assert done.stdout, done.stderr
        return {**json.loads(done.stdout), "status": done.returncode}


def results_of(report: Mapping[str, Any], rule: str) -> list[tuple[str, str]]:
    """The outcome and the message of each result of a rule."""
    every = (result for subject in report["subjects"] for result in subject["results"])
    return [(result["outcome"], result["message"]) for result in every if result["rule"].startswith(rule)]
