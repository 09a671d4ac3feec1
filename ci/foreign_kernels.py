"""Smoke-test kernels of other packages, unmodified: ``tests/data/foreign``, each file a description of some 28 lines.

    python -m pip download --no-deps --dest foreign-wheels -r tests/data/foreign/requirements.txt    # 2.3 MB, once
    python ci/foreign_kernels.py --wheels foreign-wheels --output foreign.json                       # on a GPU
    python ci/foreign_kernels.py --wheels foreign-wheels --device interpret --python .venv-kernels/bin/python

The wheels are unpacked into a temporary folder, so that nothing is installed and no network is needed; the interpreter
needs torch and triton alone. For each file the report has its lines, the results of its cases, timed runs and
compilations, and the number of automatic mutants that its cases catch. Exit code 1 when a kernel is not right, 3 when
something could not be checked.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "data" / "foreign"
LARGEST = 60 << 20  # bytes of all wheels together, unpacked four times as many
Record = dict[str, Any]


class FolderError(Exception):
    """The folder of wheels cannot be used; the message says why."""


def unpack(wheels: Path, place: Path) -> list[str]:
    """Unpack every wheel of a folder, and return their names and versions. Raises FolderError."""
    found = sorted(wheels.glob("*.whl"))
    size = sum(path.stat().st_size for path in found)
    if not found or size > LARGEST:
        what = f"has {size >> 20} MiB of wheels; the limit is {LARGEST >> 20}" if found else "has no wheel"
        raise FolderError(f"{wheels} {what}")
    for path in found:
        if not path.stem.endswith("-none-any"):
            raise FolderError(f"{path.name} is not a wheel for every platform; expected pure Python")
        with zipfile.ZipFile(path) as archive:
            archive.extractall(place)
    return [" ".join(path.stem.split("-")[:2]) for path in found]


def suite(python: str, place: Path, files: Sequence[Path], options: Sequence[str]) -> Record:
    """The document of one run of the suite with ``files`` under ``python``, which sees the packages in ``place``."""
    sources = [word for file in files for word in ("--kernels", str(file))]
    only = ["--only", ",".join(file.stem for file in files)]
    path = os.pathsep.join(filter(None, (str(ROOT), str(place), os.environ.get("PYTHONPATH", ""))))
    done = subprocess.run(
        [python, "-m", "kernels_smoke", "--format", "json", *sources, *only, *options],
        env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        cwd=ROOT,
    )
    if not done.stdout:
        raise FolderError(f"the suite exited with code {done.returncode}, without a report")
    document: Record = json.loads(done.stdout)
    return document


def summary(files: Sequence[Path], documents: dict[str, Record]) -> Iterator[Record]:
    """For each file its lines, and for each of its kernels the outcomes, by the name of the run."""
    for file in files:
        names = {
            kernel["name"]
            for document in documents.values()
            for family in document["families"]
            if Path(family["source"]) == file
            for kernel in family["kernels"]
        }
        yield {
            "file": file.name,
            "lines": len(file.read_text(encoding="utf-8").splitlines()),
            "error": _error(file, documents.values()),
            "kernels": {
                name: {run: dict(_outcomes(d, name)) for run, d in documents.items()} for name in sorted(names)
            },
        }


def _error(file: Path, documents: Iterable[Record]) -> str:
    """The fault of the file itself."""
    probes = [probe for document in documents for probe in document["probes"]]
    return next((p["message"] for p in probes if p["name"] == f"kernels {file}" and p["outcome"] == "error"), "")


def _outcomes(document: Record, kernel: str) -> Counter[str]:
    records = [*document["cases"], *document["speeds"], *document["compiled"], *document["mutants"]]
    return Counter(record["outcome"] for record in records if record["kernel"] == kernel)


def table(rows: Iterable[Record]) -> Iterator[str]:
    """The summary for people, one line for each kernel and run."""
    for row in rows:
        yield f"{row['file']}, {row['lines']} lines{': ' if row['error'] else ''}{row['error']}"
        for kernel, runs in row["kernels"].items():
            for run, outcomes in runs.items():
                counted = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())) or "nothing"
                yield f"  {kernel:26} {run:14} {counted}{_score(outcomes)}"


def _score(outcomes: dict[str, int]) -> str:
    caught, missed = outcomes.get("caught", 0), outcomes.get("missed", 0)
    return f" (score {caught / (caught + missed):.0%})" if caught + missed else ""


def main() -> int:
    """Run the files and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheels", type=Path, required=True, help="the folder with the wheels")
    parser.add_argument("--files", type=Path, nargs="*", help="descriptions (default: those of tests/data/foreign)")
    parser.add_argument("--python", default=sys.executable, help="the interpreter with torch and triton")
    parser.add_argument("--device", choices=("cuda", "interpret"), default="cuda")
    parser.add_argument("--level", choices=("quick", "full", "deep"), default="full")
    parser.add_argument("--target", default="sm_90,sm_100", help='GPUs to compile for; "" compiles for none')
    parser.add_argument("--no-mutants", action="store_true")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--output", type=Path, help="write the summary and the suite's documents as JSON")
    arguments = parser.parse_args()
    files = [file.resolve() for file in arguments.files or sorted(FOLDER.glob("*.py"))]
    run = ["--device", arguments.device, "--seed", arguments.seed]
    runs = {"run": [*run, "--level", arguments.level]}
    if arguments.target:
        runs["compile-only"] = ["--compile-only", "--target", arguments.target, "--level", arguments.level]
    if not arguments.no_mutants:
        runs["mutants"] = [*run, "--mutants"]
    documents: dict[str, Record] = {}
    with tempfile.TemporaryDirectory() as name:
        try:
            packages = unpack(arguments.wheels, Path(name))
            for what, options in runs.items():
                documents[what] = suite(arguments.python, Path(name), files, options)
        except (FolderError, OSError, zipfile.BadZipFile) as error:
            print(error, file=sys.stderr)
            return 3
    rows = list(summary(files, documents))
    environment = documents["run"]["environment"]
    gpus = ", ".join(gpu["name"] for gpu in environment["gpus"]) or arguments.device
    versions = ", ".join(f"{each} {environment[each]['version']}" for each in ("torch", "triton") if environment[each])
    print(f"{gpus}, {versions}; {', '.join(packages)}", *table(rows), sep="\n")
    for what, document in documents.items():
        print(f"{what}: {document['verdict']} in {document['seconds']:.1f} s: {document['message']}")
    if arguments.output:
        whole = {"packages": packages, "summary": rows, "documents": documents}
        arguments.output.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    verdicts = {document["verdict"] for document in documents.values()}
    return 1 if "fail" in verdicts else 3 if "undecided" in verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
