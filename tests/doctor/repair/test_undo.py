"""--undo and interruptions: however a repair ends, the tree is restored."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.environments import library
from tests.support.patience import PATIENCE, wait_until
from tests.support.patients import MACHINE, PLATFORM
from tests.support.real_environment import RealEnvironment
from tests.support.repairs import BROKEN, World, companion, packages, tree
from tests.support.wheels import WheelBuilder
from wheel_checks.errors import FormatError, NotFoundError, SourceError
from wheelproof.doctor.repair.snapshot import DONE, FOLDER, JOURNAL, RUNNING, STAGE, Snapshot, copy_file, survey
from wheelproof.doctor.repair.undoing import ChangedSinceError, Undone, alone, changes, undo

EDITED = "lightning, and a file of torch that was edited"
RELEASE = "vllm, and a CPU build of another release"


# The whole command


def test_a_second_undo_changes_nothing_and_edits_since_are_refused(tmp_path: Path) -> None:
    world = World(tmp_path)
    environment = BROKEN[RELEASE].make(world)
    before = tree(environment.folder)
    assert world.doctor(environment, "--fix", "--yes").returncode == 0
    mended = tree(environment.folder)
    edited = environment.site_packages / "torch" / "version.py"
    content = edited.read_bytes()
    edited.unlink()  # uv has linked it to its cache
    edited.write_bytes(content + b"# mine\n")

    refused = world.doctor(environment, "--undo")
    assert refused.returncode == 3
    assert "torch/version.py; nothing was restored" in refused.stderr
    assert tree(environment.folder).keys() == mended.keys()

    status = (environment.folder / FOLDER / "after.json").stat()  # of just then, as the repair had left it
    edited.write_bytes(content)
    os.utime(edited, ns=(status.st_mtime_ns, _noted_time(environment, edited)))
    (environment.site_packages / "mine.py").write_text("# not of the repair\n")
    assert world.doctor(environment, "--undo").returncode == 0
    assert tree(environment.folder) == {**before, **_only(environment, "mine.py")}
    again = world.doctor(environment, "--undo")
    assert (again.returncode, "nothing to undo" in again.stdout) == (0, True)


def _noted_time(environment: RealEnvironment, path: Path) -> int:
    noted = Snapshot(environment.folder).after()[str(path.relative_to(environment.folder))]
    assert noted is not None
    return noted.changed


def _only(environment: RealEnvironment, name: str) -> dict[str, str]:
    path = str((environment.site_packages / name).relative_to(environment.folder))
    return {path: tree(environment.folder)[path]}


KILLED = """
import os, signal, sys
from pathlib import Path
from wheel_checks.process.child import run
from wheelproof.cli.doctor import repair
from wheelproof.doctor.repair import undoing
from wheelproof.doctor.repair.session import Session
from wheelproof.cli.main import main

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

Session.judge = die
left = [3]
restore = undoing._restore
def restore_some(*arguments):
    left[0] -= 1
    return die() if left[0] < 0 else restore(*arguments)
if sys.argv[1] == "undo":
    undoing._restore = restore_some
    sys.exit(main(["doctor", "--undo", "--python", sys.argv[2]]))
