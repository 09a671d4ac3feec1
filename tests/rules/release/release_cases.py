"""REL101 to REL113: the release as a whole, and its files."""

from __future__ import annotations

from dataclasses import replace

from tests.rules.case import WARNING, Case
from tests.rules.variants.coverage_cases import CPU as CPU_VARIANT
from tests.rules.variants.coverage_cases import CU126, H100, H100_OLD, ORIN, SM_80, gets
from tests.rules.variants.coverage_cases import PLAIN as MACHINE_WITHOUT_GPU
from tests.support.releases import BOTH, built, first, of_size, release, wheel, with_metadata
from wheel_checks.facts.release.facts import Cell, Installation, ReleaseFacts, ReleaseFile, Statement
from wheel_checks.targets.variant_choice import MachineChoice

CPU, CUDA_12, CUDA_13 = built("cpu", "", "1.0+cpu"), built("cuda", "12.8"), built("cuda", "13.0")
X86, ARM = wheel(accelerator=CUDA_13), wheel(machine="aarch64", accelerator=CUDA_13)
ONLY_X86 = {"x86_64": {"accelerator": "cuda>=12.8", "max_size": "100B"}}
PARITY = '[[parity]]\nplatforms = ["x86_64", "aarch64"]\nsize-ratio = 1.5'
PYTHONS = ["3.11", "3.12", "3.13t"]
ANY_GLIBC = {"x86_64": {"tags": ["manylinux_*_x86_64"]}}
SDIST = ReleaseFile("demo-1.0.tar.gz")
HASH, OTHER = "ab" * 32, "cd" * 32


def sizes(machine: str, *bytes_: int) -> list[ReleaseFile]:
    """Wheels for 3.11, 3.12 and 3.13t of these sizes."""
    found = [of_size(size, python, machine) for size, python in zip(bytes_, ("cp311", "cp312", "cp314"), strict=True)]
    return [replace(file, accelerator=CPU) for file in found]


def labelled(label: str) -> ReleaseFile:
    """A variant wheel for x86_64."""
    return ReleaseFile(f"demo-1.0-cp312-cp312-manylinux_2_28_x86_64-{label}.whl")


def serving(made: MachineChoice, variant: str = "") -> ReleaseFacts:
    """A release that claims to serve one machine, with the label that it must get."""
    return replace(release(X86, ARM), machine_choices=((made, variant),))


def installed(*conflicts: tuple[str, str]) -> ReleaseFacts:
    """A release whose requirements were resolved for Python 3.12, with a conflict ("" if none) by platform."""
    found = tuple(Installation(Cell(platform, "3.12"), conflict) for platform, conflict in conflicts)
    return replace(release(X86, ARM), installations=found)


def exemption(until: str) -> str:
    return f'[[ignore]]\nrules = ["WHL103"]\nfiles = "*"\nreason = "renamed"\nuntil = {until}'


