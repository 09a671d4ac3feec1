"""A wheel's bytes are read once: a second reading, by any command, requests no byte of the file."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.elf import AARCH64 as ELF_AARCH64
from tests.support.elf import Elf
from tests.support.environments import library
from tests.support.fatbin import fat_binary, section
from tests.support.range_server import RangeServer, Resource
from tests.support.wheel_facts import AARCH64, archive_of
from tests.support.wheels import WheelBuilder
from wheel_checks.errors import ChangedFileError, OfflineError
from wheel_checks.facts.archive.kept import kept_facts
from wheel_checks.facts.elf import reading as efforts
from wheel_checks.facts.gpu.targets import Product, parse_gpus
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.facts.wheel.reading import Request, read_wheel
from wheel_checks.model import Unavailable
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.http.cache import ByteCache

NOISE = random.Random(0).randbytes(160 << 10)
FAR_AWAY = Elf(needed=("libc.so.6",), needs={"libc.so.6": ("GLIBC_2.34",)}, machine=ELF_AARCH64, alignment=0x10000)
WHEEL = (
    WheelBuilder("demo", "1.0", "cp312-cp312-manylinux_2_28_aarch64")
    .add("demo/_C.cpython-312-aarch64-linux-gnu.so", library("", ("libcudart.so.13",)))
    .add("demo/libkernels.so", Elf(contents={".nv_fatbin": section(fat_binary("sm_90", "sm_100"))}).build().data)
    .add("demo/libfar.so", replace(FAR_AWAY, contents={".rodata": NOISE}).build().data + NOISE)
    .add("demo/version.py", "__version__ = '1.0'\n")
    .add("demo/ümlaut.txt", "text")
)
DATA = WHEEL.build()
SHA256 = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def server() -> Iterator[RangeServer]:
    with RangeServer({f"/{WHEEL.file_name}": DATA, "/copy.whl": DATA}) as server:
        yield server


class Reading:
    """Reads the wheel of a server, each time by its own client with the cache at ``path``."""

    def __init__(self, server: RangeServer, path: Path) -> None:
        self.server, self.path = server, path

    def read(
        self,
        depth: Depth,
        *,
        stated: str = SHA256,
        size: int | None = None,
        offline: bool = False,
        name: str = "",
        gpus: tuple[Product, ...] = (),
    ) -> WheelFacts:
        cache = ByteCache(self.path)
        with HttpClient(cache, offline=offline, retries=0) as client:
            url = self.server.url(f"/{name or WHEEL.file_name}")
            source = client.open(url, expected_hash=stated, size=size)
            request = Request(WHEEL.file_name, target=AARCH64, depth=depth, gpus=gpus)
            facts = read_wheel(source, request, kept_facts(source, cache))
        cache.close()
        return facts

    def asked(self) -> int:
        """The number of requests since the last call."""
        count = len(self.server.requests)
        self.server.requests.clear()
        return count


@pytest.fixture
def reading(server: RangeServer, tmp_path: Path) -> Reading:
    return Reading(server, tmp_path / "cache" / "cache.sqlite3")


def without_cost(facts: WheelFacts) -> WheelFacts:
    elfs = facts.elfs if isinstance(facts.elfs, Unavailable) else tuple(replace(e, bytes_read=0) for e in facts.elfs)
    return replace(facts, elfs=elfs, bytes_read=0, bytes_cached=0, requests=0, seconds=0.0)


@pytest.mark.parametrize("depth", list(Depth))
def test_a_second_look_asks_for_nothing_and_finds_the_same(reading: Reading, depth: Depth) -> None:
    first = reading.read(depth)
    assert reading.asked()

    second = reading.read(depth)
    assert reading.asked() == 0
    assert (second.bytes_read, second.bytes_cached) == (0, 0)
    assert without_cost(second) == without_cost(first)
    if not isinstance(second.elfs, Unavailable):  # other code distinguishes members by identity
        known = {id(member) for member in archive_of(second).members}
        assert all(id(elf.member) in known for elf in second.elfs)


@pytest.mark.parametrize("gpus", ["", "GB200"])
@pytest.mark.parametrize("depth", list(Depth))
def test_a_question_gets_the_same_facts_from_an_empty_and_a_full_cache(
    reading: Reading, depth: Depth, gpus: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(efforts, "FAR", efforts.Effort(32 << 10, 32 << 10, 32 << 10))
    wanted = parse_gpus(gpus) if gpus else ()
    alone = reading.read(depth, gpus=wanted)
    reading.path = reading.path.with_name("another.sqlite3")
    for other in reversed(Depth):
        reading.read(other, gpus=wanted if other is not depth else ())

    assert without_cost(reading.read(depth, gpus=wanted)) == without_cost(alone)
    if depth is Depth.LINKS and not isinstance(alone.elfs, Unavailable):
        assert not all(elf.complete for elf in alone.elfs)  # a deeper look reads more


def test_a_deeper_look_completes_what_is_known(reading: Reading) -> None:
    for depth in Depth:
        reading.read(depth)
    stepwise = reading.read(Depth.FULL)
    reading.path = reading.path.with_name("another.sqlite3")

    assert without_cost(stepwise) == without_cost(reading.read(Depth.FULL))


def test_facts_serve_offline_and_what_was_not_read_does_not(reading: Reading) -> None:
    linked = reading.read(Depth.LINKS)

    assert without_cost(reading.read(Depth.LINKS, offline=True)) == without_cost(linked)
    with pytest.raises(OfflineError):
        reading.read(Depth.FULL, offline=True)


def test_the_same_hash_at_another_address_is_another_file(reading: Reading) -> None:
    reading.read(Depth.QUICK)
    reading.asked()

    reading.read(Depth.QUICK, name="copy.whl")
    assert reading.asked()


def test_another_size_than_listed_is_noticed_although_the_file_is_known(reading: Reading) -> None:
    reading.read(Depth.QUICK, size=len(DATA))
    with pytest.raises(ChangedFileError):
        reading.read(Depth.QUICK, size=len(DATA) + 1)


def test_without_a_hash_the_strong_validator_names_the_bytes(reading: Reading, server: RangeServer) -> None:
    first = reading.read(Depth.LINKS, stated="")
    reading.asked()
    second = reading.read(Depth.LINKS, stated="")
    (request,) = server.requests
    assert request.headers["if-none-match"]
    assert without_cost(second) == without_cost(first)
    assert second.bytes_read == 0


@pytest.mark.parametrize("etag", ["", 'W/"weak"'], ids=["none", "weak"])
def test_without_a_strong_validator_nothing_is_kept(tmp_path: Path, etag: str) -> None:
    with RangeServer({f"/{WHEEL.file_name}": Resource(DATA, etag=etag)}) as server:
        reading = Reading(server, tmp_path / "cache" / "cache.sqlite3")
        first = reading.read(Depth.LINKS, stated="")
        second = reading.read(Depth.LINKS, stated="")
        assert second.bytes_read + second.bytes_cached > 0
        assert second.elfs == first.elfs


def test_the_hashes_of_other_bytes_than_stated_are_not_kept(reading: Reading) -> None:
    first = reading.read(Depth.FULL, stated="0" * 64)
    assert first.content_sha256 == SHA256
    reading.asked()

    assert reading.read(Depth.FULL, stated="0" * 64).content_sha256 == SHA256
    assert reading.asked()


def test_two_processes_at_once_read_the_same(reading: Reading, server: RangeServer) -> None:
    program = f"""
