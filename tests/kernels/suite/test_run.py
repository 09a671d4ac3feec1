"""What a run says of its records, and what it lets run beside what: neither needs torch."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kernels_smoke.suite import registry
from kernels_smoke.suite.compiling.warm_cache import Marks
from kernels_smoke.suite.crew import End, Job
from kernels_smoke.suite.plan import Document
from kernels_smoke.suite.run import Options, _judge_on_gpu
from kernels_smoke.suite.verdict import verdict

COMPILES = "compiling.compilations:precompile"  # the one task that leaves the GPU alone
PROBE = {"kind": "probe", "name": "driver", "outcome": "pass", "message": ""}
NO_FP8 = {"kind": "case", "kernel": "scaled_mm", "case": "c", "outcome": "skip", "message": "this GPU has no fp8"}
RIGHT = {"kind": "case", "kernel": "mul_sum_add", "case": "c", "outcome": "pass", "message": ""}


def document_of(*records: dict[str, Any]) -> Document:
    document = Document()
    for record in records:
        document.add(dict(record))
    return document


def test_probes_alone_prove_no_kernel() -> None:
    assert verdict(document_of(PROBE)) == {"verdict": "undecided", "message": "no kernel was checked"}


def test_skipped_cases_are_no_pass() -> None:
    found = verdict(document_of(PROBE, NO_FP8, NO_FP8))
    assert found["verdict"] == "undecided"
    assert found["message"] == "scaled_mm / c: skip: this GPU has no fp8 (and 1 more)"


def test_only_what_passed_is_counted() -> None:
    speed = {"kind": "speed", "kernel": "mul_sum_add", "case": "s", "outcome": "pass", "message": ""}
    found = verdict(document_of(PROBE, NO_FP8, RIGHT, speed, speed | {"outcome": "skip"}))
    assert found == {"verdict": "pass", "message": "1 kernel correct in 1 case, 1 of 1 within their bars"}


class Crew:
    """Notes which tasks may run at the same time, and ends each job at once."""

    def __init__(self) -> None:
        self.calls: list[tuple[list[str], int]] = []

    def run(self, jobs: Iterable[Job], *, at_once: int) -> None:
        waiting, tasks = list(jobs), []
        while waiting:
            job = waiting.pop(0)
            tasks.append(job.task)
            waiting.extend(job.on_end(End(0, hang=False, words="")))
        self.calls.append((tasks, at_once))


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("alone", [False, True])
def test_nothing_runs_beside_a_child_that_has_an_exclusive_gpu(tmp_path: Path, *, warm: bool, alone: bool) -> None:
    options, entries, marks = Options(level="full"), registry.ENTRIES, Marks(tmp_path, "digest")
    if warm:
        marks.leave([entry.name for entry in entries], "full")
    crew, probes = Crew(), Job("probes.probing:basic", {}, 1.0, lambda _record: None)
    _judge_on_gpu(options, crew, entries, Document(), "sm_90", probes, marks, alone=alone)  # type: ignore[arg-type]  # a double of the crew
    ran = [task for tasks, _ in crew.calls for task in tasks]
    assert ran.count("correctness.tasks:cases") == len({entry.family for entry in entries})
    assert ran.count("probes.probing:heavy") == 3
    assert (COMPILES in ran) != warm
    together = [tasks for tasks, at_once in crew.calls if at_once > 1 and set(tasks) != {COMPILES}]
    assert not together if alone else together
