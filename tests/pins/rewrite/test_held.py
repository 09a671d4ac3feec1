"""One run at a time in a tree, and files that are swapped for links while it runs."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE, wait_until
from tests.support.trees import AFTER, BEFORE, contents, give_back, journals, make, rewrite
from wheel_checks.errors import DeadlineError, NotFoundError, SourceError
from wheelproof.pins import Policy, plan
from wheelproof.pins.atomic import Folder
from wheelproof.pins.rewrite.held import HeldTree, hold
from wheelproof.pins.rewrite.restoring import ChangedSinceError


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Three files with torch in them."""
    return make(tmp_path.resolve() / "project")


def excluded(held: Path, other: Path, journal: Path | None = None, other_journal: Path | None = None) -> bool:
    """Whether a run in ``held`` keeps one in ``other`` waiting."""
    with hold(held, journal):
        try:
            with hold(other, other_journal, wait=0):
                return False
        except DeadlineError:
            return True


def test_runs_in_one_tree_or_in_nested_ones_exclude_each_other(project: Path) -> None:
    (project / "sub/deep").mkdir()
    (project.parent / "project-2").mkdir()
    (project / "other").mkdir()

    assert excluded(project, project)
    assert excluded(project, project / "sub/deep")
    assert excluded(project / "sub/deep", project)
    assert excluded(project, project.parent)
    assert not excluded(project, project.parent / "project-2")
    assert not excluded(project / "sub", project / "other")


