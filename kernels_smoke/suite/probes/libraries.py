"""Probes of the libraries behind torch on a GPU: cuBLAS, cuDNN, and torch.compile with its own use of Triton."""

import os
from collections.abc import Callable

import torch

from kernels_smoke.suite.advice import Advice, doctor, unset
from kernels_smoke.suite.probes.answer import Answer, first_line

# Relative errors by norm. Fp32 sums of a thousand products measure some 3e-7, TF32 3e-4, rounding to bf16 1.7e-3.
FP32, BF16 = 1e-6, 4e-3
CONVOLUTION = 1e-5  # fp32 by Winograd's algorithm loses some digits; TF32 would still be 30 times that
REINSTALL = (
    unset("LD_LIBRARY_PATH", "its libraries go before those that the wheels of torch bring"),
    doctor("is a file of torch, or of the libraries that it loads, not the one that was installed?"),
)


def cublas(device: str = "cuda") -> Answer:
    """Products in fp32 (without TF32), in bf16, and in bf16 with a bias (by cuBLASLt), against float64."""
    torch.set_float32_matmul_precision("highest")
    left, right, bias = _normal(384, 1000), _normal(1000, 640), _normal(640)

    def exact(dtype: torch.dtype) -> torch.Tensor:
        return left.to(dtype).double() @ right.to(dtype).double()

    def on_device(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        return tensor.to(device, dtype)

    half, single = torch.bfloat16, torch.float32
    linear = torch.nn.functional.linear(on_device(left, half), on_device(right.T, half), on_device(bias, half))
    measured = {
        "fp32": (_error(on_device(left, single) @ on_device(right, single), exact(single)), FP32),
        "bf16": (_error(on_device(left, half) @ on_device(right, half), exact(half)), BF16),
        "bf16 with bias": (_error(linear, exact(half) + bias.to(half).double()), BF16),
    }
    evidence = {name: f"{error:.2g} (at most {tolerance:.0g})" for name, (error, tolerance) in measured.items()}
    wrong = [name for name, (error, tolerance) in measured.items() if not error <= tolerance]
    if wrong:
        fix: tuple[Advice, ...] = REINSTALL
        if "NVIDIA_TF32_OVERRIDE" in os.environ:
            evidence["NVIDIA_TF32_OVERRIDE"] = os.environ["NVIDIA_TF32_OVERRIDE"]
            fix = (unset("NVIDIA_TF32_OVERRIDE", "it forces TF32 upon fp32 products"), *fix)
        message = f"cuBLAS is off against float64: {', '.join(f'{name}: {evidence[name]}' for name in wrong)}"
        return Answer("fail", message, evidence, fix)
    return Answer("pass", "products agree with float64 in fp32 and bf16", evidence)


def cudnn(device: str = "cuda") -> Answer:
    """A convolution in fp32 against float64 on the CPU."""
    if device == "cuda" and not torch.backends.cudnn.is_available():
        return Answer("skip", f"torch {torch.__version__} is built without cuDNN")
    images, filters = _normal(2, 16, 33, 31), _normal(24, 16, 3, 3)
    with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False):
        version = torch.backends.cudnn.version()
        result = torch.nn.functional.conv2d(images.to(device, torch.float32), filters.to(device, torch.float32))
    exact = torch.nn.functional.conv2d(images.float().double(), filters.float().double())
    error = _error(result, exact)
    evidence = {"cuDNN": str(version), "error": f"{error:.2g} (at most {CONVOLUTION:.0g})"}
    if not error <= CONVOLUTION:
        return Answer("fail", f"a convolution is off against float64 by {evidence['error']}", evidence, REINSTALL)
    return Answer("pass", f"a convolution of cuDNN {version} agrees with float64", evidence)


def torch_compile(device: str = "cuda") -> Answer:
    """Compile a small function with torch.compile and compare it with eager. The kernels do not depend on it."""
    warning = {"severity": "warning"}
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # its pool of compilers would outlive this process
    numbers, factors = _normal(37, 1000).to(device, torch.float32), _normal(1000).to(device, torch.float32)

    def function(numbers: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(numbers * factors + 1).sum(-1)

    try:
        result = torch.compile(function)(numbers, factors)
    except Exception as error:  # compilers raise anything; each is this probe's answer
        evidence = warning | {"error": f"{type(error).__name__}: {error}"[-2000:]}
        message = f"torch.compile fails: {first_line(error) or type(error).__name__}"
        return Answer("fail", message, evidence, ("see the probes triton, c_compiler and jit_cache",))
    off = _error(result, function(numbers.double(), factors.double()).cpu())
    if not off <= FP32:
        message = f"torch.compile computes wrong values: they are off by {off:.2g} (at most {FP32:.0g})"
        return Answer("fail", message, warning, REINSTALL[1:])
    return Answer("pass", "torch.compile computes what eager does", {"error": f"{off:.2g}"})


LIBRARIES: dict[str, Callable[[], Answer]] = {"cublas": cublas, "cudnn": cudnn, "torch_compile": torch_compile}


def _normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def _error(result: torch.Tensor, exact: torch.Tensor) -> float:
    """||result - exact|| / ||exact||, which no NaN passes."""
    return float((result.cpu().double() - exact).norm() / exact.norm())
