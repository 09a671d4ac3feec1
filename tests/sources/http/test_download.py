"""Downloads have bounds, and leave no file, not even when the process is killed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.sources.conftest import MakeClient
from tests.support.patience import wait_until
from tests.support.range_server import Answer, RangeServer, Request, Resource, endless, no_ranges
from wheel_checks.errors import ChangedFileError, SourceError
from wheel_checks.sources.http import download

MEGABYTE = 1_000_000
BODY = bytes(range(256)) * 4096


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def free(size: int) -> object:
    """A ``shutil.disk_usage`` of a disk with ``size`` bytes free."""
    return lambda _: SimpleNamespace(free=size)


def test_a_server_that_never_ends_is_cut_off_at_the_limit(make_client: MakeClient) -> None:
    client = make_client(allow_download=True, max_download=MEGABYTE)
    too_large = pytest.raises(SourceError, match=r"sends more than 1\.0 MB without stating the size.*--max-download")
    with RangeServer({"/x": Resource(behave=[endless()])}) as server, too_large:
        client.open(server.url("/x")).read_tail(10)
    assert client.cost.bytes_read < MEGABYTE + (2 << 20)


def test_a_server_that_never_ends_is_cut_off_at_the_listed_size(make_client: MakeClient) -> None:
    client = make_client(allow_download=True)
    too_large = pytest.raises(ChangedFileError, match="sends more than the 1000 bytes that the index lists")
    with RangeServer({"/x": Resource(behave=[endless()])}) as server, too_large:
        client.open(server.url("/x"), size=1000).read_tail(10)
    assert client.cost.bytes_read < (2 << 20)


def test_an_answer_that_is_shorter_than_listed_is_refused(make_client: MakeClient) -> None:
    def short(request: Request, answer: Answer) -> Answer:
        return Answer(200, {}, iter([b"short"]))

    with (
        RangeServer({"/x": Resource(behave=[short])}) as server,
        pytest.raises(ChangedFileError, match="has 5 bytes; expected 1000, as listed"),
    ):
        make_client(allow_download=True).open(server.url("/x"), size=1000).read_tail(10)


@pytest.mark.parametrize("listed", [None, len(BODY)])
def test_a_file_that_says_that_it_is_too_large_is_not_fetched(listed: int | None, make_client: MakeClient) -> None:
    client = make_client(allow_download=True, max_download=MEGABYTE)
    too_large = pytest.raises(SourceError, match=r"has 1\.0 MB; expected at most 1\.0 MB to download \(--max-download")
    with RangeServer({"/x": Resource(BODY, behave=[no_ranges()])}) as server, too_large:
        client.open(server.url("/x"), size=listed).read_tail(10)
    assert client.cost.bytes_read == 0


def test_a_file_of_the_largest_size_is_fetched(make_client: MakeClient) -> None:
    client = make_client(allow_download=True, max_download=len(BODY))
    with RangeServer({"/x": Resource(BODY, behave=[no_ranges()])}) as server:
        file = client.open(server.url("/x"))
        assert file.read_tail(10) == (len(BODY), BODY[-10:])
        file.close()


@pytest.mark.parametrize("listed", [None, len(BODY)])
def test_a_file_that_does_not_fit_on_the_disk_is_not_fetched(
    listed: int | None, make_client: MakeClient, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", free(len(BODY) + download._SPARE - 1))
    client = make_client(allow_download=True)
    full = pytest.raises(SourceError, match=r"cannot be stored in .* free; expected 1\.0 MB for the file.*\$TMPDIR")
    with RangeServer({"/x": Resource(BODY, behave=[no_ranges()])}) as server, full:
        client.open(server.url("/x"), size=listed).read_tail(10)
    assert client.cost.bytes_read == 0


def test_a_disk_that_fills_up_meanwhile_keeps_its_spare_room(
    make_client: MakeClient, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "_LOOK_EVERY", 1 << 20)
    left: Iterator[int] = iter([10 << 30, 10 << 30, 10 << 30])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=next(left, 0)))
    client = make_client(allow_download=True)
    with (
        RangeServer({"/x": Resource(behave=[endless()])}) as server,
        pytest.raises(SourceError, match="has 0 bytes free"),
    ):
        client.open(server.url("/x")).read_tail(10)
    assert client.cost.bytes_read < 8 << 20


def test_a_killed_run_leaves_no_file(folder: Path) -> None:
    program = (
        "import sys\n"
        "from wheel_checks.sources.client import HttpClient\n"
        "HttpClient(allow_download=True).open(sys.argv[1]).read_tail(10)\n"
    )
    with RangeServer({"/x": Resource(behave=[endless()])}) as server:
        environment = os.environ | {"TMPDIR": str(folder)}
        with subprocess.Popen([sys.executable, "-c", program, server.url("/x")], env=environment) as child:

            def spooled() -> bool:
                for file in Path(f"/proc/{child.pid}/fd").iterdir():
                    with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                        if file.readlink().is_relative_to(folder) and file.stat().st_size > MEGABYTE:
                            return True
                return False

            wait_until(spooled)
            assert list(folder.iterdir()) == []
            child.send_signal(signal.SIGKILL)
    assert list(folder.iterdir()) == []
