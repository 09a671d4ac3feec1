"""Loses torch, or a library of its closure, in every known way: first without the guard, then under it.

usage: python ci/guard_ways.py [--sample N] [--only TEXT] [--kind ways|builds|open] [--folder FOLDER] [--json FILE]

Each way is a command for the real pip or uv in an environment of small wheels (tests/support/guarded_world.py). Without
the guard it must lose something: else it is no way. Under an installed guard it ends in one of these:

    kept      the command succeeds, and everything is as it was
    refused   the command fails, and everything is as it was
    restored  the command broke something, which was reported and restored
    loud      something is lost, and the exit code and a line on standard error say so
    SILENT    something is lost, and nothing says so

`builds` are documented commands that must work under the guard, and `open` are ways that cannot be closed: they lose
something, and the next `wheelproof pins guard --check` must find that. The loss is checked by the files and an import
of torch, never by the guard. Exit code 1 when a way is SILENT, no way at all, or a build does not work.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support.guarded_world import PYTHON, TORCH, Done, GuardedWorld, Index

Prepare = Callable[[GuardedWorld], object]


@dataclass(frozen=True)
class Way:
    """A command that loses something; ``shows`` is the output of a command that hides torch only while it runs."""

    name: str
    command: str
    prepare: Prepare = lambda _: None
    uv_inside: bool = False
    shows: str = ""


@dataclass(frozen=True)
class Build:
    """A command that must succeed under the guard; ``gives`` checks its result."""

    name: str
    command: str
    gives: Callable[[GuardedWorld, Done], object]
    prepare: Prepare = lambda _: None
    fails: bool = False


def files(**texts: str) -> Prepare:
    """Write files, ``name_txt`` as name.txt."""

    def prepare(world: GuardedWorld) -> None:
        for name, text in texts.items():
            world.write(name.replace("_", "."), text)

    return prepare


def project(*requirements: str, build: bool = False) -> Prepare:
    """Make the folder a project."""
    return lambda world: world.write_project(*requirements, build=build)


def locked(*requirements: str) -> Prepare:
    """Make the folder a project with a lock, which is made before the guard."""

    def prepare(world: GuardedWorld) -> None:
        world.write_project(*requirements)
        world.check(str(world.uv), "lock", "--quiet")

    return prepare


def lock_of_pep_751(*requirements: str) -> Prepare:
    """Write pylock.toml."""

    def prepare(world: GuardedWorld) -> None:
        world.write_project(*requirements)
        world.check(str(world.uv), "export", "-q", "--format", "pylock.toml", "-o", "pylock.toml")

    return prepare


def wheels(world: GuardedWorld) -> None:
    """Put the torch 2.8.0 wheel into the project."""
    (wheel,) = world.index.files.glob("torch-2.8.0-*.whl")
    world.project.joinpath(wheel.name).write_bytes(wheel.read_bytes())


def installed(*packages: str) -> Prepare:
    """Install something else before the guard is."""
    return lambda world: world.check(str(world.uv), "pip", "install", "--quiet", "--no-deps", *packages)


def both(*steps: Prepare) -> Prepare:
    """One after the other."""
    return lambda world: [step(world) for step in steps]


OTHER = files(other_txt="six==1.16\n", torch_txt="torch==2.8.0\n", nvidia_txt="nvidia-cudnn-cu12==9.10\n")
INDEX = "--index-url $PIP_INDEX_URL"
SYSTEM = f"{sys.executable} -m pip"
CHILD = "import subprocess, sys; subprocess.check_call([sys.executable, '-m', 'pip', 'install', 'torch==2.8.0'])"
VERSION = "import torch; print(torch.__version__)"
PIP_WAYS = (
    Way("another version", "pip install torch==2.8.0"),
    Way("an upgrade of torch", "pip install -U torch"),
    Way("by what another package requires", "pip install needs-2-8"),
    Way("an eager upgrade of another package", "pip install -U --upgrade-strategy eager needs-any"),
    Way("a reinstall of the public version", "pip install --force-reinstall torch==2.7.0"),
    Way("a reinstall", "pip install --force-reinstall torch"),
    Way("ignoring what is installed", "pip install -I torch"),
    Way("without dependencies", "pip install --no-deps torch==2.8.0"),
    Way("a companion's latest release", "pip install -U torchvision"),
    Way("a companion that is not installed", "pip install torchaudio==2.8.0"),
    Way("a wheel by its path", "pip install ./torch-2.8.0-py3-none-any.whl", wheels),
    Way("a wheel by its URL", "pip install file://$PWD/torch-2.8.0-py3-none-any.whl", wheels),
    Way("a requirements file", "pip install -r torch.txt", OTHER),
    Way("the project in this folder", "pip install --no-build-isolation .", project("torch==2.8.0", build=True)),
    Way("an editable project", "pip install --no-build-isolation -e .", project("torch==2.8.0", build=True)),
    Way("pip3", "pip3 install torch==2.8.0"),
    Way("pipX.Y", f"pip{PYTHON} install torch==2.8.0"),
    Way("python -m pip", "python -m pip install torch==2.8.0"),
    Way("python -m pip --isolated", f"python -m pip --isolated install {INDEX} torch==2.8.0"),
    Way("pip --isolated", f"pip --isolated install {INDEX} torch==2.8.0"),
    Way("env -i pip", f"env -i .venv/bin/pip install {INDEX} torch==2.8.0"),
    Way("env -i python -m pip", f"env -i .venv/bin/python -m pip install {INDEX} torch==2.8.0"),
    Way("env -i pip --isolated", f"env -i .venv/bin/pip --isolated install {INDEX} torch==2.8.0"),
    Way("another PIP_CONSTRAINT", "PIP_CONSTRAINT=other.txt pip install torch==2.8.0", OTHER),
    Way("another PIP_CONSTRAINT, python -m pip", "PIP_CONSTRAINT=other.txt python -m pip install torch==2.8.0", OTHER),
    Way("another PIP_CONFIG_FILE", "PIP_CONFIG_FILE=/dev/null pip install torch==2.8.0"),
    Way("PIP_PYTHON names the same environment", "PIP_PYTHON=.venv/bin/python pip install torch==2.8.0"),
    Way("a constraint on the command line", "pip install -c other.txt torch==2.8.0", OTHER),
    Way("an option before the command", "pip --no-cache-dir --timeout 5 install torch==2.8.0"),
    Way("another pip with --python", f"{SYSTEM} --python .venv/bin/python install torch==2.8.0"),
    Way("a program that starts pip", f'python -c "{CHILD}"'),
    Way("a shell that was not activated", "env -u VIRTUAL_ENV sh -c '.venv/bin/pip install torch==2.8.0'"),
    Way("from another folder", "cd / && pip install torch==2.8.0"),
    Way(
        "into the folder of the environment",
        f"pip install --target .venv/lib/python{PYTHON}/site-packages -U torch==2.8.0",
    ),
    Way("into the prefix of the environment", "pip install --prefix .venv torch==2.8.0"),
    Way("after an upgrade of pip", "pip install -U --force-reinstall pip && pip install torch==2.8.0"),
    Way("removed", "pip uninstall -y torch"),
    Way("removed by a file", "pip uninstall -y -r torch.txt", OTHER),
    Way("cuDNN removed", "pip uninstall -y nvidia-cudnn-cu12"),
    Way("triton removed by python -m pip", "python -m pip uninstall -y triton"),
    Way("what torch requires removed", "pip uninstall -y sympy"),
    Way("another cuDNN, by what a package requires", "pip install needs-cudnn"),
    Way("another cuDNN, by jax", "pip install 'jax[cuda12]'"),
    Way("another cuDNN, by a file", "pip install -r nvidia.txt", OTHER),
    Way("another NCCL", "pip install needs-nccl"),
    Way("an upgrade of NCCL", "pip install -U nvidia-nccl-cu12"),
    Way("another triton", "pip install needs-triton"),
    Way("cuDNN written over by another package", "pip install needs-cu13"),
    Way("cuDNN written over, python -m pip", "python -m pip install nvidia-cudnn-cu13"),
    Way("cuDNN removed with another package", "pip uninstall -y nvidia-cudnn-cu13", installed("nvidia-cudnn-cu13")),
    Way("torch written over by another package", "pip install impostor"),
)
UV_WAYS = (
    Way("uv, another version", "uv pip install torch==2.8.0"),
    Way("uv, by what another package requires", "uv pip install needs-2-8"),
    Way("uv, an upgrade of torch", "uv pip install -U torch"),
    Way("uv, an upgrade of another package", "uv pip install -U needs-any"),
    Way("uv, a reinstall of the public version", "uv pip install --reinstall torch==2.7.0"),
    Way("uv, a reinstall by its name", "uv pip install --reinstall-package torch torch==2.7.0"),
    Way("uv, a constraint on the command line", "uv pip install -c other.txt torch==2.8.0", OTHER),
    Way("uv, another UV_CONSTRAINT", "UV_CONSTRAINT=other.txt uv pip install torch==2.8.0", OTHER),
    Way("uv, an override", "uv pip install --overrides torch.txt needs-any", OTHER),
    Way("uv, another UV_OVERRIDE", "UV_OVERRIDE=torch.txt uv pip install needs-any", OTHER),
    Way("uv --no-config", "uv --no-config pip install torch==2.8.0"),
    Way("uv, UV_NO_CONFIG", "UV_NO_CONFIG=1 uv pip install torch==2.8.0"),
    Way("uv, without dependencies", "uv pip install --no-deps torch==2.8.0"),
    Way("uv, a wheel by its path", "uv pip install ./torch-2.8.0-py3-none-any.whl", wheels),
    Way("uv, the project in this folder", "uv pip install .", project("torch==2.8.0", build=True)),
    Way("uv, an editable project", "uv pip install -e .", project("torch==2.8.0", build=True)),
    Way("uv, exactly", "uv pip install --exact six"),
    Way("uv pip sync", "uv pip sync other.txt", OTHER),
    Way("uv pip sync with another torch", "uv pip sync torch.txt", OTHER),
    Way("uv, removed", "uv pip uninstall torch"),
    Way("uv, NCCL removed", "uv pip uninstall nvidia-nccl-cu12"),
    Way("uv, removed by a file", "uv pip uninstall -r torch.txt", OTHER),
    Way("uv, another cuDNN", "uv pip install needs-cudnn"),
    Way("uv, another triton", "uv pip install needs-triton"),
    Way("uv, cuDNN written over", "uv pip install needs-cu13"),
    Way("uv, torch written over", "uv pip install impostor"),
    Way("uv, a companion's latest release", "uv pip install -U torchvision"),
    Way("uv, by --python", "cd / && uv pip install --python $VIRTUAL_ENV/bin/python torch==2.8.0"),
    Way("uv, not activated", "env -u VIRTUAL_ENV uv pip install torch==2.8.0"),
    Way("env -i uv", "env -i .venv/bin/uv pip install --default-index $UV_DEFAULT_INDEX torch==2.8.0", uv_inside=True),
    Way("uv --directory", "cd / && env -u VIRTUAL_ENV uv --directory $OLDPWD pip install torch==2.8.0"),
    Way("uv, into the folder", f"uv pip install --target .venv/lib/python{PYTHON}/site-packages torch==2.8.0"),
    Way("uv, into the prefix", "uv pip install --prefix .venv torch==2.8.0"),
    Way("uv in the environment", "uv pip install torch==2.8.0", uv_inside=True),
    Way("python -m uv", "python -m uv pip install torch==2.8.0", uv_inside=True),
    Way("an upgraded uv", "uv pip install --reinstall uv && uv pip install torch==2.8.0", uv_inside=True),
    Way("uv by pip", "pip install --force-reinstall uv && uv pip install torch==2.8.0"),
    Way("uv sync", "uv sync", project("needs-2-8")),
    Way("uv sync of a project without torch", "uv sync", project("six")),
    Way("uv sync with the public version", "uv sync", project("torch==2.7.0")),
    Way("uv sync, not activated", "env -u VIRTUAL_ENV uv sync", project("needs-2-8")),
    Way("uv sync --active", "uv sync --active", project("needs-2-8")),
    Way("uv sync --frozen", "uv sync --frozen", locked("needs-2-8")),
    Way("uv sync --locked --reinstall", "uv sync --locked --reinstall", locked("torch==2.7.0")),
    Way("uv sync --project", "cd / && uv sync --project $OLDPWD", project("needs-2-8")),
    Way("uv sync --exact", "uv sync --exact", project("needs-2-8")),
    Way("uv run", "uv run python -V", project("needs-2-8")),
    Way("uv run --exact", "uv run --exact python -V", project("six")),
    Way("uv run -m", "uv run -m platform", project("needs-2-8")),
    Way("uv run --with", f'uv run --no-sync --with needs-2-8 python -c "{VERSION}"', project("six"), shows="2.8.0"),
    Way("uv run --with, and a sync", f'uv run --with needs-any python -c "{VERSION}"', project("six"), shows="2.12.0"),
    Way("uv run --no-project --with", f'uv run --no-project --with needs-2-8 python -c "{VERSION}"', shows="2.8.0"),
    Way("uv add", "uv add needs-2-8", project()),
    Way("uv add torch", "uv add torch==2.8.0", project("six")),
    Way("uv remove", "uv remove six", project("six", "sympy")),
    Way("a lock of PEP 751", "uv pip install -r pylock.toml", lock_of_pep_751("needs-2-8")),
    Way("a lock of PEP 751, synchronized", "uv pip sync pylock.toml", lock_of_pep_751("six")),
    Way("a lock of PEP 751 by pip", "pip install -r pylock.toml", lock_of_pep_751("needs-2-8")),
    Way("uv venv --clear", "uv venv --clear", project("six")),
    Way("a lock that changes cuDNN", "uv sync", project("needs-cudnn")),
    Way("a lock that writes over cuDNN", "uv sync --inexact", project("needs-cu13")),
)
OPEN_WAYS = (
    Way("an absolute uv --no-config", "$HOME/../tools/uv --no-config pip install torch==2.8.0"),
    Way("python -m pip with PIP_CONFIG_FILE", "PIP_CONFIG_FILE=/dev/null python -m pip install torch==2.8.0"),
    Way(
        "another interpreter",
        f"{SYSTEM} install --no-deps -U --target .venv/lib/python{PYTHON}/site-packages torch==2.8.0",
    ),
    Way("removed by hand", f"rm -r .venv/lib/python{PYTHON}/site-packages/torch"),
    Way("a library changed by hand", f"echo x > .venv/lib/python{PYTHON}/site-packages/nvidia/nccl/lib/libnccl.so.2"),
)


def built_against(version: str) -> Callable[[GuardedWorld, Done], bool]:
    """Whether the extension saw that torch when it was built."""

    def gives(world: GuardedWorld, _: Done) -> bool:
        found = list(world.site.glob("extension-1.0.dist-info/METADATA"))
        return bool(found) and f"Summary: {version}\n" in found[0].read_text()

    return gives


def has(*folders: str) -> Callable[[GuardedWorld, Done], bool]:
    """Whether these are in site-packages."""
    return lambda world, _: all((world.site / folder).exists() for folder in folders)


def succeeds(_: GuardedWorld, __: Done) -> bool:
    """Nothing more is asked."""
    return True


def hashed(world: GuardedWorld) -> None:
    """A requirements file with hashes, made by uv."""
    world.write("in.txt", "six==1.17\nneeds-any==1.0\n")
    world.check(str(world.uv), "pip", "compile", "-q", "--generate-hashes", "--no-deps", "in.txt", "-o", "hashed.txt")


BUILDS = (
    Build("pip --no-build-isolation", "pip install --no-build-isolation extension", built_against(TORCH)),
    Build(
        "pip --no-build-isolation with PIP_BUILD_CONSTRAINT",
        "PIP_BUILD_CONSTRAINT=$PWD/.venv/share/torch-guard/constraints.txt pip install --no-build-isolation extension",
        built_against(TORCH),
    ),
    Build("PIP_NO_BUILD_ISOLATION", "PIP_NO_BUILD_ISOLATION=0 pip install extension", built_against(TORCH)),
    Build(
        "python -m pip --no-build-isolation",
        "python -m pip install --no-build-isolation extension",
        built_against(TORCH),
    ),
    Build(
        "pip, isolated, against another torch",
        "pip install extension",
        lambda world, _: not built_against("")(world, _),
        fails=True,
    ),
    Build(
        "pip, isolated, with a build constraint",
        "pip install --build-constraint other.txt .",
        has("demo-1.0.dist-info"),
        both(OTHER, project("six", build=True)),
    ),
    Build(
        "pip, isolated, with PIP_BUILD_CONSTRAINT",
        "PIP_BUILD_CONSTRAINT=other.txt pip install .",
        has("demo-1.0.dist-info"),
        both(OTHER, project("six", build=True)),
    ),
    Build("pip -e", "pip install -e .", has("demo-1.0.dist-info"), project("six", build=True)),
    Build(
        "pip wheel",
        "pip wheel --no-deps -w dist .",
        lambda world, _: list(world.project.glob("dist/*.whl")),
        project(build=True),
    ),
    Build(
        "pip download",
        "pip download --no-deps -d dist torch==2.8.0",
        lambda world, _: list(world.project.glob("dist/*.whl")),
    ),
    Build("pip, hashes", "pip install --require-hashes --no-deps -r hashed.txt", has("six-1.17.dist-info"), hashed),
    Build("uv, hashes", "uv pip install --require-hashes --no-deps -r hashed.txt", has("six-1.17.dist-info"), hashed),
    Build(
        "pip, elsewhere",
        "pip install --target other torch==2.8.0",
        lambda world, _: (world.project / "other/torch-2.8.0.dist-info").is_dir(),
    ),
    Build(
        "uv, elsewhere",
        "uv pip install --target other torch==2.8.0",
        lambda world, _: (world.project / "other/torch-2.8.0.dist-info").is_dir(),
    ),
    Build("another environment", "uv venv -q .other && VIRTUAL_ENV=.other uv pip install torch==2.8.0", succeeds),
    Build(
        "what fits",
        "pip install needs-any six torchvision sympy -U",
        has("needs_any-1.1.dist-info", "sympy-1.14.dist-info"),
    ),
    Build("a companion that fits", "pip install torchaudio", has("torchaudio-2.7.0.dist-info")),
    Build("uv, a companion that fits", "uv pip install torchaudio", has("torchaudio-2.7.0.dist-info")),
    Build("pip freeze", "pip freeze", lambda _, done: "torch @" in done.words or f"torch=={TORCH}" in done.words),
    Build("pip check", "pip check", succeeds),
    Build("pip install --dry-run", "pip install --dry-run six", succeeds),
    Build(
        "pip uninstall of another package",
        "pip uninstall -y six",
        lambda world, _: not (world.site / "six").exists(),
        installed("six"),
    ),
    Build("uv, what compiles against torch", "uv pip install extension", built_against(TORCH)),
    Build("uv --no-build-isolation", "uv pip install --no-build-isolation extension", built_against(TORCH)),
    Build(
        "uv, isolated, with a build constraint",
        "uv pip install -b other.txt .",
        has("demo-1.0.dist-info"),
        both(OTHER, project("six", build=True)),
    ),
    Build(
        "uv, isolated, with UV_BUILD_CONSTRAINT",
        "UV_BUILD_CONSTRAINT=other.txt uv pip install .",
        has("demo-1.0.dist-info"),
        both(OTHER, project("six", build=True)),
    ),
    Build(
        "uv build",
        "uv build --wheel -o dist",
        lambda world, _: list(world.project.glob("dist/*.whl")),
        project(build=True),
    ),
    Build("uv sync with an extension", "uv sync", built_against(TORCH), project("extension")),
    Build(
        "uv lock and uv sync --locked",
        "uv lock && uv sync --locked",
        has("six-1.17.dist-info"),
        project("needs-any", "six"),
    ),
    Build("uv sync --frozen", "uv sync --frozen", has("six-1.17.dist-info"), locked("needs-any", "six")),
    Build(
        "uv export, uv tree",
        "uv export -q -o out.txt && uv tree",
        lambda world, _: "six==1.17" in (world.project / "out.txt").read_text(),
        locked("six"),
    ),
    Build("uv run", f'uv run python -c "{VERSION}"', lambda _, done: TORCH in done.words, project("six")),
    Build(
        "uv run --with what fits",
        f'uv run --with six==1.16 python -c "import six; print(six.__version__); {VERSION}"',
        lambda _, done: "1.16" in done.words and TORCH in done.words,
        project("six"),
    ),
    Build(
        "uv add, uv remove",
        "uv add six && uv remove six",
        lambda world, _: "six" not in (world.project / "pyproject.toml").read_text(),
        project(),
    ),
    Build("uv pip sync", "uv pip sync other.txt", has("six-1.16.dist-info"), OTHER),
    Build("uv pip compile", "uv pip compile other.txt", lambda _, done: "six==1.16" in done.words, OTHER),
    Build(
        "a lock of PEP 751",
        "uv export -q --format pylock.toml -o pylock.toml && uv pip install -r pylock.toml",
        has("six-1.17.dist-info"),
        locked("six"),
    ),
    Build(
        "a script with its own requirements",
        "uv run script.py",
        lambda _, done: "1.17" in done.words,
        files(script_py='# /// script\n# dependencies = ["six"]\n# ///\nimport six\nprint(six.__version__)\n'),
    ),
)


def judge(way: Way, world: GuardedWorld, done: Done) -> str:
    """How a command ended under the guard."""
    is_reported = "torch-guard: " in done.words
    if not world.venv.exists() or not world.is_intact or (way.shows and way.shows in done.words.splitlines()):
        return "loud" if done.status and is_reported else "SILENT"
    if done.status == 0:
        return "kept"
    return "restored" if "restored" in done.words else "refused"


def is_lost(way: Way, world: GuardedWorld, done: Done) -> bool:
    """Whether a command lost something."""
    return not world.venv.exists() or not world.is_intact or (bool(way.shows) and way.shows in done.words.splitlines())


def try_way(way: Way, folder: Path, index: Index) -> dict[str, str]:
    """Take a way in two fresh environments, without the guard and under it."""
    plain = GuardedWorld.create(folder / "plain", index, uv_inside=way.uv_inside)
    way.prepare(plain)
    plain.settle()
    done = plain.shell(way.command)
    lost = is_lost(way, plain, done)
    plain.remove()
    guarded = GuardedWorld.create(folder / "guarded", index, uv_inside=way.uv_inside)
    way.prepare(guarded)
    guarded.settle()
    installed = guarded.install_guard("--quiet")
    under = guarded.shell(way.command)
    outcome = judge(way, guarded, under) if installed.status == 0 else f"NOT INSTALLED: {installed.words}"
    words = [line for line in under.words.splitlines() if "torch-guard: " in line]
    guarded.remove()
    return {"without": "lost" if lost else f"NOT LOST ({done.status})", "under": outcome, "said": " | ".join(words)}


def try_build(build: Build, folder: Path, index: Index) -> dict[str, str]:
    """Run a documented command under the guard."""
    world = GuardedWorld.create(folder / "build", index)
    build.prepare(world)
    world.settle()
    installed = world.install_guard("--quiet")
    done = world.shell(build.command)
    works = installed.status == 0 and (done.status != 0) == build.fails and world.is_intact and build.gives(world, done)
    outcome = "works" if works else f"DOES NOT WORK ({done.status}): {done.words[-1500:]}"
    world.remove()
    return {"under": outcome}


def try_open(way: Way, folder: Path, index: Index) -> dict[str, str]:
    """Run a command that cannot be prevented, with the check's results before and after."""
    world = GuardedWorld.create(folder / "open", index)
    way.prepare(world)
    world.install_guard("--quiet")
    before = world.guard("--check")
    done = world.shell(way.command)
    lost = is_lost(way, world, done)
    after = world.guard("--check")
    world.remove()
    found = lost and before.status == 0 and after.status == 1 and "PIN212" in after.words
    outcome = "found" if found else f"NOT FOUND ({before.status}, {after.status}): {before.words}\n{after.words}"
    return {"without": "lost" if lost else f"NOT LOST: {done.words}", "under": outcome}


