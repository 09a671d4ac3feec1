"""The error codes of CUDA and NVML in words, from ``data/cuda_errors.toml``."""

from functools import cache
from typing import Literal

from wheel_checks.data import load

NOT_LOADED = -1  # stands for a library that cannot be loaded

_LIBRARIES = {"cuda": "libcuda.so.1", "nvml": "libnvidia-ml.so.1"}


def error_name(code: int, api: Literal["cuda", "nvml"] = "cuda") -> str:
    """``CUDA_ERROR_NO_DEVICE``; "" for a code that is past our table."""
    return _errors(api).get(code, ("", ""))[0]


def error_text(code: int, api: Literal["cuda", "nvml"] = "cuda") -> str:
    """``100 (CUDA_ERROR_NO_DEVICE: no GPU is visible to this process)``; only the number past our table."""
    if code == NOT_LOADED:
        return f"{_LIBRARIES[api]} cannot be loaded"
    name, meaning = _errors(api).get(code, ("", ""))
    return f"{code} ({name}: {meaning})" if name else str(code)


@cache
def _errors(api: str) -> dict[int, tuple[str, str]]:
    return {row["code"]: (row["name"], row["meaning"]) for row in load("cuda_errors")[api]}
