"""How near every case comes to its tolerance, over inputs from as many seeds as there is time for, in pieces.

usage: python benchmarks/tolerances.py [--only KERNEL,...] [--level full] [--seconds 500] [--state FILE]
                                       [--large | --timed] [--seeds N] [--close-seeds N] [--at-once N]
                                       [--device cuda|cpu]

The suite draws new inputs in every run, so a tolerance that one run in a hundred misses is a false alarm of one run in
a hundred. Each case is run with ``--seeds`` seeds (500), those above 0.7 of their tolerance with ``--close-seeds``
(10,000). With ``--state FILE`` a run continues after the last one, and keeps its results: repeat the command until it
reports that nothing is left.

Prints, for each kernel, how many runs there were and the cases that came nearest (1.00 is the tolerance; a row may be
four times as far off as the whole, and counts as a quarter, an element forty times), every case that a run missed,
and the probability that one run of the suite at this level has a false alarm: by the tails, with an upper bound at
95 %, and by mere counting.

Cases that are large, and fill a GPU's memory when all kernels run at once, are run by ``--large``; ``--timed`` runs the
shapes that level full times and judges. Both run few kernels at once.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.forked import Ended, Job, messages, summary  # found by the line above
from benchmarks.tails import Tail, from_json, together  # likewise
from kernels_smoke.suite import registry  # likewise
from kernels_smoke.suite.model import LEVELS, includes, runs  # likewise

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from kernels_smoke.suite.model import Case, Kernel, Speed

CLOSE = 0.7  # of the tolerance: such a case is run more often
BATCH_SECONDS = 2.0  # seconds per message of a child
LARGE_AT_ONCE = 4  # kernels
NEAREST = 3  # cases of a kernel that are shown
TIMEOUT = 120.0  # seconds: time to compile all cases of a kernel
SAVED_EVERY = 20.0  # seconds
PAUSE = 1.0  # seconds, for memory that other kernels have
NO_MEMORY = "too little memory"
TIMED = "timed: "  # prefix of the name of a timed shape here

State = dict[str, dict[str, Tail]]  # by kernel and case


def main() -> None:
    """Run and report."""
    parser = argparse.ArgumentParser(description="Measure how near every case comes to its tolerance.")
    parser.add_argument("--only", default="", metavar="KERNEL,...")
    parser.add_argument("--level", choices=LEVELS, default="full")
    parser.add_argument("--seconds", type=float, default=500.0)
    parser.add_argument("--state", type=Path, help="a file that keeps what was found, for the next run")
    parser.add_argument("--seeds", type=int, default=500, help="for each case")
    parser.add_argument("--close-seeds", type=int, default=10_000, help=f"for a case above {CLOSE} of its tolerance")
    parser.add_argument("--at-once", type=int, default=0, help="kernels that run at the same time; all unless given")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--large", action="store_true", help="the large cases, and no others")
    which.add_argument("--timed", action="store_true", help="the shapes that are timed, and nothing else")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    options = parser.parse_args()
    if options.device == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported
    import kernels_smoke.suite.speed.timed  # noqa: F401  # imports torch, once for all children

    entries = registry.select(tuple(filter(None, options.only.split(","))))
    state = kept(options.state)
    until = time.monotonic() + options.seconds
    kind = "large" if options.large else ("timed" if options.timed else "small")
    shared = (options.level, options.device, kind, (options.seeds, options.close_seeds), until)
    jobs = []
    for entry in entries:
        of_kernel = state.setdefault(entry.name, {})
        known = {name: (tail.runs, tail.greatest) for name, tail in of_kernel.items()}
        jobs.append(Job(entry.name, run, (entry.name, known, *shared)))
    at_once = len(jobs) if options.device == "cuda" else len(os.sched_getaffinity(0))
    at_once = min(at_once, LARGE_AT_ONCE) if kind != "small" else at_once
    at_once = options.at_once or at_once
    saved, left = time.monotonic(), 0
    for child, message in messages(jobs, at_once=at_once, timeout=options.seconds + TIMEOUT):
        if isinstance(message, Ended):
            print("\n".join(lines(child.job.name, state[child.job.name], message.fault)), flush=True)
        elif isinstance(message, int):
            left += message
        else:
            case, shares, misses, seconds = message
            state[child.job.name].setdefault(case, Tail()).add(shares, misses, seconds)
        if time.monotonic() - saved > SAVED_EVERY:
            keep(options.state, state)
            saved = time.monotonic()
    keep(options.state, state)
    print("\n".join(summed(state, options.level)))
    print(f"{left} cases need more runs: repeat this command" if left else "nothing is left to run")


def kept(path: Path | None) -> State:
    """The results of earlier runs; empty without a file."""
    if path is None or not path.exists():
        return {}
    found = json.loads(path.read_text(encoding="utf-8"))
    return {kernel: {case: from_json(values) for case, values in cases.items()} for kernel, cases in found.items()}


def keep(path: Path | None, state: State) -> None:
    """Write it in one step."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    values = {kernel: {case: tail.as_json() for case, tail in cases.items()} for kernel, cases in state.items()}
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.write_text(json.dumps(values), encoding="utf-8")
    temporary.replace(path)


