"""SHIP or STOP, the reasons, a line each, and the matrix."""

from __future__ import annotations

from typing import Any

from tests.support.reports import HOSTILE
from wheel_checks.model import CheckResult, FailOn, Outcome, Report, Severity, Subject
from wheelproof.release.summary import MOST_REASONS, markdown_summary, reasons, text_summary

GOOD, BAD = "demo-cp312-x86_64.whl", "demo-cp312-aarch64.whl"


def result(
    rule: str, message: str, outcome: Outcome = Outcome.FAIL, severity: Severity = Severity.ERROR
) -> CheckResult:
    return CheckResult(rule, "title", outcome, severity, message)


def report(*subjects: Subject, whole: tuple[CheckResult, ...] = (), **cell: Any) -> Report:
    """A release of two cells; ``cell`` changes the aarch64 cell."""
    cells = [
        {"platform": "x86_64", "python": "3.12", "verdict": "pass", "accelerator": "CUDA 13.0", "files": [GOOD]},
        {"platform": "aarch64", "python": "3.12", "verdict": "fail", "accelerator": "CPU only", "files": [BAD]} | cell,
    ]
    facts = {"platforms": ["x86_64", "aarch64"], "pythons": ["3.12"], "cells": cells}
    first = Subject("demo 1.0", "release-set", "2 of 2 cells filled by 2 files", facts, whole)
    return Report("release", "0", "2026-11-20T09:00:00Z", 0.1, (first, *subjects), FailOn.ERROR)


def test_stop_and_why() -> None:
    found = report(
        Subject(GOOD, "wheel", results=(result("WHL103", "tags differ", severity=Severity.WARNING),)),
        Subject(BAD, "wheel", results=(result("REL103", "the wheel is CPU only; expected cuda"),)),
        whole=(result("REL101", "aarch64 has no file for Python 3.13"), result("REL107", "fine", Outcome.PASS)),
    )

    assert text_summary(found) == (
        "STOP  demo 1.0: 2 of 2 cells filled by 2 files\n  error        REL101  aarch64 has no file for Python "
        "3.13\n  error        REL103  the wheel is CPU only; expected cuda: demo-cp312-aarch64.whl\n  warning      "
        "WHL103  tags differ: demo-cp312-x86_64.whl\n\nPython  x86_64        aarch64\n3.12    ok CUDA 13.0  FAIL CPU "
        "only\n\n"
    )


def test_ship() -> None:
    found = report(verdict="pass", accelerator="CUDA 13.0")

    assert text_summary(found, quiet=True) == "SHIP  demo 1.0: 2 of 2 cells filled by 2 files\n"


def test_what_could_not_be_checked_stops() -> None:
    found = report(Subject(BAD, "wheel", results=(result("WHL000", "no answer", Outcome.ERROR),)), verdict="undecided")

    shown = text_summary(found)
    assert shown.startswith("STOP")
    assert "  not checked  WHL000  no answer: demo-cp312-aarch64.whl\n" in shown
    assert "not checked CPU only" in shown


def test_the_same_words_about_many_files_are_one_reason() -> None:
    names = [f"demo-{number}.whl" for number in range(3)]
    subjects = [Subject(name, "wheel", results=(result("REL103", "CPU only"),)) for name in names]
    found = report(*subjects, files=names)

    (reason,) = reasons(found)
    assert reason.files == tuple(names)
    assert "REL103  CPU only: 3 files (aarch64)\n" in text_summary(found)


def test_many_reasons_are_counted() -> None:
    found = report(whole=tuple(result("REL102", f"reason {number}") for number in range(MOST_REASONS + 2)))

    assert "  and 2 more, below\n" in text_summary(found)


def test_markdown() -> None:
    found = report(whole=(result("REL101", "aarch64 has no file"),), verdict="missing", accelerator="", files=[])

    assert markdown_summary(found) == (
        "## STOP  demo 1\\.0\\: 2 of 2 cells filled by 2 files\n"
        "\n"
        "- **error REL101**: aarch64 has no file\n"
        "\n"
        "| Python | x86\\_64 | aarch64 |\n"
        "| --- | --- | --- |\n"
        "| 3\\.12 | ✅ CUDA 13\\.0 | ❌ missing |\n"
        "\n\n"
    )


def test_no_text_of_a_wheel_is_obeyed() -> None:
    found = report(whole=(result("REL102", HOSTILE),))

    for shown in (text_summary(found), markdown_summary(found)):
        assert "\x1b" not in shown
        assert "\n::warning" not in shown
    assert "<script>" not in markdown_summary(found)
