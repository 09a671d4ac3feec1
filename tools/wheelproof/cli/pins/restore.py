"""``wheelproof pins restore``: gives back what ``pins rewrite`` changed."""

import argparse
from pathlib import Path

from wheel_checks.errors import NotFoundError
from wheelproof.cli.options import open_output
from wheelproof.cli.pins.notes import say_waiting, show_old_journals

CONFIGURABLE = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof pins restore``."""
    parser.add_argument(
        "folder",
        nargs="?",
        default=".",
        metavar="PATH",
        help="the tree, or any folder in it (default: the current folder)",
    )
    parser.add_argument(
        "--journal", metavar="FILE", help="the journal (default: that of the tree, in the state folder)"
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="also restore what was removed from files that have changed since; unreadable files are left alone",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")
    parser.add_argument(
        "-v", "--verbose", action="count", default=0, help="with -vv, print tracebacks of internal errors"
    )


def run(arguments: argparse.Namespace) -> int:
    """Restore every file, or none. Raises WheelproofError."""
    from wheel_checks.report.wording import neutral, write
    from wheelproof.pins.rewrite.finding import find_journal
    from wheelproof.pins.rewrite.held import hold
    from wheelproof.pins.rewrite.restoring import restore

    path = Path(arguments.folder)
    named = Path(arguments.journal) if arguments.journal else None
    try:
        found = find_journal(path, named)
    except NotFoundError:
        show_old_journals([path], below=True)
        raise
    if named is None:
        show_old_journals([path], below=False)
    with hold(found.root, found.journal, on_wait=lambda: say_waiting(found.root)) as tree:
        done = restore(tree, force=arguments.force)
    if not arguments.quiet:
        with open_output("-") as stream:
            for word, files in (
                ("restored", done.restored),
                ("merged", done.merged),
                ("unchanged", done.untouched),
                ("left", done.left),
            ):
                write(stream, "".join(f"{word} {neutral(str(file))}\n" for file in files))
    return 0
