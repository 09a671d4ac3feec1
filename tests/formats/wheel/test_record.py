"""RECORD."""

from __future__ import annotations

import pytest

from tests.support.wheels import record_row
from wheel_checks.errors import FormatError
from wheel_checks.formats.wheel.record import EMPTY_LINE, MAX_SIZE, RecordRow, parse_record

SHA256 = "sha256=RPg1RJSlugO6F5Ko0-nFNMR6kYGYD956P0SwbvKufH8"
DIGEST = SHA256.partition("=")[2]


def test_rows_with_their_lines() -> None:
    record = parse_record(f'demo/a.py,{SHA256},10\n"demo/b, c.py",{SHA256},\ndemo-1.dist-info/RECORD,,\n'.encode())
    assert record.rows == (
        RecordRow("demo/a.py", "sha256", DIGEST, 10, 1),
        RecordRow("demo/b, c.py", "sha256", DIGEST, None, 2),
        RecordRow("demo-1.dist-info/RECORD", "", "", None, 3),
    )
    assert record.faults == ()


def test_any_path_that_a_builder_quotes_comes_back() -> None:
    paths = ['a"b', "a,b", "ü.py", " leading", "a b"]
    record = parse_record("\r\n".join(record_row(path, b"") for path in paths).encode())
    assert [row.path for row in record.rows] == paths
    assert record.faults == ()


@pytest.mark.parametrize("name", ["RECORD", "RECORD.jws", "RECORD.p7s"])
def test_record_and_its_signatures_need_no_hash(name: str) -> None:
    assert parse_record(f"demo-1.dist-info/{name},,\n".encode()).faults == ()


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("a.py,,", "'a.py': it has no hash"),
        ("a.py,md5=1B2M2Y8AsgTpgAmY7PhCfg,0", "'a.py': the hash algorithm md5 is too weak; expected sha256 or better"),
        ("a.py,sha256,0", "'a.py': the sha256 digest '' is malformed"),
        (f"a.py,{SHA256}=,0", "'a.py': the sha256 digest"),
        (f"a.py,{SHA256[:-1]}+,0", "'a.py': the sha256 digest"),
        (f"a.py,{SHA256.replace('256', '512')},0", "'a.py': the sha512 digest"),
        ("a.py,whirl=abc,0", "'a.py': the hash 'whirl=abc' has an unknown algorithm"),
        (f"a.py,{SHA256},-1", "'a.py': the size is '-1'; expected a number of bytes"),
        (f"a.py,{SHA256},{'9' * 5000}", "'a.py': the size is '9999"),
        (f"a.py,{SHA256},²", "'a.py': the size is '²'"),
        (f"a.py,{SHA256}", "the line has 2 columns; expected path, hash and size"),
        (f",{SHA256},1", "the path is empty"),
        (f'"a"b,{SHA256},1', "the line is not CSV"),
        (f'"a,{SHA256},1', "the line is not CSV"),
    ],
)
def test_a_fault_is_a_sentence_with_its_line(row: str, fault: str) -> None:
    ((line, found),) = parse_record(f"good.py,{SHA256},1\n{row}\n".encode()).faults
    assert found.startswith(fault)
    assert line >= 2


def test_a_row_with_a_bad_hash_still_has_its_path() -> None:
    assert parse_record(b"a.py,md5=abc,7\n").rows == (RecordRow("a.py", "", "", 7, 1),)


@pytest.mark.parametrize("algorithm", ["sha384", "sha512", "blake2b"])
def test_stronger_algorithms_pass(algorithm: str) -> None:
    length = 64 if algorithm == "sha384" else 86
    assert parse_record(f"a.py,{algorithm}={'A' * length},0\n".encode()).faults == ()


def test_bytes_that_are_not_utf8() -> None:
    record = parse_record(f"a.py,{SHA256},1\n".encode() + b"\xff.py," + f"{SHA256},1\n".encode())
    assert record.faults == ((2, "the line is not UTF-8"),)
    assert [row.path for row in record.rows] == ["a.py", "\ufffd.py"]


def test_what_is_no_record_at_all_is_refused() -> None:
    with pytest.raises(FormatError, match=f"RECORD has {MAX_SIZE + 1} bytes; expected at most {MAX_SIZE}"):
        parse_record(bytes(MAX_SIZE + 1))
    with pytest.raises(FormatError, match="more than 1000 faults, the first in line 1: the line has 1 columns"):
        parse_record(b"free text\n" * 2000)


def test_too_many_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wheel_checks.formats.wheel.record.MAX_ROWS", 100)
    assert len(parse_record(f"a,{SHA256},\n".encode() * 100).rows) == 100
    with pytest.raises(FormatError, match="more than 100 rows"):
        parse_record(f"a,{SHA256},\n".encode() * 101)


def test_an_empty_line_is_a_fault_unless_rows_were_taken_out() -> None:
    data = b"demo/a.py,,\n\ndemo-1.0.dist-info/RECORD,,\n"

    assert (2, EMPTY_LINE) in parse_record(data).faults
    assert (2, EMPTY_LINE) not in parse_record(data, may_have_gaps=True).faults
    assert [row.line for row in parse_record(data, may_have_gaps=True).rows] == [1, 3]
