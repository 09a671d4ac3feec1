"""Records of cells from several machines, judged together: proofs of one architecture about another are kept."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.rendering import rendered
from tests.support.smoke import compiled, document
from wheel_checks.model import Outcome, Report
from wheelproof.matrix.cell.steps import Record
from wheelproof.matrix.definition.reading import cell_document, parse_cell, parse_matrix
from wheelproof.matrix.model import Cell, Matrix, Smoke
from wheelproof.matrix.records.record import CellRecord, MatrixIdentity, parse_record
from wheelproof.matrix.run.execution import judge
from wheelproof.matrix.run.merge import merge
from wheelproof.reporting import OpenReport

STARTED = "2026-11-20T09:00:00Z"
CELLS = tuple(
    Cell(f"{machine}-py3.12-torch2.11.0", machine, "3.12", "2.11.0", gpu=("GB200",), smoke=(Smoke.COMPILE,))
    for machine in ("x86_64", "aarch64")
)
MATRIX = Matrix("ci/matrix.toml", CELLS)
EVERY_KEY = """
[[include]]
platform = "aarch64"
python = "3.13t"
torch = "2.11.0"
name = "every-key"
accelerator = "cuda>=13"
gpu = ["GB200"]
smoke = ["compile", "cuda"]
level = "full"
kernels = ["mm"]
packages = ["numpy>=2", "mine[test] @ https://example.org/mine-1-py3-none-any.whl"]
wheel = "dist/*.whl"
import = ["mine", "mine.kernels"]
command = "python -m pytest {project}/tests && echo \\"done\\""
glibc = "2.34"
image = "mine:latest"
runner = ["self-hosted", "gpu"]
deadline = 12.5
expect = { accelerator = "cpu", reason = "no other" }
junit = "report.xml"
index = ["https://x.example/simple"]
torch-index = "https://y.example/simple"
find-links = "dist"
pre = true
constraints = ["numpy<3"]
env = { OMP_NUM_THREADS = "1" }
timeout = 60
retries = 2

[[include]]
platform = "aarch64"
python = "3.13"
torch = ">=2.11"
system-packages = ["libgl1"]
"""


def record(cell: Cell, *functions: tuple[str, str], ended: str = STARTED) -> CellRecord:
    """A cell that has compiled ``functions``, each with the digest of its machine code."""
    compilations = [compiled(kernel, "sm_100") | {"sha256": code} for kernel, code in functions]
    environment = {"executable": "/py", "machine": cell.platform, "triton": {"version": "3.6.0"}}
    told = document(mode="compile", compiled=compilations, environment=environment)
    step = Record("smoke-compile", "run", "inputs", STARTED, result=told)
    identity = MatrixIdentity.of(MATRIX)
    return CellRecord(matrix=identity, cell=cell, inputs="i", version="0.1.0", ended=ended, steps=(step,))


def report(*records: CellRecord) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(rendered(judge(records, OpenReport("matrix run", STARTED)), "json"))
    return told


def outcomes(report: Report, rule: str) -> list[tuple[str, Outcome]]:
    return [(s.id, result.outcome) for s in report.subjects for result in s.results if result.rule == rule]


@pytest.mark.parametrize(("there", "outcome"), [("aa", Outcome.PASS), ("bb", Outcome.FAIL)])
def test_machine_code_of_two_machines_is_compared(there: str, outcome: Outcome) -> None:
    apart = [report(record(cell, ("mm", code))) for cell, code in zip(CELLS, ("aa", there), strict=True)]
    merged = merge([("b.json", apart[1]), ("a.json", apart[0])])

    assert outcomes(merged, "MTX106") == [(CELLS[0].id, Outcome.SKIP), (CELLS[1].id, outcome)]
    assert merged.subjects[1].facts["reference"] == CELLS[0].id
    alone = merge([("b.json", apart[1])], matrix=MATRIX)
    assert outcomes(alone, "MTX106") == [(CELLS[0].id, Outcome.SKIP), (CELLS[1].id, Outcome.SKIP)]
    assert alone.verdict == "undecided"


def test_a_record_is_read_back_as_it_was_written() -> None:
    (cell, _) = parse_matrix(EVERY_KEY.encode()).cells
    written = record(cell, ("mm", "aa"))

    assert parse_record(json.loads(json.dumps(written.as_document())), "a.json") == written


def test_a_cell_is_read_back_with_every_key() -> None:
    cells = parse_matrix(EVERY_KEY.encode()).cells
    documents = [cell_document(cell) for cell in cells]

    assert tuple(parse_cell(values) for values in json.loads(json.dumps(documents))) == cells
    given = {key for values in documents for key, value in values.items() if value not in ("", [], {}, None)}
    assert documents[0].keys() - given == set(), "a key that the test lacks"


def test_a_matrix_as_json_is_held_to_the_same_rules() -> None:
    cells = [cell_document(cell) for cell in CELLS]
    cells[1] |= {"smoke": ["compile"], "gpu": ["GTX9999"], "glibc": "1.0"}
    with pytest.raises(Exception, match=r"cells\[1\]\.gpu\[0\].*cells\[1\]\.glibc"):
        parse_matrix(json.dumps({"schema": "wheelproof.matrix/1", "cells": cells}).encode(), "cells.json")
