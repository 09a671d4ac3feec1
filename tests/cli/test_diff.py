"""``wheelproof diff`` as a user runs it: files, folders, an index on loopback, exit codes and reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.conftest import Run, Wheelproof
from tests.support.pairs import library, wheel_for
from tests.support.range_server import RangeServer
from tests.support.simple_index import simple_index
from tests.support.wheels import WheelBuilder, torch_like
from wheel_checks.report import FORMATS, schema

PYTHONS = ("cp312", "cp313")
TORCH = [
    torch_like("cpu", "2.10.0", "aarch64"),
    torch_like("cuda", "2.10.0", "x86_64", build="3"),
    *(torch_like("cuda", "2.11.0", machine, python) for machine in ("aarch64", "x86_64") for python in PYTHONS),
]


def diff_on(server: RangeServer, wheelproof: Wheelproof, *arguments: str) -> Run:
    return wheelproof("diff", "--index-url", server.url("/simple"), *arguments)


def report_of(run: Run) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(run.out)
    jsonschema.validate(report, schema())
    return report


def failed(report: dict[str, Any]) -> set[str]:
    return {r["rule"] for subject in report["subjects"] for r in subject["results"] if r["outcome"] == "fail"}


def gpu_wheels(tmp_path: Path) -> tuple[str, str]:
    """Two wheels in the shape of torch 2.11.0: other GPUs, and a linear-algebra library without kernels for one."""
    a, b = wheel_for("aarch64"), wheel_for("x86_64")
    a.add("demo/lib/libdemo_cuda.so", library(gpu=("sm_80", "sm_90", "sm_110")))
    b.add("demo/lib/libdemo_cuda.so", library("x86_64", gpu=("sm_75", "sm_80", "sm_86", "sm_90")))
    a.add("demo/lib/libdemo_cuda_linalg.so", library())
    b.add("demo/lib/libdemo_cuda_linalg.so", library("x86_64", gpu=("sm_80", "sm_90")))
    return str(a.write(tmp_path)), str(b.write(tmp_path))


# The purpose of the command.


def test_sm_110_against_sm_75_and_a_library_without_gpu_code(wheelproof: Wheelproof, tmp_path: Path) -> None:
    run = wheelproof("diff", *gpu_wheels(tmp_path), "--depth", "gpu")

    assert run.status == 0
    answer, verdict, *_ = run.out.splitlines()
    assert answer.startswith(
        "the two sides agree in accelerator, requirements, files, libraries and GPU code, apart from 1 finding that is "
        "not an error: demo/lib/libdemo_cuda_linalg.so"
    )
    assert verdict.startswith("PASS  demo 1.0 cp312: aarch64 against x86_64")
    assert (
        "REL205  demo/lib/libdemo_cuda_linalg.so has no GPU code for aarch64, but code for 2 targets for x86_64"
        in run.out
    )
    (row,) = [line for line in run.out.splitlines() if "libdemo_cuda.so" in line]
    assert row.split(maxsplit=3)[-1].split() == ["also", "sm_110", "also", "sm_75", "sm_86"]
    assert wheelproof("diff", *gpu_wheels(tmp_path), "--depth", "gpu", "--fail-on", "warning").status == 1


def test_cuda_for_one_architecture_alone(wheelproof: Wheelproof) -> None:
    with RangeServer(simple_index(*TORCH)) as server:
        run = diff_on(server, wheelproof, "torch==2.10.0", "--platform", "all", "--python", "3.12", "--format", "json")

    assert run.status == 1
    report = report_of(run)
    assert failed(report) == {"REL201"}
    (subject,) = report["subjects"]
    assert subject["kind"] == "pair"
    assert subject["id"] == "torch 2.10.0 cp312: build 3 x86_64 against aarch64"
    assert (subject["facts"]["a"]["accelerator"], subject["facts"]["b"]["accelerator"]) == ("cuda", "cpu")
    assert [row["name"] for row in subject["facts"]["differences"]["requirements"]][-1] == "triton"


def test_the_architectures_of_a_sound_release_differ_in_little(wheelproof: Wheelproof) -> None:
    with RangeServer(simple_index(*TORCH)) as server:
        run = diff_on(server, wheelproof, "torch==2.11.0", "--platform", "aarch64,x86_64", "--python", "3.12")

    assert run.status == 0
    assert "  same on both sides: 8 requirements, 2 Python files, 7 native files by name" in run.out
    assert len(run.out.splitlines()) < 15


def test_releases_are_compared_and_not_judged(wheelproof: Wheelproof) -> None:
    with RangeServer(simple_index(*TORCH)) as server:
        run = diff_on(server, wheelproof, "torch==2.10.0", "torch==2.11.0", "--platform", "aarch64", "--python", "3.12")

    assert run.status == 0
    assert "CPU only (2.10.0+cpu)" in run.out
    assert "CUDA 13.0 (2.11.0+cu130)" in run.out
    assert "7 skipped" in run.out


def test_a_local_file_against_the_index(wheelproof: Wheelproof, tmp_path: Path) -> None:
    local = torch_like("cuda", "2.11.0").add("torch/extra.py").write(tmp_path)
    with RangeServer(simple_index(*TORCH)) as server:
        run = diff_on(server, wheelproof, str(local), "torch==2.11.0", "--platform", "aarch64", "--python", "3.12")

    assert run.status == 1
    assert "1 Python file only for A" in run.out
    assert "torch/extra.py" in run.out


def test_two_pythons(wheelproof: Wheelproof) -> None:
    with RangeServer(simple_index(*TORCH)) as server:
        run = diff_on(server, wheelproof, "torch==2.11.0", "--platform", "aarch64", "--python", "3.12,3.13")

    assert run.status == 0
    answer, verdict, *_ = run.out.splitlines()
    assert answer == "the two sides agree in accelerator, requirements, files and libraries (GPU code was not compared)"
    assert verdict.startswith("PASS  torch 2.11.0 aarch64: cp312 against cp313")


# Sets.


def test_a_whole_release_pairs_each_python_with_its_own(wheelproof: Wheelproof) -> None:
    with RangeServer(simple_index(*TORCH)) as server:
        run = diff_on(
            server, wheelproof, "torch==2.11.0", "--all-files", "--platform", "aarch64,x86_64", "--format", "json"
        )

    assert [subject["id"] for subject in report_of(run)["subjects"]] == [
        "torch==2.11.0 against torch==2.11.0",
        "torch 2.11.0 cp312: aarch64 against x86_64",
        "torch 2.11.0 cp313: aarch64 against x86_64",
    ]


def test_a_wheel_that_one_folder_lacks(wheelproof: Wheelproof, tmp_path: Path) -> None:
    folders = []
    for name, pythons in (("new", PYTHONS), ("old", PYTHONS[:1])):
        folders.append(tmp_path / name)
        folders[-1].mkdir()
        for python in pythons:
            wheel_for(python=python).write(folders[-1])

    run = wheelproof("diff", *map(str, folders), "--format", "json")

    assert run.status == 0
    assert failed(report_of(run)) == {"REL208"}


def test_of_many_pairs_the_findings_are_reported_and_the_tables_on_demand(
    wheelproof: Wheelproof, tmp_path: Path
) -> None:
    for minor in range(8, 15):
        for machine in ("aarch64", "x86_64"):
            wheel_for(machine, python=f"cp3{minor}").write(tmp_path)
    arguments = ("diff", str(tmp_path), "--platform", "aarch64,x86_64")

    assert "same on both sides" not in wheelproof(*arguments).out
    assert wheelproof(*arguments, "-v").out.count("same on both sides") == 7


# Formats.


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_tells_the_finding(wheelproof: Wheelproof, tmp_path: Path, name: str) -> None:
    run = wheelproof("diff", *gpu_wheels(tmp_path), "--depth", "gpu", "--format", name)

    assert run.status == 0
    assert "REL205" in run.out


def test_markdown_has_the_table_and_quiet_has_none(wheelproof: Wheelproof, tmp_path: Path) -> None:
    wheels = gpu_wheels(tmp_path)

    page = wheelproof("diff", *wheels, "--depth", "gpu", "--format", "markdown").out
    quiet = wheelproof("diff", *wheels, "--depth", "gpu", "--quiet").out

    assert "| demo/lib/libdemo_cuda.so (2 alike) | also sm_110 | also sm_75 sm_86 |" in page
    assert len(quiet.splitlines()) == 2  # the answer and the verdict


# What cannot be compared.


def test_a_broken_wheel_is_undecided(wheelproof: Wheelproof, tmp_path: Path) -> None:
    broken = tmp_path / "demo-1.0-cp312-cp312-manylinux_2_28_x86_64.whl"
    broken.write_bytes(b"<html>502 Bad Gateway</html>")

    run = wheelproof("diff", str(wheel_for().write(tmp_path)), str(broken))

    assert run.status == 3
    assert "HTML" in run.out


def test_no_selection_of_rules_makes_a_broken_wheel_pass(wheelproof: Wheelproof, tmp_path: Path) -> None:
    broken = tmp_path / "demo-1.0-cp312-cp312-manylinux_2_28_x86_64.whl"
    broken.write_bytes(b"")

    assert wheelproof("diff", str(wheel_for().write(tmp_path)), str(broken), "--select", "REL203").status == 3


def test_a_side_that_the_index_does_not_have(wheelproof: Wheelproof) -> None:
    with RangeServer(simple_index(WheelBuilder(tags="cp312-cp312-manylinux_2_28_aarch64"))) as server:
        absent = diff_on(server, wheelproof, "demo==1.0", "--platform", "aarch64,x86_64", "--python", "3.12")
        unknown = diff_on(server, wheelproof, "demo", "other", "--platform", "aarch64", "--python", "3.12")

    assert (absent.status, unknown.status) == (3, 3)
    assert "demo==1.0 for cp312 x86_64" in absent.err
    assert "other" in unknown.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("torch",),
        ("a", "b", "c"),
        ("torch", "--platform", "aarch64,sparc"),
        ("torch", "--platform", "all", "--select", "XYZ"),
        (),
    ],
)
def test_wrong_usage_exits_2_before_anything_is_read(wheelproof: Wheelproof, arguments: tuple[str, ...]) -> None:
    run = wheelproof("diff", *arguments)

    assert run.status == 2
    assert run.err.startswith("wheelproof: error: ")
    assert run.out == ""
