"""WHL411 to WHL414: the files of a run compared with a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.rules.case import NOTE, WARNING, Case
from wheel_checks.facts.provenance.record import (
    SCHEMA,
    Record,
    RecordComparison,
    RecordedFile,
    Requested,
    Tool,
    compare_with,
)
from wheel_checks.model import Verdict

NAME, OTHER = "demo-1.0-py3-none-any.whl", "demo-2.0-py3-none-any.whl"
INDEX, MIRROR = "https://index.example/simple", "https://mirror.example/simple"
A, B = "a" * 64, "b" * 64
ASKED = Requested(("demo",), ("all",), ("3.12",))


def file(name: str = NAME, **fields: Any) -> RecordedFile:
    return RecordedFile(name, Verdict.PASS, **fields)


def stated(digest: str, name: str = NAME, **fields: Any) -> RecordedFile:
    """A file whose sha256 an index states."""
    return file(name, **{"hashes": {"sha256": digest}, "index": INDEX, "size": 7, **fields})


def against(
    before: Sequence[RecordedFile], now: Sequence[RecordedFile], *, is_complete: bool = True
) -> RecordComparison:
    """The files of a run compared with those of a record."""
    record = Record(SCHEMA, Tool("wheelproof", "0"), "2026-11-23T00:00:00Z", Verdict.PASS, tuple(before), ASKED)
    return compare_with(record, now, is_complete=is_complete)


def changed(given: str, before: RecordedFile, now: RecordedFile, *says: str) -> Case:
    return Case("WHL411", given, lambda: against([before], [now]), says)


IS_ANOTHER = f"{NAME} is a different file"
ETAG: dict[str, Any] = {"etag": '"1"', "url": "https://files.example/demo.whl", "size": 7}

CASES = [
    changed("another hash on the index", stated(A), stated(B), f"{IS_ANOTHER}: sha256 {A} then, {B} now"),
    changed("another size", stated(A), stated(A, size=8), f"{IS_ANOTHER}: 7 bytes then, 8 bytes now"),
    changed(
        "other bytes after the same statement",
        stated(A, sha256=A),
        stated(A, sha256=B),
        f"{IS_ANOTHER}: sha256 {A} then, {B} now",
    ),
    changed(
        "a weak hash that differs after a strong one",
        file(hashes={"sha512": A, "md5": "0" * 32}),
        file(hashes={"sha512": A, "md5": "1" * 32}),
        f"{IS_ANOTHER}: md5 {'0' * 32} then, {'1' * 32} now",
    ),
    changed(
        "another index, and nothing to compare",
        file(index=INDEX, size=7),
        file(index=MIRROR, size=7),
        f"{NAME} comes from another index: no strong hash and no ETag of both is known",
    ),
    changed("the same statement", stated(A), stated(A)),
    changed("bytes that were read then, and the statement of today", file(sha256=A, size=7), stated(A)),
    changed("the same validator at the same address", file(**ETAG), file(**ETAG)),
    Case(
        "WHL411",
        "one name in two folders",
        lambda: against([file(sha256=A), file(sha256=B)], [file(sha256=B), file(sha256=A)]),
    ),
    Case(
        "WHL412",
        "a newer release is taken",
        lambda: against([stated(A)], [stated(B, OTHER)]),
        (f"no longer selected: {NAME}",),
        evidence=(f"sha256={A}, 7 bytes", OTHER, "demo --platform all --python 3.12"),
    ),
    Case("WHL412", "a file more", lambda: against([stated(A)], [stated(A), stated(B, OTHER)])),
    Case(
        "WHL413",
        "the same file on a mirror",
        lambda: against([stated(A)], [stated(A, index=MIRROR)]),
        (f"{NAME} is unchanged, but comes from another index",),
        WARNING,
        evidence=(INDEX, MIRROR),
    ),
    Case("WHL413", "a slash more", lambda: against([stated(A)], [stated(A, index=f"{INDEX}/")])),
    Case(
        "WHL414",
        "a file more",
        lambda: against([stated(A)], [stated(A), stated(B, OTHER)]),
        (f"not in the record: {OTHER}",),
        NOTE,
        evidence=(f"sha256={B}, 7 bytes",),
    ),
    Case("WHL414", "a file less", lambda: against([stated(A), stated(B, OTHER)], [stated(A)])),
]
