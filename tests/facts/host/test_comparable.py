"""The comparable facts of a host: the same for equal machines, without facts that always differ."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.hosts import cuda_fails, grace, healthy, hgx, package, replaced, with_packages, with_variables
from wheel_checks.facts.host.comparable import comparable
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.gpus.devices import KernelDriver
from wheel_checks.facts.host.network import InfiniBandPort
from wheel_checks.facts.host.probes import NvmlProbe
from wheel_checks.model import Unavailable


def with_gpus(facts: HostFacts, *changes: dict[str, Any]) -> HostFacts:
    """One GPU for each of the changes."""
    assert isinstance(facts.nvml, NvmlProbe)
    gpu = facts.nvml.gpus[0]
    gpus = tuple(replace(gpu, index=index, **change) for index, change in enumerate(changes))
    return replace(facts, nvml=replace(facts.nvml, gpus=gpus))


def test_a_server_with_eight_gpus() -> None:
    told = comparable(hgx())

    assert {name: told[name] for name in ("GPUs", "driver", "kernel module", "CUDA of the driver", "GPU memory")} == {
        "GPUs": "8 x NVIDIA H200",
        "driver": "580.159.04",
        "kernel module": "open",
        "CUDA of the driver": "13.0",
        "GPU memory": "141 GiB",
    }
    assert (told["fabric"], told["fabric manager"]) == ("completed", "580.159.04")
    assert (told["machine"], told["page size"]) == ("x86_64", "4 KiB")
    assert (told["torch"], told["triton"], told["nvidia-nccl-cu13"]) == ("2.11.0+cu130", "3.6.0", "2.28.9")


def test_architectures_differ() -> None:
    told = comparable(grace())
    assert (told["machine"], told["page size"]) == ("aarch64", "64 KiB")


def test_states_of_gpus() -> None:
    gpu = {"vbios": "96.00", "ecc_enabled": True, "mig_enabled": False, "compute_mode": 3, "power_limit": 700_000}
    told = comparable(with_gpus(healthy(), gpu, {**gpu, "ecc_enabled": False, "compute_mode": None}))

    assert (told["VBIOS"], told["MIG"], told["power limit"]) == ("96.00", "off", "700 W")
    assert told["ECC"] == "1 x on, 1 x off"
    assert told["compute mode"] == "1 x exclusive process, 1 x unknown"


def test_links_clocks_and_memory_of_gpus() -> None:
    gpu = {
        "nvlinks": 18,
        "nvlinks_total": 18,
        "nvlink_speed": 53_125,
        "nvlinks_faulty": 0,
        "fabric_state": 3,
        "fabric_cluster": "07" * 16,
        "fabric_clique": 5,
        "pcie_generation": 5,
        "pcie_width": 16,
        "pcie_width_most": 16,
        "sm_clock": 1980,
        "clock_reasons": 0x5,  # idle, and at the power limit
        "ecc_corrected": 12,
        "ecc_uncorrected": 0,
        "rows_corrected": 4,
        "rows_uncorrected": 0,
        "gsp_firmware": "580.159.04",
    }
    names = ["NVLinks", "NVLink errors", "NVLink domain", "PCIe", "SM clock", "throttled by", "rows remapped"]
    names += ["uncorrectable ECC errors", "GSP firmware"]
    healthy_ones = comparable(with_gpus(healthy(), gpu, gpu))
    assert [healthy_ones[name] for name in names] == [
        *("18 of 18 up at 53.125 GB/s", "none", f"{'07' * 16}.5", "generation 5 x 16", "1980 MHz", "nothing", "none"),
        *("none", "580.159.04"),
    ]
    faulty = {**gpu, "nvlinks": 17, "nvlinks_faulty": 2, "pcie_width": 8, "clock_reasons": 0x48, "rows_uncorrected": 1}
    told = comparable(with_gpus(healthy(), gpu, {**faulty, "ecc_uncorrected": 3, "fabric_cluster": ""}))
    assert [told[name] for name in names] == [
        "1 x 18 of 18 up at 53.125 GB/s, 1 x 17 of 18 up at 53.125 GB/s",
        "1 x none, 1 x on 2 links",
        f"1 x {'07' * 16}.5, 1 x none",
        "1 x generation 5 x 16, 1 x generation 5 x 8 of 16",
        "1980 MHz",
        "1 x nothing, 1 x the hardware, heat (hardware)",
        "1 x none, 1 x after uncorrectable errors",
        "1 x none, 1 x some",
        "580.159.04",
    ]


def test_counts_of_what_is_harmless_are_not_compared() -> None:
    one = comparable(with_gpus(healthy(), {"ecc_corrected": 0, "ecc_uncorrected": 0, "rows_corrected": 0}))
    other = comparable(with_gpus(healthy(), {"ecc_corrected": 9, "ecc_uncorrected": 0, "rows_corrected": 2}))
    assert one == other


def test_ports_and_xids() -> None:
    ports = tuple(
        InfiniBandPort(f"mlx5_{n}", 1, "ACTIVE", "400 Gb/sec (4X NDR)", "InfiniBand", "28.39") for n in range(3)
    )
    down = InfiniBandPort("mlx5_3", 1, "DOWN", "10 Gb/sec (1X SDR)", "Ethernet", "28.40")
    told = comparable(replaced(replace(healthy(), infiniband=(*ports, down)), "driver", xids=(13, 31, 48, 94)))

    assert told["InfiniBand"] == "3 x 400 Gb/s (4X NDR), 1 x down"
    assert told["InfiniBand firmware"] == "3 x 28.39, 1 x 28.40"
    assert told["XIDs"] == "48, 94"
    assert comparable(replace(healthy(), infiniband=()))["InfiniBand"] == "none"
    assert comparable(healthy())["InfiniBand"] is comparable(healthy())["XIDs"] is None
    assert comparable(replaced(healthy(), "driver", xids=(31,)))["XIDs"] == "none"


def test_what_could_not_be_read_is_none() -> None:
    unread = Unavailable("it was not read")
    told = comparable(replace(healthy(), nvml=unread, driver=unread, cuda=unread, installed=unread, system=unread))

    for name in ("driver", "CUDA of the driver", "VBIOS", "MIG", "GPU memory", "torch", "kernel", "memory"):
        assert told[name] is None, name
    assert told["GPUs"] == "1 x NVIDIA H200"


def test_no_driver_is_known() -> None:
    told = comparable(replace(healthy(), driver=KernelDriver("", None, "", (), (), 0, ())))
    assert (told["driver"], told["modules"], told["kernel module"]) == ("none", "none", None)


@pytest.mark.parametrize(
    "changed",
    [
        replaced(healthy(), "system", memory_bytes=480 * (1 << 30) - (90 << 20)),  # firmware keeps some for itself
        with_gpus(
            healthy(), {"uuid": "GPU-11111111-2222-4333-8444-555555555555", "memory_free": 7, "processes": (4711,)}
        ),
        with_variables(healthy(), SLURM_JOB_ID="7", SLURMD_NODENAME="node-7", HOME="/home/alice", PATH="/x"),
        replace(healthy(), taken="2026-01-01T00:00:00Z", seconds={"pci": 7.0}),
    ],
)
def test_what_differs_between_any_two_hosts_is_left_out(changed: HostFacts) -> None:
    assert comparable(changed) == comparable(healthy())


def test_variables_that_matter_without_whose_home_it_is() -> None:
    alice = with_variables(healthy(), LD_LIBRARY_PATH="/home/alice/cuda/lib64", CUDA_VISIBLE_DEVICES="")
    bob = with_variables(healthy(), LD_LIBRARY_PATH="/home/bob/cuda/lib64", CUDA_VISIBLE_DEVICES="")

    assert comparable(alice) == comparable(bob)
    assert comparable(alice)["variable LD_LIBRARY_PATH"] == "/home/USER/cuda/lib64"
    assert comparable(alice)["variable CUDA_VISIBLE_DEVICES"] == '""'


def test_another_version_of_a_library_shows() -> None:
    other = comparable(with_packages(healthy(), package("nvidia-nccl-cu13", "2.27.0")))
    differing = {name for name, value in comparable(healthy()).items() if other.get(name) != value}
    assert differing == {"nvidia-nccl-cu13"}


def test_a_failing_cuda_changes_nothing_of_the_machine() -> None:
    assert comparable(cuda_fails(healthy(), 802)) == comparable(healthy())
