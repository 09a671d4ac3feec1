"""``wheelproof pins rewrite`` (``use-existing-torch``): takes torch out of requirements, all files or none."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from wheel_checks.errors import WheelproofError
from wheel_checks.formats.secrets import redact_text
from wheelproof.cli.options.output import open_output
from wheelproof.cli.pins.notes import say_waiting, show_old_journals
from wheelproof.cli.pins.options import add_name_options, policy_of

if TYPE_CHECKING:  # not for --help
    from wheelproof.pins.model import Plan
    from wheelproof.pins.rewrite.effect import Effect

CONFIGURABLE = False  # a file of the project must not control how its files are rewritten


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof pins rewrite``."""
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files and folders (default: the current folder)")
    parser.add_argument(
        "--mode",
        choices=["drop", "unpin", "pin-installed"],
        default="drop",
        help="remove the requirement, remove its version, or pin it to the installed version (default: drop)",
    )
    add_name_options(parser)
    parser.add_argument("--conda", action="store_true", help="also change packages of conda (pytorch, pytorch-gpu)")
    parser.add_argument(
        "--drop-orphan-index", action="store_true", help="also remove index options that are unused without torch"
    )
    parser.add_argument("--skip-vendored", action="store_true", help="skip vendored projects and test data in folders")
    parser.add_argument("--python", metavar="PATH", default="", help="the environment with the installed torch")
    parser.add_argument(
        "--dry-run", action="store_true", help="show the changes as a unified diff, without writing them"
    )
    parser.add_argument(
        "--journal",
        metavar="FILE",
        help="the file to record the original contents in (default: one per tree, in the state folder)",
    )
    parser.add_argument(
        "--resolve",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="resolve with uv before and after, to see whether the installed torch is kept (default: if torch is "
        "installed)",
    )
    parser.add_argument("--json", action="store_true", help="print the plan as JSON")
    parser.add_argument("--color", action=argparse.BooleanOptionalAction, default=None, help="color the diff")
    parser.add_argument("-q", "--quiet", action="store_true", help="print only warnings")
    parser.add_argument(
        "-v", "--verbose", action="count", default=0, help="with -vv, print tracebacks of internal errors"
    )


def run(arguments: argparse.Namespace) -> int:
    """Plan, show, and write unless it is a dry run; returns 0 even with findings. Raises WheelproofError."""
    from wheel_checks.report import wording
    from wheelproof.pins.rewrite.planning import plan
    from wheelproof.pins.rewrite.summary import as_json, as_text

    paths = [Path(name) for name in arguments.paths] or [Path()]
    versions = {}
    if arguments.mode == "pin-installed":
        from wheelproof.pins.guard.versions import versions_to_pin  # reads the whole environment

        versions = versions_to_pin(arguments.python, os.environ)
    policy = policy_of(
        arguments,
        arguments.mode,
        conda=arguments.conda,
        drop_orphan_index=arguments.drop_orphan_index,
        versions=versions,
    )
    dry = arguments.dry_run or getattr(arguments, "summary", False)
    planned = plan(paths, policy, skip_vendored=arguments.skip_vendored)
    found = _effects(arguments, planned)
    undo = ""
    if not dry:
        show_old_journals(paths, below=False)
    if planned.changed and not dry:
        from wheelproof.pins.rewrite.files.tree import tree_to_write
        from wheelproof.pins.rewrite.finding import restore_command
        from wheelproof.pins.rewrite.held import hold
        from wheelproof.pins.rewrite.replace import write

        root = tree_to_write(paths).root
        named = Path(arguments.journal) if arguments.journal else None
        with hold(root, named, on_wait=lambda: say_waiting(root)) as tree:
            planned = plan(paths, policy, skip_vendored=arguments.skip_vendored)  # as it is now that no other run is in
            write(planned, tree)
        command = restore_command(named, None if Path.cwd().is_relative_to(root) else root)
        undo = f"{command} gives it back (journal: {tree.journal.path})"
    color = arguments.color
    if color is None:
        color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    with open_output("-") as stream:
        if arguments.json:
            stream.write(wording.plain_json(redact_text(as_json(planned, written=not dry, effects=found))))
        else:
            shown = as_text(planned, undo, written=not dry, diff=arguments.dry_run, color=color, effects=found)
            wording.write(stream, "" if arguments.quiet and not arguments.dry_run else redact_text(shown))
    if arguments.quiet and not arguments.json:
        from wheelproof.pins.rewrite.summary import warnings_of

        wording.write(sys.stderr, redact_text("".join(warnings_of(planned))))
    return 0


def _effects(arguments: argparse.Namespace, planned: Plan) -> list[Effect]:
    """What installs would do to the installed torch, before and after, unless that is not wanted or not possible."""
    from wheelproof.cli.options.output import note
    from wheelproof.cli.pins.effects import resolved_effects

    if arguments.resolve is False or not planned.changed:
        return []
    try:
        return resolved_effects(planned, arguments.python)
    except WheelproofError as error:
        if arguments.resolve:
            raise
        note(f"not resolved: {error}", quiet=arguments.quiet)
        return []
