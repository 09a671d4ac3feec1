"""Everything that a developer or CI runs, from a fresh clone, with nothing but Python 3.11 and its venv module.

    python3 ci/develop.py verify torch==2.11.0 --platform aarch64   # wheelproof verify, in an environment of its own
    python3 ci/develop.py test                                      # lint, types, layers, wheel, tests: all of CI
    python3 ci/develop.py lint | wheel | kernels | matrix | setup   # a part of it

The environment is ``.venv``. What goes into it is pinned by version and hash (``ci/constraints.txt``), so that no
``extra-index-url`` or ``find-links`` in somebody's pip.conf can change it. It is set up once, and again when the pins
or pyproject.toml change. The kernels are tested in an environment of their own, ``.venv-kernels``, which holds torch
and triton (``ci/kernels-requirements.txt``): there pip is left as it is configured, so that an index which offers CPU
builds of torch can spare you the CUDA libraries. Only the standard library is imported here.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # a script finds only what is beside it

from ci.engine import docker_engine, register_emulation  # noqa: E402  # found by the line above

VENV = ROOT / ".venv"
BIN = VENV / "bin"
KERNELS_VENV = ROOT / ".venv-kernels"
DIST = ROOT / "dist"
EVERYTHING, RUN_ONLY, KERNELS = "constraints.txt", "constraints-run.txt", "kernels-requirements.txt"

# What would send pip's work elsewhere, or Python's imports: none of it is meant for our environment.
FOREIGN_IMPORTS = {"PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PYTHONPATH", "PYTHONHOME"}
FOREIGN = FOREIGN_IMPORTS | {"PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_CONSTRAINT", "PIP_REQUIREMENT"}


@dataclass(frozen=True)
class NotRun:
    """What a lane gives that this machine does not have: not failed, and not passed either."""

    reason: str


Lane = tuple[str, "Callable[[], bool | NotRun]"]  # quoted for the Python that main() refuses


class SetUpError(Exception):
    """The environment could not be made; the message says what to do."""


def set_up(constraints: str) -> None:
    """Make ``.venv`` hold what ``constraints`` pins, and wheelproof itself, editable. Quick when it does already."""
    pins = ROOT / "ci" / constraints
    digest = hashlib.sha256(f"{ROOT} {sys.version}".encode())
    for path in (pins, ROOT / "pyproject.toml", ROOT / "tools/wheelproof/__init__.py"):  # the last has the version
        digest.update(path.read_bytes())
    stamp = VENV / f"{constraints}.installed"
    if stamp.exists() and stamp.read_text() == digest.hexdigest() and _works():
        return
    say("set-up of .venv, which takes a moment the first time")
    if not _works():
        _call(
            [sys.executable, "-m", "venv", "--clear", str(VENV)], "on Debian and Ubuntu: apt-get install python3-venv"
        )
    # -qq: a pip.conf with an index that is not there would give a warning for every package.
    pip = [str(BIN / "python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-input", "--no-user"]
    _call([*pip, "--require-hashes", "-r", str(pins)], "is the package index reachable? pip's message is above")
    _call(
        [*pip, "--no-index", "--no-deps", "--no-build-isolation", "--editable", str(ROOT)],
        "is pyproject.toml well-formed?",
    )
    stamp.write_text(digest.hexdigest())


def set_up_kernels() -> None:
    """Make ``.venv-kernels`` hold torch, triton and pytest: some 200 MB with a CPU build of torch, else gigabytes."""
    pins = ROOT / "ci" / KERNELS
    stamp = KERNELS_VENV / f"{KERNELS}.installed"
    digest = hashlib.sha256(f"{ROOT} {sys.version}".encode() + pins.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest and _works(KERNELS_VENV):
        return
    say("set-up of .venv-kernels, which takes minutes the first time")
    if not _works(KERNELS_VENV):
        _call([sys.executable, "-m", "venv", "--clear", str(KERNELS_VENV)], "see above")
    pip = [str(KERNELS_VENV / "bin/python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-input"]
    _call([*pip, "-r", str(pins)], "is the package index reachable? pip's message is above", foreign=FOREIGN_IMPORTS)
    stamp.write_text(digest)


def _works(venv: Path = VENV) -> bool:
    probe = "import pip, sys; sys.exit(sys.version_info < (3, 11))"
    try:
        return subprocess.run([venv / "bin/python", "-c", probe], check=False, capture_output=True).returncode == 0
    except OSError:
        return False


def _call(command: Sequence[str], hint: str, foreign: set[str] = FOREIGN) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in foreign}
    # Standard output belongs to the report of `verify`, so what pip says goes to standard error.
    if subprocess.run(command, env=environment, cwd=ROOT, check=False, stdout=sys.stderr).returncode:
        raise SetUpError(f"`{' '.join(command)}` failed ({hint})")


def verify(arguments: Sequence[str]) -> int:
    """Become ``wheelproof verify``; an environment for development serves as well as the light one."""
    full = VENV / f"{EVERYTHING}.installed"
    set_up(EVERYTHING if full.exists() else RUN_ONLY)
    sys.stderr.flush()
    command = [str(BIN / "wheelproof"), "verify", *arguments]
    os.execv(command[0], command)  # noqa: S606  # no shell is the point: arguments arrive as they were given


def lint_lanes() -> list[Lane]:
    """What reads the code without running it."""
    return [
        ("ruff check", lambda: tool("ruff", "check", ".")),
        ("ruff format", lambda: tool("ruff", "format", "--check", ".")),
        ("mypy", lambda: tool("mypy")),
        ("import-linter", lambda: tool("lint-imports", "--no-logo")),
        ("zizmor", lambda: tool("zizmor", "--offline", "--strict-collection", "-p", "-q", ".github", "action.yml")),
        ("check-jsonschema", check_schemas),
        ("documentation", build_site),
    ]


def check_schemas() -> bool:
    """Hold the workflows and the action to GitHub's schemas, of which check-jsonschema has copies."""
    workflows = [str(path) for path in sorted((ROOT / ".github/workflows").glob("*.yml"))]
    check = ("check-jsonschema", "--builtin-schema")
    return tool(*check, "vendor.github-workflows", *workflows) and tool(*check, "vendor.github-actions", "action.yml")


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


