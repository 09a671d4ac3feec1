"""The accelerators that native members show by sections and needed libraries, and proofs of absence."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.support.elf import Elf
from tests.support.pe import ARM64, Pe
from tests.support.wheel_facts import MemorySource, facts_of
from tests.support.wheels import ELF_MACHINES, WheelBuilder, gpu_library
from wheel_checks.facts.accelerator.content import _Found, glance_at_accelerator, read_accelerator_content
from wheel_checks.facts.accelerator.meaning import is_known_by_name, library_meaning
from wheel_checks.facts.accelerator.shown import AcceleratorContent
from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.archive.reading import read_archive
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.formats.elf.bytes import ByteRange, WholeFile
from wheel_checks.formats.elf.file import Missing, read_elf
from wheel_checks.formats.elf.sections import Sections

TAGS = "cp312-cp312-manylinux_2_28_x86_64"
CUBIN = Elf(machine=190).build().data
HSACO = Elf(machine=224).build().data
BITCODE = bytes.fromhex("4243c0de3514") + bytes(60)


def content_of(members: dict[str, bytes], **options: object) -> AcceleratorContent:
    """The accelerators that these members of a wheel show."""
    wheel = WheelBuilder("demo", "1.0", TAGS)
    for name, data in members.items():
        wheel.add(name, data)
    source = MemorySource(wheel.build())
    return read_accelerator_content(source, read_archive(source), **options)  # type: ignore[arg-type]  # bounds


def judged(members: dict[str, bytes], name: str = "demo", requires: tuple[str, ...] = ()) -> AcceleratorFacts:
    """The verdict on a wheel with these members."""
    wheel = WheelBuilder(name, "1.0", TAGS).metadata(requires=requires)
    for member, data in members.items():
        wheel.add(member, data)
    facts = facts_of(wheel).accelerator
    assert isinstance(facts, AcceleratorFacts)
    return facts


@pytest.mark.parametrize(
    ("member", "data", "accelerator", "said"),
    [
        ("demo/_C.so", gpu_library(), "cuda", "demo/_C.so has .nv_fatbin"),
        ("demo/_C.so", gpu_library(section="__nv_relfatbin"), "cuda", "demo/_C.so has __nv_relfatbin"),
        ("demo/_C.so", gpu_library(section=".hip_fatbin"), "rocm", "demo/_C.so has .hip_fatbin"),
        ("demo/_C.so", gpu_library(needed=["libcuda.so.1"], section=""), "cuda", "demo/_C.so needs libcuda.so.1"),
        ("demo/_C.so", gpu_library(needed=["libsycl.so.8"], section=""), "xpu", "demo/_C.so needs libsycl.so.8"),
        ("demo/tool", gpu_library(), "cuda", "demo/tool has .nv_fatbin"),
        ("demo/a.cubin", CUBIN, "cuda", "demo/a.cubin has GPU code (1 such files)"),
        ("demo/a.fatbin", bytes.fromhex("50ed55ba") + bytes(60), "cuda", "demo/a.fatbin has GPU code (1 such files)"),
        ("demo/a.hsaco", HSACO, "rocm", "demo/a.hsaco has GPU code (1 such files)"),
        ("demo/libdevice.10.bc", BITCODE, "cuda", "demo/libdevice.10.bc has GPU code (1 such files)"),
        ("demo/slim_libdevice.10.bc", BITCODE, "cuda", "demo/slim_libdevice.10.bc has GPU code (1 such files)"),
    ],
)
def test_one_member_shows_an_accelerator(member: str, data: bytes, accelerator: str, said: str) -> None:
    wheel = WheelBuilder("demo", "1.0", TAGS).add(member, data, mode=0o100755)
    source = MemorySource(wheel.build())

    content = read_accelerator_content(source, read_archive(source))

    assert (content.accelerators, str(content.shown[0])) == ((accelerator,), said)
    assert content.complete


@pytest.mark.parametrize(
    ("member", "data"),
    [
        ("demo/_C.so", gpu_library(needed=["libc.so.6", "libcurl.so.4", "libnvpl_blas_core.so.0"], section="")),
        ("demo/_C.so", gpu_library(needed=["libnvidia-ml.so.1", "libOpenCL.so.1"], section="")),
        ("demo/_C.so", Elf(contents={".nv_fatbin": b""}).build().data),
        ("demo/_C.so", b"INPUT(libother.so)" + bytes(80)),
        ("demo/_C.so", bytes.fromhex("cffaedfe") + bytes(80)),
        ("demo/a.cubin", b"a text about cubins" + bytes(80)),
        ("demo/a.fatbin", b"not a container" + bytes(80)),
        ("demo/runtime_x64.bc", BITCODE),
    ],
    ids=[
        "other libraries",
        "monitoring, OpenCL",
        "an empty section",
        "a linker script",
        "Mach-O",
        "a text",
        "a text too",
        "bitcode for the CPU",
    ],
)
def test_what_is_no_accelerator_and_looks_like_one(member: str, data: bytes) -> None:
    content = content_of({member: data})

    assert (content.shown, content.complete) == ((), True)


@pytest.mark.parametrize(
    ("soname", "meaning"),
    [
        ("libcudart.so.12", [("cuda", "12")]),
        ("libcudart.so.11.0", [("cuda", "11")]),
        ("libcudart.3eda8113.so.13", [("cuda", "13")]),
        ("libnvjpeg-1a359ba7.so.13.0.1.86", [("cuda", "13")]),
        ("libcublasLt.so.13", [("cuda", "13")]),
        ("libcufft.so.11", [("cuda", "12")]),
        ("libcufft.so.12", [("cuda", "13")]),
        ("libcufft.so.10", [("cuda", "")]),
        ("libcusolver.so.12", [("cuda", "13")]),
        ("libcusolver.so.11", [("cuda", "")]),
        ("libcurand.so.10", [("cuda", "")]),
        ("libcudnn.so.9", [("cuda", "")]),
        ("libamdhip64.so.7", [("rocm", "7")]),
        ("libcudnn_frontend_text.so.1x", [("cuda", "")]),
        ("libcurl.so.4", []),
        ("libnvidia-ml.so.1", []),
        ("libcudadebugger.so.1", []),
    ],
)
def test_what_a_soname_means(soname: str, meaning: list[tuple[str, str]]) -> None:
    assert list(library_meaning(soname)) == meaning


def test_libraries_for_two_majors_of_cuda_are_named_as_such() -> None:
    facts = judged({f"demo/cuda{n}.so": gpu_library(needed=[f"libcudart.so.{n}"]) for n in (12, 13)})

    assert (facts.label, facts.version, facts.majors) == ("CUDA 12 and 13", "", ("12", "13"))
    assert facts.conflicts == ()


def test_a_bundled_library_is_not_needed_from_outside() -> None:
    content = content_of(
        {
            "demo/_C.so": gpu_library(needed=["libcudart.3eda8113.so.13"]),
            "demo.libs/libcudart.3eda8113.so.13": Elf(soname="libcudart.3eda8113.so.13").build().data,
        }
    )

    assert content.versions("cuda") == ("13",)
    assert content.needs_from_outside("cuda") == ()


def test_the_content_decides_against_names_and_without_them() -> None:
    assert judged({"demo/_core.so": gpu_library(needed=["libcudart.so.13"])}).label == "CUDA 13"
    declared = judged({"demo/ops_cuda.so": gpu_library(section="")})

    assert (declared.accelerator, declared.certainty) == ("cuda", "declared")
    assert declared.described == "CUDA (declared: members)"


def test_a_requirement_alone_is_only_declared() -> None:
    facts = judged({}, requires=("cuda-toolkit==13.0.2",))

    assert (facts.label, facts.certainty) == ("CUDA 13.0", "declared")
    assert (facts.serves("cuda"), facts.serves("cpu")) == (None, None)


def test_a_wheel_without_native_members_is_proven_by_its_directory() -> None:
    facts = judged({"demo/a.py": b""})

    assert (facts.accelerator, facts.certainty, facts.serves("cpu"), facts.serves("cuda")) == (
        "none",
        "exact",
        True,
        False,
    )


def test_one_unknown_member_leaves_absence_open() -> None:
    stripped = Elf(section_table=False).build().data
    facts = judged({"demo/a.so": gpu_library(section=""), "demo/b.so": stripped})

    assert (facts.accelerator, facts.certainty) == ("none", "declared")
    assert facts.unread == (
        "1 of 2 native members were not read completely, such as demo/b.so: the names of its sections are out of reach"
    )
    assert (facts.serves("cpu"), facts.serves("cuda")) == (None, None)


def test_where_two_majors_are_shown_all_are_sought() -> None:
    libraries = {f"demo/cuda{n}.so": gpu_library(needed=[f"libcudart.so.{n}"]) + bytes(n) for n in (10, 11, 12, 13, 14)}

    assert content_of(libraries, at_hand=0).versions("cuda") == ("10", "11", "12", "13", "14")


def test_libraries_whose_names_hint_at_versions_are_read_before_the_search_ends() -> None:
    noise = random.Random(9).randbytes(200_000)
    members = {
        f"demo/libdemo_cuda{12 + n // 6}{n % 6}.so": Elf(
            needed=[f"libcudart.so.{12 + n // 6}"], contents={".nv_fatbin": bytes(16), ".data": noise + bytes(n)}
        )
        .build()
        .data
        for n in range(8)
    }

    content = content_of(members, at_hand=0)

    assert content.versions("cuda") == ("12", "13")


@pytest.mark.parametrize(
    ("member", "pe", "accelerator", "version", "said"),
    [
        ("demo/_C.pyd", Pe(sections={".nv_fatbin": b"x"}), "cuda", "", "demo/_C.pyd has .nv_fatb"),
        ("demo/_C.pyd", Pe(sections={".nvFatBi": b"x"}), "cuda", "", "demo/_C.pyd has .nvFatBi"),
        ("demo/_C.pyd", Pe(imports=("CUDART64_13.DLL",)), "cuda", "13", "demo/_C.pyd needs CUDART64_13.DLL"),
        ("demo/_C.pyd", Pe(imports=("cudart64_110.dll",)), "cuda", "11", "demo/_C.pyd needs cudart64_110.dll"),
        ("demo/_C.pyd", Pe(delay_imports=("nvcuda.dll",)), "cuda", "", "demo/_C.pyd needs nvcuda.dll"),
        ("demo/_C.pyd", Pe(machine=ARM64, imports=("torch_cuda.dll",)), "cuda", "", "demo/_C.pyd needs torch_cuda.dll"),
        ("demo/nvrtc64_130_0.dll", Pe(), "cuda", "13", "demo/nvrtc64_130_0.dll is nvrtc64_130_0.dll"),
        ("demo/_C.pyd", Pe(sections={".hip_fatbin": b"x"}), "rocm", "", "demo/_C.pyd has .hip_fat"),
        ("demo/_C.pyd", Pe(imports=("amdhip64_7.dll",)), "rocm", "7", "demo/_C.pyd needs amdhip64_7.dll"),
        ("demo/_C.pyd", Pe(imports=("sycl8.dll",)), "xpu", "", "demo/_C.pyd needs sycl8.dll"),
        ("demo/_ops.so", Pe(imports=("cublas64_12.dll",)), "cuda", "12", "demo/_ops.so needs cublas64_12.dll"),
    ],
)
def test_a_library_of_windows_shows_an_accelerator(
    member: str, pe: Pe, accelerator: str, version: str, said: str
) -> None:
    content = content_of({member: pe.build().data})

    assert (content.accelerators, str(content.shown[0])) == ((accelerator,), said)
    assert (content.shown[0].version, content.complete) == (version, True)


@pytest.mark.parametrize(
    ("member", "data"),
    [
        ("demo/_C.pyd", Pe(imports=("KERNEL32.dll", "nvml.dll", "OpenCL.dll", "dxgi.dll")).build().data),
        ("demo/_C.pyd", Pe(imports=("cudart_stub.dll", "mynvcuda.dll", "torch_cpu.dll")).build().data),
        ("demo/_C.pyd", Pe(sections={".nv_fatbin": b""}).build().data),
        ("demo/cli.exe", Pe(imports=("KERNEL32.dll",)).build().data),
        ("demo/a.dll", b"version https://git-lfs.github.com/spec/v1" * 3),
    ],
    ids=["monitoring, OpenCL, DirectX", "other names", "an empty section", "a launcher", "a text"],
)
def test_what_is_no_accelerator_on_windows_and_looks_like_one(member: str, data: bytes) -> None:
    content = content_of({member: data})

    assert (content.shown, content.complete) == ((), True)


def test_a_corrupt_library_of_windows_leaves_absence_open() -> None:
    content = content_of({"demo/_C.pyd": Pe().build().data[:700], "demo/b.pyd": Pe().build().data})

    assert (content.read, content.native) == (1, 2)
    assert "such as demo/_C.pyd: it cannot be read as a PE file: section .text ends at 0x400" in content.missing


def test_a_bundled_dll_is_found_whatever_its_case() -> None:
    members = {"demo/_C.pyd": Pe(imports=("CudArt64_13.dll",)).build().data, "demo/cudart64_13.dll": Pe().build().data}

    assert content_of(members).needs_from_outside("cuda") == ()


@pytest.mark.parametrize(
    ("dll", "meaning"),
    [
        ("cudart64_12-0f3a1b2c4d5e6f708192a3b4c5d6e7f8.dll", [("cuda", "12")]),
        ("cudart64_101.dll", [("cuda", "10")]),
        ("cublasLt64_13.dll", [("cuda", "13")]),
        ("cublas64_10.dll", [("cuda", "")]),
        ("cufft64_11.dll", [("cuda", "12")]),
        ("cufft64_10.dll", [("cuda", "")]),
        ("cusolver64_11.dll", [("cuda", "")]),
        ("nvJitLink_130_0.dll", [("cuda", "13")]),
        ("cudnn_ops64_9.dll", [("cuda", "")]),
        ("cupti64_2024.2.1.dll", [("cuda", "")]),
        ("nvrtc-builtins64_135.dll", [("cuda", "")]),
        ("nvinfer_10.dll", [("cuda", "")]),
        ("c10_cuda.dll", [("cuda", "")]),
        ("libhipblaslt.dll", [("rocm", "")]),
        ("ur_loader.dll", [("xpu", "")]),
        ("curl.dll", []),
        ("nvToolsExt64_1.dll", []),
        ("cudart64_13.dll.bak", []),
    ],
)
def test_what_the_name_of_a_dll_means(dll: str, meaning: list[tuple[str, str]]) -> None:
    assert list(library_meaning(dll)) == meaning


def test_reading_stops_when_an_accelerator_is_shown_and_copies_are_read_once() -> None:
    noise = random.Random(7).randbytes(300_000)
    library = gpu_library(needed=["libcudart.so.13"])
    plain = Elf(machine=ELF_MACHINES["x86_64"], contents={".data": noise}).build().data
    members = {"demo/first_cuda.so": library, **{f"demo/{n}.so": plain for n in range(30)}}

    content = content_of(members, at_hand=0)

    assert (content.accelerators, content.complete) == (("cuda",), True)  # 30 copies are one
    others = {f"demo/{n}.so": plain + bytes(n) for n in range(30)}
    content = content_of({"demo/first_cuda.so": library, **others}, at_hand=0)
    assert (content.accelerators, content.complete, content.read) == (("cuda",), False, 4)


def test_files_of_code_for_another_makers_gpus_do_not_decide_against_the_requirements() -> None:
    added = judged({"demo/gfx950/a.hsaco": HSACO}, requires=("nvidia-cublas",))
    alone = judged({"demo/gfx950/a.hsaco": HSACO})
    linked = judged(
        {"demo/a.hsaco": HSACO, "demo/_C.so": gpu_library(section=".hip_fatbin")}, requires=("nvidia-cublas",)
    )

    assert (added.label, added.certainty, added.declared, added.conflicts) == (
        "CUDA and ROCm",
        "declared",
        ("cuda",),
        (),
    )
    assert (alone.label, alone.certainty) == ("ROCm", "exact")
    assert linked.accelerator == "rocm"
    assert linked.conflicts


def test_a_name_that_is_only_possible_gives_a_version_to_a_library_with_code_and_proves_nothing_else() -> None:
    built = Elf(needed=["libcudart.so.13"], contents={".nv_fatbin": bytes(16)}).build().data
    facts = read_elf(WholeFile(built))
    unknown = replace(facts, dynamic=Missing((ByteRange(0, 8),)))
    code, plain = _Found(set()), _Found(set())

    code.note("demo/_C.so", unknown, ["libcudart.so.13"], 1)
    assert isinstance(unknown.sections, Sections)
    other = [s for s in unknown.sections.headers if s.name != ".nv_fatbin"]
    plain.note("demo/_C.so", replace(unknown, sections=Sections(tuple(other))), ["libcudart.so.13"], 1)

    assert list(map(str, code.shown)) == ["demo/_C.so has .nv_fatbin", "demo/_C.so names libcudart.so.13"]
    assert plain.shown == []
    assert code.unread == plain.unread == {"demo/_C.so": "what it needs are out of reach"}


def test_a_library_that_may_need_an_accelerator_is_read_until_that_is_known() -> None:
    """Its needs are in the middle: its strings name the driver, which it may need, or once needed."""
    chance = random.Random(11)
    built = Elf(needed=["libcuda.so.1"], contents={".data": chance.randbytes(900_000)}).build()
    behind = chance.randbytes(900_000)
    start = built.value("e_shoff")
    data = bytearray(built.data[:start] + behind + built.data[start:])
    data[40:48] = (start + len(behind)).to_bytes(8, "little")

    content = content_of({"demo/_core.so": bytes(data)}, at_hand=0)

    assert list(map(str, content.shown)) == ["demo/_core.so needs libcuda.so.1"]
    assert content.complete


def test_at_depth_full_what_lies_far_is_read_to_prove_absence(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = bytes(random.Random(5).choices(range(40), k=1_000_000))
    library = Pe(imports=("KERNEL32.dll",), code=noise, behind=noise).build().data
    wheel = WheelBuilder("demo", "1.0", "cp312-cp312-win_amd64").add("demo/_C.pyd", library)
    monkeypatch.setattr("wheel_checks.facts.accelerator.pe_libraries.EFFORT", 50_000)
    monkeypatch.setattr("wheel_checks.facts.wheel.contents_reading.QUICK", 100_000)

    certainty = {depth: facts_of(wheel, depth=depth).accelerator for depth in (Depth.QUICK, Depth.FULL)}

    assert {d: f.certainty for d, f in certainty.items() if isinstance(f, AcceleratorFacts)} == {
        Depth.QUICK: "declared",
        Depth.FULL: "exact",
    }


def large_wheel(*, more: bool = False) -> dict[str, bytes]:
    """A small library that needs CUDA 12 and larger ones; with ``more`` also others whose names hint at CUDA."""
    noise = random.Random(3).randbytes(400_000)
    members = {"demo/libdemo_cuda120.so": gpu_library(needed=["libcudart.so.12"])}
    members |= {f"demo/{n}.so": Elf(contents={".data": noise + bytes(n)}).build().data for n in range(6)}
    if more:
        members |= {
            f"demo/libdemo_cuda13{n}.so": gpu_library(needed=[f"libcudart.so.{12 + n // 4}"]) + bytes(n)
            for n in range(5)
        }
    return members


def test_a_wheel_too_large_to_be_known_is_glanced_at() -> None:
    content = content_of(large_wheel(), most=1_000_000)

    assert (content.versions("cuda"), content.complete) == (("12",), False)
    assert content.bytes_read < 600_000


def test_a_glance_does_not_hide_that_a_large_wheel_is_for_two_majors() -> None:
    assert content_of(large_wheel(more=True), most=1_000_000).versions("cuda") == ("12", "13")


def test_what_is_known_by_its_name_is_glanced_at() -> None:
    wheel = WheelBuilder("nvidia-demo", "1.0", TAGS)
    for name, data in large_wheel().items():
        wheel.add(name, data)
    source = MemorySource(wheel.build())

    content = glance_at_accelerator(source, read_archive(source))

    assert (content.accelerators, content.complete) == (("cuda",), False)


@pytest.mark.parametrize(
    ("project", "known"),
    [
        ("nvidia-cublas-cu12", True),
        ("nvidia-cusparselt-cu13", True),
        ("nvidia-nvshmem", True),
        ("triton", True),
        ("nvidia-cudnn-frontend", False),
        ("nvidia-dali-cuda130", False),
        ("triton-kernels", False),
        ("torch", False),
    ],
)
def test_packages_that_are_known_by_their_names(project: str, known: bool) -> None:  # a column
    assert is_known_by_name(project) is known
