"""Contents of a journal: hostile ones are refused by one sentence, before anything is written."""

from __future__ import annotations

import base64
import json
import os
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Wheelproof
from wheel_checks.errors import FormatError, SourceError
from wheelproof.pins.atomic import open_folder
from wheelproof.pins.model import Edit
from wheelproof.pins.rewrite import journal as journals
from wheelproof.pins.rewrite.journal import Journal, JournalFile, Record, digest, parse_journal, temporary_for

ORIGINAL, REWRITTEN = b"six\ntorch==2.8.0\n", b"six\n"
PLACE, ROOT = Path("/state/journal"), Path("/tree")


def a_file(path: object = "requirements.txt", **other: object) -> dict[str, object]:
    """A file of a transaction that is as it must be, but for ``other``."""
    name = str(path).rpartition("/")[2]
    return {
        "path": path,
        "original": base64.b64encode(zlib.compress(ORIGINAL)).decode(),
        "original_size": len(ORIGINAL),
        "edits": [[4, 17, ""]],
        "rewritten": digest(REWRITTEN),
        "temporary": f".{name}.{'0' * 16}.wheelproof",
        **other,
    }


def second(*files: object, **header: object) -> bytes:
    """A journal with one transaction."""
    top = {"schema": "wheelproof.pins-journal/2", "about": "", "tree": str(ROOT), **header}
    return (json.dumps(top) + "\n" + json.dumps(list(files)) + "\n").encode()


def first(*files: object) -> bytes:
    """A journal of the first version, with one transaction."""
    return json.dumps({"schema": "wheelproof.pins-journal/1", "transactions": [list(files)]}, indent=1).encode()


def test_a_journal_of_either_version() -> None:
    record = Record("a/r.txt", ORIGINAL, (Edit(4, 17),), digest(REWRITTEN), f".r.txt.{'0' * 16}.wheelproof")

    assert parse_journal(second(a_file("a/r.txt")), PLACE, ROOT) == Journal(ROOT, ((record,),))
    assert parse_journal(first(a_file("r.txt")), ROOT / "a/j", ROOT) == Journal(ROOT, ((record,),), first=True)
    assert parse_journal(first(a_file("../a/r.txt")), ROOT / "b/j", ROOT).transactions == ((record,),)


OUTSIDE = [
    *("../x", "../../etc/passwd", "a/../../x", "/etc/passwd", "/treex/x", "..", ".", "", "a/..", "//x", "\0", "a\0b"),
    *(".git/config", "a/.git/hooks/pre-commit", ".GIT/config", ".hg/hgrc", "a/../.git/config", ".jj/x", "sub/.svn/x"),
]


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize("made", [first, second])
def test_a_path_outside_of_the_tree(path: str, made: Any) -> None:
    with pytest.raises(FormatError, match=r"is outside of the tree /tree; nothing was changed|is not a path"):
        parse_journal(made(a_file(path)), ROOT / "journal", ROOT)


@pytest.mark.parametrize(
    "other",
    [
        {"rewritten": ""},
        {"rewritten": digest(b"anything else")},
        {"rewritten": None},
        {"edits": []},
        {"edits": [[4, 17]]},
        {"edits": [[4, 17, "!"]]},
        {"edits": [[4.0, 17, ""]]},
        {"edits": [[4, 10**9, ""]]},
        {"edits": [[4, 17, ""], [3, 5, ""]]},
        {"edits": [[True, 17, ""]]},
        {"edits": [[-1, 17, ""]]},
        {"original": ""},
        {"original": base64.b64encode(b"no zlib").decode()},
        {"original_size": 3},
        {"original_size": "17"},
        {"path": 3},
        {"path": None},
        {"path": ["requirements.txt"]},
        {"temporary": "../x.0000000000000000.wheelproof"},
        {"temporary": "requirements.txt"},
        {"temporary": ".other.txt.0000000000000000.wheelproof"},
        {"temporary": f"./a/.requirements.txt.{'0' * 16}.wheelproof"},
        {"temporary": None},
    ],
    ids=str,
)
def test_a_damaged_or_made_up_record(other: dict[str, object]) -> None:
    for made in (first, second):
        with pytest.raises(FormatError):
            parse_journal(made({**a_file(), **other}), ROOT / "journal", ROOT)


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"\n", b"[]", b"{}", b"3", b"null", b"\xff\xfe", b"{", b"[" * 200_000),
        *(b"[" * 100_000 + b"\n" + b"[" * 100_000, b'{"schema": "wheelproof.pins-journal/2"}\n'),
        b'{"schema": "wheelproof.pins-journal/2", "tree": "/tree"}\n[',
        b'{"schema": "wheelproof.pins-journal/2", "tree": "/tree"}\n{"a": 1}\n',
        b'{"schema": "wheelproof.pins-journal/1", "transactions": [[{}]]}',
        b'{"schema": "wheelproof.pins-journal/1", "transactions": 3}',
        b'{"schema": "x", "transactions": []}',
        b'{"schema": "wheelproof.pins-journal/1", "transactions": [[{"path": ' + b"9" * 5000 + b"}]]}",
        second(a_file(), schema="wheelproof.pins-journal/3"),
        second("text"),
        second([[]]),
        first(3),
    ],
)
def test_what_is_no_journal(data: bytes) -> None:
    with pytest.raises(FormatError):
        parse_journal(data, PLACE, ROOT)


