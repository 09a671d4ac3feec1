"""The steps of ``action.yml``: ``name`` prints the environment's folder and cache key, ``install`` makes it, and
``run`` runs wheelproof there.

Everything comes from the environment, as the step sets it, so that no input is ever part of a script:

    INPUT_VERSION    a requirement or a file for pip; empty means this very source, with pinned dependencies
    INPUT_COMMAND    the command, "pins check" for instance
    INPUT_ARGUMENTS  its arguments, quoted as in a shell, which never sees them; a # begins a comment
    RUNNER_TEMP, GITHUB_OUTPUT, GITHUB_STEP_SUMMARY  as the runner sets them; ImageOS if it has an image of a name

Only the standard library is imported: this starts before anything is installed.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import secrets
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
PINS = SOURCE / "ci/constraints-run.txt"
COULD_NOT_CHECK, WRONG_USAGE = 3, 2


class StepError(Exception):
    """The step cannot continue; the message names the fix."""


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the step that is named; the exit code is wheelproof's, and 2 or 3 when the step itself cannot continue."""
    steps = {"name": name, "install": install, "run": run}
    if len(arguments) != 1 or arguments[0] not in steps:
        print(f"usage: action.py {'|'.join(steps)}", file=sys.stderr)
        return WRONG_USAGE
    try:
        return steps[arguments[0]](environment)
    except (StepError, OSError) as error:  # a disk that is full must not exit 1, which means findings
        print(f"::error title=wheelproof::{_data(str(error))}")
        return COULD_NOT_CHECK


def name(environment: Mapping[str, str]) -> int:
    """Print the environment's folder and cache key; an empty key if the environment is not reproducible."""
    _append(environment, "GITHUB_OUTPUT", f"path={_place(environment)}\nkey={_key(environment)}\n")
    return 0


def _key(environment: Mapping[str, str]) -> str:
    """A digest of all that an environment is made from: Python, machine, image, place, and wheelproof itself.

    "" for a requirement that does not name one version, of which a cache would never see the next.
    """
    version = environment.get("INPUT_VERSION", "").strip()
    if not version:
        what = b"".join(_digest(path) for path in [PINS, *_sources()])
    elif Path(version).is_file():
        what = _digest(Path(version))
    elif re.fullmatch(r"[A-Za-z0-9._-]+(\[[A-Za-z0-9,._ -]+\])?\s*==\s*[A-Za-z0-9.+!-]+", version):
        what = version.encode()
    else:
        return ""
    python = [sys.version, sys.executable, os.path.realpath(sys.executable)]
    machine = [platform.machine(), *platform.libc_ver(), environment.get("ImageOS", "")]
    made = "\n".join([str(_place(environment)), *python, *machine]).encode()
    return f"wheelproof-{sys.platform}-{platform.machine()}-{hashlib.sha256(made + what).hexdigest()[:32]}"


def _sources() -> list[Path]:
    """The files that an install of this source takes, in order."""
    folders = [SOURCE / "tools", SOURCE / "wheel_checks", SOURCE / "kernels_smoke"]
    found = (path for folder in folders for path in folder.rglob("*") if path.suffix not in (".pyc", ".pyo"))
    return [SOURCE / "pyproject.toml", *sorted(path for path in found if path.is_file())]


def _digest(path: Path) -> bytes:
    inside = path.relative_to(SOURCE) if path.is_relative_to(SOURCE) else path.name
    return hashlib.sha256(f"{inside}\n".encode() + path.read_bytes()).digest()


def install(environment: Mapping[str, str]) -> int:
    """Make the environment, or reuse the one of an earlier step or of the cache. Raises StepError."""
    if sys.version_info < (3, 11):  # noqa: UP036  # this file may run on an older Python, before pip could refuse it
        found = sys.version.split()[0]
        raise StepError(f"Python 3.11 or newer is needed, this is {found}: run actions/setup-python before this action")
    place, stamp = _place(environment), _place(environment) / "installed"
    if stamp.exists() and (place / "bin/python").exists():  # the image may have lost it
        return 0
    print("::group::Install wheelproof", flush=True)
    pip = [*_make_venv(place), "install", "--quiet", "--disable-pip-version-check"]
    version = environment.get("INPUT_VERSION", "").strip()
    if version:
        _call([*pip, "--", version], "the input `version` is one requirement or file for pip, whose message is above")
    else:
        _call([*pip, "--require-hashes", "-r", str(PINS)], "pip's message is above")
        _call([*pip, "--no-index", "--no-deps", "--no-build-isolation", str(SOURCE)], "pip's message is above")
    print("::endgroup::", flush=True)
    stamp.touch()
    return 0


