#!/usr/bin/env python3
"""Compare `wheelproof pins predict` with real installs by pip and uv, in environments with small stand-ins of real
wheels.

    ci/predict_against_installs.py                     # every package in every environment: an hour
    ci/predict_against_installs.py --sample 4          # what CI runs
    ci/predict_against_installs.py --only vllm,timm --environment plain --keep /tmp/cells

The index is a folder. Its wheels have the names, versions and requirements of real ones (tests/data/predict), and a
module with its version. Each environment has a working torch 2.9.1+cu128, which the index lacks. After a prediction the
install is carried out, and the environment's own interpreter reports its imports. A prediction is wrong when it says
PASS and something was lost, or FAIL and nothing was.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import pip  # noqa: E402
from packaging.requirements import Requirement  # noqa: E402  # from the folder above
from packaging.utils import canonicalize_name  # noqa: E402
from uv import find_uv_bin  # noqa: E402

from tests.support.base_python import copy_python  # noqa: E402
from tests.support.sdists import SourceBuilder  # noqa: E402
from tests.support.wheels import WheelBuilder  # noqa: E402
from wheelproof.cli.main import main as wheelproof  # noqa: E402

DATA = ROOT / "tests" / "data" / "predict" / "packages.json"
ENVIRONMENTS = ("plain", "system", "pth", "locked", "aarch64")
INSTALLERS = ("uv", "pip")
INSTALLED = {"torch": "2.9.1+cu128", "torchvision": "0.24.1+cu128", "torchaudio": "2.9.1+cu128"}
SHOWN = ("predicted", "happened", "prediction", "install")
_LIBRARY = re.compile(r"nvidia-([a-z-]+?)(?:-cu(\d+))?")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
TIMEOUT = 300.0  # seconds of one command

# The truth: modules that the environment's interpreter imports, and unmet requirements of the frameworks.
TRUTH = """
import importlib.metadata as metadata, json, sys
sys.path[:] = [p for p in sys.path if p]
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
versions, needs = {}, {}
for folder in sys.path:
    for one in metadata.distributions(path=[folder]):
        name = canonicalize_name(one.metadata["Name"])
        if name not in versions:
            versions[name] = one.version
            needs[name] = [Requirement(text) for text in one.requires or ()]
unmet = []
environment = json.loads(sys.argv[2])
for root in json.loads(sys.argv[1]):
    front, seen = [root], set()
    while front:
        name = front.pop()
        if name in seen or name not in versions:
            continue
        seen.add(name)
        for need in needs[name]:
            if need.marker is not None and not need.marker.evaluate({**environment, "extra": ""}):
                continue
            other = canonicalize_name(need.name)
            if other not in versions or not need.specifier.contains(versions[other], prereleases=True):
                unmet.append([root, name, str(need)])
            front.append(other)
found = {}
for root in json.loads(sys.argv[1]):
    try:
        module = __import__(root.replace("-", "_"))
        found[root] = [module.__version__, module.__file__]
    except ImportError:
        found[root] = None
