"""Resolving for a target with the real uv: an index on loopback, its files and its misbehaviour."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import has_ended, in_time, wait_until
from tests.support.range_server import RangeServer, Resource, basic_auth, fail
from tests.support.simple_index import simple_index
from tests.support.wheels import WheelBuilder, torch_like
from wheel_checks.errors import DeadlineError, OfflineError, SourceError, UsageError
from wheel_checks.formats.lock.model import LockedPackage
from wheel_checks.sources import uv_binary
from wheel_checks.sources.installers.config import FIRST_INDEX, IndexConfig
from wheel_checks.sources.trust import Address, UntrustedAddressError
from wheel_checks.sources.uv import own_configuration
from wheel_checks.sources.uv.resolver import (
    NoSolutionError,
    Resolution,
    is_network_failure,
    python_platform,
    resolve,
)
from wheel_checks.targets.target import Target

AARCH64 = Target((3, 12), "aarch64", (2, 39))
X86_64 = replace(AARCH64, machine="x86_64")
X86_ONLY = "cp312-cp312-manylinux_2_28_x86_64"


def sdist(name: str, setup: str = "raise SystemExit('built')") -> bytes:
    """A source archive whose metadata must be built, and whose setup.py does the given actions."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for path, text in {
            "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
            "setup.py": setup,
        }.items():
            member = tarfile.TarInfo(f"{name}-1.0/{path}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return stream.getvalue()


def with_sdist(name: str, setup: str = "raise SystemExit('built')") -> dict[str, bytes | Resource]:
    link = f'<a href="../../files/{name}-1.0.tar.gz">{name}-1.0.tar.gz</a>'
    return {
        f"/files/{name}-1.0.tar.gz": sdist(name, setup),
        f"/simple/{name}/": Resource(link.encode(), content_type="text/html"),
    }


def names(resolution: Resolution) -> list[tuple[str, str]]:
    return [(package.name, package.version) for package in resolution.packages]


def package(resolution: Resolution, name: str) -> LockedPackage:
    (found,) = [package for package in resolution.packages if package.name == name]
    return found


# Resolutions.


def test_markers_are_evaluated_for_the_target() -> None:
    demo = WheelBuilder("demo").metadata(requires=['runtime; platform_machine == "x86_64"', "base>=1"])
    with RangeServer(simple_index(demo, WheelBuilder("runtime"), WheelBuilder("base"))) as server:
        config = IndexConfig((server.url("/simple"),))
        assert names(resolve(["demo"], AARCH64, config)) == [("base", "1.0"), ("demo", "1.0")]
        assert names(resolve(["demo"], X86_64, config)) == [("base", "1.0"), ("demo", "1.0"), ("runtime", "1.0")]


def test_the_files_are_those_that_fit_the_target() -> None:
    wheels = [torch_like("cpu", "2.10.0", machine).metadata() for machine in ("aarch64", "x86_64")]
    with RangeServer(simple_index(*wheels)) as server:
        resolution = resolve(["torch"], AARCH64, IndexConfig((server.url("/simple"),)))
        (file,) = package(resolution, "torch").files
        assert file.file_name == wheels[0].file_name
        assert file.url == server.url(f"/files/{file.file_name}")
        assert list(file.hashes) == ["sha256"]


def test_constraints_and_pre_releases() -> None:
    wheels = [WheelBuilder("demo", version) for version in ("1.0", "2.0", "3.0")]
    wheels += [WheelBuilder("other", version) for version in ("1.0", "2.0a1")]
    with RangeServer(simple_index(*wheels)) as server:
        config = IndexConfig((server.url("/simple"),))
        both = resolve(["other", "demo<3"], AARCH64, config)
        assert names(both) == [("demo", "2.0"), ("other", "1.0")]
        bounded = resolve(["demo"], AARCH64, config, constraints=["demo<2"])
        assert names(bounded) == [("demo", "1.0")]
        assert names(resolve(["other"], AARCH64, config, pre=True)) == [("other", "2.0a1")]


def test_a_package_of_one_index_and_one_that_is_left_out() -> None:
    ours = [WheelBuilder("demo", "1.0"), WheelBuilder("base", "1.0").metadata(requires=["gone"])]
    with RangeServer(simple_index(*ours)) as server, RangeServer(simple_index(WheelBuilder("demo", "0.5"))) as other:
        config, pinned = IndexConfig((server.url("/simple"),)), {"demo": other.url("/simple")}
        found = resolve(["Demo", "base"], AARCH64, config, pinned=pinned, left_out=["Gone"])
        assert names(found) == [("base", "1.0"), ("demo", "0.5")]
        assert {request.path for request in other.requests} <= {"/simple/demo/", "/files/demo-0.5-py3-none-any.whl"}


def test_an_index_that_only_a_tree_names_is_not_contacted() -> None:
    with RangeServer(simple_index(WheelBuilder("demo"))) as server:
        config = IndexConfig((server.url("/simple"),), refused=(Address("https://tree.example/simple", "uv.toml"),))
        with pytest.raises(UntrustedAddressError, match=r"the index https://tree.example/simple \(uv.toml\)"):
            resolve(["demo"], AARCH64, config)
        assert server.requests == []


def test_find_links_without_an_index(tmp_path: Path) -> None:
    path = WheelBuilder("demo").write(tmp_path)
    resolution = resolve(["demo"], AARCH64, IndexConfig((), (tmp_path.as_uri(),)))
    assert package(resolution, "demo").files[0].url == path.as_uri()


def test_a_wheel_by_its_url(tmp_path: Path) -> None:
    path = WheelBuilder("demo").write(tmp_path)
    found = package(resolve([f"demo @ {path.as_uri()}"], AARCH64, IndexConfig(())), "demo")
    assert (found.direct, found.files[0].url) == (True, path.as_uri())


@pytest.mark.parametrize(("strategy", "version"), [("merge", "2.0"), (FIRST_INDEX, "1.0")])
def test_the_strategy_among_several_indexes(strategy: str, version: str) -> None:
    first, second = simple_index(WheelBuilder("demo", "1.0")), simple_index(WheelBuilder("demo", "2.0"))
    with RangeServer(first) as one, RangeServer(second) as two:
        config = IndexConfig((one.url("/simple"), two.url("/simple")), strategy=strategy)
        assert names(resolve(["demo"], AARCH64, config)) == [("demo", version)]


def test_the_environment_and_files_of_uv_do_not_interfere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("uv.toml").write_text('index-url = "http://127.0.0.1:9/simple"\n')
    Path("excluded.txt").write_text("demo<1\n")
    monkeypatch.setenv("UV_CONSTRAINT", "excluded.txt")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    with RangeServer(simple_index(WheelBuilder("demo"))) as server:
        assert names(resolve(["demo"], AARCH64, IndexConfig((server.url("/simple"),)))) == [("demo", "1.0")]


# Failures.


def test_two_pins_that_contradict_each_other_are_explained() -> None:
    stack = WheelBuilder("stack").metadata(requires=["base==1.0"])
    files = simple_index(stack, WheelBuilder("base"), WheelBuilder("base", "2.0"))
    with RangeServer(files) as server, pytest.raises(NoSolutionError) as error:
        resolve(["stack==1.0", "base==2.0"], AARCH64, IndexConfig((server.url("/simple"),)))
    demands = set(map(str, error.value.explanation.demands))
    assert {"all versions of stack depends on base==1.0", "you require base==2.0", "you require stack==1.0"} == demands
    assert "conclude" not in str(error.value)


def test_packages_without_a_wheel_are_left_out_when_asked() -> None:
    demo = WheelBuilder("demo").metadata(requires=["gone", "source", "base"])
    files = simple_index(demo, WheelBuilder("gone", tags=X86_ONLY), WheelBuilder("base")) | with_sdist("source")
    with RangeServer(files) as server:
        config = IndexConfig((server.url("/simple"),))
        resolution = resolve(["demo", "absent"], AARCH64, config, leave_out_unusable=True)
        with pytest.raises(NoSolutionError, match=r"gone==1\.0 has no wheels with a matching platform tag"):
            resolve(["gone"], AARCH64, config)
    assert names(resolution) == [("base", "1.0"), ("demo", "1.0")]
    assert {item.name for item in resolution.unusable} == {"absent", "gone", "source"}


def test_nothing_is_built(tmp_path: Path) -> None:
    trace = tmp_path / "built"
    setup = f"open({str(trace)!r}, 'w').close()"
    with RangeServer(with_sdist("source", setup)) as server:
        resolution = resolve(["source"], AARCH64, IndexConfig((server.url("/simple"),)), leave_out_unusable=True)
    assert [item.name for item in resolution.unusable] == ["source"]
    assert not trace.exists()


# Wrong input, and sources that fail.


@pytest.mark.parametrize("text", ["foo bar", "-r /etc/passwd", "demo\n--index-url http://x", "", "./demo"])
def test_a_requirement_that_is_none(text: str) -> None:
    with pytest.raises(UsageError, match="a requirement does not parse"):
        resolve([text], AARCH64, IndexConfig(()))


def test_nothing_to_resolve() -> None:
    with pytest.raises(UsageError, match="nothing to resolve"):
        resolve([], AARCH64, IndexConfig(()))


def test_credentials_reach_the_index_and_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    real = subprocess.Popen

    def watch(command: list[str], **options: Any) -> Any:
        started.append(command)
        return real(command, **options)

    monkeypatch.setattr(subprocess, "Popen", watch)
    stack = WheelBuilder("stack").metadata(requires=["base==2.0"])
    files = {
        path: replace(body if isinstance(body, Resource) else Resource(body), behave=[basic_auth("user", "hunter2")])
        for path, body in simple_index(stack, WheelBuilder("base")).items()
    }
    with RangeServer(files) as server:
        url = server.url("/simple").replace("://", "://user:hunter2@")
        assert names(resolve(["base"], AARCH64, IndexConfig((url,)))) == [("base", "1.0")]
        with pytest.raises(NoSolutionError) as error:
            resolve(["stack"], AARCH64, IndexConfig((url,)))
    runs = [command for command in started if Path(command[0]).name == "uv"]  # the first child also starts the guard
    assert len(runs) == 2
    assert all({"--no-config", "--config-file"} <= set(command) for command in runs)  # no file of a tree is read
    assert "hunter2" not in str(error.value) + str(started)


def test_what_is_written_for_uv_is_for_this_user_only() -> None:
    with own_configuration.private_folder() as folder:
        path = own_configuration.write_private(folder / "uv.toml", "x")
        assert (folder.stat().st_mode & 0o777, path.stat().st_mode & 0o777) == (0o700, 0o600)
    assert not folder.exists()


def test_an_index_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    files = {"/simple/demo/": Resource(b"", behave=[fail(503)])}
    said = r"uv could not resolve the requirements: Failed to fetch.*503"
    with RangeServer(files) as server, pytest.raises(SourceError, match=said) as error:
        resolve(["demo"], AARCH64, IndexConfig((server.url("/simple"),)))
    assert not isinstance(error.value, NoSolutionError)


def test_offline_without_a_cache_is_no_verdict() -> None:
    with pytest.raises(OfflineError, match="not found in the cache"):
        resolve(["demo"], AARCH64, IndexConfig(("http://127.0.0.1:9/simple",)), offline=True)


def fake_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    path = tmp_path / "uv"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setattr(uv_binary, "find_uv", lambda: str(path))


def test_a_resolver_that_hangs_is_ended_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written, sleep = tmp_path / "child", f"{sys.executable} -c 'import time; time.sleep(3600)'"
    fake_uv(tmp_path, monkeypatch, f"{sleep} & echo $! > {written}; wait")

    def hang(timeout: float) -> str:
        with pytest.raises(DeadlineError, match=rf"uv did not finish within {timeout:g} seconds"):
            resolve(["demo"], AARCH64, IndexConfig(()), timeout=timeout)
        return written.read_text() if written.exists() else ""

    child = int(in_time(hang, str.strip))
    wait_until(lambda: has_ended(child))


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("kill -9 $$", "uv was killed by signal 9"),
        ("exit 4", "uv exited with status 4 without output"),
        ("echo 'thread main panicked' >&2; exit 101", "uv could not resolve the requirements: thread main panicked"),
    ],
)
def test_a_resolver_that_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, message: str) -> None:
    fake_uv(tmp_path, monkeypatch, script)
    with pytest.raises(SourceError, match=message):
        resolve(["demo"], AARCH64, IndexConfig(()))


