"""How low a rate must be to be named (MTX207), and how often a healthy one is: by simulation, and by real reports.

usage: python benchmarks/fleet_rates.py [--fleets 200] [--seed 1]
       python benchmarks/fleet_rates.py --fit FOLDER

Simulated are fleets of hosts with four GPUs. Rates of healthy GPUs vary as the table rate_noise says: normal, and, as
few machines were measured, also with Student's t of five degrees of freedom, scaled to the same standard deviation,
whose tails are heavier. One GPU is slower by the deficit. Printed are the part of the fleets in which it is named, and
how many healthy GPUs are named in a thousand fleets.

--fit reads reports of `wheelproof smoke --level full --format json`, several of each machine, and prints for each rate
how much GPUs differ: rows for the table. A folder has one folder for each machine, or names such as MACHINE-RUN.json.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from wheel_checks.data import load
from wheel_checks.facts.fleet.rates import Measured, judge, noise_of
from wheel_checks.facts.fleet.topology import NOWHERE

GPUS = 4
DEFICITS = (0.01, 0.02, 0.03, 0.05, 0.08, 0.10, 0.15, 0.20, 0.25, 0.30)
Noise = Callable[[random.Random], float]


def normal(chance: random.Random) -> float:
    """A value with a mean of 0 and a standard deviation of 1."""
    return chance.gauss(0, 1)


def heavy(chance: random.Random) -> float:
    """As :func:`normal`, of Student's t with five degrees of freedom, whose variance is 5/3."""
    chi_squared = sum(chance.gauss(0, 1) ** 2 for _ in range(5))
    return chance.gauss(0, 1) / math.sqrt(chi_squared / 5) / math.sqrt(5 / 3)


def fleets(kind: str, hosts: int, noise: Noise, count: int, chance: random.Random) -> Iterator[list[float]]:
    """The rates of so many healthy fleets, relative to the median."""
    deviation = noise_of(kind)[0]
    for _ in range(count):
        yield [1 + deviation * noise(chance) for _ in range(hosts * GPUS)]


def slow_ones(kind: str, rates: list[float]) -> set[int]:
    """The numbers of the GPUs that are named."""
    measured = (Measured(str(n // GPUS), str(n), kind, "GPU", rate) for n, rate in enumerate(rates))
    return {int(one.fact) for one in judge(measured, NOWHERE).slow}


def simulate(count: int, seed: int) -> None:
    """Print the table."""
    print(f"{'rate':6} {'noise':7} {'hosts':>5} {'false/1000':>10}  " + " ".join(f"{d:>5.0%}" for d in DEFICITS))
    for kind in ("copy", "bf16", "fp8"):
        for name, noise in (("normal", normal), ("heavy", heavy)):
            for hosts in (3, 18, 200):
                chance = random.Random(f"{seed}{kind}{name}{hosts}")  # noqa: S311  # a simulation
                healthy = list(fleets(kind, hosts, noise, max(4, count * 3 // hosts), chance))
                false = sum(len(slow_ones(kind, rates)) for rates in healthy) / len(healthy)
                found = []
                for deficit in DEFICITS:
                    named = [0 in slow_ones(kind, [rates[0] * (1 - deficit), *rates[1:]]) for rates in healthy]
                    found.append(f"{sum(named) / len(named):>5.0%}")
                print(f"{kind:6} {name:7} {hosts:5} {1000 * false:10.1f}  {' '.join(found)}", flush=True)
    table = load("rate_noise")
    print(f"\nThe noise rests on {table['gpus']} GPUs: what is printed holds as far as other GPUs are like them.")


def fit(folder: Path) -> None:
    """Print how much the rates in reports of smoke differ between runs and between GPUs."""
    rates: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted(folder.rglob("*.json")):
        report = json.loads(path.read_text(encoding="utf-8"))
        machine = str(path.parent.relative_to(folder)) if path.parent != folder else path.stem.rpartition("-")[0]
        for subject in report["subjects"]:
            facts = subject.get("facts", {})
            for kind, rate in facts.get("rates_compared", {}).items():
                gpu = facts.get("uuid") or f"{machine} GPU {facts.get('index')}"
                rates[(facts.get("name", ""), kind)][gpu].append(float(rate))
    for (product, kind), by_gpu in sorted(rates.items()):
        values = [rate for runs in by_gpu.values() for rate in runs]
        means = [statistics.fmean(runs) for runs in by_gpu.values()]
        within = [statistics.stdev(runs) / statistics.fmean(runs) for runs in by_gpu.values() if len(runs) > 1]
        spread = (max(values) - min(values)) / max(values)
        deviation = statistics.stdev(values) / statistics.fmean(values) if len(values) > 1 else 0.0
        runs = f"{statistics.fmean(within):.4f}" if within else "unknown"
        between = f"{statistics.stdev(means) / statistics.fmean(means):.4f}" if len(means) > 1 else "unknown"
        print(f"# {product}: {len(by_gpu)} GPUs, {len(values)} runs; between GPUs {between}, between runs {runs}")
        print(f'[[rate]]\nname = "{kind}"\nspread = {spread:.3f}\nsd = {deviation:.4f}\nmeasured = true')
        print(f'source = "{min(values):.4g} to {max(values):.4g} on {len(by_gpu)} {product}"\n')


def main() -> int:
    """Simulate, or fit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fleets", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fit", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    if arguments.fit:
        fit(arguments.fit)
    else:
        simulate(arguments.fleets, arguments.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
