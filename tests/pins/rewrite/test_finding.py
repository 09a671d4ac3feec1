"""Which journal belongs to a folder: of trees that were moved, copied, nested; and old ones, which are in the tree."""

from __future__ import annotations

import base64
import json
import os
import shutil
import zlib
from pathlib import Path

import pytest

from tests.support.trees import AFTER, BEFORE, contents, give_back, journals, make, rewrite
from wheel_checks.errors import FormatError, NotFoundError, SourceError, UsageError
from wheelproof.pins.rewrite.finding import OLD_NAME, FoundJournal, as_shown, find_journal, old_journals
from wheelproof.pins.rewrite.journal import digest
from wheelproof.pins.rewrite.restoring import ChangedSinceError


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return tmp_path.resolve()


@pytest.fixture
def project(top: Path) -> Path:
    """A tree that is rewritten."""
    project = make(top / "project")
    (project / "docs/deep").mkdir(parents=True)
    rewrite(project)
    return project


def restore_at(path: Path, named: Path | None = None) -> None:
    """What `pins restore` does."""
    found = find_journal(path, named)
    give_back(found.root, journal=found.journal)


@pytest.mark.parametrize("name", ["", "docs", "docs/deep", "requirements.txt", "sub/constraints.txt", "gone.txt"])
def test_it_is_found_from_the_tree_and_every_folder_below(name: str, project: Path) -> None:
    assert find_journal(project / name) == FoundJournal(project)


def test_it_is_not_found_from_elsewhere(project: Path) -> None:
    with pytest.raises(NotFoundError, match=r"there is no journal .*name one of the trees below it: .*project"):
        find_journal(project.parent)
    with pytest.raises(NotFoundError, match="nothing was rewritten here"):
        find_journal(Path("/proc"))


def test_the_nearest_one_counts(project: Path) -> None:
    make(project / "nested")
    rewrite(project / "nested")

    assert find_journal(project / "nested/sub") == FoundJournal(project / "nested")
    assert find_journal(project / "docs") == FoundJournal(project)


def test_a_repository_that_is_made_later_changes_nothing(project: Path) -> None:
    (project / "docs/.git").mkdir()
    (project.parent / ".git").mkdir()

    assert find_journal(project / "docs") == FoundJournal(project)


def test_a_tree_given_through_a_link(project: Path) -> None:
    (project.parent / "current").symlink_to("project")

    assert find_journal(project.parent / "current/docs") == FoundJournal(project)


# --- moved and copied


@pytest.mark.parametrize("name", ["", "docs/deep"])
def test_a_moved_tree_is_matched_by_its_files(name: str, project: Path) -> None:
    moved = project.rename(project.parent / "elsewhere")
    restore_at(moved / name)

    assert contents(moved) == BEFORE
    assert not journals()


def test_a_moved_tree_with_a_change_is_not_matched(project: Path) -> None:
    moved = project.rename(project.parent / "elsewhere")
    (moved / "requirements.txt").write_bytes(b"six\njax\n")

    with pytest.raises(NotFoundError):
        find_journal(moved)
    (journal,) = journals()
    with pytest.raises(ChangedSinceError):  # named, it is applied, and careful
        restore_at(moved, journal)
    assert contents(moved) == {**AFTER, "requirements.txt": b"six\njax\n"}
    assert journals() == [journal]


def test_a_moved_tree_whose_folders_are_links_now_is_not_matched(project: Path) -> None:
    moved = project.rename(project.parent / "elsewhere")
    (moved / "sub").rename(project.parent / "sub")
    (moved / "sub").symlink_to(project.parent / "sub")

    with pytest.raises(NotFoundError):
        find_journal(moved)


def test_a_moved_tree_that_is_rewritten_again(project: Path) -> None:
    moved = project.rename(project.parent / "elsewhere")
    (moved / "dev-requirements.txt").write_bytes(b"torch\n")
    rewrite(moved)
    restore_at(moved)
    assert contents(moved) == {**AFTER, "dev-requirements.txt": b"torch\n"}
    restore_at(moved)

    assert contents(moved) == {**BEFORE, "dev-requirements.txt": b"torch\n"}


