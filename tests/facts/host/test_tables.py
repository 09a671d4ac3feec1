"""Which CUDA a driver supports, and which GPU a name means."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from tests.support.hosts import grace, healthy, replaced, without_driver
from wheel_checks.data import load
from wheel_checks.facts.gpu.drivers import highest_cuda, oldest_driver
from wheel_checks.facts.gpu.targets import parse_gpu
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.gpus.pci_names import name_of
from wheel_checks.facts.host.software import Loader
from wheel_checks.facts.host.tables import (
    capability_of,
    driver_cuda,
    driver_version,
    host_gpus,
)
from wheel_checks.model import Unavailable

TABLE = load("drivers")


@pytest.mark.parametrize(
    ("driver", "cuda"),
    [
        ("450.80.02", "11.0"),
        ("470.256.02", "11.4"),
        ("525.60.13", "12.0"),
        ("535.288.01", "12.2"),
        ("550.54.15", "12.4"),
        ("570.172.08", "12.8"),
        ("580.95.05", "13.0"),
        ("581.29", "13.0"),  # lent by Windows to WSL
        ("595.45.04", "13.2"),
        ("615.10", "13.4"),
        ("619.99", "13.4"),
    ],
)
def test_the_newest_cuda_of_a_driver(driver: str, cuda: str) -> None:
    assert highest_cuda(driver) == cuda


@pytest.mark.parametrize("driver", ["620.10", "999.1", "418.87", "", "580", "abc", "5800.1", "-580.1", "580,95"])
def test_beyond_the_table_nothing_is_guessed(driver: str) -> None:
    assert highest_cuda(driver) is None


@given(st.text(max_size=20))
def test_any_text_gives_a_cuda_or_none(text: str) -> None:
    assert highest_cuda(text) in {None, *(row["cuda"] for row in TABLE["branch"])}


def test_newer_branches_support_newer_cudas() -> None:
    rows = [(row["branch"], Version(row["cuda"])) for row in TABLE["branch"]]

    assert all(old[0] < new[0] and old[1] < new[1] for old, new in itertools.pairwise(rows))
    assert rows[-1][0] < TABLE["horizon"]


@pytest.mark.parametrize("row", TABLE["major"], ids=lambda row: f"CUDA {row['cuda']}")
def test_the_oldest_driver_of_a_major_version_is_in_its_first_branch(row: dict[str, int | str]) -> None:
    first = next(branch for branch in TABLE["branch"] if branch["cuda"].startswith(f"{row['cuda']}."))

    assert oldest_driver(int(row["cuda"])) == row["driver"]
    assert str(row["driver"]).startswith(str(first["branch"]))


def test_a_major_version_past_the_table_has_no_oldest_driver() -> None:
    assert oldest_driver(99) is None


def test_the_driver_itself_is_believed_before_the_table() -> None:
    facts = replaced(healthy(), "cuda", driver_cuda=12080)

    found = driver_cuda(facts)

    assert found is not None
    assert (found.version, found.source, found.inferred) == ("12.8", "cuDriverGetVersion 12080", False)


@pytest.mark.parametrize(("driver", "cuda", "inferred"), [("550.54.15", "12.4", False), ("565.57.01", "12.7", True)])
def test_without_its_word_the_table_tells(driver: str, cuda: str, inferred: bool) -> None:
    facts = replaced(replaced(healthy(), "cuda", driver_cuda=0), "driver", version=driver)

    found = driver_cuda(facts)

    assert found is not None
    assert (found.version, found.inferred) == (cuda, inferred)
    assert found.source == (
        f"driver {driver} in /sys/module/nvidia/version, table of drivers of {TABLE['collected']}"
        + ", inferred" * inferred
    )


def test_what_torch_found_is_believed_before_the_table() -> None:
    says = "The NVIDIA driver on your system is too old (found version 12080). Please update your GPU driver"
    facts = replaced(replaced(healthy(), "cuda", driver_cuda=0), "torch", init_error=says)

    found = driver_cuda(facts)

    assert found is not None
    assert (found.version, found.source) == ("12.8", "torch: driver on your system is too old (found version 12080)")


@pytest.mark.parametrize("code", [34, 803, 804])
def test_a_libcuda_that_is_not_the_drivers_own_is_not_believed(code: int) -> None:
    found = driver_cuda(replaced(healthy(), "cuda", driver_cuda=12040, code=code))

    assert found is not None
    assert found.version == "13.0"


def test_the_version_is_looked_for_in_the_kernel_then_nvml_then_the_library() -> None:
    facts = healthy()
    hidden = replaced(facts, "driver", version="")
    unloaded = replaced(hidden, "nvml", driver_version="")

    assert driver_version(facts) == ("580.159.04", "/sys/module/nvidia/version")
    assert driver_version(hidden) == ("580.159.04", "NVML")
    assert driver_version(unloaded) == ("580.159.04", "/usr/lib/x86_64-linux-gnu/libcuda.so.1")
    assert driver_version(replaced(unloaded, "loader", cuda_libraries=())) == ("", "")
    assert driver_version(HostFacts()) == ("", "")


def test_no_driver_no_cuda() -> None:
    facts = without_driver(healthy())

    assert isinstance(facts.loader, Loader)
    assert driver_cuda(facts) is None
    assert driver_cuda(HostFacts()) is None


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("NVIDIA H100 80GB HBM3", 90),
        ("NVIDIA GH200 480GB", 90),
        ("NVIDIA A100-SXM4-80GB", 80),
        ("Tesla V100-SXM2-16GB", 70),
        ("Tesla T4", 75),
        ("NVIDIA T4G", 75),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", 89),
        ("NVIDIA GeForce RTX 2080 Ti", 75),
        ("NVIDIA RTX 6000 Ada Generation", 89),
        ("Quadro RTX 6000", 75),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 120),
        ("NVIDIA GB200", 100),
        ("NVIDIA GB10", 121),
        ("Orin (nvgpu)", 87),
        ("NVIDIA T400", 0),  # no T4
        ("NVIDIA GeForce GTX 1080 Ti", 0),
        ("AMD Instinct MI300X", 0),
        ("NVIDIA", 0),
        ("", 0),
    ],
)
def test_the_capability_that_a_name_tells(name: str, capability: int) -> None:
    assert capability_of(name) == capability


def test_a_name_of_a_megabyte_costs_its_length_and_not_the_square_of_it() -> None:
    assert capability_of("NVIDIA H100 80GB HBM3" + " a b" * 250_000) == 90  # in the square it would take hours


@given(st.sampled_from(sorted(load("pci")["devices"])))
def test_the_names_of_pci_devices_tell_no_other_capability_than_the_products(device: str) -> None:
    capability = capability_of(name_of(device))

    assert capability == 0 or parse_gpu(f"sm_{capability}").sm == capability


def test_gpus_are_taken_from_cuda_then_nvml_then_the_bus() -> None:
    facts = grace()
    of_nvml = replaced(facts, "cuda", gpus=())
    of_bus = replaced(of_nvml, "nvml", gpus=())

    assert [(gpu.name, gpu.sm, gpu.source) for gpu in host_gpus(facts)] == [("NVIDIA GH200 480GB", 90, "CUDA")]
    assert [(gpu.sm, gpu.source) for gpu in host_gpus(of_nvml)] == [(90, "NVML")]
    assert [(gpu.sm, gpu.source) for gpu in host_gpus(of_bus)] == [(90, "PCI 0000:18:00.0")]
    assert host_gpus(HostFacts(pci=Unavailable("there is no /sys"))) == ()
