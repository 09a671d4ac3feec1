"""``wheelproof verify`` as a user runs it: real files, a real index on loopback, exit codes and reports."""

from __future__ import annotations

import json
import random
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run, Wheelproof
from tests.support.range_server import RangeServer, Resource, basic_auth, fail, no_ranges
from tests.support.simple_index import simple_index
from tests.support.wheels import WheelBuilder, torch_like

TORCH = [
    torch_like("cpu", "2.10.0", "aarch64"),
    torch_like("cuda", "2.10.0", "x86_64"),
    torch_like("cuda", "2.10.0", "x86_64", build="3"),
    torch_like("cuda", "2.11.0", "aarch64"),
    torch_like("cuda", "2.11.0", "x86_64"),
]


def verify_on(server: RangeServer, wheelproof: Wheelproof, *arguments: str) -> Run:
    return wheelproof("verify", "--index-url", server.url("/simple"), "--python", "3.12", *arguments)


def report_of(run: Run) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(run.out)
    return report


def failed(report: dict[str, Any]) -> set[str]:
    return {
        result["rule"] for subject in report["subjects"] for result in subject["results"] if result["outcome"] == "fail"
    }


# The case that the project exists for.


def test_the_aarch64_wheel_of_2_10_is_cpu_only_and_the_fix_is_named(wheelproof: Wheelproof) -> None:
    with RangeServer(simple_index(*TORCH)) as server:
        run = verify_on(server, wheelproof, "torch==2.10.0", "--platform", "aarch64", "--expect", "cuda")
    assert run.status == 1
    answer, verdict, *rest = run.out.splitlines()
    assert answer == (
        "torch 2.10.0 for aarch64 is not a build for cuda: the wheel is CPU only (2.10.0+cpu); expected cuda"
    )
    assert verdict.startswith("FAIL  torch-2.10.0-cp312-cp312-manylinux_2_28_aarch64.whl, CPU only (2.10.0+cpu)")
    text = "\n".join(rest)
    assert "the wheel is CPU only (2.10.0+cpu); expected cuda" in text
    for signal in (
        "no GPU code, and no library of a GPU is needed",
        "__version__ = '2.10.0+cpu', cuda",
        "none on linux aarch64",
    ):
        assert signal in text
    assert "pip install torch==2.11.0" in text
    assert "uv pip install torch==2.10.0 --torch-backend=cu128" in text


def test_the_x86_64_wheel_of_2_10_is_cuda_and_build_tag_3_wins(wheelproof: Wheelproof) -> None:
    with RangeServer(simple_index(*TORCH)) as server:
        run = verify_on(
            server, wheelproof, "torch==2.10.0", "--platform", "x86_64", "--expect", "cuda", "--format", "json"
        )
    assert run.status == 0
    (subject,) = report_of(run)["subjects"]
    assert subject["facts"]["build"] == "3"
    assert subject["facts"]["cuda"] == "12.8"


def test_all_platforms_of_2_11_are_cuda_13(wheelproof: Wheelproof) -> None:
    with RangeServer(simple_index(*TORCH)) as server:
        run = verify_on(
            server, wheelproof, "torch==2.11.0", "--platform", "all", "--expect", "cuda==13.0", "--format", "json"
        )
    assert run.status == 0
    facts = [subject["facts"] for subject in report_of(run)["subjects"]]
    assert [(f["machine"], f["accelerator"], f["cuda"]) for f in facts] == [
        ("x86_64", "cuda", "13.0"),
        ("aarch64", "cuda", "13.0"),
    ]


def test_without_an_expectation_the_cpu_sibling_is_a_warning(wheelproof: Wheelproof) -> None:
    with RangeServer(simple_index(*TORCH)) as server:
        arguments = ("torch==2.10.0", "--platform", "aarch64")
        assert verify_on(server, wheelproof, *arguments).status == 0
        strict = verify_on(server, wheelproof, *arguments, "--fail-on", "warning", "--format", "json")
    assert strict.status == 1
    assert failed(report_of(strict)) == {"WHL203"}


def test_all_files_judges_every_wheel_of_the_matching_releases(wheelproof: Wheelproof) -> None:
    with RangeServer(simple_index(*TORCH)) as server:
        arguments = ("torch>=2.9,<2.12", "--platform", "all", "--all-files", "--format")
        table = verify_on(server, wheelproof, *arguments, "markdown").out
        report = report_of(verify_on(server, wheelproof, *arguments, "json"))
    assert len(report["subjects"]) == len(TORCH)
    assert {s["facts"]["accelerator"] for s in report["subjects"]} == {"cpu", "cuda"}
    assert "CUDA 13.0" in table
    assert "CPU" in table


