"""``wheelproof schema``: the JSON Schemas of the documents that wheelproof writes and reads."""

from __future__ import annotations

import argparse
from importlib.resources import files

from wheelproof.cli.options.output import open_output

CONFIGURABLE = False
# name: the package that has the file, which is called NAME.schema.json
SCHEMAS = {"report": "wheel_checks.report", "record": "wheelproof.verifying", "matrix": "wheelproof.matrix.definition"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof schema``."""
    parser.add_argument(
        "document",
        nargs="?",
        choices=tuple(SCHEMAS),
        default="report",
        metavar="DOCUMENT",
        help="report (--format json), record (verify --record) or matrix (ci/matrix.toml); default: report",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the schema."""
    name = arguments.document
    text = files(SCHEMAS[name]).joinpath(f"{name}.schema.json").read_text(encoding="utf-8")
    with open_output("-") as stream:
        stream.write(text)
    return 0
