"""``wheelproof stack``: will a set of requirements work on that platform, that Python, those GPUs?"""

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
    """Declare the arguments of ``wheelproof stack``."""
    parser.add_argument(
        "packages", nargs="*", metavar="PACKAGE", help="a requirement (vllm==0.20.0), a .whl file, or a pyproject.toml"
    )
    parser.add_argument(
        "-r",
        "--requirement",
        action="append",
        default=[],
        metavar="FILE",
        help="a file of requirements: requirements.txt, pyproject.toml (repeatable)",
    )
    parser.add_argument(
        "--platform",
        action=ListAction,
        default=[],
        metavar="PLATFORM",
        help="x86_64, aarch64, manylinux_2_28_aarch64, ... or all (repeatable; default: this machine)",
    )
    parser.add_argument(
        "--python", action=ListAction, default=[], metavar="VERSION", help="3.12, 3.13, ... (default: this Python)"
    )
    parser.add_argument(
        "--gpu", action=ListAction, default=[], metavar="GPU", help="GB200, H100, sm_100, ...: a GPU is wanted"
    )
    parser.add_argument("--pre", action="store_true", help="allow pre-releases")
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
    """Resolve and judge the stack, and print the report. Raises WheelproofError."""
    from wheel_checks.facts.gpu_targets import parse_gpu  # noqa: PLC0415  # not for --help
    from wheel_checks.sources.cache import ByteCache, default_cache_path  # noqa: PLC0415  # not for --help
    from wheel_checks.sources.http import HttpClient  # noqa: PLC0415  # not for --help
    from wheel_checks.sources.installer_config import configured_indexes  # noqa: PLC0415  # not for --help
    from wheel_checks.sources.resolver import DEFAULT_TIMEOUT  # noqa: PLC0415  # not for --help
    from wheel_checks.targets.target import parse_targets, this_machine  # noqa: PLC0415  # not for --help
    from wheelproof.judging import Judgement  # noqa: PLC0415  # not for --help
    from wheelproof.stack.inputs import parse_inputs  # noqa: PLC0415  # not for --help
    from wheelproof.stack.run import StackRequest, judge_stack  # noqa: PLC0415  # not for --help

    output = OutputOptions.from_arguments(arguments)
    request = StackRequest(
        parse_inputs(arguments.packages, arguments.requirement),
        parse_targets(arguments.platform, arguments.python),
        tuple(dict.fromkeys(parse_gpu(name).name for name in arguments.gpu)),
        arguments.pre,
        output.offline,
        arguments.deadline or DEFAULT_TIMEOUT,
    )
    judgement = Judgement(select=output.select, ignore=output.ignore, fail_on=output.fail_on)
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
        report = judge_stack(request, judgement, client, config, progress)
    return emit(report, output)


class _Progress(Progress):
    """Tells a terminal how many wheels were read."""

    def planned(self, wheels: int) -> None:
        """So many wheels will be read."""
        self.total = wheels

    def done(self) -> None:
        """One more wheel was read."""
        self.advance()
