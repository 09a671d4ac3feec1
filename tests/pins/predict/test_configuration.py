"""Settings, variables and options of installers: each is applied, has no effect, or leaves the prediction undecided."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Wheelproof
from tests.support.fake_torch import INSTALLED, World
from wheel_checks.data import load
from wheel_checks.sources.installers import options
from wheel_checks.sources.installers.options import options_of
from wheel_checks.sources.trust import NO_TRUST
from wheel_checks.sources.uv.user_settings import uv_settings
from wheel_checks.targets.target import parse_targets
from wheelproof.pins.predict.command_line import read_command
from wheelproof.pins.predict.configuration import configured
from wheelproof.pins.predict.model import NOTHING_REQUESTED, Destination, PredictRequest
from wheelproof.wheels.asked import parse_requested

SETTINGS = sorted(options_of("uv.toml"))
VARIABLES = sorted(options_of("UV_*"))
OF_PIP = sorted(name for name in options_of("pip install") if name.startswith("--"))
PLACE = Destination.of(parse_targets(["x86_64"], ["3.12"])[0], {"torch": "2.7.0"})


@pytest.fixture
def without_row(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Remove a name from all rows of the table."""
    table = load("install_commands")

    def remove(name: str) -> None:
        rows = [
            {**row, "names": [one for one in row["names"] if one.removesuffix("=") != name]} for row in table["option"]
        ]
        monkeypatch.setattr(options, "load", lambda _: {**table, "option": rows})
        options_of.cache_clear()

    yield remove
    options_of.cache_clear()


def unknown(tmp_path: Path, installer: str, **variables: str) -> list[str]:
    """The names that the configuration of an installer leaves open."""
    own = {"HOME": str(tmp_path), "XDG_CONFIG_DIRS": str(tmp_path / "none"), "VIRTUAL_ENV": str(tmp_path)}
    request = PredictRequest(NOTHING_REQUESTED, PLACE, variables={**own, **variables})
    return [one.name for one in configured(installer, request, NO_TRUST)[1]]


@pytest.mark.parametrize("table", ["", "pip"])
@pytest.mark.parametrize("key", SETTINGS)
def test_a_setting_without_a_row_is_open(
    tmp_path: Path, without_row: Callable[[str], None], key: str, table: str
) -> None:
    (tmp_path / "uv.toml").write_text(f"[{table}]\n{key} = true\n" if table and key != "pip" else f"{key} = true\n")
    without_row(key)

    (found,) = uv_settings({"HOME": str(tmp_path / "home")}, tmp_path, NO_TRUST).not_understood

    assert found.name == (f"pip.{key}" if table and key != "pip" else key)
    assert found.where == str(tmp_path / "uv.toml")


@pytest.mark.parametrize("name", VARIABLES)
def test_a_variable_without_a_row_is_open(tmp_path: Path, without_row: Callable[[str], None], name: str) -> None:
    if name in ("UV_CONFIG_FILE", "UV_NO_CONFIG"):
        (tmp_path / "1").write_text("")
    without_row(name)

    assert unknown(tmp_path, "uv", **{name: str(tmp_path / "1")}) == [name]
    assert unknown(tmp_path, "pip", **{name: str(tmp_path / "1")}) == []


@pytest.mark.parametrize("name", [name for name in OF_PIP if name not in ("--prefix", "--root")])
def test_an_option_of_pip_without_a_row_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without_row: Callable[[str], None], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    variable = f"PIP_{name.removeprefix('--').upper().replace('-', '_')}"
    (tmp_path / "pip.conf").write_text(f"[global]\n{name.removeprefix('--')} = 1\n")
    without_row(name)

    found = unknown(tmp_path, "pip", PIP_CONFIG_FILE="pip.conf")
    assert found == [name.removeprefix("--")]
    assert unknown(tmp_path, "pip", PIP_CONFIG_FILE=os.devnull, **{variable: "1"}) == [variable]
    assert read_command(["pip", "install", name, "x"], tmp_path).unread == f"its option {name} is unknown"


