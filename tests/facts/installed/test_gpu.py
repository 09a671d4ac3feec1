"""The GPU code of installed libraries: whose it is, how little is read for it, and that damaged files do no harm."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.rules.installed.installed_cases import cuda, kernels, wheel
from tests.support.elf import AARCH64, Elf
from tests.support.environments import Installed, library
from tests.support.fatbin import Image, fat_binary, section
from wheel_checks.facts.gpu import places
from wheel_checks.facts.gpu.code import GpuCodeFacts
from wheel_checks.facts.installed.facts import InstalledDistribution, InstalledEnvironment
from wheel_checks.model import Unavailable, need


def code_of(inside: InstalledEnvironment, name: str) -> GpuCodeFacts:
    """The GPU code of a distribution."""
    found = inside.named(name)
    assert found is not None
    return need(InstalledDistribution(found, inside).gpu_code)


def test_each_distribution_has_its_own_and_what_belongs_to_none_is_apart(tmp_path: Path) -> None:
    env = Installed(tmp_path).install(kernels(["sm_90"], liba=["sm_100a"])).install(wheel("plain"))
    inside = env.write("demo/libstray.so", cuda("sm_75")).facts(gpu_code=True)

    assert [(member, code.sass) for member, code in code_of(inside, "demo").known] == [
        ("demo/liba.so", ("sm_100a",)),
        ("demo/libmain.so", ("sm_90",)),
    ]
    assert code_of(inside, "plain").libraries == ()
    assert [member for member, _ in need(inside.gpu_code)[""].known] == [f"{tmp_path}/demo/libstray.so"]


def test_it_is_not_read_unless_asked_for(tmp_path: Path) -> None:
    inside = Installed(tmp_path).install(kernels(["sm_90"])).facts()

    assert inside.gpu_code == Unavailable("GPU code was not read", "--gpu GB200, or --depth gpu")


def test_payloads_are_not_read(tmp_path: Path) -> None:
    images = [Image("sm_90", 1_000_000), Image("sm_100", 2_000_000, "zstd"), Image("compute_90", 500_000)]
    data = library(contents={".nv_fatbin": section(fat_binary(*images), fat_binary("sm_120"))})
    inside = Installed(tmp_path).install(wheel().add("demo/libbig.so", data)).facts(gpu_code=True)

    (found,) = code_of(inside, "demo").libraries
    assert need(found.code).counts == {"sm_90": 1, "sm_100": 1, "compute_90": 1, "sm_120": 1}
    assert found.bytes_read < 20_000 < 3_500_000 < len(data)


def test_relocatable_code_fat_binaries_and_cubins_of_their_own(tmp_path: Path) -> None:
    loaded, relocatable = section(fat_binary("sm_90")), section(fat_binary("sm_100"))
    both = library(contents={".nv_fatbin": loaded, "__nv_relfatbin": relocatable})
    built = wheel().add("demo/liba.so", both).add("demo/libb.so", library(contents={"__nv_relfatbin": relocatable}))
    built.add("demo/c.fatbin", fat_binary("sm_75")).add("demo/k/d.cubin", b"").add("demo/k/e.cubin", b"")
    found = code_of(Installed(tmp_path).install(built).facts(gpu_code=True), "demo")

    assert {member: code.sass for member, code in found.known} == {
        "demo/liba.so": ("sm_90",),
        "demo/libb.so": ("sm_100",),
        "demo/c.fatbin": ("sm_75",),
    }
    assert [member for member, _ in found.unread] == ["demo/k/*.cubin"]


def test_code_that_a_library_keeps_as_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "_MUCH_DATA", 10_000)
    stub, kept = section(fat_binary("sm_75")), section(*[fat_binary("sm_100")] * 100)
    elf = Elf(machine=AARCH64, contents={".nv_fatbin": stub, ".data": kept}).build().data
    without = Elf(machine=AARCH64, contents={".nv_fatbin": stub, ".data": bytes(20_000)}).build().data
    alone = Elf(machine=AARCH64, contents={".data": kept}).build().data  # no section says that there is code
    tables = Elf(machine=AARCH64, contents={".data": bytes(20_000)}).build().data
    built = wheel().add("demo/libfft.so", elf).add("demo/libother.so", without)
    built.add("demo/libalone.so", alone).add("demo/libtables.so", tables)
    found = dict(code_of(Installed(tmp_path).install(built).facts(gpu_code=True), "demo").known)

    assert found["demo/libfft.so"].counts == {"sm_75": 1, "sm_100": 100}
    assert found["demo/libother.so"].counts == {"sm_75": 1}
    assert found["demo/libalone.so"].counts == {"sm_100": 100}
    assert "demo/libtables.so" not in found


def test_a_distribution_without_record_is_not_judged(tmp_path: Path) -> None:
    inside = Installed(tmp_path).install(kernels(["sm_90"])).remove("demo-1.0.dist-info/RECORD").facts(gpu_code=True)

    with pytest.raises(Exception, match="RECORD is missing, so nothing can be compared"):
        code_of(inside, "demo")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (section(fat_binary(Image("sm_90", 9_000)))[:5_000], "ends at byte 5000, inside a container"),
        (section(fat_binary("sm_90")) + b"corrupt!" * 4, "has magic 0x72726F63"),
    ],
)
def test_unsound_code_is_told_with_its_reason(tmp_path: Path, content: bytes, why: str) -> None:
    data = library(contents={".nv_fatbin": content})
    inside = Installed(tmp_path).install(wheel().add("demo/libx.so", data)).facts(gpu_code=True)

    ((member, reason),) = code_of(inside, "demo").unread
    assert member == "demo/libx.so"
    assert why in reason.reason


SOUND = library(contents={".nv_fatbin": section(fat_binary("sm_90", "sm_100a"), fat_binary("compute_90"))})


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, len(SOUND) - 1), st.binary(min_size=1, max_size=8)), max_size=4))
def test_a_damaged_library_is_read_or_refused(tmp_path: Path, patches: list[tuple[int, bytes]]) -> None:
    data = bytearray(SOUND)
    for offset, patch in patches:
        data[offset : offset + len(patch)] = patch
    inside = Installed(tmp_path).install(wheel()).write("libx.so", bytes(data)).facts(gpu_code=True)

    for library_found in need(inside.gpu_code).get("", GpuCodeFacts(())).libraries:
        assert isinstance(library_found.code, Unavailable) or library_found.code.certainty == "exact"
        assert library_found.bytes_read <= 2 * len(data)
