"""The GPU code of extensions compiled against torch."""

from __future__ import annotations

import pytest

from tests.support.environments import MODULE, installed_facts, library
from tests.support.fatbin import fat_binary, section
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.host.software import ExtensionCode
from wheel_checks.facts.host.torch.extension_code import read_extension_code


def kernels(name: str, **libraries: tuple[str, ...]) -> WheelBuilder:
    """A wheel with these libraries, each with code for these targets."""
    built = WheelBuilder(name, "1.0", "cp312-cp312-manylinux_2_28_aarch64").add(MODULE, library())
    for member, labels in libraries.items():
        data = library(contents={".nv_fatbin": section(fat_binary(*labels))})
        built.add(f"{name}/{member}.so", data)
    return built


@pytest.mark.parametrize(
    ("wheel", "code"),
    [
        (kernels("demo", main=("sm_90a", "compute_80")), (("demo/main.so", ("sm_90a", "compute_80")),)),
        (
            kernels("demo", main=("sm_80", "sm_90"), hopper=("sm_90a",)),
            (("demo/main.so", ("sm_80", "sm_90")),),
        ),
        (kernels("demo"), ()),
        (kernels("other", main=("sm_90a",)), ()),
    ],
    ids=["one library", "the library with the most targets", "no GPU code", "not asked for"],
)
def test_the_code_of_the_main_library(wheel: WheelBuilder, code: tuple[tuple[str, tuple[str, ...]], ...]) -> None:
    found: list[ExtensionCode] = []
    installed_facts(lambda env: found.extend(read_extension_code(env.install(wheel).facts(), {"demo"})))

    assert [(one.distribution, one.member, one.labels) for one in found] == [("demo", *row) for row in code]


def test_a_library_that_cannot_be_read_tells_nothing() -> None:
    found: list[ExtensionCode] = []
    broken = kernels("demo").add("demo/main.so", b"\x7fELF no more")
    installed_facts(lambda env: found.extend(read_extension_code(env.install(broken).facts(), {"demo"})))

    assert found == []
