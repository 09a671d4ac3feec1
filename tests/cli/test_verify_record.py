"""``verify --record`` and ``--same-as`` as a user runs them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.conftest import Run, Wheelproof
from tests.support.range_server import RangeServer, Resource, basic_auth, fail
from tests.support.simple_index import simple_index
from tests.support.wheels import WheelBuilder

NOTHING = {"WHL411": ("error", "error")}  # compared
TARGET = ("--platform", "aarch64", "--python", "3.12")


def demo(version: str = "1.0", content: str = "") -> WheelBuilder:
    return WheelBuilder("demo", version).add("demo/__init__.py", content)


def verify(wheelproof: Wheelproof, server: RangeServer, *arguments: str) -> Run:
    return wheelproof("verify", "demo", *TARGET, "--index-url", server.url("/simple"), *arguments)


def failed(run: Run) -> dict[str, tuple[str, str]]:
    """Rule to outcome and severity, for results about the record that did not pass."""
    return {
        result["rule"]: (result["outcome"], result["severity"])
        for subject in json.loads(run.out)["subjects"]
        for result in subject["results"]
        if subject["kind"] == "record" and result["outcome"] != "pass"
    }


def record(path: str = "record.json") -> dict[str, Any]:
    document: dict[str, Any] = json.loads(Path(path).read_text())
    return document


def test_what_is_written(wheelproof: Wheelproof) -> None:
    with RangeServer(simple_index(demo())) as server:
        run = verify(wheelproof, server, "--record", "record.json")
        index = server.url("/simple")
    assert run.status == 0
    document = record()
    jsonschema.validate(
        document, json.loads(files("wheelproof.verifying").joinpath("record.schema.json").read_text(encoding="utf-8"))
    )
    (file,) = document["files"]
    assert (file["name"], file["verdict"], file["index"]) == ("demo-1.0-py3-none-any.whl", "pass", index)
    assert list(file["hashes"]) == ["sha256"]
    assert document["asked"] == {"targets": ["demo"], "platforms": ["aarch64"], "pythons": ["3.12"], "depth": "quick"}


def test_the_same_files_pass_and_say_by_what(wheelproof: Wheelproof) -> None:
    with RangeServer(simple_index(demo())) as server:
        verify(wheelproof, server, "--record", "record.json")
        run = verify(wheelproof, server, "--same-as", "record.json", "--record", "new.json", "--format", "json")
        text = verify(wheelproof, server, "--same-as", "record.json")
    assert (run.status, failed(run)) == (0, {})
    (subject,) = (s for s in json.loads(run.out)["subjects"] if s["kind"] == "record")
    assert subject["facts"]["files"] == [
        {"file": "demo-1.0-py3-none-any.whl", "sameness": "same", "by": "sha256 as stated"}
    ]
    assert record()["files"] == record("new.json")["files"]
    assert "same as record.json\n  1 same" in text.out


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        (simple_index(demo(content="evil")), {"WHL411": ("fail", "error")}),
        (simple_index(demo("2.0")), {**NOTHING, "WHL412": ("fail", "error"), "WHL414": ("fail", "note")}),
        (simple_index(WheelBuilder("other")), {**NOTHING, "WHL412": ("error", "error")}),
        ({"/simple/demo/": Resource(behave=[fail(403)])}, {**NOTHING, "WHL412": ("error", "error")}),
    ],
    ids=["replaced", "a newer release", "gone from the index", "an index that does not answer"],
)
def test_what_has_changed_fails_and_what_is_not_known_is_undecided(
    wheelproof: Wheelproof, later: Mapping[str, bytes | Resource | Path], expected: dict[str, tuple[str, str]]
) -> None:
    with RangeServer(simple_index(demo())) as server:
        verify(wheelproof, server, "--record", "record.json")
    with RangeServer(later) as server:
        run = verify(wheelproof, server, "--same-as", "record.json", "--format", "json")
    moved = {"WHL413"} & failed(run).keys()
    assert {rule: found for rule, found in failed(run).items() if rule not in moved} == expected
    assert run.status == (1 if ("fail", "error") in expected.values() else 3)


def test_no_selection_of_rules_silences_the_comparison(wheelproof: Wheelproof) -> None:
    Path("pyproject.toml").write_text('[tool.wheelproof]\nignore = ["WHL4"]\n')
    with RangeServer(simple_index(demo())) as server:
        verify(wheelproof, server, "--record", "record.json")
    with RangeServer(simple_index(demo(content="evil"))) as server:
        for selection in ((), ("--select", "WHL0"), ("--ignore", "WHL41")):
            assert verify(wheelproof, server, "--same-as", "record.json", *selection).status == 1


def test_a_mirror_with_the_same_file_is_a_warning(wheelproof: Wheelproof) -> None:
    with RangeServer(simple_index(demo())) as server, RangeServer(simple_index(demo())) as mirror:
        verify(wheelproof, server, "--record", "record.json")
        run = verify(wheelproof, mirror, "--same-as", "record.json", "--format", "json")
    assert (run.status, failed(run)) == (0, {"WHL413": ("fail", "warning")})


def test_files_on_disk_are_hashed(wheelproof: Wheelproof) -> None:
    Path("dist").mkdir()
    demo().write(Path("dist"))
    assert wheelproof("verify", "dist", "--record", "record.json").status == 0
    assert len(record()["files"][0]["sha256"]) == 64
    assert wheelproof("verify", "dist", "--same-as", "record.json").status == 0
    built = Path("dist/demo-1.0-py3-none-any.whl")
    same_size = built.read_bytes()[:-1] + b"\1"
    built.write_bytes(same_size)
    run = wheelproof("verify", "dist", "--same-as", "record.json", "--format", "json")
    assert failed(run) == {"WHL411": ("fail", "error")}


def test_a_url_without_hash_and_validator_is_undecided_until_it_is_read_whole(wheelproof: Wheelproof) -> None:
    name = demo().file_name
    served = Resource(demo().build(), etag="")
    with RangeServer({f"/{name}": served}) as server:
        arguments = ("verify", server.url(f"/{name}"), "--no-cache")
        wheelproof(*arguments, "--record", "record.json")
        quick = wheelproof(*arguments, "--same-as", "record.json", "--format", "json")
        wheelproof(*arguments, "--record", "record.json", "--depth", "full")
        full = wheelproof(*arguments, "--same-as", "record.json", "--depth", "full", "--format", "json")
    assert (quick.status, failed(quick)) == (3, {"WHL411": ("error", "error")})
    assert (full.status, failed(full)) == (0, {})


def test_a_strong_validator_decides_for_a_url(wheelproof: Wheelproof) -> None:
    name = demo().file_name
    with RangeServer({f"/{name}": Resource(demo().build(), etag='"1"')}) as server:
        arguments = ("verify", server.url(f"/{name}"), "--no-cache")
        wheelproof(*arguments, "--record", "record.json")
        run = wheelproof(*arguments, "--same-as", "record.json", "--format", "json")
    assert (run.status, failed(run)) == (0, {})


def test_credentials_are_in_no_record(wheelproof: Wheelproof) -> None:
    pages = {
        path: Resource(
            body if isinstance(body, bytes) else body.body,
            content_type="application/octet-stream" if isinstance(body, bytes) else body.content_type,
            behave=[basic_auth("me", "hunter2")],
        )
        for path, body in simple_index(demo()).items()
    }
    with RangeServer(pages) as server:
        url = server.url("/simple", credentials="me:hunter2")
        run = wheelproof("verify", "demo", *TARGET, "--index-url", url, "--record", "record.json")
        file = server.url(f"/files/{demo().file_name}", credentials="me:hunter2")
        of_url = wheelproof("verify", file, "--record", "url.json")
    assert (run.status, of_url.status) == (0, 0)
    assert record("url.json")["files"][0]["url"] == file.replace("me:hunter2@", "")
    assert "hunter2" not in Path("record.json").read_text() + Path("url.json").read_text()


def test_a_record_appears_whole_or_not_at_all_and_with_a_verdict_that_fails(wheelproof: Wheelproof) -> None:
    with RangeServer(simple_index(demo())) as server:
        run = verify(wheelproof, server, "--record", "record.json", "--expect", "cuda")
    assert run.status == 1
    assert (record()["verdict"], record()["files"][0]["verdict"]) == ("fail", "fail")
    assert record()["files"][0]["failed"] == ["WHL201"]
    assert sorted(path.name for path in Path().iterdir()) == ["record.json"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("demo", "--same-as", "missing.json"),
        ("demo", "--record", "missing/record.json"),
        ("demo", "--record", "-"),
        ("demo", "--record", "symlink.json"),
        ("demo", "--record", "dangling.json"),
        ("demo", "--record", "record.json", "--same-as", "link.json"),
        ("demo", "--record", "record.json", "--same-as", "symlink.json"),
        ("demo", "--record", "record.json", "--same-as", "./record.json"),
        ("--installed", "--record", "record.json"),
        ("--installed", "--same-as", "record.json"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_reported_before_anything_is_read(wheelproof: Wheelproof, arguments: tuple[str, ...]) -> None:
    Path("record.json").write_text("{}")
    Path("link.json").hardlink_to("record.json")
    Path("symlink.json").symlink_to("record.json")
    Path("dangling.json").symlink_to("victim.json")
    run = wheelproof("verify", *arguments, "--index-url", "http://127.0.0.1:9/simple")
    assert (run.status, run.out) == (2, "")
    assert Path("record.json").read_text() == "{}"
    assert not Path("victim.json").exists()


def test_a_tree_sets_neither_option(wheelproof: Wheelproof) -> None:
    Path("pyproject.toml").write_text('[tool.wheelproof.verify]\nrecord = "victim.json"\nsame-as = "other.json"\n')
    with RangeServer(simple_index(demo())) as server:
        run = verify(wheelproof, server)
    assert run.status == 0
    assert not Path("victim.json").exists()
