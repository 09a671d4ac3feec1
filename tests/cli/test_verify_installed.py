"""``wheelproof verify --installed`` as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run, Wheelproof
from tests.rules.installed.installed_cases import NCCL, kernels, nccl, user, wheel
from tests.support.environments import MODULE, Installed, library


def failed(run: Run) -> list[tuple[str, str]]:
    report: dict[str, Any] = json.loads(run.out)
    return [(s["id"], r["rule"]) for s in report["subjects"] for r in s["results"] if r["outcome"] == "fail"]


def stack(folder: Path) -> Installed:
    """demo, which needs NCCL and pins it, for aarch64."""
    return Installed(folder).install(user("nvidia-nccl-cu13==2.28.9")).install(nccl())


def verify(wheelproof: Wheelproof, installed: Installed, *options: str) -> Run:
    return wheelproof("verify", "--installed", "--python", str(installed.folder), "--format", "json", *options)


def test_a_sound_environment_of_another_machine_passes(wheelproof: Wheelproof, tmp_path: Path) -> None:
    run = verify(wheelproof, stack(tmp_path / "env"), "--depth", "full")

    assert (run.status, failed(run)) == (0, [])
    environment, *distributions = json.loads(run.out)["subjects"]
    assert environment["facts"]["closure"]["needs"] == [
        {
            "elf": MODULE,
            "soname": "libnccl.so.2",
            "status": "resolved",
            "by": NCCL,
            "distribution": "nvidia-nccl-cu13",
            "how": f"RPATH of {tmp_path}/env/{MODULE}",
        }
    ]
    assert [subject["id"] for subject in distributions] == ["demo 1.0", "nvidia-nccl-cu13 2.28.9"]
    assert run.err == f"note: judging {tmp_path}/env: asked for\n"


def test_a_deleted_library_gives_exactly_two_findings(wheelproof: Wheelproof, tmp_path: Path) -> None:
    run = verify(wheelproof, stack(tmp_path / "env").remove(NCCL))

    assert run.status == 1
    assert failed(run) == [(f"{tmp_path}/env", "WHL720"), ("nvidia-nccl-cu13 2.28.9", "WHL702")]


def test_a_wrong_library_in_its_place_gives_exactly_two_findings(wheelproof: Wheelproof, tmp_path: Path) -> None:
    run = verify(
        wheelproof, stack(tmp_path / "env").write(NCCL, library("libnccl.so.2", build_id=b"of another release"))
    )

    assert run.status == 1
    assert failed(run) == [(f"{tmp_path}/env", "WHL721"), ("nvidia-nccl-cu13 2.28.9", "WHL703")]


def test_a_changed_byte_shows_at_depth_full_alone(wheelproof: Wheelproof, tmp_path: Path) -> None:
    installed = stack(tmp_path / "env").write(NCCL, library("libnccl.so.2", build_id=b"two"))

    assert failed(verify(wheelproof, installed)) == []
    assert [rule for _, rule in failed(verify(wheelproof, installed, "--depth", "full"))] == ["WHL721", "WHL704"]


def test_this_environment_is_read_and_left_alone(wheelproof: Wheelproof) -> None:
    run = wheelproof("verify", "--installed", "--python", sys.executable, "--select", "WHL70", "--format", "json")

    assert run.status in (0, 1)
    names = {subject["facts"].get("name") for subject in json.loads(run.out)["subjects"]}
    assert {"pytest", "packaging", "wheelproof"} <= names


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--installed", "torch"], "--installed judges one environment"),
        (["--installed", "--python", "a,b"], "--installed judges one environment"),
        ([], "nothing to check"),
        (["--installed", "--select", "WHL999"], "no rule starts with 'WHL999'"),
    ],
)
def test_wrong_usage(wheelproof: Wheelproof, arguments: list[str], message: str) -> None:
    run = wheelproof("verify", *arguments)

    assert (run.status, run.out) == (2, "")
    assert message in run.err


def test_a_place_without_an_environment_cannot_be_checked(wheelproof: Wheelproof, tmp_path: Path) -> None:
    run = wheelproof("verify", "--installed", "--python", str(tmp_path / "nowhere"))

    assert run.status == 3
    assert "expected: an interpreter, a virtual environment" in run.err


@pytest.mark.online
@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_what_uv_and_pip_install_for_aarch64_is_sound(wheelproof: Wheelproof, tmp_path: Path, installer: str) -> None:
    target, wheels = tmp_path / "target", [["markupsafe==3.0.3"], ["numpy==2.3.4"]]
    options = {
        "uv": ["--python-platform", "aarch64-manylinux_2_28", "--python-version", "3.12"],
        "pip": ["--platform", "manylinux_2_28_aarch64", "--python-version", "3.12", "--only-binary=:all:"],
    }
    command = [sys.executable, "-m", *(["uv", "pip"] if installer == "uv" else ["pip"]), "install", "--quiet"]
    if installer == "pip":
        wheels[1].append("--no-compile")  # it takes seconds to compile the modules of numpy
    for requirements in wheels:
        subprocess.run([*command, "--target", str(target), *options[installer], *requirements], check=True)

    run = wheelproof("verify", "--installed", "--python", str(target), "--depth", "full", "--format", "json")
    assert (run.status, failed(run)) == (0, [])
    next(target.glob("numpy.libs/libscipy_openblas64_-*.so")).unlink()
    run = wheelproof("verify", "--installed", "--python", str(target), "--format", "json")
    assert sorted({rule for _, rule in failed(run)}) == ["WHL702", "WHL720"]


def test_gpu_code_is_judged_for_the_gpus_that_are_named(wheelproof: Wheelproof, tmp_path: Path) -> None:
    installed = Installed(tmp_path / "env").install(kernels(["sm_90", "sm_100"])).install(nccl())
    options = ("verify", "--installed", "--python", str(installed.folder), "--gpu")
    good, bad = wheelproof(*options, "GH200,GB300"), wheelproof(*options, "GB200,T4G")

    assert good.status == 0
    assert "demo 1.0\n  GH200 (9.0): runs natively (sm_90)\n  GB300 (10.3): runs natively (sm_100)\n" in good.out
    assert bad.status == 1
    assert "no code for T4G (7.5) in demo/libmain.so, which has sm_90, sm_100" in bad.out
    assert f"{tmp_path}/env/demo/libmain.so" in bad.out


def test_of_many_distributions_the_table_tells_how_they_run(wheelproof: Wheelproof, tmp_path: Path) -> None:
    installed = Installed(tmp_path / "env").install(kernels(["sm_90", "compute_90"]))
    for number in range(7):
        installed.install(wheel(f"plain{number}"))
    run = wheelproof("verify", "--installed", "--python", str(installed.folder), "--gpu", "GH200,GB200,T4G")

    (row,) = [line for line in run.out.splitlines() if line.startswith("demo 1.0 ") and "FAIL" in line]
    assert "native: GH200; by JIT: GB200; not: T4G" in row
