"""``wheelproof release TARGET... --expect FILE``: the gate before publishing: ship, or stop, and why."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from wheelproof import __version__
from wheelproof.cli.options import ListAction, OutputOptions, add_output_options, open_output
from wheelproof.cli.progress import Progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof release``."""
    parser.add_argument(
        "targets",
        nargs="+",
        metavar="TARGET",
        help="a folder, a wheel or source archive, a URL of one, or a requirement on an index (torch==2.11.0); of a "
        "file that several TARGETs have, hashes and sizes are compared",
    )
    parser.add_argument("--expect", metavar="FILE", required=True, help="what the release must be: see docs/release.md")
    parser.add_argument("--pre", action="store_true", help="allow pre-releases")
    parser.add_argument(
        "--depth",
        choices=["quick", "links", "gpu", "full"],
        help="as of `wheelproof verify`; never less than the expectation demands (default: what it demands)",
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
    """Judge the release and print the report. Raises WheelproofError."""
    from wheel_checks.facts.wheel import Depth  # noqa: PLC0415  # not for --help
    from wheel_checks.release_expectation import read_release_expectation  # noqa: PLC0415  # not for --help
    from wheel_checks.report import render  # noqa: PLC0415  # not for --help
    from wheel_checks.sources.cache import ByteCache, default_cache_path  # noqa: PLC0415  # not for --help
    from wheel_checks.sources.http import HttpClient  # noqa: PLC0415  # not for --help
    from wheel_checks.sources.installer_config import configured_indexes  # noqa: PLC0415  # not for --help
    from wheel_checks.sources.simple_index import SimpleIndex  # noqa: PLC0415  # not for --help
    from wheelproof.judging import Judgement  # noqa: PLC0415  # not for --help
    from wheelproof.release.run import ReleaseRequest, judge_release  # noqa: PLC0415  # not for --help
    from wheelproof.release.summary import markdown_summary, text_summary  # noqa: PLC0415  # not for --help

    output = OutputOptions.from_arguments(arguments)
    expectation = read_release_expectation(Path(arguments.expect))
    today = datetime.now(UTC).date()
    request = ReleaseRequest(tuple(arguments.targets), expectation, today, arguments.pre)
    depth = Depth(arguments.depth) if arguments.depth else expectation.depth
    depth = depth if depth.includes(expectation.depth) else expectation.depth
    judgement = Judgement(select=output.select, ignore=output.ignore, fail_on=output.fail_on, depth=depth)
    config = configured_indexes(
        os.environ,
        Path.cwd(),
        index_url=arguments.index_url,
        extra_index_urls=arguments.extra_index_url,
        find_links=arguments.find_links,
        no_index=arguments.no_index,
    )
    for note in config.notes:
        if not output.quiet:
            print(f"note: {note}", file=sys.stderr)  # noqa: T201  # standard output belongs to the report
    cache_path = Path(arguments.cache_dir) if arguments.cache_dir else default_cache_path()
    if depth.includes(Depth.LINKS):
        from wheelproof.memory import share_heaps  # noqa: PLC0415  # not for depth quick

        share_heaps()  # before any thread is started
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
        index = SimpleIndex(client, config)
        dependencies = None
        if depth.includes(Depth.LINKS):
            from wheelproof.linking import dependency_reader  # noqa: PLC0415  # not for depth quick

            dependencies = stack.enter_context(dependency_reader(client, index, config, offline=output.offline))
        report = judge_release(
            request, judgement, client, lambda project: index.files(project).files, progress, dependencies
        )
    with open_output(output.output) as stream:
        if output.format == "text":
            stream.write(text_summary(report, quiet=output.quiet))
        elif output.format == "markdown":
            stream.write(markdown_summary(report))
        shown = {"color": output.color, "quiet": output.quiet, "verbose": output.verbose}
        render(report, stream, output.format, **shown)
    return report.exit_code


class _Progress(Progress):
    """Tells a terminal how many wheels were read."""

    def planned(self, wheels: int) -> None:
        """So many wheels will be read."""
        self.total = wheels

    def done(self) -> None:
        """One more wheel was read."""
        self.advance()
