"""``wheelproof pins``: what the pins of a project would do, and the commands that deal with them."""

import argparse

from wheelproof.cli.options import add_commands_help
from wheelproof.cli.pins.rewrite import add_arguments as add_rewrite_arguments
from wheelproof.cli.pins.rewrite import run as run_rewrite

CONFIGURABLE = False

# sub-command: (module with ``add_arguments`` and ``run``, summary for --help)
SUBCOMMANDS = {
    "rewrite": ("wheelproof.cli.pins.rewrite", "remove torch from requirements files of any format, reversibly"),
    "restore": ("wheelproof.cli.pins.restore", "undo what `pins rewrite` changed, byte for byte"),
    "check": ("wheelproof.cli.pins.check", "list every requirement that could replace the installed torch, for CI"),
    "explain": ("wheelproof.cli.pins.explain", "explain whether an installed version satisfies a requirement"),
    "guard": ("wheelproof.cli.pins.guard", "keep pip and uv from replacing the installed torch"),
    "predict": ("wheelproof.cli.pins.predict", "predict what an install would do to torch, and what requires it"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of plain ``wheelproof pins``: those of ``pins rewrite``, which it runs dry."""
    add_commands_help(parser, SUBCOMMANDS, "what `pins rewrite` would do, summary first.")
    add_rewrite_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print what would happen, and change nothing. Raises WheelproofError."""
    arguments.summary = True
    return run_rewrite(arguments)