@pytest.mark.parametrize("name", sorted(options_of("uv pip install")))
def test_an_option_of_uv_without_a_row_is_open(tmp_path: Path, without_row: Callable[[str], None], name: str) -> None:
    without_row(name)

    assert read_command(["uv", "pip", "install", name, "x"], tmp_path).unread == f"its option {name} is unknown"
    assert read_command(["uv", name, "pip", "install", "x"], tmp_path).unread == f"its option {name} is unknown"


@pytest.mark.parametrize("verb", ["sync", "add", "run"])
def test_an_option_of_a_project_without_a_row_is_open(
    tmp_path: Path, without_row: Callable[[str], None], verb: str
) -> None:
    for name in sorted(options_of(f"uv {verb}").keys() - {"--no-sync", "--locked", "--frozen", "--dry-run"}):
        without_row(name)
        assert read_command(["uv", verb, name, "x"], tmp_path).unread == f"its option {name} is unknown", name


@pytest.mark.parametrize(
    "text",
    [
        'link-mode = "copy"',
        'cache-dir = "/c"',
        "no-build-isolation = true",
        "[pip]\nsystem = false\nextra = []",
        "upgrade = true",
        "[pip]\ngenerate-hashes = true",
        '[[index]]\nname = "x"\nurl = "https://x.example/s"\nexplicit = true',
    ],
)
def test_a_setting_that_is_understood(tmp_path: Path, text: str) -> None:
    (tmp_path / "uv.toml").write_text(text)

    assert uv_settings({"HOME": str(tmp_path / "home")}, tmp_path, NO_TRUST).not_understood == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('[pip]\npython = "3.12"\ntarget = "/x"', ["pip.python", "pip.target"]),
        ('no-build-package = ["torch"]', ["no-build-package"]),
        ('[pip]\nonly-binary = ["torch"]', ["pip.only-binary"]),
        ('[[index]]\nurl = "https://x.example/s"\nignore-error-codes = [403]', ["index.ignore-error-codes"]),
    ],
)
def test_a_setting_whose_effect_is_not_followed(tmp_path: Path, text: str, names: list[str]) -> None:
    (tmp_path / "uv.toml").write_text(text)

    found = uv_settings({"HOME": str(tmp_path / "home")}, tmp_path, NO_TRUST).not_understood
    assert [one.name for one in found] == names


def test_settings_of_a_tree_about_builds_count_only_where_something_is_built(tmp_path: Path) -> None:
    (tmp_path / "uv.toml").write_text("config-settings = { a = 'b' }")
    home = {"HOME": str(tmp_path / "home")}

    assert uv_settings(home, tmp_path, NO_TRUST).not_understood == []
    assert [one.name for one in uv_settings(home, tmp_path, NO_TRUST, build=True).not_understood] == ["config-settings"]


@pytest.mark.parametrize(
    ("installer", "variables", "names"),
    [
        ("pip", {"PIP_FROBNICATE": "1"}, ["PIP_FROBNICATE"]),
        ("pip", {"PIP_NO_BINARY": "torch"}, ["PIP_NO_BINARY"]),
        ("pip", {"PIP_NO_BINARY": ":none:", "PIP_UPGRADE": "1", "PIP_NO_CACHE_DIR": "1", "PIP_VERSION": "25"}, []),
        ("pip", {"PIP_ONLY_BINARY": ":all:"}, []),
        ("pip", {"PIP_ONLY_BINARY": "torch"}, ["PIP_ONLY_BINARY"]),
        ("uv", {"UV_NO_BINARY": "1"}, ["UV_NO_BINARY"]),
        ("uv", {"UV_NO_BINARY": "0", "UV_NO_BUILD": "1", "UV_LINK_MODE": "copy"}, []),
        ("uv", {"UV_INDEX_CORP_PASSWORD": "x", "UVLOOP": "1"}, []),
    ],
)
def test_variables(tmp_path: Path, installer: str, variables: dict[str, str], names: list[str]) -> None:
    assert unknown(tmp_path, installer, **variables) == names


