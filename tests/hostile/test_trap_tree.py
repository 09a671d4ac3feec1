"""Commands in a repository full of traps, as users run them: nothing of it is executed, and nothing is written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from kernels_smoke.suite import start
from tests.hostile.trap_tree import REFUSED, SHARED_KEYS, WHEEL, contents, plant
from tests.support.patience import PATIENCE
from wheel_checks.sources.uv_binary import find_uv
from wheelproof.kernels import BOOTSTRAP, MODULE, package_folder

HERE = sys.executable
KERNELS_PYTHON = os.environ.get("WHEELPROOF_KERNELS_PYTHON", "")  # read now: tests run without it in their environment
COMMANDS = {
    "doctor": "doctor",
    "doctor --full": f"doctor --full --python {HERE}",
    "verify": f"verify {WHEEL}",
    "verify a requirement": "verify torch==2.11.0 --offline",
    "verify --installed": "verify --installed",
    "smoke": f"smoke --device interpret --python {HERE}",
    "smoke of any Python": "smoke",
    "matrix list": "matrix list",
    "matrix github": "matrix github",
    "pins check": "pins check",
    "pins": "pins",
    "pins predict": f"pins predict -r requirements.txt --python {HERE} --installer uv --offline",
    "pins predict with pip": f"pins predict six --python {HERE} --installer pip --no-index",
    "pins predict what is built": f"pins predict -r r.txt --python {HERE} --installer both --no-index",
    "pins predict a project": f"pins predict -r pyproject.toml --python {HERE} --installer both --no-index",
    "pins predict a source archive": f"pins predict evilpkg --python {HERE} --installer both --no-index --find-links .",
    "pins predict --no-binary": f"pins predict -r no-binary.txt --python {HERE} --no-index --find-links .",
    "pins predict nested options": f"pins predict -r nested.txt --python {HERE} --no-index --find-links .",
    "stack of a source archive": "stack evilpkg --no-index --find-links .",
    "stack --no-binary": "stack -r no-binary.txt --no-index --find-links .",
    "pins guard --check": f"pins guard --check --python {HERE}",
    "stack": "stack -r r.txt --offline",
    "stack of a project": "stack pyproject.toml --offline",
    "diff": f"diff {WHEEL} {WHEEL}",
    "explain": "explain job.log",
    "rules": "rules WHL201",
}
KEYS = {"doctor": "doctor", "doctor --full": "doctor", "verify": "verify", "verify a requirement": "verify"}
KEYS |= {"verify --installed": "verify", "smoke": "smoke", "smoke of any Python": "smoke", "pins check": "pins.check"}
KEYS |= {"pins predict": "pins.predict", "stack": "stack", "pins guard --check": "pins.guard"}


class Site(NamedTuple):
    tree: Path
    home: Path
    witness: Path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    folder = tmp_path_factory.mktemp("hostile")
    made = Site(folder / "tree", folder / "home", folder / "witness")
    made.tree.mkdir()
    (made.home / ".config").mkdir(parents=True)
    (made.home / ".bashrc").write_text("alias ll='ls -l'\n")
    (folder / "victim.txt").write_text("precious\n")
    plant(made.tree, made.witness)
    return made


def run_in(site: Site, command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the tree, where the user's search paths start with the current folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("WHEELPROOF_", "XDG_"))}
    cache = str(site.home / ".cache")
    ours = {"HOME": str(site.home), "PATH": f".:bin:{os.environ['PATH']}", "XDG_CACHE_HOME": cache, **variables}
    ours |= {
        "UV_CACHE_DIR": f"{cache}/uv",
        "LD_LIBRARY_PATH": ":",
        "VIRTUAL_ENV": ".venv",
        "RUSTUP_HOME": f"{cache}/r",
    }  # pip asks rustc
    program = [HERE, "-P", "-m", "wheelproof", *command.split()]
    return subprocess.run(
        program, env={**kept, **ours}, cwd=site.tree, capture_output=True, text=True, check=False, timeout=PATIENCE
    )


def precious(site: Site) -> dict[str, tuple[int, object]]:
    """All that no command may change: the tree, the home but for caches, and the folder that both are in."""
    own = (str(site.home / ".cache"), str(site.home / ".local/state"))
    return {path: what for path, what in contents(site.tree.parent).items() if not path.startswith(own)}


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_of_a_tree_is_executed_and_nothing_written(site: Site, name: str) -> None:
    before = precious(site)
    ended = run_in(site, COMMANDS[name])
    words = ended.stderr
    assert "Traceback" not in words
    assert not site.witness.exists(), site.witness.read_text()
    assert precious(site) == before
    if name in KEYS:
        named = {
            key
            for line in words.splitlines()
            if " ignored: " in line
            for key in re.split(", | and ", line.split(" in ")[0].removeprefix("wheelproof: "))
        }
        assert named == {*SHARED_KEYS, *(f"{KEYS[name]}.{key}" for key in REFUSED[KEYS[name]])}


def test_the_traps_are_armed(tmp_path: Path) -> None:
    """Python, uv and pip, started in the tree as users start them, run into them: else the tests would show nothing."""
    tree, witness = tmp_path / "tree", tmp_path / "witness"
    tree.mkdir()
    plant(tree, witness)
    offline = ["--no-index", "--find-links", "."]
    pip = [HERE, "-P", "-m", "pip", "install", "--dry-run", "--only-binary", ":all:", *offline]
    uv = [find_uv(), "pip", "install", "--dry-run", "--no-cache", "--no-build", "--python", HERE, *offline]
    for command, trap in {
        (HERE, "-c", "import torch"): "torch",
        (HERE, "-m", "pip"): "importlib",
        (HERE, "setup.py"): "setup",
        ("./uv",): "uv",
        (*uv, "evilpkg"): "backend",
        (*pip, "-r", "no-binary.txt"): "backend",
        (*pip, "-r", "nested.txt"): "backend",
    }.items():
        subprocess.run(command, cwd=tree, capture_output=True, check=False, timeout=PATIENCE)
        assert trap in witness.read_text().split(), command
        witness.unlink()


@pytest.mark.kernels
@pytest.mark.parametrize("command", ["smoke --device interpret --only rms_norm", "doctor"])
def test_a_real_torch_is_imported_and_not_that_of_the_tree(site: Site, command: str) -> None:
    before = precious(site)
    ended = run_in(site, f"{command} --python {KERNELS_PYTHON}")
    assert "torch 2." in ended.stdout
    assert not site.witness.exists(), site.witness.read_text()
    assert precious(site) == before


def test_the_suite_leaves_the_current_folder_before_it_imports_anything(site: Site) -> None:
    """Also where it is not started in another folder."""
    for program in ([BOOTSTRAP, str(package_folder()), MODULE], [start.BOOTSTRAP, str(start.PACKAGE), MODULE]):
        ended = subprocess.run(
            [HERE, "-c", *program, "--help"],
            cwd=site.tree,
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE,
        )
        assert ended.stdout.startswith("usage: ")
    assert not site.witness.exists(), site.witness.read_text()
