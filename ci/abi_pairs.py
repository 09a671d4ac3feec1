"""Measure whether extensions import with a torch, and score a command against the measurements.

usage: python ci/abi_pairs.py --measure [ID...] [--scratch FOLDER]
           install and import for real; rewrites ci/abi_pairs.json
       python ci/abi_pairs.py --check COMMAND [ID...]
           score COMMAND; needs nothing installed
       python ci/abi_pairs.py --add EXTENSION TORCH PYTHON MODULES
           a new pair, not yet measured

ID is a part of a pair's id. --measure downloads torch's CUDA wheels (3 to 7 GB unpacked; uv's cache is emptied after
each torch) and needs Linux on x86_64, uv, cc and nm. ci/real_import.py describes the import's environment.

A pair works when the import of its modules succeeds and when each native file of the extension that this import opens
is loaded: a package that hides the linker's error does not work, nor one that skips its files when none of them can be
loaded. Six keys of a pair are written by hand: `modules`; `host`, a regular expression for an import error that is this
host's (no GPU), so that the opened files decide; `any_of`, one for files of which one must load (a library for each
FFmpeg); `optional`, one for files without which the import still succeeds; `host_libraries`, names with the version of
their functions, for libraries that every user has to install (FFmpeg), replaced by stubs; `accept`, exit codes that are
right for another reason than the measured one, with `why`.

--check runs `COMMAND stack EXTENSION TORCH --platform x86_64 --python V --depth links --format json`. Exit 0 is right
for a pair that works, 1 for a failing pair or one refused by METADATA; 3 is undecided. A failure is named
when an error that the command reports contains the library or symbol of the measured reason, mangled or demangled.
"""

from __future__ import annotations

