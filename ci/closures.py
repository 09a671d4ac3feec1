"""Import packages from a real install, and score `verify PACKAGE --depth links` against the linker.

usage: python ci/closures.py --measure [NAME...] [--scratch FOLDER]
           install and import for real; rewrites ci/closures.json
       python ci/closures.py --check COMMAND [NAME...]
           score COMMAND; needs nothing installed

NAME is a part of a package's name. --measure installs one package at a time with its whole closure (up to 8 GB) and
deletes it again; it needs Linux on x86_64, uv, cc and nm. ci/real_import.py describes the import's environment: a stub
driver, no GPU, and no CUDA toolkit of the host, which would hide missing libraries.

The versions are pinned when a package is first measured, so that --check asks about the same files. A package works
when its modules import and each native file that the import opened is loaded. `host` is a regular expression, written
by hand, for an import error that is this host's (no GPU): then the opened files decide. `optional` is one for files
that the package works without (plug-ins, libraries that it tries). A module may name a function that is called after
its import (`libcudf:load_library`). A package without modules (NVIDIA's libraries) works when each of its files loads
after its siblings. `not_loaded` names the files that do not load even after the import, with the library or symbol
that is missing: most are plug-ins and alternatives, so they decide nothing, but an error of the command must be about
one of them.
"""

from __future__ import annotations

import argparse
import collections
import datetime as dt
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from ci import real_import  # noqa: E402  the folder above is not installed