def test_lanes(engine_obstacle: str) -> list[Lane]:
    """All lanes; the tests come last, so that their summary is what one sees."""
    color = ["--color=yes"] if colored() else []
    return [
        *lint_lanes(),
        *wheel_lanes(),
        *kernel_lanes(),
        *matrix_lanes(engine_obstacle),
        ("pytest", lambda: tool("pytest", "-n", "2", *color)),
    ]


def kernel_lanes() -> list[Lane]:
    """Every kernel and every mutant: on the GPU when there is one, else in the interpreter.

    With the same inputs each time, so that a push is judged by what it changes and not by what chance draws; with those
    of KERNELS_SMOKE_SEED when it is set, as it is in CI once a week. The suite itself draws new ones in every run.
    """
    color = ["--color=yes"] if colored() else []
    # The tests of the suite run with all others: they need neither torch nor triton, and the conftest.py of all.
    where = ["tests/kernels", "--ignore=tests/kernels/suite", "--confcutdir=tests/kernels"]
    pytest = ["pytest", *where, "-q", "-p", "no:cacheprovider", "-o", "filterwarnings=default"]
    device = "cuda" if Path("/dev/nvidiactl").exists() else "interpret"
    seed = os.environ.get("KERNELS_SMOKE_SEED") or "1"
    return [
        ("kernels", lambda: _in_kernels_venv([*pytest, *color], KERNELS_SMOKE_SEED=seed)),
        ("mutants", lambda: _in_kernels_venv(["kernels_smoke", "--mutants", "--device", device, "--seed", seed])),
    ]


def matrix_lanes(engine_obstacle: str) -> list[Lane]:
    """Three cells of ci/matrix.toml for real, in containers, those of the other architecture emulated."""
    return [("matrix", lambda: run_matrix(engine_obstacle))]


