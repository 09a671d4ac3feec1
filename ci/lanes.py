"""Run the lanes of a developer and of CI in an existing environment. Only the standard library is imported."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from ci.engine import register_emulation
from ci.system import reason

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
BIN = VENV / "bin"
KERNELS_VENV = ROOT / ".venv-kernels"
FAULTY_VENV = ROOT / ".venv-faulty"
DIST = ROOT / "dist"
# The lanes that need more than Python, and the tests of each, in the words of pytest's -m. All others are unit tests.
HEAVY = {
    "browser": "browser",
    "kernels": "kernels",
    "matrix": "docker or emulation",
    "online": "online",
    "shells": "shells",
    "slurm": "slurm",
}
UNIT = f"not ({' or '.join(HEAVY.values())})"
READERS = ("tests/formats", "tests/pins/documents", "tests/facts/host", "tests/doctor/test_explain.py")
# Two processes more than CI has cores, since many tests wait; long tests at the end are shared out again.
AT_ONCE = ("-n", "4", "--dist", "worksteal")
SLOWEST = ("--durations", "20", "--durations-min", "10")
# Seconds on two quiet processors (29 November 2026), from which the length of a run is estimated by its counts.
PER_TEST, PER_MUTATED, KERNELS, MATRIX, LINT = 0.1, 9.0, 130.0, 200.0, 45.0
_TEST = re.compile(r"^ *def test_", re.MULTILINE)


@dataclass(frozen=True)
class NotRun:
    """The result of a lane that this host cannot run: neither failed nor passed."""

    reason: str


# The output of tools of the environment, None for this process's own.
_output: ContextVar[IO[bytes] | None] = ContextVar("output", default=None)
Lane = tuple[str, "Callable[[], bool | NotRun]"]  # quoted for the Python that main() refuses


def lint_lanes() -> list[Lane]:
    """Static checks."""
    return [
        ("ruff check", lambda: tool("ruff", "check", ".")),
        ("ruff format", lambda: tool("ruff", "format", "--check", ".")),
        ("mypy", lambda: tool("mypy")),
        ("import-linter", lambda: tool("lint-imports", "--no-logo")),
        ("zizmor", lambda: tool("zizmor", "--offline", "--strict-collection", "-p", "-q", ".github", "action.yml")),
        ("check-jsonschema", check_schemas),
        ("ready files", check_ready_files),
        ("regular expressions", lambda: tool("python", "ci/regular_expressions.py")),
        ("plain English", lambda: tool("python", "ci/plain_english.py")),
        ("documentation", build_site),
    ]


def check_schemas() -> bool:
    """Check the files for GitHub against its schemas, which check-jsonschema has."""
    github, forms = ROOT / ".github", ROOT / ".github/ISSUE_TEMPLATE"
    files = {
        "github-workflows": sorted((github / "workflows").glob("*.yml")),
        "github-actions": [ROOT / "action.yml"],
        "github-issue-forms": sorted(set(forms.glob("*.yml")) - {forms / "config.yml"}),
        "github-issue-config": [forms / "config.yml"],
        "dependabot": [github / "dependabot.yml"],
    }
    check = ("check-jsonschema", "--quiet", "--builtin-schema")
    return all(tool(*check, f"vendor.{schema}", *map(str, paths)) for schema, paths in files.items())


READY = {
    "github-workflows": ROOT / "docs/adopting/github.yml",
    "gitlab-ci": ROOT / "docs/adopting/gitlab.yml",
}
# Options added by check-jsonschema's own hooks
_OF_HOOKS = {"gitlab-ci": ("--data-transform", "gitlab-ci", "--regex-variant", "nonunicode")}


def check_ready_files() -> bool:
    """Hold the ready files for other engines to their schemas; a script has none."""
    check = ("check-jsonschema", "--quiet", "--builtin-schema")
    return all(tool(*check, f"vendor.{name}", *_OF_HOOKS.get(name, ()), str(path)) for name, path in READY.items())


def build_site() -> bool:
    """Build the documentation into ``build/site``; a warning, such as of a broken link, fails it."""
    os.environ["NO_MKDOCS_2_WARNING"] = "1"  # a notice about the theme's successor
    return tool("mkdocs", "build", "--strict")  # --quiet would hide the warnings from --strict, too


def wheel_lanes() -> list[Lane]:
    """Our own wheel: built, and judged by check-wheel-contents and by wheelproof."""
    return [
        ("wheel", build_wheel),
        ("check-wheel-contents", lambda: tool("check-wheel-contents", *wheels())),
        ("wheelproof verify", lambda: tool("wheelproof", "verify", *wheels())),
    ]


def plan(command: str, names: Sequence[str], *, strict: bool) -> str:
    """The plan of ``test`` or ``heavy``: lanes, their expected duration, and lanes that cannot run."""
    tests = _test_functions("tests") if command == "test" else 0
    kernels = _test_functions("tests/kernels", own=True) if "kernels" in names else 0
    mutated = len(kernels_of_today()) if command == "test" else len(_kernels())
    parts = [f"{tests:,} test functions"] if tests else [f"the tests of {', '.join(names)}"]
    parts += [f"{kernels} test functions of kernels, mutants of {mutated} kernels"] if kernels else []
    parts += ["three cells of the matrix in containers"] if "matrix" in names else []
    seconds = tests * PER_TEST + bool(kernels) * (KERNELS + mutated * PER_MUTATED) + ("matrix" in names) * MATRIX
    lines = [f"will run {'; '.join(parts)}" + (", after lint, types and our own wheel" if tests else "")]
    if tests:
        lines.append(f"about {(seconds + LINT) / 60:.0f} minutes on two processors, and set-up the first time")
    lacking = {name: why for name in (["compiler", *names] if tests else names) if (why := reason(name))}
    consequence = "which fails a strict run" if strict else "--install-system installs it, as root"
    lines += [f"NOT RUN: {name}: {why}; {consequence}" for name, why in lacking.items()]
    return "\n".join(lines)


def _test_functions(folder: str, *, own: bool = False) -> int:
    """How many functions of tests are below a folder; ``own``: in its own files."""
    paths = (ROOT / folder).glob("*.py") if own else (ROOT / folder).rglob("test_*.py")
    return sum(len(_TEST.findall(path.read_text(encoding="utf-8"))) for path in paths)


def test_lanes(engine_blocker: str, *, strict: bool) -> list[Lane]:
    """All lanes; the tests come last, so that their summary is visible."""
    options = [*(["--color=yes"] if colored() else []), *(["--strict-lanes"] if strict else [])]
    matrix = [(name, Meanwhile(lane)) for name, lane in matrix_lanes(engine_blocker)]  # tests need its image
    return [
        *lint_lanes(),
        *wheel_lanes(),
        *kernel_lanes(*kernels_of_today()),
        *matrix,
        ("pytest", lambda: tool("pytest", *AT_ONCE, *SLOWEST, *options)),
    ]


def unit_lanes() -> list[Lane]:
    """The tests that need nothing but Python, as a normal user: no index, engine, browser or root."""
    return [("unit tests", lambda: tool("pytest", "-n", "auto", "-m", UNIT))]


def heavy_lanes(names: Sequence[str], engine_blocker: str, *, strict: bool) -> list[Lane]:
    """The lanes of ``HEAVY`` that ``names`` lists."""
    lanes: list[Lane] = []
    options = ["--strict-lanes"] if strict else []
    for name in names:
        lanes += kernel_lanes() if name == "kernels" else matrix_lanes(engine_blocker) if name == "matrix" else []
        lanes.append((f"tests of {name}", partial(tool, "pytest", *AT_ONCE, *options, "-m", HEAVY[name])))
    return lanes


def coverage_lanes() -> list[Lane]:
    """The unit tests with lines and branches counted, in children too; the figure may not fall below pyproject's."""
    return [("unit tests", measure), ("coverage", lambda: tool("coverage", "report"))]


