"""Runs pip and uv as a user would, in the user's own configuration, and reads what their dry runs say.

Neither reads a file of the current folder: uv gets the settings that are given, and pip is not taken from there.
Nothing is built unless that is requested, so no code of a package runs: they see wheels alone, and the source archives
that would be taken are found by :mod:`wheelproof.wheels.resolving`.
"""

import contextlib
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from wheel_checks.errors import FormatError, OfflineError, SourceError
from wheel_checks.facts.stack.facts import Conflict
from wheel_checks.process import LARGEST_OUTPUT, StartError
from wheel_checks.sources.regular_file import read_start
from wheel_checks.sources.scratch_folder import scratch_folder
from wheel_checks.sources.uv.changes import parse_changes
from wheel_checks.sources.uv.explanation import Demand, Explanation, explain
from wheel_checks.sources.uv.resolver import NoSolutionError
from wheel_checks.sources.uv_binary import Answer, run_installer, run_uv

UV, PIP = "uv", "pip"
DEFAULT_TIMEOUT = 300.0  # seconds; a cold resolution of 200 packages takes 20

# As ``python -m pip``, which would import pip, or a module that it needs, from the current folder: anybody's files.
PIP_ALONE = (
    "import sys; sys.path[:] = filter(None, sys.path); import runpy; "
    "runpy.run_module('pip', run_name='__main__', alter_sys=True)"
)
_PIP_DEMAND = re.compile(
    r"(?:The user requested|(\S+) (\S+) depends on) (.+)"
)  # pip, under "The conflict is caused by"
_PIP_CONFLICT, _PIP_NOTHING = "ResolutionImpossible", re.compile(r"No matching distribution found for (\S+)")


@dataclass(frozen=True, slots=True)
class DryRun:
    """What an install would change: versions by normalised name. ``urls`` says where pip would take a file from.

    A package in both ``removed`` and ``installed`` is replaced. ``conflict`` says why nothing at all would be done.
    ``requirements`` are those of what is installed, where the installer says them.
    """

    installed: Mapping[str, str]
    removed: Mapping[str, str]
    urls: Mapping[str, str]
    conflict: Conflict | None = None
    requirements: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def refused(explanation: Explanation) -> DryRun:
    """The dry run of an install that the installer refuses."""
    demands = tuple(map(str, explanation.demands))
    return DryRun({}, {}, {}, Conflict(explanation.sentences, demands, explanation.hints))


