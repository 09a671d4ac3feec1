"""Faults seeded in the kernels, and whether ``kernels_smoke`` catches them. It takes a GPU.

usage: python ci/kernel_faults.py [--level quick,full,deep] [--root DIR] [--seed N] [--state FILE] [--seconds 500]
                                  [--faults FILE] [--compile-only sm_90]

Copies ``kernels_smoke`` from DIR (this repository's when it is not given; another checkout for comparison), changes at
most one line of each kernel, and runs the suite on the copy; then again with the next faults of kernels that have
several. The faults are those of ``ci/kernel_faults.toml``, or of another FILE of that form: authors who had not seen
the cases wrote ``ci/kernel_faults_blind.toml``, ``ci/kernel_faults_held_back.toml``,
``ci/kernel_faults_second_blind.toml`` and ``ci/kernel_faults_2026.toml``. Their scores are in docs/benchmarks/smoke.md;
once a list has led to a case, its score measures no more how much the suite finds.

A fault is caught when a case or a timed run of its kernel is wrong, crashes or hangs. One that does not compile, or is
refused at its launch, is "refused" and shows nothing: it must be mended. With ``--state FILE`` a run goes on where the
last one ended, and begins no round of faults that may take longer than the rest of ``--seconds``.

``--compile-only sm_90`` compiles the faults for that GPU and runs nothing: it needs no GPU.

The exit code is 0 when all were caught at every level, 1 when one was missed or refused, 3 when rounds are left.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_suffix(".toml")
LEVELS = ("quick", "full", "deep")
SECONDS = {"quick": 40.0, "full": 100.0, "deep": 280.0}  # that a round takes at most, to plan with
SHOWS = {"wrong", "crash", "hang", "fail"}  # of a speed, "slow" is no catch: the fault may well be fast
COMPILER = re.compile(r"LLVM ERROR|mlir|ptxas|PassManager|CompilationError|Assertion .* failed", re.IGNORECASE)
SMID = (
    'tl.inline_asm_elementwise("mov.u32 $0, %smid;", "=r,r", [({}).to(tl.int32)], dtype=tl.int32, is_pure=False, '
    "pack=1)"
)


@dataclass(frozen=True)
class Fault:
    """In the file of ``kernel``, ``old`` becomes ``new``; ``also`` are kernels that use this one's code."""

    kernel: str
    file: str
    what: str
    old: str
    new: str
    also: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its name in a report."""
        return f"{self.kernel}: {self.what}"

    @property
    def text(self) -> str:
        """``new`` with the number of the multiprocessor written out."""
        return re.sub(r"smid\((\w+)\)", lambda found: SMID.format(found[1]), self.new)


def main() -> int:
    """Seed, run, report."""
    parser = argparse.ArgumentParser(description="Seed faults in the kernels and see whether the suite catches them.")
    parser.add_argument("--level", default="full", metavar="LEVEL,...", help=f"some of {', '.join(LEVELS)}")
    parser.add_argument("--root", type=Path, default=ROOT, metavar="DIR", help="the checkout whose suite is tried")
    parser.add_argument("--faults", type=Path, default=LIST, metavar="FILE")
    parser.add_argument("--seed", type=int, default=20261126)
    parser.add_argument("--state", type=Path, metavar="FILE", help="keeps what was found, for the next run")
    parser.add_argument("--seconds", type=float, default=500.0, help="begin no round that may take longer")
    parser.add_argument("--compile-only", default="", metavar="TARGET", help="compile the faults, and run nothing")
    options = parser.parse_args()
    faults = read(options.faults)
    levels = ("compile",) if options.compile_only else tuple(options.level.split(","))
    found: dict[str, dict[str, str]] = json.loads(options.state.read_text()) if _exists(options.state) else {}
    until, left = time.monotonic() + options.seconds, 0
    for level in levels:
        for some in rounds(faults):
            if {fault.name for fault in some} <= found.setdefault(level, {}).keys():
                continue
            if time.monotonic() + SECONDS.get(level, 0.0) > until and any(found.values()):
                left += 1
                continue
            found[level] |= try_round(options, some, level)
            if options.state:
                options.state.parent.mkdir(parents=True, exist_ok=True)
                options.state.write_text(json.dumps(found, indent=1), encoding="utf-8")
    print("\n".join(summary(faults, levels, found)))
    if left:
        print(f"{left} rounds are left: repeat this command")
        return 3
    wanted = "compiled" if options.compile_only else "caught"
    return 0 if all(result.startswith(wanted) for level in levels for result in found[level].values()) else 1


def _exists(path: Path | None) -> bool:
    return path is not None and path.exists()


def read(path: Path) -> list[Fault]:
    """The faults of a list."""
    rows = tomllib.loads(path.read_text(encoding="utf-8"))["fault"]
    return [Fault(**{**row, "also": tuple(row.get("also", ()))}) for row in rows]


def rounds(faults: Sequence[Fault]) -> list[list[Fault]]:
    """The faults, at most one of each kernel in each round, and none whose kernel uses another's that is changed."""
    found: list[list[Fault]] = []
    for fault in faults:
        taken = {fault.kernel, *fault.also}
        place = next((some for some in found if not any(taken & {f.kernel, *f.also} for f in some)), None)
        if place is None:
            found.append([fault])
        else:
            place.append(fault)
    return found