import pathlib
parent = pathlib.Path(sys.modules["torch"].__file__).parent.parent if "torch" in sys.modules else pathlib.Path("/")
files = {str(path.relative_to(parent)): path.read_text() for path in sorted(parent.glob("nvidia/*/lib/version"))}
print(json.dumps({"imports": found, "unmet": sorted(unmet), "files": files}))
"""


@dataclass(frozen=True)
class Package:
    """One release: ``archive`` is "" for a wheel, else "static" or "computed": it has a source archive alone."""

    name: str
    version: str
    requires: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    archive: str = ""
    target: str = ""


@dataclass
class World:
    """The index, the folder of installed packages, and a base installation to copy environments from."""

    root: Path
    packages: Sequence[Package]
    variables: dict[str, str] = field(default_factory=dict)
    before: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def index(self) -> str:
        """The address of the index."""
        return (self.root / "simple").as_uri()

    @property
    def base(self) -> Path:
        """A Python installation with an empty site-packages."""
        return self.root / "base"


def load(path: Path = DATA) -> tuple[list[str], list[Package]]:
    """The names of the packages that are requested, and every release of the index."""
    document = json.loads(path.read_text(encoding="utf-8"))
    return document["asked"], [
        Package(
            row["name"],
            row["version"],
            tuple(row.get("requires", ())),
            tuple(row.get("extras", ())),
            row.get("archive", ""),
        )
        for row in document["packages"]
    ]


def wheel(package: Package, version: str = "") -> WheelBuilder:
    """A stand-in: the real metadata, and a module with its version."""
    name = package.name.replace("-", "_")
    version = version or package.version
    builder = WheelBuilder(name, version)
    fields = [f"Provides-Extra: {extra}" for extra in package.extras]
    builder.metadata(*fields, requires=package.requires, name=package.name)
    if match := _LIBRARY.fullmatch(package.name):  # where the real ones lie (data/accelerators.toml, same_paths)
        is_shared = match[2] == "12" or match[1] in ("cudnn", "dali", "nccl", "nvcomp", "nvshmem")
        builder.add(f"nvidia/{match[1]}/lib/version" if is_shared else f"nvidia/cu13/{match[1]}/version", version)
    return builder.add(f"{name}/__init__.py", f"__version__ = {version!r}\n")


def archive(package: Package) -> SourceBuilder:
    """A source archive with a build backend that packs a wheel with these requirements."""
    name = package.name.replace("-", "_")
    computed = ("Requires-Dist",) if package.archive == "computed" else ()
    metadata = "".join(f"Requires-Dist: {text}\n" for text in package.requires)
    backend = _BACKEND.format(name=name, project=package.name, version=package.version, metadata=metadata)
    project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    files = {"pyproject.toml": project, "backend.py": backend, "setup.py": ""}
    return SourceBuilder(package.name, package.version, package.requires, computed=computed, files=files)


_BACKEND = '''
import zipfile

STEM, METADATA = "{name}-{version}", """Metadata-Version: 2.1
Name: {project}
Version: {version}
{metadata}"""


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = {{
        "{name}/__init__.py": "__version__ = '{version}'",
        STEM + ".dist-info/METADATA": METADATA,
        STEM + ".dist-info/WHEEL": "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }}
    files[STEM + ".dist-info/RECORD"] = "".join(f"{{name}},,\\n" for name in (*files, STEM + ".dist-info/RECORD"))
    with zipfile.ZipFile(wheel_directory + "/" + STEM + "-py3-none-any.whl", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return STEM + "-py3-none-any.whl"
'''


def create(root: Path, packages: Sequence[Package]) -> World:
    """The index as files, and the base installation."""
    world = World(root, packages)
    files = root / "files"
    files.mkdir(parents=True)
    for package in packages:
        if package.archive:
            built = archive(package)
            (files / built.file_name).write_bytes(built.build())
            name = built.file_name
        else:
            name = wheel(package).write(files).name
        page = root / "simple" / canonicalize_name(package.name) / "index.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        with page.open("a") as links:
            links.write(f'<a href="../../files/{name}">{name}</a>\n')
    own = root / "own"
    own.mkdir()
    for name, version in INSTALLED.items():
        base = next(p for p in packages if p.name == name and p.version == version.partition("+")[0])
        module = (
            f"{name}/_C.cpython-{sys.version_info[0]}{sys.version_info[1]}-aarch64-linux-gnu.so"  # shows the platform
        )
        wheel(base, version).add(module, "").write(own)
    copy_python(world.base)
    world.variables = {
        "HOME": str(root / "home"),
        "PATH": os.pathsep.join(
            [str(Path(find_uv_bin()).parent), str(Path(sys.executable).parent), os.environ["PATH"]]
        ),
        "UV_DEFAULT_INDEX": world.index,
        "UV_CACHE_DIR": str(root / "uv-cache"),
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_NO_CONFIG": "1",
        "UV_LINK_MODE": "copy",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": world.index,
        "PIP_CACHE_DIR": str(root / "pip-cache"),
        "PIP_NO_COMPILE": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "XDG_CACHE_HOME": str(root / "cache"),
        "XDG_CONFIG_DIRS": str(root / "none"),
        "NO_COLOR": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    for environment in ENVIRONMENTS:
        _template(world, environment)
    return world


def run(world: World, *command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command in the world."""
    return subprocess.run(
        command,
        env=world.variables,
        cwd=cwd or world.root,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
    )


