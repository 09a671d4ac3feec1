"""A sample of ``ci/guard_ways.py``, with the real pip and uv: all of it takes a quarter of an hour."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.guard_ways import BUILDS, OPEN_WAYS, PIP_WAYS, UV_WAYS, Build, Way, try_build, try_open, try_way
from tests.support.guarded_world import Index

WAYS = {way.name: way for way in (*PIP_WAYS, *UV_WAYS)}
SAMPLED = (
    "python -m pip --isolated",
    "cuDNN written over by another package",
    "uv, a constraint on the command line",
    "uv run",
)
SAMPLED_BUILDS = ("pip --no-build-isolation with PIP_BUILD_CONSTRAINT", "uv sync with an extension")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return Index.create(tmp_path_factory.mktemp("index"))


def test_there_are_sixty_ways_each_once() -> None:
    assert len(WAYS) == len(PIP_WAYS) + len(UV_WAYS) >= 60
    assert len({(way.command, way.prepare, way.uv_inside) for way in WAYS.values()}) == len(WAYS)


@pytest.mark.parametrize("way", [WAYS[name] for name in SAMPLED], ids=SAMPLED)
def test_a_way(way: Way, tmp_path: Path, index: Index) -> None:
    found = try_way(way, tmp_path, index)
    assert (found["without"], found["under"] in ("kept", "refused", "restored")) == ("lost", True), found


@pytest.mark.parametrize("build", [one for one in BUILDS if one.name in SAMPLED_BUILDS], ids=lambda one: one.name)
def test_a_documented_build(build: Build, tmp_path: Path, index: Index) -> None:
    assert try_build(build, tmp_path, index) == {"under": "works"}


def test_a_way_that_cannot_be_closed_is_found(tmp_path: Path, index: Index) -> None:
    assert try_open(OPEN_WAYS[0], tmp_path, index) == {"without": "lost", "under": "found"}
