"""``--expect`` and ``--max-size``: accepted values, and messages about others."""

from __future__ import annotations

import pytest

from wheel_checks.errors import UsageError
from wheel_checks.facts.wheel.expectations import parse_expectation, parse_size


@pytest.mark.parametrize(
    ("text", "accelerator", "versions"),
    [
        ("cuda", "cuda", ""),
        ("cuda==13.0", "cuda", "==13.0"),
        (" CUDA >= 12.8 ", "cuda", ">=12.8"),
        ("cuda>=12.8,<14", "cuda", "<14,>=12.8"),
        ("rocm~=7.1", "rocm", "~=7.1"),
        ("xpu", "xpu", ""),
        ("cpu", "cpu", ""),
        ("none", "none", ""),
    ],
)
def test_expectations(text: str, accelerator: str, versions: str) -> None:
    expectation = parse_expectation(text)

    assert (expectation.accelerator, str(expectation.versions)) == (accelerator, versions)
    assert str(expectation) == accelerator + versions


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "does not name an accelerator; expected cuda, rocm, xpu, cpu, none (for example --expect cuda==13.0)"),
        ("gpu", "does not name an accelerator; expected cuda, rocm, xpu, cpu, none (for example --expect cuda==13.0)"),
        (
            "==13.0",
            "does not name an accelerator; expected cuda, rocm, xpu, cpu, none (for example --expect cuda==13.0)",
        ),
        ("cuda13", "has no valid version condition; expected a form such as cuda==13.0 or cuda>=12.8"),
        ("cuda=13", "has no valid version condition; expected a form such as cuda==13.0 or cuda>=12.8"),
        ("cpu>=1", "demands a version; expected cpu without a version"),
    ],
)
def test_what_is_no_expectation(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_expectation(text)

    assert str(caught.value) == f"--expect {text!r} {message}"


@pytest.mark.parametrize(
    ("expectation", "version", "accepted"),
    [
        ("cuda", "", True),
        ("cuda", "13", True),
        ("cuda==13.0", "13.0", True),
        ("cuda==13.0", "13.0.2", False),
        ("cuda==13.0.*", "13.0.2", True),
        ("cuda==13.0", "12.8", False),
        ("cuda==13.0", "13", None),
        ("cuda==13.0", "12", False),
        ("cuda==12.8", "12", None),  # neither 12.0 nor 12.999, and yet one of them
        ("cuda!=12.8", "12", None),
        ("cuda==13.0", "", None),
        ("cuda==13.*", "13", True),
        ("cuda>=12.8", "13", True),
        ("cuda>=12.8", "12", None),
        ("cuda>=12.8", "11", False),
        ("cuda<13", "12", True),
        ("cuda!=12.9", "12.8", True),
    ],
)
def test_versions(expectation: str, version: str, accepted: bool | None) -> None:
    assert parse_expectation(expectation).accepts_version(version) is accepted


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1000", 1_000),
        ("1kB", 1_000),
        ("1KiB", 1_024),
        ("900MB", 900_000_000),
        ("900 m", 900_000_000),
        ("1.5GB", 1_500_000_000),
        ("2GiB", 2_147_483_648),
        ("2gi", 2_147_483_648),
        ("1TB", 1_000_000_000_000),
        (" 7b ", 7),
        ("0", 0),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MB", "-1MB", "1PB", "1ib", "1e9", "1,5GB", "one", "1 G B", "9" * 400])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_size(text)

    assert str(caught.value) == f"{text!r} is not a size; expected a form such as 900MB, 2GiB or a number of bytes"