def _require(done: subprocess.CompletedProcess[str]) -> None:
    if done.returncode:
        raise SystemExit(f"{' '.join(done.args)}\n{done.stdout}{done.stderr}")


def site_packages(environment: Path) -> Path:
    """The site-packages of an environment."""
    return next(environment.glob("lib/python3*/site-packages"))


def _template(world: World, kind: str) -> None:
    """The environment that the cells of a kind are copies of."""
    place = world.root / "templates" / kind
    uv, own = find_uv_bin(), [str(path) for path in sorted((world.root / "own").iterdir())]
    python = str(world.base / "bin" / "python3")
    if kind == "aarch64":
        options = ("--python-platform", "aarch64-manylinux_2_39", "--target", str(place / "site"))
        _require(run(world, uv, "pip", "install", "--python", python, *options, *own))
        return
    target = world.root / "aside" if kind == "pth" else None
    if kind == "system":
        shutil.copytree(world.base, world.root / "system-base", symlinks=True)
        python = str(world.root / "system-base" / "bin" / "python3")
        _require(run(world, uv, "pip", "install", "--python", python, "--break-system-packages", *own))
    shared = ["--system-site-packages"] if kind == "system" else []
    _require(run(world, python, "-m", "venv", "--without-pip", *shared, str(place / "env")))
    inside = str(place / "env" / "bin" / "python3")
    for entry in Path(pip.__file__).parent.parent.glob("pip*"):  # as links: each cell is a copy
        (site_packages(place / "env") / entry.name).symlink_to(entry)
    if target is not None:
        _require(run(world, uv, "pip", "install", "--python", inside, "--target", str(target), *own))
        (site_packages(place / "env") / "aside.pth").write_text(f"{target}\n")
    elif kind != "system":
        _require(run(world, uv, "pip", "install", "--python", inside, *own))
    if kind == "locked":
        (place / "pyproject.toml").write_text(
            '[project]\nname = "product"\nversion = "1.0"\nrequires-python = ">=3.11"\n'
            'dependencies = ["torch>=2.9", "torchvision"]\n\n[tool.uv]\npackage = false\n'
            'constraint-dependencies = ["torch==2.9.1"]\n'
        )
        _require(run(world, uv, "lock", "--python", inside, cwd=place))
        _require(run(world, uv, "export", "--no-hashes", "--no-header", "-o", "requirements.txt", cwd=place))


@dataclass(frozen=True)
class Cell:
    """One package in one environment, by one installer."""

    package: str
    environment: str
    installer: str


@dataclass(frozen=True)
class Result:
    """The prediction: "pass", "fail" or "undecided"; and the result: "kept" or the loss."""

    cell: Cell
    predicted: str
    happened: str
    message: str
    done: str
    seconds: float

    @property
    def kind(self) -> str:
        """Whether the prediction was right."""
        if self.predicted == "undecided":
            return "undecided"
        if (self.predicted == "pass") == (self.happened == "kept"):
            return "right"
        return f"wrong {self.predicted.upper()}"


def judge(world: World, cell: Cell) -> Result:
    """Predict, install, and look."""
    start = time.monotonic()
    place = (
        world.root
        / "cells"
        / "-".join((cell.package.replace("[", "_").replace("]", ""), cell.environment, cell.installer))
    )
    shutil.copytree(world.root / "templates" / cell.environment, place, symlinks=True)
    before = world.before.setdefault(cell.environment, {}) or truth(world, cell, place)
    world.before[cell.environment] = before  # each cell starts with a copy of the same
    predicted, message = predict(world, cell, place)
    done = install(world, cell, place)
    happened = compare(before, truth(world, cell, place))
    words = (
        f"status {done.returncode}" if done.returncode == 0 else " ".join((done.stderr or done.stdout).split())[-300:]
    )
    shutil.rmtree(place)
    return Result(cell, predicted, happened, message, words, time.monotonic() - start)