TABLE = Path(__file__).with_suffix(".json")
LARGEST_CACHE = 6 << 30  # bytes of libraries in uv's cache, beyond which it is emptied
SECONDS = 300  # for one answer of the command
IGNORED = ("PIP_FIND_LINKS", "UV_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "UV_EXTRA_INDEX_URL")  # other builds of a package

Row = dict[str, Any]


def main() -> int:
    """Measure or check; 1 when a verdict is false."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--measure", action="store_true", help="install and import the packages")
    parser.add_argument("--missing", action="store_true", help="measure only packages that have no truth")
    parser.add_argument("--check", metavar="COMMAND", help="score COMMAND")
    parser.add_argument("--scratch", type=Path, help="where packages are installed (default: a temporary folder)")
    parser.add_argument("--json", type=Path, help="write the verdicts of --check")
    options = parser.parse_args()
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    named = [
        row for row in table["packages"] if not options.names or any(part in row["package"] for part in options.names)
    ]
    if options.check:
        return check(options.check, [row for row in named if "works" in row], options.json)
    if not options.measure:
        parser.error("name what to do: --measure or --check")
    with tempfile.TemporaryDirectory() as name:
        root = options.scratch or Path(name)
        root.mkdir(parents=True, exist_ok=True)
        measure(table, [row for row in named if not (options.missing and "works" in row)], root)
    return 0


def measure(table: dict[str, Any], rows: list[Row], root: Path) -> None:
    """Installs and imports each package, and writes the table after each."""
    os.environ["UV_CACHE_DIR"] = str(root / "uv")
    if left := real_import.unmasked():
        print(f"the host's CUDA libraries in {', '.join(left)} may hide faults", file=sys.stderr)
    for row in rows:
        started = time.monotonic()
        target = real_import.scratch(root, "target")
        row.update(truth(row, target))
        shutil.rmtree(target, ignore_errors=True)
        if sum(path.stat().st_size for path in (root / "uv").rglob("*.so*")) > LARGEST_CACHE:
            shutil.rmtree(root / "uv")
        table["measured"] = dt.datetime.now(dt.UTC).date().isoformat()
        table["host"] = f"{platform.system()} {platform.machine()}, {' '.join(platform.libc_ver())}"
        TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
        verdict = "not measured" if "works" not in row else "works" if row["works"] else "fails"
        shown = f"{row['package']} {row.get('reason', '')} {row.get('import', '')[:200]} {row.get('note', '')[:300]}"
        print(f"{verdict:12} {time.monotonic() - started:4.0f}s {shown}", flush=True)
    shutil.rmtree(root / "uv", ignore_errors=True)


def truth(row: Row, target: Path) -> Row:
    """The result of a real install and import of one package."""
    for key in ("works", "reason", "note"):
        row.pop(key, None)
    requirement, _, version = row["package"].partition("==")
    name, _, extras = requirement.partition("[")
    if failed := real_import.install([row["package"]], target, row["python"]):
        return {"note": f"install: {failed[-300:]}"}
    loaded = real_import.probe(target, row["python"], name, row.get("first", []), row["modules"])
    if loaded.error:
        return {"note": loaded.error}
    answer = loaded.answer
    after, mapped = answer["after_modules"], set(answer["mapped"])
    opened = real_import.own_files(loaded)
    errors = [module["error"] for module in answer["modules"] if module["error"]]
    broken = [path for path in opened if path not in mapped and after[path]]
    optional = re.compile(row.get("optional") or "(?!)")
    not_loaded = {path: error[:300] for path, error in after.items() if error and path not in mapped}
    if not row["modules"]:
        broken = sorted(not_loaded)
    broken = [path for path in broken if not optional.search(path)]
    by_linker = [error for error in errors if real_import.cause(error)]
    others = [error for error in errors if not by_linker and not re.search(row.get("host") or "(?!)", error)]
    if not version:
        version = answer["version"]
    return {
        "package": f"{name}[{extras}=={version}" if extras else f"{name}=={version}",
        "works": not by_linker and not broken and not others,
        "reason": real_import.cause(" ".join(by_linker)) or (real_import.cause(after[broken[0]]) if broken else ""),
        "import": " | ".join(error[:600] for error in errors),
        "opened": opened,
        "files_loaded": f"{len(after) - len(not_loaded)}/{len(after)}",
        "not_loaded": not_loaded,
        "missing": dict(collections.Counter(real_import.cause(error) for error in not_loaded.values())),
        "from_wheels": _from_wheels(answer, set(after)),
        "from_host": sorted(Path(path).name for path in mapped if path.startswith("/") and "/stub" not in path),
    }


def _from_wheels(answer: dict[str, Any], own: set[str]) -> dict[str, list[str]]:
    """The libraries of the process that other wheels brought, by distribution; not their modules."""
    found: dict[str, list[str]] = {}
    for path in answer["mapped"]:
        name = Path(path).name
        if path in answer["owners"] and path not in own and name.startswith("lib"):
            found.setdefault(answer["owners"][path], []).append(name)
    return dict(sorted(found.items()))


def check(command: str, rows: list[Row], report: Path | None) -> int:
    """Prints one line per package and the score."""
    environment = {key: value for key, value in os.environ.items() if key not in IGNORED} | {
        "PIP_CONFIG_FILE": os.devnull
    }
    score: collections.Counter[str] = collections.Counter()
    verdicts = []
    for row in rows:
        run = [*shlex.split(command), "verify", row["package"], "--platform", "x86_64", "--python", row["python"]]
        run += ["--depth", "links", "--format", "json"]
        started = time.monotonic()
        try:
            done = subprocess.run(run, check=False, capture_output=True, text=True, timeout=SECONDS, env=environment)
        except subprocess.TimeoutExpired:
            done = subprocess.CompletedProcess(run, -1, "", "no answer in time")
        errors = failed(done.stdout)
        wanted = row.get("accept", [0 if row["works"] else 1])
        verdict = {0: "FALSE PASS", 1: "FALSE ERROR", 3: "undecided"}.get(done.returncode, "no answer")
        verdict = "right" if done.returncode in wanted else verdict
        score[verdict] += 1
        rules = sorted({error["rule"] for error in errors})
        verdicts.append({"package": row["package"], "exit": done.returncode, "verdict": verdict, "rules": rules})
        trouble = done.stderr.strip()[-150:] if verdict == "no answer" else ""
        shown = (
            f"exit {done.returncode} {time.monotonic() - started:5.1f}s {row['package']} {' '.join(rules)} {trouble}"
        )
        print(f"{verdict:11} {shown}", flush=True)
    print(f"{len(rows)} packages: " + ", ".join(f"{count} {what}" for what, count in score.items()))
    if report:
        report.write_text(json.dumps(verdicts, indent=1) + "\n", encoding="utf-8")
    return int(bool(score["FALSE PASS"] or score["FALSE ERROR"] or score["no answer"]))


def failed(text: str) -> list[dict[str, Any]]:
    """The results of the command that failed as errors."""
    try:
        results = [result for subject in json.loads(text)["subjects"] for result in subject["results"]]
    except (ValueError, KeyError, TypeError):
        return []
    return [result for result in results if result["outcome"] == "fail" and result["severity"] == "error"]


if __name__ == "__main__":
    sys.exit(main())
