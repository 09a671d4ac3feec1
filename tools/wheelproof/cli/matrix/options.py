"""The options of every ``wheelproof matrix`` command: which cells of which matrix."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from wheelproof.cli.options import add_list

if TYPE_CHECKING:  # not for --help
    from collections.abc import Sequence

    from wheelproof.matrix.model import Cell

DEFAULT = "ci/matrix.toml"


def add_matrix_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options that say which cells are meant; :func:`chosen_cells` reads them."""
    parser.add_argument("--matrix", metavar="FILE", help=f"the matrix (default: {DEFAULT})")
    add_list(parser, "--only", "GLOB", "only the cells with such an id (repeatable)")


def chosen_cells(arguments: argparse.Namespace) -> Sequence[Cell]:
    """The cells that the options name. Raises UsageError."""
    from wheelproof.matrix.reading import read_matrix

    return read_matrix(matrix_path(arguments)).only(arguments.only)


def matrix_path(arguments: argparse.Namespace) -> Path:
    """The file of the matrix: the one that the user names, else that of the tree."""
    return Path(arguments.matrix or DEFAULT)