def truth(world: World, cell: Cell, place: Path) -> dict[str, Any]:
    """The modules that the environment's interpreter imports."""
    python, variables = place / "env" / "bin" / "python3", dict(world.variables)
    variables["PYTHONPATH"] = ""
    markers: dict[str, str] = {}
    command = [str(python)]
    if cell.environment == "aarch64":
        command = [str(world.base / "bin" / "python3")]
        variables["PYTHONPATH"] = str(place / "site")
        markers = {"platform_machine": "aarch64"}
    packaging = str(Path(sys.modules["packaging"].__file__ or "").parent.parent)
    code = f"import sys; sys.path.insert(0, {packaging!r})\nimport packaging.requirements, packaging.utils\n"
    code += "import packaging.markers; sys.path.pop(0)\n"
    done = subprocess.run(
        [*command, "-c", code + TRUTH, json.dumps(list(INSTALLED)), json.dumps(markers)],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        cwd=place,
        timeout=TIMEOUT,
    )
    _require(done)
    found: dict[str, Any] = json.loads(done.stdout.replace(str(place), "PLACE"))
    return found


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """The loss: the first of torch and its companions that differs or lacks something."""
    for name in INSTALLED:
        old, new = before["imports"][name], after["imports"][name]
        if old != new:
            return f"{name} {'shadowed' if new and old[1] != new[1] else 'replaced' if new else 'removed'}"
    unmet = [row for row in after["unmet"] if row not in before["unmet"]]
    changed = [path for path, text in before["files"].items() if after["files"].get(path) != text]
    if changed and not unmet:
        return f"torch broken: {changed[0]} is another"
    return f"{unmet[0][0]} broken: {unmet[0][1]} requires {unmet[0][2]}" if unmet else "kept"


def predict(world: World, cell: Cell, place: Path) -> tuple[str, str]:
    """The verdict, and the first line of the report."""
    arguments = ["pins", "predict", "--installer", cell.installer, "--index-url", world.index, "--format", "json"]
    folder = place
    if cell.environment == "aarch64":
        arguments += ["--python", str(place / "site")]
    else:
        arguments += ["--python", str(place / "env" / "bin" / "python3")]
    if cell.environment == "locked":
        arguments += ["uv", "add", cell.package] if cell.installer == "uv" else ["-r", "requirements.txt", cell.package]
    else:
        arguments.append(cell.package)
    kept, here, out, err = dict(os.environ), Path.cwd(), io.StringIO(), io.StringIO()
    try:
        os.environ.clear()
        os.environ.update(world.variables)
        os.chdir(folder)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = wheelproof(arguments)
    finally:
        os.environ.clear()
        os.environ.update(kept)
        os.chdir(here)
    verdict = {0: "pass", 1: "fail", 3: "undecided"}.get(status, f"status {status}")
    try:
        return verdict, str(json.loads(out.getvalue())["summary"]["answers"][0]["text"])
    except (ValueError, KeyError, IndexError):
        return verdict, " ".join(err.getvalue().split())[-300:]


def install(world: World, cell: Cell, place: Path) -> subprocess.CompletedProcess[str]:
    """Carry the install out."""
    uv, python = find_uv_bin(), str(place / "env" / "bin" / "python3")
    if cell.environment == "aarch64":
        options = ("--python-platform", "aarch64-manylinux_2_39", "--target", str(place / "site"))
        base = str(world.base / "bin" / "python3")
        return run(world, uv, "pip", "install", "--python", base, *options, cell.package)
    wanted = ["-r", "requirements.txt", cell.package] if cell.environment == "locked" else [cell.package]
    if cell.installer == "pip":
        return run(world, python, "-m", "pip", "install", *wanted, cwd=place)
    if cell.environment == "locked":
        world.variables["UV_PROJECT_ENVIRONMENT"] = str(place / "env")
        try:
            return run(world, uv, "add", cell.package, cwd=place)
        finally:
            del world.variables["UV_PROJECT_ENVIRONMENT"]
    return run(world, uv, "pip", "install", "--python", python, *wanted, cwd=place)


