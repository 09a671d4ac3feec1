"""The headline experiments of the documents that the kernels come from, measured again in one run on this GPU.

usage: python benchmarks/seeds.py [--only TEXT,...] [--output DIR] [--minutes 9]

Each module of ``benchmarks/experiments`` has a function ``experiments()``. Every experiment runs in its own child: some
compile at once, and one after the other is timed, over one set of inputs, so that small inputs are read from the L2
cache. "helion" is a comparison with torch.compile over the shapes of the Qwen3 models, as its authors made it. Prints
markdown; with ``--output`` the folder gets ``seeds.md`` and ``seeds.json``, each time that something was timed. Missing
packages and failures are named in their row.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.comparison_report import Measurements, mean_table, shape_table  # found by the line above
from benchmarks.experiments.model import Experiment, Run  # likewise
from benchmarks.experiments_report import Repeated, markdown  # likewise
from benchmarks.forked import OVER, Ended, Job, in_turn, summary, turn  # likewise
from benchmarks.kernels import calibrated, compared, environment, import_torch, replace  # likewise
from benchmarks.shapes import HELION  # likewise
from kernels_smoke.suite import registry  # likewise

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

FAMILIES = (
    "attention",
    "block_attention",
    "delta_net",
    "norm_fusion",
    "helion_layer",
    "fusion",
    "muon",
    "dualip",
    "serving",
)
HELION_MEANS = "helion's kernels, geometric means against torch.compile"
TIMEOUT = 300.0  # seconds of silence: FLA tunes itself for half a minute, torch.compile takes as long
LAUNCHES = 20  # of functions timed without a graph
AS_LAUNCHED = "as launched"
AT_ONCE = 6  # experiments that prepare at once: their inputs are on the GPU together


def main() -> None:
    """Run and report."""
    parser = argparse.ArgumentParser(description="Tell the experiments of the documents again, on this GPU.")
    parser.add_argument("--only", default="", metavar="TEXT,...", help="those with this in their name")
    parser.add_argument("--output", type=Path, metavar="DIR")
    parser.add_argument("--minutes", type=float, default=9.0, help="what is not timed by then is omitted")
    options = parser.parse_args()
    start = time.monotonic()
    import_torch()
    chosen = [
        (family, index, experiment)
        for family in FAMILIES
        for index, experiment in enumerate(load(family))
        if any(text in f"{family} {experiment.name}" for text in options.only.split(","))
    ]
    until = start + 60 * options.minutes
    calibration = calibrated()
    repeated = [Repeated(e.name, e.reported, e.baseline, e.work) for _, _, e in chosen]
    found = Found(repeated, environment(calibration), start)
    jobs = [Job(str(number), tell, (family, index)) for number, (family, index, _) in enumerate(chosen)]
    for child, message in in_turn(jobs, at_once=AT_ONCE, timeout=TIMEOUT, until=until):
        if message == OVER:
            found.write(options.output)
        else:
            hear(found.repeated[int(child.job.name)], message)
    if any(text in HELION_MEANS for text in options.only.split(",")):

        def keep(means: Measurements) -> None:
            found.means = means
            found.write(options.output)

        minutes = (until - time.monotonic()) / 60
        entries = registry.select(tuple(HELION))
        found.means = compared(entries, "helion", minutes=minutes, calibration=calibration, keep=keep)
    print(found.report())
    found.write(options.output)


@dataclasses.dataclass
class Found:
    """The measurements so far."""

    repeated: list[Repeated]
    environment: dict[str, Any]
    start: float
    means: Measurements | None = None

    def report(self) -> str:
        """All tables."""
        report = markdown(self.repeated, self.environment, time.monotonic() - self.start)
        return report + (_helion(self.means) if self.means else "")

    def write(self, folder: Path | None) -> None:
        """Keep the tables, and their data, if there is a folder for them."""
        if folder is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        facts: dict[str, Any] = {"environment": self.environment}
        facts |= {"experiments": [dataclasses.asdict(one) for one in self.repeated]}
        facts |= {"seconds": time.monotonic() - self.start, "helion": self.means and self.means.as_json()}
        replace(folder / "seeds.md", self.report())
        replace(folder / "seeds.json", json.dumps(facts, indent=1) + "\n")


def _helion(means: Measurements) -> str:
    reported = "ours are fixed layouts; those of the document were searched for each shape, on an H100"
    parts = [f"### {HELION_MEANS}", f"The document: table 2; {reported}.", mean_table(means), shape_table(means)]
    return "\n" + "\n\n".join(part for part in parts if part) + "\n"


def load(family: str) -> list[Experiment]:
    """The experiments of a family, none of which has been started."""
    module = importlib.import_module(f"benchmarks.experiments.{family}")
    found: list[Experiment] = module.experiments()
    return found


def hear(repeated: Repeated, message: Any) -> None:
    """Keep a child's message about its experiment."""
    if isinstance(message, Ended):
        if message.fault:
            repeated.faults["the experiment"] = message.fault
        return
    variant = message["variant"]
    if message["fault"]:
        repeated.faults[variant] = message["fault"]
    elif message["microseconds"] is not None:
        repeated.microseconds[variant] = message["microseconds"]
        repeated.notes[variant] = message["note"]


def tell(connection: Connection, family: str, index: int) -> None:
    """Make and warm all variants of one experiment, wait for its turn, and time them."""
    experiment = load(family)[index]
    ready: dict[str, Run] = {}
    for name, factory in experiment.variants.items():
        fault = ""
        try:
            run = factory()
            run()
            ready[name] = run
        except Exception as error:  # noqa: BLE001  # peers and compilers raise anything: a line of the report
            fault = summary(error)
        connection.send({"variant": name, "microseconds": None, "note": "", "fault": fault})
    with turn(connection):
        for name, run in ready.items():
            connection.send(_timed(name, run, in_graph=name not in experiment.without_graph))


def _timed(name: str, run: Run, *, in_graph: bool) -> dict[str, Any]:
    from kernels_smoke.suite.speed.timing import measure, replayed  # imports torch

    note, microseconds = "", None
    try:
        if in_graph:
            timing = measure([run])
            microseconds, note = timing.microseconds, timing.note
        else:
            replayed(run, 2)
            microseconds, note = statistics.median(replayed(run, LAUNCHES)), AS_LAUNCHED
    except Exception as error:  # noqa: BLE001  # as above
        return {"variant": name, "microseconds": None, "note": "", "fault": summary(error)}
    note = "; ".join(filter(None, (note, getattr(run, "note", ""))))
    return {"variant": name, "microseconds": microseconds, "note": note, "fault": ""}


if __name__ == "__main__":
    main()
