"""``wheelproof schema``, and the page of jq examples."""

from __future__ import annotations

import io
import json
import shlex
from pathlib import Path

import jq
import jsonschema
import pytest

import wheelproof as package
from tests.conftest import Wheelproof
from tests.docs.blocks import read_blocks
from tests.support.wheels import WheelBuilder, torch_like
from wheel_checks import render
from wheel_checks.model import SCHEMA
from wheelproof.cli.schema import SCHEMAS

PAGE = Path(__file__).parents[2] / "docs/machine-readers.md"


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_is_a_schema(wheelproof: Wheelproof, name: str) -> None:
    run = wheelproof("schema", name)
    assert run.status == 0
    jsonschema.Draft202012Validator.check_schema(json.loads(run.out))


def test_a_report_holds_to_the_one_that_is_printed(wheelproof: Wheelproof, tmp_path: Path) -> None:
    wheel = WheelBuilder().write(tmp_path)
    report = json.loads(wheelproof("verify", str(wheel), "--format", "json").out)

    jsonschema.validate(report, json.loads(wheelproof("schema").out))
    assert report["schema"] == SCHEMA


def test_the_examples_of_the_page_give_what_it_shows(tmp_path: Path) -> None:
    """In a folder with a CPU build of torch and a wheel without GPU code, judged for CUDA."""
    torch_like("cpu", "2.10.0", "aarch64").write(tmp_path)
    WheelBuilder().write(tmp_path)
    text = io.StringIO()
    render(package.verify(tmp_path, package.Options(expect="cuda", no_index=True)), text, "json")
    commands = [command for block in read_blocks(PAGE) for command in block.commands if command.text.startswith("jq")]

    for command in commands:
        words = shlex.split(command.text)
        raw = words[1] == "-r"
        program = words[2 if raw else 1]
        found = jq.compile(program).input_text(text.getvalue()).all()
        shown = "\n".join(value if raw and isinstance(value, str) else json.dumps(value) for value in found)
        assert shown == command.expected, command.text

    assert len(commands) >= 6


def test_the_page_names_the_version_of_the_promise() -> None:
    assert f'`"schema": "{SCHEMA}"`' in PAGE.read_text(encoding="utf-8")
