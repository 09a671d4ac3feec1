"""The suite's report becomes facts, and unreadable parts are reported with their place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.smoke import CALIBRATION, H200, case, compiled, document, fault, parsed, probe, speed
from wheel_checks.errors import FormatError
from wheel_checks.facts.kernels import document as smoke_document
from wheel_checks.facts.kernels.document import parse_smoke_document
from wheel_checks.facts.kernels.facts import Ending, FaultKind, Note
from wheel_checks.facts.kernels.gpus import Calibration, Gpu, GpuState


def test_a_whole_report() -> None:
    facts = parsed(
        document(
            calibration=CALIBRATION | {"gpu": {"sm_clock_mhz": 1980}},
            probes=[probe("torch", evidence={"version": "2.11.0", "devices": ["a", "b"], "none": None})],
            cases=[case("norm")],
            speeds=[speed("norm", versus="cuBLAS", peer_microseconds=120.0)],
            compiled=[compiled("norm", faults=[fault("spills", "16 bytes")])],
        )
    )

    assert (facts.mode, facts.device, facts.level, facts.seed, facts.verdict) == ("run", "cuda", "full", 123, "pass")
    assert facts.environment.torch == "2.11.0+cu130"
    assert facts.environment.gpus == (Gpu("NVIDIA H200", "sm_90", 0, str(H200["uuid"]), 132, 150_754_820_096),)
    assert facts.calibration == Calibration(4.27e12, 746e12, 1536e12, GpuState(sm_clock_mhz=1980))
    assert facts.probes[0].notes == (Note("version", "2.11.0"), Note("devices", "a, b"))
    assert facts.cases[0].outputs[0].error == 1.6e-3
    assert (facts.speeds[0].ratio, facts.speeds[0].versus, facts.speeds[0].peer) == (1.04, "cuBLAS", 120.0)
    assert facts.compiled[0].faults[0].kind is FaultKind.SPILLS
    assert facts.compiled[0].label == "norm / plain: _norm"


def test_what_is_absent_or_null_is_not_known() -> None:
    least = {"schema": "kernels_smoke/1", "mode": "run", "verdict": "undecided", "environment": {"torch": None}}
    record = {"kernel": "norm", "case": "plain", "outcome": "error"}
    facts = parsed(least | {"speeds": [record | {"bar_met": None, "ratio": None}], "cases": [record], "driver": None})

    assert (facts.environment.torch, facts.environment.gpus, facts.calibration) == ("", (), None)
    assert (facts.speeds[0].ratio, facts.speeds[0].bar_met) == (None, True)
    assert facts.endings == {Ending.ERROR}


def test_an_error_may_be_infinite() -> None:
    facts = parsed(document(cases=[case("norm", outputs={"out": {"error": float("inf"), "tolerance": 0.0}})]))

    assert facts.cases[0].outputs[0].error == float("inf")


def test_the_severity_of_a_probe_is_no_evidence() -> None:
    (found,) = parsed(document(probes=[probe("triton", "fail", evidence={"severity": "warning"})])).probes

    assert (found.mild, found.notes) == (True, ())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the suite's report is not valid JSON: Expecting value"),
        (b"\n\xff", r"the suite's report is not valid JSON: it is not UTF-8 \(line 2\)"),
        (b"[" * 100_000, "the suite's report is not valid JSON: (maximum recursion depth|Stack overflow)"),
        (b"[]", r"the suite's report is \[\]; expected an object"),
        (b"{}", "the suite's report is of the form ''; expected kernels_smoke/1"),
    ],
)
def test_what_is_no_report_at_all(data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        parse_smoke_document(data)


def test_a_report_beyond_all_reason_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smoke_document, "LARGEST", 10)
    with pytest.raises(FormatError, match="the suite's report has more than 10 bytes"):
        parse_smoke_document(b" " * 11)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"verdict": None}, "verdict is missing; expected a string that is not empty"),
        ({"seed": "123"}, "seed is '123'; expected a whole number"),
        ({"cases": {}}, r"cases is \{\}; expected a list of objects"),
        ({"cases": [3]}, r"cases\[0\] is 3; expected an object"),
        ({"cases": [case("a"), case("")]}, r"cases\[1\].kernel is ''; expected a string that is not empty"),
        ({"cases": [case("a", outcome="fine")]}, r"cases\[0\].outcome is 'fine'; expected one of pass, skip,"),
        ({"cases": [case("a", outputs={"y": {"error": "big"}})]}, r"cases\[0\].outputs.y.error .* expected a number"),
        ({"speeds": [speed("a", bar_met="yes")]}, r"speeds\[0\].bar_met is 'yes'; expected true or false"),
        ({"speeds": [speed("a", ratio=True)]}, r"speeds\[0\].ratio is true; expected a number"),
        ({"compiled": [compiled("a", faults=[fault("odd", "")])]}, r"faults\[0\].fault is 'odd'; expected one of"),
        ({"probes": [probe("a", fix="reboot")]}, r"probes\[0\].fix is 'reboot'; expected a list of values"),
        ({"environment": {"gpus": [{"name": 8}]}}, r"environment.gpus\[0\].name is 8; expected a string"),
        ({"probes": [probe("a", evidence="odd")]}, r"probes\[0\].evidence is 'odd'; expected an object"),
    ],
)
def test_what_is_malformed_is_named_with_its_place(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=f"the suite's report: .*{message}"):
        parsed(document(**fields))


def test_evidence_without_end_is_cut() -> None:
    deep: list[Any] = []
    for _ in range(400):
        deep = [deep]
    (found,) = parsed(document(probes=[probe("torch", evidence={"deep": deep})])).probes

    assert found.notes == (Note("deep", "..."),)


def test_a_newer_suite_may_say_more() -> None:
    record = probe("torch") | {"novelty": [1]}
    assert parse_smoke_document(json.dumps(document(probes=[record], novelty={})).encode()).probes
