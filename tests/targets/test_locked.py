"""Which packages a target gets of a lock: those that its installer takes. The locks of uv were made by uv."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wheel_checks.errors import FormatError, UsageError
from wheel_checks.formats.lock.model import Lock
from wheel_checks.formats.lock.reading import format_by_content, read_lock
from wheel_checks.targets.extras_and_groups import ExtrasAndGroups
from wheel_checks.targets.lock_markers import Conditions
from wheel_checks.targets.locked import Selected, covered_targets, select, validated
from wheel_checks.targets.target import parse_targets

LOCKS = Path(__file__).parents[1] / "data" / "locks"

POETRY = """
[[package]]
name = "torch"
version = "2.12.1"
optional = false
python-versions = ">=3.10"
groups = ["main", "dev"]
markers = "python_version < \\"3.14\\""
files = [{file = "torch-2.12.1-cp312-cp312-manylinux_2_28_aarch64.whl", hash = "sha256:%s"}]

[[package]]
name = "torch"
version = "2.10.0"
optional = false
python-versions = ">=3.10"
groups = ["main", "dev"]
markers = "python_version >= \\"3.14\\""
files = []

[[package]]
name = "fast"
version = "1.0"
optional = true
python-versions = "*"
groups = ["main"]
markers = "extra == \\"speed\\""
files = []

[[package]]
name = "colorama"
version = "0.4"
optional = false
python-versions = "*"
groups = ["main", "test"]
markers = {main = "sys_platform == \\"win32\\""}
files = []

[extras]
speed = ["fast"]

[metadata]
lock-version = "2.1"
python-versions = ">=3.10,<4.0"
content-hash = "00"
""" % ("0" * 64)

OLD_POETRY = """
[[package]]
name = "app"
version = "1.0"
category = "main"
optional = false
python-versions = "*"
[package.dependencies]
base = {version = "^2", markers = "platform_machine == 'x86_64'"}
other = "*"

[[package]]
name = "base"
version = "2.1"
optional = false
python-versions = "*"

[[package]]
name = "other"
version = "1.0"
optional = false
python-versions = "*"
[package.dependencies]
app = "*"
both = [{version = "<2", markers = "python_version < '3.12'"}, {version = ">=2", markers = "python_version >= '3.12'"}]

[[package]]
name = "root"
version = "1.0"
optional = false
python-versions = "*"
[package.dependencies]
other = ">=1"

[[package]]
name = "both"
version = "1.5"
optional = false
python-versions = "*"

[[package]]
name = "both"
version = "2.5"
optional = false
python-versions = "*"

[[package]]
name = "extra-only"
version = "1.0"
optional = true
python-versions = "*"

[extras]
more = ["extra-only"]

[metadata]
lock-version = "1.1"
python-versions = "^3.9"
content-hash = "00"
[metadata.files]
base = [{file = "base-2.1-py3-none-any.whl", hash = "sha256:00"}]
"""

PDM = """
[metadata]
groups = ["default", "gpu", "dev"]
strategy = ["inherit_metadata"]
lock_version = "4.5.0"
content_hash = "sha256:00"

[[metadata.targets]]
requires_python = ">=3.11"
%s

[[package]]
name = "six"
version = "1.17.0"
groups = ["default"]
files = [{file = "six-1.17.0-py2.py3-none-any.whl", hash = "sha256:00"}]

[[package]]
name = "torch"
version = "2.9.1"
groups = ["gpu"]
marker = "platform_machine == \\"x86_64\\""
files = []