import argparse
import collections
import datetime as dt
import itertools
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
SECONDS = 300  # for one answer of the command
IGNORED = ("PIP_FIND_LINKS", "UV_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "UV_EXTRA_INDEX_URL")  # other builds of a torch

Row = dict[str, Any]


def main() -> int:
    """Measure, check or add; 1 when a verdict is false."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ids", nargs="*", metavar="ID")
    parser.add_argument("--measure", action="store_true", help="install and import the pairs")
    parser.add_argument("--missing", action="store_true", help="measure only pairs that have no truth")
    parser.add_argument("--check", metavar="COMMAND", help="score COMMAND")
    parser.add_argument("--add", nargs=4, metavar=("EXTENSION", "TORCH", "PYTHON", "MODULES"))
    parser.add_argument("--scratch", type=Path, help="where packages are installed (default: a temporary folder)")
    parser.add_argument("--json", type=Path, help="write the verdicts of --check")
    options = parser.parse_args()
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    if options.add:
        extension, torch, python, modules = options.add
        row = {"id": f"{extension} + {torch} py{python}", "extension": extension, "torch": torch, "python": python}
        table["pairs"].append(row | {"platform": "x86_64", "modules": modules.split(",")})
        save(table)
        return 0
    rows = [row for row in table["pairs"] if not options.ids or any(part in row["id"] for part in options.ids)]
    if options.check:
        return check(options.check, [row for row in rows if "works" in row], options.json)
    if not options.measure:
        parser.error("name what to do: --measure, --check or --add")
    with tempfile.TemporaryDirectory() as name:
        root = options.scratch or Path(name)
        root.mkdir(parents=True, exist_ok=True)
        measure(table, [row for row in rows if not (options.missing and "works" in row)], root)
    return 0


def save(table: dict[str, Any]) -> None:
    """Write the table, sorted by torch, so that one download serves the pairs of one torch."""
    table["pairs"].sort(
        key=lambda row: ([int(part) for part in re.findall(r"\d+", row["torch"])], row["python"], row["id"])
    )
    TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def measure(table: dict[str, Any], rows: list[Row], root: Path) -> None:
    """Installs and imports each pair, and writes the table after each."""
    os.environ["UV_CACHE_DIR"] = str(root / "uv")
    if left := real_import.unmasked():
        print(f"the host's CUDA libraries in {', '.join(left)} may hide faults", file=sys.stderr)
    for pair, row in itertools.pairwise([{"torch": "", "python": ""}, *rows]):
        started = time.monotonic()
        environment = root / "environment"
        if (pair["torch"], pair["python"]) != (row["torch"], row["python"]):
            environment = real_import.scratch(root, "environment")
        if pair["torch"] not in ("", row["torch"]):
            shutil.rmtree(root / "uv", ignore_errors=True)
        row.update(truth(row, environment))
        real_import.uninstall(row["extension"], environment)
        table["measured"] = dt.datetime.now(dt.UTC).date().isoformat()
        table["host"] = f"{platform.system()} {platform.machine()}, {' '.join(platform.libc_ver())}"
        save(table)
        verdict = "not measured" if "works" not in row else "works" if row["works"] else "fails"
        why = f"{row.get('reason', '')} {row.get('note', '')[:150]}"
        print(f"{verdict:12} {time.monotonic() - started:4.0f}s {row['id']} {why}", flush=True)
    shutil.rmtree(root / "uv", ignore_errors=True)
    shutil.rmtree(root / "environment", ignore_errors=True)


def truth(row: Row, environment: Path) -> Row:
    """The result of a real install and import of one pair."""
    name = row["extension"].partition("==")[0].partition("[")[0]
    for key in ("works", "reason", "expect", "note"):
        row.pop(key, None)
    refused = real_import.install([row["extension"], row["torch"]], environment, row["python"])
    if refused and "unsatisfiable" not in refused:
        return {"note": f"install: {refused[-300:]}"}
    if refused:
        failed = real_import.install([row["torch"], "numpy", "setuptools", "packaging"], environment, row["python"])
        failed = failed or real_import.install([row["extension"]], environment, row["python"], "--no-deps")
        if failed:
            return {"note": f"install: {failed[-300:]}"}
    stubs = dict(real_import.DRIVER)
    for library, version in row.get("host_libraries", {}).items():
        stubs[library] = real_import.Stub(r"\w+", version)
    loaded = real_import.probe(environment, row["python"], name, ["torch"], row["modules"], stubs)
    if loaded.error.startswith("the child ended with -"):  # a signal: std::terminate, a wild pointer
        return {"works": False, "reason": "", "expect": "", "import": loaded.error[:600], "resolves": not refused}
    if loaded.error or loaded.answer["first"][0]["error"]:
        return {"note": loaded.error or f"torch: {loaded.answer['first'][0]['error']}"}
    return judged(loaded, row) | {"resolves": not refused}


def judged(loaded: real_import.Loaded, row: Row) -> Row:
    """The verdict, its reason and the evidence."""
    after_torch, after_import = loaded.answer["after_first"], loaded.answer["after_modules"]
    decisive = real_import.own_files(loaded)
    mapped = set(loaded.answer["mapped"])
    skipped = not decisive and all(after_import.values())  # the package itself thinks that they do not fit
    decisive = sorted(after_import) if skipped else decisive
    broken = [path for path in decisive if path not in mapped and after_import[path]]
    if "any_of" in row and any(re.search(row["any_of"], path) for path in set(decisive) - set(broken)):
        broken = [path for path in broken if not re.search(row["any_of"], path)]
    broken = [path for path in broken if not re.search(row.get("optional") or "(?!)", path)]
    errors = [module["error"] for module in loaded.answer["modules"] if module["error"]]
    by_linker = [error for error in errors if real_import.cause(error)]
    reason = real_import.cause(" ".join(by_linker)) or (real_import.cause(after_import[broken[0]]) if broken else "")
    good = sum(not error or path in mapped for path, error in after_import.items())
    unopened = " ".join(after_torch.values())
    others = [error for error in errors if not by_linker and not re.search(row.get("host") or "(?!)", error)]
    works = not by_linker and not broken and not others
    reason = reason or (real_import.cause(unopened) if others else "")  # the package's own check came first
    return {
        "works": works,
        "reason": reason,
        "expect": expected(reason),
        "import": " | ".join(error[:600] for error in errors),
        "swallowed": bool(broken and not by_linker),
        "decisive": decisive,
        "files_loaded": f"{good}/{len(after_import)}",
        "not_loaded": {path: error[:300] for path, error in after_torch.items() if error},
        "opened_by_name": loaded.answer["tried_by_name"][:20],
        "installed": [package for package in loaded.installed if package.startswith(("torch-", "nvidia_cuda_runtime"))],
    }


def expected(reason: str) -> str:
    """A regular expression for the library or symbol; the symbol may be shown demangled."""
    words, rest = [], re.sub(r"^_ZN[KR]*", "", reason)
    while reason.startswith("_ZN") and (length := re.match(r"\d+", rest)):
        start = length.end() + int(length[0])
        words.append(rest[length.end() : start])
        rest = rest[start:]
    words = [word for word in words if len(word) > 5]
    return "|".join([re.escape(reason), *sorted(words, key=len)[-1:]]) if reason else ""


def check(command: str, rows: list[Row], report: Path | None) -> int:
    """Prints one line per pair and the score."""
    environment = {key: value for key, value in os.environ.items() if key not in IGNORED} | {
        "PIP_CONFIG_FILE": os.devnull
    }
    score: collections.Counter[str] = collections.Counter()
    verdicts = []
    for row in rows:
        run = [*shlex.split(command), "stack", row["extension"], row["torch"], "--platform", row["platform"]]
        run += ["--python", row["python"], "--depth", "links", "--format", "json"]
        started = time.monotonic()
        try:
            done = subprocess.run(run, check=False, capture_output=True, text=True, timeout=SECONDS, env=environment)
        except subprocess.TimeoutExpired:
            done = subprocess.CompletedProcess(run, -1, "", "no answer in time")
        errors = failed(done.stdout)
        wanted = row.get("accept", [0 if row["works"] and row["resolves"] else 1])
        verdict = {0: "FALSE PASS", 1: "FALSE FAIL", 3: "undecided"}.get(done.returncode, "no answer")
        verdict = "right" if done.returncode in wanted else verdict
        score[verdict] += 1
        named = ""
        if not row["works"] and row["resolves"] and row["expect"]:
            hit = done.returncode == 1 and re.search(row["expect"], json.dumps(errors)) is not None
            score["failures to name"] += 1
            score["failures named"] += hit
            named = "named" if hit else "NOT NAMED"
        rules = sorted({error["rule"] for error in errors})
        verdicts.append({"id": row["id"], "exit": done.returncode, "verdict": verdict, "named": named, "rules": rules})
        seconds = time.monotonic() - started
        trouble = done.stderr.strip()[-150:] if verdict == "no answer" else ""
        print(
            f"{verdict:10} exit {done.returncode} {seconds:5.1f}s {row['id']} {named} {' '.join(rules)} {trouble}",
            flush=True,
        )
    print(f"{len(rows)} pairs: " + ", ".join(f"{count} {what}" for what, count in score.items()))
    if report:
        report.write_text(json.dumps(verdicts, indent=1) + "\n", encoding="utf-8")
    return int(bool(score["FALSE PASS"] or score["FALSE FAIL"] or score["no answer"]))


def failed(text: str) -> list[dict[str, Any]]:
    """The results of the command that failed as errors."""
    try:
        results = [result for subject in json.loads(text)["subjects"] for result in subject["results"]]
    except (ValueError, KeyError, TypeError):
        return []
    return [result for result in results if result["outcome"] == "fail" and result["severity"] == "error"]


if __name__ == "__main__":
    sys.exit(main())