def test_a_yanked_file_is_taken_for_an_exact_pin_and_reported(wheelproof: Wheelproof) -> None:
    wheel = WheelBuilder()
    files = simple_index(wheel, attributes={wheel.file_name: 'data-yanked="broken"'})
    with RangeServer(files) as server:
        run = verify_on(server, wheelproof, "demo==1.0", "--platform", "x86_64", "--format", "json")
        assert verify_on(server, wheelproof, "demo", "--platform", "x86_64").status == 1
    assert run.status == 0
    assert "WHL301" in failed(report_of(run))


# Local files.


QUESTIONS = [
    ("torch==2.10.0", "--platform", "aarch64", "--gpu", "GB200"),
    ("torch==2.10.0", "--platform", "all"),
    ("torch==2.11.0", "--platform", "aarch64", "--depth", "links"),
    ("torch==2.11.0", "--platform", "x86_64", "--gpu", "T4,H100", "--depth", "gpu"),
    ("torch==2.11.0", "--platform", "x86_64", "--gpu", "H100"),
    ("torch==2.11.0", "--platform", "aarch64", "--depth", "full"),
]


def test_no_verdict_depends_on_the_cache_or_on_other_wheels(wheelproof: Wheelproof, tmp_path: Path) -> None:
    """Each question alone with an empty cache, with one that all others filled, and with the other release."""

    def asked(server: RangeServer, question: tuple[str, ...], cache: str) -> tuple[int, dict[str, list[str]]]:
        options = ("--format", "json", "--cache-dir", str(tmp_path / cache))
        run = verify_on(server, wheelproof, *question, *options)
        return run.status, {
            subject["id"]: sorted(f"{r['rule']} {r['outcome']} {r['message']}" for r in subject["results"])
            for subject in report_of(run)["subjects"]
        }

    with RangeServer(simple_index(*TORCH)) as server:
        alone = [asked(server, question, f"empty-{number}") for number, question in enumerate(QUESTIONS)]
        for question in reversed(QUESTIONS):
            asked(server, question, "full")
        assert [asked(server, question, "full") for question in QUESTIONS] == alone
        for question, (_, subjects) in zip(QUESTIONS, alone, strict=True):
            other = "torch==2.11.0" if question[0] == "torch==2.10.0" else "torch==2.10.0"
            _, together = asked(server, (question[0], other, *question[1:]), "full")
            assert {name: together[name] for name in subjects} == subjects


CP313_AARCH64 = WheelBuilder(tags="cp313-cp313-manylinux_2_28_aarch64").metadata(requires_python=">=3.13")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--python", "3.11", "--platform", "x86_64"), "not built for cp311 x86_64 with glibc 2.39"),
        (("--python", "3.11"), "not built for cp311 aarch64 with glibc 2.28"),
        (("--platform", "x86_64"), "not built for cp313 x86_64 with glibc 2.39"),
        (("--python", "3.13", "--platform", "x86_64,aarch64"), "not built for cp313 x86_64 with glibc 2.39"),
        (("--python", "3.13", "--platform", "aarch64"), ""),
        (("--python", "3.13"), ""),
        (("--platform", "aarch64"), ""),
        (("--gpu", "H100"), ""),
    ],
)
def test_a_file_is_compared_with_the_named_targets(
    options: tuple[str, ...], says: str, wheelproof: Wheelproof, tmp_path: Path
) -> None:
    (tmp_path / CP313_AARCH64.file_name).write_bytes(CP313_AARCH64.build())

    run = wheelproof("verify", str(tmp_path / CP313_AARCH64.file_name), *options, "--select", "WHL126")

    assert (run.status, says in run.out) == (1 if says else 3 if "--gpu" in options else 0, True), run.out


@pytest.mark.parametrize(("python", "status"), [("3.13", 0), ("3.12", 0), ("3.11", 1)])
def test_the_wheels_of_a_folder_serve_the_named_targets_together(
    python: str, status: int, wheelproof: Wheelproof, tmp_path: Path
) -> None:
    for tag in ("cp312", "cp313"):
        wheel = WheelBuilder(tags=f"{tag}-{tag}-manylinux_2_28_aarch64")
        (tmp_path / wheel.file_name).write_bytes(wheel.build())

    run = wheelproof("verify", str(tmp_path), "--platform", "aarch64", "--python", python)

    assert (run.status, "WHL126" in run.out) == (status, status == 1), run.out


