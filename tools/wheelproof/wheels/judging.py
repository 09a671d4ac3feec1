"""Reads wheels, up to eight at once, and judges each: shared by ``verify`` and ``stack``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from wheel_checks.catalogue import get_rule
from wheel_checks.errors import WheelproofError
from wheel_checks.facts.accelerator.meaning import is_known_by_name
from wheel_checks.facts.accelerator.shown import ALL, ANY, QUICK, REQUESTED, AcceleratorContent
from wheel_checks.facts.accelerator.signals import GPU
from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.archive.facts import MAX_READ
from wheel_checks.facts.archive.kept import NOTHING_KEPT, AsJson, kept_facts
from wheel_checks.facts.archive.reading import read_archive
from wheel_checks.facts.security.known import own_packages
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.facts.wheel.reading import Request, read_wheel
from wheel_checks.facts.wheel.resolution import active_with_extras
from wheel_checks.facts.wheel.siblings import NO_CONTENT, deciding_siblings, find_siblings
from wheel_checks.facts.wheel.summary import headline, summarize
from wheel_checks.formats.index.digests import WrongMetadataError
from wheel_checks.formats.index.file_names import WHEEL_SUFFIX
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.formats.wheel.core_metadata import MAX_SIZE as LARGEST_METADATA
from wheel_checks.formats.wheel.variant_label import split_label
from wheel_checks.model import CheckResult, Rule, Subject, Unavailable
from wheel_checks.runner import run_rules
from wheel_checks.sources.byte_source import ByteSource, NamedBytes
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.file_urls import is_file_url, path_of
from wheel_checks.sources.http.file import HttpFile
from wheel_checks.sources.local import LocalFile
from wheelproof.wheels.model import JudgedWheel, Judgement, PlannedWheel, Progress

if TYPE_CHECKING:  # depth quick loads neither links nor variants
    from wheel_checks.facts.gpu.targets import Product
    from wheel_checks.facts.wheel.dependencies import Dependencies
    from wheel_checks.facts.wheel.neighbours import Neighbour
    from wheel_checks.facts.wheel.variant import VariantIndex
    from wheel_checks.sources.variant_files import VariantFiles
    from wheel_checks.targets.variant_choice import MachineChoice

AT_ONCE = 8  # wheels read in parallel; also the client's bound on connections


def judge_wheels(
    wheels: Sequence[PlannedWheel],
    judgement: Judgement,
    rules: Sequence[Rule],
    client: HttpClient,
    progress: Progress,
    dependencies: Dependencies | None = None,
    variants: VariantFiles | None = None,
) -> list[JudgedWheel]:
    """Read and judge each wheel on its own, in order. Its members are dropped at once: a release has a million of them.

    A wheel that cannot be read is a subject with an error; the others continue. ``dependencies`` reads linked
    libraries, from depth links on; ``variants`` is a reader of variant metadata, partly filled.
    """
    names = Counter(planned.file_name for planned in wheels)
    if variants is None and any(split_label(wheel.file_name.removesuffix(WHEEL_SUFFIX))[1] for wheel in wheels):
        variants = variant_files(client)

    def judge(planned: PlannedWheel) -> JudgedWheel:
        name = planned.file_name
        expected = judgement.expectations
        if planned.gpus is not None:
            expected = replace(expected, gpus=planned.gpus)
        if names[name] > 1 and planned.target:
            name += f" ({planned.target.label})"
        try:
            facts, unlinked = _read(planned, replace(judgement, expectations=expected), client, dependencies, variants)
        except WheelproofError as error:
            return JudgedWheel(planned, unreadable(name, "wheel", error))
        finally:
            progress.done()
        results = (*unlinked, *run_rules(rules, facts, expected))
        if facts.variant is not None:
            results += run_rules(judgement.selection.rules("variant"), facts, judgement.expectations)
        subject = Subject(name, "wheel", headline(facts), summarize(facts, expected.gpus), results)
        return JudgedWheel(planned, subject, facts.without_members(), _own_packages(facts))

    with ThreadPoolExecutor(AT_ONCE, "wheel") as pool:
        futures = [pool.submit(judge, planned) for planned in wheels]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _own_packages(facts: WheelFacts) -> frozenset[str]:
    if isinstance(facts.archive, Unavailable) or isinstance(facts.name, Unavailable):
        return frozenset()
    return own_packages(canonicalize_name(facts.name.distribution), (member.name for member in facts.archive.members))


def _read(
    planned: PlannedWheel,
    judgement: Judgement,
    client: HttpClient,
    dependencies: Dependencies | None,
    variants: VariantFiles | None,
) -> tuple[WheelFacts, tuple[CheckResult, ...]]:
    """The facts of a wheel, and results about libraries that could not be followed."""
    expected = judgement.expectations
    read = partial(
        read_planned,
        planned,
        client=client,
        accelerator=_to_be_shown(expected),
        gpus=expected.gpus,
        variants=variants,
        max_read=judgement.max_read,
        presence=expected.in_stack and not expected.drivers,
        glance=_is_of_cuda(planned) and not (_to_be_shown(expected) or judgement.depth.includes(Depth.GPU)),
        upload=judgement.upload,
        first_use=not expected.in_stack,
        drivers=expected.named_drivers,
    )
    if judgement.depth is Depth.LINKS and not expected.without_driver and _is_others_business(planned):
        facts = read(depth=Depth.QUICK)
        if not _links_to_requested(facts, planned):
            return facts, ()
    facts = read(depth=judgement.depth)
    if dependencies is None or not judgement.depth.includes(Depth.LINKS):
        return facts, ()
    return _linked(facts, dependencies, planned)


def _to_be_shown(expected: Expectations) -> str:
    """The accelerator to look for in native members: the expected one, its version for a driver, any for a GPU."""
    if expected.accelerator:
        return expected.accelerator.accelerator
    return ALL if expected.drivers else ANY if expected.gpus else ""


def variant_files(client: HttpClient) -> VariantFiles:
    """The reader of variant metadata on indexes."""
    from wheel_checks.sources.variant_files import VariantFiles

    return VariantFiles(client)


def machine_subjects(choices: Sequence[MachineChoice], judgement: Judgement) -> list[Subject]:
    """The choice of each described machine among releases with variants."""
    if not choices:
        return []
    from wheelproof.wheels.machine_choice import machine_subject

    return [machine_subject(choice, judgement) for choice in choices]


def index_subjects(judged: Sequence[JudgedWheel], read: Sequence[VariantIndex], judgement: Judgement) -> list[Subject]:
    """The metadata of indexes and folders about the judged variants, and about those that machines chose from."""
    if not read and not any(item.facts and item.facts.variant for item in judged):
        return []
    from wheelproof.wheels.variants import variant_index_subjects

    return variant_index_subjects(judged, read, judgement)


def _is_others_business(planned: PlannedWheel) -> bool:
    """Whether a wheel of a stack only serves others: torch, whose exports are in a table, or a dependency."""
    from wheel_checks.facts.wheel.neighbours import TORCH

    return planned.companions is not None and (not planned.requested or _neighbour(planned).project == TORCH)


def _is_of_cuda(planned: PlannedWheel) -> bool:
    """Whether a wheel only serves others in a stack, and its name gives its CUDA version."""
    return planned.is_dependency and is_known_by_name(_neighbour(planned).project)


def _links_to_requested(facts: WheelFacts, planned: PlannedWheel) -> bool:
    """Whether a wheel of a stack has native code and requires a requested wheel with libraries."""
    from wheel_checks.facts.elf.native_members import is_library
    from wheel_checks.facts.wheel.neighbours import TORCH

    archive, metadata = facts.archive, facts.metadata
    if isinstance(archive, Unavailable) or isinstance(metadata, Unavailable) or planned.target is None:
        return False
    if _neighbour(planned).project == TORCH or not any(is_library(member.name) for member in archive.members):
        return False
    others = {
        _neighbour(one).project: one.requested for one in planned.companions or () if _neighbour(one).may_have_libraries
    }
    wanted = {name for name, requested in others.items() if requested or name == TORCH}
    active = active_with_extras(metadata.requirements, planned.target.markers())
    return any(canonicalize_name(requirement.name) in wanted for requirement in active)


def _neighbour(planned: PlannedWheel) -> Neighbour:
    from wheel_checks.facts.wheel.neighbours import Neighbour

    listing = planned.listing
    digest, size = (listing.hashes.get("sha256", ""), listing.size) if listing else ("", None)
    return Neighbour(planned.file_name, planned.location, digest, size)


def _linked(
    facts: WheelFacts, dependencies: Dependencies, planned: PlannedWheel
) -> tuple[WheelFacts, tuple[CheckResult, ...]]:
    """The facts with their link closure, and an undecided result when a required wheel cannot be read."""
    try:
        if _is_others_business(planned) and not _links_to_requested(
            facts, planned
        ):  # as its own requirements would have it
            links = dependencies.link(facts, planned.extras)
        else:
            companions = None if planned.companions is None else [_neighbour(one) for one in planned.companions]
            links = dependencies.link(facts, planned.extras, _neighbour(planned), companions)
    except WheelproofError as error:
        wrong = (error.wrong,) if isinstance(error, WrongMetadataError) else ()  # a finding of WHL111
        facts = replace(facts, links=Unavailable(str(error)), wrong_metadata=wrong)
        return facts, run_rules([get_rule("WHL000")], error, None)
    if isinstance(links, Unavailable):
        return replace(facts, links=links), ()
    read, requests = facts.bytes_read + links.bytes_read, facts.requests + links.requests
    facts = replace(facts, links=links, wrong_metadata=links.wrong_metadata)
    return replace(facts, bytes_read=read, requests=requests), ()


def read_siblings(
    judged: Sequence[JudgedWheel], client: HttpClient, expected: Expectations
) -> dict[str, AcceleratorContent | Unavailable]:
    """The accelerator of wheels for other machines, by file name, if a wheel here shows none.

    Of each release one wheel for each other machine is read, until one library shows an accelerator; where an
    accelerator or a GPU is expected, within a larger bound.
    """
    requested = bool(expected.accelerator or expected.gpus)
    known = {item.facts.file_name for item in judged if item.facts}
    files: dict[str, IndexFile] = {}
    for item in judged:
        facts = item.facts.accelerator if item.facts else None
        if item.facts is not None and isinstance(facts, AcceleratorFacts) and facts.accelerator not in GPU:
            files |= {f.file_name: f for f in deciding_siblings(item.facts, item.planned.listed)}
    wanted = [file for name, file in files.items() if name not in known]

    def read(file: IndexFile) -> AcceleratorContent | Unavailable:
        try:
            location = path_of(file.url) if is_file_url(file.url) else file.url
            source = _open(PlannedWheel(file.file_name, location, file), client)
            try:
                return _presence(source, client, most=REQUESTED if requested else QUICK)
            finally:
                source.close()
        except WheelproofError as error:
            return Unavailable(f"{file.file_name} cannot be read: {error}")

    with ThreadPoolExecutor(AT_ONCE, "sibling") as pool:
        return {file.file_name: found for file, found in zip(wanted, pool.map(read, wanted), strict=True)}


def _presence(source: NamedBytes, client: HttpClient, most: int) -> AcceleratorContent:
    """The accelerator of the first library with one, or the content of all."""
    kept = kept_facts(source, client.cache) if source.remote else NOTHING_KEPT
    archive = read_archive(source, kept)

    def read() -> AcceleratorContent:
        from wheel_checks.facts.accelerator.content import read_accelerator_content  # imports the reader of ELF files

        return read_accelerator_content(source, archive, most=most, wanted=ANY, at_hand=0)

    return kept.remember(f"accelerator presence {most}", AsJson(AcceleratorContent), read)


def compare_siblings(
    judged: Sequence[JudgedWheel],
    rules: Sequence[Rule],
    expectations: Expectations,
    contents: Mapping[str, AcceleratorContent | Unavailable] = NO_CONTENT,
) -> Iterable[JudgedWheel]:
    """Judge each wheel next to the others of its release, by the rules for releases; see :func:`read_siblings`."""
    known = {item.facts.file_name: item.facts for item in judged if item.facts}
    for item in judged:
        if item.facts is None:
            yield item
            continue
        facts = replace(item.facts, siblings=find_siblings(item.facts, item.planned.listed, known, contents))
        results = (*item.subject.results, *run_rules(rules, facts, expectations))
        subject = replace(item.subject, results=tuple(sorted(results, key=lambda result: result.rule)))
        yield replace(item, subject=subject, facts=facts)


def read_planned(
    planned: PlannedWheel,
    depth: Depth,
    client: HttpClient,
    *,
    accelerator: str = "",
    gpus: tuple[Product, ...] = (),
    variants: VariantFiles | None = None,
    max_read: int = MAX_READ,
    presence: bool = False,
    glance: bool = False,
    upload: bool = False,
    first_use: bool = False,
    drivers: tuple[str, ...] = (),
) -> WheelFacts:
    """The facts of one wheel. ``variants`` reads its variant metadata; all others are as in ``Request``.

    Raises SourceError if bytes cannot be had.
    """
    listing = planned.listing
    stated = listing.core_metadata if listing is not None else None

    def read_sidecar() -> bytes:
        return client.get_page(f"{planned.location}.metadata", largest=LARGEST_METADATA, stated=stated).body

    request = Request(
        planned.file_name,
        listing,
        planned.target,
        depth,
        None if stated is None else read_sidecar,
        accelerator,
        gpus,
        _reader_of_index(variants, planned),
        max_read,
        presence,
        glance,
        upload,
        first_use,
        drivers,
    )
    source = _open(planned, client)
    try:
        # Naming the bytes of a local file would cost more than depth quick reads.
        worthwhile = source.remote or depth.includes(Depth.LINKS)
        facts = read_wheel(source, request, kept_facts(source, client.cache) if worthwhile else NOTHING_KEPT)
        return replace(facts, other_listings=planned.other_listings, etag=_etag_of(source))
    finally:
        source.close()


def _reader_of_index(
    files: VariantFiles | None, planned: PlannedWheel
) -> Callable[[], VariantIndex | Unavailable] | None:
    if files is None:
        return None
    from wheelproof.wheels.variants import read_variants

    return read_variants(planned, files)


def unreadable(name: str, kind: str, error: WheelproofError) -> Subject:
    """A subject that could not be judged; an error with any selection of rules, so that it is no pass."""
    return Subject(name, kind, "could not be read", results=run_rules([get_rule("WHL000")], error, None))


def local_bytes(judged: Iterable[JudgedWheel]) -> int:
    """The bytes read from local files, which the client does not count."""
    return sum(item.facts.bytes_read for item in judged if item.facts and isinstance(item.planned.location, Path))


def _etag_of(source: ByteSource) -> str:
    """The strong validator of a file on a server, "" for any other."""
    return source.etag if isinstance(source, HttpFile) else ""


def _open(planned: PlannedWheel, client: HttpClient) -> NamedBytes:
    if isinstance(planned.location, Path):
        return LocalFile(planned.location)
    listing = planned.listing
    if listing is None:
        return client.open(planned.location)
    return client.open(planned.location, expected_hash=listing.hashes.get("sha256", ""), size=listing.size)