def test_without_uv_the_message_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uv_binary, "find_uv", lambda: str(tmp_path / "uv"))
    with pytest.raises(SourceError, match="uv cannot be started") as error:
        resolve(["demo"], AARCH64, IndexConfig(()))
    assert "pip install uv" in error.value.hint


def test_uv_comes_with_wheelproof() -> None:
    assert os.access(uv_binary.find_uv(), os.X_OK)


# Targets, as uv names them.


@pytest.mark.parametrize(
    ("machine", "glibc", "expected"),
    [
        ("aarch64", (2, 39), "aarch64-manylinux_2_39"),
        ("aarch64", (2, 43), "aarch64-manylinux_2_40"),
        ("x86_64", (2, 30), "x86_64-manylinux_2_28"),
        ("x86_64", (2, 17), "x86_64-manylinux_2_17"),
    ],
)
def test_the_nearest_platform_that_uv_knows(machine: str, glibc: tuple[int, int], expected: str) -> None:
    assert python_platform(Target((3, 12), machine, glibc)) == expected


def test_uv_resolves_for_windows_and_for_a_macos_newer_than_its_own_default() -> None:
    wheels = [WheelBuilder("demo", tags=f"cp312-cp312-{tag}") for tag in ("win_amd64", "macosx_15_0_arm64")]
    windows = replace(X86_64, glibc=(0, 0), system="Windows")
    macos = replace(AARCH64, glibc=(0, 0), system="macOS", macos=(15, 0))
    with RangeServer(simple_index(*wheels)) as server:
        config = IndexConfig((server.url("/simple"),))
        assert [names(resolve(["demo"], target, config)) for target in (windows, macos)] == [[("demo", "1.0")]] * 2
        with pytest.raises(NoSolutionError):
            resolve(["demo"], replace(macos, macos=(14, 0)), config)


