"""``wheelproof diff A [B]``: what differs between two wheels, or two sets of wheels."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from wheelproof import __version__
from wheelproof.cli.options import ListAction, OutputOptions, add_output_options, open_output
from wheelproof.cli.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wheel_checks.sources.simple_index import SimpleIndex
    from wheelproof.diff.run import Comparison
    from wheelproof.diff.sides import Planner, Side
    from wheelproof.judging import PlannedWheel


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof diff``."""
    parser.add_argument(
        "wheels",
        nargs="+",
        metavar="WHEEL",
        help="A and B: a .whl file, a folder, a URL, or a requirement (torch==2.11.0); A alone stands for both",
    )
    parser.add_argument(
        "--platform",
        action=ListAction,
        default=[],
        metavar="PLATFORM",
        help="x86_64, aarch64, manylinux_2_28_aarch64, ...: one for both sides, or A,B (default: this machine)",
    )
    parser.add_argument(
        "--python",
        action=ListAction,
        default=[],
        metavar="VERSION",
        help="3.12, 3.13t, ...: one for both sides, or A,B (default: this Python)",
    )
    parser.add_argument(
        "--all-files", action="store_true", help="compare every wheel of the releases, each with its counterpart"
    )
    parser.add_argument("--pre", action="store_true", help="allow pre-releases")
    parser.add_argument(
        "--depth",
        choices=["quick", "links", "gpu", "full"],
        default="links",
        help="quick: directory and small members; links: also what ELF files need; gpu: also the GPU code; "
        "full: every byte (default: links)",
    )
    sources = parser.add_argument_group("sources")
    sources.add_argument("--index-url", metavar="URL", help="the index to use (default: what uv and pip use)")
    sources.add_argument("--extra-index-url", action=ListAction, default=[], metavar="URL", help="one more index")
    sources.add_argument(
        "--find-links", action=ListAction, default=[], metavar="PLACE", help="a page or folder of files"
    )
    sources.add_argument("--no-index", action="store_true", help="use --find-links alone")
    sources.add_argument(
        "--allow-download", action="store_true", help="fetch whole files from servers that serve no ranges"
    )
    sources.add_argument("--cache-dir", metavar="FOLDER", help="where ranges and pages are cached")
    sources.add_argument("--no-cache", action="store_true", help="neither read nor write the cache")
    sources.add_argument("--deadline", type=float, metavar="SECONDS", help="give up on the network after so long")
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compare the two sides and print the report with its tables. Raises WheelproofError."""
    from wheel_checks.facts.wheel import Depth  # noqa: PLC0415  # not for --help
    from wheel_checks.sources.cache import ByteCache, default_cache_path  # noqa: PLC0415  # not for --help
    from wheel_checks.sources.http import HttpClient  # noqa: PLC0415  # not for --help
    from wheel_checks.sources.installer_config import configured_indexes  # noqa: PLC0415  # not for --help
    from wheel_checks.sources.simple_index import SimpleIndex  # noqa: PLC0415  # not for --help
    from wheel_checks.targets.target import this_machine  # noqa: PLC0415  # not for --help
    from wheelproof.diff.run import diff  # noqa: PLC0415  # not for --help
    from wheelproof.diff.sides import split_sides  # noqa: PLC0415  # not for --help
    from wheelproof.judging import Judgement  # noqa: PLC0415  # not for --help

    output = OutputOptions.from_arguments(arguments)
    sides = split_sides(arguments.wheels, arguments.platform, arguments.python)
    judgement = Judgement(
        select=output.select, ignore=output.ignore, fail_on=output.fail_on, depth=Depth(arguments.depth)
    )
    config = configured_indexes(
        os.environ,
        Path.cwd(),
        index_url=arguments.index_url,
        extra_index_urls=arguments.extra_index_url,
        find_links=arguments.find_links,
        no_index=arguments.no_index,
    )
    assumed = "" if arguments.platform and arguments.python else this_machine().note
    for note in (*config.notes, assumed):
        if note and not output.quiet:
            print(f"note: {note}", file=sys.stderr)  # noqa: T201  # standard output belongs to the report
    if judgement.depth.includes(Depth.LINKS):
        from wheelproof.memory import share_heaps  # noqa: PLC0415  # not for depth quick

        share_heaps()
    cache_path = Path(arguments.cache_dir) if arguments.cache_dir else default_cache_path()
    with contextlib.ExitStack() as stack:
        cache = None if arguments.no_cache else stack.enter_context(contextlib.closing(ByteCache(cache_path)))
        progress = stack.enter_context(_Progress("reading", quiet=output.quiet))
        client = stack.enter_context(
            HttpClient(
                cache,
                offline=output.offline,
                deadline=arguments.deadline,
                allow_download=arguments.allow_download,
                user_agent=f"wheelproof/{__version__}",
                on_bytes=progress.read,
            )
        )
        planner = _planner(SimpleIndex(client, config), all_files=arguments.all_files, pre=arguments.pre)
        comparison = diff(sides, planner, judgement, client, progress)
    return _emit(comparison, output)


def _planner(index: SimpleIndex, *, all_files: bool, pre: bool) -> Planner:
    """What a TARGET means to ``verify``, it means to either side of a comparison."""
    from wheel_checks.errors import NotFoundError  # noqa: PLC0415  # not for --help
    from wheelproof.verify.plan import Wanted, plan  # noqa: PLC0415  # not for --help

    def wheels(side: Side) -> Sequence[PlannedWheel]:
        wanted = Wanted(side.platforms, side.pythons, all_files, pre)
        planned = plan(side.text, wanted, lambda project: index.files(project).files)
        refused = [choice for choice in planned.choices if choice.chosen is None]
        if refused and not planned.wheels:
            raise NotFoundError(f"{side.text} for {refused[0].target.label}: {refused[0].explanation}")
        return planned.wheels

    return wheels


def _emit(comparison: Comparison, options: OutputOptions) -> int:
    """Render the report; for people with the tables. Raises WheelproofError when writing fails."""
    from wheel_checks.report import render  # noqa: PLC0415  # not for --help
    from wheel_checks.report.wording import MANY  # noqa: PLC0415  # not for --help
    from wheelproof.diff.rows import build_table  # noqa: PLC0415  # not for --help

    report = comparison.report
    # Of a whole release the findings come first; a table for each pair would bury them.
    shown = comparison.differences if options.verbose or len(comparison.differences) <= MANY else {}
    tables = [(title, build_table(pair, everything=options.verbose > 0)) for title, pair in shown.items()]
    with open_output(options.output) as stream:
        render(report, stream, options.format, color=options.color, quiet=options.quiet, verbose=options.verbose)
        if options.format == "text" and not options.quiet:
            from wheelproof.diff import text  # noqa: PLC0415  # imports rich

            text.render_tables(tables, stream, color=options.color)
        elif options.format == "markdown":
            from wheelproof.diff import markdown  # noqa: PLC0415  # only for this format

            markdown.render_tables(tables, stream)
    return report.exit_code


class _Progress(Progress):
    """Tells a terminal how many wheels were read."""

    def planned(self, wheels: int) -> None:
        """So many wheels will be read."""
        self.total = wheels

    def done(self) -> None:
        """One more wheel was read."""
        self.advance()
