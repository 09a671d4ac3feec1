"""Files read by ranges, from servers that behave and servers that do not."""

from __future__ import annotations

import hashlib
import tempfile
import threading
from pathlib import Path

import pytest

from tests.sources.conftest import MakeClient
from tests.support.patience import PATIENCE
from tests.support.range_server import (
    Answer,
    Behaviour,
    RangeServer,
    Request,
    Resource,
    change_to,
    content_range,
    drop_after,
    endless,
    fail,
    no_ranges,
    no_suffix_ranges,
    redirect,
    truncate,
)
from wheel_checks.errors import (
    AuthenticationError,
    ChangedFileError,
    NotFoundError,
    OfflineError,
    RangesUnsupportedError,
    SourceError,
)
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.http.cache import ByteCache
from wheel_checks.sources.http.file import HttpFile
from wheel_checks.sources.http.ranges import join_ranges, parse_content_range

BODY = bytes(range(251)) * 2000  # 502,000 bytes, no two near ranges alike
SIZE = len(BODY)
HASH = "sha256=" + hashlib.sha256(BODY).hexdigest()


def serve(*behave: Behaviour, body: bytes = BODY) -> RangeServer:
    return RangeServer({"/demo.whl": Resource(body, behave=behave)})


def test_the_tail_and_the_size_come_with_one_suffix_range(client: HttpClient) -> None:
    with serve() as server:
        file = client.open(server.url("/demo.whl"))
        assert file.read_tail(1000) == (SIZE, BODY[-1000:])
        assert file.read(SIZE - 500, 100) == BODY[-500:-400]
        assert file.remote
        assert file.location == server.url("/demo.whl")
    assert [request.range for request in server.requests] == ["bytes=-1000"]
    assert server.requests[0].headers["accept-encoding"] == "identity"
    assert server.requests[0].headers["user-agent"].startswith("wheelproof")
    assert (file.cost.bytes_read, file.cost.requests, file.cost.bytes_cached) == (1000, 1, 0)
    assert client.cost == file.cost


def test_near_ranges_are_joined_and_far_ones_fetched_apart(client: HttpClient) -> None:
    with serve() as server:
        file = client.open(server.url("/demo.whl"))
        file.read_tail(100)
        wanted = [(300_000, 50), (10, 100), (5_000, 10), (0, 5), (300_010, 5), (7, 0)]
        assert file.read_many(wanted) == [BODY[offset : offset + length] for offset, length in wanted]
    assert sorted(request.range for request in server.requests[1:]) == ["bytes=0-5009", "bytes=300000-300049"]
    assert {request.headers["if-range"] for request in server.requests[1:]} == {server.requests[1].headers["if-range"]}
    assert file.cost.bytes_read == 100 + 5010 + 50
    assert file.cost.requests == 3


@pytest.mark.parametrize(
    ("ranges", "joined"),
    [
        ([], []),
        ([(0, 10), (10 + 16383, 5)], [(0, 10 + 16383 + 5)]),
        ([(0, 10), (10 + 16384, 5)], [(0, 10), (10 + 16384, 5)]),
        ([(50, 5), (0, 100), (90, 30)], [(0, 120)]),
        ([(0, 8 << 20), (8 << 20, 1)], [(0, 8 << 20), (8 << 20, 1)]),
        ([(0, 9 << 20), (5, 1)], [(0, 9 << 20)]),
    ],
)
def test_ranges_are_joined_over_gaps_under_16_kib(ranges: list[tuple[int, int]], joined: list[tuple[int, int]]) -> None:
    assert join_ranges(ranges) == joined


def test_ranges_are_fetched_at_once(make_client: MakeClient) -> None:
    together = threading.Barrier(4)  # broken, and so no answer, unless four requests are there at the same time

    def wait_for_the_others(request: Request, answer: Answer) -> Answer:
        together.wait(PATIENCE)
        return answer

    client = make_client(max_connections=4)
    with serve() as server:
        file = client.open(server.url("/demo.whl"))
        file.read_tail(100)
        server.behave = (wait_for_the_others,)
        assert file.read_many([(k * 100_000, 1) for k in range(4)]) == [BODY[k * 100_000 :][:1] for k in range(4)]


def test_no_more_requests_than_allowed_run_at_once(make_client: MakeClient) -> None:
    active: list[Request] = []
    peak: list[int] = []

    def linger(request: Request, answer: Answer) -> Answer:
        active.append(request)
        peak.append(len(active))
        server.pause(0.01)  # so that requests that may overlap do
        active.remove(request)
        return answer

    client = make_client(max_connections=2)
    with serve(linger) as server:
        files = [client.open(server.url("/demo.whl")) for _ in range(6)]
        threads = [threading.Thread(target=file.read_tail, args=(10,)) for file in files]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert max(peak) <= 2


