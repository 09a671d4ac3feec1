"""``wheelproof report``: what can be done with reports that were made before."""

import argparse

from wheelproof.cli.options import add_commands_help, add_output_options

# sub-command: (module with ``add_arguments`` and ``run``, summary for --help)
SUBCOMMANDS = {
    "merge": (
        "wheelproof.cli.report.merge",
        "merge the reports of many hosts, or of the cells of a matrix",
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of plain ``wheelproof report``: none, but its help names the commands."""
    add_commands_help(parser, SUBCOMMANDS)
    add_output_options(parser)


def run(_: argparse.Namespace) -> int:
    """Raise UsageError: there is nothing that plain ``wheelproof report`` does."""
    from wheel_checks.errors import UsageError

    raise UsageError(
        "`wheelproof report` needs a command", expected=", ".join(SUBCOMMANDS), hint="wheelproof report merge reports/"
    )
