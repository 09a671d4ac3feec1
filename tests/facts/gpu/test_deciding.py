"""Which files of a package decide, by their names and places."""

from __future__ import annotations

import pytest

from wheel_checks.facts.gpu.deciding import DecidingGroup, deciding_groups


def roles(project: str, *members: str) -> dict[str, str]:
    """The role of each member."""
    return {member: group.role for group in deciding_groups(members, project) for member in group.members}


@pytest.mark.parametrize(
    ("project", "member", "role"),
    [
        ("torch", "torch/lib/libtorch_cuda.so", "main"),
        ("torch", "torch/lib/libtorch_cuda_linalg.so", "library"),
        ("torch", "torch/lib/libcublas.so.12", "bundled"),
        ("torch", "torch/lib/rocblas/library/Kernels.so-000-gfx942.hsaco", "bundled"),
        ("torchcodec", "torchcodec.libs/libnvjpeg-1a359ba7.so.13.0.1.86", "bundled"),
        ("torchcodec", "torchcodec/libtorchcodec_core7.so", "library"),
        ("nvidia-nvjpeg", "nvidia/cu13/lib/libnvjpeg.so.13", "main"),
        ("nvidia-cublas", "nvidia/cu13/lib/libcublasLt.so.13", "library"),
        ("ctranslate2", "ctranslate2.libs/libctranslate2-a7a60d30.so.4.8.5", "main"),
        ("faiss-gpu-cu12", "faiss_gpu_cu12.libs/libfaiss-6b43fd57.so", "main"),
        ("onnxruntime-gpu", "onnxruntime/capi/libonnxruntime_providers_cuda.so", "main"),
        ("xformers", "xformers/_C.so", "main"),
        ("vllm", "vllm/_C_stable_libtorch.abi3.so", "main"),
        ("vllm", "vllm/_moe_C_stable_libtorch.abi3.so", "library"),
        ("vllm", "vllm/vllm_flash_attn/_vllm_fa3_C.abi3.so", "special"),
        ("vllm", "vllm/vllm_flash_attn/_vllm_fa2_C.abi3.so", "library"),
        ("torchao", "torchao/_C_cutlass_90a.abi3.so", "special"),
        ("transformer-engine-cu13", "transformer_engine/wheel_lib/libnccl_ep.so", "bundled"),
        ("transformer-engine-cu13", "transformer_engine/wheel_lib/libtransformer_engine.so", "main"),
        ("flash-attn-3", "flash_attn_3/_C.abi3.so", "main"),  # words of the project's own name are not tokens
        ("demo", "demo/flash_attn_3/_C.abi3.so", "special"),
        ("demo", "demo/cosmos120abc.so", "library"),
        ("", "demo/_C.so", "main"),
    ],
)
def test_the_role_of_a_library(project: str, member: str, role: str) -> None:
    assert roles(project, member) == {member: role}


def only(project: str, *members: str) -> DecidingGroup:
    """The one group of these members."""
    (group,) = deciding_groups(members, project)
    return group


def test_folders_for_architectures_hold_alternatives() -> None:
    group = only("sgl-kernel", "sgl_kernel/sm90/common_ops.abi3.so", "sgl_kernel/sm100/common_ops.abi3.so")

    assert group.role == "special"
    assert [alternative.architectures for alternative in group.alternatives] == [(90,), (100,)]


def test_names_for_cuda_versions_are_alternatives() -> None:
    group = only("bitsandbytes", "bitsandbytes/libbitsandbytes_cuda126.so", "bitsandbytes/libbitsandbytes_cuda130.so")

    assert group.role == "main"
    assert [alternative.cuda for alternative in group.alternatives] == ["12.6", "13.0"]


@pytest.mark.parametrize("names", [("_qattn_sm80", "_qattn_sm90"), ("k_hopper", "k_blackwell"), ("k_80a", "k_90a")])
def test_names_for_architectures_are_alternatives(names: tuple[str, ...]) -> None:
    assert len(deciding_groups([f"demo/{name}.so" for name in names], "demo")) == 1


def test_features_of_one_architecture_are_no_alternatives() -> None:
    assert len(deciding_groups(["demo/_C_mxfp8.so", "demo/_C_nvfp4.so"], "demo")) == 2


def test_libraries_of_an_amd_processor_are_alternatives() -> None:
    group = only("demo", "demo/kernels_gfx90a.co", "demo/kernels_gfx942.co")

    assert [alternative.architectures for alternative in group.alternatives] == [("gfx90a",), ("gfx942",)]


def test_paths_of_any_length_are_read() -> None:
    name = f"{'sm_90' * 100_000}.so"

    assert only("demo", name).members == (name,)
