"""From the records of a cell's steps to the facts of rules, and the cell that another is compared with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.rules.matrix_cases import cell, made
from tests.support.wheel_facts import judged
from wheel_checks.facts.matrix import CellFacts
from wheel_checks.facts.wheel.expectations import parse_expectation
from wheel_checks.model import Outcome, Unavailable
from wheelproof.matrix.cell.steps import Record
from wheelproof.matrix.model import Cell
from wheelproof.matrix.records.facts import cell_facts, with_references

HIP = "6.4.43482-0f2d60242"  # torch.version.hip of torch 2.8.0+rocm6.4


def rocm_cell(wanted: str) -> CellFacts:
    """A cell whose wheel and whose import show ROCm 6.4."""
    cell = Cell("c", "x86_64", "3.12", "2.8.0", parse_expectation(wanted))
    wheel = {"accelerator": "rocm", "accelerator_version": "6.4.43482", "local_version": "2.8.0+rocm6.4"}
    torch = {"version": "2.8.0+rocm6.4", "cuda": None, "hip": HIP, "xpu": None, "gpu_code": ["gfx942"]}
    results: dict[str, dict[str, Any]] = {
        "verify": {"subjects": [{"kind": "wheel", "facts": wheel}]},
        "import": {"error": "", "machine": "x86_64", "python": "3.12.4", "torch": torch, "triton": None},
    }
    records = {
        name: Record(name, "run", "inputs", "2026-11-20T09:00:00Z", result=result) for name, result in results.items()
    }
    return cell_facts(cell, records, None, "ci/matrix.toml")


@pytest.mark.parametrize(
    ("wanted", "outcome"),
    [("rocm", Outcome.PASS), ("rocm>=6", Outcome.PASS), ("rocm==6.4.*", Outcome.PASS), ("rocm>=7", Outcome.FAIL)],
)
def test_a_cell_for_rocm(wanted: str, outcome: Outcome) -> None:
    facts = rocm_cell(wanted)

    assert [result.outcome for result in judged("MTX101", facts)] == [outcome]
    assert [result.outcome for result in judged("MTX103", facts)] == [Outcome.PASS]


def test_a_cell_is_compared_with_the_one_that_compiled_most_of_the_same() -> None:
    here = cell(smoke={"compile": made(("mm", "aa"), ("norm", "bb"))})
    imported_only = replace(cell(), platform="x86_64", id="imported-only")
    other_torch = replace(here, platform="x86_64", id="other-torch", torch="2.10.0")
    less = replace(imported_only, id="less", smoke={"compile": made(("mm", "aa"))})
    same = replace(imported_only, id="same", smoke={"compile": made(("norm", "bb"), ("mm", "aa"))})

    assert with_references([imported_only, other_torch, less, same, here])[-1].reference == "same"
    assert with_references([imported_only, less, here])[-1].reference == "less"
    alone = with_references([imported_only, here])[-1]
    assert (alone.reference, alone.reference_code) == ("imported-only", Unavailable("no kernels were compiled"))
    assert with_references([other_torch, here])[-1].reference == ""
