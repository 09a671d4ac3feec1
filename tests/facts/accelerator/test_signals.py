"""A signal's statement on the versions and names that it was read from."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement

from wheel_checks.facts.accelerator.signals import member_signal, requirement_signal


@pytest.mark.parametrize(
    ("versions", "version", "said"),
    [
        (["128"], "12.8", ""),
        (["126", "128"], "12", ""),  # of one major version, and two can be read from the file names
        (["126", "128", "129"], "12", " (CUDA 12.6, 12.8, 12.9)"),
        (["118", "126"], "", " (CUDA 11.8, 12.6)"),
        (["118", "126", "128"], "", " (CUDA 11.8, 12.6, 12.8)"),
    ],
)
def test_versions_are_listed_when_they_are_many_or_differ_in_the_major_one(
    versions: list[str], version: str, said: str
) -> None:
    files = [f"bitsandbytes/libbitsandbytes_cuda{digits}.so" for digits in versions]

    signal = member_signal(files)

    assert (signal.version, signal.detail) == (version, ", ".join(files) + said)


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (2, "nvidia-nccl-cu12, nvidia-cublas-cu12"),
        (3, "nvidia-nccl-cu12, nvidia-cublas-cu12 and 1 more"),
        (4, "nvidia-nccl-cu12, nvidia-cublas-cu12 and 2 more"),
    ],
)
def test_two_requirements_are_named_and_the_others_counted(count: int, said: str) -> None:
    names = ["nvidia-nccl-cu12", "nvidia-cublas-cu12", "nvidia-cufft-cu12", "nvidia-nvtx-cu12"]
    linux = {"sys_platform": "linux", "platform_machine": "x86_64"}

    signal = requirement_signal([Requirement(name) for name in names[:count]], linux, [])

    assert signal.detail == f"{said}: active on linux x86_64"