def run_pip(command: Sequence[str], variables: Mapping[str, str], timeout: float = DEFAULT_TIMEOUT) -> Answer:
    """Run a pip in the current folder for at most ``timeout`` seconds.

    Raises SourceError when it cannot be started or was killed, DeadlineError when it takes too long.
    """
    plain = {"NO_COLOR": "1", "PIP_NO_COLOR": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    try:
        return run_installer(Path(command[0]).name, command, {**variables, **plain}, timeout)
    except StartError as error:
        raise SourceError(f"{command[0]} cannot be started: {error}") from error


def uv_dry_run(
    arguments: Sequence[str], variables: Mapping[str, str], timeout: float = DEFAULT_TIMEOUT, *, build: bool = False
) -> DryRun:
    """What ``uv pip install ARGUMENTS`` would change, ``--config-file`` among them.

    Its text is read: the JSON is a preview, and younger.

    ``build`` lets uv build source archives, which runs their code; without it uv passes over what has no wheel. Raises
    NoSolutionError for requirements that cannot be met, SourceError when uv gives no answer.
    """
    options = ["--dry-run", *([] if build else ["--no-build"])]
    return read_uv(run_uv(["pip", "install", *options, *arguments], variables, timeout))


def read_uv(done: Answer) -> DryRun:
    """What a dry run of uv says. Raises NoSolutionError, OfflineError, SourceError when it is not an answer."""
    if done.status:
        explanation = explain(done.words)
        if explanation is None:
            raise _silent(UV, done)
        if any("not found in the cache" in sentence for sentence in explanation.sentences):
            raise OfflineError(f"{explanation}", hint="run once without --offline")
        raise NoSolutionError(explanation)
    return parse_uv_changes(done.output + done.words)


def parse_uv_changes(words: str) -> DryRun:
    """Read the list of changes that uv prints. Raises FormatError when the words hold no such list."""
    changes = parse_changes(words)
    return DryRun(changes.installed, changes.removed, changes.urls)


def pip_dry_run(
    arguments: Sequence[str],
    packages: Mapping[str, str],
    python: str,
    variables: Mapping[str, str],
    timeout: float = DEFAULT_TIMEOUT,
    *,
    build: bool = False,
) -> DryRun:
    """What ``pip install ARGUMENTS`` would change in the environment of ``python``, which has ``packages``.

    The environment's own pip is queried when it has one, else that of this Python. ``build`` lets it build source
    archives, which runs their code; without it pip passes over what has no wheel. Raises NoSolutionError for
    requirements that cannot be met, SourceError when pip gives no answer, FormatError for a report that cannot be read.
    """
    has_pip = "pip" in packages
    command = [python, "-c", PIP_ALONE] if has_pip else [sys.executable, "-c", PIP_ALONE, "--python", python]
    with _temporary_file() as report:
        options = ["--quiet", "--dry-run", "--report", str(report)]
        options += [] if build else ["--only-binary", ":all:"]
        # Without it pip downloads every wheel whole, 4 GB for torch, to read its METADATA where the index has no other.
        lazily = [*command, "install", "--use-feature=fast-deps", *options, *arguments]
        done = run_pip(lazily, variables, timeout)
        if "invalid choice: 'fast-deps'" in done.words:  # a later pip may have no such feature, or need none
            done = run_pip([part for part in lazily if part != "--use-feature=fast-deps"], variables, timeout)
        if done.status:
            nothing = _PIP_NOTHING.search(done.words)
            if not nothing and _PIP_CONFLICT not in done.words:
                raise _silent(PIP, done)
            raise NoSolutionError(_pip_explanation(done.words, nothing[1] if nothing else ""))
        return parse_pip_report(read_start(report, LARGEST_OUTPUT), packages)


def parse_pip_report(data: bytes, packages: Mapping[str, str]) -> DryRun:
    """Read pip's installation report (version 1), for an environment with ``packages`` (name to version).

    Raises FormatError naming the field that is not what pip documents.
    """
    try:
        report: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"pip's report is not JSON: {error}", expected="an installation report") from None
    rows = report.get("install") if isinstance(report, dict) else None
    if not isinstance(rows, list):
        raise FormatError("pip's report has no list named install", expected="an installation report of version 1")
    installed: dict[str, str] = {}
    urls: dict[str, str] = {}
    requirements: dict[str, tuple[str, ...]] = {}
    for number, row in enumerate(rows):
        metadata = row.get("metadata") if isinstance(row, dict) else None
        name, version = (metadata.get(key) if isinstance(metadata, dict) else None for key in ("name", "version"))
        if not isinstance(name, str) or not isinstance(version, str):
            raise FormatError(f"install[{number}].metadata has no name and version", expected="two strings")
        normalised = str(canonicalize_name(name))
        installed[normalised] = version
        rows_of = metadata.get("requires_dist", []) if isinstance(metadata, dict) else []
        requirements[normalised] = tuple(filter(_is_text, rows_of)) if isinstance(rows_of, list) else ()
        source = row.get("download_info")
        url = source.get("url") if isinstance(source, dict) else None
        if isinstance(url, str):
            urls[normalised] = url
    removed = {name: packages[name] for name in installed if name in packages}
    return DryRun(installed, removed, urls, requirements=requirements)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _pip_explanation(words: str, nothing: str) -> Explanation:
    """What pip says, as uv explains it. ``nothing`` is the requirement for which it finds no file."""
    lines = [line.removeprefix("ERROR: ").strip() for line in words.splitlines()]
    sentences = [line for line in lines if line and not line.startswith(("WARNING", "To fix this", "[notice"))]
    demands = [
        Demand(f"{match[1]}=={match[2]}" if match[2] else "", match[3].partition(";")[0].strip())
        for line in lines
        if (match := _PIP_DEMAND.fullmatch(line))
    ]
    demands += [Demand("", nothing)] if nothing else []
    name = re.match(r"[A-Za-z0-9._-]+", nothing)
    return Explanation(tuple(sentences[:12]), tuple(dict.fromkeys(demands)), (name[0],) if name else ())


def _silent(installer: str, done: Answer) -> SourceError:
    told = " ".join((done.words or done.output).split())[-600:]
    return SourceError(f"{installer} could not plan the install: {told or f'status {done.status}'}")


@contextlib.contextmanager
def _temporary_file() -> Iterator[Path]:
    with scratch_folder() as folder:
        yield folder / "report.json"
