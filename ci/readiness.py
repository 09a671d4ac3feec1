"""Which accelerator packages are ready for GH200, GB200, H100 and B200: asked of wheelproof, and checked.

Without options, every package of ``ci/oracle/packages.toml`` is judged on both machines at its latest release, and the
table goes to standard output (``--markdown FILE`` writes the page). ``--check`` compares each row with the truth: the
wheel that pip takes, downloaded whole, and each of its native members read by readelf and cuobjdump. ``--make-truth``
makes that first, for what ``--truth FILE`` does not have yet: 25 GB of downloads, deleted one by one. It needs readelf
of binutils and the cuobjdump of the package nvidia-cuda-cuobjdump (``--cuobjdump PATH``).

Exits 1 when a row is wrong, 3 when one is undecided, else 0.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from ci.oracle import answers, comparison, page, truth, wheels  # noqa: E402  the folder above is not installed

Row = dict[str, Any]


def main() -> int:
    """Make the truth, run wheelproof, compare, and write the page, as the options say."""
    options = _parser().parse_args()
    packages = options.package or tomllib.loads((ROOT / "ci/oracle/packages.toml").read_text())["names"]
    if options.make_truth:
        _make_truth(packages, options)
    known = {(row["package"], row["machine"]): row for row in _lines(options.truth)}
    pairs = [(package, machine) for package in sorted(packages, key=str.lower) for machine in wheels.MACHINES]
    rows, judged = [], []
    with ThreadPoolExecutor(options.jobs) as pool, options.answers.open("w") as out:
        for row in pool.map(lambda key: answers.ask(key[0], key[1], known.get(key)), pairs):
            truths = (known.get((row["package"], machine)) for machine in (row["machine"], _other(row)))
            rows.append(row)
            judged.append(comparison.judge(row, *truths))
            out.write(json.dumps(row | {"outcome": judged[-1].outcome, "differs": judged[-1].why}) + "\n")
            out.flush()
    text = page.render(rows, judged if options.check else None, _commit())
    if options.markdown:
        options.markdown.write_text(text)
    else:
        print(text)
    return comparison.exit_code(judged) if options.check else 0


def _make_truth(packages: list[str], options: argparse.Namespace) -> None:
    """Append a row to the file of the truth for each package and machine that it does not have, as each is done."""
    done = {(row["package"], row["machine"]) for row in _lines(options.truth)}
    missing = [(package, machine) for package in packages for machine in wheels.MACHINES]
    with (
        tempfile.TemporaryDirectory(dir=options.scratch) as scratch,
        ProcessPoolExecutor(options.jobs) as pool,
        options.truth.open("a") as out,
    ):
        begun = [
            pool.submit(truth.of_package, *key, Path(scratch), options.cuobjdump) for key in missing if key not in done
        ]
        for future in as_completed(begun):
            row = future.result()
            out.write(json.dumps(row) + "\n")
            out.flush()
            print(row["package"], row["machine"], row["wheel"] or row["reason"], row["seconds"], file=sys.stderr)


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _other(row: Row) -> str:
    return next(machine for machine in wheels.MACHINES if machine != row["machine"])


def _lines(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", nargs="*", help="packages to judge (default: those of ci/oracle/packages.toml)")
    parser.add_argument("--check", action="store_true", help="compare each row with the truth")
    parser.add_argument("--make-truth", action="store_true", help="download and read what the truth does not have yet")
    parser.add_argument("--truth", type=Path, default=ROOT / "build/truth.jsonl", help="the file of the truth")
    parser.add_argument(
        "--answers", type=Path, default=Path(os.devnull), help="write each answer to this file, as a line of JSON"
    )
    parser.add_argument("--markdown", type=Path, help="write the page to this file")
    parser.add_argument("--cuobjdump", default=shutil.which("cuobjdump") or "cuobjdump", help="the path of cuobjdump")
    parser.add_argument("--scratch", type=Path, help="where downloads are unpacked (8 GB)")
    parser.add_argument("--jobs", type=int, default=2, help="how many at once")
    return parser


if __name__ == "__main__":
    sys.exit(main())