sys.exit(main(["doctor", "--fix", "--yes", "--python", sys.argv[2]]))
"""


def killed(world: World, environment: RealEnvironment, what: str) -> None:
    """Run a repair that is killed once it has changed everything, or an undo that is killed in its middle."""
    command = [sys.executable, "-c", KILLED, what, environment.python]
    done = subprocess.run(command, env=world.variables(), cwd=world.folder, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


def test_a_repair_and_an_undo_that_are_killed_are_put_back(tmp_path: Path) -> None:
    world = World(tmp_path)
    environment = BROKEN[RELEASE].make(world)
    before = tree(environment.folder)

    killed(world, environment, "fix")
    assert Snapshot(environment.folder).state() == RUNNING
    assert "was interrupted: restore it with wheelproof doctor" in world.doctor(environment).stdout
    assert Snapshot(environment.folder).state() == RUNNING
    killed(world, environment, "undo")
    assert world.doctor(environment, "--undo").returncode == 0
    assert tree(environment.folder) == before
    assert not list(environment.folder.glob(f"{STAGE}*"))


def test_control_c_puts_everything_back(tmp_path: Path) -> None:
    """The torch of the index hangs when it is imported: the interrupt comes while the doctor looks again."""
    world = World(tmp_path)
    environment = BROKEN[RELEASE].make(world)
    before, slow = tree(environment.folder), hanging_torch()
    index = environment.index("slow", slow, *packages(), companion("torchvision", "0.26.0", "2.11.0"))
    command = [sys.executable, "-m", "wheelproof", "doctor", "--python", environment.python, "--fix", "--yes"]
    own = {"env": world.variables(UV_DEFAULT_INDEX=index), "cwd": world.folder}
    with subprocess.Popen(command, **own, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # type: ignore[call-overload]  # a mapping of two keywords
        marker = environment.site_packages / "torch" / "imported"
        wait_until(marker.exists)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)

    assert process.returncode == 130, errors
    assert f"interrupted: {environment.folder} was left unchanged" in errors.decode()
    assert tree(environment.folder) == before


def hanging_torch() -> WheelBuilder:
    code = "import time, pathlib\npathlib.Path(__file__).with_name('imported').touch()\ntime.sleep(600)\n"
    wheel = WheelBuilder("torch", "2.11.0", PLATFORM).metadata(requires=["sympy>=1.13.3"])
    wheel.add("torch/version.py", "__version__ = '2.11.0+cu130'\ncuda = '13.0'\nhip = None\nxpu = None\n")
    declared = library("libtorch_python.so", machine=MACHINE) + b"\0sm_80 sm_90\0"
    return wheel.add("torch/__init__.py", code).add("torch/lib/libtorch_python.so", declared)


def test_an_environment_that_uv_has_never_seen_is_the_same_again(tmp_path: Path) -> None:
    """To plan, uv makes a lock file in an environment; one of venv and pip has none."""
    world = World(tmp_path)
    environment = world.make()
    world.install_by_pip(environment, "lightning torch==2.11.0")
    (environment.site_packages / "torch" / "functional.py").unlink()
    before = tree(environment.folder)
    assert ".lock" not in before

    assert world.doctor(environment, "--fix", "--dry-run").returncode == 1
    assert tree(environment.folder) == before
    assert world.doctor(environment, "--fix", "--yes").returncode == 0
    environment.run(f"uv pip check --python {environment.python}")
    assert world.doctor(environment, "--undo").returncode == 0
    assert tree(environment.folder) == before


# Its parts


def environment_of(folder: Path) -> Path:
    """A small tree with a file, an executable one, a link and an empty folder."""
    prefix = folder / "env"
    (prefix / "lib" / "empty").mkdir(parents=True)
    (prefix / "lib" / "a.py").write_text("a")
    (prefix / "lib" / "b.py").write_text("b")
    (prefix / "bin").mkdir()
    (prefix / "bin" / "tool").write_text("#!/bin/sh\n")
    (prefix / "bin" / "tool").chmod(0o755)
    (prefix / "lib64").symlink_to("lib")
    return prefix


def changed(prefix: Path) -> None:
    """The changes of a repair."""
    (prefix / "lib" / "a.py").unlink()
    (prefix / "lib" / "b.py").write_text("other")
    (prefix / "lib" / "new").mkdir()
    (prefix / "lib" / "new" / "c.py").write_text("c")
    (prefix / "lib" / "new" / "__pycache__").mkdir()
    (prefix / "lib" / "new" / "__pycache__" / "c.pyc").write_bytes(b"")
    (prefix / "bin" / "tool").chmod(0o644)
    (prefix / "lib" / "empty").rmdir()
    (prefix / "lib64").unlink()


SAVED = ("lib/a.py", "lib/b.py", "bin/tool")


@pytest.mark.parametrize("state", [DONE, RUNNING])
def test_everything_comes_back(tmp_path: Path, state: str) -> None:
    prefix = environment_of(tmp_path)
    before, snapshot = survey(prefix), Snapshot(prefix)
    first = tree(prefix)
    snapshot.begin(SAVED, before)
    changed(prefix)
    if state == DONE:
        after = survey(prefix)
        snapshot.complete(changes(before, after), after)

    assert snapshot.state() == state
    assert undo(prefix) == Undone(5, 2)
    assert tree(prefix) == first
    with pytest.raises(NotFoundError, match="nothing to undo"):
        undo(prefix)


def test_what_was_changed_since_is_named_and_stays(tmp_path: Path) -> None:
    prefix = environment_of(tmp_path)
    before, snapshot = survey(prefix), Snapshot(prefix)
    snapshot.begin(SAVED, before)
    changed(prefix)
    after = survey(prefix)
    snapshot.complete(changes(before, after), after)
    (prefix / "lib" / "a.py").write_text("mine")
    found = tree(prefix)

    with pytest.raises(ChangedSinceError, match=r"by something else: lib/a\.py; nothing was restored"):
        undo(prefix)
    assert tree(prefix) == found


def test_a_copy_is_no_hard_link(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_text("of before")
    source.chmod(0o750)
    copy_file(source, tmp_path / "copy")
    with source.open("r+") as file:
        file.write("edited in place")

    copy = (tmp_path / "copy").stat()
    assert (tmp_path / "copy").read_text() == "of before"
    assert (copy.st_nlink, copy.st_mode & 0o777) == (1, 0o750)


def test_too_little_room_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = environment_of(tmp_path)
    usage = type("Usage", (), {"free": 10})
    monkeypatch.setattr("wheelproof.doctor.repair.snapshot.shutil.disk_usage", lambda _: usage)

    with pytest.raises(SourceError, match="10 are free below"):
        Snapshot(prefix).begin(SAVED, survey(prefix))
    assert not (prefix / FOLDER).exists()


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "lib/../../x", "", f"{FOLDER}/x", "lib//x"])
def test_a_journal_that_leads_out_of_the_environment_is_refused(tmp_path: Path, path: str) -> None:
    prefix = environment_of(tmp_path)
    snapshot = Snapshot(prefix)
    snapshot.begin(SAVED, survey(prefix))
    file = prefix / FOLDER / "before.json"
    document = json.loads(file.read_text())
    document["states"][path] = ["f", 0o644, 1, 1, 1, ""]
    file.write_text(json.dumps(document))

    with pytest.raises(FormatError, match="not a path in the environment"):
        undo(prefix)


def test_a_journal_that_others_may_write_is_not_trusted(tmp_path: Path) -> None:
    prefix = environment_of(tmp_path)
    Snapshot(prefix).begin(SAVED, survey(prefix))
    (prefix / FOLDER / JOURNAL).chmod(0o666)

    with pytest.raises(SourceError, match="not trusted"):
        undo(prefix)


def test_a_folder_that_has_become_a_link_is_not_written_through(tmp_path: Path) -> None:
    prefix = environment_of(tmp_path)
    Snapshot(prefix).begin(SAVED, survey(prefix))
    (prefix / "lib").rename(tmp_path / "elsewhere")
    (prefix / "lib").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(SourceError, match="has become a link"):
        undo(prefix)


def test_two_repairs_at_once_are_refused(tmp_path: Path) -> None:
    with alone(tmp_path), pytest.raises(SourceError, match="another wheelproof process is repairing"), alone(tmp_path):
        pass


def test_a_snapshot_that_was_never_complete_is_nothing_to_go_back_to(tmp_path: Path) -> None:
    prefix = environment_of(tmp_path)
    (prefix / FOLDER).mkdir(mode=0o700)
    (prefix / FOLDER / "files").mkdir()

    with pytest.raises(NotFoundError):
        undo(prefix)
    assert not (prefix / FOLDER).exists()