# In the process of one kernel


def run(
    connection: Connection,
    name: str,
    known: Mapping[str, tuple[int, float]],
    level: str,
    device: str,
    kind: str,
    seeds: tuple[int, int],
    until: float,
) -> None:
    """Run the cases of a kernel in turn; send (case, shares, misses, seconds) of some runs each time.

    ``known`` are the runs of each case so far, and its largest share. Ends when each has as many as ``seeds`` say, the
    second number for close ones, or at the time ``until``; sends how many have not.
    """
    kernel = registry.load(registry.entry(name))
    prefix = TIMED if kind == "timed" else ""
    subjects = {prefix + each.name: each for each in _subjects(kernel, level, device, kind)}
    done = {case: list(known.get(case, (0, 0.0))) for case in subjects}

    def needs(case: str) -> bool:
        count, greatest = done[case]
        return count < seeds[greatest > CLOSE]

    while (waiting := [case for case in subjects if needs(case)]) and time.monotonic() < until:
        for case in waiting:
            shares: list[float] = []
            misses: list[str] = []
            begun = time.monotonic()
            while not shares or (time.monotonic() < min(begun + BATCH_SECONDS, until) and needs(case)):
                seed = int(done[case][0])
                share, miss = _judged(kernel, subjects[case], device, seed)
                if NO_MEMORY in miss:  # others have it now: this was no run
                    time.sleep(PAUSE)
                    break
                shares.append(share)
                misses += [f"seed {seed}: {miss}"] if miss else []
                done[case][0] += 1
                done[case][1] = max(done[case][1], share)
            if shares:
                connection.send((case, shares, misses, time.monotonic() - begun))
            if time.monotonic() >= until:
                break
    connection.send(sum(map(needs, subjects)))


def _subjects(kernel: Kernel, level: str, device: str, kind: str) -> Sequence[Case | Speed]:
    if kind == "timed":
        return [speed for speed in kernel.speeds if includes(level, speed.level)]
    where = "cuda" if device == "cuda" else "interpret"
    return [
        case
        for case in kernel.cases
        if where in case.where and includes(level, case.level) and (case.checked and not case.far) != (kind == "large")
    ]


def _judged(kernel: Kernel, subject: Case | Speed, device: str, seed: int) -> tuple[float, str]:
    """The largest share of a tolerance in one run, and the fault; "" without one."""
    from kernels_smoke.suite.correctness.judge import judge  # imported by now
    from kernels_smoke.suite.correctness.tasks import MEMORY
    from kernels_smoke.suite.model import Case

    try:
        if isinstance(subject, Case):
            result = judge(kernel, subject, device=device, seed=seed)
            outputs, message = result["outputs"], str(result["message"])
        else:
            outputs, message = _judged_as_timed(kernel, subject, device, seed)
    except Exception as error:  # noqa: BLE001  # compilers and drivers raise anything: a line of the report
        error_text = summary(error)
        return 0.0, NO_MEMORY if any(text in error_text for text in MEMORY) else error_text
    return max([0.0, *(share_of(measured) for measured in outputs.values())]), message


