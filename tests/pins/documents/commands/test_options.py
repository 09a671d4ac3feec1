"""The table of options against the help of the installers, and against the settings that uv knows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from uv import find_uv_bin

from wheel_checks.data import load
from wheel_checks.sources.installers.options import options_of
from wheelproof.pins.guard.inside import pip_front, uv_front

RECORDED = tomllib.loads((Path(__file__).parents[3] / "data/installer_options.toml").read_text())
PROGRAMS = {"pip": [sys.executable, "-m", "pip"], "uv": [find_uv_bin()]}
UV = ("", "add", "remove", "run", "sync", "venv", "pip install", "pip sync", "pip uninstall")
PIP = ("", "install", "uninstall", "download", "wheel")
# "  -r, --requirement <file>  Install ...": the names of an option, and whether a value follows
OPTION = re.compile(r"^(?: {2}| {6})((?:-\w, )*(?:-\w|--[\w-]+))( \[?<)?", re.MULTILINE)


def output_of(*command: str) -> str:
    """The output of a program, in lines that are long enough for any option."""
    variables = {**os.environ, "NO_COLOR": "1", "COLUMNS": "200"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    return done.stdout + done.stderr


def options_in_help(command: str) -> dict[str, bool]:
    """The options in the help of a command of pip or uv, and which of them take a value."""
    program, *words = command.split()
    text = output_of(*PROGRAMS[program], *words, "--help")
    return {name: bool(value) for names, value in OPTION.findall(text) for name in names.split(", ")}


def missing(command: str, options: dict[str, bool]) -> set[str]:
    """Those of the options that the table lacks or describes with another value."""
    table = {name: option.takes_value for name, option in options_of(command).items()}
    return {name for name, takes_value in options.items() if table.get(name) is not takes_value}


@pytest.mark.parametrize("command", [*(f"uv {verb}".strip() for verb in UV), *(f"pip {verb}".strip() for verb in PIP)])
def test_the_table_has_the_options_of_pip_and_uv(command: str) -> None:
    options = options_in_help(command)

    assert {"--help", "--quiet"} <= set(options)
    assert missing(command, options) == set()


@pytest.mark.parametrize("command", [f"{tool} {verb}" for tool, verbs in RECORDED.items() for verb in verbs])
def test_the_table_has_the_recorded_options_of_poetry_and_pdm(command: str) -> None:
    tool, verb = command.split()

    assert missing(command, {name.removesuffix("="): name.endswith("=") for name in RECORDED[tool][verb]}) == set()


def test_an_option_that_the_table_lacks_is_named() -> None:
    assert missing("uv sync", {"--quiet": False, "--newest": False, "--index": False}) == {"--newest", "--index"}


@pytest.mark.parametrize("text", ["unknown-key = 1", "pip = { unknown-key = 1 }"])
def test_the_table_has_the_settings_of_uv(tmp_path: Path, text: str) -> None:
    path = tmp_path / "uv.toml"
    path.write_text(text)
    keys = output_of(find_uv_bin(), "cache", "dir", "--config-file", str(path)).partition("expected one of")[2]

    assert "index-url" in keys
    assert set(re.findall(r"`([\w-]+)`", keys)) - options_of("uv.toml").keys() == set()


def test_the_table_has_the_variables_of_uv() -> None:
    texts = [output_of(find_uv_bin(), *verb.split(), "--help") for verb in UV]

    names = {name for text in texts for name in re.findall(r"\[env:\s+(UV_\w+)", text)}
    assert "UV_RESOLUTION" in names
    assert names - options_of("UV_*").keys() == set()


def test_the_table_has_every_option_of_pip() -> None:
    """Hidden ones, and those of its other commands, which a section [global] may have."""
    script = (
        "from pip._internal.commands import commands_dict, create_command\n"
        "for name in commands_dict:\n"
        "    for option in create_command(name).parser.option_list_all:\n"
        "        print(name, *option._long_opts)"
    )
    rows = [line.split() for line in output_of(sys.executable, "-c", script).splitlines()]
    installing = {name for command, *names in rows for name in names if command == "install"}

    assert "--no-dependencies" in installing
    assert installing - options_of("pip install").keys() == set()
    known = options_of("pip install").keys() | options_of("pip.conf").keys()
    assert {name for _, *names in rows for name in names} - known == set()


@pytest.mark.parametrize("of", ["uv.toml", "UV_*", "PIP_*", "pip.conf"])
def test_each_setting_has_one_row(of: str) -> None:
    names = [name for row in load("install_commands")["option"] if of in row["of"] for name in row["names"]]

    assert names
    assert len(names) == len(set(names))


def test_what_has_no_effect_has_a_reason() -> None:
    rows = [row for row in load("install_commands")["option"] if row["effect"] == "none"]

    assert [row["of"] for row in rows if not row.get("why")] == []


@pytest.mark.parametrize(
    ("command", "known"),
    [("uv", uv_front._COMMANDS), ("uv pip", uv_front._VERBS), ("pip", pip_front._COMMANDS)],
)
def test_the_guard_knows_the_commands(command: str, known: set[str]) -> None:
    program, *words = command.split()
    commands = output_of(*PROGRAMS[program], *words, "--help").partition("Commands:\n")[2].partition("\n\n")[0]
    names = set(re.findall(r"^  ([a-z][\w-]*)", commands, re.MULTILINE))

    assert names
    assert names - known == set()


def test_every_effect_of_the_table_is_described() -> None:
    text = Path(sys.modules["wheel_checks.data"].__file__ or "").with_name("install_commands.toml").read_text()
    described = set(re.findall(r"`(\w+)`", text))

    assert {row["effect"] for row in load("install_commands")["option"]} - described == set()
