"""Lines that look like a failure of an unknown cause: no log with one passes, and successful runs do."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from wheel_checks.data import load
from wheel_checks.facts.host.log.facts import LARGEST, LONGEST_LINE, parse_log
from wheel_checks.facts.host.log.failures import failures
from wheel_checks.fixes.commands import in_words
from wheel_checks.model import Outcome
from wheel_checks.rules.host.log_texts import HARMLESS, UNRECOGNISED
from wheelproof.doctor.explain import explain

DATA = Path(__file__).parents[1] / "data/logs"
LINES = tomllib.loads((DATA / "lines.toml").read_text(encoding="utf-8"))
FAILURES, INNOCENT = LINES["failures"].splitlines(), LINES["innocent"].splitlines()
SUCCESSES = tomllib.loads((DATA / "successes.toml").read_text(encoding="utf-8"))["log"]

# A line with each harmless text of the table.
HARMLESS_LINES = [
    "node17: [0] NCCL INFO MNNVL busId 0x0801000 cliqueId 0x7ffe state 3 healthMask 0x51aa",
    "    Found GPU0 NVIDIA GB10 which is of cuda capability 12.1.",
    "node1:461:461 [1] NCCL INFO NET/Plugin: Plugin load returned 2 : libnccl-net.so: cannot open shared object file",
    "node1:461:461 [1] NCCL INFO TUNER/Plugin: Could not find: libnccl-tuner.so",
    "<LOADER>[INFO]: failed to load adapter 'libur_adapter_hip.so.0' with error: libur_adapter_hip.so.0: cannot open",
    "/sbin/ldconfig.real: /usr/lib/wsl/lib/libcuda.so.1 is not a symbolic link",
    "E0000 00:00:1738697930.202924    7665 cuda_dnn.cc:8310] Unable to register cuDNN factory: Attempting to register "
    "factory for plugin cuDNN when one has already been registered",
    "2025-11-02 10:11:12.345678: W tensorflow/x.cc:38] TF-TRT Warning: Could not find TensorRT",
]


def _looks_failed(text: str) -> list[tuple[int, str]]:
    return list(failures(parse_log(text.encode()), ()))


def test_each_harmless_text_of_the_table_has_a_line() -> None:
    texts = [text for row in load("log_texts")["entry"] if row["says"].startswith(HARMLESS) for text in row["texts"]]
    assert len(texts) == len(HARMLESS_LINES)
    assert all(explain(line.encode(), "a.log").exit_code == 0 for line in HARMLESS_LINES)


@pytest.mark.parametrize("harmless", HARMLESS_LINES)
def test_no_failure_beside_a_harmless_text_passes(harmless: str) -> None:
    logs = [
        log.format(failure=failure, harmless=harmless)
        for failure in FAILURES
        for log in ("{failure}\n{harmless}\n", "{harmless}\nepoch 3, loss 2.17\n{failure}\n", "{harmless}\r{failure}\n")
    ]
    assert len(FAILURES) >= 12
    assert [log for log in logs if explain(log.encode(), "a.log").exit_code == 0] == []


@pytest.mark.parametrize("line", INNOCENT)
def test_a_line_of_a_success_is_no_failure(line: str) -> None:
    assert _looks_failed(line) == []


@pytest.mark.parametrize("case", SUCCESSES, ids=lambda case: case["name"])
def test_the_log_of_a_run_that_succeeded_passes(case: dict[str, Any]) -> None:
    report = explain(case["text"].encode(), "a.log")
    assert report.exit_code == 0, report.overview and report.overview.headline


def test_there_are_as_many_successes_as_promised() -> None:
    assert len(SUCCESSES) >= 60


def test_the_first_failure_is_named_with_its_number_and_the_next_step() -> None:
    log = f"{HARMLESS_LINES[1]}\n\nBus error (core dumped)\nKilled\n"
    report = explain(log.encode(), "a.log")
    result = next(one for one in report.subjects[0].results if one.rule == UNRECOGNISED)
    assert (report.exit_code, result.outcome) == (3, Outcome.ERROR)
    assert result.message == "line 3 looks like a failure, and its cause is not known"
    assert [(item.label, item.value) for item in result.evidence] == [("line 3", "Bus error (core dumped)")]
    assert result.fix is not None
    assert "wheelproof doctor" in in_words(result.fix.commands[0])
    assert report.overview is not None
    assert report.overview.headline == f"not recognised: {result.message} (a.log)"


def test_of_a_log_without_a_known_text_the_first_failure_is_quoted() -> None:
    (result,) = explain(b"start\nnpm ERR! code ERESOLVE\n", "a.log").subjects[0].results
    assert result.message == "none of 2 lines contains an error text with a known cause"
    assert [(item.label, item.value) for item in result.evidence] == [("line 2", "npm ERR! code ERESOLVE")]


def test_a_cause_that_is_known_explains_the_other_failures() -> None:
    log = f"{HARMLESS_LINES[1]}\nCUDA driver is a stub library\nSegmentation fault\n"
    report = explain(log.encode(), "a.log")
    assert report.exit_code == 1
    assert UNRECOGNISED not in {result.rule for result in report.subjects[0].results}


@pytest.mark.parametrize("filler", ["xxxxxxx ", "50%|##| 5/10\r", "schön "], ids=["words", "a bar", "UTF-8"])
def test_the_end_of_a_long_line_is_read(filler: str) -> None:
    for length in range(LONGEST_LINE - 40, LONGEST_LINE + 20, 7):
        begin = (filler * LONGEST_LINE)[:length]
        for size in (1, 2, 7):
            log = f"{HARMLESS_LINES[1]}\n{begin * size} Segmentation fault\n"
            assert _looks_failed(log), (length, size)


def test_a_text_that_goes_over_the_end_of_a_line_hides_no_failure() -> None:
    assert _looks_failed("exit status\n1 epoch\n") == []
    assert _looks_failed("process exited\n9 workers: Segmentation fault\n") == [(2, "9 workers: Segmentation fault")]


def test_words_after_a_warning_that_ends_in_a_colon_belong_to_it() -> None:
    assert _looks_failed("CMake Warning at x.cmake:3 (message):\n  Could not find ccache.\n") == []
    assert _looks_failed("CMake Warning at x.cmake:3 (message):\n  found it\n  Could not find ccache.\n")
    assert _looks_failed("Warning: see below:\n  Segmentation fault\n")


def test_a_log_that_was_not_read_to_its_end_does_not_pass() -> None:
    log = f"{HARMLESS_LINES[1]}\n".encode() + b"\n" * LARGEST
    report = explain(log, "a.log")
    assert report.exit_code == 3
    assert "the part of the log that was read" in str(report.subjects[0].results)


def test_the_level_and_the_error_of_a_structured_line_count() -> None:
    assert _looks_failed('{"level": "error", "msg": "stopping"}')
    assert _looks_failed('{"level": "info", "msg": "stopping", "exc_info": "Traceback (most recent call last):\\n..."}')
    assert not _looks_failed('{"level": "info", "msg": "failed once, and then connected", "error": null}')
    assert not _looks_failed('{"level": "info", "msg": "stopping"}')
