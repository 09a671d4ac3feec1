"""The configuration of another user's tree is ignored, and a run that would have needed it stops, as git does."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.configuration.test_tree import own, parse
from wheel_checks.errors import UsageError
from wheelproof.cli.configuration.ownership import is_safe, trusted_owners

STRANGER = 54321
GiveAway = Callable[..., None]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / "tree"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def give_away(monkeypatch: pytest.MonkeyPatch) -> GiveAway:
    """Make these paths another user's. Only root can: else their status says so."""
    strange: set[tuple[int, int]] = set()
    real_stat = os.stat_result

    def give(*paths: Path) -> None:
        for path in paths:
            if os.geteuid() == 0:
                os.chown(path, STRANGER, -1, follow_symlinks=False)
            else:
                found = path.lstat()
                strange.add((found.st_dev, found.st_ino))

    def changed(found: os.stat_result) -> os.stat_result:
        if (found.st_dev, found.st_ino) not in strange:
            return found
        fields = list(found)
        fields[4] = STRANGER
        return real_stat(fields, {name: getattr(found, name) for name in ("st_atime_ns", "st_mtime_ns", "st_ctime_ns")})

    if os.geteuid() != 0:
        for owner, name in ((os, "fstat"), (os, "stat"), (os, "lstat")):
            real = getattr(owner, name)
            monkeypatch.setattr(owner, name, lambda *a, real=real, **o: changed(real(*a, **o)))
    return give


def test_the_expectations_of_another_users_file_stop_the_run(tree: Path, give_away: GiveAway) -> None:
    file = tree / "wheelproof.toml"
    file.write_text('[judge]\nexpect = "cpu"\n')
    give_away(file)
    with pytest.raises(UsageError) as error:
        parse(tree)
    assert f"detected dubious ownership in the configuration at {file}: it is owned by 54321, " in error.value.what
    for remedy in (f"WHEELPROOF_SAFE_DIRECTORY={tree}", "safe-directory", "--config /dev/null"):
        assert remedy in error.value.hint
    assert error.value.exit_code == 2


@pytest.mark.parametrize("what", ["file", "folder", "link", "target"])
def test_the_folder_and_the_link_that_lead_to_a_file_count_too(tree: Path, give_away: GiveAway, what: str) -> None:
    file, target = tree / "wheelproof.toml", tree / "target"
    target.write_text('fail-on = "warning"\n')
    if what in {"link", "target"}:
        file.symlink_to(target)
    else:
        file.write_text('fail-on = "warning"\n')
    assert parse(tree).fail_on == "warning"
    give_away({"file": file, "folder": tree, "link": file, "target": target}[what])
    with pytest.raises(UsageError, match="detected dubious ownership"):
        parse(tree)


@pytest.mark.parametrize(
    ("variable", "says"),
    [("flag", "{tree}"), ("environment", "/elsewhere,{tree}"), ("own", "{tree}"), ("own", "*"), ("own", "{home}/*")],
)
def test_an_exception_is_made_by_the_user(tree: Path, give_away: GiveAway, variable: str, says: str) -> None:
    file = tree / "wheelproof.toml"
    file.write_text('fail-on = "warning"\n')
    give_away(tree, file)
    says = says.format(tree=tree, home=tree.parent)
    if variable == "flag":
        options = parse(tree, "--safe-directory", says)
    elif variable == "environment":
        options = parse(tree, environment={"WHEELPROOF_SAFE_DIRECTORY": says})
    else:
        own(tree, f'safe-directory = ["{says}"]\n')
        options = parse(tree)
    assert options.fail_on == "warning"


def test_the_root_of_a_repository_names_all_files_in_it(tree: Path, give_away: GiveAway) -> None:
    (tree / ".git").mkdir()
    inner = tree / "a"
    inner.mkdir()
    file = inner / "wheelproof.toml"
    file.write_text('fail-on = "warning"\n')
    give_away(file)
    assert parse(inner, "--safe-directory", str(tree)).fail_on == "warning"


def test_an_exception_is_not_made_by_the_tree(tree: Path, give_away: GiveAway) -> None:
    file = tree / "wheelproof.toml"
    file.write_text('safe-directory = ["*"]\nfail-on = "warning"\n')
    give_away(file)
    with pytest.raises(UsageError, match="detected dubious ownership"):
        parse(tree)


def test_a_file_that_says_nothing_about_the_run_does_not_stop_it(
    tree: Path, give_away: GiveAway, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tree / "wheelproof.toml"
    file.write_text('output = "../victim.txt"\n')
    give_away(file)
    assert parse(tree).output == "-"
    assert "detected dubious ownership" in capsys.readouterr().err
    file.write_text("[judge]\n")
    parse(tree)
    assert capsys.readouterr().err == ""


def test_what_flags_say_anyway_needs_no_file(tree: Path, give_away: GiveAway) -> None:
    file = tree / "wheelproof.toml"
    file.write_text('fail-on = "warning"\n')
    give_away(file)
    assert parse(tree, "--fail-on", "error").fail_on == "error"


@pytest.mark.parametrize("content", ['fail-on = "warning"\n', "fail-on", 'formt = "json"\n', '[judge]\nexpect = "x"\n'])
def test_in_a_folder_that_all_users_share_a_strangers_file_is_passed_over(
    tree: Path, give_away: GiveAway, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    file = tree / "wheelproof.toml"
    file.write_text(content)
    give_away(file)
    tree.chmod(0o1777)
    options = parse(tree)
    assert (options.fail_on, options.expect) == ("error", None)
    if content != "fail-on":  # invalid TOML has no settings
        assert "detected dubious ownership" in capsys.readouterr().err


def test_a_strangers_file_that_makes_no_sense_is_still_a_strangers(tree: Path, give_away: GiveAway) -> None:
    file = tree / "wheelproof.toml"
    file.write_text('formt = "json"\n')
    give_away(file)
    with pytest.raises(UsageError, match="detected dubious ownership"):
        parse(tree)


def test_show_config_names_the_file_and_goes_on(
    tree: Path, give_away: GiveAway, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tree / "wheelproof.toml"
    file.write_text('fail-on = "warning"\n')
    give_away(file)
    with pytest.raises(AssertionError):  # nothing is parsed
        parse(tree, "--show-config")
    shown = capsys.readouterr().out
    assert "fail-on = 'error'  # default\n" in shown
    assert f"# {file} is ignored: detected dubious ownership" in shown


def test_without_a_repository_the_search_ends_below_a_strangers_folder(tree: Path, give_away: GiveAway) -> None:
    (tree / "wheelproof.toml").write_text('fail-on = "warning"\n')
    inner = tree / "mine"
    inner.mkdir()
    give_away(tree)
    assert parse(inner).fail_on == "error"


def test_under_sudo_the_files_of_the_caller_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert trusted_owners({"SUDO_UID": "1000"}) == {0, 1000}
    assert trusted_owners({"SUDO_UID": "x"}) == trusted_owners({}) == {0}
    monkeypatch.setattr(os, "geteuid", lambda: 1001)
    assert trusted_owners({"SUDO_UID": "1000"}) == {0, 1001}


@pytest.mark.parametrize(
    ("exception", "safe"),
    [
        *[(text, True) for text in ("*", "/a/b", "/a/b/", "/a/*", "/a/b/*")],
        *[(text, False) for text in ("/a", "/a/bc/*", "b", ".", "", "./*", "/a/b/c")],
    ],
)
def test_an_exception_has_the_meaning_that_git_gives_it(exception: str, safe: bool) -> None:
    assert is_safe([Path("/a/b")], [exception]) == safe
