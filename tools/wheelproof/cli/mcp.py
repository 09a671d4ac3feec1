"""``wheelproof mcp``: the read-only commands as tools of a server of the Model Context Protocol, over stdio."""

import argparse
from pathlib import Path

from wheel_checks.errors import UsageError, WheelproofError

CONFIGURABLE = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof mcp``."""
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="FOLDER",
        help="allow reading wheels and facts files in FOLDER (repeatable; default: none)",
    )
    parser.add_argument(
        "--offline", action="store_true", help="disable network access: use only local files and the cache"
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve until standard input ends. Raises UsageError for a folder that is not present, and for a missing extra."""
    from importlib.util import find_spec

    from wheel_checks.extras import how_to_install

    for folder in arguments.allow:
        if not Path(folder).is_dir():
            raise UsageError(f"--allow {folder} is not a folder", expected="an existing folder")
    if find_spec("mcp") is None:
        raise WheelproofError("the package mcp is not installed", hint=how_to_install("mcp"))
    from wheelproof.mcp_server import make_server

    make_server(arguments.allow, offline=arguments.offline).run("stdio")
    return 0