def test_a_file_shorter_than_the_tail_comes_whole(client: HttpClient) -> None:
    for behave in ([], [no_ranges()], [no_suffix_ranges()]):
        with serve(*behave, body=b"tiny") as server:
            file = client.open(server.url("/demo.whl"))
            assert file.read_tail(65536) == (4, b"tiny")
            assert file.read(1, 2) == b"in"


def test_an_empty_file_has_an_empty_tail(client: HttpClient) -> None:
    for behave in ([], [no_ranges()], [no_suffix_ranges(501)]):
        with serve(*behave, body=b"") as server:
            assert client.open(server.url("/demo.whl")).read_tail(65536) == (0, b"")


@pytest.mark.parametrize("status", [200, 400, 416, 501])
def test_servers_without_suffix_ranges_are_read_by_plain_ranges(client: HttpClient, status: int) -> None:
    with serve(no_suffix_ranges(status)) as server:
        file = client.open(server.url("/demo.whl"))
        assert file.read_tail(1000) == (SIZE, BODY[-1000:])
    assert [request.range for request in server.requests] == ["bytes=-1000", "bytes=0-0", "bytes=501000-501999"]


@pytest.mark.parametrize(
    "text", ["", "bytes 0-9/502000", "bytes 501900-501999/*", "bytes 501999-501900/502000", "octets", "bytes 1-2/-3"]
)
def test_a_wrong_content_range_is_named(client: HttpClient, text: str) -> None:
    with serve(content_range(text)) as server, pytest.raises(SourceError, match="wrong Content-Range") as caught:
        client.open(server.url("/demo.whl")).read_tail(100)
    assert repr(text) in str(caught.value)
    assert "expected" in str(caught.value)


def test_another_range_than_the_one_asked_for_is_refused(client: HttpClient) -> None:
    with serve(content_range(f"bytes 0-9/{SIZE}", after=1)) as server:
        file = client.open(server.url("/demo.whl"))
        file.read_tail(100)
        with pytest.raises(SourceError, match=r"expected bytes 10-19/502000"):
            file.read(10, 10)


def test_a_range_outside_the_file_costs_no_request(client: HttpClient) -> None:
    with serve() as server:
        file = client.open(server.url("/demo.whl"))
        file.read_tail(100)
        with pytest.raises(SourceError, match="has 502000 bytes and none at 501999 to 502001"):
            file.read(SIZE - 1, 2)
        with pytest.raises(SourceError, match="has 502000 bytes"):
            file.stream(SIZE, 1)
    assert len(server.requests) == 1


def test_a_server_without_ranges_is_reported_and_the_body_not_read(client: HttpClient) -> None:
    refused = pytest.raises(RangesUnsupportedError, match=r"sends the whole file.*--allow-download")
    with serve(no_ranges()) as server, refused:
        client.open(server.url("/demo.whl")).read_tail(1000)
    assert client.cost.bytes_read == 0


def test_an_endless_answer_to_a_range_is_dropped(client: HttpClient) -> None:
    with serve(endless()) as server, pytest.raises(RangesUnsupportedError):
        client.open(server.url("/demo.whl")).read_tail(1000)


