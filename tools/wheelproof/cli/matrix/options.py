"""The options of every ``wheelproof matrix`` command: which cells of which matrix."""

from __future__ import annotations

import argparse
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from wheel_checks.errors import UsageError
from wheel_checks.phrases import summarised
from wheelproof.cli.options.output import add_list

if TYPE_CHECKING:  # not for --help
    from collections.abc import Sequence

    from wheelproof.matrix.model import Cell, Matrix

DEFAULT = "ci/matrix.toml"


def add_matrix_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options that say which cells are meant; :func:`chosen_cells` reads them."""
    parser.add_argument("--matrix", metavar="FILE", help=f"the matrix (default: {DEFAULT})")
    add_list(parser, "--only", "GLOB", "only cells with a matching id (repeatable)")


def chosen_cells(arguments: argparse.Namespace) -> Sequence[Cell]:
    """The cells that the options name. Raises UsageError."""
    from wheelproof.matrix.definition.reading import read_matrix

    return read_matrix(matrix_path(arguments)).only(arguments.only)


def named_cells(matrix: Matrix, arguments: argparse.Namespace) -> Sequence[Cell]:
    """The cells that --only and --cell name, all without either. Raises UsageError for an id that no cell has."""
    known = [cell.id for cell in matrix.cells]
    for name in arguments.cell:
        if name not in known:
            nearest = get_close_matches(name, known, n=1)
            raise UsageError(
                f"{matrix.source} has no cell {name}",
                expected=f"one of {summarised(known, 8)}",
                hint=f"did you mean {nearest[0]}?" if nearest else "`wheelproof matrix list` shows the cells",
            )
    chosen = matrix.only(arguments.only)
    return [cell for cell in chosen if cell.id in arguments.cell] if arguments.cell else chosen


def matrix_path(arguments: argparse.Namespace) -> Path:
    """The file of the matrix: the named one, or the one of the tree."""
    return Path(arguments.matrix or DEFAULT)
