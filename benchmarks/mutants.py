"""How surely the cases catch every mutant, over inputs from as many seeds as there is time for.

usage: python benchmarks/mutants.py [--only KERNEL,...] [--seconds 600 | --seeds N] [--device cuda|cpu] [--first-seed 0]

The suite draws new inputs in every run, so a mutant that one draw in a hundred does not show is missed by one run in a
hundred. Prints for each kernel how many seeds there were, every mutant that was missed with the seeds that missed it,
and mutants that were not always caught by the same case first, which are barely caught.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.forked import Ended, Job, messages  # found by the line above
from kernels_smoke.suite import registry  # likewise

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from kernels_smoke.suite.model import Where

TIMEOUT = 120.0  # seconds for one case; the first waits for a compiler
MOST_SEEDS = 5  # that missed a mutant, and are named


@dataclass
class Catches:
    """The cases that caught one mutant, with counts, and the messages of seeds that did not."""

    by: Counter[str] = field(default_factory=Counter)
    missed: dict[int, str] = field(default_factory=dict)

    def add(self, seed: int, record: Mapping[str, Any]) -> None:
        """Add a record of the suite with ``seed``."""
        if record["outcome"] == "caught":
            self.by[record["caught_by"]] += 1
        else:
            self.missed[seed] = f"{record['outcome']}: {record['message']}"


def main() -> None:
    """Run and report."""
    parser = argparse.ArgumentParser(description="Measure how surely the cases catch every mutant.")
    parser.add_argument("--only", default="", metavar="KERNEL,...")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seeds", type=int, default=0, help="so many for each kernel, however long they take")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--first-seed", type=int, default=0)
    options = parser.parse_args()
    device: Where = "cuda"
    if options.device == "cpu":
        device = "interpret"
        os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported
    import kernels_smoke.suite.correctness.tasks  # noqa: F401  # imports torch, once for all children

    entries = registry.select(tuple(filter(None, options.only.split(","))))
    at_once = len(os.sched_getaffinity(0))
    seconds = options.seconds * min(1.0, at_once / len(entries))  # for each kernel
    jobs = [Job(entry.name, run, (entry.name, device, options.first_seed, options.seeds, seconds)) for entry in entries]
    found: dict[str, dict[str, Catches]] = {entry.name: {} for entry in entries}
    seeds = dict.fromkeys(found, 0)
    planned = {entry.name: _planned(entry, device) for entry in entries}
    for child, message in messages(jobs, at_once=at_once, timeout=TIMEOUT):
        kernel = child.job.name
        if isinstance(message, Ended):
            print("\n".join(lines(kernel, planned[kernel], seeds[kernel], found[kernel], message.fault)), flush=True)
        elif message["record"]["kind"] == "plan":
            seeds[kernel] += 1
        elif message["record"]["kind"] == "mutant" and message["record"]["outcome"] != "skip":
            found[kernel].setdefault(message["record"]["mutant"], Catches()).add(message["seed"], message["record"])


def run(connection: Connection, name: str, device: Where, first: int, seeds: int, seconds: float) -> None:
    """Run the cases of a kernel on all of its mutants with one seed after another; send all records, with the seed.

    With ``seeds`` so many, otherwise for so many ``seconds``, and at least one.
    """
    from kernels_smoke.suite.correctness.tasks import healthy, mutants  # imported by now

    seed, until = first, time.monotonic() + seconds
    records: list[Mapping[str, Any]] = []
    while seed < first + max(seeds, 1) or (not seeds and time.monotonic() < until):
        records.clear()
        healthy(records.append, kernel=name, device=device, seed=seed)
        fault = next(str(record["fault"]) for record in records if record["kind"] == "healthy")
        mutants(partial(_send, connection, seed, records), kernels=[name], fault=fault, device=device, seed=seed)
        planned = next(len(record["items"]) for record in records if record["kind"] == "plan")
        if sum(record["kind"] == "mutant" for record in records) < planned:
            raise RuntimeError(f"with seed {seed} one crashed, and nothing can be believed after it")
        seed += 1


def _send(connection: Connection, seed: int, records: list[Mapping[str, Any]], record: Mapping[str, Any]) -> None:
    records.append(record)
    connection.send({"seed": seed, "record": record})


def _planned(entry: registry.Entry, device: Where) -> list[str]:
    return [mutant.name for mutant in registry.load(entry).mutants if device in mutant.where]


def lines(
    kernel: str, planned: Sequence[str], seeds: int, mutants: Mapping[str, Catches], fault: str = ""
) -> Iterator[str]:
    """The report of one kernel, of whose mutants those ``planned`` should have been run."""
    missed = sum(bool(catches.missed) for catches in mutants.values())
    result = "all caught" if set(planned) <= set(mutants) else "not all run"
    result = f"{missed} not always caught" if missed else result
    yield f"{kernel}: {len(planned)} mutants, {seeds} seeds: {result}"
    if left := [name for name in planned if name not in mutants]:
        yield f"  not run: {', '.join(left)}"
    for name, catches in mutants.items():
        if catches.missed:
            some = ", ".join(str(seed) for seed in list(catches.missed)[:MOST_SEEDS])
            yield f"  missed with {len(catches.missed)} seeds ({some}): {name}: {next(iter(catches.missed.values()))}"
        if len(catches.by) > 1:
            yield f"  {name}: first caught by " + ", ".join(f"{case} ({n})" for case, n in catches.by.most_common())
    if fault:
        yield f"  its process: {fault}"


if __name__ == "__main__":
    main()
