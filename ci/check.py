"""``ci/develop.py check``: ruff, mypy and the tests that a change can reach, the nearest first.

The change is the working tree (committed, staged, unstaged and untracked) against a base: by default the merge base
with ``origin/main`` or ``main``; on main itself the uncommitted changes, or else the last commit. Only the standard
library is imported here.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ci import lanes
from ci.reach import Graph, is_test

ROOT = lanes.ROOT
SECONDS = 8.0  # of a processor: with start and end of a run, 20 seconds on two quiet cores
KERNELS = ("kernels_smoke/", "tests/kernels/")
MOST_FILES = 40  # of tests: each costs its import, by each of the two processes


def check(options: argparse.Namespace, *, make_kernels_venv: Callable[[], None]) -> int:
    """Run the checks that a change can reach; 0 if all passed, else 1. Kernels need their environment."""
    start = time.monotonic()
    base = options.base or default_base()
    changed = changed_files(base)
    if not changed:
        print(f"nothing changed since {base}")
        return 0
    print(f"{len(changed)} files changed since {base}: {', '.join(changed[:5])}{', ...' if changed[5:] else ''}")
    if any(path.startswith(KERNELS) for path in changed):
        make_kernels_venv()
    with tempfile.TemporaryDirectory() as folder:
        running = [Background(Path(folder), name, command) for name, command in read_only(changed)]
        passed = run_tests(*plan_of(changed, None if options.all else options.seconds), Path(folder))
        for tool in running:
            passed &= tool.end()
    for lane, run in further_lanes(changed):
        lanes.say(lane)
        passed &= run() is True
    verdict = "passed what it ran" if passed else lanes.red("FAILED")
    print(f"check {verdict} in {time.monotonic() - start:.0f} s; `ci/develop.py test` runs everything", flush=True)
    return 0 if passed else 1


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of ``check``."""
    parser = argparse.ArgumentParser(prog="ci/develop.py check", description=__doc__)
    parser.add_argument("--base", metavar="REV", help="the commit to compare the working tree with")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="of a processor, for tests (default: %(default)g)"
    )
    parser.add_argument("--all", action="store_true", help="run all tests that the change reaches, however long")
    return parser.parse_args(arguments)