def try_round(options: argparse.Namespace, faults: Sequence[Fault], level: str) -> dict[str, str]:
    """The result of each fault, by name: caught, refused or missed, and by what."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        seed_faults(options.root / "kernels_smoke", Path(folder), faults)
        report = run(Path(folder), level, options.seed, options.compile_only)
    result = f"{report['verdict'].upper()} in {time.monotonic() - start:.1f} s"
    print(f"{len(faults)} faults at level {level}: the suite said {result}: {report['message']}", flush=True)
    judge = compiled if options.compile_only else result_of
    found = {fault.name: judge(report, fault) for fault in faults}
    for name, result in found.items():
        print(f"  {result.partition(':')[0]:8} {name}: {result.partition(': ')[2]}".rstrip(": "), flush=True)
    for other in healthy_but_bad(report, faults):
        print(f"  unexpected: {other}", flush=True)
    return found


def seed_faults(package: Path, folder: Path, faults: Sequence[Fault]) -> None:
    """Copy ``package`` into ``folder`` and change it. Raises SystemExit unless a text occurs exactly once."""
    shutil.copytree(package, folder / "kernels_smoke", ignore=shutil.ignore_patterns("__pycache__"))
    for fault in faults:
        path = folder / "kernels_smoke" / fault.file
        source = path.read_text(encoding="utf-8")
        if (count := source.count(fault.old)) != 1:
            raise SystemExit(f"{fault.name}: {fault.old!r} stands {count} times in {path.name}")
        path.write_text(source.replace(fault.old, fault.text), encoding="utf-8")


def run(folder: Path, level: str, seed: int, target: str = "") -> dict[str, Any]:
    """The suite's report on the copy in ``folder``, with an empty cache: run on a GPU, or compiled for ``target``."""
    environment = os.environ | {"PYTHONPATH": str(folder), "TRITON_CACHE_DIR": str(folder / "cache")}
    what = ["--compile-only", "--target", target] if target else ["--level", level]
    if not target and "--gpus" in (folder / "kernels_smoke/suite/cli.py").read_text(encoding="utf-8"):
        what += ["--gpus", "0"]  # an older suite tries one GPU and has no such option
    command = [sys.executable, "-m", "kernels_smoke", *what, "--seed", str(seed), "--format", "json"]
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, check=False)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def result_of(report: Mapping[str, Any], fault: Fault) -> str:
    """``caught: by what``, ``refused: why`` or ``missed``, by the records of the fault's kernel."""
    refused = ""
    for record in records(report):
        if record["kernel"] != fault.kernel:
            continue
        result = f"{record['case']}: {record['message']}"[:160]
        words = str((record.get("evidence") or {}).get("last words", ""))
        if record["outcome"] == "refused" or (record["outcome"] == "crash" and COMPILER.search(words)):
            refused = refused or result
        elif record["outcome"] in SHOWS:
            return f"caught: {result}"
    return f"refused: {refused}" if refused else "missed"


def compiled(report: Mapping[str, Any], fault: Fault) -> str:
    """``compiled``, or ``refused: why``, in a report of compilations."""
    own = [record for record in report["compiled"] if record["kernel"] == fault.kernel]
    for record in own:
        if record["outcome"] not in {"pass", "skip"} and any(
            each.get("fault") == "refused" for each in record.get("faults") or [{"fault": "refused"}]
        ):
            result = [each["message"] for each in record.get("faults") or []] or [record.get("message", "")]
            return f"refused: {'; '.join(result)}"[:300]
    return "compiled" if own else "refused: nothing was compiled"


def healthy_but_bad(report: Mapping[str, Any], faults: Sequence[Fault]) -> Iterator[str]:
    """Failures of unchanged kernels."""
    changed = {name for fault in faults for name in (fault.kernel, *fault.also)}
    for record in records(report):
        if record["outcome"] in {*SHOWS, "refused"} and record["kernel"] not in changed:
            yield f"{record['kernel']} / {record['case']}: {record['message']}"[:200]


def records(report: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Cases and timed runs."""
    return [record for key in ("cases", "speeds") for record in report[key]]


def summary(faults: Sequence[Fault], levels: Sequence[str], found: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """How many were caught, refused and missed at each level, and which were not caught."""
    names = [fault.name for fault in faults]
    for level in levels:
        of_level = found.get(level, {})
        counts = Counter(of_level[name].partition(":")[0] for name in names if name in of_level)
        result = ", ".join(
            f"{counts[word]} {word}" for word in ("caught", "compiled", "refused", "missed") if counts[word]
        )
        yield f"level {level}: of {len(names)} faults {result or 'none was tried'}"
        for name in names:
            if of_level.get(name, "caught").partition(":")[0] not in {"caught", "compiled"}:
                yield f"  {of_level[name].partition(':')[0]:8} {name}"


if __name__ == "__main__":
    sys.exit(main())
