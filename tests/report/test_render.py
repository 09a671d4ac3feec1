from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import wheel_checks.report
from tests.support import reports
from tests.support.rendering import rendered
from wheel_checks.errors import UsageError
from wheel_checks.model import Location
from wheel_checks.report import FORMATS, render


def test_every_module_that_renders_is_a_format() -> None:
    modules = Path(wheel_checks.report.__file__).parent.rglob("[!_]*.py")
    renderers = [path.name for path in modules if "\ndef render(" in path.read_text(encoding="utf-8")]
    assert len(renderers) == len(FORMATS), renderers


def test_an_unknown_format_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match=f"'pdf'; expected one of {', '.join(FORMATS)}"):
        render(reports.passing(), io.StringIO(), "pdf")


def test_options_for_people_do_not_disturb_the_other_formats() -> None:
    options = {"color": True, "width": 60, "quiet": True, "verbose": 2}
    assert rendered(reports.mixed(), "json", **options) == rendered(reports.mixed(), "json")


def test_rich_is_imported_only_by_the_text_renderer() -> None:
    code = (
        "import io, sys; from tests.support import reports; from wheel_checks.report import FORMATS, render\n"
        "for name in FORMATS[1:]: render(reports.mixed(), io.StringIO(), name)\n"
        "assert 'rich' not in sys.modules\n"
        "render(reports.mixed(), io.StringIO(), 'text')\n"
        "assert 'rich' in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", FORMATS)
def test_no_format_lets_a_character_of_a_hostile_wheel_act(name: str) -> None:
    text = rendered(reports.hostile(), name, verbose=2)
    forbidden = set("\x1b\x00\x08\r\ud800\udc80\ufffe\u202e\u2028")
    assert forbidden.isdisjoint(text)
    assert not any(line.lstrip().startswith("::warning") for line in text.splitlines())


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("command", ["##vso[task.setvariable variable=PATH]x", "##VSO[task.complete]", "##[error]x"])
def test_no_format_lets_a_wheel_give_a_command_to_a_runner(format_: str, command: str) -> None:
    result = replace(reports.BAD_MEMBER, message=command, location=Location(member=f"a {command} b"))
    wheel = replace(reports.wheel(results=(result,)), id=f"{command}.whl", headline=command)
    text = rendered(reports.report(wheel), format_)
    assert command not in text
    assert command.lower() not in text.lower()


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_survives_a_stream_that_only_knows_ascii(name: str) -> None:
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding="ascii")
    render(reports.hostile(), stream, name)
    stream.flush()
    assert buffer.getvalue().decode("ascii").endswith("\n")


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_can_say_that_there_was_nothing_to_judge(name: str) -> None:
    assert rendered(reports.empty(), name).strip()
