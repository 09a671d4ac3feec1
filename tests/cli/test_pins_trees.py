"""``wheelproof pins`` in trees of strangers: links that lead elsewhere, loops, journals, and where our own is."""

from __future__ import annotations

import json
import os
import shlex
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import Run, Wheelproof
from tests.support.trees import journals
from wheelproof.cli.options import output as options
from wheelproof.cli.pins import notes
from wheelproof.pins.rewrite.finding import OLD_NAME
from wheelproof.pins.rewrite.held import hold

PIN = "six\ntorch==2.8.0\n"
CHECK = ("pins", "check", "--installed", "none")


@pytest.fixture
def clone(wheelproof: Wheelproof) -> Path:
    """The current folder, a repository with one pin in ``docker``."""
    path = Path.cwd()
    for name in (".git", "docker", "docs"):
        (path / name).mkdir()
    (path / "docker/requirements.txt").write_text(PIN)
    return path


@pytest.fixture
def victim(clone: Path) -> Path:
    """A file outside of the clone, which a pin is in."""
    path = clone.parent / "victim.txt"
    path.write_text(PIN)
    return path


def outcomes(run: Run) -> dict[str, str]:
    """What became of each subject: "error" when one of its rules could not decide, "fail", or "pass"."""
    found = {}
    for subject in json.loads(run.out)["subjects"]:
        results = {result["outcome"] for result in subject["results"]}
        found[subject["id"]] = next(outcome for outcome in ("error", "fail", "pass") if outcome in results)
    return found


# --- where the journal is


