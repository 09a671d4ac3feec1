"""``wheelproof matrix list``: the cells of a matrix."""

import argparse

from wheelproof.cli.matrix.options import add_matrix_options, chosen_cells
from wheelproof.cli.options import open_output

CONFIGURABLE = False  # `format = "junit"` in a project's configuration is about reports, and must not break the list.


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof matrix list``."""
    add_matrix_options(parser)
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")


def run(arguments: argparse.Namespace) -> int:
    """Print the cells. Raises WheelproofError."""
    from wheel_checks.report.links import is_screen
    from wheel_checks.report.wording import plain_json, write
    from wheelproof.matrix.listing import as_json, as_table, as_text

    cells = chosen_cells(arguments)
    with open_output("-") as stream:
        if arguments.format == "json":
            stream.write(plain_json(as_json(cells)))
        elif is_screen(stream):
            from wheel_checks.report.text import render_table  # imports rich

            render_table(as_table(cells), stream)
        else:
            write(stream, as_text(cells))
    return 0
