"""Results that a comparison must reject: NaN, infinity, one bad row, one rounding too many, a code two steps off."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from kernels_smoke.suite.correctness.compare import Absolute, Codes, Exact, Near, Relative, Rounded

INF, NAN = float("inf"), float("nan")
REFERENCE = torch.linspace(1.0, 2.0, 4096, dtype=torch.float64).reshape(64, 64)
CHECKS = [Near(), Rounded(), Relative(1e-2), Absolute(1e-2), Exact()]
IDS = ["near", "rounded", "relative", "absolute", "exact"]


@pytest.mark.parametrize("check", CHECKS, ids=IDS)
def test_the_rounded_reference_passes(check: Near) -> None:
    assert not check(REFERENCE.to(torch.float16), REFERENCE)["message"]


@pytest.mark.parametrize("check", CHECKS, ids=IDS)
@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_one_element_that_is_not_finite(check: Near, value: float) -> None:
    output = REFERENCE.to(torch.float16)
    output[3, 5] = value
    assert check(output, REFERENCE)["message"]


@pytest.mark.parametrize("check", [Near(), Rounded()], ids=["near", "rounded"])
def test_a_reference_with_nan_proves_nothing(check: Near) -> None:
    reference = REFERENCE.clone()
    reference[3, 5] = NAN
    message = check(reference.to(torch.float16), reference)["message"]
    assert message == "1 of 4096 elements of the reference are NaN, the first in row 3"


@pytest.mark.parametrize("check", [Near(), Rounded()], ids=["near", "rounded"])
@pytest.mark.parametrize(("value", "right"), [(-INF, True), (-65504.0, True), (INF, False), (0.0, False), (NAN, False)])
def test_a_reference_beyond_the_range_asks_for_infinity_or_the_largest_number(
    check: Near, value: float, right: bool
) -> None:
    reference = REFERENCE.clone()
    reference[3, 5] = -1e6
    output = reference.to(torch.float16)
    output[3, 5] = value
    assert (not check(output, reference)["message"]) == right


def test_one_bad_row_among_many() -> None:
    output = REFERENCE.to(torch.float16)
    output[3] *= 1.004
    result = Near()(output, REFERENCE)
    assert result["error"] < result["tolerance"]
    assert result["message"].startswith("row 3 has the relative error ")


@pytest.mark.parametrize("factor", [0.0, 2.0])
def test_one_bad_element_of_a_wide_row(factor: float) -> None:
    reference = torch.linspace(1.0, 2.0, 16 * 16384, dtype=torch.float64).reshape(16, 16384)
    output = reference.to(torch.bfloat16)
    output[3, 5] *= factor
    result = Near()(output, reference)
    assert result["error"] < result["tolerance"]
    assert result["worst_row"] < 4 * result["tolerance"]
    assert result["message"].startswith("element 5 of row 3 is")


def test_a_row_of_zeros_must_be_zero() -> None:
    reference = REFERENCE.clone()
    reference[3] = 0.0
    output = reference.to(torch.float16)
    assert not Near()(output, reference)["message"]
    output[3, 5] = 1e-4
    assert Near()(output, reference)["message"]
    assert not Near(floor=1.0)(output, reference)["message"]


def test_what_is_left_of_a_row_where_terms_cancel() -> None:
    reference = REFERENCE.clone()
    reference[3] *= 0.01
    output = reference.to(torch.float16)
    output[3] *= 1.01
    assert Near()(output, reference)["message"].startswith("row 3 has the relative error ")
    assert not Near(faint=0.25)(output, reference)["message"]
    output[4] *= 1.01
    assert Near(faint=0.25)(output, reference)["message"]


def test_a_rounding_in_between() -> None:
    output = REFERENCE.to(torch.bfloat16).to(torch.float16)
    assert not Near(float16=2.5e-3)(output, REFERENCE)["message"]
    assert Rounded(float16=2.5e-3)(output, REFERENCE)["message"].endswith(
        "of the elements are not the rounded reference; 1.000% may"
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda codes: codes, ""),
        (
            lambda codes: codes[:69] + bytes([codes[69] + 1]) + codes[70:],
            "1 of 4096 codes are not the rounded reference",
        ),
        (lambda codes: codes[:69] + bytes([codes[69] ^ 0x80]) + codes[70:], "1 of 4096 codes are not the rounded"),
        (lambda codes: codes[:9] + b"\x7f" + codes[10:], "there are NaN codes"),
        (lambda codes: bytes(code + 1 for code in codes[:99]) + codes[99:], "99 of 4096 codes are not the rounded"),
    ],
    ids=["right", "one off", "a sign", "NaN", "many off"],
)
def test_codes(change: Callable[[bytes], bytes], says: str) -> None:
    codes = bytes(REFERENCE.float().to(torch.float8_e4m3fn).view(torch.uint8).flatten().tolist())
    changed = torch.tensor(list(change(codes)), dtype=torch.uint8).view(torch.float8_e4m3fn).reshape(64, 64)
    for check in (Codes(), Codes(reach=1e-6)):
        message = check(changed, REFERENCE)["message"]
        assert message.startswith(says)
        assert bool(message) == bool(says)


@pytest.mark.parametrize(("away", "right"), [(0.0, True), (5e-7, True), (-5e-7, True), (4e-6, False), (-4e-6, False)])
def test_all_codes_may_be_either_of_the_two_that_a_quotient_lies_between(away: float, right: bool) -> None:
    middle = torch.full((64, 64), 1.0625 * (1 + away), dtype=torch.float64)  # between 1 and 1.125
    wrong_side = torch.full((64, 64), 1.0 if away > 0 else 1.125).to(torch.float8_e4m3fn)
    found = Codes(reach=1e-6)(wrong_side, middle)
    assert bool(found["message"]) != right
    assert found["error"] == pytest.approx(abs(away), abs=1e-12)


@pytest.mark.parametrize("check", [*CHECKS, Codes()], ids=[*IDS, "codes"])
def test_another_shape(check: Near) -> None:
    output = REFERENCE.to(torch.float8_e4m3fn if isinstance(check, Codes) else torch.float16)
    assert check(output[:, :63], REFERENCE)["message"] == "the shape is (64, 63), the reference has (64, 64)"
