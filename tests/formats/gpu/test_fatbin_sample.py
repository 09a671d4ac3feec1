"""Fat binaries seen in a part of a section, wherever it begins."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.fatbin import Image, fat_binary, section
from wheel_checks.formats.gpu.fatbin import read_fatbins
from wheel_checks.formats.gpu.fatbin_sample import sample_fatbins
from wheel_checks.formats.zip.deflate_blocks import Inflated

SECTION = section(
    fat_binary("sm_90", Image("sm_100a", 3000, "zstd", 112), "compute_90"),
    fat_binary(Image("sm_80", 500, "lz4"), "sm_90"),
    fat_binary("sm_120f"),
)


def sampled(data: bytes) -> dict[str, int]:
    return dict(sample_fatbins(Inflated.of_known(data)).counts)


def test_the_whole_shows_all() -> None:
    code = sample_fatbins(Inflated.of_known(SECTION))
    assert dict(code.counts) == {"sm_90": 2, "sm_100a": 1, "compute_90": 1, "sm_80": 1, "sm_120f": 1}
    assert dict(code.containers) == {
        frozenset({"sm_90", "sm_100a", "compute_90"}): 1,
        frozenset({"sm_80", "sm_90"}): 1,
        frozenset({"sm_120f"}): 1,
    }
    assert code.certainty == "sampled"


@settings(max_examples=300)
@given(start=st.integers(0, len(SECTION)), length=st.integers(0, len(SECTION)))
def test_a_part_shows_nothing_that_is_not_there(start: int, length: int) -> None:
    truth = [entry.label for entry in read_fatbins(SECTION)]
    for label, count in sampled(SECTION[start : start + length]).items():
        assert count <= truth.count(label)


def test_an_entry_of_a_container_that_began_before() -> None:
    assert sampled(SECTION[100:]) == {"sm_100a": 1, "compute_90": 1, "sm_80": 1, "sm_90": 1, "sm_120f": 1}


def test_noise_shows_nothing() -> None:
    assert sampled(random.Random(1).randbytes(1_000_000)) == {}
    assert sampled(b"\x50\xed\x55\xba\x01\x00\x10\x00" + bytes(8) + bytes(100)) == {}


def test_uncertain_bytes_are_not_believed() -> None:
    part = Inflated.of_known(SECTION)
    part.__dict__["other_data"] = SECTION[:20] + b"\xff" * 8 + SECTION[28:]
    assert "sm_90" not in sample_fatbins(part).counts or sample_fatbins(part).counts["sm_90"] == 1
