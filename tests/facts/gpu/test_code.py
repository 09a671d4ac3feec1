"""Which code a wheel is judged by, how it runs, and how the report says that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.rendering import rendered
from tests.support.wheel_facts import facts_of
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.gpu.code import GpuCodeFacts, LibraryGpuCode, runs_how, share_of
from wheel_checks.facts.gpu.targets import parse_gpu, parse_gpus
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.facts.wheel.summary import summarize
from wheel_checks.formats.gpu.fatbin import GpuCode
from wheel_checks.model import Report, Subject, Unavailable


def code(*containers: str, declared: bool = False) -> GpuCode:
    """Exact code of files for some targets each ("sm_80 sm_90"), or the one list that is declared."""
    if declared:
        return GpuCode(dict.fromkeys(containers[0].split(), 0), "declared", {})
    whole = GpuCode({}, "exact", {})
    for labels in containers:
        whole += GpuCode(dict.fromkeys(labels.split(), 1), "exact", {frozenset(labels.split()): 1})
    return whole


def facts(*, declared: str = "", **libraries: GpuCode | Unavailable) -> GpuCodeFacts:
    """The facts of a wheel with these libraries."""
    known = tuple(LibraryGpuCode(f"demo/{name}.so", found) for name, found in libraries.items())
    return GpuCodeFacts(known, code(declared, declared=True) if declared else None)


UNREAD = Unavailable("it has 300,000,000 bytes", "--depth gpu reads it whole")


def test_the_main_library_is_that_for_the_most_targets_not_that_with_the_most_code() -> None:
    found = facts(attention=code(*["sm_80 sm_90a"] * 200), main=code("sm_80 sm_90 sm_100"), host=code())

    assert found.main == ("demo/main.so", code("sm_80 sm_90 sm_100"))
    assert found.verdict == found.main
    assert [member for member, _ in found.known] == ["demo/attention.so", "demo/main.so"]


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (facts(), None),
        (facts(host=code()), None),
        (facts(main=code("sm_90"), declared="sm_80"), ("demo/main.so", code("sm_90"))),
        (facts(main=UNREAD, small=code("sm_90"), declared="sm_80"), ("", code("sm_80", declared=True))),
        (facts(declared="sm_80"), ("", code("sm_80", declared=True))),
        (
            facts(small=code("sm_90"), main=UNREAD),
            Unavailable("the GPU code of demo/main.so is unknown: it has 300,000,000 bytes", UNREAD.hint),
        ),
    ],
)
def test_what_a_wheel_is_judged_by(found: GpuCodeFacts, verdict: object) -> None:
    assert found.verdict == verdict


TORCH = code(*["sm_80 sm_90 sm_100"] * 9, "sm_80 sm_90 sm_90a sm_100 sm_103a compute_75")


@pytest.mark.parametrize(
    ("gpu", "how", "label"),
    [
        ("GH200", "native", "sm_90"),  # sm_90a is in one file of ten
        ("GB300", "native", "sm_100"),  # and so is sm_103a
        ("T4", "jit", "compute_75"),
        ("V100", "none", ""),
    ],
)
def test_the_label_that_is_told_is_that_of_most_files(gpu: str, how: str, label: str) -> None:
    told = runs_how(TORCH, parse_gpu(gpu))

    assert (told.how, told.label) == (how, label)


def test_shares() -> None:
    assert share_of(TORCH, ["sm_90"]) == 1
    assert share_of(TORCH, ["sm_90a", "sm_103a"]) == pytest.approx(0.1)
    assert share_of(code("sm_90", declared=True), ["sm_90"]) == 0


def wheel(found: GpuCodeFacts) -> WheelFacts:
    """A wheel with this GPU code."""
    return replace(facts_of(WheelBuilder()), gpu_code=found)


def test_the_json_of_exact_code() -> None:
    told = summarize(wheel(facts(main=code("sm_90 compute_90", "sm_100a"), host=code())), parse_gpus("GB200,T4"))

    assert told["gpu_code"] == {
        "sass": ["sm_90", "sm_100a"],
        "ptx": ["compute_90"],
        "certainty": "exact",
        "products": [
            {
                "name": "GB200",
                "capability": "10.0",
                "runs": "native",
                "code": "sm_100a",
                "member": "demo/main.so",
                "why": "sm_100a runs on GB200 (10.0)",
                "compiled_files": {"running": 1, "all": 1},
            },
            {
                "name": "T4",
                "capability": "7.5",
                "runs": "none",
                "code": "",
                "member": "demo/main.so",
                "why": "nothing runs on T4 (7.5): sm_90: machine code for another major version; sm_100a: only for "
                "exactly its own version; compute_90: PTX for newer GPUs",
            },
        ],
        "libraries": [
            {
                "member": "demo/main.so",
                "sass": ["sm_90", "sm_100a"],
                "ptx": ["compute_90"],
                "entries": {"sm_90": 1, "compute_90": 1, "sm_100a": 1},
                "certainty": "exact",
                "bytes_read": 0,
            }
        ],
    }


def test_the_json_of_declared_and_of_unknown_code() -> None:
    declared = summarize(wheel(facts(main=UNREAD, declared="sm_80 sm_90")))["gpu_code"]
    unknown = summarize(wheel(facts(main=UNREAD)))["gpu_code"]

    assert (declared["sass"], declared["certainty"], declared["declared"]) == (
        ["sm_80", "sm_90"],
        "declared",
        ["sm_80", "sm_90"],
    )
    assert unknown == {
        "unavailable": "the GPU code of demo/main.so is unknown: it has 300,000,000 bytes",
        "libraries": [{"member": "demo/main.so", "unavailable": "it has 300,000,000 bytes"}],
    }
    assert "gpu_code" not in summarize(facts_of(WheelBuilder()))


def lines(found: GpuCodeFacts) -> list[str]:
    """The lines of the text report under the name of a wheel, for three GPUs."""
    told = summarize(wheel(found), parse_gpus("GB300,T4,V100"))
    report = Report("verify", "1", "2026-11-20T09:00:00Z", 0.1, (Subject("demo.whl", "wheel", "CUDA", told),))
    return [line.strip() for line in rendered(report, "text").splitlines()[3:]]


def test_the_text_report_has_a_line_for_each_gpu() -> None:
    assert lines(facts(main=TORCH)) == [
        "CUDA",
        "GB300 (10.3): runs natively (sm_100)",
        "T4 (7.5): not known, 1 of 10 compiled files",
        "V100 (7.0): does not run",
    ]
    assert lines(facts(main=code("sm_52 sm_61 compute_61", "sm_70 sm_75", "sm_52 sm_60")))[2:] == [
        "T4 (7.5): runs natively (sm_75), 2 of 3 compiled files",
        "V100 (7.0): runs natively (sm_70), 2 of 3 compiled files",
    ]
    assert lines(facts(declared="sm_100"))[1:2] == ["GB300 (10.3): not known, as declared"]
    assert lines(facts()) == ["CUDA"]
