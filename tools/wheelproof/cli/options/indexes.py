"""The options of indexes, cache and network that commands share, and the sources that they open."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wheel_checks.errors import UsageError
from wheelproof.cli.options.output import OutputOptions, add_list, note
from wheelproof.cli.progress import Progress
from wheelproof.wheels.opening import Opened, Places, open_places

if TYPE_CHECKING:  # a command that only shows its help needs none of these
    from packaging.requirements import Requirement

    from wheel_checks.sources.client import HttpClient
    from wheelproof.wheels.provenance import Attesting


def add_source_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options that :func:`open_sources` reads."""
    group = parser.add_argument_group("sources")
    group.add_argument(
        "--index-url", metavar="URL", help="the package index to use (default: as configured for uv and pip)"
    )
    add_list(group, "--extra-index-url", "URL", "an additional package index (repeatable)")
    add_list(group, "--find-links", "PLACE", "a page or folder with links to files, or with files (repeatable)")
    group.add_argument("--no-index", action="store_true", help="ignore package indexes, and use only --find-links")
    group.add_argument(
        "--allow-download", action="store_true", help="fetch whole files from servers without range requests"
    )
    group.add_argument(
        "--max-download",
        metavar="SIZE",
        help="the largest file to download with --allow-download, such as 500M or 2G (default: 6G)",
    )
    group.add_argument("--cache-dir", metavar="FOLDER", help="the folder for cached ranges and pages")
    group.add_argument("--no-cache", action="store_true", help="do not read or write the cache")
    group.add_argument(
        "--refresh", action="store_true", help="refresh index pages that were cached in the last 10 minutes"
    )
    group.add_argument("--deadline", type=float, metavar="SECONDS", help="total network timeout, in seconds")


def parse_companions(texts: Sequence[str]) -> tuple[Requirement, ...]:
    """The requirements of ``--with``. Raises UsageError."""
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        return tuple(Requirement(text) for text in texts)
    except InvalidRequirement as error:
        what = f"--with does not parse: {' '.join(str(error).split())}"
        raise UsageError(what, expected="a requirement, such as torch==2.11.0") from None


@dataclass(frozen=True, slots=True)
class Sources(Opened):
    """The sources of a run, and its progress."""

    progress: Progress = field(kw_only=True)


@contextlib.contextmanager
def open_sources(
    arguments: argparse.Namespace,
    output: OutputOptions,
    *,
    assumed: str = "",
    links: bool = False,
    threads: bool = False,
    whole: bool = False,
    companions: Sequence[Requirement] = (),
) -> Iterator[Sources]:
    """Open the sources of the options, as :func:`open_places` does, and close them at the end of the ``with`` block.

    Notes of the configuration and ``assumed`` values go to standard error. ``threads`` only limits the memory of many
    threads, as ``links`` does too.
    """
    places = Places(
        arguments.index_url,
        arguments.extra_index_url,
        arguments.find_links,
        arguments.no_index,
        output.trust_index,
        output.offline,
        arguments.refresh,
        arguments.no_cache,
        arguments.cache_dir,
        arguments.deadline,
        arguments.allow_download,
        arguments.max_download,
    )
    config = places.config()
    for sentence in filter(None, (*config.notes, assumed)):
        note(sentence, quiet=output.quiet)
    if links or threads:
        from wheelproof.wheels.memory import share_heaps

        share_heaps()  # before any thread is started
    with (
        Progress("reading", before="looking for wheels", quiet=output.quiet) as progress,
        open_places(places, config, links=links, whole=whole, companions=companions, on_bytes=progress.read) as opened,
    ):
        yield Sources(opened.client, opened.index, opened.config, opened.dependencies, progress=progress)


def attesting_of(client: HttpClient, output: OutputOptions, *, is_required: bool = False) -> Attesting:
    """The verifier of the attestations of files. Raises MissingExtraError."""
    from wheelproof.wheels.provenance import Attesting

    return Attesting(client, output, is_required)