def measure() -> bool:
    """Run the unit tests under coverage.py, and combine the counts of all processes."""
    shutil.rmtree(ROOT / "build/coverage", ignore_errors=True)
    (ROOT / "build/coverage").mkdir(parents=True)
    passed = tool("coverage", "run", "-m", "pytest", "-q", "-n", "auto", "-m", UNIT)
    return tool("coverage", "combine", "-q") and passed


def mutation_lanes() -> list[Lane]:
    """A sample of mutants of rules and facts, another one each week."""
    return [("mutation", lambda: tool("python", "ci/mutation.py"))]


def sdist_lanes() -> list[Lane]:
    """The source distribution: the unit tests run in the unpacked archive, to show that it is complete."""
    return [("sdist", build_sdist), ("unit tests of the sdist", check_sdist)]


def build_sdist() -> bool:
    """Build the source distribution into ``dist``, next to the wheel."""
    for old in DIST.glob("*.tar.gz"):
        old.unlink()
    return tool("python", "-m", "build", "--sdist", "--no-isolation", "--outdir", str(DIST))


def check_sdist() -> bool:
    """Unpack it, and run its unit tests there against its own code."""
    (archive,) = DIST.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
        (unpacked,) = Path(folder).iterdir()
        environment = os.environ | {"PYTHONPATH": f"{unpacked / 'tools'}{os.pathsep}{unpacked}"}
        tests = [str(BIN / "python"), "-m", "pytest", "-q", "-n", "auto", "-m", UNIT]
        return subprocess.run(tests, cwd=unpacked, env=environment, check=False).returncode == 0


