"""Facts of machine code, from the output of tools and compilers. The real tools run in test_compile.py."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path

import pytest

from kernels_smoke.suite.compiling import targets
from kernels_smoke.suite.compiling.machine_code import (
    Product,
    UnreadableError,
    local_arrays,
    products,
    ptx_instructions,
    read,
    resource_usage,
    sass_instructions,
)
from kernels_smoke.suite.registry import Entry
from kernels_smoke.suite.run.units import work_units

USAGE = """\
Resource usage:
 Common:
  GLOBAL:0
 Function _sine_kernel:
  REG:22 STACK:32 SHARED:1024 LOCAL:0 CONSTANT[0]:568 TEXTURE:0 SURFACE:0 SAMPLER:0
"""
SASS = """\
        /*0f90*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4], R24 ;
        /*0fa0*/                   HFMA2.MMA R18, -RZ, RZ, 0, 0 ;
        /*0fb0*/                   QGMMA.64x128x32.F32.E4M3.E4M3 R24, gdesc[UR4], R24 ;
"""
AMDGCN = """\
        v_mfma_f32_32x32x8_bf16 v[0:15], v[16:17], v[18:19], v[0:15]
        .amdgpu_metadata
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 580
    .sgpr_spill_count: 7
    .vgpr_count:     256
    .vgpr_spill_count: 145
