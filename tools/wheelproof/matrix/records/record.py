"""The portable record of a cell that was run: any machine judges it in the same way.

A report of ``matrix run`` contains a record with each of its cells, so that reports of several machines can be merged.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from wheel_checks.decode import Check, Made, Policy, decode
from wheel_checks.decode.encode import encode
from wheel_checks.model import Outcome
from wheelproof.matrix.cell.pipeline import INSTALL, INSTALLED, RESOLVE, VERIFY
from wheelproof.matrix.cell.platform_steps import IMPORT
from wheelproof.matrix.cell.steps import Died, Record, digest
from wheelproof.matrix.cell.trees import Lock
from wheelproof.matrix.definition.reading import cell_document, parse_cell
from wheelproof.matrix.model import Cell, Matrix

SCHEMA = "wheelproof.matrix-record/1"
_ABOUT_TORCH = ("accelerator", "accelerator_version", "local_version", "version")  # facts of its wheel that are used
_TIME_LIMITS = ("deadline", "timeout", "retries")
_COST = ("bytes_read", "requests", "error")
_FOUND = (Outcome.FAIL, Outcome.ERROR)


@dataclass(frozen=True, slots=True)
class Member:
    """A cell of a matrix by name, with the report's data for a missing one."""

    id: str
    platform: str
    python: str
    torch: str
    accelerator: str


@dataclass(frozen=True, slots=True)
class MatrixIdentity:
    """The matrix of a cell: ``digest`` is over all its cells, on all machines; ``source`` names the file."""

    source: str
    digest: str
    cells: tuple[Member, ...]

    @classmethod
    def of(cls, matrix: Matrix) -> MatrixIdentity:
        """That of a matrix which was read."""
        members = (Member(c.id, c.platform, c.python, c.torch, str(c.accelerator)) for c in matrix.cells)
        return cls(matrix.source, digest([_without_place(cell) for cell in matrix.cells]), tuple(members))


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRecord:
    """A cell that was run. ``cell`` is as the matrix has it, ``inputs`` the digest of its inputs except its resolution,
    "" if unknown. ``ended`` is UTC, ISO 8601; ``steps`` are in their order.
    """

    matrix: MatrixIdentity
    cell: Annotated[Cell, Made(parse_cell, of=Mapping[str, Any])]
    inputs: str
    version: str
    ended: str
    steps: tuple[Record, ...]
    died: Died | None = None
    schema: Annotated[str, Check((SCHEMA).__eq__, SCHEMA)] = SCHEMA

    @property
    def by_step(self) -> dict[str, Record]:
        """The records of its steps, by name."""
        return {record.step: record for record in self.steps}

    @property
    def packages(self) -> str:
        """The identity of its resolution; "" without one."""
        resolved = self.by_step.get(RESOLVE)
        return "" if resolved is None or resolved.failure else Lock.from_json(resolved.result["packages"]).identity

    def as_document(self) -> dict[str, Any]:
        """JSON-ready; :func:`parse_record` reads it back."""
        document = {
            name: encode(getattr(self, name)) for name in ("schema", "inputs", "version", "ended", "steps", "died")
        }
        return document | {"matrix": _encoded(self.matrix), "cell": cell_document(self.cell)}

    def with_logs(self, move: Callable[[str], str]) -> CellRecord:
        """With ``move`` applied to the path of each log, and of each JUnit report next to one."""

        def moved(step: Record) -> Record:
            tests = [{**each, "path": each["path"] and move(each["path"])} for each in step.result.get("tests", ())]
            result = {**step.result, "tests": tests} if tests else step.result
            return replace(step, log=step.log and move(step.log), result=result)

        steps = tuple(map(moved, self.steps))
        died = replace(self.died, log=move(self.died.log)) if self.died and self.died.log else self.died
        return replace(self, steps=steps, died=died)


@functools.cache
def _encoded(matrix: MatrixIdentity) -> Any:
    """Of a merge all cells have the same."""
    return encode(matrix)


def parse_record(document: Any, source: str) -> CellRecord:
    """The record in a document. Raises DecodeError with its faults: it may come from anywhere."""
    return decode(CellRecord, document, Policy(), source)


def portable(record: Record) -> Record:
    """A record without paths of the machine that ran the cell, and without data that no report shows.

    A report of ``verify`` on torch has 100 KB, mostly passes.
    """
    result = record.result
    if record.step == INSTALL:
        result = {}
    elif record.step == IMPORT and "torch" in result:
        torch = {name: value for name, value in result["torch"].items() if name != "path"}
        result = {name: value for name, value in result.items() if name not in {"executable", "libc"}} | {
            "torch": torch
        }
    elif record.step in {VERIFY, INSTALLED} and "subjects" in result:
        subjects = [_slim(subject) for subject in result["subjects"]]
        shown = [subject for subject in subjects if subject["results"] or subject["facts"]]
        result = {"summary": {name: result["summary"][name] for name in _COST}, "subjects": shown}
    return replace(record, result=result)


def _slim(subject: Mapping[str, Any]) -> dict[str, Any]:
    facts = subject["facts"] if subject["kind"] == "wheel" else {}
    about = {name: facts[name] for name in _ABOUT_TORCH if name in facts} if "accelerator" in facts else {}
    results = [result for result in subject["results"] if result["outcome"] in _FOUND]
    return {"id": subject["id"], "kind": subject["kind"], "facts": about, "results": results}


def _without_place(cell: Cell) -> dict[str, Any]:
    """The cell without its runner, which does not change the matrix."""
    return {key: value for key, value in cell_document(cell).items() if key != "runner"}


def inputs_digest(cell: Cell, *more: Any) -> str:
    """The digest of a cell and of what else its result depends on; time limits that were kept change no result."""
    return digest([{k: v for k, v in _without_place(cell).items() if k not in _TIME_LIMITS}, *more])
