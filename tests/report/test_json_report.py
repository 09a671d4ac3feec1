from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from tests.support import reports
from tests.support.rendering import rendered
from wheel_checks.model import FailOn, Report
from wheel_checks.report import schema


def parsed(report: Report) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(rendered(report, "json"))
    return document


def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema(), format_checker=jsonschema.FormatChecker())


@pytest.mark.parametrize("build", [reports.passing, reports.mixed, reports.empty, reports.missing_wheel, reports.forty])
def test_reports_follow_the_schema(build: Callable[[], Report]) -> None:
    validator().validate(parsed(build()))


def test_the_schema_is_a_schema_and_describes_every_property() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())

    def undescribed(node: Any, path: str) -> list[str]:
        if isinstance(node, list):
            return [found for item in node for found in undescribed(item, path)]
        if not isinstance(node, dict):
            return []
        named = node.get("properties", {}) if path != "/if" else {}
        missing = [
            f"{path}/{name}"
            for name, item in named.items()
            if "description" not in item and "$ref" not in item and set(item) != {"const"}
        ]
        return missing + [found for key, item in node.items() for found in undescribed(item, f"{path}/{key}")]

    assert [path for path in undescribed(schema(), "") if "/then/" not in path] == []


def test_the_summary_is_what_was_promised() -> None:
    document = parsed(reports.mixed())
    assert document["schema"] == "wheelproof.report/1"
    assert document["tool"] == {"name": "wheelproof", "version": "0.1.0"}
    assert document["fail_on"] == "error"
    assert document["summary"] == {
        "verdict": "fail",
        "pass": 3,
        "fail": 3,
        "skip": 2,
        "error": 1,
        "bytes_read": 1_214_003,
        "requests": 3,
    }


def test_a_subject_carries_its_verdict_headline_and_facts() -> None:
    subjects = parsed(reports.mixed())["subjects"]
    assert [s["verdict"] for s in subjects] == ["fail", "pass", "undecided"]
    assert [s["headline"] for s in subjects] == ["CPU only", "CUDA 13.0", "CUDA 13.0"]
    assert subjects[1]["facts"]["cuda"] == "13.0"
    assert subjects[1]["facts"]["tags"] == ["cp312-cp312-manylinux_2_28_aarch64"]


def test_a_result_keeps_evidence_fix_and_place() -> None:
    _, climbing, cpu, _ = parsed(reports.mixed())["subjects"][0]["results"]
    assert climbing["location"] == {"member": "../evil.py", "line": 3}
    assert "fix" not in climbing
    assert cpu["fix"]["commands"] == ["pip install 'torch>=2.11'"]
    assert cpu["evidence"][1] == {"label": "version.py", "value": "2.10.0+cpu", "source": "torch/version.py"}


def test_fail_on_decides_the_verdict() -> None:
    large = reports.wheel(results=(reports.TOO_LARGE,))
    assert parsed(reports.report(large, fail_on=FailOn.WARNING))["summary"]["verdict"] == "fail"
    assert parsed(reports.report(large, fail_on=FailOn.NEVER))["summary"]["verdict"] == "pass"


def test_a_hostile_report_is_json_that_strict_parsers_read() -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    text = rendered(reports.hostile(), "json")
    document = json.loads(text, parse_constant=refuse)
    document["subjects"][0]["id"].encode("utf-8")
    assert document["subjects"][0]["facts"]["seconds"] is None
    assert text.isascii()


def test_the_schema_refuses_a_report_with_an_unknown_field() -> None:
    document = parsed(reports.passing())
    document["summary"]["surprise"] = 1
    with pytest.raises(jsonschema.ValidationError, match="surprise"):
        validator().validate(document)


def test_the_schema_refuses_an_accelerator_that_was_not_promised() -> None:
    document = parsed(reports.passing())
    document["subjects"][0]["facts"]["accelerator"] = "tpu"
    with pytest.raises(jsonschema.ValidationError, match="tpu"):
        validator().validate(document)