def test_a_copy_does_not_take_the_journal_of_its_original(project: Path) -> None:
    copy = project.parent / "copy"
    shutil.copytree(project, copy)
    (journal,) = journals()

    with pytest.raises(NotFoundError, match=rf"for a copy of a tree: `wheelproof pins restore --journal {journal} "):
        find_journal(copy)
    restore_at(copy, journal)
    assert (contents(copy), contents(project)) == (BEFORE, AFTER)
    assert journals() == [journal]
    restore_at(project)
    assert contents(project) == BEFORE
    assert not journals()


def test_two_copies_of_a_tree_that_is_gone_are_distinguished(project: Path) -> None:
    """Both trees were rewritten: two journals fit each of them, and the user says which."""
    twin = make(project.parent / "twin")
    rewrite(twin)
    shutil.rmtree(twin)
    moved = project.rename(project.parent / "elsewhere")

    with pytest.raises(NotFoundError, match=r"name one: `wheelproof pins restore .*` or `wheelproof pins restore "):
        find_journal(moved)


def test_a_new_tree_in_the_place_of_one_that_moved(project: Path) -> None:
    moved = project.rename(project.parent / "elsewhere")
    make(project)

    with pytest.raises(NotFoundError, match="for a copy of a tree"):
        find_journal(moved)
    rewrite(project)
    restore_at(project)
    assert (contents(project), contents(moved)) == (BEFORE, AFTER)


# --- named


