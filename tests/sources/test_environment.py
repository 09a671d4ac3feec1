"""Environments of every layout are found and listed only from their files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.environments import MODULE, library
from wheel_checks.errors import NotFoundError
from wheel_checks.sources.environment import Environment, find_environment
from wheel_checks.sources.file_tree import FileTree

SITE = "lib/python3.12/site-packages"


def put(folder: Path, *files: str, content: bytes = b"") -> Path:
    for file in files:
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def interpreter(folder: Path, name: str = "python3.12", machine: str = "aarch64") -> Path:
    """bin/python3 as a link to an interpreter for another machine: running it would fail."""
    put(folder, f"bin/{name}", content=library(machine=machine))
    (folder / "bin/python3").symlink_to(name)
    return folder


def venv(folder: Path, *lines: str) -> Path:
    put(interpreter(folder), f"{SITE}/demo.py")
    (folder / "pyvenv.cfg").write_text("\n".join(["home = /usr/bin", "version = 3.12.4", *lines]))
    return folder


def find(path: Path | str = "", root: str = "/", **variables: str) -> Environment:
    return find_environment(str(path), variables=variables, root=root)


def paths(environment: Environment) -> list[str]:
    return [entry.path for entry in environment.entries]


def test_a_venv_by_its_folder_or_its_interpreter(tmp_path: Path) -> None:
    venv(tmp_path)

    for path in (tmp_path, tmp_path / "bin/python3"):
        found = find(path)
        assert (found.kind, found.python, found.patch, found.machine) == ("venv", (3, 12), 4, "aarch64")
        assert paths(found) == [f"{tmp_path}/{SITE}"]
        assert dict(found.entries[0].files) == {"demo.py": 0}


def test_lib64_that_is_a_link_is_listed_once_and_one_that_is_a_folder_too(tmp_path: Path) -> None:
    linked, real = venv(tmp_path / "linked"), venv(tmp_path / "real")
    (linked / "lib64").symlink_to("lib")
    put(real, f"{SITE.replace('lib/', 'lib64/')}/more.py")

    assert len(find(linked).entries) == 1
    assert [Path(p).parts[-3] for p in paths(find(real))] == ["lib", "lib64"]


def test_a_venv_that_includes_the_system_and_the_user(tmp_path: Path) -> None:
    base = put(interpreter(tmp_path / "base"), f"{SITE}/a.py")
    home = put(tmp_path / "home", f".local/{SITE}/b.py")
    folder = venv(tmp_path / "venv", "include-system-site-packages = true", f"home = {base}/bin")

    assert paths(find(folder, HOME=str(home))) == [f"{home}/.local/{SITE}", f"{folder}/{SITE}", f"{base}/{SITE}"]


def test_the_plain_lines_of_pth_files_are_followed_and_code_in_them_is_not(tmp_path: Path) -> None:
    folder = venv(tmp_path / "venv")
    put(tmp_path / "source", "demo.egg-info/PKG-INFO")
    marker = tmp_path / "ran"
    put(folder, f"{SITE}/a.pth", content=f"# a\nimport os; open({str(marker)!r}, 'w')\n{tmp_path}/source\n/no".encode())

    assert paths(find(folder)) == [f"{folder}/{SITE}", f"{tmp_path}/source"]
    assert find(folder).entries[1].names == ("demo.egg-info",)
    assert not marker.exists()


def test_a_flat_folder_tells_python_and_machine_by_its_modules(tmp_path: Path) -> None:
    put(tmp_path, "demo-1.0.dist-info/METADATA", MODULE)

    found = find(tmp_path)
    assert (found.kind, found.python, found.machine, found.interpreter) == ("target", (3, 12), "aarch64", "")


def test_a_flat_folder_without_modules_tells_nothing(tmp_path: Path) -> None:
    found = find(put(tmp_path, "demo-1.0.dist-info/METADATA"))

    assert (found.python, found.machine) == (None, "")


def test_the_free_threaded_build_has_folders_of_its_own(tmp_path: Path) -> None:
    found = find(put(interpreter(tmp_path, "python3.13t"), "lib/python3.13t/site-packages/a.py"))

    assert (found.kind, found.python, found.free_threaded) == ("base", (3, 13), True)


def test_a_container_is_searched_for_the_environment_that_has_torch(tmp_path: Path) -> None:
    put(tmp_path, "etc/os-release", "usr/lib/python3/dist-packages/six-1.0.dist-info/METADATA")
    put(interpreter(tmp_path / "usr", "python3.11"), "lib/python3.11/os.py")
    put(interpreter(tmp_path / "opt/conda"), f"{SITE}/torch/__init__.py", f"{SITE}/torch-2.11.0.dist-info/METADATA")

    found = find(tmp_path)
    assert (found.path, found.tree.root, paths(found)) == ("/opt/conda", str(tmp_path), [f"/opt/conda/{SITE}"])
    assert found.notes == ("there are other environments: /usr (see --python)",)
    debian = find("/usr", root=str(tmp_path))
    assert (paths(debian), debian.python) == (["/usr/lib/python3/dist-packages"], (3, 11))


def test_absolute_links_in_a_container_stay_in_it(tmp_path: Path) -> None:
    put(interpreter(tmp_path / "usr"), f"{SITE}/a.py")
    put(tmp_path, "etc/os-release", "opt/venv/pyvenv.cfg", f"opt/venv/{SITE}/a-1.dist-info/METADATA")
    (tmp_path / "opt/venv/bin").mkdir()
    (tmp_path / "opt/venv/bin/python3").symlink_to("/usr/bin/python3.12")
    (tmp_path / "up").symlink_to("../../../../../etc/os-release")

    found = find("/opt/venv/bin/python3", root=str(tmp_path))
    assert (found.kind, found.machine) == ("venv", "aarch64")
    assert found.tree.real("/opt/venv/bin/python3") == "/usr/bin/python3.12"
    assert found.tree.size("/up") == 0


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")

    assert FileTree(str(tmp_path)).size("/a/x") is None


def test_the_active_environment_is_the_default_and_told(tmp_path: Path) -> None:
    venv(tmp_path)
    shim = put(tmp_path / "shims", "python3", content=b"#!/bin/sh\n")

    assert find(VIRTUAL_ENV=str(tmp_path)).found == "VIRTUAL_ENV names it"
    assert find(CONDA_PREFIX=str(tmp_path)).found == "CONDA_PREFIX names it"
    on_path = find(PATH=f"{shim}{os.pathsep}{tmp_path}/bin")
    assert (on_path.path, on_path.found) == (str(tmp_path), "its python3 is the first on PATH")


@pytest.mark.parametrize("path", ["missing", "empty", "empty/file"])
def test_what_is_no_environment_is_an_error_that_says_what_would_be(tmp_path: Path, path: str) -> None:
    put(tmp_path, "empty/file")
    with pytest.raises(NotFoundError) as error:
        find(tmp_path / path)
    assert "expected" in str(error.value)


def test_no_environment_at_all() -> None:
    with pytest.raises(NotFoundError, match="no active environment"):
        find(PATH="")


def test_this_interpreter_is_found_as_it_describes_itself() -> None:
    ask = "import site, sys; print(sys.version_info[:3], *site.getsitepackages(), sep='\\n')"
    told = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout.split("\n")

    found = find(sys.executable)
    assert str((*(found.python or ()), found.patch)) == told[0]
    assert paths(found)[0] == told[1]
