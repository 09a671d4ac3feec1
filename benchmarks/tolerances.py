"""How near every case comes to its tolerance, over inputs from as many seeds as there is time for.

usage: python benchmarks/tolerances.py [--only KERNEL,...] [--level full] [--seconds 60 | --seeds N] [--large]
                                       [--device cuda|cpu]

The suite draws new inputs in every run, so a tolerance that one run in a hundred misses is a false alarm of one run in
a hundred. Prints, for each kernel, how many runs there were and the cases that came nearest (1.00 is the tolerance;
a row may be four times as far off as the whole, and counts as a quarter), and every case that a run missed. The last
line is the probability that one run of all these cases has a false alarm, by the tails of what was measured.

Cases that are large, and fill a GPU's memory when all kernels run at once, are run by ``--large``, and alone then.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.forked import Ended, Job, messages, summary  # found by the line above
from kernels_smoke.suite import registry  # likewise

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from kernels_smoke.suite.model import Case

FITTED = 50  # runs of a case, from which its tail is fitted
LARGE_AT_ONCE = 4  # kernels
NEAREST = 3  # cases of a kernel that are shown
PATIENCE = 120.0  # seconds: what a kernel takes to compile for all its cases
LEVELS = ("quick", "full", "deep")


@dataclass
class Closeness:
    """Of one case: how often it ran, the greatest share of its tolerance, and what the runs that missed it said."""

    runs: int = 0
    share: float = 0.0
    misses: list[str] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)

    def add(self, seed: int, result: Mapping[str, Any]) -> None:
        """Take in what ``judge`` said of one run."""
        self.runs += 1
        self.shares.append(max([0.0, *(share_of(measured) for measured in result["outputs"].values())]))
        self.share = max(self.share, self.shares[-1])
        if result["outcome"] != "pass":
            self.misses.append(f"seed {seed}: {result['message']}")

    @property
    def alarm(self) -> float:
        """The probability that a run misses the tolerance, by an exponential tail behind nine tenths of the runs.

        Exponential is what maxima and norms of many bounded roundings have at most; where the measured runs themselves
        missed, it is the share of those at least.
        """
        missed = len(self.misses) / self.runs if self.runs else 0.0
        if len(self.shares) < FITTED or not self.share:
            return missed
        begin = statistics.quantiles(self.shares, n=10, method="inclusive")[-1]
        beyond = [share - begin for share in self.shares if share > begin]
        if not beyond:
            return missed
        return max(missed, len(beyond) / self.runs * math.exp(-(1.0 - begin) / statistics.mean(beyond)))


def main() -> None:
    """Run and report."""
    parser = argparse.ArgumentParser(description="Measure how near every case comes to its tolerance.")
    parser.add_argument("--only", default="", metavar="KERNEL,...")
    parser.add_argument("--level", choices=LEVELS, default="full")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seeds", type=int, default=0, help="so many for each kernel, however long they take")
    parser.add_argument("--large", action="store_true", help="the large cases, and no others")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    options = parser.parse_args()
    if options.device == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported
    import kernels_smoke.suite.correctness.judge  # noqa: F401  # imports torch, once for all children

    entries = registry.select(tuple(filter(None, options.only.split(","))))
    until = time.monotonic() + options.seconds
    shared = (options.level, options.device, options.seeds, until, options.large)
    jobs = [Job(entry.name, run, (entry.name, *shared)) for entry in entries]
    found: dict[str, dict[str, Closeness]] = {entry.name: {} for entry in entries}
    at_once = len(jobs) if options.device == "cuda" else len(os.sched_getaffinity(0))
    at_once = min(at_once, LARGE_AT_ONCE) if options.large else at_once
    for child, message in messages(jobs, at_once=at_once, patience=options.seconds + PATIENCE):
        if isinstance(message, Ended):
            print("\n".join(lines(child.job.name, found[child.job.name], message.fault)), flush=True)
        else:
            case, seed, result = message
            found[child.job.name].setdefault(case, Closeness()).add(seed, result)
    print("\n".join(summed(found)))


def summed(found: Mapping[str, Mapping[str, Closeness]]) -> Iterator[str]:
    """How many runs there were of each case, the cases with the heaviest tails, and what all of them come to."""
    cases = [(kernel, name, case) for kernel, of in found.items() for name, case in of.items()]
    if not cases:
        return
    runs = sorted(case.runs for _, _, case in cases)
    middle = runs[len(runs) // 2]
    yield f"{sum(runs)} runs of {len(cases)} cases, of each {runs[0]} to {runs[-1]}, the median {middle}"
    heaviest = sorted(cases, key=lambda each: each[2].alarm, reverse=True)[: 3 * NEAREST]
    for kernel, name, case in heaviest:
        yield f"  {case.alarm:.1e} of the runs by its tail, greatest {case.share:.2f}: {kernel} / {name}"
    total = sum(case.alarm for _, _, case in cases)
    yield f"a false alarm in a run of all: {total:.1e} by the tails"


def run(
    connection: Connection, name: str, level: str, device: str, seeds: int, until: float, large: bool = False
) -> None:
    """Judge every case of a kernel with one seed after another; send (case, seed, what was judged) each time.

    With ``seeds`` so many, otherwise until the clock says ``until``, and at least one.
    """
    from kernels_smoke.suite.correctness.judge import judge  # imported by now

    kernel = registry.load(registry.entry(name))
    cases = [case for case in kernel.cases if _runs(case, level, device) and case.checked != large]
    seed = 0
    while cases and (seed < max(seeds, 1) or (not seeds and time.monotonic() < until)):
        for case in cases:
            try:
                result = judge(kernel, case, device=device, seed=seed)
            except Exception as error:  # noqa: BLE001  # compilers and drivers raise anything: a line of the report
                result = {"outcome": "error", "message": summary(error), "outputs": {}}
            connection.send((case.name, seed, result))
        seed += 1


def _runs(case: Case, level: str, device: str) -> bool:
    where = "cuda" if device == "cuda" else "interpret"
    return where in case.where and LEVELS.index(case.level) <= LEVELS.index(level)


def share_of(measured: Mapping[str, Any]) -> float:
    """The error of one output as a share of its tolerance; 0 where it is compared bit for bit."""
    from kernels_smoke.suite.correctness.compare import WORST_ROW  # imports torch

    if not measured.get("tolerance"):
        return 0.0
    return max(float(measured["error"]), float(measured.get("worst_row", 0.0)) / WORST_ROW) / float(
        measured["tolerance"]
    )


def lines(kernel: str, cases: Mapping[str, Closeness], fault: str = "") -> Iterator[str]:
    """The report of one kernel."""
    runs = sum(case.runs for case in cases.values())
    nearest = sorted(cases.items(), key=lambda item: item[1].share, reverse=True)[:NEAREST]
    shown = ", ".join(f"{case.share:.2f} {name}" for name, case in nearest)
    yield f"{kernel}: {runs} runs of {len(cases)} cases; nearest: {shown or 'none'}"
    for name, case in cases.items():
        if case.misses:
            yield f"  missed in {len(case.misses)} of {case.runs} runs: {name}: {case.misses[0]}"
    if fault:
        yield f"  its process: {fault}"


if __name__ == "__main__":
    main()
