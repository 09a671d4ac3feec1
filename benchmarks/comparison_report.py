"""Report ``kernels.py`` and ``seeds.py`` against torch.compile: markdown and JSON. Needs no torch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.shapes import HELION
from kernels_smoke.suite import registry

OURS, EAGER, COMPILED = "ours", "eager", "torch.compile"
CONTROL = "fused_add_rms_norm"  # timed in every run, so that runs can be compared
Key = tuple[str, str, str]  # table, kernel, shape


@dataclass
class Shape:
    """One row: the work of our kernel, and microseconds by implementation.

    ``called`` are those as called: of a plain call, a plan, a call in a CUDA graph, by implementation.
    """

    work: dict[str, Any] = field(default_factory=dict)
    microseconds: dict[str, float] = field(default_factory=dict)
    called: dict[str, dict[str, float]] = field(default_factory=dict)

    def speedup(self, over: str) -> float | None:
        """How many times as long ``over`` takes as ours; None when one of them was not timed."""
        if OURS not in self.microseconds or over not in self.microseconds:
            return None
        return self.microseconds[over] / self.microseconds[OURS]

    def best_peer(self) -> str | None:
        """The fastest of the others, eager torch and torch.compile omitted."""
        peers = [name for name in self.microseconds if name not in {OURS, EAGER, COMPILED}]
        return min(peers, key=lambda name: self.microseconds[name]) if peers else None


@dataclass
class Measurements:
    """The records of the children of a run, or of several ``runs``. ``left`` are shapes not reached."""

    environment: dict[str, Any]
    calibration: dict[str, Any]
    left: list[Key] = field(default_factory=list)
    shapes: dict[Key, Shape] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    runs: int = 1

    def add(self, record: dict[str, Any]) -> None:
        """Keep one record of ``comparison.compare``."""
        key = (record["table"], record["kernel"], record["shape"])
        shape = self.shapes.setdefault(key, Shape())
        name = record["implementation"]
        if name == OURS and (record["fault"] or record["microseconds"] is not None) and key in self.left:
            self.left.remove(key)
        what = f"{record['kernel']}, {record['shape']}, {name}"
        if record["fault"]:
            self.faults.append(f"{what}: {record['fault']}")
        if record["microseconds"] is None:
            return
        shape.microseconds[name] = record["microseconds"]
        if record["called"]:
            shape.called[name] = record["called"]
        if record["note"]:
            self.notes.append(f"{what}: {record['note']}")
        if name == OURS:
            shape.work = {key: record[key] for key in WORK}

    def ended(self, kernel: str, fault: str) -> None:
        """Note that the child of ``kernel`` ended, and how."""
        if fault:
            self.faults.append(f"{kernel}: its process: {fault}")

    def table(self, name: str) -> Iterator[tuple[str, str, Shape]]:
        """(kernel, shape, measurements) of one table, if ours was timed."""
        order = [entry.name for entry in registry.ENTRIES]
        for (table, kernel, shape), measured in sorted(self.shapes.items(), key=lambda item: order.index(item[0][1])):
            if table == name and OURS in measured.microseconds:
                yield kernel, shape, measured

    def as_json(self) -> dict[str, Any]:
        """Everything, to be kept."""
        rows = [
            {
                "table": table,
                "kernel": kernel,
                "shape": shape,
                **each.work,
                "times": each.microseconds,
                "called": each.called,
            }
            for (table, kernel, shape), each in self.shapes.items()
        ]
        facts = {"environment": self.environment, "calibration": self.calibration, "seconds": self.seconds}
        return {**facts, "rows": rows, "faults": self.faults, "notes": self.notes, "left": self.left}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Measurements:
        """Decode the saved form."""
        facts = {name: values[name] for name in ("environment", "calibration", "seconds", "faults", "notes")}
        made = cls(**facts, left=[(table, kernel, shape) for table, kernel, shape in values["left"]])
        for row in values["rows"]:
            work = {name: row[name] for name in WORK if name in row}
            made.shapes[row["table"], row["kernel"], row["shape"]] = Shape(work, row["times"], row["called"])
        return made


RATES = ("bandwidth", "bf16", "fp8")  # of a calibration
WORK = ("floor_microseconds", "bytes", "flops", "unit", "bar", "versus")


@dataclass(frozen=True)
class Mean:
    """Our geometric mean against torch.compile over the shapes of Helion's table, and Helion's own on an H100."""

    kernel: str
    ours: float
    helion: float
    speedups: tuple[float, ...]


def means(results: Measurements) -> list[Mean]:
    """One for each kernel of Helion's table that was timed next to torch.compile."""
    speedups: dict[str, list[float]] = {}
    for kernel, _, shape in results.table("helion"):
        if (speedup := shape.speedup(COMPILED)) is not None:
            speedups.setdefault(kernel, []).append(speedup)
    return [
        Mean(kernel, geometric_mean(speedups[kernel]), row.speedup, tuple(speedups[kernel]))
        for kernel, row in HELION.items()
        if kernel in speedups
    ]


def geometric_mean(values: Sequence[float]) -> float:
    """The n-th root of the product of ``values``."""
    return math.exp(sum(map(math.log, values)) / len(values))


# Markdown


