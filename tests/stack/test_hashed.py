"""A requirements file with hashes is judged as it is: the files that its hashes admit, and no resolution."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Wheelproof
from tests.support.range_server import RangeServer
from tests.support.simple_index import simple_index
from tests.support.wheels import WheelBuilder, gpu_library

X86, ARM = "cp312-cp312-manylinux_2_28_x86_64", "cp312-cp312-manylinux_2_28_aarch64"


def native(version: str, tag: str) -> WheelBuilder:
    machine = tag.partition("manylinux_2_28_")[2]
    return WheelBuilder("native", version, tag).add("native/_C.so", gpu_library(machine, []))


APP = WheelBuilder("app", "1.0").metadata(requires=["base<3", "native>=1"])
BASE = WheelBuilder("base", "1.0")
NEWER = WheelBuilder("base", "2.0")
ON_X86, ON_ARM = native("1.0", X86), native("1.0", ARM)
FILES = simple_index(APP, BASE, NEWER, ON_X86, ON_ARM)


def line(requirement: str, *wheels: WheelBuilder) -> str:
    """A line as uv and pip-compile write it."""
    digests = [hashlib.sha256(wheel.build()).hexdigest() for wheel in wheels]
    return requirement + "".join(f" \\\n    --hash=sha256:{digest}" for digest in digests) + "\n    # via app\n"


WHOLE = line("app==1.0", APP) + line("base==1.0", BASE) + line("native==1.0", ON_X86, ON_ARM)


def judge(
    wheelproof: Wheelproof, folder: Path, text: str, *more: str, files: Mapping[str, Any] = FILES
) -> tuple[int, dict[str, Any]]:
    """The exit code and the report for aarch64, Python 3.12."""
    (folder / "requirements.txt").write_text(text)
    with RangeServer(dict(files)) as server:
        target = ["--platform", "aarch64", "--python", "3.12", "--format", "json"]
        run = wheelproof(
            "stack", "-r", str(folder / "requirements.txt"), "--index-url", server.url("/simple"), *target, *more
        )
    return run.status, json.loads(run.out)


def packages(report: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    rows = next(s for s in report["subjects"] if s["kind"] == "stack")["facts"]["packages"]
    return {row["package"]: (row["version"], row["distribution"]) for row in rows}


def findings(report: Mapping[str, Any]) -> list[tuple[str, str, str, int]]:
    """Rule, outcome, message and line of failed results, except those about wheels."""
    return [
        (r["rule"], r["outcome"], r["message"], r["location"].get("line", 0))
        for subject in report["subjects"]
        for r in subject["results"]
        if r["outcome"] in ("fail", "error") and r["rule"].startswith("STK")
    ]


def test_the_file_of_the_target_is_taken_and_nothing_newer(
    wheelproof: Wheelproof, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wheelproof.stacks.resolution.resolve", lambda *_, **__: pytest.fail("uv was queried"))
    code, report = judge(wheelproof, tmp_path, WHOLE)
    assert packages(report) == {"app": ("1.0", "wheel"), "base": ("1.0", "wheel"), "native": ("1.0", "wheel")}
    assert any(ON_ARM.file_name in subject["id"] for subject in report["subjects"])
    assert (code, findings(report)) == (0, [])


def test_a_package_without_an_admitted_file_for_the_platform(wheelproof: Wheelproof, tmp_path: Path) -> None:
    text = WHOLE.replace(line("native==1.0", ON_X86, ON_ARM), line("native==1.0", ON_X86))
    code, report = judge(wheelproof, tmp_path, text)
    [(rule, outcome, message, number)] = findings(report)
    assert (code, rule, outcome, number) == (1, "STK103", "fail", 7)
    assert message == (
        "native 1.0 has no file for cp312 aarch64 among those that requirements.txt:7 has hashes of; "
        f"the index has {ON_ARM.file_name}"
    )


def test_a_release_without_a_file_for_the_platform(wheelproof: Wheelproof, tmp_path: Path) -> None:
    text = WHOLE.replace(line("native==1.0", ON_X86, ON_ARM), line("native==1.0", ON_X86))
    code, report = judge(wheelproof, tmp_path, text, files=simple_index(APP, BASE, ON_X86))
    [(rule, _, message, number)] = findings(report)
    assert (code, rule, number) == (1, "STK103", 7)
    assert "native" in message
    assert "x86_64" in message


def test_a_marker_leaves_a_line_out(wheelproof: Wheelproof, tmp_path: Path) -> None:
    text = WHOLE + line('other==1.0 ; platform_machine == "x86_64"', BASE)
    code, report = judge(wheelproof, tmp_path, text)
    assert (code, sorted(packages(report))) == (0, ["app", "base", "native"])


def test_a_line_without_a_hash_is_refused_as_by_pip(wheelproof: Wheelproof, tmp_path: Path) -> None:
    text = line("app==1.0", APP) + "base==1.0\nnative>=1 --hash=sha256:" + "0" * 64 + "\n"
    code, report = judge(wheelproof, tmp_path, text)
    assert (code, findings(report)) == (
        1,
        [
            ("STK120", "fail", "base==1.0 has no hash, but other lines have hashes: pip rejects the file", 4),
            (
                "STK120",
                "fail",
                "native>=1 is not pinned to one version by ==, but other lines have hashes: pip rejects the file",
                5,
            ),
        ],
    )


def test_a_requirement_that_the_file_does_not_list(wheelproof: Wheelproof, tmp_path: Path) -> None:
    code, report = judge(wheelproof, tmp_path, line("app==1.0", APP) + line("base==1.0", BASE))
    [(rule, outcome, message, number)] = findings(report)
    assert (code, rule, outcome, number) == (3, "STK121", "error", 1)
    assert message.startswith("app 1.0 requires native>=1, which the file with hashes does not list")


def test_two_versions_of_one_package(wheelproof: Wheelproof, tmp_path: Path) -> None:
    code, report = judge(wheelproof, tmp_path, WHOLE + line("base==2.0", NEWER))
    [(rule, _, message, _)] = findings(report)
    assert (code, rule) == (1, "STK105")
    assert "requirements.txt:4 requires base==1.0; requirements.txt:11 requires base==2.0" in message


def test_a_yanked_file_is_taken_by_a_pin(wheelproof: Wheelproof, tmp_path: Path) -> None:
    yanked = {BASE.file_name: 'data-yanked="broken"'}
    files = simple_index(APP, BASE, NEWER, ON_X86, ON_ARM, attributes=yanked)
    code, report = judge(wheelproof, tmp_path, WHOLE, files=files)
    assert (code, packages(report)["base"]) == (0, ("1.0", "wheel"))


def test_hashes_that_the_index_does_not_state(wheelproof: Wheelproof, tmp_path: Path) -> None:
    digest = hashlib.sha512(BASE.build()).hexdigest()
    text = WHOLE.replace(line("base==1.0", BASE), f"base==1.0 --hash=sha512:{digest}\n")
    code, report = judge(wheelproof, tmp_path, text)
    assert code == 3
    assert packages(report)["base"] == ("", "declared")


def test_metadata_that_installers_take_decides_nothing(wheelproof: Wheelproof, tmp_path: Path) -> None:
    early = WheelBuilder("early", "1.0").metadata("License-Expression: MIT", metadata_version="2.3")
    code, report = judge(wheelproof, tmp_path, line("early==1.0", early), files=simple_index(early))
    results = [r for s in report["subjects"] for r in s["results"] if r["rule"] == "WHL106"]
    assert [(r["outcome"], r["audience"]) for r in results] == [("fail", "publisher")]
    assert code == 0


@pytest.mark.parametrize(("fragment", "rules"), [("sha256", []), ("md5sum", ["STK120"])])
def test_an_address_with_its_hash(wheelproof: Wheelproof, tmp_path: Path, fragment: str, rules: list[str]) -> None:
    (tmp_path / BASE.file_name).write_bytes(BASE.build())
    digest = hashlib.sha256(BASE.build()).hexdigest()
    address = f"base @ {(tmp_path / BASE.file_name).as_uri()}#{fragment}={digest}\n"
    _, report = judge(wheelproof, tmp_path, line("app==1.0", APP) + line("native==1.0", ON_ARM) + address)
    assert [rule for rule, *_ in findings(report)] == rules
