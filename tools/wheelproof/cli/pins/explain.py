"""``wheelproof pins explain``: explains whether an installed version satisfies a requirement."""

import argparse
import os

from wheelproof.cli.options import OutputOptions, add_output_options, emit
from wheelproof.reporting import OpenReport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof pins explain``."""
    parser.add_argument("spec", nargs="+", metavar="SPEC", help="a requirement: torch==2.7.0, or '>=2.7' for torch")
    parser.add_argument(
        "--installed", metavar="VERSION", help="the installed version: 2.7.0+cu128, or torchvision==0.22.0"
    )
    parser.add_argument("--python", metavar="PATH", default="", help="the environment to inspect, without --installed")
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Judge each requirement, and print the report. Raises WheelproofError."""
    from wheel_checks.facts.expectations import Expectations
    from wheelproof.pins.explain import explain_requirement
    from wheelproof.pins.predict.environment import installed_version
    from wheelproof.pins.survival import parse_installed, parse_spec

    output = OutputOptions.from_arguments(arguments)
    opened = OpenReport("pins explain")
    rules = output.rules("requirement-of-installed")
    named = parse_installed(arguments.installed) if arguments.installed else None
    subjects = []
    for text in arguments.spec:
        requirement = parse_spec(text, named[0] if named else "torch")
        name, version = named or installed_version(requirement.name, arguments.python, os.environ)
        subjects.append(explain_requirement(requirement, name, version, rules, Expectations()))
    report = opened.close(subjects, output)
    return emit(report, output)
