from __future__ import annotations

import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import reports
from wheel_checks.model import Outcome, Severity, Subject
from wheel_checks.report import wording


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("torch/version.py", "torch/version.py"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("gpj\u202eexe", "gpj\\u202eexe"),
        ("\udc80", "\\udc80"),
        ("\U000e0041", "\\U000e0041"),
        ("naïve 漢 🔥", "naïve 漢 🔥"),
    ],
)
def test_what_could_act_is_shown_instead(text: str, safe: str) -> None:
    assert wording.neutral(text) == safe


@given(st.text(alphabet=st.characters(codec=None)))
def test_neutral_text_is_one_printable_line_that_can_be_encoded(text: str) -> None:
    safe = wording.neutral(text)
    assert len(safe.splitlines()) <= 1
    assert safe.encode("utf-8").decode("utf-8") == safe
    assert wording.neutral(safe) == safe


@pytest.mark.parametrize(
    ("facts", "label"),
    [
        ({"accelerator": "cuda", "cuda": "13.0"}, "CUDA 13.0"),
        ({"accelerator": "cuda", "cuda": ""}, "CUDA"),
        ({"accelerator": "rocm", "accelerator_version": "6.4"}, "ROCm 6.4"),
        ({"accelerator": "cpu", "accelerator_version": "1"}, "CPU"),
        ({"accelerator": "none"}, "no accelerator"),
        ({}, ""),
    ],
)
def test_the_accelerator_in_words(facts: dict[str, str], label: str) -> None:
    assert wording.accelerator_label(Subject("x.whl", "wheel", facts=facts)) == label


@pytest.mark.parametrize(
    ("platform", "machine"),
    [
        ("manylinux_2_28_aarch64", "aarch64"),
        ("manylinux2014_x86_64.manylinux_2_17_x86_64", "x86_64"),
        ("manylinux1_x86_64.musllinux_1_1_x86_64.linux_aarch64", "aarch64/x86_64"),
        ("macosx_11_0_arm64", "macosx_arm64"),
        ("win_amd64", "win_amd64"),
        ("any", "any"),
        ("", "ppc64le"),
    ],
)
def test_the_architecture_is_that_of_the_platform_tags(platform: str, machine: str) -> None:
    subject = Subject("x.whl", "wheel", facts={"machine": "ppc64le", "platform": platform})
    assert wording.machine_of(subject) == machine


def test_versions_sort_as_versions_and_strangers_come_last() -> None:
    versions = ["zebra", "2.10.0", "2.9.0", "2.11.0rc1", "2.11.0"]
    assert sorted(versions, key=wording.version_key) == ["2.9.0", "2.10.0", "2.11.0rc1", "2.11.0", "zebra"]


def test_facts_become_lines() -> None:
    facts = {
        "tags": ["a", "b"],
        "code": {"sass": ["sm_80"], "ptx": []},
        "rows": [{"a": 1}],
        "build": "",
        "yanked": False,
    }
    assert list(wording.flat_facts(facts)) == [
        ("tags", "a, b"),
        ("code.sass", "sm_80"),
        ("rows.0.a", "1"),
        ("yanked", "False"),
    ]


def test_the_worst_comes_first_and_equals_keep_their_order() -> None:
    note = reports.result("N", Outcome.FAIL, severity=Severity.NOTE)
    results = [reports.PASSED, note, reports.SKIPPED, reports.TOO_LARGE, reports.CRASHED, reports.BAD_MEMBER]
    results.append(reports.EXPECTED_CUDA)
    order = [result.rule for result in wording.worst_first(results)]
    assert order == ["WHL301", "WHL101", "WHL601", "WHL501", "N", "WHL401", "WHL001"]


def test_json_ready_holds_what_json_can_hold() -> None:
    odd = {1: (math.nan, math.inf, 1.5), "s": "\udc80\x1b", "o": Outcome.FAIL, "n": None, "b": True}
    assert wording.json_ready(odd) == {"1": [None, None, 1.5], "s": "\\udc80\x1b", "o": "fail", "n": None, "b": True}


def test_what_was_judged() -> None:
    assert wording.judged_phrase(reports.empty()) == "nothing"
    assert wording.judged_phrase(reports.missing_wheel()) == "torch==9.9 for aarch64"
    assert wording.judged_phrase(reports.mixed()) == "3 wheels"


def test_what_a_stream_cannot_encode_is_escaped() -> None:
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding="latin-1")
    wording.write(stream, "é 漢")
    stream.flush()
    assert buffer.getvalue() == b"\xe9 \\u6f22"
