"""The origin of an option's value: flags > environment > own file > default, each validated alike."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import pytest

from tests.conftest import Wheelproof
from wheel_checks.errors import UsageError
from wheelproof.cli.configuration.parsing import parse_arguments
from wheelproof.cli.options.output import CommandParser, ListAction, add_output_options

COMMANDS = ("judge", "rules")


def python_version(text: str) -> tuple[int, ...]:
    try:
        return tuple(map(int, text.split(".")))
    except ValueError:
        raise argparse.ArgumentTypeError("expected a version like 3.12") from None


def judge_parser() -> CommandParser:
    """The parser of a command with an option of every kind."""
    parser = CommandParser(prog="wheelproof judge", description="Judges.")
    add_output_options(parser)
    parser.add_argument("targets", nargs="+")
    parser.add_argument("--platform", choices=("x86_64", "aarch64"), default="x86_64")
    parser.add_argument("--python", action="append", type=python_version)
    parser.add_argument("--index-url")
    parser.add_argument("--limit", type=int, default=8)
    parser.add_argument("--extra", action=ListAction, default=[])
    return parser


def parse(
    folder: Path, *arguments: str, environment: dict[str, str] | None = None, parser: CommandParser | None = None
) -> argparse.Namespace:
    """The options of ``wheelproof judge torch ARGUMENTS``, run in ``folder``."""
    namespace = parse_arguments(
        parser or judge_parser(),
        ["torch", *arguments],
        command="judge",
        commands=COMMANDS,
        environment={"XDG_CONFIG_HOME": str(folder), **(environment or {})},
        folder=folder,
    )
    assert namespace is not None
    return namespace


def own_file(folder: Path, content: str) -> Path:
    """The user's own configuration in the tests of this module."""
    file = folder / "wheelproof" / "wheelproof.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(content)
    return file


def test_without_anything_the_defaults_hold(tmp_path: Path) -> None:
    options = parse(tmp_path)
    assert (options.format, options.platform, options.python, options.limit, options.select) == (
        "text",
        "x86_64",
        None,
        8,
        [],
    )


def test_flags_beat_the_environment_which_beats_the_file_which_beats_the_default(tmp_path: Path) -> None:
    own_file(tmp_path, 'format = "html"\nfail-on = "never"\nselect = ["WHL9"]\nquiet = true\n')
    environment = {"WHEELPROOF_FORMAT": "json", "WHEELPROOF_FAIL_ON": "warning"}
    options = parse(tmp_path, "--format", "junit", environment=environment)
    assert (options.format, options.fail_on, options.select, options.quiet, options.offline) == (
        "junit",
        "warning",
        ["WHL9"],
        True,
        False,
    )


def test_a_repeatable_flag_replaces_what_the_file_says(tmp_path: Path) -> None:
    own_file(tmp_path, 'select = ["WHL1"]\n[judge]\npython = ["3.11"]\n')
    options = parse(tmp_path, "--select", "WHL2,WHL3", "--select", "WHL4", "--python", "3.13")
    assert options.select == ["WHL2", "WHL3", "WHL4"]
    assert options.python == [(3, 13)]


