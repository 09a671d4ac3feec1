"""A resolution is kept for ten minutes, by all that it follows from."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.range_server import RangeServer
from tests.support.simple_index import simple_index
from tests.support.wheel_facts import AARCH64, X86_64
from tests.support.wheels import WheelBuilder
from wheel_checks.errors import SourceError
from wheel_checks.sources.http.cache import ByteCache
from wheel_checks.sources.installers.config import IndexConfig
from wheel_checks.sources.uv.explanation import Demand, Explanation
from wheel_checks.sources.uv.keeping import REUSED, Keeping
from wheel_checks.sources.uv.resolver import Resolution, Unusable, resolve

RESOLUTION = Resolution((), (Unusable("demo", Explanation(("no wheel",), (Demand("", "demo==1"),), ("demo",))),))
PLACES = ("https://index.example.org/simple",)


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[ByteCache]:
    made = ByteCache(tmp_path / "cache" / "cache.sqlite3")
    yield made
    made.close()


class Resolver:
    """Counts its calls."""

    def __init__(self, answer: Resolution = RESOLUTION) -> None:
        self.answer, self.times = answer, 0

    def __call__(self) -> Resolution:
        self.times += 1
        return self.answer


def test_it_is_made_once(cache: ByteCache) -> None:
    resolver = Resolver()
    answers = [Keeping(cache).remember(Resolution, ["demo"], PLACES, resolver) for _ in range(2)]
    assert answers == [RESOLUTION] * 2
    assert resolver.times == 1


@pytest.mark.parametrize(
    ("words", "places"), [(["other"], PLACES), (["demo"], ("file:///nowhere",))], ids=["words", "a place that is gone"]
)
def test_something_else_is_resolved_again(cache: ByteCache, words: list[str], places: tuple[str, ...]) -> None:
    resolver = Resolver()
    Keeping(cache).remember(Resolution, ["demo"], PLACES, resolver)
    Keeping(cache).remember(Resolution, words, places, resolver)
    assert resolver.times == 2


def test_it_is_made_again_on_demand_and_after_ten_minutes(cache: ByteCache, monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = Resolver()
    now = [1e9]
    monkeypatch.setattr(time, "time", lambda: now[0])
    for elapsed, refresh, offline, times in [
        (0, False, False, 1),
        (REUSED - 1, False, False, 1),
        (REUSED + 1, False, True, 1),
        (REUSED + 1, False, False, 2),
        (0, True, False, 3),
        (-2 * REUSED, False, False, 4),
    ]:
        now[0] += elapsed if not offline else 0
        if offline:
            now[0] += REUSED
        Keeping(cache, refresh, offline).remember(Resolution, ["demo"], PLACES, resolver)
        assert resolver.times == times


@pytest.mark.parametrize("stored", [b"", b"[]", b'{"found":1}', b'{"found":"a","made":{}}', b'{"found":1e9,"made":[]}'])
def test_what_does_not_decode_is_made_again(cache: ByteCache, stored: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1e9)
    resolver = Resolver()
    Keeping(cache).remember(Resolution, ["demo"], PLACES, resolver)
    monkeypatch.setattr(ByteCache, "fact", lambda *_: stored)
    assert Keeping(cache).remember(Resolution, ["demo"], PLACES, resolver) == RESOLUTION
    assert resolver.times == 2


def test_an_error_and_a_secret_are_not_kept(cache: ByteCache) -> None:
    def fail() -> Resolution:
        raise SourceError("no network")

    with pytest.raises(SourceError):
        Keeping(cache).remember(Resolution, ["demo"], PLACES, fail)
    secret = Resolver(Resolution((), (Unusable("https://user:s3cret@example.org/", Explanation(())),)))
    for _ in range(2):
        Keeping(cache).remember(Resolution, ["demo"], PLACES, secret)
    assert secret.times == 2


@pytest.mark.parametrize("nested", [False, True], ids=["folder of files", "index"])
def test_files_of_this_machine_belong_to_its_name(cache: ByteCache, tmp_path: Path, nested: bool) -> None:
    folder = tmp_path / "wheels"
    file = (folder / "demo" if nested else folder) / "index.html"
    file.parent.mkdir(parents=True)
    file.write_text("one")
    resolver = Resolver()

    def remember() -> None:
        Keeping(cache).remember(Resolution, ["demo"], (folder.as_uri(),), resolver)

    remember()
    remember()
    assert resolver.times == 1
    os.utime(file, (1, 1))
    remember()
    assert resolver.times == 2


def test_uv_is_asked_once_for_the_same_and_not_at_all_offline(cache: ByteCache) -> None:
    demo = WheelBuilder("demo", "1.0", "py3-none-any")
    with RangeServer(simple_index(demo)) as server:
        config = IndexConfig((server.url("/simple"),))
        environ = {**os.environ, "UV_NO_CACHE": "1"}

        def resolved(**options: object) -> Resolution:
            keeping = Keeping(cache, offline=bool(options.get("offline")))
            return resolve(["demo"], AARCH64, config, environ=environ, keeping=keeping, **options)  # type: ignore[arg-type]  # options of resolve

        first = resolved()
        asked = len(server.requests)
        assert asked
        assert resolved() == resolved(offline=True) == first
        assert len(server.requests) == asked
        resolve(["demo"], X86_64, config, environ=environ, keeping=Keeping(cache))
        resolve(["demo"], AARCH64, replace(config, strategy="first-index"), environ=environ, keeping=Keeping(cache))
        resolve(["demo<2"], AARCH64, config, environ=environ, keeping=Keeping(cache))
        resolve(["demo"], AARCH64, config, environ=environ, keeping=Keeping(cache), constraints=["demo<2"])
        resolve(["demo"], AARCH64, config, environ=environ, keeping=Keeping(cache), pre=True)
        assert len(server.requests) >= asked + 5
        assert [package.name for package in first.packages] == ["demo"]