[[package]]
name = "six"
version = "1.17.0"
extras = ["more"]
groups = ["default"]
dependencies = ["six==1.17.0"]
files = [{file = "six-1.17.0-py2.py3-none-any.whl", hash = "sha256:00"}]
"""

PIXI = """version: 6
environments:
  default:
    channels:
    - url: https://conda.example/conda-forge/
    packages:
      linux-64:
      - conda: https://conda.example/conda-forge/linux-64/python-3.12.4-h0_0.conda
      - conda: https://conda.example/conda-forge/linux-64/pytorch-2.8.0-cuda129_mkl_py312_h0_302.conda
      - pypi: https://files.example/six-1.17.0-py2.py3-none-any.whl
  cpu:
    channels: []
    packages:
      linux-64:
      - conda: https://conda.example/conda-forge/linux-64/python-3.12.4-h0_0.conda
      linux-aarch64:
      - pypi: ./wheels/six-1.17.0-py2.py3-none-any.whl
packages:
- conda: https://conda.example/conda-forge/linux-64/python-3.12.4-h0_0.conda
  sha256: aa
- conda: https://conda.example/conda-forge/linux-64/pytorch-2.8.0-cuda129_mkl_py312_h0_302.conda
- pypi: https://files.example/six-1.17.0-py2.py3-none-any.whl
  name: six
  version: 1.17.0
  sha256: 4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274
- pypi: ./wheels/six-1.17.0-py2.py3-none-any.whl
  name: six
  version: 1.17.0