@pytest.mark.parametrize("folder", ["", "docker", "docs"])
def test_what_the_hook_rewrites_is_restored_from_any_folder(
    folder: str, wheelproof: Wheelproof, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pre-commit names the files of the repository, and `docker/requirements.txt` may be the first."""
    (clone / "requirements.txt").write_text(PIN)
    assert wheelproof("pins", "rewrite", "--quiet", "docker/requirements.txt", "requirements.txt").status == 0
    assert {path.name for path in clone.rglob("*")} == {".git", "docker", "docs", "requirements.txt"}
    monkeypatch.chdir(clone / folder)

    run = wheelproof("pins", "restore")
    assert run.out == f"restored {clone}/docker/requirements.txt\nrestored {clone}/requirements.txt\n"
    assert (clone / "docker/requirements.txt").read_text() == PIN


def test_the_command_that_gives_it_back(wheelproof: Wheelproof, clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is shown: from where the user is, with the journal that was named."""
    monkeypatch.chdir(clone.parent)
    for named in ((), ("--journal", "a journal")):
        shown = wheelproof("pins", "rewrite", str(clone), *named).out.splitlines()[-1]
        command = shlex.split(shown.split("`")[1])
        assert command[1:] == ["pins", "restore", *named, str(clone)]
        assert wheelproof(*command[1:]).status == 0
        assert (clone / "docker/requirements.txt").read_text() == PIN


@pytest.mark.parametrize("state", ["/proc/nowhere", "/dev/null", "/dev/null/state"])
def test_without_a_state_folder_nothing_is_changed(
    state: str, wheelproof: Wheelproof, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", state)
    run = wheelproof("pins", "rewrite")
    assert (run.status, run.out) == (3, "")
    assert "wheelproof: error: the " in run.err
    assert (clone / "docker/requirements.txt").read_text() == PIN

    assert wheelproof("pins", "rewrite", "--journal", "../journal").status == 0
    assert wheelproof("pins", "restore", "--journal", "../journal").status == 0
    assert (clone / "docker/requirements.txt").read_text() == PIN


def test_without_a_state_folder_there_may_be_nothing_to_do(
    wheelproof: Wheelproof, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nowhere")
    assert wheelproof("pins", "rewrite", "--package", "jax").status == 0
    assert wheelproof("pins", "rewrite", "--dry-run").status == 0
    assert wheelproof("pins").status == 0
    assert wheelproof("pins", "restore").status == 3


def test_what_only_reads_makes_no_state_folder(wheelproof: Wheelproof, clone: Path) -> None:
    for command in (("pins",), ("pins", "rewrite", "--dry-run"), CHECK, ("pins", "restore")):
        wheelproof(*command)
    assert not Path(os.environ["XDG_STATE_HOME"]).exists()


@pytest.mark.parametrize("command", ["rewrite", "restore"])
def test_a_second_run_says_that_it_waits(
    command: str, wheelproof: Wheelproof, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if command == "restore":
        wheelproof("pins", "rewrite")
    first, say = ExitStack(), options.note

    def note(sentence: str, *, quiet: bool) -> None:
        say(sentence, quiet=quiet)
        first.close()

    monkeypatch.setattr(notes, "note", note)
    first.enter_context(hold(clone))
    run = wheelproof("pins", command)
    assert (run.status, run.err) == (0, f"note: waiting up to 60 s for another run in {clone}\n")


def test_a_run_that_waited_sees_what_the_other_one_left(
    wheelproof: Wheelproof, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ExitStack()

    def note(sentence: str, *, quiet: bool) -> None:
        (clone / "docker/requirements.txt").write_text("six\ntorch==2.9.0\n")
        first.close()

    monkeypatch.setattr(notes, "note", note)
    first.enter_context(hold(clone))
    run = wheelproof("pins", "rewrite")
    assert (run.status, "line 2: torch==2.9.0 removed" in run.out) == (0, True)
    assert (clone / "docker/requirements.txt").read_text() == "six\n"


# --- journals of strangers


CREATED = {
    "path": "../created",
    "original": "eJzLSM3JyQcABiwCFQ==",
    "original_size": 5,
    "edits": [],
    "rewritten": "",
    "temporary": ".created.0000000000000000.wheelproof",
}
SCHEMA = "wheelproof.pins-journal/1"


@pytest.mark.parametrize("folder", ["", "docker"])
def test_a_journal_in_the_tree_is_shown_and_never_obeyed(folder: str, wheelproof: Wheelproof, clone: Path) -> None:
    path = clone / folder / OLD_NAME
    path.write_text(json.dumps({"schema": SCHEMA, "transactions": [[CREATED]]}))
    before = path.read_bytes()

    run = wheelproof("pins", "restore")
    assert run.status == 3
    assert f"note: {path} is in the tree, where anyone may have put it: it is ignored\n" in run.err
    assert wheelproof("pins", "rewrite").status == 0
    assert wheelproof("pins", "restore").status == 0
    assert wheelproof("pins", "restore", "--journal", str(path)).status == 3
    assert path.read_bytes() == before
    assert not (clone.parent / "created").exists()
    assert not (clone / "created").exists()


def test_what_it_says_stays_on_its_line(wheelproof: Wheelproof, clone: Path) -> None:
    hostile = {**CREATED, "path": "x\n::error::pwned\x1b[2J\r"}
    (clone / OLD_NAME).write_text(json.dumps({"schema": SCHEMA, "transactions": [[hostile]]}))
    run = wheelproof("pins", "restore")

    assert all(line.startswith(("note: ", "wheelproof: ", "  ")) for line in run.err.splitlines())
    assert "\x1b" not in run.err


# --- links and loops


def test_a_link_out_of_the_tree_is_reported_and_not_written(wheelproof: Wheelproof, clone: Path, victim: Path) -> None:
    (clone / "requirements.txt").symlink_to(victim)
    for command in (("pins", "rewrite"), ("pins", "rewrite", "requirements.txt"), ("pins", "rewrite", "--quiet")):
        run = wheelproof(*command)
        assert run.status == 0
        words = (
            f"warning: requirements.txt leads to {victim}, outside of the tree {clone}: it was read, and is not changed"
        )
        assert words in run.out + run.err
    assert victim.read_text() == PIN
    assert (clone / "requirements.txt").is_symlink()

    run = wheelproof(*CHECK, "--format", "json")
    assert outcomes(run)["requirements.txt"] == "fail"  # it was read and judged
    assert "it was checked, but `pins rewrite` does not change it" in run.out


@pytest.mark.parametrize("option", ["-r ../victim.txt", "-c ../victim.txt", "-r docs/../../victim.txt", "-r {}"])
def test_an_include_outside_of_the_tree_is_read_and_not_written(
    option: str, wheelproof: Wheelproof, clone: Path, victim: Path
) -> None:
    (clone / "requirements.txt").write_text(option.format(victim) + "\n")
    run = wheelproof("pins", "rewrite", "requirements.txt")
    assert (run.status, "outside of the tree" in run.out) == (0, True)
    assert victim.read_text() == PIN
    assert not journals()

    assert wheelproof(*CHECK, "requirements.txt").status == 1


@pytest.mark.parametrize("name", ["../victim.txt", ".git/config"])
def test_what_belongs_to_version_control_is_not_written(name: str, wheelproof: Wheelproof, clone: Path) -> None:
    (clone / ".git/config").write_text(PIN)
    (clone / "requirements.txt").write_text("-r .git/config\n")
    wheelproof("pins", "rewrite")

    assert (clone / ".git/config").read_text() == PIN


def test_a_folder_outside_that_a_link_names(wheelproof: Wheelproof, clone: Path, victim: Path) -> None:
    """It is not searched, so that there is no proof that nothing in it replaces torch."""
    other = clone.parent / "other"
    other.mkdir()
    (other / "requirements.txt").write_text(PIN)
    (clone / "docker/requirements.txt").write_text("six\n")
    (clone / "linked").symlink_to(other)

    run = wheelproof(*CHECK, "--format", "json")
    assert (run.status, outcomes(run)) == (3, {"docker/requirements.txt": "pass", "linked": "error"})
    assert f"linked leads to {other}, outside of the tree {clone}: it was not searched" in run.out
    for path in ("", "linked", "linked/requirements.txt"):
        run = wheelproof("pins", "rewrite", *filter(None, [path]))
        assert (run.status, "outside of the tree" in run.out) == (0, True)
        assert (other / "requirements.txt").read_text() == PIN
    (clone / ".gitignore").write_text("/linked\n")
    assert wheelproof(*CHECK).status == 0


def test_a_folder_inside_that_a_link_names(wheelproof: Wheelproof, clone: Path) -> None:
    (clone / "linked").symlink_to("docker")
    (clone / "docs/linked").symlink_to("../docker")
    (clone / "docker/self").symlink_to(".")

    assert outcomes(wheelproof(*CHECK, "--format", "json")) == {"docker/requirements.txt": "fail"}
    assert outcomes(wheelproof(*CHECK, "docs", "--format", "json")) == {"docs/linked/requirements.txt": "fail"}


LOOPS = {
    "requirements.txt": "requirements.txt",
    "a-requirements.txt": "b-requirements.txt",
    "b-requirements.txt": "a-requirements.txt",
    "folder": "folder",
}


@pytest.mark.parametrize("name", ["", *LOOPS, "folder/requirements.txt"])
def test_a_link_in_a_loop_is_a_sentence(name: str, wheelproof: Wheelproof, clone: Path) -> None:
    for link, target in LOOPS.items():
        (clone / link).symlink_to(target)
    paths = [name] if name else []

    for command in (("pins",), ("pins", "rewrite"), CHECK, ("pins", "restore")):
        run = wheelproof(*command, *paths)
        assert run.status in {1, 2, 3}, command  # 1: of the pin that could be read, 2: a name without a format
        assert "internal error" not in run.err
    assert (clone / "docker/requirements.txt").read_text() == PIN


@pytest.mark.parametrize("include", ["loop.txt", "folder/x.txt", "docker/../loop.txt"])
def test_an_include_in_a_loop_of_links(include: str, wheelproof: Wheelproof, clone: Path) -> None:
    (clone / "loop.txt").symlink_to("loop.txt")
    (clone / "folder").symlink_to("folder")
    (clone / "requirements.txt").write_text(f"-r {include}\n")

    run = wheelproof(*CHECK, "requirements.txt", "--format", "json")
    assert (run.status, outcomes(run)[include]) == (3, "error")
    run = wheelproof("pins", "rewrite", "requirements.txt")
    assert (run.status, "Too many levels of symbolic links" in run.err) == (3, True)
    run = wheelproof("pins", "predict", "-r", "requirements.txt", "--installed", "torch==2.7", "--platform", "x86_64")
    assert "internal error" not in run.err


def test_files_that_include_each_other(wheelproof: Wheelproof, clone: Path) -> None:
    (clone / "a-requirements.txt").write_text("-r b-requirements.txt\ntorch\n")
    (clone / "b-requirements.txt").write_text("-r a-requirements.txt\n-r b-requirements.txt\ntorch\n")
    assert wheelproof("pins", "rewrite", "a-requirements.txt").status == 0
    assert (clone / "b-requirements.txt").read_text() == "-r a-requirements.txt\n-r b-requirements.txt\n"
    assert wheelproof("pins", "restore").status == 0


def test_a_link_that_leads_nowhere(wheelproof: Wheelproof, clone: Path) -> None:
    (clone / "requirements.txt").symlink_to("../gone.txt")

    run = wheelproof("pins", "rewrite")
    assert (run.status, "warning: requirements.txt is a link that leads nowhere" in run.out) == (0, True)
    run = wheelproof(*CHECK, "--format", "json")
    assert "requirements.txt is a link that leads nowhere" in run.out


def test_the_guard_does_not_write_through_a_link(wheelproof: Wheelproof, clone: Path) -> None:
    elsewhere = clone.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "constraints.txt").write_text("mine\n")
    (clone / "torch-guard").symlink_to(elsewhere)

    run = wheelproof("pins", "guard", "--installed", "2.11.0+cu130")
    assert (run.status, "torch-guard is a link\n" in run.err) == (3, True)
    assert [path.name for path in elsewhere.iterdir()] == ["constraints.txt"]


def test_the_guard_replaces_links_among_its_files(wheelproof: Wheelproof, clone: Path, victim: Path) -> None:
    (clone / "torch-guard").mkdir()
    (clone / "torch-guard/constraints.txt").symlink_to(victim)
    victim.chmod(0o4777)
    run = wheelproof("pins", "guard", "--installed", "2.11.0+cu130")

    assert run.status == 0
    assert victim.read_text() == PIN
    written = (clone / "torch-guard/constraints.txt").lstat()
    assert written.st_mode & 0o7777 == 0o600


@pytest.mark.parametrize("target", ["torch-guard", "../nowhere"])
def test_the_guard_and_a_link_in_a_loop(target: str, wheelproof: Wheelproof, clone: Path) -> None:
    (clone / "torch-guard").symlink_to(target)

    assert wheelproof("pins", "guard", "--installed", "2.11.0+cu130").status == 3
    assert not (clone.parent / "nowhere").exists()
