"""What a run does, and how children that crash or hang are made up for. Needs no torch: jobs go through the crew."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernels_smoke.suite.crew import End, Job

Records = list[dict[str, Any]]
Item = tuple[str, str]  # a kernel, and one of its cases or mutants


@dataclass
class Document:
    """The records of a run, by kind, as they arrive."""

    probes: Records = field(default_factory=list)
    cases: Records = field(default_factory=list)
    speeds: Records = field(default_factory=list)
    compiled: Records = field(default_factory=list)
    mutants: Records = field(default_factory=list)
    calibration: dict[str, Any] | None = None
    heard: Callable[[dict[str, Any]], None] = lambda _record: None

    def add(self, record: dict[str, Any]) -> None:
        """Keep a record where its kind belongs."""
        self.heard(record)
        places = {
            "probe": self.probes,
            "case": self.cases,
            "speed": self.speeds,
            "compiled": self.compiled,
            "mutant": self.mutants,
        }
        if record["kind"] == "calibration":
            self.calibration = {name: value for name, value in record.items() if name != "kind"}
        elif record["kind"] in places:
            places[record["kind"]].append(record)


def resumed(
    document: Document, kind: str, task: str, arguments: dict[str, Any], patience: float, done: Sequence[Item] = ()
) -> Job:
    """A job whose child may die: a new one then goes on behind the item that it died of.

    The task first emits {"kind": "plan", "items": [...]}, all (kernel, case) that it will run but those in its argument
    ``skip``, and {"kind": "begin", ...} before each; its records are of ``kind``.
    """
    planned: list[Item] = []
    begun: list[Item] = []
    answered: set[Item] = set()
    named = "mutant" if kind == "mutant" else "case"

    def on_record(record: dict[str, Any]) -> None:
        if record["kind"] == "plan":
            planned.extend((kernel, case) for kernel, case in record["items"])
        elif record["kind"] == "begin":
            begun.append((record["kernel"], record["case"]))
        else:
            if record["kind"] == kind:
                answered.add((record["kernel"], record[named]))
            document.add(record)

    def on_end(end: End) -> Iterable[Job]:
        left = [item for item in planned if item not in answered]
        if end.clean and not left:
            return
        lost = begun[-1] if begun and begun[-1] in left else None
        if lost:
            document.add(_obituary(kind, named, lost, end))
        elif not end.clean:  # it died of nothing in particular: another child would, too
            message = f"{task}: {end.describe()}"
            document.add({"kind": "probe", "name": "suite", "outcome": "error", "message": message, **_words(end)})
            return
        finished = (*done, *answered, *((lost,) if lost else ()))
        if set(left) - set(finished):
            yield resumed(document, kind, task, arguments, patience, finished)

    return Job(task, {**arguments, "skip": list(done)}, patience, on_record, on_end)


def _obituary(kind: str, named: str, item: Item, end: End) -> dict[str, Any]:
    outcome = "hang" if end.hang else ("crash" if end.status < 0 else "error")
    if kind == "mutant" and outcome != "error":  # the suite caught it: no healthy kernel ends its process
        outcome = "caught"
    return {
        "kind": kind,
        "kernel": item[0],
        named: item[1],
        "outcome": outcome,
        "message": f"the process that ran it: {end.describe()}",
        "caught_by": "the end of its process" if outcome == "caught" else "",
        "outputs": {},
        "seconds": 0.0,
        **_words(end),
    }


def _words(end: End) -> dict[str, Any]:
    return {"evidence": {"last words": end.words} if end.words else {}}


def processors() -> int:
    """How many CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