def cells(wanted: Sequence[str], environments: Sequence[str], installers: Sequence[str]) -> Iterator[Cell]:
    """Every cell; pip is not asked for another platform."""
    for package in wanted:
        for environment in environments:
            for installer in installers:
                if (environment, installer) != ("aarch64", "pip"):
                    yield Cell(package, environment, installer)


def table(results: Sequence[Result]) -> str:
    """The counts for each environment and installer."""
    rows = [
        "| environment | installer | cells | right | undecided | wrong PASS | wrong FAIL | lost in truth |",
        "| --- " * 8 + "|",
    ]
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.cell.environment, result.cell.installer), []).append(result)
    for (environment, installer), found in [*groups.items(), (("all", "both"), list(results))]:
        count = Counter(result.kind for result in found)
        lost = sum(result.happened != "kept" for result in found)
        other = [count["right"], count["undecided"], count["wrong PASS"], count["wrong FAIL"]]
        rows.append(f"| {environment} | {installer} | {len(found)} | {' | '.join(map(str, other))} | {lost} |")
    return "\n".join(rows)


def main() -> int:
    """Judge the cells that are requested, print a table, and return 1 when a prediction was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=0, help="so many packages, at random, in every environment")
    parser.add_argument("--seed", type=int, default=20, help="of the sample")
    parser.add_argument("--only", default="", help="these packages")
    parser.add_argument("--environment", choices=ENVIRONMENTS, action="append", help="only these environments")
    parser.add_argument("--installer", choices=INSTALLERS, action="append", help="only these installers")
    parser.add_argument(
        "--results", type=Path, help="append each result to this file, as JSON; those in it are not repeated"
    )
    arguments = parser.parse_args()
    wanted, packages = load()
    if arguments.only:
        wanted = arguments.only.split(",")
    elif arguments.sample:
        wanted = random.Random(arguments.seed).sample(wanted, arguments.sample)  # noqa: S311  # a sample, no secret
    edges = requirements_of(packages)
    wanted = sorted(wanted, key=lambda text: len(closure(text, edges)))
    done = _known(arguments.results)
    results: list[Result] = [result for cell, result in done.items() if cell.package in wanted]
    with tempfile.TemporaryDirectory(prefix="predict-") as folder:
        world = create(Path(folder), packages)
        for cell in cells(wanted, arguments.environment or ENVIRONMENTS, arguments.installer or INSTALLERS):
            if cell in done:
                continue
            result = judge(world, cell)
            results.append(result)
            if result.kind != "right":
                print(f"{result.kind}: {cell.package} in {cell.environment} by {cell.installer}", flush=True)
                for name, words in zip(
                    SHOWN, (result.predicted, result.happened, result.message, result.done), strict=True
                ):
                    print(f"    {name:11}{words}", flush=True)
            if arguments.results:
                with arguments.results.open("a") as lines:
                    lines.write(json.dumps(_row(result)) + "\n")
    print(table(results))
    return int(any(result.kind.startswith("wrong") for result in results))


def _row(result: Result) -> list[Any]:
    cell = result.cell
    return [
        cell.package,
        cell.environment,
        cell.installer,
        result.predicted,
        result.happened,
        result.message,
        result.done,
        result.seconds,
    ]


def _known(path: Path | None) -> dict[Cell, Result]:
    """The results of an earlier run."""
    if path is None or not path.is_file():
        return {}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {Cell(*row[:3]): Result(Cell(*row[:3]), *row[3:]) for row in rows}


def requirements_of(packages: Sequence[Package]) -> dict[str, set[str]]:
    """The names that each package requires in any version, extras included."""
    edges: dict[str, set[str]] = {}
    for package in packages:
        names = (text.partition(";")[0].strip() for text in package.requires)
        found = {str(canonicalize_name(match[0])) for name in names if (match := _NAME.match(name))}
        edges.setdefault(package.name, set()).update(found)
    return edges


def closure(text: str, edges: Mapping[str, set[str]]) -> set[str]:
    """The packages that a requirement may lead to: how much a cell takes."""
    found: set[str] = set()
    front = [str(canonicalize_name(Requirement(text).name))]
    while front:
        name = front.pop()
        if name not in found:
            found.add(name)
            front += edges.get(name, ())
    return found


if __name__ == "__main__":
    sys.exit(main())
