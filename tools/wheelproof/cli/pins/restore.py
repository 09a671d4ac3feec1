"""``wheelproof pins restore``: gives back what ``pins rewrite`` changed."""

from __future__ import annotations

import argparse
from pathlib import Path

from wheelproof.cli.options import open_output

CONFIGURABLE = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof pins restore``."""
    parser.add_argument("folder", nargs="?", default=".", metavar="PATH", help="what was rewritten (default: here)")
    parser.add_argument("--journal", metavar="FILE", help="the journal, when `pins rewrite` was given one")
    parser.add_argument(
        "--force", action="store_true", help="also where a file has changed since: put back what was removed from it"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing")
    parser.add_argument("-v", "--verbose", action="count", default=0, help="-vv adds tracebacks of bugs")


def run(arguments: argparse.Namespace) -> int:
    """Restore every file, or none. Raises WheelproofError."""
    from wheel_checks.report.wording import neutral, write
    from wheelproof.pins.rewrite.journal import journal_for
    from wheelproof.pins.rewrite.replace import restore

    journal = Path(arguments.journal) if arguments.journal else journal_for([Path(arguments.folder)])
    done = restore(journal, force=arguments.force)
    if not arguments.quiet:
        with open_output("-") as stream:
            for word, files in (("restored", done.restored), ("merged", done.merged), ("unchanged", done.untouched)):
                write(stream, "".join(f"{word} {neutral(str(file))}\n" for file in files))
    return 0
