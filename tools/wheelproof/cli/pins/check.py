"""``wheelproof pins check``: lists every requirement that could replace the installed torch, for CI and pre-commit."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from wheel_checks.errors import NotFoundError
from wheelproof.cli.options.output import OutputOptions, add_list, add_output_options, emit
from wheelproof.cli.options.rights import SETS, allow_tree, raises
from wheelproof.cli.pins.options import add_name_options, policy_of
from wheelproof.reporting import OpenReport

if TYPE_CHECKING:  # not for --help
    from wheel_checks.targets.target import Target

_VERSION = re.compile(r"(?:cp)?3\.?\d{1,2}(?:\.\d{1,2})?t?")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof pins check``."""
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files and folders (default: the current folder)")
    add_list(
        parser,
        "--installed",
        "VERSION",
        "the installed version: 2.7.0+cu128, torchvision==0.22.0+cu128 (repeatable); 'none' reports every pin",
    )
    parser.add_argument(
        "--python",
        metavar="PATH|VERSION",
        default="",
        help="the environment to inspect (default: the active one), or a version for markers, such as 3.12",
    )
    add_list(
        parser,
        "--platform",
        "PLATFORM",
        "the platform to evaluate markers for: x86_64, aarch64, win_amd64, ... (repeatable; default: Linux on both)",
    )
    add_name_options(parser)
    parser.add_argument("--skip-vendored", action="store_true", help="skip vendored projects and test data in folders")
    allow_tree(parser, SETS, "installed")
    allow_tree(parser, raises("core", "wide"), "set")
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Judge the files, and print the report. Raises WheelproofError."""
    from wheel_checks.model import Overview
    from wheel_checks.report.wording import concerning, counts_phrase
    from wheelproof.pins.check import KIND, check_files, headline

    output = OutputOptions.from_arguments(arguments)
    opened = OpenReport("pins check")
    rules = output.rules(KIND)
    policy = policy_of(arguments)
    paths = [Path(name) for name in arguments.paths] or [Path()]
    installed = _installed(arguments)
    checked = check_files(
        paths, policy, installed, rules, skip_vendored=arguments.skip_vendored, targets=_targets(arguments)
    )
    if not checked.subjects:
        raise NotFoundError(
            f"no requirements file found in {', '.join(map(str, paths))}",
            hint="to read files with other names, list them",
        )
    counts = counts_phrase(concerning(checked.subjects))
    overview = Overview(f"{headline(checked.subjects, policy)}: {counts}")
    report = opened.close(checked.subjects, output, local=checked.bytes_read, overview=overview)
    return emit(report, output)


def _targets(arguments: argparse.Namespace) -> tuple[Target, ...]:
    """The targets of markers: the named platforms and Pythons; all of them if none is named."""
    from wheel_checks.targets.target import parse_targets
    from wheelproof.pins.applicability import with_every_python

    pythons = [arguments.python] if _VERSION.fullmatch(arguments.python) else []
    targets = parse_targets(arguments.platform or ["all"], pythons, systems=True)
    return targets if pythons else with_every_python(targets)


def _installed(arguments: argparse.Namespace) -> dict[str, str]:
    """The installed versions to compare with: given or read from an environment; empty without either.

    The installed torch wins over a version that a tree names.
    """
    from wheelproof.pins.guard.versions import installed_versions
    from wheelproof.pins.survival import parse_installed

    given = [parse_installed(text) for text in arguments.installed if text != "none"]
    named = {name: str(version) for name, version in given}
    if arguments.installed and "installed" not in arguments.from_tree:
        return named
    python = "" if _VERSION.fullmatch(arguments.python) else arguments.python
    try:
        here = installed_versions(python, os.environ)
    except NotFoundError:
        if python:
            raise
        here = {}
    return here if "torch" in here else here | named
