"""``wheelproof stack`` as a user runs it: the real uv, and a real index on loopback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run, Wheelproof
from tests.sources.uv.test_resolver import with_sdist
from tests.support.pairs import library
from tests.support.range_server import RangeServer, Resource, basic_auth, fail
from tests.support.simple_index import simple_index
from tests.support.wheels import WheelBuilder, torch_like
from wheel_checks.report import FORMATS

# The machine that decides: torch 2.10.0 is CUDA on x86_64 and CPU on aarch64, 2.11.0 is CUDA on both.


def small_torch(accelerator: str, version: str, machine: str) -> WheelBuilder:
    """A wheel in the shape of torch's: 2.10.0 requires a library of NVIDIA's only on x86_64, 2.11.0 none."""
    marker = 'platform_system == "Linux" and platform_machine == "x86_64"'
    requires = [f"nvidia-nccl-cu12==2.27.5; {marker}"] if version == "2.10.0" else []
    wheel = torch_like(accelerator, version, machine).metadata(requires=requires)
    if accelerator == "cuda":
        wheel.add("torch/lib/libtorch_cuda_linalg.so", library(machine, gpu=("sm_90", "sm_100"), alignment=0x10000))
    return wheel


def vllm(version: str, torch: str) -> WheelBuilder:
    return WheelBuilder("vllm", version).metadata(requires=[f"torch=={torch}", "base"])


FILES = simple_index(
    small_torch("cpu", "2.10.0", "aarch64"),
    small_torch("cuda", "2.10.0", "x86_64"),
    small_torch("cuda", "2.11.0", "aarch64"),
    small_torch("cuda", "2.11.0", "x86_64"),
    WheelBuilder("nvidia_nccl_cu12", "2.27.5"),
    WheelBuilder("base", "1.0"),
    vllm("0.19.0", "2.10.0"),
    vllm("0.20.0", "2.11.0"),
)
FILES["/simple/nvidia-nccl-cu12/"] = FILES.pop("/simple/nvidia_nccl_cu12/")


def stack(server: RangeServer, wheelproof: Wheelproof, *arguments: str) -> Run:
    return wheelproof("stack", "--index-url", server.url("/simple"), "--python", "3.12", *arguments)


def report_of(run: Run) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(run.out)
    return report


def failures(report: dict[str, Any], prefix: str = "STK") -> dict[str, str]:
    """Rule to message, of the findings of rules with this prefix."""
    return {
        result["rule"]: result["message"]
        for subject in report["subjects"]
        for result in subject["results"]
        if result["outcome"] == "fail" and result["rule"].startswith(prefix)
    }


def test_a_pin_that_gives_a_cpu_torch_fails_and_the_chain_is_named(wheelproof: Wheelproof) -> None:
    with RangeServer(FILES) as server:
        run = stack(server, wheelproof, "vllm==0.19.0", "--platform", "aarch64", "--gpu", "GB200", "-v")
    assert run.status == 1
    assert run.out.startswith("does not run on GB200: torch is a CPU build\n")
    assert (
        "torch 2.10.0 is a CPU build (2.10.0+cpu) on aarch64, although a GPU is required (GB200); vllm 0.19.0 pins "
        "torch==2.10.0"
    ) in run.out
    assert "you ask for vllm==0.19.0; vllm 0.19.0 requires torch==2.10.0" in run.out
    assert "x86_64 (sampled):" in run.out
    assert "uv pip install vllm==0.19.0 --torch-backend=cu128" in run.out


@pytest.mark.parametrize(
    ("package", "platform", "gpu", "noted"),
    [
        ("vllm==0.20.0", "aarch64", True, set()),
        ("vllm==0.19.0", "x86_64", True, set()),
        ("vllm==0.19.0", "aarch64", False, {"STK101"}),  # a note: no GPU is asked for
    ],
)
def test_a_stack_that_fits(wheelproof: Wheelproof, package: str, platform: str, gpu: bool, noted: set[str]) -> None:
    with RangeServer(FILES) as server:
        wanted = ("--gpu", "GB200") if gpu else ()
        run = stack(server, wheelproof, package, "--platform", platform, *wanted, "--format", "json")
    assert (run.status, set(failures(report_of(run)))) == (0, noted)


@pytest.mark.parametrize(
    ("driver", "gpu", "status", "first"),
    [
        ("580", "GB200", 0, "runs on GB200 with driver 580"),
        (
            "535",
            "GB200",
            1,
            "does not run on GB200 with driver 535: torch: driver 535 does not run the wheel: CUDA 13.0",
        ),
        (
            "535",
            "",
            1,
            "does not run with driver 535: torch: driver 535 does not run the wheel: CUDA 13.0 needs driver 580",
        ),
        ("700", "", 3, "not proven: torch: not known whether driver 700 runs CUDA 13.0"),
        (
            "none",
            "GB200",
            0,
            "runs on GB200 with driver 580 or newer and glibc 2.28 or newer and imports without a driver",
        ),
    ],
)
def test_the_driver_is_judged_for_every_wheel(
    wheelproof: Wheelproof, driver: str, gpu: str, status: int, first: str
) -> None:
    wanted = ("--gpu", gpu) if gpu else ()
    with RangeServer(FILES) as server:
        run = stack(server, wheelproof, "vllm==0.20.0", "--platform", "aarch64", "--driver", driver, *wanted)
    assert (run.status, run.out[: len(first)]) == (status, first)


@pytest.mark.parametrize(
    ("depth", "answered", "left"),
    [("quick", "WHL202", "WHL501"), ("links", "WHL501", "WHL008"), ("gpu", "WHL501", "WHL008"), ("full", "WHL008", "")],
)
def test_each_depth_reads_what_its_name_says(wheelproof: Wheelproof, depth: str, answered: str, left: str) -> None:
    with RangeServer(FILES) as server:
        arguments = ("vllm==0.20.0", "--platform", "aarch64", "--depth", depth, "--format", "json")
        run = stack(server, wheelproof, *arguments)
    subjects = report_of(run)["subjects"]
    (torch,) = (subject for subject in subjects if subject["id"].startswith("torch-2.11.0"))
    # At depth links, requested wheels are read, and others that link to them: see docs/stack.md.
    name = "vllm-" if depth == "links" else "torch-2.11.0"
    (read,) = (subject for subject in subjects if subject["id"].startswith(name))
    skipped = {result["rule"] for result in read["results"] if result["outcome"] == "skip"}

    assert answered not in skipped
    assert not left or left in skipped
    assert ("gpu_code" in torch["facts"]) == (depth in ("gpu", "full"))


def test_a_package_without_libraries_is_judged_by_those_that_it_requires(wheelproof: Wheelproof) -> None:
    tag = "cp312-cp312-manylinux_2_28_x86_64"
    files = simple_index(
        WheelBuilder("engine", "1.0").metadata(requires=["engine-core==1.0; extra == 'core'"]),
        WheelBuilder("engine_core", "1.0", tag)
        .metadata()
        .add("engine/_core.abi3.so", library("x86_64", needed=("libabsent.so.1",))),
    )
    files["/simple/engine-core/"] = files.pop("/simple/engine_core/")
    with RangeServer(files) as server:
        alone = stack(server, wheelproof, "engine", "--platform", "x86_64", "--depth", "links")
        run = stack(server, wheelproof, "engine[core]", "--platform", "x86_64", "--depth", "links", "--format", "json")
    assert alone.status == 0
    assert run.status == 1
    assert "libabsent.so.1" in failures(report_of(run), "WHL521")["WHL521"]


def test_the_table_holds_every_package_of_each_target(wheelproof: Wheelproof) -> None:
    with RangeServer(FILES) as server:
        run = stack(server, wheelproof, "vllm==0.19.0", "--platform", "all", "--gpu", "GB200", "--format", "json")
    stacks = [subject["facts"] for subject in report_of(run)["subjects"] if subject["kind"] == "stack"]
    assert [facts["machine"] for facts in stacks] == ["x86_64", "aarch64"]
    rows = [
        [(row["package"], row["accelerator"], row["cuda"], row["verdict"]) for row in facts["packages"]]
        for facts in stacks
    ]
    assert rows == [
        [
            ("vllm", "none", "", "pass"),
            ("base", "none", "", "pass"),
            ("nvidia-nccl-cu12", "cuda", "12", "pass"),
            ("torch", "cuda", "12.8", "pass"),
        ],
        [("vllm", "none", "", "pass"), ("base", "none", "", "pass"), ("torch", "cpu", "", "fail")],
    ]


def test_pins_that_contradict_each_other(wheelproof: Wheelproof) -> None:
    with RangeServer(FILES) as server:
        run = stack(server, wheelproof, "vllm==0.19.0", "torch==2.11.0", "--platform", "aarch64", "--format", "json")
    report = report_of(run)
    assert run.status == 1
    assert (
        "depends on torch==2.10.0 and you require vllm==0.19.0; you require torch==2.11.0" in failures(report)["STK105"]
    )
    assert report["subjects"][0]["headline"] == "cannot be resolved"


def test_packages_without_a_wheel_are_found_and_the_rest_is_judged(wheelproof: Wheelproof) -> None:
    gone = WheelBuilder("gone", tags="cp312-cp312-manylinux_2_28_x86_64")
    demo = WheelBuilder("demo").metadata(requires=["gone", "source"])
    with RangeServer(simple_index(gone, demo) | with_sdist("source")) as server:
        run = stack(server, wheelproof, "demo", "absent", "--platform", "aarch64", "--format", "json")
    found = {
        subject["facts"]["package"]: (subject["facts"]["distribution"], subject["verdict"])
        for subject in report_of(run)["subjects"]
        if subject["kind"] != "stack"
    }
    assert found == {
        "absent": ("none", "fail"),
        "demo": ("wheel", "pass"),
        "gone": ("none", "fail"),
        "source": ("sdist", "undecided"),
    }
    assert "its wheels are for manylinux_2_28_x86_64" in run.out
    assert "source 1.0 would be built on the target: requires nothing" in run.out


X86_ONLY = "cp312-cp312-manylinux_2_28_x86_64"


@pytest.mark.parametrize(
    ("second", "rule", "message"),
    [
        ("base>=1", "STK103", "base 2.0 has no file for cp312 aarch64"),
        ("base<2", "STK105", "no versions satisfy all requirements: "),
    ],
)
def test_a_missing_file_is_distinguished_from_versions_that_do_not_fit(
    wheelproof: Wheelproof, second: str, rule: str, message: str
) -> None:
    wheels = [
        WheelBuilder("first").metadata(requires=["base>=2"]),
        WheelBuilder("second").metadata(requires=[second]),
        WheelBuilder("base", "1.0"),
        WheelBuilder("base", "2.0", X86_ONLY),
    ]
    with RangeServer(simple_index(*wheels)) as server:
        run = stack(server, wheelproof, "first", "second", "--platform", "aarch64", "--format", "json")
    found = failures(report_of(run))
    assert list(found) == [rule]
    assert found[rule].startswith(message)


def test_requirements_in_a_file_and_a_project(wheelproof: Wheelproof) -> None:
    Path("requirements.txt").write_text("vllm==0.19.0  # serving\n")
    Path("pyproject.toml").write_text('[project]\nname = "mine"\nversion = "1"\ndependencies = ["vllm==0.19.0"]\n')
    with RangeServer(FILES) as server:
        for source in (("-r", "requirements.txt"), ("pyproject.toml",)):
            run = stack(server, wheelproof, *source, "--platform", "aarch64", "--gpu", "GB200")
            assert run.status == 1
            assert "you ask for vllm==0.19.0; vllm 0.19.0 requires torch==2.10.0" in run.out


def test_the_form_of_the_metadata_of_others_is_advice(wheelproof: Wheelproof) -> None:
    odd = WheelBuilder("odd").wheel("Root-Is-Purelib: true")
    with RangeServer(simple_index(odd)) as server:
        run = stack(server, wheelproof, "odd", "--platform", "aarch64", "--format", "json")
    assert run.status == 0
    assert "WHL106" in failures(report_of(run), "WHL")


def test_a_yanked_file_is_reported(wheelproof: Wheelproof) -> None:
    wheel = WheelBuilder("demo")
    with RangeServer(simple_index(wheel, attributes={wheel.file_name: 'data-yanked="broken"'})) as server:
        run = stack(server, wheelproof, "demo==1.0", "--platform", "aarch64", "--format", "json")
    assert "WHL301" in failures(report_of(run), "WHL")


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_tells_the_reason(wheelproof: Wheelproof, form: str) -> None:
    with RangeServer(FILES) as server:
        run = stack(server, wheelproof, "vllm==0.19.0", "--platform", "aarch64", "--gpu", "GB200", "--format", form)
    assert "torch 2.10.0 is a CPU build" in run.out


def test_credentials_are_used_and_never_shown(wheelproof: Wheelproof) -> None:
    files = {
        path: Resource(body, behave=[basic_auth("user", "hunter2")])
        if isinstance(body, bytes)
        else Resource(body.body, content_type=body.content_type, behave=[basic_auth("user", "hunter2")])
        for path, body in simple_index(WheelBuilder("demo")).items()
    }
    with RangeServer(files) as server:
        url = server.url("/simple").replace("://", "://user:hunter2@")
        run = wheelproof("stack", "--index-url", url, "demo", "--platform", "aarch64", "--python", "3.12", "-vv")
        json_run = wheelproof("stack", "--index-url", url, "demo", "--platform", "aarch64", "--format", "json")
    assert (run.status, json_run.status) == (0, 0)
    assert "hunter2" not in run.out + run.err + json_run.out


def test_an_index_that_does_not_answer_is_no_verdict(wheelproof: Wheelproof, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with RangeServer({"/simple/demo/": Resource(b"", behave=[fail(503)])}) as server:
        run = stack(server, wheelproof, "demo", "--platform", "aarch64")
    assert run.status == 3
    assert "answers HTTP 503" in run.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing was requested"),
        (("foo bar",), "a requirement does not parse"),
        (("demo", "--gpu", "GB2000"), "unknown GPU 'GB2000'"),
        (("demo", "--platform", "sparc"), "the platform 'sparc' is unknown"),
        (("demo", "--select", "STX"), "no rule starts with 'STX'"),
        (("-r", "none.txt"), "the file none.txt cannot be read"),
    ],
)
def test_wrong_usage(wheelproof: Wheelproof, arguments: tuple[str, ...], message: str) -> None:
    run = wheelproof("stack", "--no-index", *arguments)
    assert run.status == 2
    assert message in run.err


def test_metadata_that_is_not_the_wheels_stays_an_error(wheelproof: Wheelproof) -> None:
    demo, base = WheelBuilder("demo").metadata(requires=["base"]), WheelBuilder("base", "1.0")
    files = simple_index(demo, base, attributes={demo.file_name: "data-core-metadata=true"})
    files[f"/files/{demo.file_name}.metadata"] = b"Metadata-Version: 2.4\nName: demo\nVersion: 1.0\n"
    with RangeServer(files) as server:
        run = stack(server, wheelproof, "demo", "--platform", "aarch64", "--format", "json")
    assert run.status == 1
    assert list(failures(report_of(run), "WHL")) == ["WHL109", "WHL112"]


def test_metadata_with_another_hash_than_the_index_states_is_a_finding(wheelproof: Wheelproof) -> None:
    demo, base = WheelBuilder("demo").metadata(requires=["base"]), WheelBuilder("base", "1.0")
    files = simple_index(demo, base, attributes={demo.file_name: f'data-core-metadata="sha256={"0" * 64}"'})
    files[f"/files/{demo.file_name}.metadata"] = b"Metadata-Version: 2.4\nName: demo\nVersion: 1.0\n"
    with RangeServer(files) as server:
        run = stack(server, wheelproof, "demo", "--platform", "aarch64", "--format", "json")
    report = report_of(run)
    assert run.status == 1
    assert failures(report) == {
        "STK107": f"uv rejects the METADATA that the index serves for {demo.file_name}: its hash is not the stated one"
    }
    (result,) = (r for subject in report["subjects"] for r in subject["results"] if r["rule"] == "STK107")
    assert [row["value"][:12] for row in result["evidence"]] == ["sha256=00000", "sha256=c90ad"]