def test_the_table_of_a_command_beats_the_shared_one(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text(
        '[tool.wheelproof]\nformat = "json"\noffline = true\n'
        '[tool.wheelproof.judge]\nformat = "sarif"\nplatform = "aarch64"\n'
    )
    options = parse(tmp_path, "--config", str(file))
    assert (options.format, options.platform, options.offline) == ("sarif", "aarch64", True)


def test_values_are_converted_as_flags_are(tmp_path: Path) -> None:
    own_file(
        tmp_path,
        'verbose = 2\ncolor = false\nignore = "WHL1, WHL2"\n[judge]\npython = ["3.11", "3.12"]\nlimit = 3\n',
    )
    options = parse(tmp_path)
    assert (options.verbose, options.color, options.ignore, options.python, options.limit) == (
        2,
        False,
        ["WHL1", "WHL2"],
        [(3, 11), (3, 12)],
        3,
    )


def test_environment_values_are_converted_as_flags_are(tmp_path: Path) -> None:
    options = parse(
        tmp_path,
        environment={
            "WHEELPROOF_PYTHON": "3.11,3.12",
            "WHEELPROOF_OFFLINE": "yes",
            "WHEELPROOF_COLOR": "off",
            "WHEELPROOF_VERBOSE": "1",
            "WHEELPROOF_EXTRA": "a,b",
            "WHEELPROOF_QUIET": "0",
            "WHEELPROOF_PLATFORM": "",
        },
    )
    assert options.python == [(3, 11), (3, 12)]
    assert (options.offline, options.color, options.verbose, options.extra) == (True, False, 1, ["a", "b"])
    assert (options.quiet, options.platform) == (False, "x86_64")


def test_the_nearest_file_above_counts(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "wheelproof.toml").write_text('fail-on = "error"')
    (tmp_path / "a" / "pyproject.toml").write_text('[tool.wheelproof]\nfail-on = "warning"')
    assert parse(inner).fail_on == "warning"


def test_a_pyproject_of_another_tool_is_passed_over_even_when_it_is_broken(tmp_path: Path) -> None:
    inner = tmp_path / "a"
    inner.mkdir()
    (tmp_path / "wheelproof.toml").write_text('fail-on = "warning"')
    (inner / "pyproject.toml").write_text("[tool.ruff\n")
    assert parse(inner).fail_on == "warning"


@pytest.mark.parametrize("via_environment", [True, False])
def test_a_named_file_takes_the_place_of_all_others(tmp_path: Path, via_environment: bool) -> None:
    (tmp_path / "wheelproof.toml").write_text('fail-on = "warning"')
    own_file(tmp_path, 'format = "html"\noffline = true')
    other = tmp_path / "other.toml"
    other.write_text('format = "json"')
    if via_environment:
        options = parse(tmp_path, environment={"WHEELPROOF_CONFIG": str(other)})
    else:
        options = parse(tmp_path, "--config", str(other))
    assert (options.format, options.offline, options.fail_on) == ("json", False, "error")


def test_an_empty_file_switches_the_search_off(tmp_path: Path) -> None:
    (tmp_path / "wheelproof.toml").write_text('fail-on = "warning"')
    assert parse(tmp_path, "--config", os.devnull).fail_on == "error"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('formt = "json"', "the unknown key 'formt' (did you mean format?)"),
        ('[judge]\nplatfrom = "x86_64"', "the unknown key 'judge.platfrom' (did you mean judge.platform?)"),
        ('platform = "x86_64"', "the unknown key 'platform'"),
        ('[jugde]\nplatform = "x86_64"', "the unknown key 'jugde' (did you mean judge?)"),
        ('config = "a.toml"', "the unknown key 'config'"),
        ('format = "jsn"', "format in FILE: 'jsn' is not a valid value for --format: choose from text, json"),
        (
            '[judge]\nplatform = "arm"',
            "judge.platform in FILE: 'arm' is not a valid value for --platform: choose from x86_64",
        ),
        (
            '[judge]\npython = "x"',
            "judge.python in FILE: 'x' is not a valid value for --python: expected a version like 3.12",
        ),
        ('[judge]\nlimit = "many"', "judge.limit in FILE: 'many' is not a valid value for --limit: invalid literal"),
        (
            "[judge]\npython = 3.10",
            "judge.python in FILE: 3.1 is not a valid value for --python: expected a string in quotes",
        ),
        ("format = true", "format in FILE: True is not a valid value for --format: expected a string in quotes"),
        (
            "select = [1, []]",
            "[1, []] is not a valid value for --select: expected a string in quotes, or a list of them",
        ),
        ('format = ["json"]', "['json'] is not a valid value for --format: expected a string in quotes"),
        ('select = ["WHL1,"]', "select in FILE: argument --select: 'WHL1,' contains an empty value"),
        ('quiet = "maybe"', "quiet in FILE: 'maybe' is not a valid value for --quiet: expected true or false"),
        ("quiet = 3", "quiet in FILE: 3 is not a valid value for --quiet: expected true or false"),
        ('judge = "x"', "judge in FILE is a value; expected a table with options of `wheelproof judge`"),
        ("format = ", "the configuration file FILE is not valid TOML"),
        ("x = " + "[" * 20_000, "the configuration file FILE is not valid TOML"),
        ("#" * (1 << 21), "the configuration file FILE is too large; expected at most 1048576 bytes"),
    ],
)
def test_a_wrong_file_is_one_clear_sentence(tmp_path: Path, content: str, message: str) -> None:
    file = own_file(tmp_path, content)
    with pytest.raises(UsageError) as error:
        parse(tmp_path)
    assert message.replace("FILE", str(file)) in str(error.value)


