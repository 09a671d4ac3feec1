"""One report of all cells: their facts, results of rules, and results of ``verify``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Any

from wheel_checks.catalogue import get_rule
from wheel_checks.decode import Policy, decode
from wheel_checks.facts.kernels.facts import SmokeDocument
from wheel_checks.facts.matrix import Build, CellFacts, ImportProof, MachineCode, Step, TestsRun
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.formats.junit import ERROR, FAILED, PASSED, SKIPPED
from wheel_checks.model import CheckResult, Evidence, Outcome, Report, Severity, Subject, Unavailable
from wheel_checks.report.wording import CASES
from wheel_checks.runner import run_rules
from wheel_checks.sources.byte_source import Cost
from wheelproof.matrix.cell.pipeline import INSTALLED, VERIFY
from wheelproof.matrix.cell.steps import Record
from wheelproof.matrix.overview import headline, overview
from wheelproof.reporting import EVERY_RULE, NO_COST, OpenReport, Selection

KIND = "cell"
WRONG_BUILD = "MTX101"
GPU_CODE = "WHL6"  # the rules on code for GPUs, of which a CPU build has none
EVERY_STEP = "MTX001"  # applied with any selection of rules: a cell that was not tested must not pass


def make_report(
    cells: Sequence[CellFacts],
    records: Mapping[str, Mapping[str, Record]],
    opened: OpenReport,
    selection: Selection = EVERY_RULE,
    *,
    portable: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    more: Sequence[Subject] = (),
    notes: Sequence[str] = (),
) -> Report:
    """Judge every cell. ``records`` are those of its steps, by cell and step; ``portable`` those for a merge.

    ``more`` are subjects that are no cells, ``notes`` sentences for people. Raises UsageError for a rule prefix.
    """
    rules = [get_rule(EVERY_STEP), *(rule for rule in selection.rules(KIND) if rule.id != EVERY_STEP)]
    subjects = []
    for cell in cells:
        own = run_rules(rules, cell, Expectations())
        found = list(selection.kept(_found_by_verify(records[cell.id])))
        if any(_is_error(result, WRONG_BUILD) for result in own):
            found = [result for result in found if not _of_torchs_code(result)]  # it follows from that
        record = portable.get(cell.id, {})
        subjects.append(Subject(cell.id, KIND, headline(cell), cell_json(cell), (*own, *found), record=record))
    taken = (records[cell.id][step] for cell in cells for step in (VERIFY, INSTALLED) if step in records[cell.id])
    read = [record.result["summary"] for record in taken if "summary" in record.result]
    report = opened.close(
        [*subjects, *more],
        selection,
        cost=sum((Cost(summary["bytes_read"], summary["requests"]) for summary in read), NO_COST),
    )
    shown = overview(report, cells)
    return replace(report, overview=replace(shown, notes=(*shown.notes, *notes)))


def cell_json(cell: CellFacts) -> dict[str, Any]:
    """The facts of a cell, JSON-ready."""
    facts: dict[str, Any] = {
        "platform": cell.platform,
        "python": cell.python,
        "torch": cell.torch,
        "asked": cell.requirement or cell.torch,
        "wanted": str(cell.wanted),
        "known": {"accelerator": str(cell.known), "reason": cell.reason} if cell.known else None,
        "targets": cell.targets,
    }
    if not isinstance(cell.resolved, Unavailable):
        facts["resolved"] = dict(cell.resolved)
    if cell.tested:
        facts["tested"] = [asdict(wheel) for wheel in cell.tested]
    if isinstance(cell.build, Build):
        facts |= {"accelerator": cell.build.accelerator, "local_version": cell.build.version}
        facts |= {"cuda": cell.build.accelerator_version} if cell.build.accelerator == "cuda" else {}
    if isinstance(cell.imported, ImportProof):
        facts["imported"] = asdict(cell.imported)
    if cell.smoke:
        facts["smoke"] = {kind: _smoke_json(document) for kind, document in cell.smoke.items()}
    facts |= _library_json(cell)
    code = cell.machine_code
    if isinstance(code, MachineCode):
        facts["machine_code"] = [
            {"target": target, "kernel": kernel, "case": case, "function": name, "sha256": digests}
            for (target, kernel, case, name), digests in sorted(code.digests.items())
        ]
    if cell.reference:
        facts["reference"] = cell.reference
    facts["steps"] = [_step_json(step) for step in cell.steps]
    return facts


def _step_json(step: Step) -> dict[str, Any]:
    facts = {"name": step.name, "started": step.started, "seconds": step.seconds, "kept": step.kept, "log": step.log}
    facts |= {"attempts": step.attempts} if step.attempts > 1 else {}
    return facts | ({"failure": step.failure.reason} if step.failure else {})


def _library_json(cell: CellFacts) -> dict[str, Any]:
    """The tests of the library under test."""
    tried = {"modules": cell.modules, "command": cell.command}
    facts: dict[str, Any] = {
        name: {"what": found.what, "error": found.error}
        for name, found in tried.items()
        if not isinstance(found, Unavailable)
    }
    return facts | ({"tests": [_tests_json(tests) for tests in cell.tests]} if cell.tests else {})


def _tests_json(tests: TestsRun) -> dict[str, Any]:
    counts = Counter(case.outcome for case in tests.cases)
    return {
        "file": tests.file,
        "path": tests.path,
        "counts": {outcome: counts[outcome] for outcome in (PASSED, FAILED, ERROR, SKIPPED)},
        "unnamed": tests.unnamed,
        "fault": tests.fault,
        CASES: [asdict(case) for case in tests.cases],
    }


def _smoke_json(document: SmokeDocument) -> dict[str, Any]:
    return {
        "verdict": document.verdict,
        "message": document.message,
        "seconds": document.seconds,
        "environment": asdict(document.environment),
    }


def _is_error(result: CheckResult, rule: str) -> bool:
    return result.rule == rule and result.outcome is Outcome.FAIL and result.severity is Severity.ERROR


def _of_torchs_code(result: CheckResult) -> bool:
    """Whether a result of ``verify`` is about the code for GPUs that torch has."""
    return result.rule.startswith(GPU_CODE) and result.evidence[0].value.startswith(("torch-", "torch "))


def _found_by_verify(records: Mapping[str, Record]) -> Iterator[CheckResult]:
    """The failures and errors in the reports of ``verify``, as results of the cell, each once."""
    seen = set()
    for step, whose in ((VERIFY, "on the index"), (INSTALLED, "installed")):
        report = records[step].result if step in records else {}
        for subject in report.get("subjects", ()):
            for result in subject["results"]:
                if result["outcome"] in {Outcome.FAIL, Outcome.ERROR}:
                    found = decode(CheckResult, result, Policy(unknown_keys=True, null_is_absent=True))
                    if (found.rule, found.message) not in seen:
                        seen.add((found.rule, found.message))
                        place = Evidence("found", f"{subject['id'].rpartition('/')[2]}, {whose}")
                        yield replace(found, evidence=(place, *found.evidence))
