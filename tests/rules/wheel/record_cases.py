"""WHL120 to WHL124: RECORD, and the wheel's files."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode

from tests.rules.case import WARNING, Case
from tests.support.wheel_facts import facts_of
from tests.support.wheels import WheelBuilder, record_row
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.facts import WheelFacts

SHA512 = urlsafe_b64encode(hashlib.sha512(b"x = 1\n").digest()).decode().rstrip("=")
RECORD = "demo-1.0.dist-info/RECORD"


def demo() -> WheelBuilder:
    """A wheel with one module."""
    return WheelBuilder().add("demo/a.py", b"x = 1\n")


def with_row(row: str | None) -> WheelFacts:
    """A wheel whose RECORD has this row for its module."""
    return facts_of(demo().record_row("demo/a.py", row), depth=Depth.FULL)


CASES = [
    Case("WHL120", "no RECORD", lambda: facts_of(demo().build(record=False)), ("the wheel has no RECORD",)),
    Case(
        "WHL120",
        "a row with two columns",
        lambda: with_row("demo/a.py,sha256=abc"),
        ("RECORD line 1: the line has 2 columns; expected path, hash and size",),
        member="RECORD",
        line=1,
    ),
    Case(
        "WHL120",
        "a row without a hash",
        lambda: with_row("demo/a.py,,6"),
        ("RECORD line 1: 'demo/a.py': it has no hash",),
    ),
    Case(
        "WHL120",
        "something else named RECORD",
        lambda: facts_of(WheelBuilder().dist_info_file("RECORD", "no,\n" * 1001)),
        (
            f"{RECORD} cannot be read: RECORD has more than 1000 faults, the first in line 1: the line has 2 columns; "
            "expected path, hash and size; expected lines of path,algorithm=digest,size",
        ),
    ),
    Case(
        "WHL120",
        "no hash and no size for RECORD and its signature",
        lambda: facts_of(demo().record_extra(f"{RECORD}.jws,,")),
    ),
    Case(
        "WHL121",
        "a member without a row",
        lambda: with_row(None),
        ("RECORD does not list 1 file of the wheel",),
        evidence=("demo/a.py",),
    ),
    Case(
        "WHL121",
        "rows without a member",
        lambda: facts_of(demo().record_extra(record_row("demo/b.py", b"")).record_extra(record_row("c", b""))),
        ("RECORD lists 2 files that the wheel does not contain",),
        evidence=("c, demo/b.py",),
    ),
    Case(
        "WHL121",
        "a row twice",
        lambda: facts_of(demo().record_extra(record_row("demo/a.py", b"x = 1\n"))),
        ("RECORD lists 1 file more than once",),
        evidence=("demo/a.py",),
    ),
    Case(
        "WHL121",
        "folders, signatures and quoted names",
        lambda: facts_of(demo().add("demo/data/").add("demo/data/a,b.txt").add(f"{RECORD}.jws", b"{}", record=False)),
    ),
    Case(
        "WHL123",
        "another size",
        lambda: with_row(record_row("demo/a.py", b"x = 1\n").replace(",6", ",7")),
        ("RECORD states a wrong size for 1 file",),
        evidence=("demo/a.py (7 in RECORD, actual size 6 bytes)",),
    ),
    Case(
        "WHL123",
        "another size, in a stack",
        lambda: with_row(record_row("demo/a.py", b"x = 1\n").replace(",6", ",7")),
        ("RECORD states a wrong size for 1 file",),
        WARNING,
        expectations={"in_stack": True},
    ),
    Case("WHL123", "no size", lambda: with_row(record_row("demo/a.py", b"x = 1\n").removesuffix("6"))),
    Case(
        "WHL124",
        "another hash",
        lambda: with_row(record_row("demo/a.py", b"x = 2\n")),
        (
            "'demo/a.py' has sha256=nia_NpkRxFwkPGhBR7I_yeHc_PJX0pmhxjIBam_NM_Q, but RECORD says "
            "QgXEgJqxsID9Mra_lkDl_qptG2m_n6aElUq3EBV-wUE",
        ),
        member="demo/a.py",
    ),
    Case(
        "WHL124",
        "the content that another checksum belongs to",
        lambda: facts_of(demo().add("demo/b.py", b"x = 2\n", payload=b"x = 3\n", method=0), depth=Depth.FULL),
        ("'demo/b.py' has CRC-32 b9c0ebb9; expected a0dbdaf8",),
        member="demo/b.py",
    ),
    Case("WHL124", "a sha512 that is right", lambda: with_row(f"demo/a.py,sha512={SHA512},6")),
]