CASES = [
    Case(
        "REL101",
        "two cells of one platform are empty",
        lambda: release(
            X86, ARM, wheel("cp311"), ReleaseFile("demo-1.0-cp313-cp313t-manylinux_2_28_x86_64.whl"), pythons=PYTHONS
        ),
        ("aarch64 has no file for Python 3.11 and 3.13t",),
        evidence=("manylinux_2_28_aarch64", "cp311, cp313t"),
    ),
    Case("REL101", "a whole platform", lambda: release(X86), ("aarch64 has no files for Python 3.12",)),
    Case("REL101", "the source archive", lambda: release(X86, ARM, sdist=True), ("the source archive is missing",)),
    Case(
        "REL101",
        "a file of the list of hashes",
        lambda: release(X86, ARM, more=f'[hashes]\n"demo-1.0-cp313.whl" = "{HASH}"'),
        ("the release lacks 1 file of the list of hashes",),
        evidence=("demo-1.0-cp313.whl",),
    ),
    Case(
        "REL101",
        "one wheel for all Pythons",
        lambda: release(ReleaseFile("demo-1.0-py3-none-manylinux_2_28_x86_64.whl"), ARM),
    ),
    Case("REL101", "all there", lambda: release(X86, ARM, SDIST, sdist=True)),
    Case(
        "REL101",
        "a Python that another version is built for",
        lambda: release(X86, more="", platforms={"x86_64": {"versions": ">=1"}, "aarch64": {"versions": ">=2"}}),
    ),
    Case(
        "REL102",
        "another project",
        lambda: first(release(ReleaseFile("other-1.0-py3-none-any.whl"))),
        ("the file is not expected: it is not a file of demo",),
    ),
    Case(
        "REL102",
        "a wheel that was not repaired",
        lambda: first(release(ReleaseFile("demo-1.0-cp312-cp312-linux_x86_64.whl"))),
        ("the file is not expected: no platform with the tag linux_x86_64 is",),
    ),
    Case(
        "REL102",
        "another Python",
        lambda: first(release(wheel("cp39"))),
        ("the file is not expected: cp39-cp39 is not on x86_64",),
    ),
    Case(
        "REL102",
        "a build tag",
        lambda: first(release(wheel(build="4"), build_tags=["", "3"])),
        ("the file is not expected: its build tag is 4, allowed on x86_64: 3, none",),
    ),
    Case(
        "REL102",
        "a source archive",
        lambda: first(release(SDIST)),
        ("the file is not expected: no source archive is expected",),
    ),
    Case(
        "REL102",
        "a name without tags",
        lambda: first(release(ReleaseFile("demo-1.0.whl"))),
        ("the file is not expected: its name has no tags that an installer reads",),
    ),
    Case(
        "REL102",
        "the stable ABI of an older Python",
        lambda: first(release(ReleaseFile("demo-1.0-cp38-abi3-manylinux_2_28_x86_64.whl"))),
    ),
    Case("REL102", "an allowed build tag", lambda: first(release(wheel(build="3"), build_tags=["", "3"]))),
    Case("REL102", "an expected source archive", lambda: first(release(SDIST, sdist=True))),
    Case("REL102", "another version, which REL109 shows", lambda: first(release(wheel(version="1.1")))),
    Case(
        "REL103",
        "CPU where CUDA is expected",
        lambda: first(release(wheel(accelerator=CPU), platforms=ONLY_X86)),
        ("the wheel is CPU only (1.0+cpu); expected cuda>=12.8",),
    ),
    Case(
        "REL103",
        "another CUDA",
        lambda: first(release(wheel(accelerator=CUDA_12), platforms={"x86_64": {"accelerator": "cuda==13.0"}})),
        ("the wheel is CUDA 12.8; expected cuda==13.0",),
    ),
    Case(
        "REL103",
        "a CUDA whose version is not known",
        lambda: first(release(wheel(accelerator=built("cuda")), platforms=ONLY_X86)),
        ("not proven: expected cuda>=12.8, but the wheel does not state its version",),
        undecided=True,
    ),
    Case(
        "REL103",
        "a later CUDA than the lowest that will do",
        lambda: first(release(wheel(accelerator=CUDA_13), platforms=ONLY_X86)),
    ),
    Case(
        "REL104",
        "one byte too many",
        lambda: first(release(of_size(101), platforms=ONLY_X86)),
        ("the file is larger than x86_64 allows",),
        evidence=("101 bytes", "100 bytes"),
    ),
    Case("REL104", "just as large as allowed", lambda: first(release(of_size(100), platforms=ONLY_X86))),
    Case(
        "REL104",
        "half the size of its siblings",
        lambda: first(release(*sizes("x86_64", 50, 100, 100), pythons=["3.11", "3.12", "3.14"], size_outlier=1.5)),
        ("the file is 2.00 times smaller than the median of x86_64",),
        WARNING,
    ),
    Case(
        "REL104",
        "a little smaller",
        lambda: first(release(*sizes("x86_64", 99, 100, 100), pythons=["3.11", "3.12", "3.14"], size_outlier=1.5)),
    ),
    Case(
        "REL104",
        "two files, of which neither is usual",
        lambda: first(release(of_size(50), of_size(99, "cp311"), pythons=["3.11", "3.12"], size_outlier=1.5)),
    ),
    Case(
        "REL105",
        "another hash on the index",
        lambda: first(release(wheel(digests=(Statement("the file dist/demo.whl", HASH), Statement("index", OTHER))))),
        ("the sha256 differs between the file dist/demo.whl and index",),
        evidence=(HASH, OTHER),
    ),
    Case(
        "REL105",
        "a file that was cut off",
        lambda: first(release(wheel(sizes=(Statement("the file as served", 10), Statement("index", 12))))),
        ("the size differs between the file as served and index",),
        evidence=("10 bytes", "12 bytes"),
    ),
    Case(
        "REL105",
        "a file that is not in the list",
        lambda: first(release(X86, more=f'[hashes]\n"demo-1.0-cp313.whl" = "{HASH}"')),
        ("the file is not in the list of hashes",),
    ),
    Case(
        "REL105",
        "all agree",
        lambda: first(release(wheel(digests=(Statement("a", HASH), Statement("b", HASH)), sizes=(Statement("a", 1),)))),
    ),
    Case(
        "REL106",
        "a yanked file",
        lambda: first(release(wheel(listed=True, yanked="broken"))),
        ("the file is yanked",),
        evidence=("broken",),
    ),
    Case(
        "REL106",
        "yanked without a reason",
        lambda: first(release(wheel(listed=True, yanked=""))),
        ("the file is yanked",),
        evidence=("none given",),
    ),
    Case("REL106", "yanked, which is allowed", lambda: first(release(wheel(listed=True, yanked=""), yanked=True))),
    Case("REL106", "a file that is not yanked", lambda: first(release(wheel(listed=True)))),
    Case(
        "REL107",
        "a requirement on one platform",
        lambda: release(with_metadata("x86_64", "triton==3.6.0", "sympy"), with_metadata("aarch64", "sympy")),
        ("METADATA differs in demo-1.0-cp312-cp312-manylinux_2_28_aarch64.whl",),
        evidence=("Requires-Dist: triton==3.6.0", "nothing"),
    ),
    Case(
        "REL107",
        "another Requires-Python",
        lambda: release(with_metadata("x86_64"), with_metadata("aarch64", requires_python=">=3.11")),
        ("METADATA differs in demo-1.0-cp312-cp312-manylinux_2_28_aarch64.whl",),
    ),
    Case(
        "REL107",
        "another order and spacing",
        lambda: release(with_metadata("x86_64", "a>=1", "b"), with_metadata("aarch64", "b", "a >=1")),
    ),
    Case(
        "REL107",
        "a difference between platforms, where only each must agree",
        lambda: release(with_metadata("x86_64", "a"), with_metadata("aarch64", "b"), same_metadata="platform"),
    ),
    Case(
        "REL107",
        "two spellings of one project",
        lambda: release(with_metadata("x86_64", "ml_dtypes>=1"), with_metadata("aarch64", "ml-dtypes>=1")),
    ),
    Case(
        "REL108",
        "a version in two spellings",
        lambda: release(X86, wheel(version="1.0.0")),
        ("2 files compete for Python 3.12 on x86_64",),
        evidence=(X86.file_name, wheel(version="1.0.0").file_name),
    ),
    Case(
        "REL108",
        "an alias of the same platform tag in both names",
        lambda: release(X86, ReleaseFile("demo-1.0-cp312-cp312-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl")),
        ("2 files compete for Python 3.12 on x86_64",),
    ),
    Case(
        "REL108",
        "a newer and an older system",
        lambda: release(X86, ReleaseFile("demo-1.0-cp312-cp312-manylinux_2_34_x86_64.whl"), platforms=ANY_GLIBC),
    ),
    Case("REL108", "a rebuild with a build tag", lambda: release(X86, wheel(build="1"))),
    Case(
        "REL108",
        "the stable ABI next to a Python's own",
        lambda: release(X86, ReleaseFile("demo-1.0-cp38-abi3-manylinux_2_28_x86_64.whl")),
    ),
    Case(
        "REL109",
        "a local version",
        lambda: release(X86, ARM, wheel(version="1.0+cpu")),
        ("demo-1.0+cpu-cp312-cp312-manylinux_2_28_x86_64.whl is of version 1.0+cpu, but the release is 1.0",),
    ),
    Case(
        "REL109",
        "two files of another version",
        lambda: release(X86, wheel(version="2"), wheel("cp311", version="2")),
        ("2 files are of version 2, but the release is 1.0",),
    ),
    Case("REL109", "the same version in another spelling", lambda: release(X86, wheel(version="1"))),
    Case(
        "REL110",
        "a Python on one platform only",
        lambda: release(X86, wheel("cp311", accelerator=CUDA_13), ARM, pythons=["3.11", "3.12"], more=PARITY),
        ("only x86_64 has files for Python 3.11",),
    ),
    Case(
        "REL110",
        "CUDA and CPU",
        lambda: release(wheel(accelerator=CUDA_12), wheel(machine="aarch64", accelerator=CPU), more=PARITY),
        ("x86_64 is CUDA 12.8 while aarch64 is CPU only",),
        evidence=("CUDA 12.8", "CPU only"),
    ),
    Case(
        "REL110",
        "CUDA, and a wheel whose libraries are not all known",
        lambda: release(
            wheel(accelerator=CUDA_12),
            wheel(machine="aarch64", accelerator=replace(built("none"), certainty="declared", unread="1 of 2 members")),
            more=PARITY,
        ),
        ("not proven that x86_64 and aarch64 have the same accelerator: 1 of 2 members",),
        undecided=True,
    ),
    Case(
        "REL110",
        "one half as large as the other",
        lambda: release(
            *sizes("x86_64", 90, 80, 80), *sizes("aarch64", 40, 40, 50), pythons=["3.11", "3.12", "3.14"], more=PARITY
        ),
        ("wheels of x86_64 and aarch64 differ in size by a factor of 2.00",),
        WARNING,
    ),
    Case(
        "REL110",
        "a little smaller",
        lambda: release(
            *sizes("x86_64", 90, 80, 80), *sizes("aarch64", 60, 60, 50), pythons=["3.11", "3.12", "3.14"], more=PARITY
        ),
    ),
    Case(
        "REL110",
        "the same on both",
        lambda: release(wheel(accelerator=CUDA_13), wheel(machine="aarch64", accelerator=CUDA_13), more=PARITY),
    ),
    Case(
        "REL111",
        "an exemption of yesterday",
        lambda: release(X86, platforms=BOTH, more=exemption("2026-11-19")),
        ("the exemption from WHL103 expired on 2026-11-19",),
        WARNING,
        evidence=("renamed",),
    ),
    Case("REL111", "an exemption that ends today", lambda: release(X86, more=exemption("2026-11-20"))),
    Case(
        "REL112",
        "a machine that falls through to the CPU",
        lambda: serving(gets(H100_OLD, CU126 | CPU_VARIANT)),
        ("H100 (driver 535, x86_64) gets the variant cpu: it supports no variant for a GPU (cp312)",),
    ),
    Case(
        "REL112",
        "another variant than the one that is expected",
        lambda: serving(gets(H100_OLD, CU126 | CPU_VARIANT), "cu126"),
        ("H100 (driver 535, x86_64) gets the variant cpu; expected cu126 (cp312)",),
        evidence=(
            "it needs nvidia :: cuda_version_lower_bound :: 12.6, which H100 (driver 535, x86_64) does not support",
        ),
    ),
    Case(
        "REL112",
        "a claim of code that does not run there",
        lambda: serving(gets(ORIN, SM_80)),
        (
            "Orin (driver 580, aarch64) gets the variant cu13, which claims code for 80_real; that code does not run "
            "on Orin (8.7) (cp312)",
        ),
    ),
    Case(
        "REL112",
        "a release without variants",
        lambda: serving(gets(H100, {})),
        ("H100 (driver 580, x86_64) gets a wheel without a variant: the release has no variants (cp312)",),
    ),
    Case(
        "REL112",
        "a GPU, and variants only for CPUs",
        lambda: serving(gets(H100, CPU_VARIANT)),
        ("H100 (driver 580, x86_64) gets the variant cpu: the release has no variants for GPUs (cp312)",),
    ),
    Case(
        "REL112",
        "a machine without a GPU that gets nothing",
        lambda: serving(gets(MACHINE_WITHOUT_GPU, CU126, plain=False)),
        ("a machine without a GPU (x86-64-v3) gets nothing (cp312)",),
    ),
    Case(
        "REL112",
        "a machine without a GPU that gets a wheel",
        lambda: serving(gets(MACHINE_WITHOUT_GPU, CU126)),
    ),
    Case("REL112", "a machine that gets its variant", lambda: serving(gets(H100, CU126 | CPU_VARIANT), "cu126")),
    Case(
        "REL112",
        "a machine that is to get the one for CPUs",
        lambda: serving(gets(H100_OLD, CU126 | CPU_VARIANT), "cpu"),
    ),
    Case(
        "REL101",
        "a column of variants, and a wheel of another label",
        lambda: release(labelled("cu126"), platforms={"x86_64": {"variant": "cu130"}}),
        ("x86_64 has no files for Python 3.12",),
    ),
    Case(
        "REL101",
        "two columns of one platform, by label",
        lambda: release(
            X86,
            labelled("cu130"),
            platforms={"x86_64": {}, "cu130": {"variant": "cu130", "tags": ["manylinux_2_28_x86_64"]}},
        ),
    ),
    Case(
        "REL102",
        "a variant that a column has",
        lambda: first(release(labelled("cu13"), platforms={"x86_64": {"variant": "cu13"}})),
    ),
    Case(
        "REL102",
        "a variant that no column has",
        lambda: first(release(labelled("cu130"), ARM)),
        ("the file is not expected: no platform with the tag manylinux_2_28_x86_64 and the variant cu130 is",),
    ),
    Case("REL108", "two variants with the same tags", lambda: release(labelled("cu126"), labelled("cu130"), X86)),
    Case(
        "REL113",
        "requirements that contradict each other on one platform",
        lambda: installed(("x86_64", "nothing fits"), ("aarch64", "")),
        ("on x86_64 (Python 3.12) no versions satisfy the requirements of the release: nothing fits",),
        evidence=("x86_64 3.12",),
    ),
    Case(
        "REL113",
        "a package without a file, everywhere",
        lambda: replace(
            release(X86, ARM),
            installations=tuple(Installation(Cell(name, "3.12"), missing=("triton",)) for name in BOTH),
        ),
        ("on every platform triton has no file, but the release requires it",),
    ),
    Case(
        "REL113",
        "an index that does not answer",
        lambda: replace(release(X86), installations=(Installation(Cell("x86_64", "3.12"), unproven="no answer"),)),
        ("not proven that the release can be installed on every platform: no answer",),
        undecided=True,
    ),
    Case(
        "REL113",
        "an extra that no versions fulfil",
        lambda: replace(
            release(X86, ARM), installations=(Installation(Cell("x86_64", "3.12"), "nothing fits", extra="fast"),)
        ),
        (
            "on x86_64 (Python 3.12) no versions satisfy the requirements of the extra fast of the release: nothing "
            "fits",
        ),
        severity=WARNING,
    ),
    Case("REL113", "all resolved", lambda: installed(("x86_64", ""), ("aarch64", ""))),
]
