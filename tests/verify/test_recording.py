"""Reading records: they come from elsewhere, so that every value is checked and bounded."""

from __future__ import annotations

import json
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from wheel_checks.errors import FormatError, UsageError
from wheelproof.verifying.recording import LARGEST, read_record

FILE: dict[str, Any] = {"name": "demo-1.0-py3-none-any.whl", "verdict": "pass"}
RECORD: dict[str, Any] = {
    "schema": "wheelproof.record/1",
    "tool": {"name": "wheelproof", "version": "0.1.0"},
    "recorded": "2026-11-23T00:00:00Z",
    "verdict": "pass",
    "files": [FILE],
}
SCHEMA = json.loads(files("wheelproof.verifying").joinpath("record.schema.json").read_text(encoding="utf-8"))


def with_file(**fields: Any) -> dict[str, Any]:
    return {**RECORD, "files": [{**FILE, **fields}]}


def write(folder: Path, document: object) -> Path:
    path = folder / "record.json"
    path.write_bytes(document if isinstance(document, bytes) else json.dumps(document).encode())
    return path


@pytest.mark.parametrize(
    ("document", "says"),
    [
        (b"", "is not valid JSON"),
        (b"\xff\xfe", "is not valid JSON"),
        (b"[" * 100_000, "is not valid JSON"),
        (b'{"schema": ' + b"9" * 5_000 + b"}", "is not valid JSON"),
        (b" " * (LARGEST + 1), "has more than"),
        ([], "expected an object"),
        ({}, "faults: "),
        ({**RECORD, "schema": "wheelproof.record/2"}, 'expected "wheelproof.record/1"'),
        ({**RECORD, "schema": "wheelproof.report/1"}, 'expected "wheelproof.record/1"'),
        ({**RECORD, "verdict": "fine"}, "verdict is 'fine'; expected one of pass, fail, undecided"),
        ({**RECORD, "files": {}}, "files is {}"),
        ({**RECORD, "files": [None]}, "files[0] is null"),
        ({**RECORD, "files": [FILE] * 100_001}, "files has 100,001 entries; expected at most 100,000"),
        (with_file(name=""), "files[0].name is ''"),
        (with_file(name="x" * 5_000), "files[0].name has 5,000 characters"),
        (with_file(size=-1), "files[0].size is -1"),
        (with_file(size=True), "files[0].size is true"),
        (with_file(size=1e300), "files[0].size is 1e+300"),
        (with_file(sha256="A" * 64), "files[0].sha256 is 'AAAA"),
        (with_file(sha256="0" * 63), "files[0].sha256 is '0000"),
        (with_file(hashes={"sha256": "nothing"}), "files[0].hashes.sha256 is 'nothing'"),
        (with_file(hashes=[]), "files[0].hashes is []"),
        (with_file(targets="all"), "files[0].targets is 'all'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_record_is_refused_with_its_place(tmp_path: Path, document: object, says: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_record(write(tmp_path, document))
    assert says in str(caught.value)
    if isinstance(document, dict):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(document if len(document.get("files", [])) < 9 else {}, SCHEMA)


def test_keys_of_a_later_version_are_read_over(tmp_path: Path) -> None:
    record = read_record(write(tmp_path, {**with_file(later=1), "later": {}}))
    assert [file.name for file in record.files] == [FILE["name"]]
    jsonschema.validate({**with_file(later=1), "later": {}}, SCHEMA)


def test_what_cannot_be_read_is_a_matter_of_usage(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path / "missing", tmp_path, pipe, Path("/dev/zero")):
        with pytest.raises(UsageError, match="cannot be read"):
            read_record(path)
