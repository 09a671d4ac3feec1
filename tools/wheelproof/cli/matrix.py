"""``wheelproof matrix``: the cells of a matrix of platforms, Pythons and torch versions; its commands do the rest."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from wheelproof.cli.options import ListAction

if TYPE_CHECKING:  # not for --help
    from collections.abc import Sequence

    from wheelproof.matrix.model import Cell

DEFAULT = "ci/matrix.toml"

# sub-command: (module with ``add_arguments`` and ``run``, summary for --help)
SUBCOMMANDS = {
    "list": ("wheelproof.cli.matrix_list", "the cells of the matrix"),
    "github": ("wheelproof.cli.matrix_github", "the cells as JSON for `strategy.matrix` of GitHub Actions"),
    "run": ("wheelproof.cli.matrix_run", "take cells through the whole way on this machine, and merge the evidence"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of plain ``wheelproof matrix``: those of ``matrix list``, which it runs."""
    from wheelproof.cli.matrix_list import add_arguments as add_list_arguments  # noqa: PLC0415  # which imports us

    width = max(map(len, SUBCOMMANDS))
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = f"{parser.description}\n\nWithout a command: `matrix list`. Commands:\n" + "\n".join(
        f"  {name:{width}}  {summary}" for name, (_, summary) in SUBCOMMANDS.items()
    )
    add_list_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Show the cells. Raises WheelproofError."""
    from wheelproof.cli.matrix_list import run as run_list  # noqa: PLC0415  # which imports us

    return run_list(arguments)


def add_matrix_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options that say which cells are meant; :func:`chosen_cells` reads them."""
    parser.add_argument("--matrix", metavar="FILE", default=DEFAULT, help=f"the matrix (default: {DEFAULT})")
    parser.add_argument(
        "--only", action=ListAction, default=[], metavar="GLOB", help="only the cells with such an id (repeatable)"
    )


def chosen_cells(arguments: argparse.Namespace) -> Sequence[Cell]:
    """The cells that the options name. Raises UsageError."""
    from wheelproof.matrix.reading import read_matrix  # noqa: PLC0415  # not for --help

    return read_matrix(Path(arguments.matrix)).only(arguments.only)