@pytest.mark.parametrize(
    ("line", "names", "wheels_only"),
    [
        ("--only-binary :all:", [], True),
        ("--only-binary=torch", ["--only-binary torch"], False),
        ("--prefer-binary", ["--prefer-binary"], False),
        ("--only-binary :none:", [], False),
        ("--use-feature=fast-deps", [], False),
    ],
)
def test_options_within_a_requirements_file(tmp_path: Path, line: str, names: list[str], wheels_only: bool) -> None:
    (tmp_path / "requirements.txt").write_text(f"{line}\nx\n")
    requested = parse_requested([], [tmp_path / "requirements.txt"])
    request = PredictRequest(requested, PLACE, variables={"HOME": str(tmp_path), "PIP_CONFIG_FILE": os.devnull})

    request, unknown_ = configured("pip", request, NO_TRUST)

    assert ([one.name for one in unknown_], request.wheels_only) == (names, wheels_only)
    assert all(one.where == "requirements.txt:1" for one in unknown_)


def test_variables_that_name_another_environment(tmp_path: Path) -> None:
    interior = replace(PLACE.interior, prefix="/env", is_virtual=True)
    here = Destination(PLACE.target, interior, "/env/bin/python")
    for place, value, is_open in (
        (here, "/env", False),
        (here, "/other", True),
        (here, "1", True),
        (replace(here, is_named=True), "/other", False),
    ):
        request = PredictRequest(NOTHING_REQUESTED, place, variables={"UV_PYTHON": value, "UV_NO_CONFIG": "1"})
        assert bool(configured("uv", request, NO_TRUST)[1]) is is_open, (value, place.is_named)


def test_an_option_that_changes_the_project_and_its_sync(tmp_path: Path) -> None:
    step = read_command(["uv", "add", "-U", "--optional", "gpu", "--dev", "x", "--bounds", "exact"], tmp_path)

    assert step.arguments == ("add", "-U", "--optional", "gpu", "--dev", "x", "--bounds", "exact")
    assert step.options == ("-U", "--extra", "gpu", "--group", "dev")
    assert not step.unread


# With its row, a setting gives the verdict of the install.

ANY, LATER = "needs-any", "needs-2-8"
CHANGING = [
    ("uv pip", ANY, "uv.toml", "upgrade = true"),
    ("uv pip", ANY, "uv.toml", "[pip]\nupgrade = true"),
    ("uv pip", ANY, "pyproject.toml", '[tool.uv]\nupgrade-package = ["torch"]'),
    ("uv pip", ANY, "uv.toml", '[pip]\nreinstall-package = ["torch"]'),
    ("uv pip", ANY, "pyproject.toml", "[tool.uv.pip]\nreinstall = true"),
    ("uv pip", LATER, "uv.toml", "[pip]\nno-deps = true"),
    ("uv pip", ANY, "uv.toml", 'override-dependencies = ["torch==2.8.0"]'),
    ("uv pip", LATER, "uv.toml", 'exclude-dependencies = ["torch"]'),
    ("uv pip", ANY, "uv.toml", 'resolution = "lowest"'),
    ("pip", ANY, "pip.conf", "[install]\nupgrade = 1\nupgrade-strategy = eager"),
    ("pip", ANY, "pip.conf", "[global]\nupgrade = 1"),
    ("pip", ANY, "pip.conf", "[global]\nforce-reinstall = yes"),
    ("pip", LATER, "pip.conf", "[install]\nno-deps = true"),
    ("pip", LATER, "pip.conf", "[install]\nno-dependencies = true"),
]


@pytest.mark.parametrize(("installer", "package", "file", "text"), CHANGING)
def test_the_verdict_is_that_of_the_install(
    tmp_path: Path,
    wheelproof: Wheelproof,
    monkeypatch: pytest.MonkeyPatch,
    installer: str,
    package: str,
    file: str,
    text: str,
) -> None:
    world = World.create(tmp_path / "world")
    for name, value in world.variables.items():
        if name != "PATH":
            monkeypatch.setenv(name, value)
    (world.venv if file == "pip.conf" else world.project).joinpath(file).write_text(text)
    monkeypatch.chdir(world.project)

    done = wheelproof("pins", "predict", "--format", "json", f"{installer} install {package}")
    report: dict[str, Any] = json.loads(done.out)
    command = installer if installer == "uv pip" else f"{sys.executable} -m pip --python {world.python}"
    installed = world.shell(f"{command} install {package}")

    assert installed.status == 0, installed.words
    assert done.status == (0 if world.torch == INSTALLED else 1), report["summary"]
