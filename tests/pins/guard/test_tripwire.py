"""The tripwire alone: detected changes, and the files whose content it reads."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.wheels import WheelBuilder
from wheelproof.pins.guard.inside import tripwire
from wheelproof.pins.guard.inside.held import Held, installed


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with a torch of twenty files."""
    builder = WheelBuilder("torch", "2.7.0+cu128")
    for number in range(20):
        builder.add(f"torch/file{number}.py", f"{number:02}")
    shutil.unpack_archive(builder.write(tmp_path), tmp_path / "site", "zip")
    return tmp_path / "site"


def look(site: Path) -> dict[str, tripwire.Seen]:
    found = installed([str(site)])
    return tripwire.look(Held(found, found), [str(site)])


def damages(before: dict[str, tripwire.Seen], site: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], int]:
    """The damages, and the number of files read to find them."""
    read: list[str] = []
    real = tripwire._is_recorded

    def is_recorded(path: str, digest: str) -> bool:
        read.append(path)
        return real(path, digest)

    monkeypatch.setattr(tripwire, "_is_recorded", is_recorded)
    return [damage.what for damage in tripwire.compare(before, {}, [str(site)])], len(read)


def test_nothing_is_read_where_nothing_changed(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert damages(look(site), site, monkeypatch) == ([], 0)


def test_one_file_of_the_same_size_and_time(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, path = look(site), site / "torch" / "file7.py"
    status = path.stat()
    (site / "new").write_text("xx")
    (site / "new").replace(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert damages(before, site, monkeypatch) == (["torch/file7.py of torch 2.7.0+cu128 was overwritten"], 1)


def test_a_copied_environment_is_not_read(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = look(site)
    shutil.copytree(site, site.parent / "copy")
    site.rename(site.parent / "old")
    (site.parent / "copy").rename(site)
    assert damages(before, site, monkeypatch) == ([], 0)
    (site / "torch" / "file3.py").write_text("longer")
    assert damages(before, site, monkeypatch) == (["torch/file3.py of torch 2.7.0+cu128 was overwritten"], 1)


def test_the_same_wheel_installed_again(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = look(site)
    for path in sorted(site.rglob("*.py")):
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(content)
        os.utime(path, (1, 1))
    assert damages(before, site, monkeypatch) == ([], 20)


def test_a_removed_file(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = look(site)
    (site / "torch" / "file3.py").unlink()
    assert damages(before, site, monkeypatch)[0] == ["torch/file3.py of torch 2.7.0+cu128 was removed"]