def test_a_named_journal_is_for_the_tree_in_which_the_user_is(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    project, journal = make(top / "project"), top / "journal"
    rewrite(project, journal=journal)
    monkeypatch.chdir(top)
    with pytest.raises(UsageError, match=r"is the journal of the tree .*project, and .* is not in it"):
        find_journal(top / "state", journal)
    with pytest.raises(UsageError, match=r"name the tree: `wheelproof pins restore --journal .*journal .*project`"):
        find_journal(Path(), journal)

    restore_at(project, journal)
    assert contents(project) == BEFORE
    assert not journal.exists()


def test_a_named_journal_does_not_choose_its_tree(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger's journal of "/", of the home, of a folder above: none reaches out of the clone."""
    home = top / "home"
    clone = make(home / "src/clone")
    (clone / ".git").mkdir()
    monkeypatch.setenv("HOME", str(home))
    for victim in (home / ".bashrc", home / "src/requirements.txt"):
        victim.write_bytes(b"# known\n")
        for tree in (Path("/"), top, home, home / "src", victim.parent):
            journal = clone / "journal"
            journal.write_bytes(a_journal(tree, os.path.relpath(victim, tree), b"evil\n", b"# known\n"))
            journal.chmod(0o600)
            for folder in (clone, clone / "sub", home):
                with pytest.raises((UsageError, FormatError)):
                    restore_at(folder, journal)
        assert victim.read_bytes() == b"# known\n"


def a_journal(tree: Path, path: str, original: bytes, present: bytes) -> bytes:
    """A consistent journal by someone who knows the content of a file."""
    record = {
        "path": path,
        "original": base64.b64encode(zlib.compress(original)).decode(),
        "original_size": len(original),
        "edits": [[0, len(original), base64.b64encode(present).decode()]],
        "rewritten": digest(present),
        "temporary": f".{path.rpartition('/')[2]}.{'0' * 16}.wheelproof",
    }
    header = {"schema": "wheelproof.pins-journal/2", "about": "", "tree": str(tree)}
    return (json.dumps(header) + "\n" + json.dumps([record]) + "\n").encode()


def test_a_journal_that_is_not_there(project: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no journal"):
        find_journal(project, project / "nothing")
    with pytest.raises(NotFoundError, match="there is no folder"):
        find_journal(project, project / "nowhere/nothing")


def test_a_journal_of_another_tree_is_not_appended_to(project: Path) -> None:
    other = make(project.parent / "other")
    (journal,) = journals()
    before = journal.read_bytes()

    with pytest.raises(FormatError, match=r"is the journal of the tree .*project; nothing was changed"):
        rewrite(other, journal=journal)
    assert contents(other) == BEFORE
    assert journal.read_bytes() == before


def test_the_state_folder_of_another_user(project: Path) -> None:
    Path(os.environ["XDG_STATE_HOME"], "wheelproof/pins").chmod(0o777)

    with pytest.raises(SourceError, match="other users may read or write"):
        find_journal(project)


# --- of older versions


def old_journal(path: str, original: bytes = BEFORE["requirements.txt"], rewritten: bytes = b"six\n") -> bytes:
    """As the first version wrote it."""
    _, record = a_journal(Path("/"), path, original, rewritten).splitlines()
    return json.dumps({"schema": "wheelproof.pins-journal/1", "transactions": [json.loads(record)]}).encode()


@pytest.fixture
def old(top: Path) -> Path:
    """A repository with an old journal in its folder docker, which the hook had named first."""
    project = top / "repo"
    for name in (".git", "docker", "docs"):
        (project / name).mkdir(parents=True)
    (project / "requirements.txt").write_bytes(b"six\n")
    (project / "docker" / OLD_NAME).write_bytes(old_journal("../requirements.txt"))
    (project / "docker" / OLD_NAME).chmod(0o600)
    return project


def test_an_old_journal_is_shown_and_not_obeyed(old: Path) -> None:
    for name in ("", "docker", "docs"):
        with pytest.raises(NotFoundError):
            find_journal(old / name)
    path = old / "docker" / OLD_NAME

    assert list(old_journals(old, below=True)) == [path]
    assert list(old_journals(old / "docker", below=False)) == [path]
    assert list(old_journals(old, below=False)) == []
    assert list(as_shown(path)) == [
        f"{path} is in the tree, where anyone may have put it: it is ignored",
        f"it would restore, in {old}: 'requirements.txt' (17 bytes)",
        f"if it is yours: `wheelproof pins restore --journal {path} {old}`",
    ]


@pytest.mark.parametrize("name", ["", "docker", "docs"])
def test_an_old_journal_that_is_named_is_obeyed(name: str, old: Path) -> None:
    restore_at(old / name, old / "docker" / OLD_NAME)

    assert (old / "requirements.txt").read_bytes() == BEFORE["requirements.txt"]
    assert not (old / "docker" / OLD_NAME).exists()


@pytest.mark.parametrize("path", ["../../victim", "/etc/victim", "../.git/config", "../docs/../../victim"])
def test_an_old_journal_that_is_named_stays_in_the_tree(path: str, old: Path) -> None:
    victim = old.parent / "victim"
    victim.write_bytes(b"six\n")
    (old / ".git/config").write_bytes(b"six\n")
    journal = old / "docker" / OLD_NAME
    journal.write_bytes(old_journal(path))

    for folder in (old, old / "docker", old.parent):
        with pytest.raises((FormatError, UsageError)):
            restore_at(folder, journal)
    assert (victim.read_bytes(), (old / ".git/config").read_bytes()) == (b"six\n", b"six\n")
    assert "nor could it be: the journal names" in list(as_shown(journal))[1]


def test_an_old_journal_of_a_clone_is_for_the_clone_alone(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the folder above it, in which are the user's own files."""
    monkeypatch.setenv("HOME", "/home/me")
    (old.parent / "victim").write_bytes(b"six\n")
    journal = old / "docker" / OLD_NAME
    journal.write_bytes(old_journal("../../victim"))
    journal.chmod(0o600)

    with pytest.raises(FormatError, match=r"is outside of the tree .*repo; nothing was changed"):
        restore_at(old.parent, journal)


@pytest.mark.parametrize("make_it", [os.mkfifo, lambda path: Path(path).symlink_to("/dev/zero"), os.mkdir])
def test_an_old_journal_of_another_kind_is_shown_in_a_sentence(make_it: object, old: Path) -> None:
    journal = old / OLD_NAME
    make_it(journal)  # type: ignore[operator]  # one of the three

    assert "nor could it be" in list(as_shown(journal))[1]


def test_a_huge_old_journal_is_not_read(old: Path) -> None:
    journal = old / OLD_NAME
    with journal.open("wb") as file:
        file.truncate(1 << 40)  # sparse

    assert list(as_shown(journal))[1] == "nor could it be: it has more than 4,194,304 bytes"
