"""What indexes say of the file: yanked, too large, another one elsewhere, over which connection."""

from collections.abc import Iterable

from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.formats.digests import STRONG
from wheel_checks.formats.index_page import IndexFile
from wheel_checks.model import Evidence, Finding, Fix, Severity, Unavailable, need
from wheel_checks.registry import rule


@rule(
    "WHL301",
    "the file is not yanked",
    Severity.WARNING,
    why="Installers skip a yanked file unless it is pinned exactly: a pin that works today fails as a range.",
    example='a link with `data-yanked="broken metadata"`',
    fix="Move to a release that is not yanked.",
)
def yanked(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """The index does not mark it (PEP 592)."""
    if wheel.listing is None:
        need(Unavailable("the wheel was not read from an index"))
        return
    if wheel.listing.yanked is not None:
        evidence = (Evidence("reason", wheel.listing.yanked or "none given", wheel.listing.index),)
        yield Finding("the file is yanked", evidence, Fix("Pin a release that is not yanked."))


@rule(
    "WHL302",
    "the file is within the size limit",
    why="Indexes reject files above a project's limit, at the very end of an upload.",
    example="`--max-size 1GB` with a wheel of 1.2 GB",
    fix="Move libraries to separate packages, drop old architectures, compress fat binaries, or request a larger "
    "limit.",
)
def size(wheel: WheelFacts, expectations: Expectations) -> Iterable[Finding]:
    """At most `--max-size`."""
    limit = expectations.max_size
    if limit is None:
        need(Unavailable("no limit was given", "--max-size 1GB"))
        return
    if wheel.size > limit:
        evidence = (Evidence("size", f"{wheel.size:,} bytes"), Evidence("limit", f"{limit:,} bytes", "--max-size"))
        fix = Fix("Drop old GPU architectures, compress the fat binaries, or move libraries to separate packages.")
        yield Finding(f"the wheel exceeds the size limit by {wheel.size - limit:,} bytes", evidence, fix)


@rule(
    "WHL303",
    "all indexes list the same file under this name",
    why="With two files under one name, the installer and the order of the indexes decide which is installed, and only "
    "one of them was checked. One index has another build, or was tampered with.",
    example="sha256=9f3a... on the index of `--index-url`, sha256=1c22... on that of `--extra-index-url`",
    fix="Use the index with the file that you want, and pin its hash (`pip install --require-hashes`).",
)
def one_file(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Equal hashes, else equal sizes.

    An error where an installer may take either; a warning where the other is passed over or in a find-links place; a
    note where there is nothing to compare.
    """
    if wheel.listing is None:
        need(Unavailable("the wheel was not read from an index"))
        return
    fix = Fix("Use the index with the file that you want, and pin the hash of the file.")
    stated = {**({"sha256": wheel.content_sha256} if wheel.content_sha256 else {}), **wheel.listing.hashes}
    for other in wheel.other_listings:
        evidence = (_stated(wheel.listing), _stated(other.file))
        shared = stated.keys() & other.file.hashes.keys()
        sizes = {wheel.size, other.file.size} - {None}
        if any(stated[name] != other.file.hashes[name] for name in shared) or len(sizes) > 1:
            severity = None if other.may_take else Severity.WARNING
            message = f"{other.file.index} lists a different file under this name than {wheel.listing.index}"
            yield Finding(message, evidence, fix, severity=severity)
        elif not shared:
            message = f"not known whether {other.file.index} lists the same file as {wheel.listing.index}"
            yield Finding(
                message, evidence, Fix("Read the file of each index with --depth full."), severity=Severity.NOTE
            )


def _stated(listing: IndexFile) -> Evidence:
    hashes = [f"{name}={digest}" for name, digest in listing.hashes.items()] or ["no hash"]
    size = "no size" if listing.size is None else f"{listing.size:,} bytes"
    return Evidence(listing.index, ", ".join([*hashes, size]), listing.url)


@rule(
    "WHL304",
    "an index read over https also serves its files over https",
    Severity.WARNING,
    why="An attacker on the network can replace a file served over http. Installers detect that through the hash on "
    "the page, but not if the page states none.",
    example="an index behind a proxy that ends TLS, whose pages name `http://files.example.org/...`",
    fix="Have the index link its files over https (X-Forwarded-Proto, or relative links).",
)
def encrypted(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """An error where the page states no strong hash."""
    if wheel.listing is None:
        need(Unavailable("the wheel was not read from an index"))
        return
    if wheel.listing.index.lower().startswith("https:") and wheel.listing.url.lower().startswith("http:"):
        strong = next((name for name in STRONG if name in wheel.listing.hashes), "")
        evidence = (Evidence("index", wheel.listing.index), Evidence("file", wheel.listing.url))
        guard = f"but states its {strong}" if strong else "and states no strong hash of it"
        fix = Fix("Have the index link its files over https.")
        yield Finding(
            f"the index serves the file over http, {guard}", evidence, fix, severity=None if strong else Severity.ERROR
        )