def loaded_lanes() -> list[Lane]:
    """The tests that wait for something, five times, while endless loops keep the processors busy."""
    return [(f"loaded, {number} of 5", run_loaded) for number in range(1, 6)]


def run_loaded() -> bool:
    """Run the tests of ``ci/loaded_tests.txt`` while three endless loops keep each processor busy."""
    endless = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"  # it dies with this process
    loops = [subprocess.Popen([sys.executable, "-c", endless]) for _ in range(3 * (os.cpu_count() or 1))]
    try:
        return tool("pytest", "-q", "-n", "2", "@ci/loaded_tests.txt")
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def faulty_python() -> str:
    """The system's own Python if it matches some expressions wrongly (gh-100061, gh-106052), and is not this one.

    Debian mended that in a patch of 3.11.2, so that no version number shows it.
    """
    probe = "import re, sys; sys.exit(sys.version_info < (3, 11) or re.match('(?:ab?c)++', 'aca').end() == 2)"
    python = "/usr/bin/python3"
    if not Path(python).exists() or Path(python).samefile(sys.executable):
        return ""
    return python if subprocess.run([python, "-c", probe], check=False, capture_output=True).returncode == 0 else ""


def reader_lanes(faulty: str) -> list[Lane]:
    """The tests of readers with regular expressions, on the Python ``faulty`` ("" if missing)."""
    command = [str(FAULTY_VENV / "bin/python"), "-m", "pytest", "-q", "-n", "auto", "-m", UNIT, *READERS]
    run = partial(subprocess.run, command, cwd=ROOT, check=False)
    return [("readers, faulty Python", lambda: run().returncode == 0)] if faulty else []


def kernel_lanes(*mutated: str) -> list[Lane]:
    """Every kernel, and the mutants of those ``mutated``, of all if none is named: on the GPU, else in the interpreter.

    With the same inputs each time, so that a push is judged by its change and not by chance; or with
    KERNELS_SMOKE_SEED, as in CI once a week. The suite itself draws new ones in every run.
    """
    color = ["--color=yes"] if colored() else []
    # The tests of the suite run with all others: they need neither torch nor triton, and the conftest.py of all.
    tests = ["tests/kernels", "--ignore=tests/kernels/suite", "-n", "auto", *color]
    return [("kernels", lambda: kernel_tests(*tests)), mutant_lane(*mutated)]


def kernels_of_today() -> list[str]:
    """A seventh of the kernels, another one each day: all mutants take six minutes on two processors.

    The job that runs the lane "kernels" alone runs all of them, and `develop.py check` the kernels of a changed family.
    """
    return _kernels()[int(time.time() / (24 * 3600)) % 7 :: 7]


def _kernels() -> list[str]:
    from kernels_smoke.suite import registry  # here, for the Python that main() refuses

    return [entry.name for entry in registry.ENTRIES]


def kernel_tests(*arguments: str) -> bool:
    """Run pytest where torch and triton are, with the same inputs each time."""
    options = ["--confcutdir=tests/kernels", "-q", "-p", "no:cacheprovider", "-o", "filterwarnings=default"]
    return in_kernels_venv(["pytest", *arguments, *options], KERNELS_SMOKE_SEED=kernels_seed())


def mutant_lane(*names: str) -> Lane:
    """The mutants of these kernels, or families of kernels; of all if none is named."""
    device = "cuda" if Path("/dev/nvidiactl").exists() else "interpret"
    only = ["--only", ",".join(names)] if names else []
    command = ["kernels_smoke", "--mutants", "--device", device, "--seed", kernels_seed(), *only]
    return ("mutants", lambda: in_kernels_venv(command))


def kernels_seed() -> str:
    """The seed of the kernels' inputs: the same in each run, unless KERNELS_SMOKE_SEED says another."""
    return os.environ.get("KERNELS_SMOKE_SEED") or "1"


def matrix_lanes(engine_blocker: str) -> list[Lane]:
    """Three cells of ci/matrix.toml for real, in containers, with emulation for the other architecture."""
    return [("matrix", lambda: run_matrix(engine_blocker))]


def run_matrix(engine_blocker: str) -> bool | NotRun:
    """Test the cells end to end. Installs and results are kept in the user's cache folder."""
    if why := reason("matrix") or engine_blocker or register_emulation():
        return NotRun(why)
    if not index_answers():
        return NotRun("the package index does not answer")
    if not tool("wheelproof", "matrix", "image"):
        return False  # an engine and a network are there: this is our own fault, said above
    cells = ("aarch64-*-torch2.10.0", "aarch64-*-torch2.11.0", "x86_64-*-torch2.11.0")
    at_once = f"--jobs={len(cells)}"  # an import uses one processor, and a download none
    return tool("wheelproof", "matrix", "run", "--executor=docker", at_once, *(f"--only={cell}" for cell in cells))


