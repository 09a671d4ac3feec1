"""``wheelproof new rules|kernels NAME``: a package that builds, tests and runs at once."""

import argparse
from pathlib import Path

from wheelproof.cli.options import open_output

CONFIGURABLE = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof new``."""
    parser.add_argument(
        "template", choices=("rules", "kernels"), metavar="rules|kernels", help="what the package contains"
    )
    parser.add_argument("name", metavar="NAME", help="the name of the package, such as acme-rules")
    parser.add_argument(
        "--prefix", metavar="PREFIX", default="", help="the prefix of its rule ids (default: the first word of NAME)"
    )
    parser.add_argument("--folder", metavar="FOLDER", default="", help="the folder to create (default: ./NAME)")


def run(arguments: argparse.Namespace) -> int:
    """Write the package and say what to do next. Raises UsageError for a folder that is not empty."""
    from wheelproof.new.writing import Package

    package = Package(arguments.template, arguments.name, arguments.prefix)
    folder = Path(arguments.folder or arguments.name)
    written = package.write(folder)
    with open_output("-") as stream:
        stream.writelines(f"{file}\n" for file in written)
    return 0