def test_bounds() -> None:
    with pytest.raises(FormatError, match="has more than 33,554,432 bytes"):
        parse_journal(b" " * (journals.LARGEST_JOURNAL + 1), PLACE, ROOT)
    with pytest.raises(FormatError, match="has more than 1,000,000 values"):
        parse_journal(b"[" + b"[]," * 600_000 + b"]", PLACE, ROOT)


def test_a_bomb_is_not_inflated() -> None:
    """17 MB and 200 MB out of some kB: neither by one file nor by many."""
    size = 17 * 1024 * 1024
    large = {"original": base64.b64encode(zlib.compress(bytes(size))).decode(), "original_size": size}
    with pytest.raises(FormatError, match="too large"):
        parse_journal(second(a_file(**large)), PLACE, ROOT)

    size = 10 * 1024 * 1024
    many = base64.b64encode(zlib.compress(bytes(size))).decode()
    facts = {"original": many, "original_size": size, "edits": [], "rewritten": digest(bytes(size))}
    with pytest.raises(FormatError, match="too large"):
        parse_journal(second(*(a_file(f"{number}.txt", **facts) for number in range(20))), PLACE, ROOT)


# --- the file


@pytest.fixture
def file(tmp_path: Path) -> Any:
    """A journal's file in an empty folder."""
    with open_folder(tmp_path) as folder:
        yield JournalFile(folder, "journal")


def a_journal(root: Path, original: bytes = ORIGINAL) -> Journal:
    record = Record("r.txt", original, (Edit(0, len(original)),), digest(b""), temporary_for("r.txt"))
    return Journal(root, ((record,),))


def test_written_and_read(file: JournalFile) -> None:
    journal = a_journal(ROOT)
    file.write(journal)

    assert file.read(ROOT) == journal
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in file.path.parent.iterdir()] == ["journal"]

    file.write(Journal(ROOT))
    assert file.read(ROOT) is None


def test_names_of_any_characters(file: JournalFile) -> None:
    name = os.fsdecode(b"\xff\n requirements.txt")
    record = Record(name, b"x", (Edit(0, 1),), digest(b""), temporary_for(name))
    file.write(Journal(ROOT, ((record,),)))

    assert file.read(ROOT) == Journal(ROOT, ((record,),))
    assert len(os.fsencode(temporary_for("\U0001f525" * 63))) <= 255


def test_what_could_not_be_read_again_is_not_written(file: JournalFile) -> None:
    file.write(a_journal(ROOT))
    before = file.path.read_bytes()
    large = os.urandom(13 * 1024 * 1024)
    with pytest.raises(FormatError, match="would become too large; nothing was changed"):
        file.write(Journal(ROOT, a_journal(ROOT, large).transactions * 3))
    with pytest.raises(FormatError, match="would become too large; nothing was changed"):
        file.write(Journal(ROOT, a_journal(ROOT, bytes(13 * 1024 * 1024)).transactions * 10))

    assert file.path.read_bytes() == before
    assert len(list(file.path.parent.iterdir())) == 1


def as_pipe(path: Path) -> None:
    os.mkfifo(path)


def as_link(path: Path) -> None:
    elsewhere = path.parent / "elsewhere"
    elsewhere.write_bytes(second(a_file()))
    elsewhere.chmod(0o600)
    path.symlink_to(elsewhere)


def as_loop(path: Path) -> None:
    path.symlink_to(path.name)


def as_endless_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def as_folder(path: Path) -> None:
    path.mkdir()


def writable_by_others(path: Path) -> None:
    path.write_bytes(second(a_file()))
    path.chmod(0o602)


def writable_by_its_group(path: Path) -> None:
    path.write_bytes(second(a_file()))
    path.chmod(0o660)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (as_pipe, "is not a regular file"),
        (as_link, "is a link"),
        (as_loop, "is a link"),
        (as_endless_device, "is a link"),
        (as_folder, "is not a regular file"),
        (writable_by_others, "other users may write"),
        (writable_by_its_group, "other users may write"),
    ],
)
def test_a_file_that_is_not_trusted(make: Any, message: str, file: JournalFile) -> None:
    make(file.path)

    with pytest.raises(SourceError, match=message):
        file.read(ROOT)


def test_a_journal_of_another_user(file: JournalFile, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write(a_journal(ROOT))
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)

    with pytest.raises(SourceError, match=r"journal belongs to .*: it is not trusted"):
        file.read(ROOT)
    with pytest.raises(SourceError, match=r"journal belongs to .*: it is not trusted"):  # not even our own
        file.write(a_journal(ROOT))
    assert len(list(file.path.parent.iterdir())) == 1


def test_a_link_is_not_written_through(file: JournalFile, wheelproof: Wheelproof) -> None:
    """`pins rewrite --journal FILE` with a FILE that a repository made, to lead elsewhere."""
    victim = file.path.parent / "victim"
    Path("requirements.txt").write_bytes(ORIGINAL)
    Path("journal").symlink_to(victim)
    run = wheelproof("pins", "rewrite", "--journal", "journal")

    assert (run.status, victim.exists()) == (3, False)
    assert "journal is a link" in run.err
    assert Path("requirements.txt").read_bytes() == ORIGINAL
