"""The completion scripts, in the real shells: typed text, and its completion by the Tab key."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ci import update_completions
from ci.command_line import below, read_commands, value_name
from tests.conftest import Wheelproof
from tests.support.patience import PATIENCE
from tests.support.shells import fish_offers, line_after_tab
from wheel_checks.catalogue import all_rules
from wheel_checks.facts.gpu.targets import parse_gpu
from wheelproof.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]

COMPLETED = [
    ("wheelproof ver", "wheelproof verify"),
    ("wheelproof comp", "wheelproof completion"),
    ("wheelproof --ver", "wheelproof --version"),
    ("wheelproof pins che", "wheelproof pins check"),
    ("wheelproof verify --dep", "wheelproof verify --depth"),
    ("wheelproof verify --depth li", "wheelproof verify --depth links"),
    ("wheelproof verify --depth=li", "wheelproof verify --depth=links"),
    ("wheelproof verify --depth=links --fail-on=nev", "wheelproof verify --depth=links --fail-on=never"),
    ("wheelproof verify a.whl --platform x86_64,aa", "wheelproof verify a.whl --platform x86_64,aarch64"),
    ("wheelproof verify --platform=x86_64,aa", "wheelproof verify --platform=x86_64,aarch64"),
    ("wheelproof stack --gpu GH200,GB3", "wheelproof stack --gpu GH200,GB300"),
    ("wheelproof pins check --fail-on nev", "wheelproof pins check --fail-on never"),
    ("wheelproof verify --select WHL20", "wheelproof verify --select WHL20"),  # several: none is chosen
    ("wheelproof verify --ignore PIN101,WHL201,WHL10", "wheelproof verify --ignore PIN101,WHL201,WHL10"),
    ("wheelproof verify --ignore PIN101,WHL20", "wheelproof verify --ignore PIN101,WHL20"),
    ("wheelproof rules KR", "wheelproof rules KRN"),
    ("wheelproof completion fi", "wheelproof completion fish"),
    ("wheelproof verify req", "wheelproof verify requirements.txt"),
    ("wheelproof verify -q a.whl req", "wheelproof verify -q a.whl requirements.txt"),
    ("wheelproof verify --select WHL101 --sel", "wheelproof verify --select WHL101 --select"),
    ("wheelproof pins check --fail-on never req", "wheelproof pins check --fail-on never requirements.txt"),
    ("wheelproof stack -r req", "wheelproof stack -r requirements.txt"),
    ("wheelproof verify --output req", "wheelproof verify --output requirements.txt"),
    ("wheelproof verify --output=req", "wheelproof verify --output=requirements.txt"),
    ("wheelproof verify --cache-dir r", "wheelproof verify --cache-dir results/"),
    ("wheelproof verify --also js", "wheelproof verify --also json="),
    ("wheelproof verify --also json=req", "wheelproof verify --also json=requirements.txt"),
    ("wheelproof verify --deadline r", "wheelproof verify --deadline r"),  # a number: no file is offered
    ("wheelproof completion r", "wheelproof completion r"),
    ("wheelproof nonsense --dep", "wheelproof nonsense --dep"),
]


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the script of each shell, and a user's other files."""
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


def test_the_scripts_are_what_the_parsers_say() -> None:
    check = [sys.executable, str(ROOT / "ci/update_completions.py"), "--check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_commands_are_those_of_the_command_line() -> None:
    commands = read_commands()
    assert [command.name for command in below(commands)] == list(COMMANDS)
    assert "pins check" in {command.name for command in below(commands, "pins")}


def test_every_name_of_a_value_is_known() -> None:
    known = {*update_completions.WORDS, *update_completions.FILES, *update_completions.FOLDERS}
    actions = [action for command in read_commands() for action in (*command.arguments, *command.options)]
    unknown = {value_name(action) for action in actions if action.nargs != 0 and action.choices is None}
    assert unknown <= known | update_completions.NOTHING, "say in ci/update_completions.py what a shell may offer"


def test_what_is_offered_is_understood() -> None:
    ids = [rule.id for rule in all_rules()]
    offered = update_completions.WORDS["PREFIX"]()
    assert set(ids) < set(offered)
    assert all(any(rule.startswith(word) for rule in ids) for word in offered)
    for word in update_completions.WORDS["GPU"]():
        parse_gpu(word)


def test_a_shell_that_is_not_known_is_wrong_usage(wheelproof: Wheelproof) -> None:
    run = wheelproof("completion", "tcsh")
    assert (run.status, run.out) == (2, "")
    assert "bash, zsh, fish" in run.err.replace("'", "")  # quoted before Python 3.12.8
