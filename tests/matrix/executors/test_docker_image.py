"""The images that are made of Debian's packages: their names, their contents, and a real one."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.support.docker_engine import ELSEWHERE, HERE
from wheel_checks.errors import SourceError
from wheelproof.matrix.executors.docker.emulation import DOCKER_NAMES
from wheelproof.matrix.executors.docker.executor import debian_image, image_of
from wheelproof.matrix.executors.docker.image import SUITES, Image, build, compile_hooks, packages
from wheelproof.matrix.model import Cell

ROOT = Path(__file__).resolve().parents[3]


def program(folder: Path, name: str, script: str) -> None:
    """An executable of this name, which a search path with ``folder`` finds first."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.mark.parametrize("python", SUITES)
def test_a_cell_gets_the_image_with_its_python(python: str) -> None:
    cell = Cell("c", "aarch64", python, "2.11.0")
    image = debian_image(cell)
    assert image == Image(python, "arm64")
    assert image_of(cell) == image.name == f"wheelproof/debian:{SUITES[python]}-arm64"
    assert Image.named(image.name) == image
    assert {f"python{python}", f"python{python}-venv", f"python{python}-dev", "gcc"} <= set(packages(image))


def test_further_packages_make_another_image() -> None:
    cell = Cell("c", "aarch64", "3.13", "2.11.0", system_packages=("libgl1", "jq"))
    image = debian_image(cell)
    assert image == Image("3.13", "arm64", ("libgl1", "jq"))
    assert set(packages(Image("3.13", "arm64"))) | {"libgl1", "jq"} == set(packages(image))
    assert image_of(cell).startswith("wheelproof/debian:trixie-arm64-")
    assert image.name == Image("3.13", "arm64", ("jq", "libgl1", "jq")).name != Image("3.13", "arm64", ("jq",)).name


@pytest.mark.parametrize(
    "name", ["python:3.13-slim", "wheelproof/debian:buster-amd64", "x/wheelproof/debian:sid-amd64"]
)
def test_another_image_is_not_ours(name: str) -> None:
    assert Image.named(name) is None


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SourceError, match=r"mmdebstrap is not installed \(on Debian and Ubuntu: apt-get install mm"):
        build(Image("3.13", "amd64"))


def test_an_image_goes_to_the_engine_as_an_archive_that_docker_load_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The root file system is a stand-in; the archive is the standard input of `docker load`."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    program(
        bin_folder, "mmdebstrap", f'printf "%s\\n" "$@" > {tmp_path}/asked; for last; do :; done; echo root > "$last"'
    )
    program(bin_folder, "docker", f'case "$1" in load) cat > {tmp_path}/loaded.tar;; *) exit 1;; esac')
    monkeypatch.setenv("PATH", f"{bin_folder}{os.pathsep}{os.environ['PATH']}")

    assert build(Image("3.14", "arm64")).startswith("wheelproof/debian:sid-arm64 (Python 3.14) made")

    asked = (tmp_path / "asked").read_text(encoding="utf-8").splitlines()
    assert "--architectures=arm64" in asked
    assert asked[-2] == "sid"
    with tarfile.open(tmp_path / "loaded.tar") as tar:
        (manifest,) = json.load(tar.extractfile("manifest.json") or sys.stdin)
        configuration = json.load(tar.extractfile(manifest["Config"]) or sys.stdin)
    assert manifest["RepoTags"] == ["wheelproof/debian:sid-arm64"]
    assert (configuration["architecture"], configuration["os"]) == ("arm64", "linux")


def test_no_emulated_python_compiles_the_modules_of_an_image() -> None:
    here = "{}.{}".format(*sys.version_info)
    native, foreign = (DOCKER_NAMES[machine] for machine in (HERE, ELSEWHERE))
    for python in SUITES:
        hooks = [compile_hooks(Image(python, architecture)) for architecture in (native, foreign)]
        starts = [hook[0].split()[0] if hook else "" for hook in hooks]
        assert starts == ([f'"{sys.executable}"'] * 2 if python == here else ["chroot", ""])


def test_a_failure_of_mmdebstrap_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "mmdebstrap", "exit 25")
    program(tmp_path, "docker", "exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(SourceError, match="mmdebstrap could not make wheelproof/debian:trixie-amd64"):
        build(Image("3.13", "amd64"))


def test_an_image_of_the_same_recipe_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "mmdebstrap", f'for last; do :; done; echo root > "$last"; echo made >> {tmp_path}/made')
    program(
        tmp_path, "docker", f'case "$1 $2" in "image inspect") cat {tmp_path}/recipe;; "load "*) cat > /dev/null;; esac'
    )
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "recipe").write_text("another\n", encoding="utf-8")
    image = Image("3.13", "amd64")
    recipe = build(image).rpartition(" ")[2]
    (tmp_path / "recipe").write_text(f"{recipe}\n", encoding="utf-8")

    assert build(image) == f"wheelproof/debian:trixie-amd64 (Python 3.13) exists, of recipe {recipe}"
    assert (tmp_path / "made").read_text(encoding="utf-8") == "made\n"
    build(image, force=True)
    assert (tmp_path / "made").read_text(encoding="utf-8") == "made\nmade\n"


def test_the_script_of_the_checkout_is_the_same_command() -> None:
    script = [sys.executable, str(ROOT / "docker/debian/build.py"), "amd64"]
    answer = subprocess.run(script, env={"PATH": "/nowhere"}, capture_output=True, text=True, check=False)
    assert answer.returncode == 3
    assert "mmdebstrap is not installed" in answer.stderr
