"""``wheelproof matrix``: the cells of a matrix of platforms, Pythons and torch versions; its commands do the rest."""

import argparse

from wheelproof.cli.matrix import list as matrix_list
from wheelproof.cli.options import add_commands_help

CONFIGURABLE = False

# sub-command: (module with ``add_arguments`` and ``run``, summary for --help)
SUBCOMMANDS = {
    "list": ("wheelproof.cli.matrix.list", "list the cells of the matrix"),
    "github": ("wheelproof.cli.matrix.github", "print the cells as JSON for `strategy.matrix` of GitHub Actions"),
    "plan": (
        "wheelproof.cli.matrix.plan",
        "generate a CI or cluster job file: GitHub, GitLab, Slurm, Kubernetes and others",
    ),
    "image": ("wheelproof.cli.matrix.image", "build the container images that cells need, from Debian packages"),
    "run": ("wheelproof.cli.matrix.run", "run the cells on this host, and merge the evidence"),
    "merge": ("wheelproof.cli.matrix.merge", "merge the reports of cells that ran on several hosts"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of plain ``wheelproof matrix``: those of ``matrix list``, which it runs."""
    add_commands_help(parser, SUBCOMMANDS, "`matrix list`.")
    matrix_list.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Show the cells. Raises WheelproofError."""
    return matrix_list.run(arguments)
