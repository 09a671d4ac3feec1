"""Does a package run on a GPU? The tables are the content of real wheels, by November 2026."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from wheel_checks.facts.gpu.answer import answer, still_matters
from wheel_checks.facts.gpu.code import GpuCodeFacts, LibraryGpuCode
from wheel_checks.facts.gpu.targets import parse_gpu, parse_gpus
from wheel_checks.formats.gpu.fatbin import Certainty, GpuCode
from wheel_checks.model import Unavailable

UNREAD = Unavailable("it has 300,000,000 bytes")


def code(*files: str, certainty: Certainty = "exact") -> GpuCode:
    """Files for some targets each: "3*sm_80 sm_90" are three for both."""
    whole = GpuCode({}, certainty, {})
    for text in files:
        times, _, labels = text.rpartition("*")
        number = int(times or 1)
        names = labels.split()
        whole += GpuCode(dict.fromkeys(names, number), certainty, {frozenset(names): number})
    return whole


def package(project: str, libraries: Mapping[str, GpuCode | Unavailable], declared: str = "") -> GpuCodeFacts:
    """A package with these libraries."""
    found = tuple(LibraryGpuCode(member, held) for member, held in libraries.items())
    return GpuCodeFacts(
        found, GpuCode(dict.fromkeys(declared.split(), 0), "declared", {}) if declared else None, project
    )


TORCH = {
    "torch/lib/libtorch_cuda.so": code("444*sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"),
    "torch/lib/libtorch_cuda_linalg.so": code("99*sm_80 sm_86 sm_90 sm_100 sm_120"),
    "torch/lib/libtorch_nvshmem.so": code("sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"),
}
VLLM = {
    "vllm/_C_stable_libtorch.abi3.so": code(
        "50*sm_75 sm_80 sm_86 sm_89 sm_90 sm_100 sm_120", "24*sm_100f", "27*sm_90a"
    ),
    "vllm/_deepselect_C.abi3.so": code("78*sm_100f"),
    "vllm/_flashmla_C.abi3.so": code("53*sm_100f", "53*sm_90a"),
    "vllm/vllm_flash_attn/_vllm_fa2_C.abi3.so": code("76*sm_80 compute_80"),
    "vllm/vllm_flash_attn/_vllm_fa3_C.abi3.so": code("192*sm_90a"),
}
SGL = {
    "lib/mscclpp.so": code("sm_80 sm_90 compute_90"),
    "sgl_kernel/flash_ops.abi3.so": code("182*sm_80 sm_86 sm_90a"),
    "sgl_kernel/flashmla_ops.abi3.so": code("11*sm_90a sm_100a"),
    "sgl_kernel/infllm_ops.cpython-310-x86_64-linux-gnu.so": code("40*sm_80 sm_90 sm_120a"),
    "sgl_kernel/sm100/common_ops.abi3.so": code("74*sm_80 sm_89 sm_90 sm_90a sm_100a sm_120a"),
    "sgl_kernel/sm90/common_ops.abi3.so": code("74*sm_80 sm_89 sm_90 sm_90a sm_100a sm_120a"),
}
TORCHAO = {
    "torchao/_C_cutlass_90a.abi3.so": code("6*sm_90a"),
    "torchao/_C_mxfp8.cpython-310-x86_64-linux-gnu.so": code("3*sm_100 compute_120"),
}
TORCHAO_TWO = {"torchao/_C_cutlass_90a.abi3.so": code("6*sm_90a"), "torchao/_C_cutlass_100a.abi3.so": code("6*sm_100a")}
TORCHCODEC = {
    "torchcodec/libtorchcodec_core4.so": code("sm_80 sm_90"),
    "torchcodec.libs/libnvjpeg-1a359ba7.so.13.0.1.86": code("11*sm_75 sm_80 sm_90 sm_100 sm_103 compute_121"),
}
BITSANDBYTES = {
    "bitsandbytes/libbitsandbytes_cuda126.so": code("sm_70 sm_75 sm_80 sm_86 sm_90"),
    "bitsandbytes/libbitsandbytes_cuda130.so": code("sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"),
    "bitsandbytes/libbitsandbytes_rocm72.so": code("gfx90a gfx942"),
}
PADDLE = {
    "paddle/base/libpaddle.so": code("138*sm_61 sm_70 sm_75 sm_80 sm_86"),
    "paddle/libs/libphi.so": code("665*sm_61 sm_70 sm_75 sm_80 sm_86", "sm_35 sm_90"),
    "paddle/libs/libwarpctc.so": code("2*sm_35 sm_62 sm_75 sm_80 sm_90"),
}
NPP = {
    "nvidia/cu13/lib/libnppif.so.13": code("65*sm_80 sm_90 sm_100 compute_121"),
    "nvidia/cu13/lib/libnppc.so.13": code("sm_75"),
}
TE = {
    "transformer_engine/wheel_lib/libtransformer_engine.so": code(
        "42*sm_80 sm_90 sm_100", "47*sm_80 sm_90 sm_100a sm_103a"
    ),
    "transformer_engine/wheel_lib/libnccl_ep.so": code("2*sm_90 sm_100"),
}
FLASH_3 = {"flash_attn_3/_C.abi3.so": code("200*sm_80 sm_90a")}
ONLY_MLA = {"flash_mla/cuda.abi3.so": code("53*sm_90a")}
MLX = {"mlx/lib/libmlx.so": code("84*sm_75 sm_80 sm_90a sm_100a sm_120a compute_120")}
TILERT = {
    "tilert/libtilert_glm5.so": code("46*sm_100f"),
    "tilert/libtilert_dsv32.so": code("46*sm_100f"),
    "tilert/libtilert_glm52_rocm.so": code("gfx950"),
}
CVCUDA = {"cvcuda_cu12.libs/libcvcuda-abeea56b.so.0.19.0": code("67*sm_80 sm_90", "20*sm_80 sm_90 compute_90")}
MOST_OF_VLLM = {
    "vllm/_C.abi3.so": code("47*sm_80 sm_89 sm_90 sm_100", "7*sm_80 sm_89 sm_90", "27*sm_90a"),
    "vllm/_moe_C.abi3.so": code("23*sm_80 sm_89 sm_90 sm_100", "5*sm_80 sm_89 sm_90"),
}
ORT = {
    "onnxruntime/capi/libonnxruntime_providers_cuda.so": code(
        "308*sm_89 sm_90a sm_120a sm_121a", "9*sm_120a sm_121a", "292*sm_90a"
    )
}


@pytest.mark.parametrize(
    ("project", "libraries", "expected"),
    [
        ("torch", TORCH, "A100 native, H100 native, GB200 native, GB300 native, T4 unknown, V100 none, MI300X none"),
        ("vllm", VLLM, "H100 native, GB200 native, GB300 native, A100 native, T4 unknown, V100 none"),
        ("sgl-kernel", SGL, "H100 native, B200 native, B300 none, A100 native, V100 none"),
        ("torchao", TORCHAO, "H100 native, B200 native, B300 native, A100 unknown, RTX-5090 jit"),
        ("torchao", TORCHAO_TWO, "H100 native, B200 native, A100 unknown"),
        ("torchcodec", TORCHCODEC, "H100 native, T4G none, GB200 none"),
        ("bitsandbytes", BITSANDBYTES, "B200 native, H100 native, V100 native, P100 none, MI300X native, MI100 none"),
        ("paddlepaddle-gpu", PADDLE, "A100 native, H100 none, T4 native"),
        ("nvidia-npp", NPP, "H100 native, B200 native, T4 none"),
        ("transformer-engine-cu13", TE, "A100 native, H100 native, GB300 native"),
        ("flash-attn-3", FLASH_3, "H100 native, GB200 none"),
        ("flash-mla", ONLY_MLA, "H100 native, GB200 none"),
        ("flashinfer-cubin", {"flashinfer_cubin/cubins/fmha/*.cubin": code("sm_100f")}, "GB200 native, H100 none"),
        ("mlx-cuda-13", MLX, "GB200 native, GB300 none, T4 native"),
        ("onnxruntime-gpu", ORT, "GH200 native, GB200 none, GB10 native"),
        ("nvidia-nvjpeg", {"nvidia/cu13/lib/libnvjpeg.so.13": code("11*sm_90")}, "H100 native, T4 none"),
        ("demo", {"demo.libs/libnvjpeg-1a359ba7.so.13": code("11*sm_90")}, "H100 native, T4 unknown"),
        ("tilert", TILERT, "B200 native, MI355X native, H100 none"),
        ("demo", {"demo/_C.so": code("gfx942"), "demo/libnvjpeg.so": code("sm_90")}, "H100 none, MI300X native"),
        ("cvcuda-cu12", CVCUDA, "GH200 native, GB200 unknown, GB10 unknown"),
        ("vllm", MOST_OF_VLLM, "GB200 native, L40S native"),
        ("demo", {"demo/_C.so": code(*["sm_90"] * 99, "sm_90 sm_100")}, "GB200 none, H100 native"),
        ("demo", {"demo/_C.so": code("gfx90a gfx9-4-generic")}, "MI250X native, MI355X native, MI100 none, H100 none"),
    ],
)
def test_what_runs_where(project: str, libraries: Mapping[str, GpuCode | Unavailable], expected: str) -> None:
    facts = package(project, libraries)
    for text in expected.split(", "):
        gpu, how = text.split()
        found = answer(facts, parse_gpu(gpu))
        assert found is not None
        assert (gpu, found.runs.how) == (gpu, how), found.runs.why


def test_loose_files_for_another_makers_gpus_are_no_code_that_lacks() -> None:
    added = {"demo/asm/gfx950/*.co": code("gfx950")}

    assert answer(package("demo", added), parse_gpu("H100")) is None
    with_library = answer(package("demo", added | {"demo/_C.so": code("sm_80")}), parse_gpu("H100"))
    assert with_library is not None
    assert with_library.runs.how == "none"
    on_amd = answer(package("demo", added), parse_gpu("MI300X"))
    assert on_amd is not None
    assert on_amd.runs.how == "none"


@pytest.mark.parametrize(
    ("held", "how"), [("sm_80 sm_90", "unknown"), ("sm_80 sm_100", "native"), ("compute_90", "jit")]
)
def test_a_sample_proves_presence_and_no_absence(held: str, how: str) -> None:
    facts = package("demo", {"demo/_C.so": code(f"20*{held}", certainty="sampled")})
    found = answer(facts, parse_gpu("GB200"))

    assert found is not None
    assert found.runs.how == how
    assert still_matters(facts, parse_gpus("GB200")) == (frozenset() if how == "native" else {"demo/_C.so"})
    assert found.compiled == ()  # there may be machine code, too


def test_the_files_of_a_sample_do_not_outweigh_a_library_without_code() -> None:
    """As in sgl-flash-mla on H100, and mooncake: a sample of the library that runs shows few of its files."""
    lacking = {"demo/cuda.so": code("27*sm_80")}
    sampled = package("demo", lacking | {"demo/legacy.so": code("2*sm_90", certainty="sampled")})
    whole = package("demo", lacking | {"demo/legacy.so": code("55*sm_90")})

    found = answer(sampled, parse_gpu("H100"))
    assert found is not None
    assert found.runs.how == "unknown"
    assert still_matters(sampled, parse_gpus("H100")) == {"demo/legacy.so"}
    assert still_matters(whole, parse_gpus("H100")) == frozenset()


def test_one_file_in_a_hundred_of_a_sample_proves_nothing() -> None:
    facts = package("demo", {"demo/_C.so": code("99*sm_90", "sm_90 sm_100", certainty="sampled")})
    found = answer(facts, parse_gpu("GB200"))

    assert found is not None
    assert found.runs.how == "unknown"


def test_what_is_declared_is_no_proof() -> None:
    found = answer(package("torch", {}, declared="sm_80 sm_90"), parse_gpu("H100"))

    assert found is not None
    assert found.runs.how == "unknown"


def test_what_was_not_read_matters_unless_it_is_another_projects() -> None:
    libraries: dict[str, GpuCode | Unavailable] = {
        "demo/_C.so": code("9*sm_90"),
        "demo/_D.so": UNREAD,
        "demo.libs/libcublas.so.13": UNREAD,
    }

    assert still_matters(package("demo", libraries), parse_gpus("H100")) == {"demo/_D.so"}


def test_what_was_not_read_and_is_for_other_gpus_does_not_matter() -> None:
    libraries: dict[str, GpuCode | Unavailable] = {"demo/_C.so": code("9*sm_90"), "demo/_C_sm100.so": UNREAD}

    assert still_matters(package("demo", libraries), parse_gpus("H100")) == frozenset()


def test_without_gpu_code_there_is_no_answer() -> None:
    assert answer(package("demo", {"demo/_C.so": code()}), parse_gpu("H100")) is None
    assert answer(package("demo", {}), parse_gpu("H100")) is None


def test_what_lies_among_sources_is_compiled_with_them() -> None:
    assert answer(package("demo", {"demo/data/csrc/kda/*.ptx": code("4*compute_103a")}), parse_gpu("B200")) is None


def test_the_answer_names_what_lacks_code_and_why_that_is_fine() -> None:
    partly = answer(package("torch", TORCH), parse_gpu("T4"))
    fine = answer(package("vllm", VLLM), parse_gpu("GB200"))
    copies = answer(package("torchcodec", {"torchcodec/_C.so": code("sm_80 sm_110"), **TORCHCODEC}), parse_gpu("Thor"))
    cuda = answer(package("bitsandbytes", BITSANDBYTES), parse_gpu("B200"))

    assert partly is not None
    assert [one.member for one in partly.lacking] == ["torch/lib/libtorch_cuda_linalg.so"]
    assert fine is not None
    assert [one.member for one in fine.meant_for_others] == ["vllm/vllm_flash_attn/_vllm_fa3_C.abi3.so"]
    assert [one.member for one in fine.compiled] == ["vllm/vllm_flash_attn/_vllm_fa2_C.abi3.so"]
    assert copies is not None
    assert [one.cuda for one in cuda.other_cuda] == ["12.6"] if cuda else False


def test_of_alternatives_the_one_for_the_gpu_decides() -> None:
    libraries: dict[str, GpuCode | Unavailable] = {
        "demo/sm90/ops.so": code("9*sm_80"),
        "demo/sm100/ops.so": code("9*sm_90 sm_100"),
    }
    found = answer(package("demo", libraries), parse_gpu("H100"))

    assert found is not None
    assert found.runs.how == "unknown"  # the library for 9.0 has no code for it, another alternative has
