"""``wheelproof verify TARGET...``: judge wheels from their directory and metadata, wherever they are."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from pathlib import Path

from wheelproof import __version__
from wheelproof.cli.options import ListAction, OutputOptions, add_output_options, emit
from wheelproof.cli.progress import Progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof verify``."""
    parser.add_argument(
        "targets", nargs="+", metavar="TARGET", help="a .whl file, a folder, a URL, or a requirement (torch==2.11.0)"
    )
    parser.add_argument(
        "--platform",
        action=ListAction,
        default=[],
        metavar="PLATFORM",
        help="x86_64, aarch64, manylinux_2_28_aarch64, ... or all (repeatable; default: this machine)",
    )
    parser.add_argument(
        "--python", action=ListAction, default=[], metavar="VERSION", help="3.12, 3.13t, ... (default: this Python)"
    )
    parser.add_argument("--all-files", action="store_true", help="judge every wheel of the releases, not one a target")
    parser.add_argument("--pre", action="store_true", help="allow pre-releases")
    parser.add_argument("--expect", metavar="WHAT", help="cuda, cuda==13.0, cuda>=13, rocm, xpu, cpu or none")
    parser.add_argument("--max-size", metavar="SIZE", help="the size that no wheel may exceed: 900MB, 2GiB")
    parser.add_argument(
        "--depth",
        choices=["quick", "full"],
        default="quick",
        help="quick reads the directory and small members; full reads every byte (default: quick)",
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
    """Judge the targets and print the report. Raises WheelproofError."""
    from wheel_checks.expectations import Expectations, parse_expectation, parse_size  # noqa: PLC0415  # not for --help
    from wheel_checks.facts.wheel import Depth  # noqa: PLC0415  # not for --help
    from wheel_checks.sources.cache import ByteCache, default_cache_path  # noqa: PLC0415  # not for --help
    from wheel_checks.sources.http import HttpClient  # noqa: PLC0415  # not for --help
    from wheel_checks.sources.installer_config import configured_indexes  # noqa: PLC0415  # not for --help
    from wheel_checks.sources.simple_index import SimpleIndex  # noqa: PLC0415  # not for --help
    from wheelproof.verify.plan import Wanted  # noqa: PLC0415  # not for --help
    from wheelproof.verify.run import Judgement, verify  # noqa: PLC0415  # not for --help

    output = OutputOptions.from_arguments(arguments)
    wanted = Wanted(tuple(arguments.platform), tuple(arguments.python), arguments.all_files, arguments.pre)
    expectations = Expectations(
        parse_expectation(arguments.expect) if arguments.expect else None,
        parse_size(arguments.max_size) if arguments.max_size else None,
    )
    judgement = Judgement(expectations, output.select, output.ignore, output.fail_on, Depth(arguments.depth))
    config = configured_indexes(
        os.environ,
        Path.cwd(),
        index_url=arguments.index_url,
        extra_index_urls=arguments.extra_index_url,
        find_links=arguments.find_links,
        no_index=arguments.no_index,
    )
    for note in (*config.notes, wanted.note):
        if note and not output.quiet:
            print(f"note: {note}", file=sys.stderr)  # noqa: T201  # standard output belongs to the report
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
        report = verify(arguments.targets, wanted, judgement, client, SimpleIndex(client, config), progress)
    return emit(report, output)


class _Progress(Progress):
    """Tells a terminal how many wheels were read."""

    def planned(self, wheels: int) -> None:
        """So many wheels will be read."""
        self.total = wheels

    def done(self) -> None:
        """One more wheel was read."""
        self.advance()
