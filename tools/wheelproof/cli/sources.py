"""The options about indexes, cache and network that commands share, and what they open."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wheel_checks.errors import UsageError
from wheelproof import __version__
from wheelproof.cli.options import OutputOptions, add_list, note
from wheelproof.cli.progress import Progress

if TYPE_CHECKING:  # a command that only shows its help needs none of these
    from packaging.requirements import Requirement

    from wheel_checks.facts.wheel.dependencies import Dependencies
    from wheel_checks.sources.client import HttpClient
    from wheel_checks.sources.installer_config import IndexConfig
    from wheel_checks.sources.simple_index import SimpleIndex
    from wheelproof.wheels.provenance import Attesting


def add_source_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options that :func:`open_sources` reads."""
    group = parser.add_argument_group("sources")
    group.add_argument("--index-url", metavar="URL", help="the index to use (default: what uv and pip use)")
    add_list(group, "--extra-index-url", "URL", "one more index")
    add_list(group, "--find-links", "PLACE", "a page or folder of files")
    group.add_argument("--no-index", action="store_true", help="use --find-links alone")
    group.add_argument(
        "--allow-download", action="store_true", help="fetch whole files from servers without range requests"
    )
    group.add_argument(
        "--max-download",
        metavar="SIZE",
        help="the largest file that --allow-download fetches, such as 500M or 2G (default: 6G)",
    )
    group.add_argument("--cache-dir", metavar="FOLDER", help="where ranges and pages are cached")
    group.add_argument("--no-cache", action="store_true", help="neither read nor write the cache")
    group.add_argument(
        "--refresh", action="store_true", help="read index pages again that were read in the last 10 minutes"
    )
    group.add_argument("--deadline", type=float, metavar="SECONDS", help="total network timeout, in seconds")


def parse_beside(texts: Sequence[str]) -> tuple[Requirement, ...]:
    """The requirements of ``--with``. Raises UsageError."""
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        return tuple(Requirement(text) for text in texts)
    except InvalidRequirement as error:
        what = f"--with does not parse: {' '.join(str(error).split())}"
        raise UsageError(what, expected="a requirement, such as torch==2.11.0") from None


@dataclass(frozen=True, slots=True)
class Sources:
    """What a run reads from. ``dependencies`` is None unless it was asked for."""

    client: HttpClient
    index: SimpleIndex
    config: IndexConfig
    progress: Progress
    dependencies: Dependencies | None = None


@contextlib.contextmanager
def open_sources(
    arguments: argparse.Namespace,
    output: OutputOptions,
    *,
    assumed: str = "",
    links: bool = False,
    threads: bool = False,
    whole: bool = False,
    beside: Sequence[Requirement] = (),
) -> Iterator[Sources]:
    """Open what the options name, and close it at the end of the ``with`` block.

    Notes of the configuration, and what was ``assumed``, go to standard error. ``links`` opens the reader of what
    wheels link to; with ``whole`` it streams every library whose head and tail do not say enough, and what
    ``beside`` asks for is installed with each wheel. ``threads`` only
    limits the memory of many threads, as ``links`` does too. Raises UsageError for a configuration that cannot be read.
    """
    from wheel_checks.facts.expectations import parse_size
    from wheel_checks.sources.client import HttpClient
    from wheel_checks.sources.http.cache import ByteCache, default_cache_path
    from wheel_checks.sources.http.download import LARGEST_DOWNLOAD
    from wheel_checks.sources.installer_config import configured_indexes
    from wheel_checks.sources.simple_index import SimpleIndex
    from wheel_checks.sources.trust import Trust

    config = configured_indexes(
        os.environ,
        Path.cwd(),
        index_url=arguments.index_url,
        extra_index_urls=arguments.extra_index_url,
        find_links=arguments.find_links,
        no_index=arguments.no_index,
        trust=Trust.parse(output.trust_index),
    )
    for sentence in filter(None, (*config.notes, assumed)):
        note(sentence, quiet=output.quiet)
    if links or threads:
        from wheelproof.wheels.memory import share_heaps

        share_heaps()  # before any thread is started
    with contextlib.ExitStack() as stack:
        cache = None
        if not arguments.no_cache:
            path = default_cache_path()
            if arguments.cache_dir:
                path = Path(arguments.cache_dir) / path.name
            cache = stack.enter_context(contextlib.closing(ByteCache(path)))
        progress = stack.enter_context(Progress("reading", quiet=output.quiet))
        client = stack.enter_context(
            HttpClient(
                cache,
                offline=output.offline,
                refresh=arguments.refresh,
                deadline=arguments.deadline,
                allow_download=arguments.allow_download,
                max_download=parse_size(arguments.max_download) if arguments.max_download else LARGEST_DOWNLOAD,
                user_agent=f"wheelproof/{__version__}",
                on_bytes=progress.read,
            )
        )
        index = SimpleIndex(client, config)
        dependencies = None
        if links:
            from wheelproof.wheels.dependencies import dependency_reader

            dependencies = stack.enter_context(
                dependency_reader(client, index, config, offline=output.offline, whole=whole, beside=beside)
            )
        yield Sources(client, index, config, progress, dependencies)


def attesting_of(client: HttpClient, output: OutputOptions, *, is_required: bool = False) -> Attesting:
    """What judges the attestations of files. Raises MissingExtraError."""
    from wheelproof.wheels.provenance import Attesting

    return Attesting(client, output, is_required)