def run_matrix(engine_obstacle: str) -> bool | NotRun:
    """Take the cells through the whole way. What is installed and found is kept in the user's cache folder."""
    reason = engine_obstacle or register_emulation()
    if reason:
        return NotRun(reason)
    if not index_answers():
        return NotRun("the package index does not answer")
    if subprocess.run([sys.executable, ROOT / "docker/debian/build.py", "amd64", "arm64"], check=False).returncode:
        return False  # an engine and a network are there: this is a fault of ours, said above
    cells = ("aarch64-*-torch2.10.0", "aarch64-*-torch2.11.0", "x86_64-*-torch2.11.0")
    at_once = f"--jobs={len(cells)}"  # an import uses one processor, and a download none
    return tool("wheelproof", "matrix", "run", "--executor=docker", at_once, *(f"--only={cell}" for cell in cells))


def index_answers() -> bool:
    """True when uv resolves something small by the index that it is configured to use."""
    resolve = [str(BIN / "uv"), "pip", "compile", "-", "--no-deps", "--no-cache", "--quiet"]
    answer = subprocess.run(resolve, input=b"packaging", capture_output=True, check=False)
    return answer.returncode == 0


def _in_kernels_venv(module_and_arguments: Sequence[str], **variables: str) -> bool:
    command = [str(KERNELS_VENV / "bin/python"), "-m", *module_and_arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode == 0


def build_wheel() -> bool:
    """Build the wheel into an empty ``dist``."""
    shutil.rmtree(DIST, ignore_errors=True)
    return tool("python", "-m", "build", "--wheel", "--no-isolation", "--outdir", str(DIST))


def wheels() -> list[str]:
    """The paths of the wheels in ``dist``; a path that does not exist when there are none, so that the lane fails."""
    return [str(path) for path in sorted(DIST.glob("*.whl"))] or [str(DIST / "no-wheel-was-built.whl")]


def tool(name: str, *arguments: str) -> bool:
    """Run a tool of the environment in the root of the repository; True when it ends well."""
    path = f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME"}}
    command = [str(BIN / name), *arguments]
    environment |= {"PATH": path, "WHEELPROOF_KERNELS_PYTHON": str(KERNELS_VENV / "bin/python")}
    return subprocess.run(command, cwd=ROOT, check=False, env=environment).returncode == 0


def run_lanes(lanes: Sequence[Lane]) -> int:
    """Run every lane, whatever the others gave, and sum up: 0 when all passed, else 1."""
    results = []
    for name, lane in lanes:
        say(name)
        start = time.monotonic()
        results.append((name, lane(), time.monotonic() - start))
    say("summary")
    for name, result, seconds in results:
        print(f"{name:24}{seconds:6.1f} s  {_verdict(result)}")
    failed = sum(result is False for _, result, _ in results)
    passed = sum(result is True for _, result, _ in results)
    missed = len(results) - failed - passed
    if missed:
        print(red(f"{missed} of {len(results)} lanes did NOT run"))
    print(red(f"{failed} of {len(results)} lanes failed") if failed else f"{passed} lanes passed", flush=True)
    return int(failed > 0)


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


def main() -> int:
    """Run the command that was asked for; 1 when a lane fails, 3 when the environment cannot be made."""
    if sys.version_info < (3, 11):  # noqa: UP036  # the one file that meets an older Python before pip could refuse it
        print(f"Python 3.11 or newer is needed; this is {sys.version.split()[0]}", file=sys.stderr)
        return 3
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("setup", "lint", "test", "kernels", "matrix", "wheel", "verify"))
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of `wheelproof verify`")
    options = parser.parse_args()
    if options.arguments and options.command != "verify":
        parser.error(f"{options.command} takes no arguments")
    try:
        if options.command == "verify":
            return verify(options.arguments)
        set_up(EVERYTHING)
        if options.command in {"test", "kernels"}:
            set_up_kernels()
    except SetUpError as error:
        print(red(f"the set-up failed: {error}"), file=sys.stderr)
        return 3
    if options.command in {"test", "matrix"}:
        with docker_engine() as obstacle:
            return run_lanes(test_lanes(obstacle) if options.command == "test" else matrix_lanes(obstacle))
    lanes = {"setup": list, "lint": lint_lanes, "wheel": wheel_lanes, "kernels": kernel_lanes}[options.command]()
    return run_lanes(lanes) if lanes else 0


if __name__ == "__main__":
    sys.exit(main())
