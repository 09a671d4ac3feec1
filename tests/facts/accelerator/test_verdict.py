"""The accelerator verdict: members, version.py and requirements of wheels in the shape of real ones (November 2026)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from packaging.requirements import Requirement

from tests.support.wheel_facts import AARCH64, X86_64, facts_of
from tests.support.wheels import WheelBuilder, torch_like
from wheel_checks.facts.accelerator.signals import marker_fault
from wheel_checks.facts.accelerator.verdict import AcceleratorFacts, judge
from wheel_checks.facts.wheel.summary import headline
from wheel_checks.formats.wheel.version_file import VersionFile


def judged(wheel: WheelBuilder) -> AcceleratorFacts:
    """The verdict on a built wheel."""
    facts = facts_of(wheel).accelerator
    assert isinstance(facts, AcceleratorFacts)
    return facts


@dataclass(frozen=True)
class Wheel:
    """A wheel, and the expected statements: one word per signal, or empty."""

    name: str
    label: str
    members: str = ""
    version_py: str = ""
    requirements: str = ""
    files: tuple[str, ...] = ()
    text: str = ""
    requires: tuple[str, ...] = ()
    tags: str = "cp312-cp312-manylinux_2_28_x86_64"

    def build(self) -> WheelBuilder:
        wheel = WheelBuilder(self.name, "1.0", self.tags).metadata(requires=self.requires)
        for file in self.files:
            wheel.add(file)
        return wheel.add(f"{self.name}/version.py", self.text) if self.text else wheel


LINUX_ONLY = 'platform_system == "Linux"'
REAL = [
    Wheel(
        "torchvision",
        "CUDA 13.0",
        members="cuda 13",
        version_py="cuda 13.0",
        files=(
            "torchvision/_C.so",
            "torchvision.libs/libcudart.faf08d9a.so.13",
            "torchvision.libs/libnvjpeg.1f2.so.13",
        ),
        text="__version__ = '0.29.1+cu130'\ngit_version = 'abc'\n",
        requires=("numpy", "torch==2.15.0"),
    ),
    Wheel(
        "torchaudio", "CUDA 12.8", version_py="cuda 12.8", text="__version__ = '2.11.0+cu128'\n", requires=("torch",)
    ),
    Wheel(
        "triton",
        "CUDA and ROCm",
        members="cuda rocm",
        files=("triton/backends/nvidia/bin/ptxas", "triton/backends/amd/lib/ocml.bc", "triton/_C/libtriton.so"),
    ),
    Wheel(
        "bitsandbytes",
        "CUDA and ROCm and XPU",
        members="cuda rocm xpu",
        files=tuple(
            f"bitsandbytes/libbitsandbytes_{built}.so"
            for built in ("cpu", "cuda118", "cuda128", "cuda130", "rocm71", "xpu2025")
        ),
        requires=("torch<3,>=2.3",),
    ),
    Wheel(
        "cupy_cuda13x",
        "CUDA 13",
        members="cuda 13",
        files=("cupy/cuda/common.cpython-312-x86_64-linux-gnu.so", "cupy_backends/cuda/stream.cpython-312-x.so"),
        requires=("numpy", 'cuda-toolkit[cudart]==13.*; extra == "ctk"'),
    ),
    Wheel(
        "jax_cuda12_plugin",
        "CUDA 12",
        members="cuda 12",
        requirements="cuda 12",
        files=("jax_cuda12_plugin/_solver.so", "jax_cuda12_plugin/_hybrid.so"),
        requires=("jax-cuda12-pjrt==0.9.2", 'nvidia-cublas-cu12>=12.1; extra == "with-cuda"'),
    ),
    Wheel("torchdata", "no accelerator", text="__version__ = '0.11.0+cpu'\n", requires=("torch>=2",)),
    Wheel("jax", "no accelerator", requires=("jaxlib", 'jax-cuda12-plugin[with-cuda]; extra == "cuda12"')),
    Wheel("jaxlib", "no accelerator", files=("jaxlib/libjax_common.so", "jaxlib/mlir/_mlir_libs/_mlir.so")),
    Wheel("numpy", "no accelerator", files=("numpy/_core/_multiarray_umath.cpython-312-x86_64-linux-gnu.so",)),
    Wheel("onnxruntime", "no accelerator", files=("onnxruntime/capi/libonnxruntime.so.1.31.1",)),
    Wheel(
        "onnxruntime_gpu",
        "CUDA",
        members="cuda",
        files=("onnxruntime/capi/libonnxruntime.so.1.31.1", "onnxruntime/capi/libonnxruntime_providers_cuda.so"),
        requires=("numpy", 'nvidia-cudnn-cu12~=9.0; extra == "cudnn"'),
    ),
    Wheel(
        "nvidia_cublas",
        "CUDA 13",
        "cuda 13",
        "",
        "cuda",
        ("nvidia/cu13/lib/libcublas.so.13",),
        requires=("nvidia-cuda-nvrtc",),
    ),
    Wheel(
        "nvidia_cudnn_cu13",
        "CUDA 13",
        "cuda 13",
        "",
        "cuda",
        ("nvidia/cudnn/lib/libcudnn.so.9",),
        requires=("nvidia-cublas",),
    ),
    Wheel("nvidia_nccl_cu13", "CUDA 13", "cuda 13", files=("nvidia/nccl/lib/libnccl.so.2",)),
    Wheel(
        "nvidia_cuda_runtime",
        "CUDA 13",
        "cuda 13",
        files=("nvidia/cu13/lib/libcudart.so.13", "nvidia/cu13/include/x.h"),
    ),
    Wheel(
        "vllm",
        "CUDA",
        requirements="cuda",
        files=("vllm/_C.abi3.so", "vllm/cumem_allocator.abi3.so", "vllm/vllm_flash_attn/_vllm_fa2_C.abi3.so"),
        requires=("torch==2.15.0", "nvidia-cudnn-frontend>=1.31", "nvidia-cutlass-dsl[cu13]==4.8"),
        tags="cp38-abi3-manylinux_2_28_x86_64",
    ),
    Wheel(
        "cudf_cu12",
        "CUDA 12",
        "cuda 12",
        requirements="cuda 12",
        files=("cudf/core/udf/shim.fatbin",),
        requires=("cuda-python<13.0,>=12.9.2", "cuda-toolkit[nvcc,nvrtc]==12.*", "cupy-cuda12x>=13.6"),
    ),
    Wheel(
        "tensorflow",
        "no accelerator",
        files=("tensorflow/libtensorflow_cc.so.2", "tensorflow/include/x/stream_executor/cuda/cuda_dnn.h"),
        requires=('nvidia-cublas-cu12==12.5.3.2; extra == "and-cuda"', 'nvidia-nccl-cu12==2.25; extra == "and-cuda"'),
    ),
    Wheel(
        "torch",
        "ROCm 7.1.1",
        members="rocm",
        version_py="rocm 7.1.1",
        files=("torch/lib/libtorch_hip.so", "torch/lib/libtorch_cpu.so"),
        text="__version__ = '2.9.1+rocm7.1.1.lw.git351ff442'\ncuda = None\n",
    ),
    Wheel(
        "torch",
        "CPU only",
        "",
        "cpu",
        files=("torch/lib/libtorch_cpu.so",),
        text="__version__ = '2.9.1+cpu.cxx11.abi'\n",
    ),
    Wheel(
        "demo",
        "CUDA 12",
        "cuda 12",
        files=("demo/libcudart.so.12", "demo/libbitsandbytes_cuda126.so", "demo/libbitsandbytes_cuda128.so"),
    ),
    Wheel("demo", "CUDA", "cuda", files=("demo/ops_cuda.abi3.so",)),
    Wheel("demo", "CUDA", "cuda", files=("demo/ops_cuda.cp312-win_amd64.pyd",), tags="cp312-cp312-win_amd64"),
    Wheel(
        "onnxruntime_gpu",
        "CUDA",
        "cuda",
        files=("onnxruntime/capi/onnxruntime_pybind11_state.pyd", "onnxruntime/capi/onnxruntime_providers_cuda.dll"),
        tags="cp312-cp312-win_amd64",
    ),
    Wheel(
        "torch",
        "CUDA 12.8",
        "cuda 12",
        "cuda 12.8",
        files=("torch/lib/torch_cuda.dll", "torch/lib/torch_cpu.dll", "torch/lib/cudart64_12.dll"),
        text="__version__ = '2.10.0+cu128'\ncuda = '12.8'\n",
        requires=(f"nvidia-cuda-runtime-cu12==12.8.90; {LINUX_ONLY}",),
        tags="cp312-cp312-win_amd64",
    ),
    Wheel("demo", "no accelerator", files=("demo/libbarracuda.so", "demo/_cudalike.so", "demo/cuda.py")),
]


@pytest.mark.parametrize("wheel", REAL, ids=lambda wheel: f"{wheel.name}: {wheel.label}")
def test_given_these_files_and_requirements_this_verdict(wheel: Wheel) -> None:
    facts = judged(wheel.build())

    said = [" ".join([*signal.accelerators, signal.version]).strip() for signal in facts.signals[1:]]
    assert (facts.label, said) == (wheel.label, [wheel.members, wheel.version_py, wheel.requirements])
    assert facts.conflicts == ()


@pytest.mark.parametrize(
    ("wheel", "expected"),
    [
        (torch_like("cpu", "2.10.0", "aarch64"), "CPU only (2.10.0+cpu)"),
        (torch_like("cuda", "2.10.0", "x86_64", build="3"), "CUDA 12.8 (2.10.0+cu128)"),
        (torch_like("cuda", "2.11.0", "x86_64"), "CUDA 13.0 (2.11.0+cu130)"),
        (torch_like("cuda", "2.11.0", "aarch64"), "CUDA 13.0 (2.11.0+cu130)"),
        (torch_like("rocm", "2.11.0", "x86_64"), "ROCm 7.1.25424 (2.11.0+rocm7.1)"),
        (torch_like("xpu", "2.11.0", "x86_64"), "XPU 20250301 (2.11.0+xpu)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_builds_of_torch(wheel: WheelBuilder, expected: str) -> None:
    facts = facts_of(wheel)

    assert headline(facts) == expected
    assert judged(wheel).conflicts == ()


def test_one_metadata_means_cuda_on_x86_64_and_cpu_on_aarch64() -> None:
    on_aarch64, on_x86_64 = (
        judged(torch_like(build, "2.10.0", machine)).signals[3]
        for build, machine in (("cpu", "aarch64"), ("cuda", "x86_64"))
    )

    assert on_aarch64.accelerators == ("cpu",)
    assert on_aarch64.detail == (
        "4 requirements such as nvidia-cuda-runtime-cu12 active on linux x86_64, none on linux aarch64"
    )
    assert on_x86_64.accelerators == ("cuda",)
    assert on_x86_64.detail == (
        "nvidia-cuda-runtime-cu12==12.8.90, nvidia-cublas-cu12==12.8.4.1 and 2 more: active on linux x86_64"
    )


NVIDIA_ON_LINUX = f"nvidia-cuda-runtime-cu12==12.8.90; {LINUX_ONLY}"


@pytest.mark.parametrize(
    ("platform", "library", "here"),
    [
        ("win_amd64", "torch/lib/torch_cpu.dll", "win32 AMD64"),
        ("win_arm64", "torch/lib/torch_cpu.dll", "win32 ARM64"),
        ("macosx_11_0_arm64", "torch/lib/libtorch_cpu.dylib", "darwin arm64"),
        ("macosx_11_0_universal2", "torch/lib/libtorch_cpu.dylib", "darwin arm64"),
    ],
)
def test_the_markers_of_a_wheel_for_another_system_are_those_of_that_system(
    platform: str, library: str, here: str
) -> None:
    wheel = WheelBuilder("torch", "2.10.0", f"cp312-cp312-{platform}").add(library)

    facts = judged(wheel.metadata(requires=[NVIDIA_ON_LINUX]))

    assert (facts.label, facts.conflicts) == ("CPU only", ())
    assert facts.signals[3].detail.endswith(f"active on linux x86_64, none on {here}")


def test_the_markers_of_a_musl_wheel_are_those_of_its_machine() -> None:
    wheel = WheelBuilder(tags="cp312-cp312-musllinux_1_2_aarch64")

    facts = judged(wheel.metadata(requires=['nvidia-nccl-cu13; platform_machine == "aarch64"']))

    assert facts.label == "CUDA 13"


def test_a_wheel_that_bundles_the_cuda_runtime_needs_no_requirement_for_it() -> None:
    facts = judged(
        WheelBuilder("torch", "2.9.0", "cp312-cp312-manylinux_2_28_aarch64")
        .add("torch/lib/libtorch_cuda.so")
        .add("torch/lib/libcudart.so.12")
        .metadata(requires=['nvidia-cuda-runtime-cu12==12.8.90; platform_machine == "x86_64"'])
    )

    assert (facts.label, facts.conflicts) == ("CUDA 12", ())


@pytest.mark.parametrize(
    ("values", "version"),
    [
        ({"cuda": "13.0"}, "13.0"),
        ({"cuda": True}, ""),
        ({"cuda": "yes"}, ""),
        ({"hip": "7.1.25424-4179531dcd"}, "7.1.25424"),
        ({"__version__": "1.0+rocm7.1.lw"}, "7.1"),
        ({"__version__": "1.0+cu128.with.pypi.cudnn"}, "12.8"),
        ({"__version__": "1.0+cu12torch2.9"}, ""),
        ({"cuda": "\u0663.\u0660"}, ""),  # digits, but none that a version is written with
        ({"cuda": "9" * 5_000}, ""),
        ({"cuda": f"13.{'9' * 5_000}"}, "13"),
    ],
)
def test_only_numbers_are_a_version(values: dict[str, str | bool], version: str) -> None:
    facts = judge([], [VersionFile("demo/version.py", values)], [], X86_64.markers(), [])

    assert facts.version == version


def test_a_marker_without_a_value_is_no_requirement() -> None:
    odd = Requirement('nvidia-nccl-cu13; sys_platform ~= "linux"')
    unknown = Requirement('nvidia-nccl-cu13; "gpu" in extras')

    facts = judge([], [], [odd, unknown], X86_64.markers(), [AARCH64.markers()])

    assert facts.label == "no accelerator"
    assert marker_fault(odd, X86_64.markers()) == "Undefined <Op('~=')> on 'linux' and 'linux'."
    assert marker_fault(unknown, X86_64.markers()) == "the variable 'extras' is missing"


@pytest.mark.parametrize("name", ["_cuda" * 13_000 + ".so", "/" + "lib" * 20_000 + ".so.1", "_cuda_" * 160 + ".sO.so"])
def test_absurd_names_cost_no_time(name: str) -> None:
    assert judge([name] * 100, [], [], X86_64.markers(), []).accelerator in {"none", "cuda"}