def _judged_as_timed(kernel: Kernel, speed: Speed, device: str, seed: int) -> tuple[Mapping[str, Any], str]:
    import importlib

    from kernels_smoke.suite.correctness.judge import seed_of
    from kernels_smoke.suite.speed.timed import judge_timed
    from kernels_smoke.suite.speed.timing import input_sets

    sets = input_sets(kernel, speed.shape, device=device, seed=seed_of(seed, kernel.name, speed.name), most=1)
    judged = judge_timed(kernel, importlib.import_module(kernel.module), sets)
    return judged.outputs, judged.message


def share_of(measured: Mapping[str, Any]) -> float:
    """The error of one output as a share of its tolerance; 0 if it is compared bit for bit."""
    from kernels_smoke.suite.correctness.compare import WORST_ELEMENT, WORST_ROW  # imports torch

    if not measured.get("tolerance"):
        return 0.0
    of_a_row, of_an_element = (float(measured.get(name, 0.0)) for name in ("worst_row", "worst_element"))
    worst = max(float(measured["error"]), of_a_row / WORST_ROW, of_an_element / WORST_ELEMENT)
    return worst / float(measured["tolerance"])


# The report


def lines(kernel: str, cases: Mapping[str, Tail], fault: str = "") -> Iterator[str]:
    """The report of one kernel."""
    count = sum(case.runs for case in cases.values())
    nearest = sorted(cases.items(), key=lambda item: item[1].greatest, reverse=True)[:NEAREST]
    shown = ", ".join(f"{case.greatest:.2f} {name}" for name, case in nearest)
    yield f"{kernel}: {count} runs of {len(cases)} cases; nearest: {shown or 'none'}"
    for name, case in cases.items():
        if case.misses:
            yield f"  missed in {case.misses} of {case.runs} runs: {name}: {case.examples[0]}"
    if fault:
        yield f"  its process: {fault}"


def summed(state: State, level: str) -> Iterator[str]:
    """The number of runs of each case, the cases with the heaviest tails, and the total.

    On a GPU level full omits cases for the interpreter; the bound is over its cases and timed shapes.
    """
    every = ((kernel, name, tail) for kernel, of in state.items() for name, tail in of.items())
    cases = [each for each in every if _in_level(each[0], each[1], level)]
    if not cases:
        return
    counts = sorted(tail.runs for *_, tail in cases)
    close, missed = (sum(tail.greatest > CLOSE for *_, tail in cases), sum(tail.misses for *_, tail in cases))
    yield (
        f"{sum(counts)} runs of {len(cases)} cases, of each {counts[0]} to {counts[-1]}, the median "
        f"{counts[len(counts) // 2]}; {close} above {CLOSE} of their tolerance; {missed} missed"
    )
    bounds = {id(tail): (tail.probability(), tail.upper_bound()) for *_, tail in cases}
    for kernel, name, tail in sorted(cases, key=lambda each: bounds[id(each[2])], reverse=True)[: 3 * NEAREST]:
        likely, most = bounds[id(tail)]
        yield f"  {likely:.1e}, at most {most:.1e}: {kernel} / {name}, greatest {tail.greatest:.2f} in {tail.runs} runs"
    if few := sum(not tail.is_fitted for *_, tail in cases):
        yield f"{few} cases have too few runs for a tail, and count as never missing"
    likely, most = (together([each[which] for each in bounds.values()]) for which in (0, 1))
    yield f"a false alarm in one run at level {level}: {likely:.1e} by the tails, at most {most:.1e} (95 % of each)"
    if not any(tail.misses for *_, tail in cases):
        yield f"by counting: none in {counts[0]} whole runs, so less than {min(1.0, 3 / max(counts[0], 1)):.1e} (95 %)"


def _in_level(kernel: str, name: str, level: str) -> bool:
    """Whether a run on a GPU at ``level`` has this case. Without torch to ask, every case counts."""
    if name.startswith(TIMED) or "torch" not in sys.modules:
        return True
    cases = {case.name: case for case in registry.load(registry.entry(kernel)).cases}
    return name not in cases or runs(cases[name], "cuda", level)


if __name__ == "__main__":
    main()
