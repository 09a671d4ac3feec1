"""``pins predict``: the effect of an install on torch, the requiring package, and the new build."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import Wheelproof
from tests.support.fake_torch import INSTALLED, World
from tests.support.range_server import RangeServer
from tests.support.simple_index import simple_index
from tests.support.wheels import WheelBuilder, torch_like
from wheel_checks.errors import FormatError
from wheelproof.pins.installers import parse_pip_report, parse_uv_changes

CPU_ON_AARCH64 = "torch 2.9.1+cu128 would be replaced by 2.10.0, CPU only (2.10.0+cpu) on aarch64"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """The environment, with this process started in its project and with its variables."""
    world = World.create(tmp_path / "world")
    for name, value in world.variables.items():
        if name != "PATH":
            monkeypatch.setenv(name, value)
    return world


@pytest.fixture
def predict(world: World, wheelproof: Wheelproof, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Predict in the environment; the report, with its exit code."""

    def run(*arguments: str, installer: str = "uv") -> tuple[int, dict[str, Any]]:
        monkeypatch.chdir(world.project)
        options = ("--python", str(world.python), "--installer", installer, "--format", "json")
        run = wheelproof("pins", "predict", *options, *arguments)
        assert run.out, run.err
        return run.status, json.loads(run.out)

    return run


def fate(report: dict[str, Any], name: str = "torch") -> dict[str, Any]:
    """The facts of the package with that name."""
    (facts,) = (s["facts"] for s in report["subjects"] if s["facts"].get("name") == name)
    return {key: facts[key] for key in ("fate", "from", "to", "demanded_by")}


def messages(report: dict[str, Any]) -> list[str]:
    return [r["message"] for s in report["subjects"] for r in s["results"] if r["outcome"] == "fail"]


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_a_demand_of_another_package(world: World, predict: Callable[..., Any], installer: str) -> None:
    status, report = predict("needs-2-8", installer=installer)

    assert status == 1
    assert fate(report) == {
        "fate": "replaced",
        "from": INSTALLED,
        "to": "2.8.0",
        "demanded_by": ["you ask for needs-2-8", "needs-2-8 1.0 requires torch==2.8.0"],
    }
    assert world.torch == INSTALLED  # nothing was installed


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_a_torch_that_is_kept(predict: Callable[..., Any], installer: str) -> None:
    status, report = predict("needs-any", installer=installer)

    assert status == 0
    assert fate(report) == {"fate": "kept", "from": INSTALLED, "to": INSTALLED, "demanded_by": []}


def test_both_installers_and_where_they_differ(world: World, predict: Callable[..., Any]) -> None:
    status, report = predict("--upgrade", "needs-any", installer="both")

    assert status == 1
    found = {s["facts"]["installer"]: s["facts"]["fate"] for s in report["subjects"] if "fate" in s["facts"]}
    assert found == {"uv": "replaced", "pip": "kept"}
    assert any("no requirement causes it, --upgrade does" in message for message in messages(report))


def test_a_leftover_torchvision(predict: Callable[..., Any]) -> None:
    status, report = predict("torchvision")

    assert status == 1
    assert fate(report)["demanded_by"] == ["you ask for torchvision", "torchvision 0.23.0 requires torch==2.8.0"]


def test_a_companion_that_goes_with_it(world: World, predict: Callable[..., Any]) -> None:
    world.shell("uv pip install --no-deps torchvision==0.22.0")

    _, report = predict("-U", "torchvision")

    assert fate(report, "torchvision")["fate"] == "replaced"
    assert {r["rule"] for s in report["subjects"] for r in s["results"] if r["outcome"] == "fail"} == {
        "PIN311",
        "PIN312",
    }


def test_files_and_what_they_include(world: World, predict: Callable[..., Any]) -> None:
    (world.project / "requirements.txt").write_text("-r more.txt\nneeds-any\n")
    (world.project / "more.txt").write_text("needs-2-8  # the culprit\n-r requirements.txt\n")

    status, report = predict("-r", "requirements.txt")

    assert status == 1
    assert fate(report)["demanded_by"][-1] == "needs-2-8 1.0 requires torch==2.8.0"


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_a_guard_makes_the_install_fail_and_nothing_is_lost(
    world: World, predict: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, installer: str
) -> None:
    (world.project / "constraints.txt").write_text(f"torch=={INSTALLED}\n")
    monkeypatch.setenv(f"{installer.upper()}_CONSTRAINT", str(world.project / "constraints.txt"))

    status, report = predict("needs-2-8", installer=installer)

    assert (status, fate(report)["fate"]) == (0, "kept")
    (message,) = messages(report)
    assert message.startswith("the install would fail and change nothing: ")


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_nothing_is_built_to_find_out_by_default(world: World, predict: Callable[..., Any], installer: str) -> None:
    undecided, report = predict("computing", installer=installer)
    built, allowed = predict("--build", "computing", installer=installer)

    assert (undecided, built) == (3, 0)
    (message,) = (r["message"] for r in report["subjects"][0]["results"] if r["outcome"] == "error")
    assert message.startswith("computing 1.0 would be built from computing-1.0.tar.gz, which computes what it requires")
    assert "--build" in message
    assert fate(allowed)["fate"] == "kept"
    assert not world.version("computing")


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_a_source_archive_that_lists_what_it_requires_is_decided(predict: Callable[..., Any], installer: str) -> None:
    status, report = predict("extension", installer=installer)

    assert (status, fate(report)["fate"]) == (0, "kept")


