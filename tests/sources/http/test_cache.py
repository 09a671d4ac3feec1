"""The byte cache: its entries, its removals, and that nothing makes it raise."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from wheel_checks.sources.http import cache_database
from wheel_checks.sources.http.cache import ByteCache, CachedPage, FileIdentity, default_cache_path

URL = "https://example.org/demo.whl"
STATE = FileIdentity(10_000, '"one"', "Fri, 20 Nov 2026 09:00:00 GMT")
DATA = bytes(range(250)) * 40


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "bytes.sqlite3"


def test_any_part_of_what_stored_ranges_cover_is_found(path: Path) -> None:
    cache = ByteCache(path)
    cache.store(URL, "", STATE, 100, DATA[100:300])
    cache.store(URL, "", STATE, 250, DATA[250:500])
    cache.store(URL, "", STATE, 600, DATA[600:700])
    cache.close()

    cache = ByteCache(path)
    assert cache.read(URL, "", STATE, 100, 200) == DATA[100:300]
    assert cache.read(URL, "", STATE, 150, 7) == DATA[150:157]
    assert cache.read(URL, "", STATE, 150, 350) == DATA[150:500]
    assert cache.read(URL, "", STATE, 99, 2) is None
    assert cache.read(URL, "", STATE, 450, 200) is None
    assert cache.read(URL, "", STATE, 690, 11) is None
    cache.close()


def test_states_of_a_file_are_kept_apart(path: Path) -> None:
    cache = ByteCache(path)
    cache.store(URL, "", STATE, 0, b"old")
    changed = FileIdentity(10_000, '"two"', STATE.last_modified)
    assert cache.read(URL, "", changed, 0, 3) is None
    cache.remember(URL, "", STATE)
    cache.remember(URL, "", changed)
    assert cache.identity(URL) == changed
    assert cache.identity(URL, "sha256=ab") is None
    cache.close()


def test_a_hash_names_the_content_whatever_the_server_calls_it(path: Path) -> None:
    cache = ByteCache(path)
    cache.store(URL, "sha256=ab", STATE, 0, b"abc")
    assert cache.read(URL, "sha256=ab", FileIdentity(10_000, '"another"'), 0, 3) == b"abc"
    assert cache.read(URL, "sha256=cd", STATE, 0, 3) is None
    cache.close()


def test_pages_are_kept_by_url_and_accept_header(path: Path) -> None:
    cache = ByteCache(path)
    page = CachedPage(b"<a>", "text/html", "https://me:secret@example.org/simple/x/", '"e"', "date", 5.0, 2.0)
    cache.store_page("https://me:secret@example.org/simple/x", "text/html", page)
    kept = cache.page("https://example.org/simple/x", "text/html")
    assert kept is not None
    assert kept.final_url == "https://example.org/simple/x/"
    assert (kept.body, kept.etag, kept.fresh_until, kept.fetched) == (b"<a>", '"e"', 5.0, 2.0)
    assert cache.page("https://example.org/simple/x", "application/json") is None
    cache.close()


def test_no_credentials_reach_the_disk(path: Path) -> None:
    cache = ByteCache(path)
    url = "https://me:s3cret@example.org/demo.whl?sig=s3cret"
    cache.remember(url, "", STATE)
    cache.store(url, "", STATE, 0, b"abc")
    cache.store_page(url, "", CachedPage(b"x", "", url))
    cache.close()
    files = list(path.parent.iterdir())
    assert path in files
    assert not any(b"s3cret" in file.read_bytes() for file in files)
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("name", ["key", "jwt", "pwd", "private_key", "X-Amz-Signature", "anything"])
def test_no_value_of_a_query_reaches_the_disk(path: Path, name: str) -> None:
    cache = ByteCache(path)
    url = f"https://example.org/demo.whl?{name}=s3cret"
    cache.remember(url, "", STATE)
    cache.store(url, "", STATE, 0, b"abc")
    cache.store_page(url, "", CachedPage(b"x", "", url))
    assert cache.read(url, "", STATE, 0, 3) == b"abc"
    cache.close()
    assert not any(b"s3cret" in file.read_bytes() for file in path.parent.iterdir())


def test_two_queries_are_two_files(path: Path) -> None:
    cache = ByteCache(path)
    signed = "https://example.org/get?file={}&X-Amz-Signature={}".format
    cache.remember(signed("one", "a"), "", STATE)
    cache.store(signed("one", "a"), "", STATE, 0, b"one")
    assert cache.identity(signed("two", "a")) is None
    assert cache.read(signed("two", "a"), "", STATE, 0, 3) is None
    assert cache.read(signed("one", "b"), "", STATE, 0, 3) == b"one"  # another listing of the same file
    cache.close()


def test_the_least_recently_used_is_thrown_out(path: Path) -> None:
    cache = ByteCache(path, max_bytes=10_000)
    for number in range(9):
        cache.store(URL, "", STATE, number * 1000, DATA[:1000])
    assert cache.read(URL, "", STATE, 0, 1000) is not None
    cache.close()  # writes down that the first was used
    cache = ByteCache(path, max_bytes=10_000)
    for number in range(9, 13):
        cache.store(URL, "", STATE, number * 1000, DATA[:1000])
    held = [number for number in range(13) if cache.read(URL, "", STATE, number * 1000, 1000)]
    cache.close()
    assert held[0] == 0
    assert held[-4:] == [9, 10, 11, 12]
    assert 8 <= len(held) <= 10


def test_ranges_go_before_the_facts_that_were_read_of_them(path: Path) -> None:
    cache = ByteCache(path, max_bytes=10_000)
    cache.store_fact("file", "elfs", DATA[:1000])
    for number in range(20):
        cache.store(URL, "", STATE, number * 1000, DATA[:1000])
    assert cache.fact("file", "elfs") == DATA[:1000]
    cache.close()


def test_what_would_fill_the_cache_is_not_stored(path: Path) -> None:
    cache = ByteCache(path, max_bytes=10_000)
    cache.store(URL, "", STATE, 0, DATA[:5000])
    assert cache.read(URL, "", STATE, 0, 1) is None
    cache.close()


def make_foreign(path: Path) -> None:
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE diary (entry TEXT)")
    connection.close()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(b"not a database" * 1000),
        lambda path: path.write_bytes(path.read_bytes()[:100] + b"\xff" * 5000),
        lambda path: os.truncate(path, 4000),
        make_foreign,
    ],
    ids=["text", "overwritten", "cut", "foreign"],
)
def test_a_spoilt_cache_is_made_anew_with_a_warning(
    path: Path, spoil: Callable[[Path], object], caplog: pytest.LogCaptureFixture
) -> None:
    cache = ByteCache(path)
    cache.store(URL, "", STATE, 0, b"abc")
    cache.close()
    spoil(path)

    cache = ByteCache(path)
    cache.read(URL, "", STATE, 0, 3)
    cache.store(URL, "", STATE, 0, b"xyz")
    assert cache.read(URL, "", STATE, 0, 3) == b"xyz"
    cache.close()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "recreated" in caplog.text


def test_a_flipped_bit_is_a_miss(path: Path) -> None:
    cache = ByteCache(path)
    cache.store(URL, "", STATE, 0, b"abcdefgh" * 10)
    cache.store_page(URL, "", CachedPage(b"<a>" * 10, "text/html", URL))
    cache.close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE piece SET data = CAST(replace(data, 'd', 'D') AS BLOB)")
    connection.execute("UPDATE page SET data = replace(data, 'a', 'b')")
    connection.commit()
    connection.close()
    cache = ByteCache(path)
    assert cache.read(URL, "", STATE, 0, 80) is None
    assert cache.page(URL, "") is None
    cache.close()


def test_a_folder_that_cannot_be_made_leaves_a_cache_that_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = ByteCache(tmp_path / "file" / "bytes.sqlite3")
    cache.store(URL, "", STATE, 0, b"abc")
    cache.remember(URL, "", STATE)
    assert cache.read(URL, "", STATE, 0, 3) is None
    assert cache.identity(URL) is None
    cache.close()


def test_threads_share_a_cache(path: Path) -> None:
    cache = ByteCache(path)
    wrong: list[int] = []

    def work(number: int) -> None:
        for step in range(10):
            offset = number * 1000 + step * 10
            cache.store(URL, "", STATE, offset, DATA[offset : offset + 10])
            if cache.read(URL, "", STATE, offset, 10) != DATA[offset : offset + 10]:
                wrong.append(offset)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cache.close()
    assert wrong == []


WRITER = """
import sys
from pathlib import Path
from wheel_checks.sources.http import cache_database
from wheel_checks.sources.http.cache import ByteCache, FileIdentity
cache_database._LOCK_TIMEOUT = 600.0  # a busy machine may keep a lock for long
number = int(sys.argv[2])
cache = ByteCache(Path(sys.argv[1]))
for step in range(20):
    cache.store("https://example.org/x", "", FileIdentity(9), number * 100 + step, bytes([number]))