def index_answers() -> bool:
    """True when uv resolves something small by the index that it is configured to use."""
    resolve = [str(BIN / "uv"), "pip", "compile", "-", "--no-deps", "--no-cache", "--quiet"]
    answer = subprocess.run(resolve, input=b"packaging", capture_output=True, check=False)
    return answer.returncode == 0


def kernels_python() -> str:
    """The Python that has torch and triton: WHEELPROOF_KERNELS_PYTHON, else that of ``.venv-kernels``."""
    return os.environ.get("WHEELPROOF_KERNELS_PYTHON") or str(KERNELS_VENV / "bin/python")


def in_kernels_venv(module_and_arguments: Sequence[str], **variables: str) -> bool:
    """Run a module where torch and triton are; True when it ends well."""
    command = [kernels_python(), "-m", *module_and_arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode == 0


def build_wheel() -> bool:
    """Build the wheel into an empty ``dist``."""
    shutil.rmtree(DIST, ignore_errors=True)
    return tool("python", "-m", "build", "--wheel", "--no-isolation", "--outdir", str(DIST))


def wheels() -> list[str]:
    """The paths of the wheels in ``dist``; a path that does not exist when there aren't any, so that the lane fails."""
    return [str(path) for path in sorted(DIST.glob("*.whl"))] or [str(DIST / "no-wheel-was-built.whl")]


def tool(name: str, *arguments: str) -> bool:
    """Run a tool of the environment in the root of the repository; True when it ends well."""
    path = f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME"}}
    command = [str(BIN / name), *arguments]
    environment |= {"PATH": path, "WHEELPROOF_KERNELS_PYTHON": kernels_python()}
    output = _output.get()
    return subprocess.run(command, cwd=ROOT, check=False, env=environment, stdout=output, stderr=output).returncode == 0


class Meanwhile:
    """A lane that starts now in parallel; its output is shown when it is called."""

    def __init__(self, lane: Callable[[], bool | NotRun]) -> None:
        self._lane, self._output = lane, tempfile.TemporaryFile()  # noqa: SIM115  # closed when shown
        self._verdict: bool | NotRun = False
        self.seconds = 0.0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        _output.set(self._output)
        start = time.monotonic()
        try:
            self._verdict = self._lane()
        except Exception:  # noqa: BLE001  # shown where the lane is called, as any failure
            self._output.write(traceback.format_exc().encode())
        self.seconds = time.monotonic() - start

    def __call__(self) -> bool | NotRun:
        """Wait for its end; its verdict, which is a failure if it crashed."""
        self._thread.join()
        with self._output as output:
            output.seek(0)
            sys.stdout.write(output.read().decode(errors="replace"))
        return self._verdict


def run_lanes(lanes: Sequence[Lane], *, strict: bool = False) -> int:
    """Run every lane, also after failures, and sum up: 0 when all that ran passed, else 1.

    In a ``strict`` run a lane that did not run has failed.
    """
    results = []
    for name, lane in lanes:
        say(name)
        start = time.monotonic()
        verdict = lane()
        seconds = lane.seconds if isinstance(lane, Meanwhile) else time.monotonic() - start
        results.append((name, verdict, seconds))
    say("summary")
    for name, result, seconds in results:
        print(f"{name:24}{seconds:6.1f} s  {_verdict(result)}")
    failed = sum(result is False for _, result, _ in results)
    passed = sum(result is True for _, result, _ in results)
    missed = len(results) - failed - passed
    if missed:
        print(red(f"{missed} of {len(results)} lanes did NOT run"))
    print(red(f"{failed} of {len(results)} lanes failed") if failed else f"{passed} lanes passed", flush=True)
    return int(failed > 0 or (strict and missed > 0))


def _verdict(result: bool | NotRun) -> str:
    if isinstance(result, NotRun):
        return red(f"NOT RUN: {result.reason}")
    return "passed" if result else red("FAILED")


def say(heading: str) -> None:
    """Write a section heading to standard error, after everything that was printed so far."""
    sys.stdout.flush()
    print(f"\n=== {heading} ===", file=sys.stderr, flush=True)


def colored() -> bool:
    """True on a terminal and in CI, unless NO_COLOR is set."""
    return not os.environ.get("NO_COLOR") and (sys.stdout.isatty() or bool(os.environ.get("CI")))


def red(text: str) -> str:
    """The text in red where colors are shown."""
    return f"\033[1;31m{text}\033[0m" if colored() else text