"""


def test_registers_and_stack_are_those_of_the_function() -> None:
    assert resource_usage(USAGE) == (22, 32)


def test_an_answer_without_registers_is_unreadable_and_not_zero() -> None:
    with pytest.raises(UnreadableError, match="no such file"):
        resource_usage("cuobjdump fatal: no such file\n")


def test_a_local_array_takes_its_size_rounded_up_and_instructions_on_local_memory_take_none() -> None:
    ptx = "\t.local .align 4 .b8 \t__local_depot0[28];\n\tst.local.b32 \t[%r8+24], %r396;\n"
    assert local_arrays(ptx) == 32


def test_only_matrix_instructions_count_in_machine_code() -> None:
    assert sass_instructions(SASS) == ("HGMMA", "QGMMA")


@pytest.mark.parametrize(
    ("instruction", "name"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "HMMA"),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "HMMA"),
        ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "QMMA"),
        ("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32", "IMMA"),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "DMMA"),
        ("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16", "HGMMA"),
        ("wgmma.mma_async.sync.aligned.m64n128k32.f32.e5m2.e4m3", "QGMMA"),
        ("tcgen05.mma.cta_group::1.kind::f16", "UTCHMMA"),
        ("tcgen05.mma.cta_group::1.kind::f8f6f4", "UTCQMMA"),
        ("tcgen05.mma.cta_group::1.kind::i8", "UTCIMMA"),
        ("tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X", "UTCQMMA"),
        ("tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X", "UTCOMMA"),
        ("mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0", "OMMA"),
    ],
)
def test_instructions_of_ptx_have_the_names_that_ptxas_gives_them(instruction: str, name: str) -> None:
    assert ptx_instructions(f"\t{instruction} \t{{%r1, %r2}}, %rd3;\n") == (name,)


@pytest.mark.parametrize(
    ("text", "product"),
    [
        (
            "%9 = tt.dot %7, %8, %acc, inputPrecision = tf32 : tensor<128x64xbf16> * tensor<64x256xbf16> -> "
            "tensor<128x256xf32> loc(#loc)",
            Product(128, 256, 64, "half"),
        ),
        (
            "tt.dot %7, %8, %acc, inputPrecision = tf32 {maxNumImpreciseAcc = 1073741824 : i32} : "
            "tensor<16x128xf8E4M3FN> * tensor<128x64xf8E4M3FN> -> tensor<16x64xf32>",
            Product(16, 64, 128, "fp8"),
        ),
        (
            "tt.dot %7, %8, %a : tensor<32x32xf32> * tensor<32x32xf32> -> tensor<32x32xf32>",
            Product(32, 32, 32, "exact"),
        ),
        (
            "tt.dot %7, %8, %a, inputPrecision = tf32 : tensor<32x32xf32> * tensor<32x32xf32> -> tensor<32x32xf32>",
            Product(32, 32, 32, "half"),
        ),
        ("tt.dot %7, %8, %a : tensor<32x32xi8> * tensor<32x16xi8> -> tensor<32x16xi32>", Product(32, 16, 32, "int8")),
        (
            "tt.dot %7, %8, %a : tensor<4x64x16xf16> * tensor<4x16x64xf16> -> tensor<4x64x64xf32>",
            Product(0, 64, 16, "half"),
        ),
        (
            "tt.dot_scaled %7 scale %8, %9 scale %10, %a lhs = e4m3 rhs = e4m3 {fastMath = false} : "
            "tensor<128x64xf8E4M3FN>, tensor<128x2xi8> * tensor<64x256xf8E4M3FN>, tensor<256x2xi8> -> "
            "tensor<128x256xf32>",
            Product(128, 256, 64, "fp8"),
        ),
        (
            "tt.dot_scaled %7 scale %8, %9 scale %10, %a lhs = e2m1 rhs = e2m1 {fastMath = false} : "
            "tensor<128x64xi8>, tensor<128x8xf8E4M3FN> * tensor<64x256xi8>, tensor<256x8xf8E4M3FN> -> "
            "tensor<128x256xf32>",
            Product(128, 256, 64, "fp4"),
        ),
        (
            "ttng.warp_group_dot %a, %b, %c, %never {inputPrecision = 0 : i32, isAsync = true} : "
            "!ttg.memdesc<64x128xf8E4M3FN, #shared, #smem, mutable, 128x128> * "
            "!ttg.memdesc<128x256xf8E4M3FN, #shared3, #smem, mutable, 128x256> -> tensor<64x256xf32, #mma>",
            Product(64, 256, 128, "fp8"),
        ),
        (
            "ttng.warp_group_dot %p, %v, %acc {inputPrecision = 0 : i32} : "
            "tensor<64x128xbf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * "
            "!ttg.memdesc<128x64xbf16, #shared1, #smem, mutable> -> tensor<64x64xf32, #mma>",
            Product(64, 64, 128, "half"),
        ),
    ],
)
def test_a_product_is_known_by_its_tile_and_its_operands(text: str, product: Product) -> None:
    assert products(f"      {text}\n") == [product]


def test_amd_registers_scratch_and_spills_stand_in_the_assembly() -> None:
    code = read({"amdgcn": AMDGCN, "hsaco": b"code"}, shared=65536)
    assert (code.registers, code.stack, code.spills, code.shared) == (256, 580, 580, 65536)
    assert code.instructions == ("v_mfma_f32_32x32x8_bf16",)
    assert code.sha256 == hashlib.sha256(b"code").hexdigest()


def test_amd_assembly_without_figures_is_unread_and_not_zero() -> None:
    code = read({"amdgcn": "s_endpgm\n", "hsaco": b"code"}, shared=0)
    assert (code.registers, code.spills, code.unread) == (None, None, "the assembly for AMD does not say .vgpr_count")


@pytest.mark.parametrize("reason", ["No such file or directory", "Permission denied"])
def test_a_tool_that_is_missing_or_not_executable_leaves_the_sizes_unknown_and_is_named(
    reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "cuobjdump"
    if reason == "Permission denied":
        tool.write_text("#!/bin/sh\n")
        tool.chmod(stat.S_IRUSR)
    monkeypatch.setenv("TRITON_CUOBJDUMP_PATH", str(tool))
    code = read({"ptx": "", "cubin": b"code"}, shared=0)
    assert (code.registers, code.stack, code.spills) == (None, None, None)
    assert code.unread == f"{tool}: {reason}"


def test_a_disassembler_that_does_not_know_the_architecture_leaves_the_ptx(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = {"cuobjdump": f"cat <<'E'\n{USAGE}E", "nvdisasm": "echo \"fatal : Cannot decode 'SM103a'\" >&2; exit 1"}
    for name, script in tools.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
        monkeypatch.setenv(f"TRITON_{name.upper()}_PATH", str(tmp_path / name))
    code = read({"ptx": "\ttcgen05.mma.cta_group::1.kind::f16 [%r1];\n", "cubin": b"code"}, shared=0)
    assert code.instructions == ("UTCHMMA",)
    assert "Cannot decode 'SM103a'" in code.from_ptx
    assert (code.registers, code.stack, code.spills, code.unread) == (22, 32, 32, "")
    with_array = read({"ptx": "\t.local .align 4 .b8 \t__local_depot0[28];\n", "cubin": b"code"}, shared=0)
    assert (with_array.stack, with_array.spills) == (32, 0)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("sm_100", "sm_100"),
        ("GB200", "sm_100"),
        ("gb300", "sm_103"),
        ("RTX5090", "sm_120"),
        ("MI300X", "gfx942"),
        ("SM_90", "sm_90"),
        ("sm_999", "sm_999"),
    ],
)
def test_products_and_architectures_name_a_target(text: str, name: str) -> None:
    assert targets.resolve(text) == name


@pytest.mark.parametrize("text", ["", "sm_", "sm90", "GB2000", "gfx"])
def test_another_name_is_no_target(text: str) -> None:
    with pytest.raises(ValueError, match="names no GPU to compile for"):
        targets.resolve(text)


def test_advice_names_the_first_triton_whose_ptxas_is_new_enough() -> None:
    assert targets.triton_for(targets.known("sm_103")) == ("triton>=3.6.0",)
    assert targets.triton_for(targets.known("sm_110")) == ("triton>=3.7.1",)
    assert targets.triton_for(None) == ("--upgrade", "triton")


def test_what_takes_longest_is_compiled_first_and_nothing_is_left_out() -> None:
    entries = (Entry("norm", "norm", ""), Entry("scaled_mm", "matmul", ""))
    units = work_units(entries, ("sm_90", "gfx942"))
    assert units[:2] == [("scaled_mm", "gfx942"), ("scaled_mm", "sm_90")]
    assert sorted(units) == sorted((entry.name, target) for entry in entries for target in ("sm_90", "gfx942"))
