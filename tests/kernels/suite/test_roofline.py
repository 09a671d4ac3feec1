"""The picture of a run's speeds has the document's data, is well-formed, and no labels overlap."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.roofline import LABEL_STEP, picture, spread

RATES = {"bandwidth": 4.27e12, "bf16": 746e12, "fp8": 1536e12}
SVG = "{http://www.w3.org/2000/svg}"


def speed(
    kernel: str, case: str, microseconds: float, moved: int, flops: int = 0, unit: str = "bf16", **more: Any
) -> dict[str, Any]:
    """A record of kind "speed", as the suite makes it."""
    floor = 1e6 * max(moved / RATES["bandwidth"], flops / RATES[unit])
    facts = {"outcome": "pass", "bar": 1.1, "peer_microseconds": None, "versus": "", **more}
    names = {"kernel": kernel, "case": case, "microseconds": microseconds, "floor_microseconds": floor}
    return {**names, "bytes": moved, "flops": flops, "unit": unit, **facts}


def document(speeds: Sequence[dict[str, Any]], rates: dict[str, Any] | None = RATES) -> dict[str, Any]:
    """A document that was made on an H200."""
    environment = {"torch": {"version": "2.11.0+cu130"}, "triton": None, "gpus": [{"name": "NVIDIA H200"}]}
    return {"speeds": speeds, "calibration": rates, "environment": environment, "started": "2026-11-20T09:00:00Z"}


NORM = speed("fused_add_rms_norm", "16384 x 4096", 131.2, 536_870_912)
SLOW = speed("silu_and_mul_dynamic_per_token_quant", "16384 x 12288", 381.0, 1_006_632_960, outcome="slow", bar=1.25)
MATRIX = speed(
    "scaled_mm", "8192 x 24576, K 4096", 1130.0, 536_870_912, 2 * 8192 * 24576 * 4096, "fp8",
    peer_microseconds=1077.0, versus="cuBLAS", bar=1 / 0.9,
)  # fmt: skip
BLOCKWISE = speed("scaled_mm_blockwise", "8192 x 24576, K 4096", 2000.0, 536_870_912, 2 * 8192 * 24576 * 4096, "fp8")
FEW_ROWS = speed("scaled_mm", "16 x 24576, K 4096", 29.7, 101_449_728, 2 * 16 * 24576 * 4096, "fp8")
ALL = [NORM, SLOW, MATRIX, BLOCKWISE, FEW_ROWS]


def texts(svg: str) -> list[ET.Element]:
    """The text elements of a picture, which is parsed to get them."""
    return list(ET.fromstring(svg).iter(f"{SVG}text"))


def said(svg: str) -> str:
    """All that a picture says."""
    return "\n".join(element.text or "" for element in texts(svg))


def test_every_speed_is_named_with_its_time_and_rate_or_part_of_the_bandwidth() -> None:
    words = said(picture(document(ALL)))
    assert "fused_add_rms_norm · 16384 x 4096" in words
    assert "131 us" in words
    assert f"{100 * 536_870_912 / 131.2e-6 / 4.27e12:.0f} %" in words  # 96 %
    assert "1,460 TFLOP/s, 1.13 ms, 0.95x the speed of cuBLAS" in words
    assert "memory, 4.27 TB/s" in words
    assert "fp8, 1,540 TFLOP/s" in words
    assert "torch 2.11.0+cu130 · 2026-11-20" in words


def test_axes_have_labels_with_units_and_the_legend_says_what_the_marks_mean() -> None:
    words = said(picture(document(ALL)))
    for label in (
        "arithmetic intensity, FLOP per byte",
        "rate, TFLOP/s",
        "slow",
        "the bar: what this kernel is to reach",
    ):
        assert label in words


def test_a_slow_kernel_differs_in_colour_and_in_shape() -> None:
    root = ET.fromstring(picture(document([dict(MATRIX, outcome="slow")])))
    assert [mark.attrib["class"] for mark in root.iter(f"{SVG}circle")] == ["good edge"]  # the mark of the legend
    squares = [mark for mark in root.iter(f"{SVG}rect") if "rotate(45)" in mark.attrib.get("transform", "")]
    assert [mark.attrib["class"] for mark in squares] == ["bad edge"] * 2


def test_a_mark_stands_at_its_intensity_and_rate() -> None:
    root = ET.fromstring(picture(document([BLOCKWISE])))
    mark = next(iter(root.iter(f"{SVG}circle")))
    ticks = {
        float((element.text or "").replace(",", "")): float(element.attrib["y"]) - 4
        for element in root.iter(f"{SVG}text")
        if element.text in {"500", "1,000"} and element.attrib["text-anchor"] == "end"
    }
    (low, at_low), (high, at_high) = sorted(ticks.items())
    rate = 2 * 8192 * 24576 * 4096 / 2000e-6 / 1e12
    expected = at_low + math.log(rate / low) / math.log(high / low) * (at_high - at_low)
    assert float(mark.attrib["cy"]) == pytest.approx(expected, abs=0.2)


def extent(element: ET.Element) -> tuple[float, float, float, float]:
    """Left, top, right, bottom of a text that is not turned, for letters that are 0.62 of their height wide."""
    size = float(element.attrib["font-size"])
    width = 0.62 * size * len(element.text or "")
    x, y = float(element.attrib["x"]), float(element.attrib["y"])
    left = x - {"start": 0.0, "middle": width / 2, "end": width}[element.attrib["text-anchor"]]
    return left, y - size, left + width, y


def overlapping(svg: str) -> list[tuple[str | None, str | None]]:
    """The pairs of level texts that are on each other."""
    turned = {element for group in ET.fromstring(svg).iter(f"{SVG}g") for element in group.iter(f"{SVG}text")}
    assert len(turned) <= 1  # the label on the slope
    level = [element for element in texts(svg) if "x" in element.attrib and element.attrib["x"] != "0.0"]
    pairs = []
    for one, other in itertools.combinations(level, 2):
        left, top, right, bottom = extent(one)
        left2, top2, right2, bottom2 = extent(other)
        if left < right2 and left2 < right and top < bottom2 and top2 < bottom:
            pairs.append((one.text, other.text))
    return pairs


@pytest.mark.parametrize(
    "speeds",
    [
        ALL,
        [NORM],
        [MATRIX],
        [MATRIX] * 12,
        [dict(MATRIX, microseconds=1130.0 + step) for step in range(9)],
        [NORM] * 25,
    ],
    ids=["all", "one bar", "one mark", "marks on one place", "marks side by side", "many bars"],
)
def test_no_label_lies_on_another_and_none_leaves_the_picture(speeds: list[dict[str, Any]]) -> None:
    svg = picture(document(speeds))
    assert overlapping(svg) == []
    _, _, width, height = map(float, ET.fromstring(svg).attrib["viewBox"].split())
    for element in texts(svg):
        if "x" in element.attrib and element.attrib["x"] != "0.0":
            left, top, right, bottom = extent(element)
            assert 0 <= left <= right <= width, element.text
            assert 0 <= top <= bottom <= height, element.text


def test_a_gpu_without_fp8_has_one_roof() -> None:
    words = said(picture(document([dict(MATRIX, unit="bf16")], {**RATES, "fp8": None})))
    assert "bf16, 746 TFLOP/s" in words
    assert "fp8" not in words


def test_what_names_hold_is_text_and_no_markup() -> None:
    svg = picture(document([speed("<script>alert(1)</script>", 'a & "b"', 10.0, 10**7)]))
    assert "<script>" not in svg
    assert '<script>alert(1)</script> · a & "b"' in said(svg)


@pytest.mark.parametrize(("speeds", "rates"), [([], RATES), (ALL, None), ([dict(NORM, microseconds=None)], RATES)])
def test_without_speeds_it_says_that_there_are_none(speeds: list[dict[str, Any]], rates: dict[str, Any] | None) -> None:
    assert "No speed was measured." in said(picture(document(speeds, rates)))


heights = st.lists(st.floats(0, 400), max_size=9).map(sorted)


@given(heights)
def test_labels_are_a_step_apart_in_order_and_within_the_panel(wanted: list[float]) -> None:
    placed = spread(wanted, LABEL_STEP, 0.0, 400.0)
    assert all(after - before >= LABEL_STEP - 1e-9 for before, after in itertools.pairwise(placed))
    assert all(-1e-9 <= height <= 400.0 + 1e-9 for height in placed)


def test_a_label_with_room_stays_at_the_height_of_its_mark() -> None:
    assert spread([10.0, 100.0, 105.0, 300.0], 40.0, 0.0, 400.0) == [10.0, 100.0, 140.0, 300.0]


def test_labels_stand_in_the_order_of_the_marks_whatever_the_order_of_the_records() -> None:
    labels = {"8192 x 24576, K 4096": "fast", "16 x 24576, K 4096": "slow"}
    shown = [
        (float(element.attrib["y"]), labels[(element.text or "").partition(" · ")[2]])
        for element in texts(picture(document([FEW_ROWS, MATRIX])))
        if " · " in (element.text or "") and element.attrib["class"] == "ink"
    ]
    assert [name for _, name in sorted(shown)] == ["fast", "slow"]
