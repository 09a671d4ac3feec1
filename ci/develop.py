"""Everything that a developer or CI runs, from a fresh clone, with nothing but Python 3.11 and its venv module.

python3 ci/develop.py verify torch==2.11.0 --platform aarch64   # wheelproof verify, in its own environment
    python3 ci/develop.py check                                     # half a minute: checks that your change can reach
    python3 ci/develop.py test                                      # lint, types, layers, wheel, tests: all of CI
    python3 ci/develop.py test --install-system --strict            # with system packages, all of it
    python3 ci/develop.py lint | unit | wheel | sdist | setup       # a part of it, as a normal user
    python3 ci/develop.py heavy [browser kernels matrix online shells slurm]
    python3 ci/develop.py coverage | mutation                       # executed lines, and detected mutants
    python3 ci/develop.py loaded                                    # tests that wait, on a busy machine

A lane that lacks a program of the system is NOT RUN, with the line of apt-get that installs it; what ran decides. With
``--install-system``, as root, it is installed first, and with ``--strict`` a lane that did not run has failed: both are
given by ``.ci/run``, and where the variable CI is true.

The environment is ``.venv``. Its packages are pinned by version and hash (``ci/constraints.txt``), so that no
``extra-index-url`` or ``find-links`` in someone's pip.conf can change it. It is set up once, and again when the pins or
pyproject.toml change. The kernels are tested in their own environment, ``.venv-kernels``, which has torch and triton
(``ci/kernels-requirements.txt``): there pip is left as it is configured, so that an index which offers CPU torch builds
can spare you the CUDA libraries. Only the standard library is imported here.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # a script finds only modules in its own folder

from ci.engine import docker_engine  # noqa: E402  # found by the line above
from ci.lanes import (  # noqa: E402  # as above
    BIN,
    FAULTY_VENV,
    HEAVY,
    KERNELS_VENV,
    VENV,
    Lane,
    coverage_lanes,
    faulty_python,
    heavy_lanes,
    lint_lanes,
    loaded_lanes,
    mutation_lanes,
    plan,
    reader_lanes,
    red,
    run_lanes,
    say,
    sdist_lanes,
    test_lanes,
    unit_lanes,
    wheel_lanes,
)
from ci.progress import run_pip  # noqa: E402  # as above
from ci.system import install  # noqa: E402  # as above

LANES: dict[str, Callable[[], list[Lane]]] = {
    "setup": list,
    "lint": lint_lanes,
    "unit": unit_lanes,
    "wheel": wheel_lanes,
    "sdist": sdist_lanes,
    "coverage": coverage_lanes,
    "mutation": mutation_lanes,
    "loaded": loaded_lanes,
}
TAKE_ARGUMENTS = ("check", "test", "heavy", "verify")
EVERYTHING, RUN_ONLY, KERNELS = "constraints.txt", "constraints-run.txt", "kernels-requirements.txt"
MUTATION = "constraints-mutation.txt"

# Variables that redirect pip or imports, which are not meant for our environment.
FOREIGN_IMPORTS = {"PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PYTHONPATH", "PYTHONHOME"}
FOREIGN = FOREIGN_IMPORTS | {"PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_CONSTRAINT", "PIP_REQUIREMENT"}


class SetUpError(Exception):
    """The environment could not be made; the message names the fix."""


def set_up(constraints: str, venv: Path = VENV, python: str = sys.executable) -> None:
    """Install the pins of ``constraints`` and an editable wheelproof into ``venv``. Fast if it is up to date."""
    pins = ROOT / "ci" / constraints
    digest = hashlib.sha256(f"{ROOT} {python} {sys.version}".encode())
    for path in (pins, ROOT / "pyproject.toml", ROOT / "tools/wheelproof/__init__.py"):  # the last has the version
        digest.update(path.read_bytes())
    stamp = venv / f"{constraints}.installed"
    if stamp.exists() and stamp.read_text() == digest.hexdigest() and _works(venv):
        _compile()
        return
    packages = sum("==" in line for line in pins.read_text().splitlines() if line[:1].isalnum())
    say(f"set-up of {venv.name}: {packages} packages, about a minute the first time")
    if not _works(venv):
        _call([python, "-m", "venv", "--clear", str(venv)], "on Debian and Ubuntu: apt-get install python3-venv")
    _pip_install(venv, "--no-user", "--require-hashes", "-r", str(pins), packages=packages)
    _pip_install(
        venv,
        "--no-user",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
        "--editable",
        str(ROOT),
        hint="is pyproject.toml well-formed?",
    )
    stamp.write_text(digest.hexdigest())
    _compile()


def _compile() -> None:
    """Write the bytecode of our packages where Python is not to write any: else each start takes half a second more."""
    if sys.dont_write_bytecode:
        folders = [str(ROOT / name) for name in ("tools", "wheel_checks", "kernels_smoke")]
        subprocess.run([VENV / "bin/python", "-m", "compileall", "-q", *folders], check=False, stdout=sys.stderr)


def set_up_kernels() -> None:
    """Install torch, triton and pytest into ``.venv-kernels``.

    Nothing is made where WHEELPROOF_KERNELS_PYTHON names a Python that has them.
    """
    if os.environ.get("WHEELPROOF_KERNELS_PYTHON"):
        return
    pins = ROOT / "ci" / KERNELS
    stamp = KERNELS_VENV / f"{KERNELS}.installed"
    digest = hashlib.sha256(f"{ROOT} {sys.version}".encode() + pins.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest and _works(KERNELS_VENV):
        return
    say("set-up of .venv-kernels: torch and triton, 1.8 GB with a CPU build of torch, else more")
    if not _works(KERNELS_VENV):
        _call([sys.executable, "-m", "venv", "--clear", str(KERNELS_VENV)], "see above")
    _pip_install(KERNELS_VENV, "-r", str(pins), foreign=FOREIGN_IMPORTS)
    stamp.write_text(digest)


def _works(venv: Path = VENV) -> bool:
    probe = "import pip, sys; sys.exit(sys.version_info < (3, 11))"
    try:
        return subprocess.run([venv / "bin/python", "-c", probe], check=False, capture_output=True).returncode == 0
    except OSError:
        return False


def _call(command: Sequence[str], hint: str) -> None:
    # Standard output belongs to the report of `verify`.
    if subprocess.run(command, env=_without(FOREIGN), cwd=ROOT, check=False, stdout=sys.stderr).returncode:
        raise SetUpError(f"`{' '.join(command)}` failed ({hint})")


def check(arguments: Sequence[str]) -> int:
    """Run the checks that a change can reach: see ``ci/check.py``, whose syntax an older Python could not even read."""
    from ci import check as of_change

    options = of_change.parse(arguments)
    set_up(EVERYTHING)
    return of_change.check(options, make_kernels_venv=set_up_kernels)


def _pip_install(
    venv: Path,
    *arguments: str,
    packages: int = 0,
    hint: str = "is the package index reachable? pip's message is above",
    foreign: set[str] = FOREIGN,
) -> None:
    options = ["--progress-bar=off", "--disable-pip-version-check", "--no-input"]
    command = [str(venv / "bin/python"), "-m", "pip", "install", *options, *arguments]
    environment = _without(foreign) | {"TMPDIR": str(venv)}  # unpacked files there count in the reported size
    if run_pip(command, environment, ROOT, packages=packages, into=venv):
        raise SetUpError(f"`{' '.join(command)}` failed ({hint})")


def _without(foreign: set[str]) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in foreign}


def verify(arguments: Sequence[str]) -> int:
    """Become ``wheelproof verify``; an environment for development serves as well as the light one."""
    full = VENV / f"{EVERYTHING}.installed"
    set_up(EVERYTHING if full.exists() else RUN_ONLY)
    sys.stderr.flush()
    command = [str(BIN / "wheelproof"), "verify", *arguments]
    os.execv(command[0], command)  # noqa: S606  # no shell is the point: arguments arrive as they were given


def main() -> int:
    """Run the command that was requested; 1 when a lane fails, 3 when the environment cannot be made."""
    if sys.version_info < (3, 11):  # noqa: UP036  # this file may run on an older Python, before pip could refuse it
        print(f"Python 3.11 or newer is needed; this is {sys.version.split()[0]}", file=sys.stderr)
        return 3
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("check", "test", "heavy", "verify", *LANES))
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of check, test, heavy, and wheelproof verify")
    options = parser.parse_args()
    command, arguments = options.command, options.arguments
    if arguments and command not in TAKE_ARGUMENTS:
        parser.error(f"{command} takes no arguments")
    if command in ("test", "heavy"):
        return run_everything(command, arguments)
    try:
        if command == "verify":
            return verify(arguments)
        if command == "check":
            return check(arguments)
        return run(command)
    except SetUpError as error:
        return _not_set_up(error)


def _not_set_up(error: SetUpError) -> int:
    print(red(f"the set-up failed: {error}"), file=sys.stderr)
    return 3


def run(command: str) -> int:
    """Set up the environments for the lanes of a command, and run them. Raises SetUpError."""
    set_up(EVERYTHING)
    if command == "mutation":
        set_up(MUTATION)  # the same versions, and the additional packages
    if command == "loaded":
        set_up_kernels()
        with docker_engine():
            return run_lanes(loaded_lanes())
    return run_lanes(LANES[command]()) if command != "setup" else 0


def run_everything(command: str, arguments: Sequence[str]) -> int:
    """Run all lanes (``test``), or heavy ones, with their system packages."""
    in_ci = os.environ.get("CI", "").lower() in {"1", "true"}
    parser = argparse.ArgumentParser(prog=f"ci/develop.py {command}")
    if command == "heavy":
        parser.add_argument("lanes", nargs="*", metavar="LANE", help=f"by default all: {', '.join(HEAVY)}")
    parser.add_argument("--install-system", action="store_true", default=in_ci, help="as root: apt-get install")
    parser.add_argument("--strict", action="store_true", default=in_ci, help="a lane that does not run has failed")
    options = parser.parse_args(arguments)
    names = getattr(options, "lanes", None) or list(HEAVY)
    if unknown := set(names) - set(HEAVY):
        parser.error(f"there is no lane {', '.join(sorted(unknown))}; the heavy lanes are {', '.join(HEAVY)}")
    if options.install_system:
        install(["compiler", *names] if command == "test" else names)
    print(plan(command, names, strict=options.strict), flush=True)
    try:
        set_up(EVERYTHING)
        if "kernels" in names:
            set_up_kernels()
        faulty = faulty_python() if command == "test" and options.strict else ""
        if faulty:
            set_up(EVERYTHING, FAULTY_VENV, faulty)
    except SetUpError as error:
        return _not_set_up(error)
    lanes_of = test_lanes if command == "test" else partial(heavy_lanes, names)
    with docker_engine() as blocker:
        lanes = lanes_of(blocker, strict=options.strict)
        return run_lanes([*reader_lanes(faulty), *lanes], strict=options.strict)


if __name__ == "__main__":
    sys.exit(main())
