"""Several runs of ``kernels.py`` and ``seeds.py`` as one report. Needs no torch."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.comparison_report import CONTROL, OURS, RATES, Measurements, markdown_table
from benchmarks.forked import summary

HEADS = ("run", "GPU", "seconds", "copy, TB/s", "bf16, TFLOP/s", "fp8, TFLOP/s", f"{CONTROL}, us", "ours / floor")


def merged(paths: Iterable[Path]) -> tuple[list[Measurements], Measurements]:
    """The runs in these files, and all of them as one: if two timed the same, the later file counts.

    Rates are the medians of the runs; each floor is its own run's. ``seeds.json`` has the comparisons over the shapes
    of Helion. Raises ValueError for a file without such a run, for runs of another GPU, torch or triton than the first
    one's, and OSError for a file that cannot be read.
    """
    runs = []
    for path in paths:
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            document = document["helion"] if "experiments" in document else document
            run = Measurements.from_json(document) if document else None
        except (LookupError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a report of kernels.py or seeds.py: {summary(error)}") from error
        if run is None:
            raise ValueError(
                f'{path} has no comparison over the shapes of Helion: see seeds.py --only "geometric means"'
            )
        runs.append(run)
        if _ran_on(run) != _ran_on(runs[0]):
            raise ValueError(f"{path} is of {_ran_on(run)}, and the first of {_ran_on(runs[0])}: merge each by itself")
    known = {unit: [run.calibration[unit] for run in runs if run.calibration.get(unit)] for unit in RATES}
    rates = {unit: statistics.median(found) for unit, found in known.items() if found}
    made = Measurements(runs[-1].environment, rates, runs=len(runs), seconds=sum(each.seconds for each in runs))
    for run in runs:
        made.shapes.update({key: shape for key, shape in run.shapes.items() if OURS in shape.microseconds})
    timed = tuple(
        f"{kernel}, {shape}, {name}: " for (_, kernel, shape), of in made.shapes.items() for name in of.microseconds
    )
    made.faults = [fault for run in runs for fault in run.faults if not fault.startswith(timed)]
    made.notes = [note for run in runs for note in run.notes]
    made.left = [key for key in dict.fromkeys(key for run in runs for key in run.left) if key not in made.shapes]
    return runs, made


def _ran_on(run: Measurements) -> str:
    versions = run.environment.get("versions", {})
    device = run.environment.get("device", "an unknown GPU")
    return f"{device}, torch {versions.get('torch')}, triton {versions.get('triton')}"


def runs_table(runs: Sequence[Measurements]) -> str:
    """The calibration of each run, and its time of the control."""
    rows = []
    for number, run in enumerate(runs, start=1):
        control = next((shape for kernel, _, shape in run.table("suite") if kernel == CONTROL), None)
        ours = control.microseconds[OURS] if control else None
        rows.append(
            (
                f"{number}, {run.environment['date']}",
                run.environment["device"],
                f"{run.seconds:.0f}",
                f"{run.calibration['bandwidth'] / 1e12:.2f}",
                *(
                    f"{run.calibration[unit] / 1e12:.0f}" if run.calibration.get(unit) else "-"
                    for unit in ("bf16", "fp8")
                ),
                f"{ours:.1f}" if ours else "-",
                f"{ours / control.work['floor_microseconds']:.3f}" if ours and control else "-",
            )
        )
    return markdown_table(HEADS, rows)
