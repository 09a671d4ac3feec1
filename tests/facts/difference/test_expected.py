"""The libraries that only one architecture has, and sizes that are no accident."""

from __future__ import annotations

import re

import pytest

from tests.support.pairs import wheel_for
from tests.support.wheel_facts import facts_of
from wheel_checks.data import load
from wheel_checks.facts.difference.expected import expected_library, expected_need, is_outlier
from wheel_checks.facts.difference.wheels import side_of

ARM, INTEL = side_of(facts_of(wheel_for("aarch64"))), side_of(facts_of(wheel_for("x86_64")))


@pytest.mark.parametrize(
    "name",
    [
        "torch/lib/libarm_compute.so",
        "torch.libs/libarm_compute_graph-91f54ff9.so",
        "torch/lib/libnvpl_lapack_lp64_gomp.so.0",
        "torch.libs/libopenblasp-r0-121ca252.3.30.so",
        "torch/lib/libopenblas-24fd393f.so.0",
        "libgfortran.so.5",
        "libarmpl_lp64_mp.so",
    ],
)
def test_made_for_arm(name: str) -> None:
    assert expected_library(name, ARM, INTEL)
    assert not expected_library(name, INTEL, ARM)


@pytest.mark.parametrize("name", ["libmkl_intel_lp64.so.3", "libiomp5.so", "libquadmath-96973f99.so.0.0.0"])
def test_made_for_intel(name: str) -> None:
    assert expected_library(name, INTEL, ARM)
    assert not expected_library(name, ARM, INTEL)


def test_on_one_architecture_every_library_should_be_on_both_sides() -> None:
    assert not expected_library("libarm_compute.so", ARM, ARM)


@pytest.mark.parametrize("name", ["libtorch_cuda.so", "libopenblas_not.so", "libgomp.so.1", "mylibmkl_rt.so.3"])
def test_made_for_both(name: str) -> None:
    assert not expected_library(name, ARM, INTEL)
    assert not expected_library(name, INTEL, ARM)


def test_the_loader_and_parts_of_glibc_may_be_needed_on_one_side() -> None:
    assert expected_need("ld-linux-aarch64.so.1", ARM, INTEL)
    assert expected_need("libdl.so.2", INTEL, ARM)
    assert not expected_need("libgomp.so.1", INTEL, ARM)
    assert not expected_need("libcuda.so.1", INTEL, ARM)


def test_an_outlier_is_large_by_ratio_and_by_bytes() -> None:
    mebibyte = 1 << 20
    assert is_outlier(mebibyte, 2 * mebibyte)
    assert is_outlier(2 * mebibyte, 0)
    assert not is_outlier(1000, mebibyte)
    assert not is_outlier(100 * mebibyte, 173 * mebibyte)


def test_every_row_of_the_table_has_a_dated_source() -> None:
    for row in load("architecture_libraries")["library"]:
        assert row["machine"] in {"aarch64", "x86_64"}, row
        assert re.search(r"\d{4}-\d{2}", row["source"]), row
        assert re.compile(row["pattern"])
        assert row["name"]
