"""``wheelproof matrix merge``: merges the reports of cells that ran on several hosts."""

import argparse

from wheelproof.cli.matrix.options import add_matrix_options, matrix_path
from wheelproof.cli.options import OutputOptions, add_output_options, emit
from wheelproof.cli.report.merge import reading


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof matrix merge``."""
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="JSON reports from `matrix run`, folders of them (--records), or - for standard input",
    )
    add_matrix_options(parser)
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read, judge, and print the merged report. Raises WheelproofError."""
    from wheelproof.fleet.inputs import find_inputs
    from wheelproof.matrix.gathering import merge
    from wheelproof.matrix.reading import read_matrix

    output = OutputOptions.from_arguments(arguments)
    path = matrix_path(arguments)
    # Without a file the reports say which cells there are
    matrix = read_matrix(path) if arguments.matrix or arguments.only or path.is_file() else None
    inputs = find_inputs(arguments.paths, may_be_empty=matrix is not None)
    with reading(inputs, quiet=output.quiet) as documents:
        report = merge(((each.source, each.content) for each in documents), output, matrix, arguments.only)
    return emit(report, output)