def git(*arguments: str) -> str:
    """The output of a git command; "" if it fails."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def default_base() -> str:
    """The merge base with main; on main itself HEAD with uncommitted changes, else HEAD~."""
    head = git("rev-parse", "HEAD")
    for main in ("origin/main", "main"):
        base = git("merge-base", "HEAD", main)
        if base and base != head:
            return base[:12]
    return "HEAD" if git("status", "--porcelain") else "HEAD~"


def changed_files(base: str) -> list[str]:
    """The paths that differ from ``base`` in the working tree, with untracked files that are not ignored."""
    if not git("rev-parse", "--verify", f"{base}^{{commit}}"):
        raise SystemExit(f"there is no commit {base!r}; --base names the one to compare with")
    names = git("diff", "--name-only", "--no-renames", "-z", base).split("\0")
    return sorted({*names, *git("ls-files", "-z", "--others", "--exclude-standard").split("\0")} - {""})


def plan_of(changed: Iterable[str], seconds: float | None) -> tuple[dict[str, object], list[str]]:
    """The input of the plugin ``ci.nearest``, and the files of tests to collect, the nearest first."""
    changed = set(changed)
    files = git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    graph = Graph(ROOT, {*files, *changed} - {""})
    found = graph.tests(changed)
    nearest: dict[str, float] = {}
    for (path, _), distance in found.items():
        nearest[path] = min(distance, nearest.get(path, distance))
    ordered = sorted((path for path in nearest if (ROOT / path).exists()), key=lambda path: (nearest[path], path))
    if not any(path.startswith(KERNELS) for path in changed):
        ordered = [path for path in ordered if not is_kernel_test(path)]
    tests = ordered if seconds is None else ordered[:MOST_FILES]
    lanes.say(
        f"{len(found)} tests in {len(ordered)} files reach it"
        + ("" if tests == ordered else f"; the nearest {len(tests)} files are collected")
    )
    if tests != ordered:
        print(f"NOT RUN, --all runs them: {', '.join(ordered[MOST_FILES:])}", flush=True)
    plan = {f"{path}::{name}": distance for (path, name), distance in found.items()}
    cases = {cases_of(family) for family in families(changed)}  # they name the family's kernels
    return {"tests": plan, "names": sorted(graph.named(changed | cases)), "seconds": seconds}, tests


def run_tests(plan: dict[str, object], tests: Sequence[str], folder: Path) -> bool:
    """Run the tests: tests of kernels in the environment with torch and triton, all others in ``.venv``."""
    file = folder / "plan.json"
    file.write_text(json.dumps(plan))
    options = ["-p", "ci.nearest", "--nearest", str(file)]
    of_kernels = [path for path in tests if is_kernel_test(path)]
    others = [path for path in tests if path not in of_kernels]
    passed = not others or run_pytest([*options, "-q", "-n", "2", "--maxschedchunk=1", *others])
    if of_kernels:
        passed &= lanes.kernel_tests(*options, *of_kernels)
    return passed


def run_pytest(arguments: Sequence[str]) -> bool:
    """Run pytest in ``.venv``; a run in which everything was deselected has passed."""
    environment = os.environ | {"WHEELPROOF_KERNELS_PYTHON": lanes.kernels_python()}
    command = [str(lanes.BIN / "python"), "-m", "pytest", *arguments]  # -m puts the root on sys.path, where ci is
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode in {0, 5}


def is_kernel_test(path: str) -> bool:
    """True of the tests that import torch and triton."""
    return is_test(path) and path.startswith("tests/kernels/") and not path.startswith("tests/kernels/suite/")


def families(changed: Iterable[str]) -> list[str]:
    """The families of kernels to which changed files belong."""
    parts = [Path(path).parts for path in changed]
    names = {part[-2] for part in parts if part[0] == "kernels_smoke" and len(part) > 2}
    names |= {Path(part[-1]).stem.removeprefix("test_") for part in parts if part[:2] == ("tests", "kernels")}
    return sorted(name for name in names if (ROOT / cases_of(name)).exists())


def cases_of(family: str) -> str:
    """The file of a family's cases; the suite has some of them."""
    inside = f"kernels_smoke/suite/{family}/cases.py"
    return inside if (ROOT / inside).exists() else f"kernels_smoke/{family}/cases.py"


def read_only(changed: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Static checks, which run in parallel with the tests."""
    if not any(path.endswith((".py", ".toml", ".pyi")) for path in changed):
        return []
    return [
        ("ruff check", ["ruff", "check", "--quiet", "."]),
        ("ruff format", ["ruff", "format", "--check", "--quiet", "."]),
        ("mypy", ["mypy", "--no-error-summary"]),
    ]


def further_lanes(changed: Sequence[str]) -> list[lanes.Lane]:
    """The lanes that these files call for: of workflows, of the site, of kernels."""
    known = dict(lanes.lint_lanes())
    names = []
    if any(path.startswith(".github/") or path == "action.yml" for path in changed):
        names += ["zizmor", "check-jsonschema"]
    if any(path.startswith("docs/") or path == "mkdocs.yml" for path in changed):
        names.append("documentation")
    if "pyproject.toml" in changed:
        names.append("import-linter")
    mutants = [lanes.mutant_lane(*families(changed))] if families(changed) else []
    return [*((name, known[name]) for name in names), *mutants]


class Background:
    """A tool that runs in parallel with the tests, and reports at the end."""

    def __init__(self, folder: Path, name: str, command: Sequence[str]) -> None:
        self.name, self.output = name, folder / f"{name}.out"
        with self.output.open("wb") as stream:
            whole = [str(lanes.BIN / command[0]), *command[1:]]
            self.child = subprocess.Popen(whole, cwd=ROOT, stdout=stream, stderr=subprocess.STDOUT)

    def end(self) -> bool:
        """Wait for it; True when it found nothing."""
        passed = self.child.wait() == 0
        print(f"{self.name}: {'passed' if passed else lanes.red('FAILED')}")
        if not passed:
            sys.stdout.write(self.output.read_text(errors="replace"))
        return passed