def markdown(results: Measurements) -> str:
    """The whole report."""
    versions = ", ".join(f"{name} {version}" for name, version in results.environment["versions"].items())
    rates = results.calibration
    measured = [f"{rates['bandwidth'] / 1e12:.2f} TB/s"]
    measured += [f"{rates[unit] / 1e12:.0f} TFLOP/s {unit}" for unit in ("bf16", "fp8") if rates.get(unit)]
    parts = [
        f"{results.environment['device']}, {results.environment['date']}: {versions}. Measured in "
        f"{'the same run' if results.runs == 1 else f'{results.runs} runs, in the median'}: "
        f"{', '.join(measured)}. Microseconds of one call inside a CUDA graph over rotated inputs, median of replays; "
        f"{results.seconds:.0f} s altogether.",
        _suite_table(results),
        _called_table(results),
        _list("What could not be timed, and why:", results.faults),
        _list("Timed in another way:", results.notes),
        _list("Not reached:", [f"{kernel}, {shape}" for _, kernel, shape in results.left]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _suite_table(results: Measurements) -> str:
    heads = ("kernel", "shape", "ours, us", "floor, us", "ours / floor", "eager, us", "torch.compile, us", "best peer")
    rows = []
    for kernel, name, shape in results.table("suite"):
        ours, peer = shape.microseconds[OURS], shape.best_peer()
        rows.append(
            (
                kernel,
                name,
                f"{ours:.1f}",
                f"{shape.work['floor_microseconds']:.1f}",
                f"{ours / shape.work['floor_microseconds']:.2f}",
                _against(shape, EAGER),
                _against(shape, COMPILED),
                f"{peer} {_against(shape, peer)}" if peer else "-",
            )
        )
    return markdown_table(heads, rows) + "\n\nIn brackets: how many times as long it takes as ours." if rows else ""


def _called_table(results: Measurements) -> str:
    """The cost of calls that exceeds the GPU's part; "" if none was timed."""
    heads = ("kernel", "shape", "plain call, us", "plan, us", "CUDA graph, us", "eager", "torch.compile", "best peer")
    rows = []
    for table in ("suite", "small"):
        for kernel, name, shape in results.table(table):
            if ours := shape.called.get(OURS):
                cells = [f"{ours[kind]:.1f}" if kind in ours else "-" for kind in ("plain", "plan", "graph")]
                peer = shape.best_peer()
                others = [_called(shape, each) for each in (EAGER, COMPILED)]
                best = f"{peer} {_called(shape, peer)}" if peer else "-"
                rows.append((kernel, name, *cells, *others, best))
    if not rows:
        return ""
    how = (
        "As called: the wall time of 1,000 calls back to back over 1,000, all on the same tensors. A plan is a call "
        "whose arguments are checked already; of the others, a plain call / a call in a CUDA graph. Where ours "
        "takes longer than 0.5 ms on the GPU, all are omitted."
    )
    return f"{how}\n\n{markdown_table(heads, rows)}"


def _called(shape: Shape, name: str) -> str:
    times = shape.called.get(name)
    return " / ".join(f"{times[kind]:.1f}" if kind in times else "-" for kind in ("plain", "graph")) if times else "-"


def _against(shape: Shape, name: str) -> str:
    speedup = shape.speedup(name)
    return "-" if speedup is None else f"{shape.microseconds[name]:.1f} ({speedup:.2f}x)"


def mean_table(results: Measurements) -> str:
    """Our geometric means next to Helion's; empty when nothing was timed."""
    heads = ("kernel", "ours against torch.compile", "least", "greatest", "shapes", "Helion's on an H100")
    rows = [
        (
            mean.kernel,
            f"{mean.ours:.3f}x",
            f"{min(mean.speedups):.2f}x",
            f"{max(mean.speedups):.2f}x",
            str(len(mean.speedups)),
            f"{mean.helion:.3f}x",
        )
        for mean in means(results)
    ]
    if not rows:
        return ""
    return "Geometric means over the shapes of the Qwen3 models (1 to 8192 tokens):\n\n" + markdown_table(heads, rows)


def shape_table(results: Measurements) -> str:
    """The shapes of the means; "" if nothing was timed."""
    rows = [
        (kernel, name, f"{shape.microseconds[OURS]:.2f}", _against(shape, EAGER), _against(shape, COMPILED))
        for kernel, name, shape in results.table("helion")
    ]
    if not rows:
        return ""
    return "Each of those shapes:\n\n" + markdown_table(
        ("kernel", "shape", "ours, us", "eager, us", "torch.compile, us"), rows
    )


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in lines)


def _list(heading: str, items: Sequence[str]) -> str:
    return "\n".join((heading, "", *(f"- {item}" for item in items))) if items else ""


def document(results: Measurements) -> dict[str, Any]:
    """The suite's table in the shape of a ``kernels_smoke/1`` document, which ``roofline.picture`` draws."""
    speeds = []
    for kernel, name, shape in results.table("suite"):
        ours, work = shape.microseconds[OURS], shape.work
        peer = shape.microseconds.get(work["versus"])
        met = ours <= work["bar"] * (peer or work["floor_microseconds"])
        facts = {"kernel": kernel, "case": name, "microseconds": ours, "peer_microseconds": peer, **work}
        speeds.append({**facts, "outcome": "pass" if met else "slow"})
    versions = results.environment["versions"]
    return {
        "calibration": results.calibration,
        "measured": "measured in this run" if results.runs == 1 else f"measured in {results.runs} runs, in the median",
        "speeds": speeds,
        "started": results.environment["date"],
        "environment": {
            "gpus": [{"name": results.environment["device"]}],
            **{name: {"version": versions[name]} for name in ("torch", "triton")},
        },
    }
