"""Proofs that two files of one name are the same."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.provenance.file_record_cases import ETAG, INDEX, MIRROR, NAME, A, against, file, stated
from tests.support.wheel_facts import judged
from wheel_checks.facts.provenance.record import RecordedFile, Sameness, compare
from wheel_checks.model import Outcome

MD5: dict[str, Any] = {"hashes": {"md5": "0" * 32}, "size": 7}


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (file(), file()),
        (file(size=7), file(size=7)),
        (file(**MD5), file(**MD5)),
        (file(**MD5), stated(A, index="")),
        (file(**ETAG), file(**{**ETAG, "etag": '"2"'})),
        (file(**ETAG), file(**{**ETAG, "url": "https://other.example/demo.whl"})),
        (file(**{**ETAG, "size": None}), file(**{**ETAG, "size": None})),
        (file(**{**ETAG, "etag": ""}), file(**{**ETAG, "etag": ""})),
    ],
    ids=["nothing", "a size", "a weak hash", "two algorithms", "another ETag", "another address", "no size", "no ETag"],
)
def test_what_proves_nothing_is_undecided(before: RecordedFile, now: RecordedFile) -> None:
    assert compare(before, now).sameness is Sameness.UNKNOWN
    (result,) = judged("WHL411", against([before], [now]))
    assert result.outcome is Outcome.ERROR
    assert result.fix is not None
    assert "--depth full" in result.fix.summary


def test_a_record_of_other_files_compares_nothing() -> None:
    (result,) = judged("WHL411", against([], [stated(A)]))
    assert (result.outcome, result.message.startswith("the record contains no file")) == (Outcome.ERROR, True)


def test_what_is_gone_may_be_behind_a_target_that_could_not_be_read() -> None:
    (result,) = judged("WHL412", against([stated(A)], [], is_complete=False))
    assert result.outcome is Outcome.ERROR


def test_of_several_files_of_one_name_the_most_alike_counts() -> None:
    comparison = against([stated(A, index=MIRROR), stated(A), stated("c" * 64)], [stated(A)])
    assert [(item.sameness, item.before.index) for item in comparison.compared] == [(Sameness.SAME, INDEX)]
    assert comparison.gone == ()
    assert comparison.compared[0].now.name == NAME
