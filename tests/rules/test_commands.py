"""Every command that a fix prints leads somewhere: it parses, and finds what it is to show on an index that has it.

The index is a local one with the project of the case: the files that its facts list, or else a release that the command
asks about. Commands of pip and uv are parsed by pip and uv themselves.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tests.conftest import Wheelproof
from tests.docs.test_commands import fault_of
from tests.rules.case import Case
from tests.rules.test_rules import CASES
from tests.support.range_server import RangeServer
from tests.support.simple_index import simple_index
from tests.support.wheel_facts import judged
from tests.support.wheels import WheelBuilder, torch_like
from wheel_checks.facts.stack.facts import StackPackage
from wheel_checks.fixes.commands import Command
from wheel_checks.targets.selection import Choice

PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_28_aarch64")
JUDGING = ("verify", "stack")  # of wheelproof's commands those that ask an index


def commands_of(case: Case) -> Iterator[Command]:
    expectations = {name: value for name, value in case.expectations.items() if name != "undecided"}
    for result in judged(case.rule, case.facts(), **expectations):
        for step in result.fix.commands if result.fix else ():
            if isinstance(step, Command) and step.argv[0] in ("wheelproof", "pip", "uv"):
                yield step


FAILING = [case for case in CASES if case.says]
FOLDER = re.compile(rf"{re.escape(tempfile.gettempdir())}/[^ ]+")  # the folders of cases have other names in every run
PRINTED = {  # each once
    f"{case.rule}: {FOLDER.sub('FOLDER', ' '.join(command.argv))}": (case, command)
    for case in FAILING
    for command in commands_of(case)
}
OF_WHEELPROOF = {key: value for key, value in PRINTED.items() if value[1].argv[0] == "wheelproof"}
ASKING = {key: value for key, value in OF_WHEELPROOF.items() if value[1].argv[1] in JUDGING}
ASKING = {key: value for key, value in ASKING.items() if "--installed" not in value[1].argv}
OF_INSTALLERS = {key: value for key, value in PRINTED.items() if value[1].argv[0] != "wheelproof"}


def wheels_for(case: Case, command: Command) -> list[WheelBuilder]:
    """The wheels of the case's own listing, or of the release that the command names, for both machines."""
    facts = case.facts()
    choice = facts if isinstance(facts, Choice) else facts.choice if isinstance(facts, StackPackage) else None
    names = [rejected.file.file_name for rejected in choice.rejected] if choice else []
    parsed = [name.removesuffix(".whl").split("-", 2) for name in names if name.endswith(".whl")]
    if parsed:
        return [WheelBuilder(name, version, tags) for name, version, tags in parsed]
    requirement = Requirement(command.argv[2])
    bounds = [Version(item.version) for item in requirement.specifier]
    version = str(max(bounds, default=Version("1.0")))
    version = "1.0" if version == "0" else version
    if requirement.name == "torch":
        return [torch_like("cuda", version, platform.partition("_2_28_")[2]) for platform in PLATFORMS]
    return [WheelBuilder(requirement.name, version, f"cp312-cp312-{platform}") for platform in PLATFORMS]


@pytest.mark.parametrize(("case", "command"), ASKING.values(), ids=list(ASKING))
def test_it_shows_wheels(case: Case, command: Command, wheelproof: Wheelproof) -> None:
    with RangeServer(simple_index(*wheels_for(case, command))) as server:
        given = {"--python", "--all-files"} & set(command.argv)
        python = () if given else ("--python", "3.12")
        run = wheelproof(*command.argv[1:], *python, "--index-url", server.url("/simple"), "--format", "json")
    assert run.status in (0, 1, 3), run.err
    report = json.loads(run.out)
    wheels = [subject for subject in report["subjects"] if subject["kind"] == "wheel"]
    assert wheels, run.out
    assert not [r for s in report["subjects"] for r in s["results"] if r["rule"] == "WHL000"], run.out


@pytest.mark.parametrize(("case", "command"), OF_WHEELPROOF.values(), ids=list(OF_WHEELPROOF))
def test_wheelproof_understands_it(case: Case, command: Command) -> None:
    assert not fault_of(shlex.join(command.argv)), case.id


@pytest.mark.parametrize(("case", "command"), OF_INSTALLERS.values(), ids=list(OF_INSTALLERS))
def test_the_installer_understands_it(case: Case, command: Command) -> None:
    """The installer's own parser reads it; ``--help`` at the end keeps it from doing anything."""
    run = subprocess.run(
        [sys.executable, "-m", *command.argv, "--help"], capture_output=True, text=True, check=False, timeout=60
    )
    assert run.returncode == 0, case.id + run.stderr


def test_an_installer_that_does_not_understand_is_noticed() -> None:
    for wrong in (["uv", "pip", "install", "--torch-backend=cu999"], ["pip", "install", "--no-such-option"]):
        run = subprocess.run([sys.executable, "-m", *wrong, "--help"], capture_output=True, check=False, timeout=60)
        assert run.returncode == 2


def test_there_are_commands_of_each_kind() -> None:
    assert len(ASKING) > 8
    assert len(OF_INSTALLERS) > 30