def test_bytes_that_are_no_text_are_no_configuration(tmp_path: Path) -> None:
    (tmp_path / "wheelproof.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is not valid TOML"):
        parse(tmp_path)


@pytest.mark.parametrize(("name", "message"), [("none.toml", "No such file"), ("pyproject.toml", "has no table")])
def test_a_named_file_must_hold_a_configuration(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    with pytest.raises(UsageError, match=message):
        parse(tmp_path, "--config", str(tmp_path / name))


def test_the_wheelproof_table_must_be_a_table(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool]\nwheelproof = 1\n")
    with pytest.raises(UsageError, match="is not a table"):
        parse(tmp_path)


def test_a_value_in_the_environment_is_validated(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match="environment variable WHEELPROOF_PLATFORM: 'arm' is not a valid value for --platform"
    ):
        parse(tmp_path, environment={"WHEELPROOF_PLATFORM": "arm"})


def test_a_misspelt_variable_is_an_error_and_a_foreign_one_is_not(tmp_path: Path) -> None:
    assert parse(tmp_path, environment={"WHEELPROOF_VERSION": "1.2"}).format == "text"
    with pytest.raises(UsageError, match=r"WHEELPROOF_FAILON is unknown \(did you mean WHEELPROOF_FAIL_ON\?\)"):
        parse(tmp_path, environment={"WHEELPROOF_FAILON": "never"})


def test_a_required_option_may_come_from_the_file(tmp_path: Path) -> None:
    parser = judge_parser()
    parser.add_argument("--expect", required=True)
    with pytest.raises(UsageError, match="the following arguments are required: --expect"):
        parse(tmp_path, parser=parser)

    parser = judge_parser()
    parser.add_argument("--expect", required=True)
    own_file(tmp_path, '[judge]\nexpect = "cuda"')
    assert parse(tmp_path, parser=parser).expect == "cuda"


def test_show_config_tells_every_value_and_its_origin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = own_file(tmp_path, '[judge]\nindex-url = "https://me:secret@example.org/simple"')
    answer = parse_arguments(
        judge_parser(),
        ["--show-config", "--format", "json"],
        command="judge",
        commands=COMMANDS,
        environment={"WHEELPROOF_LIMIT": "4", "XDG_CONFIG_HOME": str(tmp_path)},
        folder=tmp_path,
    )
    shown = capsys.readouterr().out.splitlines()
    assert answer is None
    assert "format = 'json'  # flag" in shown
    assert "limit = 4  # environment variable WHEELPROOF_LIMIT" in shown
    assert f"index-url = 'https://example.org/simple'  # judge.index-url in {file}" in shown
    assert "platform = 'x86_64'  # default" in shown


def test_a_format_for_reports_does_not_break_the_manual(
    wheelproof: Wheelproof, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHEELPROOF_FORMAT", "junit")
    assert wheelproof("rules").status == 0
