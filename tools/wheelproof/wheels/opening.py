"""Open the sources of a run: the configured indexes, the cache, the network, and the reader of required wheels."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wheelproof import __version__

if TYPE_CHECKING:  # a command that only shows its help needs none of these
    from packaging.requirements import Requirement

    from wheel_checks.facts.wheel.dependencies import Dependencies
    from wheel_checks.sources.client import HttpClient
    from wheel_checks.sources.installers.config import IndexConfig
    from wheel_checks.sources.simple_index import SimpleIndex


@dataclass(frozen=True, slots=True)
class Places:
    """The indexes, the cache and the network of a run. Defaults are the configuration of uv and pip.

    ``trust_index`` are the addresses of a tree that may be contacted. ``max_download`` is a size as text ("2G"),
    ``deadline`` the seconds that the network may take in all.
    """

    index_url: str | None = None
    extra_index_urls: Sequence[str] = ()
    find_links: Sequence[str] = ()
    no_index: bool = False
    trust_index: Sequence[str] = ()
    offline: bool = False
    refresh: bool = False
    no_cache: bool = False
    cache_dir: str | None = None
    deadline: float | None = None
    allow_download: bool = False
    max_download: str | None = None

    def config(self, environ: Mapping[str, str] = os.environ) -> IndexConfig:
        """The indexes that are asked. Raises UsageError for a configuration that cannot be read."""
        from wheel_checks.sources.installers.config import configured_indexes
        from wheel_checks.sources.trust import Trust

        return configured_indexes(
            environ,
            Path.cwd(),
            index_url=self.index_url,
            extra_index_urls=self.extra_index_urls,
            find_links=self.find_links,
            no_index=self.no_index,
            trust=Trust.parse(self.trust_index),
        )


@dataclass(frozen=True, slots=True)
class Opened:
    """The sources of a run. ``dependencies`` is None unless requested."""

    client: HttpClient
    index: SimpleIndex
    config: IndexConfig
    dependencies: Dependencies | None = None


@contextlib.contextmanager
def open_places(
    places: Places,
    config: IndexConfig,
    *,
    links: bool = False,
    whole: bool = False,
    companions: Sequence[Requirement] = (),
    on_bytes: Callable[[int], object] | None = None,
) -> Iterator[Opened]:
    """Open ``places`` with their ``config``, and close them at the end of the ``with`` block.

    ``links`` opens the reader of linked libraries; with ``whole`` it streams every library whose head and tail do not
    suffice, and ``companions`` are installed with each wheel. ``on_bytes`` gets the number of bytes read. Raises
    UsageError for an invalid size.
    """
    from wheel_checks.facts.wheel.expectations import parse_size
    from wheel_checks.sources.client import HttpClient
    from wheel_checks.sources.http.cache import ByteCache, default_cache_path
    from wheel_checks.sources.http.download import LARGEST_DOWNLOAD
    from wheel_checks.sources.simple_index import SimpleIndex

    with contextlib.ExitStack() as stack:
        cache = None
        if not places.no_cache:
            path = default_cache_path()
            if places.cache_dir:
                path = Path(places.cache_dir) / path.name
            cache = stack.enter_context(contextlib.closing(ByteCache(path)))
        client = stack.enter_context(
            HttpClient(
                cache,
                offline=places.offline,
                refresh=places.refresh,
                deadline=places.deadline,
                allow_download=places.allow_download,
                max_download=parse_size(places.max_download) if places.max_download else LARGEST_DOWNLOAD,
                user_agent=f"wheelproof/{__version__}",
                on_bytes=on_bytes,
            )
        )
        index = SimpleIndex(client, config)
        dependencies = None
        if links:
            from wheelproof.wheels.dependencies import dependency_reader

            dependencies = stack.enter_context(
                dependency_reader(client, index, config, offline=places.offline, whole=whole, companions=companions)
            )
        yield Opened(client, index, config, dependencies)
