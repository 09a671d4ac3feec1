"""The state folder: where it is, who owns it, who may write it."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from types import SimpleNamespace

import pytest

from wheel_checks.errors import SourceError
from wheelproof.pins.rewrite.state import existing_state, open_state

SOMEBODY = 4242


def opened() -> Path:
    with open_state() as folder:
        return folder.path


def test_it_is_made_for_this_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "new/state"))
    os.umask(os.umask(0))  # for any umask, the modes are these
    path = opened()

    assert path == tmp_path / "new/state/wheelproof/pins"
    assert [p.stat().st_mode & 0o777 for p in (path, *path.parents[:3])] == [0o700] * 4
    with existing_state() as folder:
        assert folder is not None


@pytest.mark.parametrize("missing", [0, 1, 2, 3])
def test_looking_makes_nothing(missing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = ["state", "wheelproof", "pins"][:missing]
    made = tmp_path.joinpath("at", *parts)
    made.mkdir(parents=True)
    for path in (made, *made.parents[: len(parts)]):
        path.chmod(0o700)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "at/state"))
    with existing_state() as folder:
        assert (folder is not None) == (missing == 3)
    assert not list(made.iterdir())


@pytest.mark.parametrize("value", ["", "relative/state"])
def test_without_a_variable_it_is_in_the_home(value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", value)
    monkeypatch.setenv("HOME", str(tmp_path))

    assert opened() == tmp_path / ".local/state/wheelproof/pins"


def test_the_home_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As under `sudo` and in the containers of CI systems, where HOME is another user's."""
    real = Path.stat
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    theirs.mkdir()
    mine.mkdir()

    def stat(path: Path, **options: bool) -> object:
        return SimpleNamespace(st_uid=SOMEBODY) if path == theirs else real(path, **options)

    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(theirs))
    monkeypatch.setattr(Path, "stat", stat)
    monkeypatch.setattr(pwd, "getpwuid", lambda user: SimpleNamespace(pw_dir=str(mine), pw_name="me"))
    assert opened() == mine / ".local/state/wheelproof/pins"

    monkeypatch.setattr(pwd, "getpwuid", lambda user: SimpleNamespace(pw_dir=str(theirs), pw_name="me"))
    with pytest.raises(SourceError, match=r"user me owns no home folder.*XDG_STATE_HOME"):
        opened()
    assert not list(theirs.iterdir())


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give folders away")
@pytest.mark.parametrize("name", ["", "wheelproof", "wheelproof/pins"])
def test_a_folder_of_another_user_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    opened()
    os.chown(tmp_path / "state" / name, SOMEBODY, SOMEBODY)

    for way in (open_state, existing_state):
        with pytest.raises(SourceError, match=r"belongs to user 4242, and this process runs as user root"), way():
            pass


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o755])
@pytest.mark.parametrize("name", ["wheelproof", "wheelproof/pins"])
def test_a_folder_that_is_open_to_others(  # as one of a repository is, where HOME is the checkout
    name: str, mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    opened()
    (tmp_path / "state" / name).chmod(mode)

    for way in (open_state, existing_state):
        with pytest.raises(SourceError, match=r"other users may read or write .*chmod 700"), way():
            pass


@pytest.mark.parametrize("name", ["wheelproof", "wheelproof/pins"])
def test_a_link_in_its_place(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "state" / name
    path.parent.mkdir(parents=True, mode=0o700)
    (tmp_path / "elsewhere").mkdir()
    path.symlink_to(tmp_path / "elsewhere")

    for way in (open_state, existing_state):
        with pytest.raises(SourceError, match="is a link"), way():
            pass
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_file_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "state").touch()

    with pytest.raises(SourceError):
        opened()