cache.close()
"""


@pytest.mark.parametrize("spoilt", [False, True])
def test_processes_share_a_cache_and_its_making(path: Path, spoilt: bool) -> None:
    if spoilt:
        path.parent.mkdir()
        path.write_bytes(b"not a database" * 1000)
    command = [sys.executable, "-c", WRITER, str(path)]
    writers = [subprocess.Popen([*command, str(number)], stderr=subprocess.PIPE) for number in range(3)]
    messages = [writer.communicate()[1] for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    cache = ByteCache(path)
    for number in range(3):
        assert cache.read("https://example.org/x", "", FileIdentity(9), number * 100, 20) == bytes([number]) * 20
    cache.close()
    assert b"".join(messages).count(b"recreated") == spoilt


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that waits for other processes a tenth of a second."""
    monkeypatch.setattr(cache_database, "_LOCK_TIMEOUT", 0.1)


def use(cache: ByteCache) -> None:
    """Each thing that a run does with its cache, many times over."""
    for number in range(50):
        cache.store(URL, "", STATE, number, b"abc")
        cache.remember(URL, "", STATE)
        assert cache.identity(URL) is None
        assert cache.read(URL, "", STATE, 0, 3) is None
        cache.store_page(URL, "", CachedPage(b"x", "", URL))
        assert cache.page(URL, "") is None