def run(
    kinds: Sequence[str], folder: Path, chosen: Callable[[Sequence[str]], Iterable[str]]
) -> dict[str, dict[str, str]]:
    """Run the chosen commands, and print a line for each."""
    index = Index.create(folder / "index")
    work: dict[str, Callable[[Path], dict[str, str]]] = {}
    if "ways" in kinds:
        work |= {way.name: lambda at, way=way: try_way(way, at, index) for way in (*PIP_WAYS, *UV_WAYS)}  # type: ignore[misc]
    if "builds" in kinds:
        work |= {f"build: {one.name}": lambda at, one=one: try_build(one, at, index) for one in BUILDS}  # type: ignore[misc]
    if "open" in kinds:
        work |= {f"open: {way.name}": lambda at, way=way: try_open(way, at, index) for way in OPEN_WAYS}  # type: ignore[misc]
    found = {}
    for name in chosen(list(work)):
        begun = time.monotonic()
        found[name] = work[name](folder)
        print(f"{time.monotonic() - begun:5.1f} s  {name}: {' -> '.join(found[name].values())}", flush=True)
    return found


def main() -> int:
    """Try, and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="every N-th only")
    parser.add_argument("--only", default="", metavar="TEXT", help="those whose name contains a text")
    parser.add_argument("--kind", choices=("ways", "builds", "open"), action="append", default=[])
    parser.add_argument("--folder", type=Path, help="where to work (default: a temporary folder)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results")
    arguments = parser.parse_args()
    kinds = arguments.kind or ["ways", "builds", "open"]

    def chosen(names: Sequence[str]) -> Iterable[str]:
        named = [name for name in names if arguments.only in name]
        return named[:: arguments.sample or 1]

    with tempfile.TemporaryDirectory() as temporary:
        found = run(kinds, arguments.folder or Path(temporary), chosen)
    counts = Counter(one["under"].partition(":")[0].partition(" (")[0] for one in found.values())
    print(dict(counts), f"{len(found)} in all")
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return int(any("NOT" in one.get("without", "") or not one["under"].split()[0].islower() for one in found.values()))


if __name__ == "__main__":
    sys.exit(main())
