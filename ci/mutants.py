"""Compare wheelproof, pip and uv on wheels with one change: ``python ci/mutants.py [--count 2000]``.

Nothing that pip or uv refuses, or that they unpack differently, may pass ``verify --depth full``. Prints a table by
kind and exits with 1 if a wheel passed that should not have. The wheels come from ``tests/support/mutants``. wheelproof
runs in the process of the experiment, by the function that the command calls.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ci.real_installers import Installed, Installers, index_of, versions
from tests.support.mutants import Mutant, mutants

WHEELPROOF = ("file, full", "file, quick", "range, full", "range, quick")
INSTALLERS = ("pip, file", "pip, index", "uv, file", "uv, streamed")


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The installers' errors, "" if they accept the wheel, and whether they write different files."""

    says: dict[str, str]
    differ: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One wheel: the verdicts of wheelproof ("pass", or the rules) and of the installers."""

    kind: str
    what: str
    digest: str
    judged: dict[str, str]
    asked: Verdicts

    @property
    def bad(self) -> bool:
        """True when an installer refuses the wheel, or they unpack different files."""
        return self.asked.differ or any(self.asked.says.values())


def judge(target: str, depth: str) -> str:
    """The verdict of ``wheelproof verify``: "pass", or the ids of rules with errors, or "undecided"."""
    from wheelproof.cli.main import main

    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
        code = main(["verify", target, "--depth", depth, "--format", "json"])
    if code == 0:
        return "pass"
    try:
        report = json.loads(output.getvalue())
    except ValueError:
        return f"exit {code}"
    results = [result for subject in report["subjects"] for result in subject["results"]]
    failed = {r["rule"] for r in results if r["outcome"] in ("fail", "error") and r["severity"] == "error"}
    return " ".join(sorted(failed)) or f"exit {code}"


def examine(mutant: Mutant, installers: Installers, folder: Path, known: Verdicts | None) -> Row:
    """All verdicts on one wheel; installers' verdicts may be ``known`` from an earlier run."""
    path = folder / digest(mutant) / mutant.file_name
    path.parent.mkdir()
    path.write_bytes(mutant.data)
    with index_of(mutant.file_name, mutant.data) as (index, requirement, url):
        judged = {"file, full": judge(str(path), "full"), "file, quick": judge(str(path), "quick")}
        judged |= {"range, full": judge(url, "full"), "range, quick": judge(url, "quick")}
        asked = known or ask(installers, path, index, requirement)
    shutil.rmtree(path.parent)
    return Row(mutant.kind, mutant.what, digest(mutant), judged, asked)


def ask(installers: Installers, path: Path, index: str, requirement: str) -> Verdicts:
    """The verdicts of pip and uv on a file, and on the same file on an index."""
    found: dict[str, Installed] = {"pip, file": installers.pip(path), "uv, file": installers.uv(path)}
    if requirement:
        found["pip, index"] = installers.pip_from(index, requirement)
        found["uv, streamed"] = installers.uv_from(index, requirement)
    says = {name: "" if one.accepted else one.says or "refused" for name, one in found.items()}
    files = [one.files for one in found.values() if one.accepted]
    return Verdicts(says, any(other != files[0] for other in files))


def digest(mutant: Mutant) -> str:
    """The key of a wheel in the file of verdicts."""
    return hashlib.sha256(mutant.file_name.encode() + mutant.data).hexdigest()[:24]


def examine_many(wheels: Sequence[Mutant], known: dict[str, Verdicts]) -> list[Row]:
    """The rows of some of the wheels, in one process."""
    with Installers() as installers, tempfile.TemporaryDirectory() as folder:
        return [examine(one, installers, Path(folder), known.get(digest(one))) for one in wheels]


def table(rows: Iterable[Row]) -> str:
    """By kind: wheels, refused by each installer, unpacked differently, and passed wrongly by wheelproof."""
    kinds: dict[str, Counter[str]] = {}
    for row in rows:
        for kind in (row.kind.partition(":")[0], "all"):
            count = kinds.setdefault(kind, Counter())
            count["wheels"] += 1
            count.update(name for name, text in row.asked.says.items() if text)
            count["differ"] += row.asked.differ
            count["bad"] += row.bad
            count.update(f"{name} stops" for name, text in row.judged.items() if text != "pass")
            count.update(f"{name} misses" for name, text in row.judged.items() if text == "pass" and row.bad)
            count["stricter"] += not row.bad and row.judged["file, full"] != "pass"
    columns = ["wheels", *INSTALLERS, "differ", "bad", *(f"{name} misses" for name in WHEELPROOF), "stricter"]
    lines = [" | ".join(["kind", *columns]), " | ".join(["---"] * (len(columns) + 1))]
    ordered = sorted(kinds.items(), key=lambda item: (item[0] == "all", item[0]))
    lines += [" | ".join([kind, *(str(count[column]) for column in columns)]) for kind, count in ordered]
    return "\n".join(f"| {line} |" for line in lines)


def main() -> int:
    """Run the experiment."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--verdicts", type=Path, help="keep what pip and uv say in this file, and do not ask twice")
    parser.add_argument("--output", type=Path, help="write every row to this file")
    options = parser.parse_args()
    begun = time.monotonic()
    known: dict[str, Verdicts] = {}
    if options.verdicts and options.verdicts.exists():
        for line in options.verdicts.read_text(encoding="utf-8").splitlines():
            name, says, differ = json.loads(line)
            known[name] = Verdicts(says, differ)
    wheels = mutants(options.count)
    shares = [wheels[start : start + 20] for start in range(0, len(wheels), 20)]
    rows: list[Row] = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for share in pool.map(examine_many, shares, [known] * len(shares)):
            rows += share
            print(f"{len(rows)} of {len(wheels)} after {time.monotonic() - begun:.0f} s", file=sys.stderr)
            if options.verdicts:
                new = [[row.digest, row.asked.says, row.asked.differ] for row in share if row.digest not in known]
                with options.verdicts.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps(line) + "\n" for line in new)
    if options.output:
        options.output.write_text(json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8")
    print(f"{len(rows)} wheels, {versions()}, {time.monotonic() - begun:.0f} s\n{table(rows)}")
    wrong = [row for row in rows if row.bad and "pass" in (row.judged["file, full"], row.judged["range, full"])]
    for row in wrong:
        refusals = "; ".join(f"{name}: {text}" for name, text in row.asked.says.items() if text)
        print(f"MISSED {row.kind}: {row.what}: {refusals or 'unpacked differently'}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