def _make_venv(place: Path) -> list[str]:
    """Make an environment, and return the pip for it: our Python's own, since installing one there takes seconds."""
    venv, own = [sys.executable, "-m", "venv", "--clear"], find_spec("pip") is not None
    hint = "on Debian and Ubuntu: apt-get install python3-venv"
    _call([*venv, *["--without-pip"] * own, str(place)], hint)
    python = str(place / "bin/python")
    return [sys.executable, "-I", "-m", "pip", "--python", python] if own else [python, "-I", "-m", "pip"]


def run(environment: Mapping[str, str]) -> int:
    """Run wheelproof: its report in the log, findings as annotations, a job summary, outputs. Raises StepError."""
    folder = Path(tempfile.mkdtemp(prefix="wheelproof-", dir=_variable(environment, "RUNNER_TEMP")))
    report, annotations, summary = folder / "report.json", folder / "annotations.txt", folder / "summary.md"
    named = _words(environment, "INPUT_COMMAND")
    if not named:
        raise StepError("the input `command` is empty")
    command = [str(_place(environment) / "bin/python"), "-I", "-m", "wheelproof", *named]
    command += [f"--also=json={report}", f"--also=github={annotations}", f"--also=markdown={summary}"]
    command += _words(environment, "INPUT_ARGUMENTS")
    # The job has checked it out: in a container it may belong to another user, as for git in actions/checkout.
    workspace = environment.get("GITHUB_WORKSPACE", "")
    variables = {**({"WHEELPROOF_SAFE_DIRECTORY": workspace} if workspace else {}), **environment}
    # The log quotes wheels and servers. Until the token comes, the runner takes no line of it for a command.
    token = secrets.token_hex()
    print(f"::stop-commands::{token}", flush=True)
    try:
        status = subprocess.run(command, env=variables, check=False).returncode
    finally:
        print(f"\n::{token}::", flush=True)
    verdict = ""
    if summary.exists():  # it is written last
        verdict = str(json.loads(report.read_text(encoding="utf-8"))["summary"]["verdict"])
        sys.stdout.write(annotations.read_text(encoding="utf-8"))
        _append(environment, "GITHUB_STEP_SUMMARY", summary.read_text(encoding="utf-8"))
    else:
        why = "wrong usage" if status == WRONG_USAGE else "nothing was checked"
        print(f"::error title=wheelproof::{why} (exit code {status}): the log of this step says why")
    _append(environment, "GITHUB_OUTPUT", f"verdict={verdict}\nexit-code={status}\n")
    _append(environment, "GITHUB_OUTPUT", f"report={report if verdict else ''}\n")
    return status


def _place(environment: Mapping[str, str]) -> Path:
    """The folder of the environment, which depends on the installed packages."""
    what = f"{environment.get('INPUT_VERSION', '').strip()}\n{SOURCE}\n{sys.version}"
    return Path(_variable(environment, "RUNNER_TEMP")) / f"wheelproof-{hashlib.sha256(what.encode()).hexdigest()[:16]}"


def _variable(environment: Mapping[str, str], name: str) -> str:
    if not environment.get(name):
        raise StepError(f"{name} is not set: this runs as a step of GitHub Actions")
    return environment[name]


def _words(environment: Mapping[str, str], name: str) -> list[str]:
    text = environment.get(name, "")
    try:
        return shlex.split(text, comments=True)
    except ValueError as error:
        raise StepError(f"the input `{name.removeprefix('INPUT_').lower()}` is badly quoted: {error}") from error


def _append(environment: Mapping[str, str], name: str, text: str) -> None:
    with Path(_variable(environment, name)).open("a", encoding="utf-8") as file:
        file.write(text)


def _call(command: Sequence[str], hint: str) -> None:
    if subprocess.run(command, check=False).returncode:
        raise StepError(f"`{shlex.join(command)}` failed ({hint})")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
