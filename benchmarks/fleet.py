"""How long `wheelproof report merge` takes for the doctor's reports of many hosts, and how much memory.

usage: python benchmarks/fleet.py [--hosts 10000] [--folder FOLDER]
       python benchmarks/fleet.py --trays 2000 [--faults 50] [--seed 1] [--fleets 1] [--folder FOLDER]

The reports are those of an HGX server with eight GPUs, as `wheelproof doctor --format json` writes them. One host in a
thousand has another driver, one in fifty a cause, and a tenth other firmware. For comparison `jq` counts the values of
a single fact in the same files, with all reports at once (-s) or one after another (-n). Printed are wall seconds, CPU
seconds, the peak of resident memory, and how much was written, all from one run. On a loaded machine only the CPU
seconds are comparable.

With --trays, the reports are from the doctor and smoke about GB200 trays with seeded faults: single GPUs that copy 8 %
slower, one switch whose all-reduce is 8 % slower, two racks with another firmware, trays with another driver, a link
that is down, and so on. Printed is how many of them were named, and how many other findings there were; the seeds of
several --fleets follow each other. The noise of the rates is from the table rate_noise, which rests on few machines.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.fleets import doctor_report, with_driver, with_vbios
from tests.support.hosts import cuda_fails, hgx, with_variables
from tests.support.synthetic_fleet import documents, found_by, make_fleet, seed_faults

ROOT = Path(__file__).resolve().parents[1]
FACT = ".subjects[0].facts.machine.driver"
WHEELPROOF = [sys.executable, "-m", "wheelproof", "report", "merge"]
WHAT = "wheelproof report merge"


def write_reports(folder: Path, hosts: int) -> int:
    """Write the reports of ``hosts`` hosts, and return their size in bytes."""
    usual = with_vbios(hgx(), "96.00.A5.00.01")
    kinds = {
        "usual": usual,
        "driver": with_driver(usual, "570.86.15"),
        "cause": with_variables(cuda_fails(usual, 100), CUDA_VISIBLE_DEVICES=""),
        "firmware": with_vbios(usual, "97.00.18.00.02"),
    }
    texts = {kind: json.dumps(doctor_report("HOSTNAME", facts), indent=2) for kind, facts in kinds.items()}
    size = 0
    for number in range(hosts):
        kind = "driver" if number % 1000 == 17 else "cause" if number % 50 == 3 else "firmware" * (number % 10 == 0)
        text = texts[kind or "usual"].replace("HOSTNAME", f"node-{number:05}")
        (folder / f"node-{number:05}.json").write_text(text, encoding="utf-8")
        size += len(text)
    return size


def measure(name: str, command: str, folder: Path) -> str:
    """Run a command of the shell in ``folder``, print its cost, and return its output.

    The memory is its largest process's.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "tools"), str(ROOT)])}
    with tempfile.TemporaryFile() as output:
        start = time.perf_counter()
        process = subprocess.Popen(["bash", "-c", command], cwd=folder, env=environment, stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        written = output.seek(0, os.SEEK_END)
        output.seek(0)
        text = output.read().decode()
    cpu = usage.ru_utime + usage.ru_stime
    peak = usage.ru_maxrss / 1024
    code = os.waitstatus_to_exitcode(status)
    print(f"{name:44} {seconds:8.1f} {cpu:8.1f} {peak:9,.0f} {written:12,}  {code}", flush=True)
    return text


def seeded(folder: Path, trays: int, faults: int, seed: int) -> bool:
    """Write the reports of a fleet with faults, merge them, and print the findings; returns whether they are exact."""
    names = make_fleet(trays)
    wrong = seed_faults(names, faults, seed)
    (folder / "hosts.txt").write_text("\n".join(names), encoding="utf-8")
    size = 0
    for command in ("doctor", "smoke"):
        (folder / command).mkdir(exist_ok=True)
    for host, command, text in documents(names, wrong, seed):
        size += (folder / command / f"{host}.json").write_text(text, encoding="utf-8")
    print(f"seed {seed}: {trays:,} trays, {len(wrong)} faults, {size / 1e6:,.0f} MB of reports")
    merge = f"exec {' '.join(WHEELPROOF)} doctor smoke --expect-hosts hosts.txt --format json"
    named, false = found_by(json.loads(measure(f"{WHAT} --format json", merge, folder)), wrong)
    print(f"{len(named)} of {len(wrong)} faults named, {len(false)} other findings", flush=True)
    for fault in wrong:
        if fault not in named:
            print(f"  not named: {fault.what} ({', '.join(fault.hosts[:3])})")
    for message in false:
        print(f"  false: {message}")
    return len(named) == len(wrong) and not false


def main() -> int:
    """Write the reports, run everything once, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--folder", help="write the reports here, and leave them")
    parser.add_argument("--trays", type=int, default=0, help="a fleet with seeded faults, of so many trays")
    parser.add_argument("--faults", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fleets", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.trays:
        good = True
        for seed in range(arguments.seed, arguments.seed + arguments.fleets):
            with tempfile.TemporaryDirectory() as temporary:
                folder = Path(arguments.folder or temporary)
                folder.mkdir(exist_ok=True)
                print(f"{'':44} {'wall s':>8} {'CPU s':>8} {'peak MiB':>9} {'bytes out':>12}  exit code")
                good = seeded(folder, arguments.trays, arguments.faults, seed) and good
        return 0 if good else 1
    ours = " ".join(WHEELPROOF)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(arguments.folder or temporary)
        folder.mkdir(exist_ok=True)
        size = write_reports(folder, arguments.hosts)
        print(f"{arguments.hosts:,} reports, {size / 1e6:,.0f} MB\n")
        print(f"{'':44} {'wall s':>8} {'CPU s':>8} {'peak MiB':>9} {'bytes out':>12}  exit code")
        for form in ("text", "json", "html"):
            measure(f"{WHAT} . --format {form}", f"exec {ours} . --format {form}", folder)
        measure(f"cat *.json | {WHAT} -", f"find . -name '*.json' -exec cat {{}} + | {ours} -", folder)
        if shutil.which("jq") is None:
            print("jq is not installed")
            return 0
        count = "group_by(.) | map({value: .[0], hosts: length})"
        find = "find . -name '*.json' -exec cat {} + |"
        measure("jq -s, values of one fact", f"{find} jq -s 'map({FACT}) | {count}'", folder)
        measure("jq -n, values of one fact, one after another", f"{find} jq -n '[inputs | {FACT}] | {count}'", folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