"""


def lock_of(name: str, text: str = "") -> Lock:
    data = text.encode() if text else (LOCKS / name).read_bytes()
    return read_lock(data, LOCKS / name)


def chosen(lock: Lock, machine: str = "x86_64", python: str = "3.12", **choice: Any) -> Selected:
    (target,) = parse_targets([machine], [python])
    return select(lock, target, validated(lock, ExtrasAndGroups(**choice), "the lock"))


def labels(selected: Selected) -> list[str]:
    return sorted(package.label for package in selected.packages)


@pytest.mark.parametrize(
    ("name", "choice", "expected"),
    [
        ("conflict.uv.lock", {}, ["six 1.17.0"]),
        ("conflict.uv.lock", {"extras": ("new",)}, ["idna 3.10", "six 1.17.0"]),
        ("conflict.uv.lock", {"extras": ("OLD",)}, ["idna 3.4", "six 1.17.0"]),
        ("workspace.uv.lock", {}, ["six 1.17.0"]),
        ("workspace.uv.lock", {"groups": ("new",)}, ["markupsafe 3.0.2", "six 1.17.0"]),
        ("workspace.uv.lock", {"groups": ("old",)}, ["markupsafe 2.1.5", "six 1.17.0"]),
        ("virtual.uv.lock", {"extras": ("fast",)}, ["idna", "markupsafe 3.0.2", "six 1.17.0"]),
        ("pylock.conflict.toml", {}, ["idna 3.10", "six 1.17.0"]),
    ],
)
def test_extras_and_groups_decide_what_is_reached(name: str, choice: dict[str, Any], expected: list[str]) -> None:
    found = labels(chosen(lock_of(name), **choice))
    assert [
        label if wanted.count(" ") else label.partition(" ")[0] for label, wanted in zip(found, expected, strict=True)
    ] == expected


@pytest.mark.parametrize("name", ["pythons.uv.lock", "pylock.pythons.toml"])
@pytest.mark.parametrize(("python", "version"), [("3.11", "2.1.5"), ("3.12", "3.0.2"), ("3.14", "3.0.3")])
def test_a_python_gets_its_own_release(name: str, python: str, version: str) -> None:
    assert labels(chosen(lock_of(name), python=python)) == [f"markupsafe {version}"]


def test_extras_that_conflict_are_refused() -> None:
    with pytest.raises(UsageError, match="declares extra new and extra old to be in conflict"):
        chosen(lock_of("conflict.uv.lock"), all_extras=True)


def test_an_extra_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="has no extra 'gpu'; expected one of these: new, old"):
        chosen(lock_of("conflict.uv.lock"), extras=("gpu",))


def test_a_lock_for_some_environments_is_for_no_other() -> None:
    lock = lock_of("environments.uv.lock")
    assert labels(chosen(lock)) == ["markupsafe 3.0.2"]
    assert "none of its environments is aarch64 with Python 3.12" in chosen(lock, "aarch64").outside
    assert [t.machine for t in covered_targets(lock, parse_targets(["all"], ["3.12"]), ExtrasAndGroups())] == ["x86_64"]


def test_a_python_out_of_the_bounds_of_the_lock() -> None:
    assert chosen(lock_of("conflict.uv.lock"), python="3.14").outside == "it is for Python >=3.11, <3.14, not 3.14.10"


@pytest.mark.parametrize(
    ("python", "choice", "expected"),
    [
        ("3.12", {}, ["torch 2.12.1"]),
        ("3.14", {}, ["torch 2.10.0"]),
        ("3.12", {"extras": ("speed",)}, ["fast 1.0", "torch 2.12.1"]),
        ("3.12", {"all_extras": True}, ["fast 1.0", "torch 2.12.1"]),
        ("3.12", {"groups": ("test",)}, ["colorama 0.4", "torch 2.12.1"]),
    ],
)
def test_poetry_says_it_of_each_package(python: str, choice: dict[str, Any], expected: list[str]) -> None:
    assert labels(chosen(lock_of("poetry.lock", POETRY), python=python, **choice)) == expected


@pytest.mark.parametrize(
    ("machine", "python", "choice", "expected"),
    [
        ("x86_64", "3.12", {}, ["app 1.0", "base 2.1", "both 2.5", "other 1.0", "root 1.0"]),
        ("aarch64", "3.11", {}, ["app 1.0", "both 1.5", "other 1.0", "root 1.0"]),
        ("aarch64", "3.12", {"extras": ("more",)}, ["app 1.0", "both 2.5", "extra-only 1.0", "other 1.0", "root 1.0"]),
    ],
)
def test_a_poetry_lock_of_old_is_a_graph(
    machine: str, python: str, choice: dict[str, Any], expected: list[str]
) -> None:
    selected = chosen(lock_of("poetry.lock", OLD_POETRY), machine, python, **choice)
    assert labels(selected) == expected
    assert selected.notes
    assert not selected.open


def test_pdm_says_groups_and_markers() -> None:
    lock = lock_of("pdm.lock", PDM % "")
    assert labels(chosen(lock)) == ["six 1.17.0"]
    assert labels(chosen(lock, groups=("gpu",))) == ["six 1.17.0", "torch 2.9.1"]
    assert labels(chosen(lock, extras=("gpu",))) == ["six 1.17.0", "torch 2.9.1"]
    assert labels(chosen(lock, "aarch64", groups=("gpu",))) == ["six 1.17.0"]


def test_a_platform_that_pdm_did_not_lock() -> None:
    lock = lock_of("pdm.lock", PDM % 'platform = "manylinux_2_28_x86_64"')
    assert not chosen(lock).outside
    assert chosen(lock, "aarch64").outside == "it is for manylinux_2_28_x86_64, not for aarch64"


def test_environments_and_platforms_of_pixi() -> None:
    lock = lock_of("pixi.lock", PIXI)
    assert labels(chosen(lock)) == ["python 3.12.4", "pytorch 2.8.0", "six 1.17.0"]
    assert labels(chosen(lock, "aarch64", groups=("cpu",))) == ["six 1.17.0"]
    outside = chosen(lock, "aarch64").outside
    assert outside == "its environment default is for linux-64, not for linux-aarch64 (aarch64); cpu is"
    assert chosen(lock, python="3.13").outside == "its environment default has Python 3.12.4, not 3.13"


PIXI_7 = """version: 7
platforms:
- name: linux-64
- name: p1
  subdir: linux-64
  virtual-packages: [__cuda=12.9, __glibc >= 2.28]
