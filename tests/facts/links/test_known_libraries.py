"""The tables of driver and system libraries, plugins and preloads."""

from __future__ import annotations

import pytest

from wheel_checks.data import load
from wheel_checks.facts.links.known_libraries import (
    brought_with,
    host_program_of,
    needs_no_driver,
    nvidia_package,
    plugin_feature,
    preloader_of,
    provider_of,
)


@pytest.mark.parametrize(
    ("soname", "provider"),
    [
        ("libcuda.so.1", "driver"),
        ("libnvidia-ml.so.1", "driver"),
        ("libnvidia-ptxjitcompiler.so.1", "driver"),
        ("libc.so.6", "system"),
        ("libstdc++.so.6", "system"),
        ("ld-linux-aarch64.so.1", "system"),
        ("libcudart.so.13", ""),
        ("libnvrtc.so.13", ""),
        ("libgomp.so.1", ""),
        ("libz-1a2b3c4d.so.1", ""),
        ("xlibc.so.6", ""),
    ],
)
def test_who_brings_a_library(soname: str, provider: str) -> None:
    assert provider_of(soname) == provider


def test_an_older_policy_promises_less() -> None:
    assert [provider_of("libmvec.so.1", glibc) for glibc in ((2, 17), (2, 28), None)] == ["", "system", "system"]
    assert [provider_of("libssl.so.3", glibc) for glibc in ((2, 34), (2, 39))] == ["", "system"]
    assert provider_of("libssl.so.1.1", (2, 39)) == ""


def test_a_system_with_musl_has_no_other_system_library() -> None:
    musl, glibc = (0, 0), (2, 39)
    found = [
        provider_of(soname, musl) for soname in ("libc.musl-x86_64.so.1", "libz.so.1", "libc.so.6", "libcuda.so.1")
    ]
    assert found == ["system", "system", "", "driver"]
    assert provider_of("libc.musl-x86_64.so.1", glibc) == ""


@pytest.mark.parametrize(
    ("soname", "program"),
    [
        ("libavcodec.so.58", "FFmpeg"),
        ("libswscale.so.9", "FFmpeg"),
        ("libascendcl.so", "Ascend CANN"),
        ("libacl_op_compiler.so", "Ascend CANN"),
        ("libacl.so.1", ""),  # access control lists
        ("libnuma.so.1", "numactl"),
        ("libmlx5.so.1", "rdma-core"),
        ("libpython3.12.so.1.0", "a Python that is built with a shared library"),
        ("libgomp.so.1", "GCC's OpenMP"),
        ("libgomp-a49a47f9.so.1", ""),
        ("libavcodec-1a2b3c4d.so.58", ""),
        ("libcublas.so.12", ""),
    ],
)
def test_what_a_host_may_have_installed(soname: str, program: str) -> None:
    assert host_program_of(soname) == program


@pytest.mark.parametrize(
    ("soname", "cuda", "package"),
    [
        ("libcublasLt.so.12", "12", "nvidia-cublas-cu12"),
        ("libcublasLt.so.13", "13", "nvidia-cublas"),
        ("libcudnn_adv.so.9", "13", "nvidia-cudnn-cu13"),
        ("libcusparseLt.so.0", "12", "nvidia-cusparselt-cu12"),
        ("libcusparse.so.12", "13", "nvidia-cusparse"),
        ("libcusparse.so.12", "", ""),
        ("libnccl_ep.so", "13", ""),
        ("libtorch.so", "13", ""),
    ],
)
def test_which_package_brings_a_library_of_nvidia(soname: str, cuda: str, package: str) -> None:
    assert nvidia_package(soname, cuda) == package


def test_what_torch_requires_itself() -> None:
    assert [brought_with("torch", name) for name in ("libnccl.so.2", "libcudss.so.0", "libz.so.1")] == [
        True,
        False,
        False,
    ]


def test_plugins_and_preloads_are_told_by_their_paths() -> None:
    assert "InfiniBand" in plugin_feature("nvidia/nvshmem/lib/nvshmem_transport_ibrc.so.3")
    assert plugin_feature("nvidia/nvshmem/lib/libnvshmem_host.so.3") == ""
    assert "Triton" in plugin_feature("/env/lib/python3.12/site-packages/triton/plugins/libMLIRDialectPlugin.so")
    assert preloader_of("/site/nvidia/cu13/lib/libcublas.so.13") == "torch"
    assert preloader_of("/site/nvidia/cu13/lib/libcudart_static.a") == ""


def test_every_row_names_its_source_with_a_date() -> None:
    rows = [row for table in load("libraries").values() for row in table]

    assert rows
    assert [row for row in rows if "pattern" not in row or not row.get("source")] == []


def test_libraries_that_need_none_of_the_driver() -> None:
    assert needs_no_driver("libcublasLt.so.13")
    assert not needs_no_driver("libcudnn_engines_runtime_compiled.so.9")
    assert not needs_no_driver("libcublas.so")