def test_a_download_goes_into_a_temporary_file_that_leaves_nothing(
    make_client: MakeClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    arrived: list[int] = []
    client = make_client(allow_download=True, on_bytes=arrived.append)
    with serve(no_ranges(), drop_after(1000, times=3)) as server:
        file = client.open(server.url("/demo.whl"), expected_hash=HASH, size=SIZE)
        assert file.read_tail(1000) == (SIZE, BODY[-1000:])
        assert file.read_many([(0, 5), (9, 5)]) == [BODY[:5], BODY[9:14]]
        assert b"".join(file.stream(10, 400_000)) == BODY[10:400_010]
        assert file.cost.bytes_read == sum(arrived) == SIZE + 1000
        assert list(tmp_path.glob("wheelproof-*")) == []
        file.close()


def test_a_download_that_is_not_what_the_index_lists_is_refused(make_client: MakeClient) -> None:
    client = make_client(allow_download=True)
    with serve(no_ranges()) as server:
        url = server.url("/demo.whl")
        with pytest.raises(ChangedFileError, match="does not match the hash"):
            client.open(url + "#sha256=" + "0" * 64).read_tail(10)
        with pytest.raises(ChangedFileError, match=r"expected sha256=0000"):
            client.open(url, expected_hash="0" * 64).read_tail(10)
        with pytest.raises(ChangedFileError, match="has 502000 bytes; expected 1000, as listed"):
            client.open(url, size=1000).read_tail(10)
    with (
        serve(endless()) as server,
        pytest.raises(SourceError, match="sends more than the 1048576 bytes that the index"),
    ):
        client.open(server.url("/demo.whl"), size=1 << 20).read_tail(10)


@pytest.mark.parametrize(
    "changed",
    [
        change_to(b"another" * 100_000),
        change_to(BODY[::-1]),
        change_to(BODY[::-1], etag='W/"weak"'),
        change_to(b"short"),
    ],
    ids=["length", "etag", "weak etag", "shrunk below the range"],
)
def test_a_file_that_changes_between_two_requests_is_noticed(client: HttpClient, changed: Behaviour) -> None:
    with serve(changed) as server:
        file = client.open(server.url("/demo.whl"))
        file.read_tail(100)
        with pytest.raises(ChangedFileError, match="changed while it was read"):
            file.read(1000, 10)
        with pytest.raises(ChangedFileError, match="changed while it was read"):
            list(file.stream(1000, 10))


def test_last_modified_counts_where_there_is_no_etag(client: HttpClient) -> None:
    dates = iter(["Fri, 20 Nov 2026 09:00:00 GMT", "Fri, 20 Nov 2026 09:00:00 GMT", "Fri, 20 Nov 2026 09:00:01 GMT"])

    def dated(request: Request, answer: Answer) -> Answer:
        return Resource(BODY, etag="", last_modified=next(dates)).answer(request)

    with serve(dated) as server:
        file = client.open(server.url("/demo.whl"))
        file.read_tail(100)
        assert file.read(0, 10) == BODY[:10]
        with pytest.raises(ChangedFileError):
            file.read(1000, 10)


def test_a_size_other_than_the_listed_one_is_reported(client: HttpClient) -> None:
    with serve() as server, pytest.raises(ChangedFileError, match="has 502000 bytes; expected 5, as listed"):
        client.open(server.url("/demo.whl"), size=5).read_tail(10)


def test_broken_and_unavailable_answers_are_asked_for_again(client: HttpClient) -> None:
    for behave in (
        drop_after(50, times=2),
        drop_after(-1, times=2),
        truncate(50, times=2),
        fail(503, times=2, retry_after="0"),
        fail(429, times=3),
        fail(500, times=1),
    ):
        with serve(behave) as server:
            assert client.open(server.url("/demo.whl")).read_tail(100) == (SIZE, BODY[-100:])


def test_what_stays_broken_is_reported_after_all_tries(client: HttpClient) -> None:
    with serve(truncate(50)) as server:
        with pytest.raises(SourceError, match=r"sent 50 bytes of a range and then nothing; expected 100 bytes"):
            client.open(server.url("/demo.whl")).read_tail(100)
        assert len(server.requests) == 4
    assert client.cost.bytes_read == 200


@pytest.mark.parametrize(
    ("status", "kind"),
    [(404, NotFoundError), (410, NotFoundError), (401, AuthenticationError), (403, AuthenticationError)],
)
def test_final_statuses_have_their_errors_and_one_request(
    client: HttpClient, status: int, kind: type[SourceError]
) -> None:
    with serve(fail(status)) as server:
        with pytest.raises(kind, match=f"HTTP {status}"):
            client.open(server.url("/demo.whl")).read_tail(100)
        assert len(server.requests) == 1


def test_redirects_are_followed(client: HttpClient) -> None:
    with RangeServer({"/old": Resource(behave=[redirect("/demo.whl", status=307)]), "/demo.whl": BODY}) as server:
        assert client.open(server.url("/old")).read_tail(10) == (SIZE, BODY[-10:])
    assert [request.range for request in server.requests] == ["bytes=-10", "bytes=-10"]


def test_a_stream_resumes_where_the_connection_broke(make_client: MakeClient, tmp_path: Path) -> None:
    cache = ByteCache(tmp_path / "cache")
    with serve(drop_after(100_000, after=1, times=2)) as server:
        file = make_client(cache).open(server.url("/demo.whl"))
        file.read_tail(10)
        assert b"".join(file.stream(1000, 400_000)) == BODY[1000:401_000]
        requests = [request.range for request in server.requests]
        again = make_client(cache).open(server.url("/demo.whl"))
        again.read_tail(10)
        again.read(1000, 10)
        assert again.cost.bytes_cached == 10  # the tail; streamed bytes are not cached
    cache.close()
    assert requests[1:] == [
        "bytes=1000-400999",
        "bytes=101000-400999",
        "bytes=201000-400999",
    ]
    assert file.cost.bytes_read == 10 + 400_000


def test_a_stream_that_makes_no_progress_ends(client: HttpClient) -> None:
    with serve(drop_after(10, after=1)) as server:
        file = client.open(server.url("/demo.whl"))
        file.read_tail(10)
        with pytest.raises(SourceError, match="connection"):
            list(file.stream(0, 1000))
        assert len(server.requests) == 5


def test_a_stream_that_is_left_early_costs_no_more_than_was_read(client: HttpClient) -> None:
    large = b"x" * (32 << 20)
    with serve(body=large) as server:
        file = client.open(server.url("/demo.whl"))
        file.read_tail(10)
        for chunk in file.stream(0, len(large)):
            assert 0 < len(chunk) <= 1 << 20
            break
        assert file.read(5, 5) == b"xxxxx"
    assert file.cost.bytes_read < 2 << 20


def test_a_stream_may_be_read_beside_other_ranges_over_one_connection(make_client: MakeClient) -> None:
    with serve() as server:
        file = make_client(max_connections=1).open(server.url("/demo.whl"))
        file.read_tail(10)
        received = bytearray()
        for chunk in file.stream(0, 300_000):
            received += chunk
            assert file.read(len(received), 5) == BODY[len(received) :][:5]
    assert bytes(received) == BODY[:300_000]


def test_a_known_hash_makes_a_warm_run_without_requests(make_client: MakeClient, tmp_path: Path) -> None:
    path = tmp_path / "cache"
    with serve() as server:
        for expected_requests in (2, 0):
            cache = ByteCache(path)
            file = make_client(cache).open(server.url("/demo.whl"), expected_hash=HASH, size=SIZE)
            assert file.read_tail(1000) == (SIZE, BODY[-1000:])
            assert file.read(50, 100) == BODY[50:150]
            assert file.cost.requests == expected_requests
            cache.close()
    assert file.cost.bytes_cached == 1100
    assert file.cost.bytes_read == 0


def test_without_a_hash_a_warm_run_asks_whether_the_file_changed(make_client: MakeClient, tmp_path: Path) -> None:
    cache = ByteCache(tmp_path / "cache")
    with serve(change_to(BODY[::-1], after=2)) as server:
        for body, cost in ((BODY, 1000), (BODY, 0), (BODY[::-1], 1000)):
            file = make_client(cache).open(server.url("/demo.whl"))
            assert file.read_tail(1000) == (SIZE, body[-1000:])
            assert (file.cost.requests, file.cost.bytes_read) == (1, cost)
    cache.close()


def test_a_file_without_hash_and_validators_is_never_taken_from_the_cache(
    make_client: MakeClient, tmp_path: Path
) -> None:
    cache = ByteCache(tmp_path / "cache")
    with RangeServer({"/demo.whl": Resource(BODY, etag="")}) as server:
        for _ in range(2):
            file = make_client(cache).open(server.url("/demo.whl"))
            file.read_tail(1000)
            file.read(0, 50)
            assert file.cost.bytes_read == 1050
    cache.close()


def test_offline_reads_what_is_stored_and_nothing_else(make_client: MakeClient, tmp_path: Path) -> None:
    cache = ByteCache(tmp_path / "cache")
    with serve() as server:
        url = server.url("/demo.whl")
        make_client(cache).open(url).read_tail(1000)
    offline = make_client(cache, offline=True)
    file = offline.open(url)
    assert file.read_tail(1000) == (SIZE, BODY[-1000:])
    with pytest.raises(OfflineError, match=r"demo\.whl is needed, but not in the cache"):
        file.read(0, 10)
    with pytest.raises(OfflineError):
        list(file.stream(0, 10))
    with pytest.raises(OfflineError):
        offline.open(url + ".other").read_tail(10)
    with pytest.raises(OfflineError):
        make_client(offline=True).open(url).read_tail(10)
    assert offline.cost.requests == 0
    cache.close()


def test_many_threads_share_one_client(make_client: MakeClient, tmp_path: Path) -> None:
    cache = ByteCache(tmp_path / "cache")
    client = make_client(cache)
    results: list[bool] = []
    with serve() as server:
        file = client.open(server.url("/demo.whl"))

        def work(number: int) -> None:
            own = client.open(server.url("/demo.whl"))
            for source in (file, own):
                size, _ = source.read_tail(100)
                offset = number * 20_000
                results.append(size == SIZE and source.read(offset, 999) == BODY[offset : offset + 999])

        threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    cache.close()
    assert results == [True] * 40


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("bytes 0-9/10", (0, 9, 10)),
        (" bytes 5-6/* ", (5, 6, None)),
        ("bytes */10", None),
        ("bytes 0-9", None),
        ("bytes 0-" + "9" * 50 + "/10", None),
        ("", None),
    ],
)
def test_content_range_headers(text: str, parsed: tuple[int, int, int | None] | None) -> None:
    assert parse_content_range(text) == parsed


def test_open_gives_a_http_file(client: HttpClient) -> None:
    assert isinstance(client.open("https://example.org/demo.whl"), HttpFile)
