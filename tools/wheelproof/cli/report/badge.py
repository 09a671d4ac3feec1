"""``wheelproof report badge``: the verdict of a report as a small picture."""

from __future__ import annotations

import argparse

from wheel_checks.errors import UsageError
from wheelproof.cli.options import check_output, open_output
from wheelproof.cli.report.reading import read_reports

CONFIGURABLE = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof report badge``."""
    parser.add_argument("path", metavar="FILE", help="a report in the json format, or - for standard input")
    parser.add_argument(
        "--label", metavar="TEXT", default="wheelproof", help="the label on the left (default: wheelproof)"
    )
    parser.add_argument("--output", metavar="FILE", default="-", help="write the SVG to FILE (- for standard output)")


def run(arguments: argparse.Namespace) -> int:
    """Write the SVG. Raises UsageError for several reports, and WheelproofError."""
    from wheel_checks.report.badge import badge

    if arguments.output != "-":
        check_output("--output", arguments.output)
    reports = read_reports([arguments.path])
    if len(reports) > 1:
        raise UsageError(
            f"{arguments.path} has {len(reports)} reports, but a badge shows one verdict",
            expected="one report",
            hint="merge them with `wheelproof report merge`",
        )
    with open_output(arguments.output) as stream:
        stream.write(badge(reports[0], arguments.label))
    return 0