def test_every_platform_name_is_known_to_uv() -> None:
    with RangeServer(simple_index(WheelBuilder("demo"))) as server:
        for minor in (17, 28, 31, 40):
            target = replace(AARCH64, glibc=(2, minor))
            assert names(resolve(["demo"], target, IndexConfig((server.url("/simple"),)))) == [("demo", "1.0")]


def test_a_free_threaded_python_is_refused_rather_than_resolved_for_the_other() -> None:
    with pytest.raises(UsageError, match=r"uv cannot resolve for the free-threaded Python 3\.13"):
        python_platform(Target((3, 13), "aarch64", (2, 39), free_threaded=True))


def test_a_glibc_older_than_all_that_uv_knows() -> None:
    with pytest.raises(UsageError, match=r"uv cannot resolve for glibc 2\.12"):
        python_platform(Target((3, 12), "x86_64", (2, 12)))


@pytest.mark.parametrize(
    ("words", "is_one"),
    [
        ("Failed to fetch: http://x/a.whl cause: error sending request for url cause: connection closed", True),
        ("Failed to fetch: http://x/a.whl cause: HTTP status server error (503 Service Unavailable)", True),
        ("Failed to fetch: http://x/a.whl cause: HTTP status client error (429 Too Many Requests)", True),
        ("Failed to fetch: http://x/a.whl cause: dns error cause: error resolving DNS", True),
        ("Failed to fetch: http://x/a.whl cause: HTTP status client error (404 Not Found)", False),
        ("Failed to fetch: http://x/a.whl cause: HTTP status client error (403 Forbidden)", False),
        ("Failed to download torch==2.11.0 cause: Hash mismatch for torch==2.11.0", False),
        ("Failed to download torch==2.11.0 cause: No space left on device (os error 28)", False),
        ("Failed to fetch: https://x/a.whl cause: invalid peer certificate: UnknownIssuer", False),
        ("Because torch was not found in the package registry", False),
    ],
)
def test_what_the_network_failed_may_succeed_later(words: str, is_one: bool) -> None:
    """The sentences are those of uv 0.13 for a server that did each of these."""
    assert is_network_failure(words) is is_one
