"""Which interpreter runs the kernels; nothing of it is run to find out."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from wheel_checks.errors import NotFoundError, SourceError
from wheelproof.smoke.interpreter import find_interpreter


def venv(folder: Path, *packages: str) -> Path:
    """A virtual environment that has these packages, and an interpreter that must not run."""
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.3\n")
    python = folder / "bin" / "python3"
    python.write_bytes(b"\x7fELF and no program")
    python.chmod(0o755)
    for package in packages:
        (folder / "lib/python3.12/site-packages" / package).mkdir(parents=True)
    (folder / "lib/python3.12/site-packages").mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def no_torch_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)


def test_the_one_that_runs_wheelproof_when_it_has_torch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    active = venv(tmp_path / "active", "torch")

    found = find_interpreter("", {"VIRTUAL_ENV": str(active)})

    assert (found.path, found.why) == (sys.executable, "it runs wheelproof and has torch")


@pytest.mark.usefixtures("no_torch_here")
def test_else_the_active_environment_when_that_has_torch(tmp_path: Path) -> None:
    active = venv(tmp_path / "active", "torch")

    found = find_interpreter("", {"VIRTUAL_ENV": str(active)})

    assert (found.path, found.why) == (f"{active}/bin/python3", "VIRTUAL_ENV names it")


@pytest.mark.usefixtures("no_torch_here")
def test_when_none_has_torch_all_that_was_looked_at_is_named(tmp_path: Path) -> None:
    active = venv(tmp_path / "active", "numpy")
    with pytest.raises(NotFoundError) as caught:
        find_interpreter("", {"VIRTUAL_ENV": str(active)})

    error = caught.value
    assert error.what == (
        f"torch is missing: {sys.executable} and {active}/bin/python3 (VIRTUAL_ENV names it) have none"
    )
    assert error.hint.endswith(f"or find out which build fits this host: wheelproof doctor --python {sys.executable}")
    assert error.exit_code == 3


@pytest.mark.usefixtures("no_torch_here")
@pytest.mark.parametrize("variables", [{}, {"VIRTUAL_ENV": sys.prefix}])
def test_when_there_is_no_other_this_one_alone_is_named(variables: dict[str, str]) -> None:
    with pytest.raises(NotFoundError, match=f"^torch is missing: {sys.executable} has none"):
        find_interpreter("", variables)


def test_a_path_is_taken_as_it_is(tmp_path: Path) -> None:
    python = venv(tmp_path / "env") / "bin" / "python3"
    link = tmp_path / "python"
    link.symlink_to(python)

    assert find_interpreter(str(link), {}).path == str(link)  # not its target, which is no venv


def test_a_folder_is_an_environment(tmp_path: Path) -> None:
    folder = venv(tmp_path / "env")

    assert find_interpreter(str(folder), {}).path == f"{folder}/bin/python3"


def test_a_name_is_looked_for_on_the_path(tmp_path: Path) -> None:
    folder = venv(tmp_path / "env")

    assert find_interpreter("python3", {"PATH": f"{folder}/bin"}).path == f"{folder}/bin/python3"


def test_what_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"there is no .*/nowhere"):
        find_interpreter(str(tmp_path / "nowhere"), {})
    with pytest.raises(NotFoundError, match="is no Python environment"):
        find_interpreter(str(tmp_path), {})


def test_a_file_that_cannot_be_run_is_reported(tmp_path: Path) -> None:
    (tmp_path / "python").write_text("")
    with pytest.raises(SourceError, match=r"/python cannot be run"):
        find_interpreter(str(tmp_path / "python"), {})
