"""Applied and ignored settings in the configuration file of a tree."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import pytest

from tests.conftest import Wheelproof
from tests.support.wheels import WheelBuilder
from wheel_checks.errors import UsageError
from wheelproof.cli.configuration.parsing import parse_arguments
from wheelproof.cli.options.output import CommandParser, add_list, add_output_options
from wheelproof.cli.options.rights import NAMES_FILES, SETS, allow_tree, raises


def parse(tree: Path, *arguments: str, environment: dict[str, str] | None = None) -> argparse.Namespace:
    """The options of ``wheelproof judge ARGUMENTS``, run in ``tree``."""
    parser = CommandParser(prog="wheelproof judge", description="Judges.")
    add_output_options(parser)
    parser.add_argument("--expect")
    parser.add_argument("--run")
    parser.add_argument("--set", choices=["core", "wide"], default="core")
    add_list(parser, "--file", "FILE", "files")
    allow_tree(parser, SETS, "expect")
    allow_tree(parser, raises("core", "wide"), "set")
    allow_tree(parser, NAMES_FILES, "file")
    home = next(folder for folder in (tree, *tree.parents) if folder.name == "home")
    namespace = parse_arguments(
        parser,
        arguments,
        command="judge",
        commands=("judge",),
        environment={"HOME": str(home), **(environment or {})},
        folder=tree,
    )
    assert namespace is not None
    return namespace


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / "tree"
    folder.mkdir(parents=True)
    return folder


def says(tree: Path, text: str) -> Path:
    file = tree / "wheelproof.toml"
    file.write_text(text)
    return file


def own(tree: Path, text: str) -> Path:
    file = tree.parent / ".config" / "wheelproof" / "wheelproof.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


# Ignored settings.


def test_a_refused_key_has_no_effect_and_is_named_with_its_remedy(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = says(tree, 'output = "../victim.txt"\n[judge]\nrun = "./evil"\n')
    options = parse(tree)
    assert (options.output, options.run, options.from_tree) == ("-", None, frozenset())
    lines = capsys.readouterr().err.splitlines()
    own_place = tree.parent / ".config/wheelproof/wheelproof.toml"
    assert lines == [
        f"wheelproof: output and judge.run in {file} are ignored: a checkout can only configure what is checked "
        f"and what is expected; use --output, --run, or your own {own_place}"
    ]
    assert set(options.tree.refused) == {"output", "run"}


@pytest.mark.parametrize("value", ["5", "[]", "{}", '"--evil"', "true", "1979-05-27"])
def test_a_refused_key_does_not_stop_the_run_whatever_its_value(tree: Path, value: str) -> None:
    says(tree, f"format = {value}\nquiet = {value}\nalso = {value}\nsafe-directory = {value}\n")
    options = parse(tree)
    assert (options.format, options.quiet, options.also, options.safe_directory) == ("text", False, [], [])
    assert set(options.tree.refused) == {"format", "quiet", "also", "safe-directory"}


def test_a_value_of_a_tree_that_its_flag_would_not_take_is_an_error(tree: Path) -> None:
    says(tree, 'fail-on = "nothing"')
    with pytest.raises(UsageError, match="'nothing' is not a valid value for --fail-on"):
        parse(tree)


def test_no_name_of_a_folder_becomes_a_command_of_a_runner(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tree / "##[error]x\n::error::y\x1b[31m"
    folder.mkdir()
    says(folder, "quiet = true")
    parse(folder)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("wheelproof: quiet in ")
    assert "##[" not in line
    assert "\x1b" not in line


# Who wins.


@pytest.mark.parametrize(
    ("tree_says", "user_says", "holds"),
    [
        ("never", None, "error"),
        ("error", None, "error"),
        ("warning", None, "warning"),
        ("never", "warning", "warning"),
        ("error", "warning", "warning"),
        ("warning", "warning", "warning"),
        ("never", "never", "never"),
        ("error", "never", "error"),
        ("warning", "never", "warning"),
    ],
)
def test_a_tree_makes_a_run_stricter_and_never_weaker(
    tree: Path, tree_says: str, user_says: str | None, holds: str
) -> None:
    says(tree, f'fail-on = "{tree_says}"')
    if user_says:
        own(tree, f'fail-on = "{user_says}"')
    options = parse(tree)
    assert options.fail_on == holds
    weaker = ("never", "error", "warning").index(tree_says) < ("never", "error", "warning").index(user_says or "error")
    assert ("fail-on" in options.tree.refused) == weaker


@pytest.mark.parametrize("through", ["flag", "environment"])
def test_what_the_user_says_for_this_run_beats_the_stricter_tree(tree: Path, through: str) -> None:
    says(tree, 'fail-on = "warning"\nselect = ["WHL1"]\nignore = ["WHL105"]\n[judge]\nset = "wide"\n')
    settings = {"fail-on": "never", "select": "WHL", "ignore": "SEC", "set": "core"}
    if through == "flag":
        options = parse(tree, *(part for key, value in settings.items() for part in (f"--{key}", value)))
    else:
        variables = {f"WHEELPROOF_{key.replace('-', '_').upper()}": value for key, value in settings.items()}
        options = parse(tree, environment=variables)
    assert (options.fail_on, options.select, options.ignore, options.set) == ("never", ["WHL"], ["SEC"], "core")
    assert (options.tree.select, options.tree.ignore) == ((), ())


def test_the_users_own_file_beats_the_tree(tree: Path) -> None:
    says(tree, '[judge]\nexpect = "cpu"\n')
    assert parse(tree).expect == "cpu"
    own(tree, '[judge]\nexpect = "cuda"\n')
    options = parse(tree)
    assert (options.expect, options.from_tree) == ("cuda", frozenset())


def test_prefixes_of_rules_of_both_are_kept_apart(tree: Path) -> None:
    says(tree, 'select = ["WHL1"]\nignore = ["WHL105"]\n')
    own(tree, 'select = ["SEC"]\nignore = ["WHL2"]\n')
    options = parse(tree)
    assert (options.select, options.ignore) == (["SEC"], ["WHL2"])
    assert (options.tree.select, options.tree.ignore) == (("WHL1",), ("WHL105",))


# Files that a tree names.


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "link", "folder/../../outside", "loop/x"])
def test_a_file_outside_the_tree_is_refused(tree: Path, name: str) -> None:
    (tree.parent / "outside").write_text("secret")
    (tree / "folder").mkdir()
    (tree / "link").symlink_to("../outside")
    (tree / "loop").symlink_to("loop")
    says(tree, f'[judge]\nfile = ["inside", "{name}"]\n')
    options = parse(tree)
    assert options.file == []
    assert name in options.tree.refused["file"]


def test_a_file_is_relative_to_the_configuration_and_may_be_anywhere_in_the_repository(tree: Path) -> None:
    (tree / ".git").mkdir()
    inner = tree / "a" / "b"
    inner.mkdir(parents=True)
    says(tree / "a", '[judge]\nfile = ["x.toml", "../y.toml"]\n')
    assert parse(inner).file == [str(tree / "a" / "x.toml"), str(tree / "y.toml")]


# Where the search ends.


def test_nothing_above_a_repository_decides(tree: Path) -> None:
    says(tree, 'fail-on = "warning"')
    inner = tree / "repository" / "a"
    inner.mkdir(parents=True)
    assert parse(inner).fail_on == "warning"
    (inner.parent / ".git").write_text("gitdir: elsewhere\n")  # as in a worktree and in a submodule
    assert parse(inner).fail_on == "error"


def test_a_repository_of_mercurial_is_one_too(tree: Path) -> None:
    says(tree, 'fail-on = "warning"')
    inner = tree / "repository"
    (inner / ".hg").mkdir(parents=True)
    assert parse(inner).fail_on == "error"


def test_a_monorepo_has_its_configuration_at_its_root(tree: Path) -> None:
    (tree / ".git").mkdir()
    inner = tree / "packages" / "one"
    inner.mkdir(parents=True)
    (inner / "pyproject.toml").write_text("[project]\nname = 'one'\n")
    says(tree, 'fail-on = "warning"')
    assert parse(inner).fail_on == "warning"


def test_the_home_folder_is_no_tree_of_what_lies_below_it(tree: Path) -> None:
    (tree.parent / "wheelproof.toml").write_text('fail-on = "warning"')
    assert parse(tree).fail_on == "error"
    assert parse(tree.parent).fail_on == "warning"


def test_a_home_folder_that_is_a_repository_is_one(tree: Path) -> None:
    (tree.parent / ".git").mkdir()
    (tree.parent / "wheelproof.toml").write_text('fail-on = "warning"')
    assert parse(tree).fail_on == "warning"


def test_a_folder_that_all_users_share_is_no_tree_of_what_lies_below_it(tree: Path) -> None:
    says(tree, 'fail-on = "warning"')
    inner = tree / "mine"
    inner.mkdir()
    tree.chmod(0o1777)
    assert parse(inner).fail_on == "error"


# The user's own file.


@pytest.mark.parametrize("variable", ["HOME", "XDG_CONFIG_HOME"])
def test_every_key_holds_in_the_users_own_file(tree: Path, variable: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = own(tree, 'output = "report.txt"\nquiet = true\n[judge]\nrun = "./tool"\nfile = ["../x"]\n')
    folder = file.parents[2] if variable == "HOME" else file.parents[1]
    options = parse(tree, environment={"HOME": "", variable: str(folder)})
    assert (options.output, options.quiet, options.run, options.file) == ("report.txt", True, "./tool", ["../x"])
    assert capsys.readouterr().err == ""


def test_a_relative_folder_of_configurations_counts_as_unset(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    own(tree / "x", 'output = "report.txt"')
    assert parse(tree, environment={"HOME": "", "XDG_CONFIG_HOME": ".config"}).output == "-"
    assert parse(tree, environment={"HOME": "."}).output == "-"


def test_the_users_own_file_is_no_file_of_a_tree_in_its_own_folder(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = own(tree, "quiet = true")
    assert parse(file.parent).quiet
    assert capsys.readouterr().err == ""


def test_a_named_file_is_the_users_own_wherever_it_lies(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = says(tree, "quiet = true\n")
    assert parse(tree, "--config", str(file)).quiet
    assert capsys.readouterr().err == ""


def test_what_is_no_regular_file_is_no_configuration(tree: Path) -> None:
    os.mkfifo(tree / "wheelproof.toml")
    (tree / "pyproject.toml").write_text('[tool.wheelproof]\nfail-on = "warning"\n')
    assert parse(tree).fail_on == "warning"


# Shown settings.


def test_show_config_says_where_each_key_came_from_and_what_is_not_obeyed(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = says(tree, 'output = "x"\nselect = ["WHL1"]\nfail-on = "never"\n[judge]\nexpect = "cuda"\n')
    mine = own(tree, 'select = ["SEC"]\noffline = true\n')
    with pytest.raises(AssertionError):  # nothing is parsed
        parse(tree, "--show-config", "--set", "wide")
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert shown.err == ""
    assert lines[:2] == [f"# your own configuration: {mine}", f"# the configuration of the tree: {file}"]
    for line in (
        f"select = ['SEC', 'WHL1']  # select in {mine}, select in {file}",
        f"offline = True  # offline in {mine}",
        f"expect = 'cuda'  # judge.expect in {file}",
        "set = 'wide'  # flag",
        "fail-on = 'error'  # default",
        "output = '-'  # default",
    ):
        assert line in lines
    assert [line.split(" is ignored: ")[0] for line in lines if " ignored: " in line] == [
        f"# output in {file}",
        f"# fail-on in {file}",
    ]


# Commands that give some of it another meaning.


def test_a_tree_does_not_say_which_environment_is_judged(wheelproof: Wheelproof, tmp_path: Path) -> None:
    Path("wheelproof.toml").write_text(f'[verify]\npython = ["{tmp_path}"]\n')
    run = wheelproof("verify", "--installed", "--show-config")
    assert " ignored: " not in run.out
    run = wheelproof("verify", "--installed", "--format", "json")
    assert "judging " in run.err
    assert f"judging {tmp_path}" not in run.err


def test_versions_of_a_tree_are_what_wheels_are_judged_for(wheelproof: Wheelproof) -> None:
    Path("wheelproof.toml").write_text('[verify]\npython = ["3.11", "3.12"]\n')
    name = WheelBuilder().write(Path.cwd()).name
    assert wheelproof("verify", name).status == 0


def test_a_torch_that_is_here_beats_the_one_that_a_tree_names(
    wheelproof: Wheelproof, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Path("wheelproof.toml").write_text('[pins.check]\ninstalled = ["2.8.0"]\n')
    Path("requirements.txt").write_text("torch==2.8.0\n")
    environment = tmp_path / "environment"
    packages = environment / "lib" / "python3.12" / "site-packages"
    (packages / "torch-2.9.0.dist-info").mkdir(parents=True)
    (environment / "bin").mkdir()
    (environment / "bin" / "python3").write_text("")
    (environment / "pyvenv.cfg").write_text("version = 3.12.1\n")
    monkeypatch.setenv("PATH", "")
    assert wheelproof("pins", "check").status == 0
    monkeypatch.setenv("VIRTUAL_ENV", str(environment))
    assert wheelproof("pins", "check").status == 1
    assert wheelproof("pins", "check", "--installed", "2.8.0").status == 0
