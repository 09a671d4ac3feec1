"""The offers of several indexes for a project."""

from __future__ import annotations

from dataclasses import replace

from packaging.requirements import Requirement
from packaging.version import Version

from tests.rules.provenance.indexes_cases import EXTRA, FIRST, MAC, THIRD, place, use
from tests.support.wheel_facts import AARCH64
from wheel_checks.facts.provenance.indexes import described, find_higher, find_offers, same_named, summarised_offers
from wheel_checks.formats.index.page import OtherListing
from wheel_checks.sources.simple_index import Listing, Place


def test_of_two_higher_versions_the_highest_is_taken() -> None:
    (project,) = use(place(FIRST, "1.0"), place(EXTRA, "2.0"), place(THIRD, "3.0")).projects
    assert [(higher.extra.index, str(higher.best), higher.is_taken) for higher in find_higher(project)] == [
        (EXTRA, "1.0", False),
        (THIRD, "1.0", True),
    ]


def test_what_is_taken_and_what_others_offer_for_people_and_programs() -> None:
    unread = Place(THIRD, counts=False, unread="it does not answer")
    (project,) = use(place(FIRST, "1.0", "2.0"), place(EXTRA, "1.5"), unread).projects
    assert described(project) == f"from {FIRST}; {EXTRA} offers 1.5"
    assert summarised_offers(project) == [
        {"index": FIRST, "taken": True, "version": "2.0", "file": "demo-2.0-py3-none-any.whl", "files": 2}
        | {"counts": True, "unread": ""},
        {"index": EXTRA, "taken": False, "version": "1.5", "file": "demo-1.5-py3-none-any.whl", "files": 1}
        | {"counts": True, "unread": ""},
        {"index": THIRD, "taken": False, "version": None, "file": "", "files": 0}
        | {"counts": False, "unread": "it does not answer"},
    ]


def test_an_index_that_has_nothing_for_the_target_is_for_programs_only() -> None:
    (project,) = use(place(FIRST, "1.0"), place(EXTRA, "2.0", tags=MAC)).projects
    assert described(project) == ""
    assert [offer["version"] for offer in summarised_offers(project)] == ["1.0", None]


def test_one_index_is_not_worth_a_word() -> None:
    (project,) = use(place(FIRST, "1.0"), Place(EXTRA, known=False)).projects
    assert (described(project), summarised_offers(project)) == ("", [])


def test_without_a_target_the_newest_wheel_of_all_stands_for_an_index() -> None:
    listing = Listing((place(FIRST, "1.0", tags=MAC), place(EXTRA, "2.0", tags=MAC)))
    taken = listing.files[-1]
    project = find_offers(listing, Requirement("demo"), None, taken, Version("2.0"))
    assert [(higher.extra.index, higher.is_taken) for higher in find_higher(project)] == [(EXTRA, True)]
    assert find_offers(listing, Requirement("demo"), AARCH64, None, None).offers[1].version is None


def test_a_page_that_lists_one_name_twice_lists_two_files_where_they_differ() -> None:
    (one,) = place(FIRST, "1.0").files
    two = replace(one, url="https://files.example/other/" + one.file_name)
    assert same_named(Listing((Place(FIRST, (one, one)),)), one) == ()
    assert same_named(Listing((Place(FIRST, (one, two)),)), one) == (OtherListing(two, may_take=True),)
