"""Mutation testing of rules and facts by cosmic-ray, on a sample: which faults would the nearest tests not notice?

    python3 ci/develop.py mutation                                         # a sample of this week: half an hour
    .venv/bin/python ci/mutation.py wheel_checks/rules/wheel/linking.py    # of one module; --mutants 1000 takes all

Each mutant is one change of the code, made in a clone of HEAD; the tests are those that ``ci/develop.py check`` runs
for that module. A mutant that survives is shown as a diff: it needs a test, or changes nothing observable. Exits 1 when
the tests fail without a mutant, or notice fewer than ``FLOOR`` of a hundred mutants.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shlex
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # a script finds only modules in its own folder

from ci.check import plan_of  # noqa: E402  # found by the line above

FLOOR = 50  # 58 % of the first sample of twelve (November 2026)
BIN = Path(sys.executable).parent
# Mutants that change nothing: identity for equality of enumerations and small values, and "|" of annotations.
SAME = re.compile(r"_(Is_Eq|Eq_Is|IsNot_NotEq|NotEq_IsNot)$|_BitOr_")
SECONDS = 30.0  # how long tests are begun for a mutant, the nearest first


def candidates() -> list[str]:
    """The modules of rules and facts that do something."""
    paths = (path for folder in ("rules", "facts") for path in (ROOT / "wheel_checks" / folder).rglob("*.py"))
    return sorted(str(path.relative_to(ROOT)) for path in paths if "def " in path.read_text(encoding="utf-8"))


def mutate(clone: Path, module: str, most: int, chance: random.Random) -> list[tuple[str, str]]:
    """(outcome, diff) of each mutant of a sample. Raises CalledProcessError when the tests fail without one."""
    folder = clone / "build" / "mutation"
    folder.mkdir(parents=True, exist_ok=True)
    plan, tests = plan_of([module], SECONDS)
    (folder / "plan.json").write_text(json.dumps(plan))
    command = [str(BIN / "python"), "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "ci.nearest"]
    command += ["--nearest", str(folder / "plan.json"), *tests]
    settings = {"module-path": module, "timeout": 4 * SECONDS, "test-command": shlex.join(command)}
    lines = [
        "[cosmic-ray]",
        "excluded-modules = []",
        *(f"{key} = {json.dumps(value)}" for key, value in settings.items()),
    ]
    config, session = folder / "config.toml", folder / "session.sqlite"
    config.write_text("\n".join([*lines, "[cosmic-ray.distributor]", 'name = "local"', ""]))
    session.unlink(missing_ok=True)
    environment = os.environ | {"PYTHONPATH": f"{clone / 'tools'}{os.pathsep}{clone}", "PYTHONDONTWRITEBYTECODE": "1"}

    def cosmic_ray(*arguments: str | Path) -> None:
        subprocess.run([BIN / "cosmic-ray", *arguments], cwd=clone, env=environment, check=True)

    cosmic_ray("baseline", config)
    cosmic_ray("init", config, session)
    with closing(sqlite3.connect(session)) as database, database:
        rows = database.execute("SELECT job_id, operator_name FROM mutation_specs")
        jobs = sorted(job for job, operator in rows if not SAME.search(operator))
        everything = [job for (job,) in database.execute("SELECT job_id FROM work_items")]
        for job in set(everything) - set(chance.sample(jobs, min(most, len(jobs)))):
            database.execute("DELETE FROM mutation_specs WHERE job_id = ?", (job,))
            database.execute("DELETE FROM work_items WHERE job_id = ?", (job,))
    cosmic_ray("exec", config, session)
    with closing(sqlite3.connect(session)) as database:
        return [
            (str(outcome).lower(), diff or "")
            for outcome, diff in database.execute("SELECT test_outcome, diff FROM work_results")
        ]


def main() -> int:
    """Mutate, and print survivors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", help="default: a sample of rules and facts")
    parser.add_argument("--sample", type=int, default=8, metavar="N", help="modules (default: %(default)s)")
    parser.add_argument("--mutants", type=int, default=12, metavar="N", help="of each (default: %(default)s)")
    week = "-".join(map(str, datetime.now(UTC).isocalendar()[:2]))
    parser.add_argument("--seed", default=week, help="of the sample (default: the week, %(default)s)")
    options = parser.parse_args()
    chance = random.Random(options.seed)  # noqa: S311  # no secret hangs on it
    modules = options.modules or chance.sample(candidates(), options.sample)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "--quiet", "--shared", str(ROOT), str(clone)], check=True)
        for module in modules:
            found = mutate(clone, module, options.mutants, chance)
            survived = [diff for outcome, diff in found if "survived" in outcome]
            print(
                f"{module}: {len(found) - len(survived)} of {len(found)} mutants noticed",
                *survived,
                sep="\n",
                flush=True,
            )
            results += found
    noticed = sum("survived" not in outcome for outcome, _ in results)
    share = 100 * noticed / max(len(results), 1)
    print(f"{noticed} of {len(results)} mutants noticed ({share:.0f} %; the floor is {FLOOR} %), seed {options.seed}")
    return int(share < FLOOR)


if __name__ == "__main__":
    sys.exit(main())
