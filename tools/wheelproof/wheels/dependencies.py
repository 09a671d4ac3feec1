"""The reader of what wheels require, with uv as its resolver: for every application that judges at depth links."""

from collections.abc import Sequence
from dataclasses import replace

from packaging.requirements import Requirement

from wheel_checks.errors import NotFoundError
from wheel_checks.facts.wheel.dependencies import Dependencies, Resolved
from wheel_checks.facts.wheel.resolution import active_with_extras
from wheel_checks.formats.index_page import IndexFile
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.installer_config import IndexConfig
from wheel_checks.sources.simple_index import SimpleIndex
from wheel_checks.sources.trust import allowed_requirement
from wheel_checks.sources.uv.keeping import Keeping
from wheel_checks.sources.uv.resolver import DEFAULT_TIMEOUT, Resolution, resolve
from wheel_checks.targets.target import Target
from wheelproof.wheels.indexes import KnownIndexes
from wheelproof.wheels.resolving import ArchiveSearch


def keeping_of(client: HttpClient, *, offline: bool) -> Keeping | None:
    """Where the resolutions of a run are kept: next to the index pages that they follow from."""
    return None if client.cache is None else Keeping(client.cache, client.refresh, offline)


def dependency_reader(
    client: HttpClient,
    index: SimpleIndex,
    config: IndexConfig,
    *,
    offline: bool = False,
    whole: bool = False,
    beside: Sequence[Requirement] = (),
) -> Dependencies:
    """Close it when the run ends. uv is started only when exact pins do not suffice, or for what is ``beside``."""
    known = KnownIndexes(index)

    def listing(project: str) -> Sequence[IndexFile]:
        try:
            return index.files(project).files
        except NotFoundError:  # a finding about the wheel that requires it, and no reason to stop
            return ()

    def resolver(requirements: Sequence[Requirement], target: Target) -> Resolved:
        # A direct URL in METADATA is the choice of who made the wheel, and not of the user.
        active = [r for r in requirements if not r.url or active_with_extras([r], target.markers())]
        texts = [allowed_requirement(r, config.trust, "METADATA of the wheel") for r in active]

        def run(more_links: tuple[str, ...], constraints: tuple[str, ...]) -> Resolution:
            places = replace(config, find_links=(*config.find_links, *more_links))
            timeout = client.time_left(DEFAULT_TIMEOUT)
            keeping = None if more_links else keeping_of(client, offline=offline)
            return resolve(
                texts,
                target,
                places,
                constraints=constraints,
                offline=offline,
                timeout=timeout,
                leave_out_unusable=True,
                keeping=keeping,
            )

        settled = ArchiveSearch(run, map(Requirement, texts), target, known, client).settle()
        built = settled.archives  # what a build gives cannot be linked to here
        taken = [package for package in settled.resolution.packages if package.name not in built]
        pins = tuple(Requirement(f"{package.name}=={package.version}") for package in taken)
        return Resolved(pins, (*(package.name for package in settled.resolution.unusable), *built))

    return Dependencies(client, listing, resolver, whole=whole, beside=beside)
