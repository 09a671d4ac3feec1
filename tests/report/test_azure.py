from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.support import reports
from tests.support.rendering import rendered
from wheel_checks.model import Location, Report
from wheel_checks.report import FORMATS


def issues(report: Report) -> list[tuple[dict[str, str], str]]:
    """The logging commands as the agent reads them: anywhere in a line, escapes undone last to first."""
    found = []
    for line in rendered(report, "azure").splitlines():
        if match := re.search(r"##vso\[task\.logissue ([^\]]*)\](.*)", line):
            pairs = (pair.split("=", 1) for pair in match[1].split(";") if pair)
            properties = {name: _read(value.replace("%3B", ";").replace("%5D", "]")) for name, value in pairs}
            found.append((properties, _read(match[2])))
    return found


def _read(text: str) -> str:
    return text.replace("%0D", "\r").replace("%0A", "\n").replace("%AZP25", "%")


def test_the_worst_comes_first() -> None:
    assert [(properties["type"], properties["code"]) for properties, _ in issues(reports.mixed())] == [
        ("error", "WHL301"),
        ("error", "WHL101"),
        ("error", "WHL601"),
        ("warning", "WHL501"),
    ]


def test_a_finding_in_a_file_has_its_line_and_column() -> None:
    at = Location(path="pins; [all].toml", line=3, column=5)
    ((properties, _),) = issues(reports.report(reports.wheel(results=(replace(reports.BAD_MEMBER, location=at),))))
    found = (properties["sourcepath"], properties["linenumber"], properties["columnnumber"])
    assert found == ("pins; [all].toml", "3", "5")


def test_evidence_and_fix_are_in_the_message() -> None:
    (message,) = (message for properties, message in issues(reports.mixed()) if properties["code"] == "WHL101")
    assert "version.py: 2.10.0+cpu (torch/version.py)" in message.splitlines()
    assert message.endswith("    pip install 'torch>=2.11'")


def test_the_last_line_is_the_verdict() -> None:
    lines = rendered(reports.passing(), "azure").splitlines()
    assert lines[-1].startswith("wheelproof verify: PASS, torch-2.11.0-cp312-cp312-manylinux_2_28_aarch64.whl: ")
    assert issues(reports.passing()) == []


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("command", ["##vso[task.setvariable variable=PATH]x", "##VSO[task.complete]", "##[error]x"])
def test_no_format_lets_a_wheel_give_a_command_to_a_runner(format_: str, command: str) -> None:
    result = replace(reports.BAD_MEMBER, message=command, location=Location(member=f"a {command} b"))
    wheel = replace(reports.wheel(results=(result,)), id=f"{command}.whl", headline=command)
    text = rendered(reports.report(wheel), format_)
    assert command not in text
    assert command.lower() not in text.lower()
