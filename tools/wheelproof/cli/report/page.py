"""``wheelproof report page``: several reports as one page of HTML."""

from __future__ import annotations

import argparse

from wheelproof.cli.options import check_output, open_output
from wheelproof.cli.report.reading import read_reports

CONFIGURABLE = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof report page``."""
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="reports in the json format, folders of them, or - for standard input"
    )
    parser.add_argument(
        "--title", metavar="TEXT", default="wheelproof", help="the title of the page (default: wheelproof)"
    )
    parser.add_argument("--output", metavar="FILE", default="-", help="write the page to FILE (- for standard output)")


def run(arguments: argparse.Namespace) -> int:
    """Write the page. Raises WheelproofError."""
    from wheel_checks.report.status_page import render

    if arguments.output != "-":
        check_output("--output", arguments.output)
    reports = read_reports(arguments.paths)
    with open_output(arguments.output) as stream:
        render(reports, stream, arguments.title)
    return 0
