"""The torch that imports find, before and after: copies in front of it, and copies that an installer does not see."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from uv import find_uv_bin

from tests.conftest import Wheelproof
from tests.support.base_python import copy_python
from tests.support.fake_torch import torch
from tests.support.wheels import WheelBuilder
from wheel_checks.sources.environment import find_environment
from wheelproof.pins.predict.import_order import read_interior

INSTALLED = "2.7.0+cu128"
VERSION = f"python{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture
def index(tmp_path: Path) -> Path:
    folder = tmp_path / "index"
    folder.mkdir()
    for version in ("2.7.0", "2.8.0"):
        torch(version).write(folder)
    WheelBuilder("needs_any", "1.0").metadata(requires=["torch"]).write(folder)
    WheelBuilder("needs_2_8", "1.0").metadata(requires=["torch==2.8.0"]).write(folder)
    return folder


def venv(python: Path, place: Path, *options: str) -> Path:
    """A virtual environment; its interpreter."""
    subprocess.run([str(python), "-m", "venv", "--without-pip", *options, str(place)], check=True)
    return place / "bin" / "python3"


def put(version: str, folder: Path, tmp_path: Path) -> None:
    """Install a torch into a folder."""
    wheel = torch(version).add("torch/__init__.py", f"__version__ = {version!r}\n").write(tmp_path)
    command = [
        find_uv_bin(),
        "pip",
        "install",
        "--quiet",
        "--no-config",
        "--offline",
        "--target",
        str(folder),
        str(wheel),
    ]
    subprocess.run(command, check=True)


def site_packages(python: Path) -> Path:
    """Where pip would install: Debian's base installation has another folder than site-packages for it."""
    command = [str(python), "-I", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    return Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())


def predict(wheelproof: Wheelproof, index: Path, python: Path, installer: str, requested: str) -> tuple[int, str]:
    """The exit code, and the fate of torch."""
    options = ("--python", str(python), "--installer", installer, "--no-index", "--find-links", str(index))
    run = wheelproof("pins", "predict", *options, "--format", "json", requested)
    report: dict[str, Any] = json.loads(run.out)
    fates = [subject["facts"]["fate"] for subject in report["subjects"] if subject["facts"].get("name") == "torch"]
    return run.status, *fates


@pytest.mark.parametrize(
    ("installer", "requested", "expected"),
    [
        ("pip", "needs-any", (0, "kept")),  # pip sees the base installation
        ("uv", "needs-any", (1, "shadowed")),  # uv does not
        ("pip", "needs-2-8", (1, "shadowed")),  # and may not uninstall the present one
        ("uv", "needs-2-8", (1, "shadowed")),
    ],
)
@pytest.mark.parametrize("how", ["system site-packages", ".pth"])
def test_a_torch_outside_of_the_environment(
    wheelproof: Wheelproof,
    index: Path,
    tmp_path: Path,
    how: str,
    installer: str,
    requested: str,
    expected: tuple[int, str],
) -> None:
    base = copy_python(tmp_path / "base")
    if how == ".pth":
        python = venv(base, tmp_path / "venv")
        put(INSTALLED, tmp_path / "aside", tmp_path)
        (site_packages(python) / "aside.pth").write_text(f"{tmp_path / 'aside'}\n")
    else:
        put(INSTALLED, site_packages(base), tmp_path)
        python = venv(base, tmp_path / "venv", "--system-site-packages")

    assert predict(wheelproof, index, python, installer, requested) == expected


def test_a_torch_on_pythonpath_stays_in_front(
    wheelproof: Wheelproof, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = venv(copy_python(tmp_path / "base"), tmp_path / "venv")
    put(INSTALLED, tmp_path / "first", tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "first"))

    assert predict(wheelproof, index, python, "uv", "needs-2-8") == (0, "kept")


def test_a_source_checkout_on_pythonpath_is_what_imports_find(
    wheelproof: Wheelproof, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = venv(copy_python(tmp_path / "base"), tmp_path / "venv")
    put(INSTALLED, site_packages(python), tmp_path)
    (tmp_path / "checkout" / "torch").mkdir(parents=True)
    (tmp_path / "checkout" / "torch" / "__init__.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "checkout"))

    assert predict(wheelproof, index, python, "uv", "needs-2-8") == (0, "kept")


def test_the_user_site_comes_before_site_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = copy_python(tmp_path / "base")
    monkeypatch.setenv("PYTHONUSERBASE", str(tmp_path / "user"))
    user = tmp_path / "user" / "lib" / VERSION / "site-packages"
    put(INSTALLED, user, tmp_path)
    put("2.6.0", site_packages(python), tmp_path / "user")
    variables = {"PYTHONUSERBASE": str(tmp_path / "user"), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}

    interior = read_interior(find_environment(str(python), variables=variables), variables)

    assert interior.user == str(user)
    seen = interior.order.visible("torch")
    assert seen is not None
    assert seen.version == INSTALLED
    assert [copy.version for copy in interior.order.copies["torch"]] == [INSTALLED, "2.6.0"]


def test_a_module_in_the_current_folder_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = venv(copy_python(tmp_path / "base"), tmp_path / "venv")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "json.py").write_text("raise SystemExit('a module of the tree was imported')\n")
    monkeypatch.chdir(tmp_path / "tree")
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": ""}

    interior = read_interior(find_environment(str(python), variables=variables), variables)

    assert str(tmp_path / "tree") not in interior.order.folders
    assert interior.purelib == str(site_packages(python))


def test_the_environment_of_the_system_is_not_changed(wheelproof: Wheelproof, index: Path, tmp_path: Path) -> None:
    python = copy_python(tmp_path / "base")
    put(INSTALLED, site_packages(python), tmp_path)
    (tmp_path / "base" / "lib" / VERSION / "EXTERNALLY-MANAGED").write_text("[externally-managed]\n")

    assert predict(wheelproof, index, python, "pip", "needs-2-8") == (0, "kept")