FILES = simple_index(
    torch_like("cpu", "2.10.0", "aarch64").metadata(requires=[]),
    torch_like("cuda", "2.10.0", "x86_64").metadata(requires=[]),
    WheelBuilder("vllm", "0.19.0").metadata(requires=["base", "torch==2.10.0"]),
    WheelBuilder("base", "1.0").metadata(requires=["torch>=2"]),
)


def described(wheelproof: Wheelproof, server: RangeServer, platform: str, *installed: str) -> tuple[int, str]:
    """What ``pins predict vllm`` says for a machine that is not here."""
    options = ["--index-url", server.url("/simple"), "--python", "3.12", "--platform", platform]
    run = wheelproof("pins", "predict", "vllm", *options, *(o for v in installed for o in ("--installed", v)))
    return run.status, run.out + run.err


def test_another_platform_gets_the_build_for_the_cpu(wheelproof: Wheelproof) -> None:
    with RangeServer(FILES) as server:
        status, words = described(wheelproof, server, "aarch64", "torch==2.9.1+cu128")

    assert status == 1
    assert f"{CPU_ON_AARCH64}; required by vllm 0.19.0 (torch==2.10.0)" in words


def test_another_platform_gets_another_build(wheelproof: Wheelproof) -> None:
    with RangeServer(FILES) as server:
        status, words = described(wheelproof, server, "x86_64", "torch==2.9.1+cu128")

    assert status == 1
    assert "replaced by 2.10.0, CUDA 12.8 (2.10.0+cu128) on x86_64" in words


def test_a_described_torch_that_fits_is_kept(wheelproof: Wheelproof) -> None:
    with RangeServer(FILES) as server:
        status, words = described(wheelproof, server, "aarch64", "torch==2.10.0+cu130")

    assert status == 0
    assert "torch 2.10.0+cu130 is kept" in words


def test_a_first_torch_is_looked_into(wheelproof: Wheelproof) -> None:
    with RangeServer(FILES) as server:
        status, words = described(wheelproof, server, "aarch64", "torchcodec==0.10")

    assert status == 0
    assert "torch 2.10.0 would be installed, CPU only (2.10.0+cpu) on aarch64" in words


def test_a_companion_for_another_torch_than_the_one_that_comes(wheelproof: Wheelproof) -> None:
    with RangeServer(FILES) as server:
        status, words = described(wheelproof, server, "aarch64", "torchcodec==0.8")

    assert status == 1
    assert "torchcodec 0.8 does not match torch 2.10.0: it needs torch==2.9.*" in words


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["vllm", "--installer", "pip", "--offline"], "pip cannot plan an install from its cache"),
        (["vllm", "--platform", "aarch64"], "the installed packages there are unknown"),
        (["vllm", "--installed", "2.7.0", "--platform", "all"], "only one environment can be described at a time"),
        (
            ["vllm", "--installed", "2.7.0", "--installer", "pip", "--platform", "aarch64"],
            "pip cannot plan for another platform",
        ),
        (["vllm", "--installed", "2.7.0", "--python", "/nowhere"], "describe different environments"),
        (["--installed", "2.7.0"], "nothing was requested"),
        (["vllm=1", "--installed", "2.7.0"], "a requirement does not parse"),
        (["-r", "gone.txt", "--installed", "2.7.0"], "cannot be read"),
    ],
)
def test_what_cannot_be_requested(wheelproof: Wheelproof, arguments: list[str], message: str) -> None:
    run = wheelproof("pins", "predict", *arguments)

    assert run.status == 2
    assert message in run.err


@pytest.mark.online
def test_the_story_of_vllm_on_aarch64(wheelproof: Wheelproof) -> None:
    place = ("--platform", "aarch64", "--python", "3.12", "--installed", "torch==2.9.1+cu128")

    run = wheelproof("pins", "predict", "vllm==0.19.0", *place)

    assert run.status == 1
    assert f"{CPU_ON_AARCH64}; required by vllm 0.19.0 (torch==2.10.0)" in run.out


def test_offline_without_a_cache_is_no_verdict(wheelproof: Wheelproof) -> None:
    with RangeServer(FILES) as server:
        index = ("--index-url", server.url("/simple"), "--offline")
        run = wheelproof("pins", "predict", "vllm", "--installed", "2.7.0", *index)

    assert run.status == 3
    assert "run once without --offline" in run.out


def test_what_uv_says() -> None:
    taken = "https://x/torch-2.8.0-py3-none-any.whl"
    words = f"Would install 1 package\n - torch==2.7.0+cu128 (from file:///x.whl)\n + torch @ {taken}\n ~ a==1\n"

    found = parse_uv_changes(words)

    assert found.removed == {"torch": "2.7.0+cu128", "a": "1"}
    assert found.installed == {"torch": "2.8.0", "a": "1"}
    assert found.urls == {"torch": taken}


def test_words_of_uv_that_say_nothing_are_no_answer() -> None:
    with pytest.raises(FormatError, match="the output of uv cannot be parsed"):
        parse_uv_changes("warning: something else\n")


@given(st.text())
def test_arbitrary_words_of_uv(words: str) -> None:
    try:
        found = parse_uv_changes(words)
    except FormatError:
        return
    assert all((*found.installed, *found.removed))


@given(
    st.recursive(
        st.none() | st.text(),
        lambda c: st.lists(c) | st.dictionaries(st.sampled_from(["install", "metadata", "name"]), c),
    )
)
def test_an_arbitrary_report_of_pip(report: object) -> None:
    try:
        found = parse_pip_report(json.dumps(report).encode(), {})
    except FormatError:
        return
    assert found.removed == {}


@given(st.binary())
def test_arbitrary_bytes_are_no_report_of_pip(data: bytes) -> None:
    with pytest.raises(FormatError):
        parse_pip_report(data, {})