- name: linux-aarch64
environments:
  default:
    packages:
      linux-64: [{conda_source: "mine[b8881f54] @ mine"}]
      p1: [{conda_source: "mine[2a17d7b3] @ mine-cuda"}]
  cuda: {packages: {p1: [{conda_source: "mine[2a17d7b3] @ mine-cuda"}]}}
packages:
- conda_source: mine[b8881f54] @ mine
  version: 1.0.0
- conda_source: mine[2a17d7b3] @ mine-cuda
  version: 2.0.0
  build: pyhbf21a9e_0
"""


def test_named_platforms_of_pixi_with_virtual_packages_and_sources() -> None:
    lock = lock_of("pixi.lock", PIXI_7)
    assert labels(chosen(lock)) == labels(chosen(lock, groups=("cuda",))) == ["mine 2.0.0"]
    assert chosen(lock).notes == ("the platform p1 (linux-64, __cuda=12.9, __glibc >= 2.28) of the lock is checked",)
    older = chosen(lock, "manylinux_2_17_x86_64")  # for which p1 is not
    assert (labels(older), older.notes) == (["mine 1.0.0"], ())
    assert chosen(lock, "manylinux_2_17_x86_64", groups=("cuda",)).outside == (
        "its environment cuda is for p1 (linux-64, __cuda=12.9, __glibc >= 2.28), not for linux-64 "
        "(x86_64, glibc 2.17); default is"
    )
    assert chosen(lock, "aarch64").outside.endswith("not for linux-aarch64 (aarch64)")


def test_packages_know_their_lines() -> None:
    lock = lock_of("pixi.lock", PIXI)
    lines = PIXI.splitlines()
    assert all(lines[p.line - 1].startswith(("- conda", "- pypi")) for p in lock.packages)
    uv = lock_of("workspace.uv.lock")
    written = (LOCKS / "workspace.uv.lock").read_text().splitlines()
    assert [written[p.line] for p in uv.packages] == [f'name = "{p.name}"' for p in uv.packages]


@pytest.mark.parametrize(
    ("text", "form"),
    [(POETRY, "poetry"), (OLD_POETRY, "poetry"), (PDM % "", "pdm"), (PIXI, "pixi")],
    ids=["poetry", "poetry 1", "pdm", "pixi"],
)
def test_the_content_says_the_format(text: str, form: str) -> None:
    assert format_by_content(text.encode()) == form


def test_the_content_of_other_locks_says_it_too() -> None:
    assert format_by_content((LOCKS / "workspace.uv.lock").read_bytes()) == "uv"
    assert format_by_content((LOCKS / "pylock.pythons.toml").read_bytes()) == "pylock"
    assert format_by_content(b'[project]\nname = "x"\nversion = "1"\n') == ""


@pytest.mark.parametrize(
    ("marker", "holds"),
    [
        ("extra == 'extra-4-mine-gpu'", True),
        ("extra != 'extra-4-mine-gpu'", False),
        ("'extra-4-mine-gpu' == extra and platform_machine == 'aarch64'", True),
        ("'gpu' in extras", True),
        ("'cpu' not in extras and 'dev' in dependency_groups", True),
        ("extra == 'cpu' or (extra == 'gpu' and python_version >= '3.13')", False),
        ("", True),
    ],
)
def test_markers_of_locks(marker: str, holds: bool) -> None:
    (target,) = parse_targets(["aarch64"], ["3.12"])
    conditions = Conditions(target, frozenset({"extra-4-mine-gpu", "gpu"}), frozenset({"dev"}))
    assert conditions.hold(marker) is holds


@pytest.mark.parametrize(
    "marker", ["(" * 50_000, "nonsense", "platform_machine ==", "os_name == 'a' or " * 3, "'x' in unknown"]
)
def test_what_is_no_marker_is_one_sentence(marker: str) -> None:
    (target,) = parse_targets(["aarch64"], ["3.12"])
    with pytest.raises(FormatError, match="cannot be evaluated; expected a marker as in PEP 508"):
        Conditions(target).hold(marker)