def test_the_pythons_of_a_projects_configuration_choose_wheels_and_refuse_none(
    wheelproof: Wheelproof, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wheelproof.toml").write_text('[verify]\npython = ["3.11", "3.12"]\n')
    (tmp_path / CP313_AARCH64.file_name).write_bytes(CP313_AARCH64.build())
    monkeypatch.chdir(tmp_path)

    assert wheelproof("verify", CP313_AARCH64.file_name).status == 0


def test_a_folder_of_wheels(wheelproof: Wheelproof, tmp_path: Path) -> None:
    WheelBuilder().write(tmp_path)
    torch_like().write(tmp_path)
    run = wheelproof("verify", str(tmp_path), "--format", "json")
    assert run.status == 0
    assert [subject["facts"]["name"] for subject in report_of(run)["subjects"]] == ["demo", "torch"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"just text\n", "looks like text"),
        (b"", "empty"),
        (b"<!DOCTYPE html><html><body>502 Bad Gateway</body></html>", "HTML"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "LFS"),
        (torch_like().build()[:-500], "zip"),
    ],
    ids=["text", "empty", "html", "lfs", "truncated"],
)
def test_a_file_that_is_no_wheel_is_a_finding_in_one_sentence(
    wheelproof: Wheelproof, tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "demo-1.0-py3-none-any.whl"
    path.write_bytes(content)
    run = wheelproof("verify", str(path), "--format", "json")
    assert run.status == 1
    (subject,) = report_of(run)["subjects"]
    (finding,) = [result for result in subject["results"] if result["outcome"] == "fail"]
    assert finding["rule"] == "WHL001"
    assert message in finding["message"]
    assert "Traceback" not in run.out + run.err


def test_a_member_that_climbs_out_of_the_folder(wheelproof: Wheelproof, tmp_path: Path) -> None:
    path = WheelBuilder().add("../../etc/cron.d/evil", "x").write(tmp_path)
    run = wheelproof("verify", str(path))
    assert run.status == 1
    assert "leads outside the install folder" in run.out


def test_depth_full_finds_one_flipped_byte(wheelproof: Wheelproof, tmp_path: Path) -> None:
    payload = bytes(range(256)) * 40
    path = WheelBuilder().add("demo/data.bin", payload, method=0).write(tmp_path)
    data = bytearray(path.read_bytes())
    data[data.index(payload) + 5000] ^= 1
    path.write_bytes(data)
    assert wheelproof("verify", str(path)).status == 0
    run = wheelproof("verify", str(path), "--depth", "full", "--format", "json")
    assert run.status == 1
    assert failed(report_of(run)) == {"WHL124"}


def test_a_wheel_above_the_limit(wheelproof: Wheelproof, tmp_path: Path) -> None:
    path = WheelBuilder().add("demo/a.bin", bytes(2000), method=0).write(tmp_path)
    assert wheelproof("verify", str(path), "--max-size", "1GB").status == 0
    run = wheelproof("verify", str(path), "--max-size", "1kB")
    assert run.status == 1
    assert "WHL302" in run.out


# What cannot be checked.


def test_an_unknown_package_and_a_missing_file_are_undecided(wheelproof: Wheelproof) -> None:
    with RangeServer(simple_index(WheelBuilder())) as server:
        unknown = verify_on(server, wheelproof, "no-such-package", "--platform", "x86_64")
    missing = wheelproof("verify", "missing.whl")
    assert (unknown.status, missing.status) == (3, 3)
    assert "no project 'no-such-package' is known to" in unknown.out
    assert "there is no file missing.whl" in missing.out


def test_one_unreadable_target_does_not_hide_the_others(wheelproof: Wheelproof, tmp_path: Path) -> None:
    path = WheelBuilder().write(tmp_path)
    run = wheelproof("verify", "missing.whl", str(path), "--format", "json")
    assert run.status == 3
    assert [subject["verdict"] for subject in report_of(run)["subjects"]] == ["undecided", "pass"]


def test_no_selection_of_rules_turns_an_unreadable_wheel_into_a_pass(wheelproof: Wheelproof) -> None:
    assert wheelproof("verify", "missing.whl", "--select", "WHL2").status == 3
    assert wheelproof("verify", "missing.whl", "--ignore", "WHL0").status == 3


def test_an_index_that_answers_500(wheelproof: Wheelproof) -> None:
    with RangeServer({"/simple/demo/": Resource(behave=[fail(500)])}) as server:
        run = verify_on(server, wheelproof, "demo", "--platform", "x86_64")
    assert run.status == 3
    assert "500" in run.out
    assert "Traceback" not in run.out + run.err


def test_a_server_without_ranges_is_reported_and_downloads_only_when_allowed(wheelproof: Wheelproof) -> None:
    wheel = WheelBuilder().add("demo/large.bin", random.Random(0).randbytes(200_000))
    files = simple_index(wheel) | {f"/files/{wheel.file_name}": Resource(wheel.build(), behave=[no_ranges()])}
    with RangeServer(files) as server:
        refused = verify_on(server, wheelproof, "demo", "--platform", "x86_64", "--no-cache")
        allowed = verify_on(server, wheelproof, "demo", "--platform", "x86_64", "--no-cache", "--allow-download")
        smaller = verify_on(
            server, wheelproof, "demo", "--platform=x86_64", "--no-cache", "--allow-download", "--max-download=100k"
        )
        wrong = verify_on(server, wheelproof, "demo", "--platform", "x86_64", "--max-download", "much")
    assert refused.status == 3
    assert "--allow-download" in refused.out
    assert allowed.status == 0
    assert smaller.status == 3
    assert "at most 100.0 kB to download" in smaller.out
    assert wrong.status == 2


def test_credentials_are_used_and_never_printed(wheelproof: Wheelproof) -> None:
    wheel = WheelBuilder()
    with RangeServer(simple_index(wheel), behave=[basic_auth("user", "s3cret")]) as server:
        url = server.url("/simple", credentials="user:s3cret")
        known = wheelproof("verify", "demo", "--platform", "x86_64", "--index-url", url, "--format", "json", "-vv")
        unknown = wheelproof("verify", "other", "--platform", "x86_64", "--index-url", url, "-vv")
        refused = wheelproof("verify", "demo", "--platform", "x86_64", "--index-url", server.url("/simple"))
    assert (known.status, unknown.status, refused.status) == (0, 3, 3)
    assert "s3cret" not in known.out + known.err + unknown.out + unknown.err
    assert "401" in refused.out


def test_a_password_in_a_direct_reference_is_not_printed(wheelproof: Wheelproof) -> None:
    with RangeServer({}) as server:
        url = server.url("/files/demo-1.0-py3-none-any.whl", credentials="user:s3cret")
        for target in (url, f"demo @ {url}"):
            run = wheelproof("verify", target, "--platform", "x86_64", "--format", "json")
            assert run.status == 3
            assert "s3cret" not in run.out + run.err


def test_offline_answers_from_the_cache_and_says_so_when_it_cannot(wheelproof: Wheelproof) -> None:
    with RangeServer(simple_index(WheelBuilder())) as server:
        cold = verify_on(server, wheelproof, "demo", "--platform", "x86_64", "--offline")
        assert verify_on(server, wheelproof, "demo", "--platform", "x86_64").status == 0
        count = len(server.requests)
        warm = verify_on(server, wheelproof, "demo", "--platform", "x86_64", "--offline")
        assert len(server.requests) == count
    assert cold.status == 3
    assert "--offline" in cold.out
    assert warm.status == 0


# Wrong usage.


@pytest.mark.parametrize(
    "arguments",
    [
        ("torch=>2",),
        ("torch", "--platform", "sparc"),
        ("torch", "--python", "2.7"),
        ("torch", "--expect", "cuuda"),
        ("torch", "--max-size", "big"),
        ("torch", "--select", "XYZ"),
        (),
    ],
)
def test_wrong_usage_exits_2_before_anything_is_read(wheelproof: Wheelproof, arguments: tuple[str, ...]) -> None:
    run = wheelproof("verify", *arguments)
    assert run.status == 2
    assert run.err.startswith("wheelproof: error: ")
    assert run.out == ""


# Bounds.


def test_a_wheel_of_half_a_gigabyte_is_judged_in_little_memory(wheelproof: Wheelproof, tmp_path: Path) -> None:
    path = WheelBuilder().write(tmp_path)
    data = path.read_bytes()
    with path.open("wb") as file:  # a sparse file: the archive at the end, half a gigabyte of nothing before it
        file.seek(512 * 1024 * 1024)
        file.write(data)
    tracemalloc.start()
    try:
        run = wheelproof("verify", str(path), "--format", "json")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert run.status in {0, 1}
    assert peak < 60 * 1024 * 1024


def test_windows_and_macos_are_judged_for_what_can_be_said(wheelproof: Wheelproof) -> None:
    wheels = [WheelBuilder(tags=f"cp312-cp312-{tag}") for tag in ("win_amd64", "macosx_11_0_arm64")]
    with RangeServer(simple_index(*wheels)) as server:
        run = verify_on(
            server, wheelproof, "demo", "--platform", "win_amd64", "--platform", "macosx_14_0_arm64", "--expect=cpu"
        )
        assert run.status == 0, run.out
        assert (
            "demo 1.0 for Windows x86_64 has no accelerator\ndemo 1.0 for macOS aarch64 has no accelerator" in run.out
        )
        missing = verify_on(server, wheelproof, "demo", "--platform", "win_arm64")
        assert missing.status == 1
        assert "has no file for cp312 Windows aarch64" in missing.out
        links = verify_on(server, wheelproof, "demo", "--platform", "win_amd64", "--depth", "links")
        assert links.status == 3
        assert "libraries of Windows are not followed" in links.out
        gpu = verify_on(server, wheelproof, "demo", "--platform", "win_amd64", "--gpu", "H100")
        assert gpu.status == 2
        assert "--gpu, --driver and --cpu describe Linux hosts" in gpu.err
