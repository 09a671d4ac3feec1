"""``pins explain`` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from tests.conftest import Wheelproof
from tests.support.environments import Installed
from tests.support.wheels import WheelBuilder
from wheel_checks.report import json_report


def test_a_requirement_that_the_installed_version_survives(wheelproof: Wheelproof) -> None:
    run = wheelproof("pins", "explain", "torch==2.7.0", "--installed", "2.7.0+cu128")

    assert run.status == 0
    assert "pip and uv keep torch 2.7.0+cu128: ==2.7.0 says nothing about a local version" in run.out


def test_a_requirement_that_replaces_it(wheelproof: Wheelproof) -> None:
    run = wheelproof("pins", "explain", ">2.7.0", "--installed", "2.7.0+cu128")

    assert run.status == 1
    assert "PIN301  torch 2.7.0+cu128 does not satisfy torch>2.7.0: >2.7.0 excludes every local version" in run.out


def test_several_requirements_and_their_facts(wheelproof: Wheelproof) -> None:
    run = wheelproof("pins", "explain", ">=2.7", "===2.7.0", "--installed", "2.7.0+cu128", "--format", "json")

    facts = [subject["facts"] for subject in json.loads(run.out)["subjects"]]
    assert [fact["kept"] for fact in facts] == [{"pip": True, "uv": True}, {"pip": False, "uv": False}]
    assert facts[0]["upgrade"]["uv"] == "takes the latest version that is allowed, also of what others require"


def test_the_version_of_an_environment(wheelproof: Wheelproof, tmp_path: Path) -> None:
    folder = tmp_path / "site"
    Installed(folder).install(WheelBuilder("torch", "2.7.0a0+ecf3bae40a.nv25.3"))

    run = wheelproof("pins", "explain", "torch>=2.7", "--python", str(folder))

    assert run.status == 1
    assert "2.7.0a0+ecf3bae40a.nv25.3 is a pre-release of 2.7.0 and comes before it" in run.out


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["torchvision>=0.22", "--installed", "2.7.0"], 2, "the requirement is about torchvision"),
        (["torch=>2", "--installed", "2.7.0"], 2, "does not parse"),
        (["torch", "--installed", "new"], 2, "is not an installed version"),
        (["torch", "--python", "nowhere"], 3, "there is no"),
    ],
)
def test_what_cannot_be_explained(wheelproof: Wheelproof, arguments: list[str], status: int, message: str) -> None:
    run = wheelproof("pins", "explain", *arguments)

    assert run.status == status
    assert message in run.err


@pytest.mark.parametrize(
    "command", [("explain", ">2.7.0", "--installed", "2.7.0+cu128"), ("guard", "--check", "--installed", "2.7.0+cu128")]
)
def test_the_report_keeps_the_schema(wheelproof: Wheelproof, command: tuple[str, ...]) -> None:
    report = json.loads(wheelproof("pins", *command, "--format", "json").out)

    schema = json.loads(Path(json_report.__file__).with_name("report.schema.json").read_text())
    jsonschema.validate(report, schema)
    assert report["summary"]["verdict"] == "fail"
