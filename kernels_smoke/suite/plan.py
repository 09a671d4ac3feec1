"""What a run does, and how children that crash or hang are made up for. Needs no torch: jobs go through the crew."""

import os
import signal
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernels_smoke.suite.crew import End, Job

Records = list[dict[str, Any]]
Item = tuple[str, str]  # a kernel, and one of its cases or mutants


@dataclass
class Document:
    """The records of a run, or of one of its GPUs, by kind, as they arrive."""

    probes: Records = field(default_factory=list)
    cases: Records = field(default_factory=list)
    speeds: Records = field(default_factory=list)
    compiled: Records = field(default_factory=list)
    mutants: Records = field(default_factory=list)
    left_out: Records = field(default_factory=list)
    families: Records = field(default_factory=list)
    calibration: dict[str, Any] | None = None
    reading: dict[str, Any] = field(default_factory=dict)  # the records of kind "rates" and "soak", of one GPU
    heard: Callable[[dict[str, Any]], None] = lambda _record: None
    clock: Callable[[], float] = lambda: 0.0  # seconds since the run began

    def add(self, record: dict[str, Any]) -> None:
        """Keep a record where its kind belongs, with the second ``at`` which it arrived."""
        record["at"] = round(self.clock(), 2)
        self.heard(record)
        places = {
            "probe": self.probes,
            "case": self.cases,
            "speed": self.speeds,
            "compiled": self.compiled,
            "mutant": self.mutants,
            "left_out": self.left_out,
        }
        if record["kind"] == "calibration":
            self.calibration = {name: value for name, value in record.items() if name not in {"kind", "at"}}
        elif record["kind"] in {"rates", "soak"}:
            self.reading[record["kind"]] = {name: value for name, value in record.items() if name not in {"kind", "at"}}
        elif record["kind"] in places:
            places[record["kind"]].append(record)


@dataclass
class _Track:
    """How far a child came: what it planned, what it began, what it answered."""

    kind: str
    planned: list[Item] = field(default_factory=list)
    begun: list[Item] = field(default_factory=list)
    answered: set[Item] = field(default_factory=set)

    @property
    def named(self) -> str:
        """The field of a record that names its item."""
        return "mutant" if self.kind == "mutant" else "case"

    @property
    def left(self) -> list[Item]:
        """What was planned and not answered."""
        return [item for item in self.planned if item not in self.answered]

    def hear(self, record: dict[str, Any]) -> bool:
        """Take note of a record; True when it belongs into the document."""
        if record["kind"] == "plan":
            self.planned.extend((kernel, case) for kernel, case in record["items"])
        elif record["kind"] == "begin":
            self.begun.append((record["kernel"], record["case"]))
        elif record["kind"] in {self.kind, "end"}:  # an item may have had nothing to say
            self.answered.add((record["kernel"], record.get(self.named) or record["case"]))
        return record["kind"] not in {"plan", "begin", "alive", "end"}


def resumed(
    document: Document,
    kind: str,
    task: str,
    arguments: dict[str, Any],
    patience: float,
    done: Sequence[Item] = (),
    *,
    computing: float = 1.0,
) -> Job:
    """A job whose child may die: a new one then goes on behind the item that ended it.

    The task first emits {"kind": "plan", "items": [...]}, all (kernel, case) that it will run but those in its argument
    ``skip``, and {"kind": "begin", ...} before each; its records are of ``kind``. {"kind": "end", ...} behind an item
    says that it is done, whether it had records or not; {"kind": "alive"} within one that it does not hang.
    """
    track = _Track(kind)

    def on_record(record: dict[str, Any]) -> None:
        if track.hear(record):
            document.add(record)

    def on_end(end: End) -> Iterable[Job]:
        left = track.left
        if end.clean and not left:
            return
        lost = next((item for item in track.begun[-1:] if item in left), None)
        if lost:
            extra = {"target": arguments["target"]} if "target" in arguments else {}
            document.add(_obituary(kind, track.named, lost, end) | extra)
        elif not end.clean:  # it died of nothing in particular: another child would, too
            message = f"{task}: {end.describe()}"
            document.add({"kind": "probe", "name": "suite", "outcome": "error", "message": message, **_words(end)})
            return
        finished = (*done, *track.answered, *((lost,) if lost else ()))
        if set(left) - set(finished):
            yield resumed(document, kind, task, arguments, patience, finished, computing=computing)

    return Job(task, {**arguments, "skip": list(done)}, patience, on_record, on_end, computing)


def _obituary(kind: str, named: str, item: Item, end: End) -> dict[str, Any]:
    by_itself = kind == "compiled" and end.status == 1  # how LLVM ends a process when it gives up
    outcome = "hang" if end.hang else ("crash" if end.status < 0 or by_itself else "error")
    if kind == "mutant" and outcome != "error":  # the suite caught it: no healthy kernel ends its process
        killed = end.status == -signal.SIGKILL and not end.hang  # by someone else: it may have been the want of memory
        outcome = "error" if killed else "caught"
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
