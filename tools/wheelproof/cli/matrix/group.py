"""``wheelproof matrix``: the cells of a matrix of platforms, Pythons and torch versions; its commands do the rest."""

from __future__ import annotations

import argparse

from wheelproof.cli.matrix import list as matrix_list
from wheelproof.cli.options import add_commands_help

CONFIGURABLE = False

# sub-command: (module with ``add_arguments`` and ``run``, summary for --help)
SUBCOMMANDS = {
    "list": ("wheelproof.cli.matrix.list", "the cells of the matrix"),
    "github": ("wheelproof.cli.matrix.github", "the cells as JSON for `strategy.matrix` of GitHub Actions"),
    "plan": (
        "wheelproof.cli.matrix.plan",
        "write the cells as a file for GitHub, GitLab, Slurm, Kubernetes and others",
    ),
    "image": ("wheelproof.cli.matrix.image", "make the container images that cells need, from Debian's packages"),
    "run": ("wheelproof.cli.matrix.run", "take cells through the whole way on this machine, and merge the evidence"),
    "merge": ("wheelproof.cli.matrix.merge", "the reports of cells that ran on several machines as one report"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of plain ``wheelproof matrix``: those of ``matrix list``, which it runs."""
    add_commands_help(parser, SUBCOMMANDS, "`matrix list`.")
    matrix_list.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Show the cells. Raises WheelproofError."""
    return matrix_list.run(arguments)
