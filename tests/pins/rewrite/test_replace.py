"""Files are replaced all or none: links, modes, failures half-way, and a process that dies at any step."""

from __future__ import annotations

import gc
import os
import random
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.trees import AFTER, BEFORE, contents, give_back, journals, make, rewrite
from wheel_checks.errors import FormatError, NotFoundError, SourceError
from wheelproof.pins import Policy, plan
from wheelproof.pins.rewrite.restoring import ChangedSinceError


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Three files with torch in them."""
    return make(tmp_path / "project")


@pytest.fixture
def in_memory() -> Iterator[Path]:
    """A folder of a file system in memory, where the system has one: a process that dies takes no file with it, and
    ten thousand calls of fsync wait for no disk.
    """
    memory = Path("/dev/shm")
    gc.freeze()  # children do not look through, and so do not copy, all that this process has
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)
    gc.unfreeze()


def test_there_and_back(project: Path) -> None:
    rewrite(project)
    assert contents(project) == AFTER

    give_back(project)
    assert contents(project) == BEFORE
    assert not journals()


def test_nothing_to_do_leaves_no_journal(project: Path) -> None:
    rewrite(project, plan([project], Policy(packages=frozenset({"jax"}))))

    assert contents(project) == BEFORE
    assert not journals()


def test_two_rewritings_are_restored_to_the_beginning(project: Path) -> None:
    rewrite(project)
    rewrite(project, plan([project], Policy(packages=frozenset({"six"}))))
    give_back(project)

    assert contents(project) == BEFORE


def test_a_link_inside_the_tree_is_followed_and_stays(project: Path) -> None:
    link = project / "dev-requirements.txt"
    target = project / "sub/elsewhere"
    (project / "requirements.txt").rename(target)
    link.symlink_to("sub/elsewhere")
    rewrite(project)

    assert link.is_symlink()
    assert target.read_bytes() == AFTER["requirements.txt"]
    give_back(project)
    assert (link.is_symlink(), target.read_bytes()) == (True, BEFORE["requirements.txt"])


def test_the_mode_stays(project: Path) -> None:
    path = project / "requirements.txt"
    path.chmod(0o640)
    rewrite(project)
    rewritten = stat.S_IMODE(path.stat().st_mode)
    give_back(project)

    assert (rewritten, stat.S_IMODE(path.stat().st_mode)) == (0o640, 0o640)


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give files away")
def test_the_owner_stays(project: Path) -> None:
    path = project / "requirements.txt"
    os.chown(path, 12, 34)
    rewrite(project)

    assert (path.stat().st_uid, path.stat().st_gid) == (12, 34)


def test_a_file_that_changes_meanwhile_stops_everything(project: Path) -> None:
    planned = plan([project], Policy())
    (project / "sub/constraints.txt").write_bytes(b"jax\n")

    with pytest.raises(SourceError, match=r"constraints\.txt changed during this run, and was left as it is"):
        rewrite(project, planned)
    assert contents(project) == {**BEFORE, "sub/constraints.txt": b"jax\n"}
    assert not journals()


@contextmanager
def as_nobody() -> Iterator[None]:
    """As a user without rights, whom a read-only folder stops; who is not a root already is one."""
    if os.getuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_read_only_folder_stops_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to other users
        monkeypatch.setenv("XDG_STATE_HOME", f"{name}/state")
        Path(name).chmod(0o755)
        Path(name, "state").mkdir()
        Path(name, "state").chmod(0o777)
        project = make(Path(name, "project"))
        planned = plan([project], Policy())
        project.chmod(0o777)
        (project / "sub").chmod(0o555)

        with as_nobody(), pytest.raises(SourceError, match=r"constraints\.txt cannot be replaced: Permission denied"):
            rewrite(project, planned)
        assert contents(project) == BEFORE
        assert not journals()
        (project / "sub").chmod(0o755)


def test_restore_refuses_what_has_changed_since(project: Path) -> None:
    rewrite(project)
    (project / "requirements.txt").write_bytes(b"six\njax\n")
    before = contents(project)

    with pytest.raises(ChangedSinceError, match=r"changed since it was rewritten: .*requirements\.txt; nothing was"):
        give_back(project)
    assert contents(project) == before


def test_force_puts_back_into_what_has_changed_since(project: Path) -> None:
    rewrite(project)
    (project / "requirements.txt").write_bytes(b"jax\nsix\n# end\n")
    done = give_back(project, force=True)

    assert contents(project) == {**BEFORE, "requirements.txt": b"jax\nsix\ntorch==2.8.0\n# end\n"}
    assert done.merged == (project / "requirements.txt",)


def test_force_gives_up_where_the_surroundings_are_gone(project: Path) -> None:
    rewrite(project)
    (project / "requirements.txt").write_bytes(b"jax\n")

    with pytest.raises(FormatError, match="what was removed there cannot be restored"):
        give_back(project, force=True)
    assert contents(project) == {**AFTER, "requirements.txt": b"jax\n"}


def test_without_a_journal_there_is_nothing_to_restore(project: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no journal"):
        give_back(project)


# --- death at any step

STEPS = ("open", "write", "fsync", "fchmod", "close", "replace", "unlink")
DIED, SURVIVED = 77, 0
# pytest-xdist has its own thread, about which Python 3.12 warns; the child only runs our code, and ends.
forks = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")


def dying(work: Callable[[], None], step: int, patch: pytest.MonkeyPatch) -> int:
    """Run ``work`` in a child that ends at its n-th call of the system; in the middle of a write. Its exit status."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        left = step

        def wrapped(call: Callable[..., Any], name: str) -> Callable[..., Any]:
            def die_or_call(*arguments: Any, **options: Any) -> Any:
                nonlocal left
                left -= 1
                if left == 0:
                    if name == "write":
                        call(arguments[0], arguments[1][: len(arguments[1]) // 2])
                    os._exit(DIED)
                return call(*arguments, **options)

            return die_or_call

        for name in STEPS:
            patch.setattr(os, name, wrapped(getattr(os, name), name))
        work()
        status = SURVIVED
    finally:
        os._exit(status)
    return status


def steps_of(work: Callable[[], None], again: Callable[[], None], patch: pytest.MonkeyPatch) -> int:
    """How many steps ``work`` has."""
    step = 1
    while dying(work, step, patch) == DIED:
        again()
        step += 1
    return step - 1


@forks
def test_two_hundred_deaths_lose_nothing(in_memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = in_memory / "project"
    chance = random.Random(20261120)
    make(project)
    steps = steps_of(lambda: rewrite(project), lambda: recover(project), monkeypatch)
    assert steps > 30
    for _ in range(200):
        recover(project)
        assert contents(project) == BEFORE
        assert dying(lambda: rewrite(project), chance.randint(1, steps), monkeypatch) == DIED
        whole = {name: data for name, data in contents(project).items() if name in BEFORE}
        assert all(data in (BEFORE[name], AFTER[name]) for name, data in whole.items())
        assert whole.keys() == BEFORE.keys()
        if chance.random() < 0.5:
            assert dying(lambda: recover(project), chance.randint(1, 40), monkeypatch) in (DIED, SURVIVED)


def force_back(project: Path) -> None:
    give_back(project, force=True)


def recover(project: Path) -> None:
    """Recover as a user would after a crash."""
    with suppress(NotFoundError):  # it was too early for a journal
        give_back(project)


@forks
def test_after_a_death_the_rewriting_can_be_made_again(in_memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make(in_memory / "project")
    step = 1
    while dying(lambda: rewrite(project), step, monkeypatch) == DIED:
        rewrite(project)
        assert {name: data for name, data in contents(project).items() if name in AFTER} == AFTER
        recover(project)
        assert contents(project) == BEFORE
        step += 1
    assert step > 30


@forks
def test_a_death_while_changes_are_merged_loses_nothing(in_memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = in_memory / "project"
    step, status = 0, DIED
    while status == DIED:
        make(project)
        rewrite(project)
        (project / "requirements.txt").write_bytes(b"jax\nsix\n")
        step += 1
        status = dying(lambda: force_back(project), step, monkeypatch)
        with suppress(NotFoundError):  # it died after the last step
            force_back(project)
        assert contents(project) == {**BEFORE, "requirements.txt": b"jax\nsix\ntorch==2.8.0\n"}, step
        assert not journals()
    assert step > 30
