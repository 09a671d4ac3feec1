"""WHL101 to WHL105: file name, METADATA and WHEEL agree."""

from __future__ import annotations

from tests.rules.case import NOTE, WARNING, Case
from tests.support.wheel_facts import facts_of
from tests.support.wheels import WheelBuilder, elf_stub

LINUX = "cp312-cp312-manylinux_2_28_x86_64"

CASES = [
    Case(
        "WHL101",
        "no tags",
        lambda: facts_of(WheelBuilder("torch", "2.11.0"), "torch-2.11.0.whl"),
        (
            "the file name 'torch-2.11.0.whl' has 2 parts between dashes; "
            "expected name-version[-build]-python-abi-platform[-variant].whl",
        ),
        evidence=("torch-2.11.0.whl",),
    ),
    Case("WHL101", "a build tag and a local version", lambda: facts_of(WheelBuilder("demo", "1.0+cu130", build="3"))),
    Case(
        "WHL102",
        "METADATA of another version",
        lambda: facts_of(WheelBuilder().metadata(version="1.1")),
        ("the file name says version 1.0, but METADATA says 1.1",),
        evidence=("1.0", "1.1"),
    ),
    Case(
        "WHL102",
        "METADATA of another project",
        lambda: facts_of(WheelBuilder("demo_cu12").metadata(name="demo")),
        ("the file name says demo_cu12, but METADATA says demo",),
        evidence=("demo_cu12", "demo"),
    ),
    Case(
        "WHL102",
        "a local version that METADATA lacks",
        lambda: facts_of(WheelBuilder(version="1.0+cu130").metadata(version="1.0")),
        ("the file name says version 1.0+cu130, but METADATA says 1.0",),
    ),
    Case(
        "WHL102",
        "another spelling of name and version",
        lambda: facts_of(WheelBuilder("demo_pkg").metadata(name="Demo.Pkg", version="1.0.0")),
    ),
    Case(
        "WHL103",
        "a linux tag renamed to manylinux",
        lambda: facts_of(WheelBuilder(tags=LINUX).wheel(tags=["cp312-cp312-linux_x86_64"])),
        ("the tags in the file name and in WHEEL differ",),
        WARNING,
        evidence=(LINUX, "cp312-cp312-linux_x86_64"),
    ),
    Case(
        "WHL103",
        "a compressed tag set, expanded in WHEEL",
        lambda: facts_of(
            WheelBuilder(tags="cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64").wheel(
                tags=["cp312-cp312-manylinux2014_x86_64", "cp312-cp312-manylinux_2_17_x86_64"]
            )
        ),
    ),
    Case(
        "WHL104",
        "a build tag that WHEEL lacks",
        lambda: facts_of(WheelBuilder(build="3").wheel(build="")),
        ("the file name has build tag 3, but WHEEL has none",),
        WARNING,
        evidence=("3", "none"),
    ),
    Case("WHL104", "the same build tag", lambda: facts_of(WheelBuilder(build="3"))),
    Case(
        "WHL105",
        "a library in a pure wheel",
        lambda: facts_of(WheelBuilder(tags=LINUX).wheel(root_is_purelib="true").add("nvidia/lib/a.so.13", elf_stub())),
        ("the wheel has native libraries, but states Root-Is-Purelib: true",),
        NOTE,
        evidence=("nvidia/lib/a.so.13", "true"),
    ),
    Case(
        "WHL105",
        "a library in a wheel for any platform",
        lambda: facts_of(WheelBuilder().add("demo/a.pyd")),
        ("demo/a.pyd is native code in a wheel tagged for any platform",),
        WARNING,
        member="demo/a.pyd",
    ),
    Case("WHL105", "a library in a platform wheel", lambda: facts_of(WheelBuilder(tags=LINUX).add("demo/a.so"))),
    Case("WHL105", "a source that is named like one", lambda: facts_of(WheelBuilder().add("demo/a.so_list.txt"))),
]
