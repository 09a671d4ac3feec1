"""``wheelproof pins guard``: writes what keeps the installed torch, or checks what is set up."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from wheel_checks.errors import UsageError
from wheel_checks.model import Subject
from wheelproof.cli.options import OutputOptions, add_list, add_output_options, emit, open_output
from wheelproof.reporting import OpenReport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof pins guard``."""
    parser.add_argument(
        "--directory",
        metavar="FOLDER",
        default="torch-guard",
        help="where the files are written (default: torch-guard)",
    )
    parser.add_argument(
        "--python", metavar="PATH", default="", help="the environment to guard (default: the active one)"
    )
    add_list(
        parser,
        "--installed",
        "VERSION",
        "what is installed, as 2.7.0+cu128 or torchvision==0.22.0+cu128 (repeatable): no environment is read",
    )
    parser.add_argument(
        "--on-conflict",
        choices=("fail", "keep"),
        default="fail",
        help="what uv does with a requirement that the installed torch does not satisfy: fail, or drop it",
    )
    add_list(parser, "--extension", "NAME", "one more package that is compiled against torch (repeatable)")
    parser.add_argument("--check", action="store_true", help="write nothing: check what is set up, and name the holes")
    parser.add_argument("--installer", choices=("uv", "pip", "both"), default="both", help="whose setup --check judges")
    parser.add_argument("--project", metavar="FOLDER", default=".", help="where the installer is started, for --check")
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the guard and say how to use it, or print the report of ``--check``. Raises WheelproofError."""
    output = OutputOptions.from_arguments(arguments)
    return _check(arguments, output) if arguments.check else _write(arguments, output)


def _installed(arguments: argparse.Namespace) -> dict[str, str]:
    """Torch and its companions, as they are installed or described, torch first."""
    from wheel_checks.sources.environment import find_environment
    from wheelproof.pins.predict.environment import WATCHED, read_packages
    from wheelproof.pins.survival import parse_installed

    if arguments.installed:
        return {name: str(version) for name, version in map(parse_installed, arguments.installed)}
    packages = read_packages(find_environment(arguments.python, variables=os.environ))
    return {name: packages[name].version for name in WATCHED if name in packages}


def _interpreter(arguments: argparse.Namespace) -> str:
    from wheel_checks.sources.environment import find_environment

    return "" if arguments.installed else find_environment(arguments.python, variables=os.environ).interpreter


def _write(arguments: argparse.Namespace, output: OutputOptions) -> int:
    from packaging.utils import canonicalize_name

    from wheel_checks.report.wording import write
    from wheelproof.pins.guard.abilities import read_uv
    from wheelproof.pins.guard.files import Guard, guard_files, instructions, known_extensions, write_files

    folder = Path(arguments.directory).absolute()
    more = (str(canonicalize_name(name)) for name in arguments.extension)
    guard = Guard(
        _installed(arguments),
        folder,
        read_uv(os.environ),
        tuple(dict.fromkeys((*more, *known_extensions()))),
        arguments.on_conflict == "keep",
    )
    files = guard_files(guard)
    write_files(folder, files)
    if not output.quiet:
        with open_output(output.output) as stream:
            write(stream, instructions(guard))
    return 0


def _check(arguments: argparse.Namespace, output: OutputOptions) -> int:
    from wheel_checks.facts.expectations import Expectations
    from wheel_checks.runner import run_rules
    from wheelproof.pins.guard.check import read_guard

    opened = OpenReport("pins guard")
    folder = Path(arguments.project)
    if not folder.is_dir():
        raise UsageError(f"--project {folder} is no folder", expected="the folder in which the installer is started")
    rules = output.rules("pin-guard")
    installed = _installed(arguments)
    names = ", ".join(f"{name} {version}" for name, version in installed.items()) or "no torch is installed"
    subjects = []
    for installer in {"both": ("uv", "pip")}.get(arguments.installer, (arguments.installer,)):
        guard = read_guard(installer, installed, folder, os.environ, _interpreter(arguments))
        facts = {
            "installer": installer,
            "version": guard.version,
            "installed": dict(installed),
            "settings": [f"{s.kind}: {s.origin}{f' ({s.path})' if s.path else ''}" for s in guard.settings],
        }
        results = run_rules(rules, guard, Expectations())
        subjects.append(Subject(f"the guard of {installer} {guard.version}", "guard", names, facts, results))
    report = opened.close(subjects, output)
    return emit(report, output)
