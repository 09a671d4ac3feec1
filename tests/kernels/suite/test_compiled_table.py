"""The table of the kernels' machine code, from one run of ``--compile-only``."""

from __future__ import annotations

from benchmarks.compiled import markdown
from tests.support.smoke import compiled, document


def test_a_kernel_is_a_row_and_a_target_a_column() -> None:
    records = [
        compiled(
            "scaled_mm",
            "gfx942",
            instructions=["v_mfma_f32_32x32x8_f16", "v_mfma_f32_16x16x16_f16"],
            message="fp8 is converted",
        ),
        compiled("scaled_mm", "sm_100", registers=150, spill_bytes=24, instructions=["HMMA", "HGMMA"], message=""),
        compiled("scaled_mm", "sm_100", message=""),
        compiled("fused_add_rms_norm", "sm_100", instructions=[], message=""),
        compiled("scaled_mm", "sm_80", "skip", message="sm_80 has no e4m3", registers=None, instructions=[]),
    ]
    table = markdown(document(compiled=records, seconds=212.4)).splitlines()
    assert "5 compilations of 2 kernels for 3 targets in 212 s" in table[0]
    assert table[2:] == [
        "| kernel | sm_80 | sm_100 | gfx942 |",
        "| --- | --- | --- | --- |",
        "| fused_add_rms_norm | - | 64 | - |",
        "| scaled_mm | skip | 150, 24 B spilled, HMMA, HGMMA | 64, MFMA f16 |",
        "",
        "- gfx942, scaled_mm: fp8 is converted",
        "- sm_80, scaled_mm: sm_80 has no e4m3",
    ]
