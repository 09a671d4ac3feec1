"""What "the tree" is: repositories, worktrees, submodules, links, folders outside of any repository."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest

from wheel_checks.errors import UsageError
from wheel_checks.sources.regular_file import real_path
from wheelproof.pins.rewrite.files.tree import Tree, tree_of, tree_to_write


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A folder with a repository, in which are a submodule and another repository, and folders outside of any."""
    path = tmp_path.resolve()
    for name in ("repo/.git", "repo/docker", "repo/nested/.hg", "repo/sub/deep", "plain/docker", "other/.git"):
        (path / name).mkdir(parents=True)
    (path / "repo/sub/.git").write_text("gitdir: ../.git/modules/sub\n")
    for name in ("repo", "repo/docker", "repo/sub", "plain", "plain/docker", "other"):
        (path / name / "requirements.txt").write_text("torch\n")
    return path


@pytest.mark.parametrize(
    ("names", "root"),
    [
        (["repo"], "repo"),
        (["repo/docker"], "repo"),
        (["repo/docker/requirements.txt", "repo/requirements.txt"], "repo"),
        (["repo/docker/gone.txt"], "repo"),
        (["repo/sub/deep"], "repo/sub"),
        (["repo/sub/requirements.txt", "repo/requirements.txt"], "repo"),
        (["repo/nested"], "repo/nested"),
        (["repo/docker/../nested/../sub"], "repo/sub"),
        (["plain"], "plain"),
        (["plain/docker"], "plain/docker"),
        (["plain/docker/requirements.txt"], "plain/docker"),
        (["plain/docker/requirements.txt", "plain/requirements.txt"], "plain"),
        (["plain", "other"], "."),
        (["gone"], "."),
    ],
)
def test_the_root(names: list[str], root: str, top: Path) -> None:
    assert tree_of([top / name for name in names]).root == (top / root).resolve()


def test_paths_below_the_current_folder(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(top / "repo/docker")

    assert tree_of([Path()]).root == top / "repo"
    assert tree_of([Path("requirements.txt")]).root == top / "repo"
    assert tree_of([Path("../../plain")]).root == top / "plain"


def test_a_worktree_of_git_is_a_tree(tmp_path: Path) -> None:
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@x", "-C", str(tmp_path / "main")]
    subprocess.run(["git", "init", "--quiet", str(tmp_path / "main")], check=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "--message", "x"], check=True)
    subprocess.run([*git, "worktree", "add", "--quiet", str(tmp_path / "main/linked")], check=True)
    (tmp_path / "main/linked/docker").mkdir()

    assert tree_of([tmp_path / "main/linked/docker"]).root == (tmp_path / "main/linked").resolve()


def test_a_tree_given_through_a_link(top: Path) -> None:
    (top / "current").symlink_to("repo")
    (top / "now").symlink_to("plain")

    assert tree_of([top / "current"]) == tree_of([top / "repo"])
    assert tree_of([top / "current/docker"]).root == top / "repo"
    assert tree_of([top / "now"]).root == top / "plain"


@pytest.mark.parametrize("target", ["../other", "../plain", "..", "/", "../repo-2"])
def test_a_link_in_a_repository_that_leads_out_of_it_does_not_change_the_tree(target: str, top: Path) -> None:
    (top / "repo-2/.git").mkdir(parents=True)
    (top / "repo/link").symlink_to(target)

    for name in ("link", "link/requirements.txt", "link/docker", "docker/../link"):
        tree = tree_of([top / "repo" / name])
        assert tree.root == top / "repo"
        assert not tree.holds(top / "repo/link/requirements.txt")


def test_what_a_tree_holds(top: Path) -> None:
    (top / "repo/inside").symlink_to("docker/requirements.txt")
    (top / "repo/outside").symlink_to("../plain/requirements.txt")
    (top / "repo/loop").symlink_to("loop")
    tree = tree_of([top / "repo"])

    assert [name for name in ("inside", "outside", "loop", ".git/config", "sub/.git/x", "../plain/x", "new") if
            tree.holds(top / "repo" / name)] == ["inside", "loop", "new"]  # fmt: skip
    assert not tree.holds(top / "repo-2/x")


def test_several_trees_hold_what_was_named_and_nothing_between(top: Path) -> None:
    tree = tree_of([top / "plain", top / "other"])

    assert tree == Tree(top, (top / "plain", top / "other"))
    assert tree.holds(top / "plain/x")
    assert not tree.holds(top / "repo/x")


def test_trees_whose_common_folder_holds_the_home_are_not_written(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [top / "plain", top / "other"]
    monkeypatch.setenv("HOME", "/home/me")
    assert tree_to_write(paths).root == top
    monkeypatch.setenv("HOME", str(top / "home/me"))

    with pytest.raises(UsageError, match=r"plain and .*other are different trees; expected one tree at a time"):
        tree_to_write(paths)
    assert tree_to_write([top / "plain"]).root == top / "plain"
    assert tree_of(paths).root == top  # to read is another thing


def test_a_link_that_is_replaced_while_it_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link").symlink_to("elsewhere")

    def readlink(*_: object, **__: object) -> str:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))  # as it is not a link any more

    monkeypatch.setattr(os, "readlink", readlink)
    assert real_path(tmp_path / "link") == tmp_path / "link"


@pytest.mark.parametrize("name", ["loop", "loop/x", "a\0b", "x" * 5000])
def test_odd_paths(name: str, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")

    assert real_path(tmp_path / name).is_absolute()