from pathlib import Path
from tests.facts.wheel.test_contents import Reading
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.sources.http import cache_database
cache_database._LOCK_TIMEOUT = 600.0  # a busy machine may keep a lock for long

class Server:
    requests = []
    def url(self, path):
        return {server.url()!r}.rstrip("/") + path

facts = Reading(Server(), Path({str(reading.path)!r})).read(Depth.FULL)
print(facts.archive, facts.record, facts.elfs, facts.gpu_code, facts.content_sha256)
"""
    command = [sys.executable, "-c", program]
    root = str(Path(__file__).parents[3])
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": root}
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=root) for _ in "ab"]
    answers = {process.communicate()[0] for process in started}
    assert [process.returncode for process in started] == [0, 0]
    assert len(answers) == 1
    reading.asked()
    reading.read(Depth.FULL)
    assert reading.asked() == 0


def test_a_full_disk_and_a_folder_that_cannot_be_written_cost_no_fact(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = without_cost(reading.read(Depth.FULL))
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it waits"))
    full = ByteCache(reading.path.with_name("full.sqlite3"))
    full.fact("file", "part")
    full._database.query("PRAGMA max_page_count = 1")  # sqlite's own disk full: no page can be added
    url = reading.server.url(f"/{WHEEL.file_name}")
    for cache in (full, ByteCache(Path(os.devnull) / "cache.sqlite3")):
        with HttpClient(cache, retries=0) as client:
            source = client.open(url, expected_hash=SHA256)
            request = Request(WHEEL.file_name, target=AARCH64, depth=Depth.FULL)
            assert without_cost(read_wheel(source, request, kept_facts(source, cache))) == wanted
        cache.close()
