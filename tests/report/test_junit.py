from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import xmlschema

from tests.support import reports
from tests.support.rendering import rendered
from wheel_checks.model import Report

SCHEMA = Path(__file__).parents[1] / "data" / "junit-10.xsd"


def parsed(report: Report) -> ET.Element:
    return ET.fromstring(rendered(report, "junit"))


@pytest.mark.parametrize(
    "build", [reports.passing, reports.mixed, reports.empty, reports.missing_wheel, reports.hostile, reports.forty]
)
def test_reports_follow_the_schema(build: Callable[[], Report]) -> None:
    xmlschema.XMLSchema(SCHEMA).validate(rendered(build(), "junit"))


def test_a_suite_per_subject_and_a_case_per_result() -> None:
    suites = parsed(reports.mixed())
    assert suites.attrib == {
        "name": "wheelproof verify",
        "tests": "9",
        "failures": "3",
        "errors": "1",
        "time": "0.410",
    }
    first = suites.findall("testsuite")[0]
    assert first.get("name") == "torch-2.10.0-cp312-cp312-manylinux_2_28_aarch64.whl"
    assert (first.get("tests"), first.get("failures"), first.get("errors"), first.get("skipped")) == (
        "4",
        "2",
        "0",
        "1",
    )
    case = first.findall("testcase")[2]
    assert case.get("classname") == first.get("name")
    assert case.get("name") == "WHL101 The wheel is for the expected accelerator"


def test_outcomes_have_their_elements() -> None:
    suites = parsed(reports.mixed())
    children = {case.get("name"): [child.tag for child in case] for case in suites.iter("testcase")}
    assert children == {
        "WHL001 Names agree": [],
        "WHL301 Member names are safe": ["failure"],
        "WHL101 The wheel is for the expected accelerator": ["failure"],
        "WHL401 RECORD is complete": ["skipped"],
        "WHL501 The wheel is within its size limit": ["failure"],
        "WHL601 Siblings agree": ["error"],
    }
    assert [failure.get("type") for failure in suites.iter("failure")] == ["error", "error", "warning"]


def test_a_failure_holds_evidence_and_commands() -> None:
    failure = list(parsed(reports.mixed()).iter("failure"))[1]
    assert failure.text is not None
    assert failure.text.splitlines()[2] == "version.py: 2.10.0+cpu (torch/version.py)"
    assert failure.text.splitlines()[-1] == "    pip install 'torch>=2.11'"


def test_facts_are_properties() -> None:
    suite = parsed(reports.passing())[0]
    properties = {p.get("name"): p.get("value") for p in suite.iter("property")}
    assert properties["accelerator"] == "cuda"
    assert properties["certainty.accelerator"] == "exact"


def test_two_findings_of_one_rule_have_two_names() -> None:
    suite = parsed(reports.report(reports.wheel(results=(reports.BAD_MEMBER, reports.BAD_MEMBER))))[0]
    names = [case.get("name") for case in suite.findall("testcase")]
    assert names == ["WHL301 Member names are safe", "WHL301 Member names are safe (2)"]


def test_what_xml_cannot_hold_is_shown_as_an_escape() -> None:
    case = next(parsed(reports.hostile()).iter("testcase"))
    assert "\\x00\\x08\\ud800\\udc80\\ufffe" in str(case.get("classname"))
    assert "é 漢 🔥" in str(case.get("classname"))