def test_runs_with_one_journal_exclude_each_other(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = project.parent / "journal"
    (project.parent / "project-2").mkdir()

    assert excluded(project, project.parent / "project-2", journal, journal)
    assert excluded(project, project, journal)
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nowhere")  # then the lock is next to the journal
    assert excluded(project, project, journal, journal)


def test_a_run_waits_for_the_other_one(project: Path) -> None:
    waiting = threading.Event()
    done: list[str] = []

    def second() -> None:
        with hold(project, wait=PATIENCE, on_wait=waiting.set):
            done.append("second")

    with hold(project):
        other = threading.Thread(target=second)
        other.start()
        assert waiting.wait(PATIENCE)
        done.append("first")
    other.join(PATIENCE)
    assert done == ["first", "second"]


def test_a_killed_run_holds_nothing(project: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from wheelproof.pins.rewrite.held import hold\n"
        f"with hold(Path({str(project)!r})): print('held', flush=True); time.sleep(9999)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        message = r"another run in the tree .* did not finish within 0 s; nothing was changed"
        with pytest.raises(DeadlineError, match=message), hold(project, wait=0):
            pass
        child.kill()
    with hold(project, wait=0):
        pass


def test_many_rewritings_and_restorations_at_once_lose_nothing(project: Path) -> None:
    """The command line as users start it: twelve rounds of four runs at once."""
    command = [sys.executable, "-m", "wheelproof", "pins"]
    for number in range(3):
        kinds = (["rewrite"], ["rewrite", "--set", "wide"], ["restore"], ["rewrite", "--mode", "unpin"])
        runs = [subprocess.Popen([*command, *kind], cwd=project, stdout=-3, stderr=-3) for kind in kinds]
        assert {run.wait(PATIENCE) for run in runs} <= {0, 3}, number  # 3: there was nothing to restore yet
        if journals():
            give_back(project)
        assert contents(project) == BEFORE


# --- interference by another process


def then(act: Callable[[], object], method: str, monkeypatch: pytest.MonkeyPatch, of: type = HeldTree) -> None:
    """Have ``act`` done once, right before the next call of a method."""
    original = getattr(of, method)
    left = [act]

    def called(*arguments: object, **options: object) -> object:
        if left:
            left.pop()()
        return original(*arguments, **options)

    monkeypatch.setattr(of, method, called)


def test_a_folder_that_becomes_a_link(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim = make(project.parent / "victim")

    def swap() -> None:
        (project / "sub").rename(project.parent / "away")
        (project / "sub").symlink_to(victim / "sub")

    then(swap, "write", monkeypatch, Folder)  # the journal: all is planned, and nothing is written yet
    with pytest.raises(SourceError, match=r"sub is a link; expected a folder \(links are not followed\)"):
        rewrite(project)
    assert contents(victim) == BEFORE
    assert (project / "requirements.txt").read_bytes() == BEFORE["requirements.txt"]


def test_a_folder_that_becomes_a_link_before_it_is_restored(project: Path) -> None:
    rewrite(project)
    victim = project.parent / "victim"
    (project / "sub").rename(victim)
    (project / "sub").symlink_to(victim)

    with pytest.raises(SourceError, match="sub is a link"):
        give_back(project)
    assert (project / "requirements.txt").read_bytes() == AFTER["requirements.txt"]
    assert (victim / "constraints.txt").read_bytes() == AFTER["sub/constraints.txt"]
    done = give_back(project, force=True)  # the others, at least
    assert done.left == (project / "sub/constraints.txt",)
    assert (project / "requirements.txt").read_bytes() == BEFORE["requirements.txt"]
    assert (victim / "constraints.txt").read_bytes() == AFTER["sub/constraints.txt"]
    (project / "sub").unlink()
    victim.rename(project / "sub")
    give_back(project)
    assert contents(project) == BEFORE
    assert not journals()


@pytest.mark.parametrize("moment", ["folder_of", "exchange"])
def test_a_file_that_becomes_a_link(moment: str, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim = project.parent / "victim"
    victim.write_bytes(BEFORE["requirements.txt"])  # would pass for the file

    def swap() -> None:
        (project / "requirements.txt").unlink()
        (project / "requirements.txt").symlink_to(victim)

    then(swap, moment, monkeypatch)
    with pytest.raises(SourceError, match=r"requirements\.txt is a link"):
        rewrite(project)
    assert victim.read_bytes() == BEFORE["requirements.txt"]
    assert {path.name for path in project.iterdir()} == {"requirements.txt", "pyproject.toml", "sub"}


def test_a_temporary_file_that_somebody_made(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim = project.parent / "victim"
    monkeypatch.setattr(os, "urandom", bytes)  # zeros: a name that could be guessed
    (project / f".requirements.txt.{'0' * 16}.wheelproof").symlink_to(victim)

    with pytest.raises(SourceError, match=r"requirements\.txt cannot be replaced: File exists"):
        rewrite(project)
    assert not victim.exists()
    assert (project / "requirements.txt").read_bytes() == BEFORE["requirements.txt"]


@pytest.mark.parametrize("edited", ["requirements.txt", "sub/constraints.txt"])
def test_an_edit_between_plan_and_replacing_stops_everything(
    edited: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = plan([project], Policy())
    then(lambda: (project / edited).write_bytes(b"jax\n"), "exchange", monkeypatch)

    with pytest.raises(SourceError, match="changed during this run, and was left as it is"):
        rewrite(project, planned)
    assert contents(project) == {**BEFORE, edited: b"jax\n"}
    assert not journals()


def test_an_edit_behind_the_replacing_stays_when_the_rest_fails(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file has neither its old nor the written content: the journal keeps the former."""
    original = HeldTree.exchange

    def exchange(tree: HeldTree, folder: Folder, record: object, expected: str | None) -> None:
        (project / "sub/constraints.txt").write_bytes(b"edited\n")
        original(tree, folder, record, expected)  # type: ignore[arg-type]  # it is a record
        (project / "pyproject.toml").write_bytes(b'# mine\n[project]\ndependencies = ["six"]\n')

    monkeypatch.setattr(HeldTree, "exchange", exchange)
    with pytest.raises(SourceError, match="changed during this run"):
        rewrite(project)
    monkeypatch.undo()
    monkeypatch.setenv("XDG_STATE_HOME", str(project.parent / "state"))
    assert contents(project) == {
        **BEFORE,
        "pyproject.toml": b'# mine\n[project]\ndependencies = ["six"]\n',
        "sub/constraints.txt": b"edited\n",
    }
    give_back(project, force=True)
    assert (project / "pyproject.toml").read_bytes() == b"# mine\n" + BEFORE["pyproject.toml"]


def test_an_edit_while_it_is_restored_is_left_alone(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rewrite(project)
    then(lambda: (project / "requirements.txt").write_bytes(b"jax\n"), "exchange", monkeypatch)

    with pytest.raises(SourceError, match="changed during this run, and was left as it is"):
        give_back(project)
    assert (project / "requirements.txt").read_bytes() == b"jax\n"
    assert len(journals()) == 1  # so the original is not lost
    with pytest.raises(ChangedSinceError):
        give_back(project)


def test_a_state_folder_that_cannot_be_written_stops_before_anything_changes(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nowhere")

    with pytest.raises(SourceError, match=r"the state folder /proc/nowhere cannot be made.*--journal FILE"):
        rewrite(project)
    assert contents(project) == BEFORE
    rewrite(project, journal=project.parent / "journal")
    give_back(project, journal=project.parent / "journal")
    assert contents(project) == BEFORE


def test_two_restorations_at_once(project: Path) -> None:
    rewrite(project)
    ends: list[str] = []

    def run() -> None:
        try:
            give_back(project)
            ends.append("restored")
        except NotFoundError:
            ends.append("nothing to restore")

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(ends) == 2)
    assert sorted(ends) == ["nothing to restore", "restored"]
    assert contents(project) == BEFORE
