"""Error texts of CUDA and Triton for a kernel that crashes, or cannot run on this GPU."""

# What a CUDA context that cannot be used any more says. The next case needs a new process.
from __future__ import annotations

CRASHES = (
    "illegal memory access",
    "misaligned address",
    "illegal instruction",
    "unspecified launch failure",
    "an illegal barrier",
    "hardware stack error",
    "invalid address space",
    "invalid program counter",
    "uncorrectable ECC error",
    "device-side assert",
    "Invalid access of peer GPU memory",
    "CUDA_ERROR_LAUNCH_FAILED",
    "CUDA_ERROR_ILLEGAL_ADDRESS",
)
NOT_ON_THIS_GPU = ("fp8e4nv not supported", "type fp8e4nv not supported")


class AuthorError(Exception):
    """The description of a kernel broke, and not the kernel: the kernel could not be judged."""
