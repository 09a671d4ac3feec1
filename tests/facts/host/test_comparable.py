"""What of a host is compared with others: the same for equal machines, nothing that differs between any two."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.hosts import cuda_fails, grace, healthy, hgx, package, replaced, with_packages, with_variables
from wheel_checks.facts.host.comparable import comparable
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.gpu import KernelDriver
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
