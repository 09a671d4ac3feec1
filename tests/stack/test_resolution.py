"""A stack that was resolved within the last ten minutes: no index page is read, and the report is the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tests.conftest import Wheelproof
from tests.support.range_server import RangeServer, Resource
from tests.support.simple_index import simple_index
from tests.support.wheel_facts import AARCH64
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.provenance.indexes import find_higher, find_offers, summarised_offers
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.formats.index.remote_links import Refused
from wheel_checks.sources.simple_index import Listing, Place
from wheelproof.wheels import indexes as known_indexes
from wheelproof.wheels.indexes import KnownIndexes

FILES = simple_index(
    *(WheelBuilder("app", version).metadata(requires=["base<3"]) for version in ("1.0", "2.0")),
    *(WheelBuilder("base", version) for version in ("1.0", "2.0", "3.0")),
)
OTHER = {path.replace("/simple/", "/other/"): file for path, file in simple_index(WheelBuilder("base", "2.5")).items()}


def report(server: RangeServer, wheelproof: Wheelproof, *arguments: str) -> dict[str, Any]:
    """The report of ``stack app``, without values that differ between runs."""
    run = wheelproof(
        "stack", "app", "--index-url", server.url("/simple"), "--python", "3.12", "--format", "json", *arguments
    )
    found = json.loads(run.out)
    for part in (found, found["summary"], *found["subjects"], *(s["facts"] for s in found["subjects"])):
        for name in ("started", "seconds", "bytes_read", "bytes_cached", "requests"):
            part.pop(name, None)
    for subject in found["subjects"]:
        for result in subject["results"]:
            result.pop("seconds", None)
    return dict(found)


def pages(server: RangeServer) -> list[str]:
    """The index pages that were requested."""
    return [request.path for request in server.requests if request.path.endswith("/")]


@pytest.mark.parametrize("files", [FILES, {**FILES, **OTHER}], ids=["one index", "two indexes"])
def test_no_index_is_queried_again(wheelproof: Wheelproof, files: Mapping[str, bytes | Resource]) -> None:
    with RangeServer(dict(files)) as server:
        more = ["--platform", "aarch64"]
        more += ["--extra-index-url", server.url("/other")] if len(files) > len(FILES) else []
        first = report(server, wheelproof, *more)
        count = len(server.requests)
        assert pages(server)
        assert report(server, wheelproof, *more) == first
        assert [request.path for request in server.requests[count:]] == []


@pytest.mark.parametrize(
    "changed", [["--refresh"], ["--platform", "x86_64"], ["--python", "3.13"], ["--pre"]], ids=lambda words: words[0]
)
def test_another_question_and_refresh_resolve_again(wheelproof: Wheelproof, changed: list[str]) -> None:
    with RangeServer(dict(FILES)) as server:
        report(server, wheelproof, "--platform", "aarch64")
        before = len(server.requests)
        report(server, wheelproof, "--platform", "aarch64", *changed)
        assert len(pages(server)) > 2 if "--refresh" in changed else len(server.requests) >= before


def test_a_release_that_appears_is_taken_with_refresh(wheelproof: Wheelproof) -> None:
    older = simple_index(WheelBuilder("app", "1.0"))
    with RangeServer(dict(older)) as server:
        report(server, wheelproof, "--platform", "aarch64")
        server.files.update(simple_index(WheelBuilder("app", "1.0"), WheelBuilder("app", "2.0")))
        kept = report(server, wheelproof, "--platform", "aarch64")
        fresh = report(server, wheelproof, "--platform", "aarch64", "--refresh")
    assert [s["facts"]["version"] for s in kept["subjects"] if "version" in s["facts"]] == ["1.0"]
    assert [s["facts"]["version"] for s in fresh["subjects"] if "version" in s["facts"]] == ["2.0"]


def wheels(index: str, *names: str) -> tuple[IndexFile, ...]:
    """Wheels of ``demo`` on an index, by version and tags."""
    return tuple(IndexFile(f"demo-{name}.whl", f"{index}demo-{name}.whl", index=index) for name in names)


ONE, TWO = "https://one.example.org/", "https://two.example.org/"
LISTED = wheels(
    ONE,
    "1.0-cp312-cp312-win_amd64",
    "1.0-cp312-cp312-manylinux_2_28_aarch64",
    "2.0-cp312-cp312-manylinux_2_28_x86_64",
    "2.0-cp312-cp312-manylinux_2_28_aarch64",
    "3.0-cp312-cp312-win_amd64",
    "3.0-cp312-cp312-macosx_11_0_arm64",
)


def known(*places: Place) -> KnownIndexes:
    """Indexes that list ``demo`` so, and are asked no more."""
    return KnownIndexes(None, {"demo": Listing(places)})  # type: ignore[arg-type]  # no index is queried


def test_of_one_index_the_release_that_is_taken_counts() -> None:
    taken = next(file for file in LISTED if "2.0" in file.file_name and "aarch64" in file.file_name)

    kept = known(Place(ONE, LISTED), Place(TWO, known=False)).only({"demo": taken}, AARCH64)

    assert kept is not None
    first, second = kept["demo"].places
    assert [file.file_name for file in first.files] == [LISTED[2].file_name, LISTED[3].file_name]
    assert (first.left_out, second) == (4, Place(TWO, known=False))
    assert known(Place(ONE, LISTED)).only({}, AARCH64) == {}


@pytest.mark.parametrize("specifier", ["", "<3", "==2.0", "==1.0"])
def test_of_several_indexes_what_they_offer_is_the_same(specifier: str) -> None:
    taken = LISTED[3]
    whole = Listing((Place(ONE, LISTED), Place(TWO, wheels(TWO, "2.5-py3-none-any", "2.0-cp39-cp39-win_amd64"))))

    kept = known(*whole.places).only({"demo": taken}, AARCH64)

    assert kept is not None
    assert len(kept["demo"].places[0].files) == len(LISTED) - 1
    offers = [
        find_offers(listing, Requirement(f"demo{specifier}"), AARCH64, taken, Version("2.0"))
        for listing in (whole, kept["demo"])
    ]
    assert summarised_offers(offers[0]) == summarised_offers(offers[1])
    assert [[h.extra.version for h in find_higher(offer)] for offer in offers] == [
        [Version("2.5")] * (specifier in ("", "<3"))
    ] * 2


@pytest.mark.parametrize(
    "place",
    [
        Place(TWO, unread="it did not answer"),
        Place(TWO, refused=(Refused("demo-2.0.tar.gz", "file:///demo-2.0.tar.gz", "leads to this host", TWO),)),
        Place(TWO, wheels(TWO, "2.0-cp312-cp312-linux_aarch64-cu130")),
    ],
    ids=["unread", "refused", "variants"],
)
def test_where_more_counts_nothing_is_left_out(place: Place) -> None:
    assert known(Place(ONE, LISTED), place).only({"demo": LISTED[3]}, AARCH64) is None


def test_files_without_a_version_are_distinguished_by_their_names() -> None:
    odd = (*LISTED, *wheels(ONE, "x-y"), IndexFile("demo-2.0.tar.gz", f"{ONE}demo-2.0.tar.gz", index=ONE))
    kept = known(Place(ONE, odd)).only({"demo": LISTED[3]}, AARCH64)
    assert kept is not None
    assert [file.file_name for file in kept["demo"].places[0].files][2:] == ["demo-2.0.tar.gz"]
    assert known_indexes._release_of(odd[-2], "demo") == "x"
