"""Several indexes as a user meets them: chosen files, other offers, and refused links."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run, Wheelproof
from tests.support.range_server import RangeServer, Resource
from tests.support.simple_index import simple_index
from tests.support.wheels import WheelBuilder

TARGET = ("--platform", "aarch64", "--python", "3.12")


def demo(version: str, *requires: str, content: str = "") -> WheelBuilder:
    return WheelBuilder("demo", version).add("demo/__init__.py", content).metadata(requires=requires)


@contextlib.contextmanager
def two_indexes(first: list[WheelBuilder], extra: list[WheelBuilder]) -> Iterator[tuple[str, str]]:
    """The addresses of two indexes on two servers."""
    with RangeServer(simple_index(*first)) as one, RangeServer(simple_index(*extra)) as other:
        yield one.url("/simple"), other.url("/simple")


def results(run: Run) -> dict[str, tuple[str, str]]:
    """Rule to severity and message, of all findings."""
    report: dict[str, Any] = json.loads(run.out)
    return {
        result["rule"]: (result["severity"], result["message"])
        for subject in report["subjects"]
        for result in subject["results"]
        if result["outcome"] == "fail"
    }


def facts(run: Run) -> dict[str, Any]:
    """The facts of the first wheel."""
    subjects = json.loads(run.out)["subjects"]
    found: dict[str, Any] = next(s["facts"] for s in subjects if s["id"].endswith(".whl"))
    return found


@pytest.mark.parametrize("command", ["verify", "stack"])
def test_a_higher_version_on_the_extra_index_is_taken_and_named(wheelproof: Wheelproof, command: str) -> None:
    with two_indexes([demo("1.0")], [demo("99.0")]) as (first, extra):
        requested = (command, "demo", *TARGET, "--index-url", first, "--extra-index-url", extra)
        text, in_json = wheelproof(*requested, "-v"), wheelproof(*requested, "--format", "json")
        strict = wheelproof(*requested, "--fail-on", "warning")
    message = f"demo: selected from {extra}, which has a higher version than {first}, although {first} comes first"
    assert (text.status, in_json.status, strict.status) == (0, 0, 1)
    assert results(in_json)["WHL403"] == ("warning", message)
    assert message in text.out
    assert f"99.0 on {extra}, 1.0 on {first}" in text.out
    assert f"from {extra}; {first} offers 1.0" in text.out
    assert [(o["index"], o["taken"], o["version"]) for o in facts(in_json)["offers"]] == [
        (first, False, "1.0"),
        (extra, True, "99.0"),
    ]


@pytest.mark.parametrize("command", ["verify", "stack"])
def test_with_uvs_strategy_it_is_passed_over_and_a_note(
    wheelproof: Wheelproof, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    with two_indexes([demo("1.0")], [demo("99.0")]) as (first, default):
        monkeypatch.setenv("UV_INDEX", first)
        monkeypatch.setenv("UV_DEFAULT_INDEX", default)
        run = wheelproof(command, "demo", *TARGET, "--format", "json", "--fail-on", "warning")
    assert run.status == 0
    severity, message = results(run)["WHL403"]
    assert (severity, message.endswith("it is not selected")) == ("note", True)
    assert (facts(run)["version"], facts(run)["index"]) == ("1.0", first)


@pytest.mark.parametrize(
    ("first", "extra", "requested"),
    [
        ([demo("2.11.0")], [demo("2.11.0+cu130")], "demo"),
        ([demo("2.0")], [demo("1.0")], "demo"),
        ([demo("1.0")], [demo("2.0")], "demo==2.0"),
        ([], [demo("2.0")], "demo"),
        ([demo("1.0")], [demo("2.0rc1")], "demo"),
    ],
    ids=[
        "another build",
        "a lower version",
        "a version that is named",
        "a project of the second",
        "a pre-release",
    ],
)
@pytest.mark.parametrize("command", ["verify", "stack"])
def test_what_only_looks_like_confusion(
    wheelproof: Wheelproof, command: str, first: list[WheelBuilder], extra: list[WheelBuilder], requested: str
) -> None:
    with two_indexes(first, extra) as (one, other):
        run = wheelproof(
            command, requested, *TARGET, "--index-url", one, "--extra-index-url", other, "--format", "json"
        )
    assert (run.status, "WHL403" in results(run)) == (0, False)


def test_a_stack_names_what_comes_from_where(wheelproof: Wheelproof) -> None:
    with two_indexes([demo("1.0", "base")], [WheelBuilder("base", "1.0")]) as (first, extra):
        requested = ("stack", "demo", *TARGET, "--index-url", first, "--extra-index-url", extra)
        text, in_json = wheelproof(*requested), wheelproof(*requested, "--format", "json")
    assert text.status == 0
    assert f"taken from {first} (1) and {extra} (1)" in text.out
    (stack,) = (s["facts"] for s in json.loads(in_json.out)["subjects"] if s["kind"] == "stack")
    assert {row["package"]: row["index"] for row in stack["packages"]} == {"base": extra, "demo": first}


def test_an_exact_pin_of_another_package_names_a_version_too(wheelproof: Wheelproof) -> None:
    with two_indexes([demo("1.0", "base==2.0"), WheelBuilder("base", "1.0")], [WheelBuilder("base", "2.0")]) as (a, b):
        run = wheelproof("stack", "demo", *TARGET, "--index-url", a, "--extra-index-url", b, "--format", "json")
    assert (run.status, "WHL403" in results(run)) == (0, False)


@pytest.mark.parametrize("command", ["verify", "stack"])
def test_two_files_of_one_name_are_an_error_with_both(wheelproof: Wheelproof, command: str) -> None:
    with two_indexes([demo("1.0")], [demo("1.0", content="evil")]) as (first, extra):
        requested = (command, "demo", *TARGET, "--index-url", first, "--extra-index-url", extra)
        run, text = wheelproof(*requested, "--format", "json"), wheelproof(*requested)
    assert run.status == 1
    severity, message = results(run)["WHL303"]
    assert (severity, "lists a different file under this name" in message) == ("error", True)
    assert text.out.count("sha256=") == 2
    assert first in text.out
    assert extra in text.out


def test_the_same_file_on_two_indexes_is_no_finding(wheelproof: Wheelproof) -> None:
    with two_indexes([demo("1.0")], [demo("1.0")]) as (first, extra):
        run = wheelproof(
            "verify", "demo", *TARGET, "--index-url", first, "--extra-index-url", extra, "--format", "json"
        )
    assert (run.status, results(run)) == (0, {})


@pytest.mark.parametrize("command", ["verify", "stack"])
@pytest.mark.parametrize("form", ["html", "base", "json"])
def test_an_index_that_leads_to_a_file_of_this_machine(
    wheelproof: Wheelproof, tmp_path: Path, command: str, form: str
) -> None:
    secret = demo("9.0", content="secret").write(tmp_path)
    pages = {
        "html": Resource(f'<a href="{secret.as_uri()}">x</a>'.encode(), content_type="text/html"),
        "base": Resource(
            f'<base href="{tmp_path.as_uri()}/"><a href="{secret.name}">x</a>'.encode(), content_type="text/html"
        ),
        "json": Resource(
            json.dumps({"files": [{"filename": secret.name, "url": secret.as_uri(), "hashes": {}}]}).encode(),
            content_type="application/vnd.pypi.simple.v1+json",
        ),
    }
    with RangeServer({"/simple/demo/": pages[form]}) as server:
        run = wheelproof(command, "demo", *TARGET, "--index-url", server.url("/simple"), "--format", "json")
        index = server.url("/simple")
    assert run.status == 1
    assert results(run)["WHL404"] == ("error", f"{index} has links that must not be followed: {secret.name}")
    read = [s for s in json.loads(run.out)["subjects"] if s["kind"] == "wheel" or "members" in s["facts"]]
    assert read == []


def test_all_files_of_a_project_of_which_nothing_may_be_read(wheelproof: Wheelproof, tmp_path: Path) -> None:
    page = Resource(f'<a href="{demo("9.0").write(tmp_path).as_uri()}">x</a>'.encode(), content_type="text/html")
    with RangeServer({"/simple/demo/": page}) as server:
        run = wheelproof("verify", "demo", "--all-files", "--index-url", server.url("/simple"), "--format", "json")
    assert run.status == 1
    assert list(results(run)) == ["WHL404"]


def test_a_local_index_may_lead_to_local_files(wheelproof: Wheelproof, tmp_path: Path) -> None:
    wheel = demo("1.0").write(tmp_path)
    (tmp_path / "simple" / "demo").mkdir(parents=True)
    (tmp_path / "simple" / "demo" / "index.html").write_text(f'<a href="{wheel.as_uri()}">x</a>')
    for command in ("verify", "stack"):
        run = wheelproof(command, "demo", *TARGET, "--index-url", (tmp_path / "simple").as_uri(), "--format", "json")
        assert (run.status, results(run)) == (0, {})
