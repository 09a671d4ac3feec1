"""The completion scripts, in the real shells: what is typed, and what the Tab key makes of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Wheelproof
from tests.support.patience import PATIENCE
from tests.support.shells import fish_offers, line_after_tab
from wheel_checks.catalogue import all_rules
from wheel_checks.facts.gpu.targets import parse_gpu
from wheelproof.cli.main import COMMANDS
from wheelproof.cli.manual import METAVARS, read_manual
from wheelproof.manual.model import Kind

COMPLETED = [
    ("wheelproof ver", "wheelproof verify"),
    ("wheelproof comp", "wheelproof completion"),
    ("wheelproof --ver", "wheelproof --version"),
    ("wheelproof pins che", "wheelproof pins check"),
    ("wheelproof verify --dep", "wheelproof verify --depth"),
    ("wheelproof verify --depth li", "wheelproof verify --depth links"),
    ("wheelproof verify --depth=li", "wheelproof verify --depth=links"),
    ("wheelproof verify a.whl --platform x86_64,aa", "wheelproof verify a.whl --platform x86_64,aarch64"),
    ("wheelproof stack --gpu GH200,GB3", "wheelproof stack --gpu GH200,GB300"),
    ("wheelproof pins check --fail-on nev", "wheelproof pins check --fail-on never"),
    ("wheelproof verify --select WHL20", "wheelproof verify --select WHL20"),  # several: none is chosen
    ("wheelproof verify --ignore PIN101,WHL201,WHL10", "wheelproof verify --ignore PIN101,WHL201,WHL10"),
    ("wheelproof verify --ignore PIN101,WHL20", "wheelproof verify --ignore PIN101,WHL20"),
    ("wheelproof rules KR", "wheelproof rules KRN"),
    ("wheelproof completion fi", "wheelproof completion fish"),
    ("wheelproof verify req", "wheelproof verify requirements.txt"),
    ("wheelproof pins check --fail-on never req", "wheelproof pins check --fail-on never requirements.txt"),
    ("wheelproof stack -r req", "wheelproof stack -r requirements.txt"),
    ("wheelproof verify --output req", "wheelproof verify --output requirements.txt"),
    ("wheelproof verify --cache-dir r", "wheelproof verify --cache-dir results/"),
    ("wheelproof verify --also js", "wheelproof verify --also json="),
    ("wheelproof verify --also json=req", "wheelproof verify --also json=requirements.txt"),
    ("wheelproof verify --deadline r", "wheelproof verify --deadline r"),  # a number: no file is offered
    ("wheelproof completion r", "wheelproof completion r"),
    ("wheelproof nonsense --dep", "wheelproof nonsense --dep"),
]


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the script of each shell, and with what a user has there."""
    folder = tmp_path_factory.mktemp("user")
    for shell in ("bash", "zsh", "fish"):
        command = [sys.executable, "-m", "wheelproof", "completion", shell]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
        (folder / f".{shell}").write_text(done.stdout)
    (folder / "requirements.txt").touch()
    (folder / "results").mkdir()
    return folder


@pytest.mark.shells
@pytest.mark.parametrize(("typed", "completed"), COMPLETED)
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_line_after_the_tab_key(scripts: Path, shell: str, typed: str, completed: str) -> None:
    assert line_after_tab(shell, scripts / f".{shell}", typed, scripts) == completed


@pytest.mark.shells
@pytest.mark.parametrize(("typed", "completed"), COMPLETED)
def test_what_fish_offers(scripts: Path, typed: str, completed: str) -> None:
    offers = fish_offers(scripts / ".fish", typed, scripts)
    word, wanted = typed.rpartition(" ")[2], completed.rpartition(" ")[2]
    if word == wanted:
        assert wanted not in offers
        assert len(offers) != 1
    else:
        assert wanted in offers


def test_the_commands_of_the_manual_are_those_of_the_command_line() -> None:
    manual = read_manual()
    assert [command.name for command in manual.below("")] == list(COMMANDS)
    assert "check" in {command.name.rpartition(" ")[2] for command in manual.below("pins")}


def test_every_name_of_a_value_is_known() -> None:
    unknown = {
        name for name, values in read_manual().every_value() if name not in METAVARS and values.kind is not Kind.WORD
    }
    assert not unknown, "say in wheelproof.cli.manual.METAVARS what a shell may offer for them"


def test_what_is_offered_is_understood() -> None:
    lists = read_manual().lists
    ids = [rule.id for rule in all_rules()]
    assert set(ids) < set(lists["rules"])
    assert all(any(rule.startswith(word) for rule in ids) for word in lists["rules"])
    for word in lists["gpus"]:
        parse_gpu(word)


def test_a_shell_that_is_not_known_is_wrong_usage(wheelproof: Wheelproof) -> None:
    run = wheelproof("completion", "tcsh")
    assert (run.status, run.out) == (2, "")
    assert "bash, zsh, fish" in run.err.replace("'", "")  # quoted before Python 3.12.8
