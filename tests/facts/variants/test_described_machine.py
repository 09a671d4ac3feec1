"""Machines as people describe them: the platform and the CPU follow from the product, the CUDA from the driver."""

from __future__ import annotations

import pytest

from wheel_checks.errors import UsageError
from wheel_checks.facts.gpu.targets import Product, parse_gpus, products
from wheel_checks.facts.variants.described_machine import cuda_of_driver, default_driver, describe_machines
from wheel_checks.targets.target import this_machine
from wheel_checks.targets.variant_machine import Machine


def test_platform_and_cpu_follow_from_the_product() -> None:
    machines = describe_machines(parse_gpus("GB200,H100"), ["580"], None)

    assert machines == (
        Machine("aarch64", "Grace", "GB200", 100, "580", "13.0"),
        Machine("x86_64", "x86-64-v3", "H100", 90, "580", "13.0"),
    )


def test_every_gpu_with_every_driver() -> None:
    machines = describe_machines(parse_gpus("T4,H100"), ["535", "580.95.05", "none"], None)

    assert [(machine.gpu, machine.driver, machine.cuda) for machine in machines] == [
        (gpu, *driver) for gpu in ("T4", "H100") for driver in (("535", "12.2"), ("580.95.05", "13.0"), ("", ""))
    ]


def test_the_default_driver_is_one_that_supports_cuda_13() -> None:
    assert [machine.driver for machine in describe_machines(products()[:1], [], None)] == [default_driver()]
    assert cuda_of_driver(default_driver()) == "13.0"


def test_a_cpu_alone_is_a_machine_without_a_gpu() -> None:
    assert describe_machines((), [], "Graviton2") == (Machine("aarch64", "Graviton2"),)
    assert describe_machines((), [], None) == ()


def test_a_cpu_and_a_platform_count_more_than_the_usual_machine_of_a_card() -> None:
    (by_cpu,) = describe_machines(parse_gpus("H100"), [], "Grace")
    (by_platform,) = describe_machines(parse_gpus("H100"), [], None, ["aarch64"])

    assert (by_cpu.machine, by_cpu.cpu) == ("aarch64", "Grace")
    assert (by_platform.machine, by_platform.cpu) == ("aarch64", "Armv8-A")


def test_with_all_platforms_each_product_stays_on_its_own() -> None:
    machines = describe_machines(parse_gpus("GH200,H100"), [], None, ["x86_64", "aarch64"])

    assert [(machine.gpu, machine.machine) for machine in machines] == [("GH200", "aarch64"), ("H100", "x86_64")]


def test_a_capability_is_in_this_machine() -> None:
    (machine,) = describe_machines([Product("sm_100", 100)], [], None)

    assert machine.machine == this_machine().target.machine


@pytest.mark.parametrize("driver", ["", "5", "580x", "580.", "999", "100", "580.1.2.3"])
def test_a_driver_that_the_table_does_not_have_is_wrong_usage(driver: str) -> None:
    with pytest.raises(UsageError, match="is unknown"):
        cuda_of_driver(driver)
