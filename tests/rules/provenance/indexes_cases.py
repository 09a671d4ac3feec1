"""WHL303, WHL304, WHL403 and WHL404: several indexes, and their links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from packaging.requirements import Requirement

from tests.rules.case import NOTE, WARNING, Case
from tests.support.wheel_facts import AARCH64, facts_of, listed
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.provenance.indexes import IndexUse, find_offers, same_named
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.formats.index.remote_links import Refused
from wheel_checks.sources.installers.config import FIRST_INDEX, MERGE
from wheel_checks.sources.simple_index import Listing, Place
from wheel_checks.targets.selection import choose

FIRST, EXTRA, THIRD = "https://first.example/simple", "https://extra.example/simple", "https://third.example/simple"
NAME = "demo-1.0-py3-none-any.whl"
MAC = "py3-none-macosx_11_0_arm64"


def place(index: str, *versions: str, tags: str = "py3-none-any", **fields: Any) -> Place:
    """An index that lists wheels of these versions."""
    names = (f"demo-{version}-{tags}.whl" for version in versions)
    return Place(index, tuple(replace(listed(name), index=index) for name in names), **fields)


def use(*places: Place, requirement: str = "demo", strategy: str = MERGE, pinned: bool = False) -> IndexUse:
    """The facts of a run of one requirement with these places."""
    listing, wanted = Listing(places), Requirement(requirement)
    choice = choose(wanted, listing.files, AARCH64)
    project = find_offers(listing, wanted, AARCH64, choice.chosen, choice.version, is_pinned=pinned)
    return IndexUse(strategy, (project,))


def several(count: int) -> IndexUse:
    """Many projects for which the extra index has more."""
    (project,) = use(place(FIRST, "1.0"), place(EXTRA, "2.0")).projects
    return IndexUse(MERGE, tuple(replace(project, name=f"demo{number}") for number in range(count)))


def refused(*urls: str) -> IndexUse:
    """An index with a page that leads there."""
    links = tuple(Refused(url.rpartition("/")[2], url, "is a file on this host", FIRST) for url in urls)
    return use(place(FIRST, "1.0", refused=links))


def elsewhere(own: dict[str, Any], *others: dict[str, Any], **fields: Any) -> WheelFacts:
    """A wheel that the first index lists as ``own``, and others otherwise; ``fields`` are those of the second place."""
    wheel = WheelBuilder()
    files = [IndexFile(NAME, f"{FIRST}/{NAME}", index=FIRST, **own)]
    files += [
        IndexFile(NAME, f"{index}/{NAME}", index=index, **other)
        for index, other in zip((EXTRA, THIRD), others, strict=False)
    ]
    places = [Place(file.index, (file,), **(fields if file.index == EXTRA else {})) for file in files]
    return replace(facts_of(wheel, listing=files[0]), other_listings=same_named(Listing(tuple(places)), files[0]))


def over(index: str, url: str, **hashes: str) -> WheelFacts:
    """A wheel that an index lists at this address."""
    return facts_of(WheelBuilder(), listing=IndexFile(NAME, url, hashes, index=index))


def sha(digit: str, **fields: Any) -> dict[str, Any]:
    return {"hashes": {"sha256": digit * 64}, **fields}


TAKEN = (f"demo: selected from {EXTRA}, which has a higher version than {FIRST}, although {FIRST} comes first",)
PASSED_OVER = (f"demo: {EXTRA} has a higher version than {FIRST}, which comes first; it is not selected",)
ANOTHER = (f"{EXTRA} lists a different file under this name than {FIRST}",)


def confusion(given: str, facts: IndexUse, says: Sequence[str] = (), severity: Any = WARNING, *evidence: str) -> Case:
    return Case("WHL403", given, lambda: facts, tuple(says), severity, evidence=evidence)


CASES = [
    confusion(
        "a higher version on the extra index",
        use(place(FIRST, "1.0"), place(EXTRA, "99.0")),
        TAKEN,
        WARNING,
        f"99.0 on {EXTRA}, 1.0 on {FIRST}",
    ),
    confusion(
        "a higher version where uv would not look",
        use(place(FIRST, "1.0"), place(EXTRA, "99.0", counts=False), strategy=FIRST_INDEX),
        PASSED_OVER,
        NOTE,
    ),
    confusion(
        "a range that the first index does not have",
        use(place(FIRST, "1.0"), place(EXTRA, "2.0"), requirement="demo>=2"),
        TAKEN,
    ),
    confusion(
        "a range below what the first index also has",
        use(place(FIRST, "1.0", "3.0"), place(EXTRA, "2.0"), requirement="demo<3"),
        TAKEN,
    ),
    confusion("a first index that has it for others", use(place(FIRST, "1.0", tags=MAC), place(EXTRA, "2.0")), TAKEN),
    confusion(
        "five projects at once",
        several(5),
        (TAKEN[0].replace("demo:", "demo0, demo1, demo2 and 2 more:"),),
    ),
    confusion("another local version", use(place(FIRST, "2.11.0"), place(EXTRA, "2.11.0+cu130"))),
    confusion(
        "a version that the first has for another platform",
        use(
            Place(FIRST, (*place(FIRST, "1.0").files, *place(FIRST, "2.0", tags=MAC).files)),
            place(EXTRA, "2.0"),
        ),
    ),
    confusion("the same version for another platform", use(place(FIRST, "1.0", "2.0", tags=MAC), place(EXTRA, "2.0"))),
    confusion("a lower version on the extra index", use(place(FIRST, "2.0"), place(EXTRA, "1.0"))),
    confusion("a project that only the extra index has", use(place(FIRST, known=False), place(EXTRA, "99.0"))),
    confusion("a pre-release, which is not asked for", use(place(FIRST, "1.0"), place(EXTRA, "2.0rc1"))),
    confusion("pre-releases only", use(place(FIRST, "1.0rc1"), place(EXTRA, "2.0rc1")), TAKEN),
    confusion("a version that is named", use(place(FIRST, "1.0"), place(EXTRA, "2.0"), pinned=True)),
    confusion("a find-links place", use(place(FIRST, "1.0"), place(EXTRA, "2.0", is_index=False))),
    confusion("one index", use(place(FIRST, "1.0", "2.0"))),
    Case(
        "WHL404",
        "a file of this host",
        lambda: refused(f"file:///tmp/{NAME}", "file:///tmp/demo-2.0.tar.gz"),
        (f"{FIRST} has links that must not be followed: {NAME}, demo-2.0.tar.gz",),
        evidence=(f"file:///tmp/{NAME} is a file on this host",),
    ),
    Case(
        "WHL404",
        "an address that no installer follows",
        lambda: refused(f"ftp://files.example/{NAME}"),
        (f"{FIRST} has links that must not be followed: {NAME}",),
        WARNING,
    ),
    Case("WHL404", "an index that leads to files", refused),
    Case(
        "WHL303",
        "two hashes",
        lambda: elsewhere(sha("0"), sha("1", size=7)),
        ANOTHER,
        evidence=(f"sha256={'0' * 64}, no size", f"sha256={'1' * 64}, 7 bytes"),
    ),
    Case("WHL303", "two sizes without hashes", lambda: elsewhere({}, {"size": 7}), ANOTHER),
    Case(
        "WHL303",
        "two hashes, one of which the strategy passes over",
        lambda: elsewhere(sha("0"), sha("1"), counts=False),
        ANOTHER,
        WARNING,
    ),
    Case(
        "WHL303",
        "a file in a find-links place",
        lambda: elsewhere(sha("0"), sha("1"), is_index=False),
        ANOTHER,
        WARNING,
    ),
    Case(
        "WHL303",
        "hashes of two algorithms",
        lambda: elsewhere(sha("0"), {"hashes": {"md5": "1" * 32}}),
        (f"not known whether {EXTRA} lists the same file as {FIRST}",),
        NOTE,
        evidence=(f"sha256={'0' * 64}, no size", f"md5={'1' * 32}, no size"),
    ),
    Case(
        "WHL303",
        "one of two hashes that differs",
        lambda: elsewhere(sha("0"), {"hashes": {"sha256": "0" * 64, "md5": "1" * 32}}, sha("1")),
        (ANOTHER[0].replace(EXTRA, THIRD),),
    ),
    Case("WHL303", "the same hash on three indexes", lambda: elsewhere(sha("0"), sha("0"), sha("0"))),
    Case(
        "WHL304",
        "http behind https",
        lambda: over(FIRST, f"http://files.example/{NAME}", sha256="0" * 64),
        ("the index serves the file over http, but states its sha256",),
        WARNING,
    ),
    Case(
        "WHL304",
        "http behind https, and a weak hash",
        lambda: over(FIRST, f"http://files.example/{NAME}", md5="0" * 32),
        ("the index serves the file over http, and states no strong hash of it",),
    ),
    Case("WHL304", "http behind http", lambda: over("http://mirror.example", f"http://files.example/{NAME}")),
    Case("WHL304", "https behind https", lambda: over(FIRST, f"https://files.example/{NAME}")),
]
