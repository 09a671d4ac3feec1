"""From the records of a cell's steps to its facts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import unquote, urlsplit

from wheel_checks.decode import Policy, decode
from wheel_checks.facts.kernels.document import parse_smoke_document
from wheel_checks.facts.kernels.facts import SmokeDocument
from wheel_checks.facts.matrix import Build, CellFacts, ImportProof, MachineCode, Step, TestedWheel, TestsRun, Tried
from wheel_checks.model import Unavailable
from wheelproof.matrix.cell.pipeline import RESOLVE, VERIFY, Task, compile_targets, step_names
from wheelproof.matrix.cell.platform_steps import COMMAND, IMPORT, MODULES, build_of, smoke_step
from wheelproof.matrix.cell.steps import Died, Record, read_record
from wheelproof.matrix.cell.trees import Lock
from wheelproof.matrix.model import Cell, Smoke

_REFERENCE = "x86_64"  # the machine whose cells the others are compared with


def read_records(task: Task) -> dict[str, Record]:
    """The records of this run, by step, in the order of the steps."""
    found = ((step, read_record(task.folder / f"{step}.json")) for step in step_names(task.cell))
    return {step: record for step, record in found if record is not None and record.run == task.run}


def resolved_lock(task: Task) -> Lock | None:
    """The lock of a cell, with the sizes of its files; None when this run has not resolved it."""
    record = read_records(task).get(RESOLVE)
    if record is None or record.failure:
        return None
    return Lock.from_json(record.result["packages"], record.result.get("sizes"))


def wheel_of_torch(task: Task) -> Build | Unavailable:
    """The build of the torch wheel on the index, as far as this run has read it."""
    record = read_records(task).get(VERIFY)
    return _wheel(record.result if record and not record.failure else None)


def cell_facts(cell: Cell, records: Mapping[str, Record], died: Died | None, source: str) -> CellFacts:
    """The facts of a cell from its own records. ``source`` names the matrix."""
    steps = [_step(record) for record in records.values()]
    if died is not None:
        steps.append(Step("process", failure=Unavailable(died.how, died.words), log=died.log))
    results = {name: record.result for name, record in records.items() if not record.failure}
    lock = Lock.from_json(results[RESOLVE]["packages"]) if RESOLVE in results else None
    return CellFacts(
        cell.id,
        cell.platform,
        cell.python,
        lock.versions["torch"] if lock else cell.torch,
        requirement=cell.torch,
        wanted=cell.accelerator,
        known=cell.expect.accelerator if cell.expect else None,
        reason=cell.expect.reason if cell.expect else "",
        source=source,
        targets=compile_targets(cell),
        steps=tuple(steps),
        resolved=lock.versions if lock else _missing(RESOLVE),
        tested=_tested(lock) if lock else (),
        wheel=_wheel(results.get(VERIFY)),
        imported=_imported(results.get(IMPORT)),
        import_error=results[IMPORT]["error"] if IMPORT in results else "",
        smoke=dict(_smoke(cell, results)),
        modules=_tried(results.get(MODULES)),
        command=_tried(results.get(COMMAND)),
        junit=cell.junit,
        tests=tuple(decode(TestsRun, report, Policy()) for report in results.get(COMMAND, {}).get("tests", ())),
    )


def with_references(cells: Sequence[CellFacts]) -> tuple[CellFacts, ...]:
    """Each cell with the cell of the reference machine, with the same Python and torch, that compiled most kernels."""
    return tuple(_with_reference(cell, cells) for cell in cells)


def _with_reference(cell: CellFacts, cells: Iterable[CellFacts]) -> CellFacts:
    code = cell.machine_code
    if cell.platform == _REFERENCE or isinstance(code, Unavailable):
        return cell
    siblings = [c for c in cells if (c.platform, c.python, c.torch) == (_REFERENCE, cell.python, cell.torch)]
    if not siblings:
        missing = f"no {_REFERENCE} cell of this run has the same Python and torch"
        return replace(cell, reference_code=Unavailable(missing))
    best = max(siblings, key=lambda other: _in_common(code, other.machine_code))
    return replace(cell, reference=best.id, reference_code=best.machine_code)


def _in_common(here: MachineCode, there: MachineCode | Unavailable) -> int:
    """How many functions both have; a cell that compiled nothing comes last."""
    return -1 if isinstance(there, Unavailable) else len(here.digests.keys() & there.digests.keys())


def _step(record: Record) -> Step:
    failure = Unavailable(record.failure, record.hint) if record.failure else None
    return Step(record.step, record.started, record.seconds, record.kept, failure, record.log, record.attempts)


def _missing(step: str) -> Unavailable:
    return Unavailable(f"the step {step} did not run")


def _tested(lock: Lock) -> tuple[TestedWheel, ...]:
    """The wheels that are named by URL; uv states one digest of each."""
    return tuple(
        TestedWheel(name, version, unquote(urlsplit(lock.direct[name]).path).rpartition("/")[2], digests[0])
        for name, (version, digests) in lock.packages.items()
        if name in lock.direct
    )


def _wheel(report: Mapping[str, Any] | None) -> Build | Unavailable:
    """The result of ``wheelproof verify`` for the torch wheel."""
    if report is None:
        return _missing(VERIFY)
    for subject in report["subjects"]:
        facts = subject["facts"]
        if subject["kind"] == "wheel" and "accelerator" in facts:
            version = facts.get("accelerator_version") or ""
            return Build(facts["accelerator"], version, facts.get("local_version") or facts.get("version", ""))
    return Unavailable("the index has no torch wheel for this cell, or it could not be read")


def _imported(proof: Mapping[str, Any] | None) -> ImportProof | Unavailable:
    """Torch's facts (``inside/import_torch.py``)."""
    if proof is None:
        return _missing(IMPORT)
    if proof["error"]:
        return Unavailable(f"torch cannot be imported: {proof['error']}")
    code = tuple(proof["torch"]["gpu_code"])
    return ImportProof(proof["machine"], proof["python"], build_of(proof["torch"]), code, proof["triton"] or "")


def _tried(result: Mapping[str, Any] | None) -> Tried | Unavailable:
    """The answer of ``inside/import_modules.py`` or ``inside/run_command.py``."""
    if result is None:
        return Unavailable("the cell requests none, or did not reach it")
    return Tried(tuple(result.get("what", ())), result["error"])


def _smoke(cell: Cell, results: Mapping[str, Mapping[str, Any]]) -> Iterable[tuple[str, SmokeDocument]]:
    for kind in Smoke:
        if kind in cell.smoke and (document := results.get(smoke_step(kind))) is not None:
            yield str(kind), parse_smoke_document(json.dumps(document).encode())