def messages_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    assert {record.levelname for record in caplog.records} <= {"WARNING"}
    return [record.getMessage() for record in caplog.records]


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("opened", [False, True], ids=["before it is opened", "afterwards"])
def test_a_locked_cache_is_waited_for_once(
    opened: bool, path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with contextlib.closing(ByteCache(path)) as made:
        made.store("https://example.org/other", "", STATE, 0, b"abc")
    slept: list[float] = []
    sleep = time.sleep

    def note(seconds: float) -> None:
        slept.append(seconds)
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", note)
    cache = ByteCache(path)
    if opened:
        cache.identity(URL)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE" if opened else "PRAGMA locking_mode=EXCLUSIVE")
        if not opened:
            other.execute("BEGIN EXCLUSIVE")
        use(cache)
        assert cache.read("https://example.org/other", "", STATE, 0, 3) == (b"abc" if opened else None)
    cache.store(URL, "", STATE, 0, b"abc")  # the lock is free again
    assert cache.read(URL, "", STATE, 0, 3) == b"abc"
    cache.close()
    assert messages_of(caplog) == []
    assert 1 <= len(slept) <= 11  # of 300 calls


@pytest.mark.usefixtures("hasty")
def test_a_cache_that_is_locked_while_it_is_made_is_waited_for_once(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.parent.mkdir()
    with Path(f"{path}.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        cache = ByteCache(path)
        use(cache)
        cache.close()
    assert messages_of(caplog) == [f"the cache {path} is not used: other processes hold its lock"]


def test_a_lock_that_is_given_back_is_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_database, "_LOCK_TIMEOUT", 600.0)
    cache = ByteCache(path)
    cache.store(URL, "", STATE, 0, b"abc")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        sleep = time.sleep

        def give_back(seconds: float) -> None:
            if other.in_transaction:
                other.execute("COMMIT")
            sleep(seconds)

        monkeypatch.setattr(time, "sleep", give_back)
        cache.store(URL, "", STATE, 3, b"def")
    assert cache.read(URL, "", STATE, 0, 6) == b"abcdef"
    cache.close()


def test_a_cache_of_another_user_is_not_used(
    path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.parent.mkdir()
    poisoned = ByteCache(path)
    poisoned.store(URL, "", STATE, 0, b"poison")
    poisoned.close()
    held = path.read_bytes()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    if path.parent.stat().st_uid == 0:  # root may do everything anyway, so root's files are no other user's
        os.chown(path.parent, 54321, -1)
    cache = ByteCache(path)
    use(cache)
    cache.close()
    assert path.read_bytes() == held
    (message,) = messages_of(caplog)
    assert re.fullmatch(rf"the cache {path} is not used: {path.parent} belongs to another user \(uid \d+\)", message)


@pytest.mark.parametrize(("mode", "used"), [(0o700, True), (0o755, True), (0o777, False), (0o1777, False)])
def test_a_folder_that_others_may_write_to_is_not_used(
    path: Path, mode: int, used: bool, caplog: pytest.LogCaptureFixture
) -> None:
    path.parent.mkdir()
    path.parent.chmod(mode)
    cache = ByteCache(path)
    cache.store(URL, "", STATE, 0, b"abc")
    assert (cache.read(URL, "", STATE, 0, 3) is not None) == used
    cache.close()
    assert messages_of(caplog) == (
        [] if used else [f"the cache {path} is not used: other users may write to {path.parent} (mode {mode:o})"]
    )


@pytest.mark.parametrize(("own", "used"), [(True, True), (False, False)])
def test_a_group_may_write_when_it_is_the_users_own(
    path: Path, own: bool, used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.parent.mkdir()
    path.parent.chmod(0o775)
    group = path.parent.stat().st_gid
    monkeypatch.setattr(os, "getegid", lambda: group if own else group + 1)
    cache = ByteCache(path)
    cache.store(URL, "", STATE, 0, b"abc")
    assert (cache.read(URL, "", STATE, 0, 3) is not None) == used
    cache.close()


def test_under_sudo_the_cache_of_the_user_is_used(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.parent.mkdir()
    owner = path.parent.stat().st_uid or 54321
    os.chown(path.parent, owner, -1)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("SUDO_UID", str(owner))
    cache = ByteCache(path)
    cache.store(URL, "", STATE, 0, b"abc")
    assert cache.read(URL, "", STATE, 0, 3) == b"abc"
    cache.close()


def test_a_full_disk_costs_no_time_and_no_crash(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = ByteCache(path)
    cache.store(URL, "", STATE, 0, b"abc")
    cache._database.query("PRAGMA max_page_count = 1")  # sqlite's own disk full: no page can be added
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it waits"))
    for number in range(100):
        cache.store(URL, "", STATE, 1000 * number, DATA[:5000])
    assert cache.read(URL, "", STATE, 0, 3) == b"abc"
    cache.close()


def test_the_default_place_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/xdg")
    assert default_cache_path().parent == Path("/var/xdg/wheelproof")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert default_cache_path().parent == Path("/home/someone/.cache/wheelproof")
    monkeypatch.setenv("WHEELPROOF_CACHE_DIR", "/var/mine")
    assert default_cache_path().parent == Path("/var/mine")
