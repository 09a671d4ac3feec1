"""The merged report: a subject for each cell, what ``verify`` found among its results, the table that people read."""

from __future__ import annotations

import json
from collections.abc import Mapping

import jsonschema

from tests.rules.matrix_cases import CPU, beside, cell, made
from tests.support.rendering import rendered
from wheel_checks.facts.matrix import CellFacts, Step
from wheel_checks.model import Report, Unavailable
from wheel_checks.report import schema
from wheelproof.matrix.cell.steps import Record
from wheelproof.matrix.report import make_report
from wheelproof.reporting import OpenReport

STARTED = "2026-11-20T09:00:00Z"
FINDING = {
    "rule": "WHL525",
    "title": "t",
    "outcome": "fail",
    "severity": "note",
    "message": "2 files find libraries late",
    "evidence": [{"label": "files", "value": "libtorch_cpu.so", "source": ""}],
    "fix": {"summary": "Add an RPATH.", "steps": [{"argv": ["wheelproof", "verify", "torch.whl"]}]},
    "location": {"member": "torch/lib/libtorch_cpu.so"},
    "seconds": 0.1,
}
VERIFIED = {
    "subjects": [{"id": "torch.whl", "results": [FINDING, {**FINDING, "outcome": "pass"}]}],
    "summary": {"bytes_read": 1000, "requests": 4},
}


def record(step: str, result: Mapping[str, object]) -> Record:
    return Record(step, "run", "inputs", STARTED, result=result)


def report_of(*cells: CellFacts, **records: Record) -> Report:
    return make_report(cells, {c.id: records for c in cells}, OpenReport("matrix run", STARTED))


def test_what_verify_found_is_a_result_of_the_cell_once() -> None:
    both = {"verify": record("verify", VERIFIED), "installed": record("installed", VERIFIED)}
    report = report_of(cell(), **both)
    (found,) = [result for result in report.subjects[0].results if result.rule == "WHL525"]

    assert [(e.label, e.value) for e in found.evidence] == [
        ("found", "torch.whl, on the index"),
        ("files", "libtorch_cpu.so"),
    ]
    assert found.fix is not None
    assert (found.fix.lines, report.bytes_read, report.requests) == (("wheelproof verify torch.whl",), 2000, 8)


def test_the_report_is_one_of_wheelproof() -> None:
    facts = beside(("mm", "aa"), there=made(("mm", "aa")))
    document = json.loads(rendered(report_of(facts), "json"))

    jsonschema.validate(document, schema())
    (subject,) = document["subjects"]
    assert (subject["kind"], subject["facts"]["cuda"], subject["facts"]["reference"]) == ("cell", "13.0", "x86_64-cell")
    assert subject["facts"]["machine_code"] == [
        {"target": "sm_100", "kernel": "mm", "case": "plain", "function": "_mm", "sha256": ["aa"]}
    ]


def test_people_read_a_table_of_cells_and_of_steps() -> None:
    steps = (
        Step("resolve", STARTED, 2.0, kept=True),
        Step("import", STARTED, 30.0, failure=Unavailable("no emulation", "update-binfmts --enable qemu-aarch64")),
    )
    text = rendered(report_of(cell(CPU, known="cpu", steps=steps, imported=Unavailable("not reached"))), "text")

    assert "UNDECIDED  0 of 1 cells pass" in text
    assert "aarch64-py3.12-torch2.11.0  CPU only (2.11.0+cpu)  ?" in text
    assert "aarch64-py3.12-torch2.11.0  2.0 (kept)  FAILED" in text
    assert "aarch64-py3.12-torch2.11.0: resolve kept since 2026-11-20T09:00:00Z; --fresh repeats everything" in text
    assert "aarch64-py3.12-torch2.11.0 is known to be cpu: there is no other" in text


def test_equal_machine_code_is_reported_and_unequal_code_counted() -> None:
    equal = beside(("mm", "aa"), ("norm", "bb"), there=made(("mm", "aa"), ("norm", "bb"), machine="x86_64"))
    unequal = beside(("mm", "aa"), ("norm", "bb"), there=made(("mm", "aa"), ("norm", "cc"), machine="x86_64"))

    further = beside(("mm", "aa"), there=made(("mm", "aa"), targets=("sm_90", "sm_100"), machine="x86_64"))
    other = beside(("mm", "aa"), there=made(("mm", "aa"), targets=("sm_90",), machine="x86_64"))

    assert "equal to that of x86_64" in rendered(report_of(further), "text")
    assert "equal" not in rendered(report_of(other), "text")
    assert "equal to that of x86_64" in rendered(report_of(equal), "text")
    assert "1 of 2 equal to x86_64" in rendered(report_of(unequal), "text")
