"""Source archives in a resolution, with the real uv: choices, substitutes for their metadata, and no execution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.support.range_server import RangeServer, Resource
from tests.support.sdists import SourceBuilder
from tests.support.simple_index import simple_index
from tests.support.wheels import WheelBuilder
from wheel_checks.errors import SourceError
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.installers.config import FIRST_INDEX, IndexConfig
from wheel_checks.sources.simple_index import SimpleIndex
from wheel_checks.sources.uv.resolver import NoSolutionError, Resolution, resolve
from wheel_checks.targets.target import Target
from wheelproof.wheels.indexes import KnownIndexes
from wheelproof.wheels.resolving import (
    MOST_ROUNDS,
    ArchiveSearch,
    Settled,
    UndecidedConflictError,
)

TARGET = Target((3, 12), "aarch64", (2, 39))
X86_ONLY = "cp312-cp312-manylinux_2_28_x86_64"


class Runs:
    """Resolves requirements as ``stack`` does, and counts the runs of uv."""

    def __init__(self, config: IndexConfig, constraints: Sequence[str] = (), passed_over: Sequence[str] = ()) -> None:
        self.config, self.constraints, self.passed_over = config, constraints, passed_over
        self.count = 0

    def resolve(self, *requirements: str) -> Settled:
        def run(more_links: tuple[str, ...], more: tuple[str, ...]) -> Resolution:
            self.count += 1
            config = replace(self.config, find_links=more_links)
            constraints = (*self.constraints, *more)
            return resolve(requirements, TARGET, config, constraints=constraints, leave_out_unusable=not more)

        with HttpClient() as client:
            search = ArchiveSearch(
                run,
                map(Requirement, requirements),
                TARGET,
                KnownIndexes(SimpleIndex(client, self.config)),
                client,
                constraints=map(Requirement, self.constraints),
                passed_over=self.passed_over,
            )
            return search.settle()


def settle(files: dict[str, bytes | Resource], *requirements: str, constraints: Sequence[str] = ()) -> Settled:
    with RangeServer(files) as server:
        return Runs(IndexConfig((server.url("/simple"),)), constraints).resolve(*requirements)


def versions(settled: Settled) -> dict[str, str]:
    return {package.name: package.version for package in settled.resolution.packages}


def test_a_newer_source_archive_is_taken_with_what_it_requires() -> None:
    files = simple_index(
        WheelBuilder("demo", "1.0"), SourceBuilder("demo", "2.0", ["base>=1"]), WheelBuilder("base", "1.5")
    )
    with RangeServer(files) as server:
        settled = Runs(IndexConfig((server.url("/simple"),))).resolve("demo")
        url = server.url("/files/demo-2.0.tar.gz")
    assert versions(settled) == {"base": "1.5", "demo": "2.0"}
    assert list(settled.archives) == ["demo"]
    assert (settled.archives["demo"].url, settled.archives["demo"].computed) == (url, "")
    (file,) = next(package.files for package in settled.resolution.packages if package.name == "demo")
    assert (file.file_name, file.url) == ("demo-2.0.tar.gz", url)


def test_one_run_of_uv_where_every_package_has_a_wheel() -> None:
    files = simple_index(
        WheelBuilder("demo", "2.0").metadata(requires=["base<2"]),
        SourceBuilder("demo", "1.0"),
        SourceBuilder("demo", "2.0"),
        WheelBuilder("base", "1.0"),
        WheelBuilder("base", "2.0"),
    )
    with RangeServer(files) as server:
        runs = Runs(IndexConfig((server.url("/simple"),)))
        settled = runs.resolve("demo")
    assert (versions(settled), settled.archives, runs.count) == ({"base": "1.0", "demo": "2.0"}, {}, 1)
    assert not any(request.path.endswith(".tar.gz") for request in server.requests)


def test_an_archive_that_only_a_newer_release_requires() -> None:
    files = simple_index(
        WheelBuilder("engine", "0.0.0"),
        WheelBuilder("engine", "2.0").metadata(
            "Provides-Extra: torch", requires=["core==2.0", "engine-torch==2.0; extra == 'torch'"]
        ),
        WheelBuilder("core", "2.0"),
        SourceBuilder("engine-torch", "1.0"),
        SourceBuilder("engine-torch", "2.0"),
    )
    assert versions(settle(files, "engine[torch]")) == {"core": "2.0", "engine": "2.0", "engine-torch": "2.0"}


def test_what_a_build_computes_is_marked() -> None:
    files = simple_index(SourceBuilder("demo", "1.0", ["base"], computed=["Requires-Dist"]), WheelBuilder("base"))
    settled = settle(files, "demo")
    assert versions(settled) == {"base": "1.0", "demo": "1.0"}
    assert settled.archives["demo"].computed == "PKG-INFO says `Dynamic: Requires-Dist`"


def test_the_metadata_of_a_wheel_for_another_machine_stands_for_the_archive() -> None:
    files = simple_index(
        WheelBuilder("demo", "1.0", X86_ONLY).metadata(requires=["of-wheel"]),
        SourceBuilder("demo", "1.0", ["of-archive"], computed=["Requires-Dist"]),
        WheelBuilder("of_wheel"),
        WheelBuilder("of_archive"),
    )
    files["/simple/of-wheel/"] = files["/simple/of_wheel/"]
    archive = settle(files, "demo").archives["demo"]
    assert archive.metadata_of == f"demo-1.0-{X86_ONLY}.whl"
    assert (list(map(str, archive.requirements)), archive.computed) == (["of-wheel"], "")


@pytest.mark.parametrize(
    ("newer", "attributes"),
    [
        (SourceBuilder("demo", "2.0rc1"), ""),
        (SourceBuilder("demo", "2.0.dev3"), ""),
        (SourceBuilder("demo", "2.0"), 'data-yanked="broken"'),
        (SourceBuilder("demo", "2.0"), 'data-requires-python="&gt;=3.13"'),
        (SourceBuilder("demo", "2.0", suffix=".tar.bz2"), ""),
    ],
)
def test_archives_that_no_installer_takes(newer: SourceBuilder, attributes: str) -> None:
    files = simple_index(WheelBuilder("demo", "1.0"), newer, attributes={newer.file_name: attributes})
    settled = settle(files, "demo")
    assert (versions(settled), settled.failed) == ({"demo": "1.0"}, {})


def test_the_next_older_archive_where_the_newest_does_not_fit() -> None:
    files = simple_index(
        WheelBuilder("demo", "0.1"),
        SourceBuilder("demo", "1.0"),
        SourceBuilder("demo", "2.0", ["absent"]),
        SourceBuilder("demo", "3.0", ["base>=9"]),
        WheelBuilder("base"),
    )
    assert versions(settle(files, "demo")) == {"demo": "1.0"}


def test_archives_under_constraints_and_demands_of_others() -> None:
    demos = [SourceBuilder("demo", version) for version in ("1.0", "2.0", "3.0")]
    files = simple_index(*demos, WheelBuilder("demo", "0.1"), WheelBuilder("user").metadata(requires=["demo<3"]))
    assert versions(settle(files, "demo", constraints=["demo<2"])) == {"demo": "1.0"}
    assert versions(settle(files, "user")) == {"demo": "2.0", "user": "1.0"}


def test_the_indexes_count_for_archives_as_for_wheels() -> None:
    first = simple_index(WheelBuilder("demo", "1.0"), SourceBuilder("demo", "2.0"))
    second = simple_index(SourceBuilder("demo", "3.0"))
    with RangeServer(first) as one, RangeServer(second) as two:
        config = IndexConfig((one.url("/simple"), two.url("/simple")))
        assert versions(Runs(config).resolve("demo")) == {"demo": "3.0"}
        assert versions(Runs(replace(config, strategy=FIRST_INDEX)).resolve("demo")) == {"demo": "2.0"}
        assert versions(Runs(config, passed_over=["demo"]).resolve("demo")) == {"demo": "1.0"}


def test_an_archive_that_cannot_be_read() -> None:
    files = simple_index(WheelBuilder("demo", "1.0"), SourceBuilder("demo", "2.0"))
    files["/files/demo-2.0.tar.gz"] = b"no archive"
    settled = settle(files, "demo")
    assert versions(settled) == {"demo": "1.0"}
    assert "does not unpack" in settled.failed["demo"]


@pytest.mark.parametrize(("computed", "error"), [(["Requires-Dist"], UndecidedConflictError), ([], NoSolutionError)])
def test_a_conflict_with_what_an_archive_lists(computed: list[str], error: type[NoSolutionError]) -> None:
    files = simple_index(
        SourceBuilder("demo", "1.0", ["base==1.0"], computed=computed),
        WheelBuilder("base", "1.0"),
        WheelBuilder("base", "2.0"),
    )
    with pytest.raises(NoSolutionError) as raised:
        settle(files, "demo", "base==2.0")
    assert type(raised.value) is error


def test_the_search_is_bounded() -> None:
    demos = [SourceBuilder("demo", f"{number}.0", ["absent"]) for number in range(1, MOST_ROUNDS + 9)]
    settled = settle(simple_index(WheelBuilder("demo", "0.1"), *demos), "demo")
    assert versions(settled) == {"demo": "0.1"}
    assert f"in {MOST_ROUNDS} rounds" in settled.unfinished


def test_an_address_that_an_archive_requires_is_not_contacted() -> None:
    with RangeServer({"/demo.git/info/refs": b"", "/other-1.0-py3-none-any.whl": b""}) as elsewhere:
        texts = [f"git @ git+{elsewhere.url('/demo.git')}", f"other @ {elsewhere.url('/other-1.0-py3-none-any.whl')}"]
        with pytest.raises(SourceError, match="URL dependencies must be expressed as direct requirements"):
            settle(simple_index(SourceBuilder("demo", "1.0", texts)), "demo")
        assert elsewhere.requests == []


@pytest.mark.parametrize("suffix", [".tar.gz", ".zip"])
def test_no_code_of_an_archive_is_executed(tmp_path: Path, suffix: str) -> None:
    trace = tmp_path / "executed"
    writes = f"open({str(trace)!r}, 'w').close()\n"
    hooks = "".join(f"def {name}(*_, **__):\n    {writes}" for name in ("get_requires_for_build_wheel", "build_wheel"))
    backend = '[build-system]\nrequires = []\nbuild-backend = "own"\nbackend-path = ["."]\n'
    files = simple_index(
        SourceBuilder(
            "demo",
            "1.0",
            ["base"],
            computed=["Requires-Dist"],
            files={"pyproject.toml": backend, "own.py": writes + hooks, "setup.py": writes},
            suffix=suffix,
        ),
        WheelBuilder("base"),
    )
    settled = settle(files, "demo")
    assert versions(settled) == {"base": "1.0", "demo": "1.0"}
    assert settled.archives["demo"].needs == ("its own build backend (own)",)
    assert not trace.exists()


def test_why_a_newer_release_is_refused() -> None:
    newer = WheelBuilder("demo", "2.0").metadata(requires=["base>=9000"])
    files = simple_index(WheelBuilder("demo", "1.0"), newer, WheelBuilder("base", "1.0"), WheelBuilder("other"))
    settled = settle(files, "demo", "other")
    assert versions(settled) == {"demo": "1.0", "other": "1.0"}
    (refused,) = settled.refused
    reason = "it requires base>=9000, but only base==1.0 is available"
    assert str(refused) == f"demo 2.0 is newer than 1.0, but was rejected: {reason}"
    assert settle(files, "demo<2").refused == ()


@pytest.mark.parametrize(
    ("attributes", "requested", "expected"),
    [
        (
            'data-yanked="a placeholder"',
            "demo",
            ["demo: uv selects the pre-release 2.0b1 by default, pip nothing (the final release 0.1 is yanked)"],
        ),
        ('data-yanked="a placeholder"', "demo==2.0b1", []),
        ('data-requires-python="&gt;=3.13"', "demo", []),  # both pass over it, and take a pre-release
    ],
)
def test_a_pre_release_that_uv_alone_takes(attributes: str, requested: str, expected: list[str]) -> None:
    final, newer = WheelBuilder("demo", "0.1"), WheelBuilder("demo", "2.0b1")
    settled = settle(simple_index(final, newer, attributes={final.file_name: attributes}), requested)
    assert versions(settled) == {"demo": "2.0b1"}
    assert list(map(str, settled.pre_releases)) == expected


def test_a_source_archive_of_a_pre_release_where_final_ones_are_yanked() -> None:
    final, newer = SourceBuilder("demo", "0.1"), SourceBuilder("demo", "2.0b1")
    settled = settle(simple_index(final, newer, attributes={final.file_name: 'data-yanked=""'}), "demo")
    assert versions(settled) == {"demo": "2.0b1"}


def test_a_pre_release_that_a_package_pins_is_what_pip_takes_too() -> None:
    user = WheelBuilder("user").metadata(requires=["demo==2.0b1"])
    files = simple_index(user, *(WheelBuilder("demo", version) for version in ("2.0b1", "2.0b2")))
    settled = settle(files, "user")
    assert (versions(settled)["demo"], settled.pre_releases) == ("2.0b1", ())
