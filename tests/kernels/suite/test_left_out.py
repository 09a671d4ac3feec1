"""A report names the cases that its level does not run."""

from __future__ import annotations

from kernels_smoke.suite.report import text
from tests.support.smoke import case, document


def test_the_report_counts_what_a_level_leaves_out_and_names_the_level_that_runs_it() -> None:
    report = document(verdict="pass", level="quick", cases=[case("scaled_mm")]) | {
        "left_out": [
            {"kernel": "muon_step", "cases": [], "level": "full"},
            {"kernel": "scaled_mm", "cases": ["one", "two"], "level": "full"},
            {"kernel": "scaled_mm", "cases": ["three"], "level": "deep"},
        ]
    }
    lines = [
        line for line in text({"mutants": [], "compiled": [], **report}).splitlines() if line.startswith("omitted")
    ]
    assert lines == [
        "omitted at level quick, run by --level full: all of muon_step; 2 cases of 1 of the kernels above",
        "omitted at level quick, run by --level deep: 1 case of 1 of the kernels above",
    ]
