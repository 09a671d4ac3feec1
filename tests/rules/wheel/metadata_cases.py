"""WHL106 to WHL112, WHL126: METADATA, the copy of it that the index serves, and Requires-Python."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from tests.rules.case import WARNING, Case
from tests.support.wheel_facts import AARCH64, X86_64, facts_of, listed
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.formats.index.digests import WrongHash
from wheel_checks.targets.target import Target

CP310 = "cp310-cp310-manylinux_2_28_x86_64"
SERVED = "Metadata-Version: 2.4\nName: demo\nVersion: 1.0\nRequires-Python: >=3.10\nRequires-Dist: numpy\n"


def wheel_with(*requirements: str) -> WheelFacts:
    """A wheel with these requirements."""
    return facts_of(WheelBuilder().metadata(requires=requirements))


def served(text: str) -> WheelFacts:
    """A wheel whose METADATA the index serves as ``text``."""
    wheel = WheelBuilder().metadata(requires=["numpy"], requires_python=">=3.10")
    return facts_of(wheel, read_sidecar=text.encode)


def for_python(requires_python: str, tags: str, on_index: str = "") -> WheelFacts:
    """A wheel with this Requires-Python."""
    wheel = WheelBuilder(tags=tags).metadata(requires_python=requires_python)
    return facts_of(wheel, target=AARCH64, listing=listed(requires_python=on_index))


def requested(tags: str, target: Target, requires_python: str = "") -> WheelFacts:
    """A wheel that is judged for a named platform and Python."""
    return facts_of(WheelBuilder(tags=tags).metadata(requires_python=requires_python), target=target)


def stated(text: str, **hashes: str) -> WheelFacts:
    """A wheel whose METADATA the index serves as ``text``, and states to have these hashes."""
    wheel = WheelBuilder().metadata(requires=["numpy"], requires_python=">=3.10")
    return facts_of(wheel, read_sidecar=text.encode, listing=listed(core_metadata=hashes))


def requires_wrong() -> WheelFacts:
    """A wheel that requires another, whose served METADATA is not the stated one."""
    return replace(wheel_with(), wrong_metadata=(WrongHash("other-1.0-py3-none-any.whl", "md5=00", "md5=11"),))


SHA256 = hashlib.sha256(SERVED.encode()).hexdigest()
MD5 = hashlib.md5(SERVED.encode(), usedforsecurity=False).hexdigest()

CASES = [
    Case(
        "WHL106",
        "METADATA without a version",
        lambda: facts_of(WheelBuilder().metadata(version="")),
        ("METADATA: Version is missing",),
        member="METADATA",
    ),
    Case(
        "WHL106",
        "a Requires-Python that pip ignores and uv corrects, from before the index looked at it",
        lambda: facts_of(
            WheelBuilder().metadata(requires_python=">=2.7.*"),
            listing=listed(upload_time="2018-01-01T00:00:00Z"),
        ),
        ("METADATA: Requires-Python: '>=2.7.*' is invalid",),
        severity=WARNING,
        evidence=("ignores it", "reads >=2.7"),
    ),
    Case(
        "WHL106",
        "a Requires-Python with an empty clause, which packaging takes and uv refuses",
        lambda: facts_of(WheelBuilder().metadata(requires_python=">=3.8,,<4")),
        ("METADATA: Requires-Python: uv rejects '>=3.8,,<4': a clause is empty",),
    ),
    Case(
        "WHL107",
        "what packaging takes and uv refuses",
        lambda: facts_of(WheelBuilder().metadata(requires=["numpy ()", "torch===foo", "scipy>=1,"])),
        (
            "uv rejects the requirement 'numpy ()': the brackets of its versions are empty",
            "uv rejects the requirement 'torch===foo': foo is not a version",
        ),
    ),
    Case(
        "WHL107",
        "what uv corrects and pip refuses",
        lambda: facts_of(WheelBuilder().metadata(requires=["PyYAML (>=5.1.*)", "numpy"])),
        ("the requirement 'PyYAML (>=5.1.*)' cannot be parsed by pip",),
        evidence=("reads PyYAML (>=5.1)",),
    ),
    Case(
        "WHL106",
        "WHEEL of the future",
        lambda: facts_of(WheelBuilder().wheel(wheel_version="2.0")),
        ("WHEEL: Wheel-Version is 2.0; installers reject a major version other than 1",),
        member="WHEEL",
    ),
    Case(
        "WHL106",
        "neither METADATA nor WHEEL",
        lambda: facts_of(WheelBuilder().dist_info_file("METADATA", None).dist_info_file("WHEEL", None)),
        ("the wheel has no demo-1.0.dist-info/METADATA", "the wheel has no demo-1.0.dist-info/WHEEL"),
        member="METADATA",
    ),
    Case(
        "WHL106",
        "fields that stand twice, of which pip and uv take the first",
        lambda: facts_of(WheelBuilder().metadata("Name: other").wheel("Wheel-Version: 1.0")),
        ("METADATA: Name is given 2 times", "WHEEL: Wheel-Version is given more than once"),
        WARNING,
        member="METADATA",
    ),
    Case(
        "WHL106",
        "a metadata version that the index took when it looked at less",
        lambda: facts_of(
            WheelBuilder().metadata(metadata_version="2.0"), listing=listed(upload_time="2018-02-15T10:00Z")
        ),
        ("METADATA: Metadata-Version is '2.0'; expected one of 1.0, 1.1, 1.2, 2.1, 2.2, 2.3, 2.4, 2.5, 2.6",),
        WARNING,
    ),
    Case(
        "WHL106",
        "what setuptools wrote for years",
        lambda: facts_of(
            WheelBuilder().metadata("License-File: LICENSE", "Home-page: UNKNOWN", metadata_version="2.1")
        ),
    ),
    Case(
        "WHL107",
        "operators that do not exist",
        lambda: wheel_with("triton=>3.6", "numpy"),
        ("the requirement 'triton=>3.6' cannot be parsed",),
        member="METADATA",
        evidence=("triton=>3.6",),
    ),
    Case(
        "WHL107",
        "a marker without a value",
        lambda: wheel_with('triton; sys_platform ~= "linux"'),
        ("the marker of the requirement triton cannot be evaluated",),
        member="METADATA",
        evidence=('triton; sys_platform ~= "linux"',),
    ),
    Case(
        "WHL107",
        "old and unusual forms that are right",
        lambda: wheel_with("numpy (>=1.2,<3)", 'a[b,c]==1.*; extra == "x" and python_version in "3.11 3.12"'),
    ),
    Case(
        "WHL108",
        "a requirement from a URL",
        lambda: wheel_with("torch @ https://files.example.org/torch-2.11.0-py3-none-any.whl"),
        ("torch is required from a URL",),
        WARNING,
        member="METADATA",
        evidence=("torch @ https://files.example.org/torch-2.11.0-py3-none-any.whl",),
    ),
    Case("WHL108", "an exact pin", lambda: wheel_with("torch==2.11.0")),
    Case(
        "WHL109",
        "other requirements on the index",
        lambda: served(SERVED + "Requires-Dist: nvidia-cublas\n"),
        ("the requirements differ between the index's METADATA and the wheel's",),
        evidence=("nvidia-cublas", "none"),
    ),
    Case(
        "WHL109",
        "another Requires-Python on the index",
        lambda: served(SERVED.replace(">=3.10", ">=3.9")),
        ("requires-python differs between the index's METADATA and the wheel's",),
        evidence=(">=3.9", ">=3.10"),
    ),
    Case("WHL109", "another description on the index", lambda: served(SERVED + "\nA description.\n")),
    Case(
        "WHL109",
        "METADATA that no resolver reads",
        lambda: served(SERVED + "Keywords: x\n" * 30_000),
        (
            "the index serves unreadable METADATA: METADATA has over 20000 lines or 200 kinds of field before its "
            "description; expected the fields of the core metadata specification",
        ),
    ),
    Case(
        "WHL111",
        "METADATA that was replaced",
        lambda: stated(SERVED + "Requires-Dist: evil\n", sha256=SHA256),
        ("the METADATA that the index serves does not have the stated hash, and is not used",),
        evidence=(f"sha256={SHA256}",),
    ),
    Case(
        "WHL111",
        "one of two hashes that is wrong",
        lambda: stated(SERVED, sha256=SHA256, md5="0" * 32),
        ("the METADATA that the index serves does not have the stated hash, and is not used",),
        evidence=(f"md5={'0' * 32}", f"md5={MD5}"),
    ),
    Case(
        "WHL111",
        "METADATA of a required wheel that was replaced",
        requires_wrong,
        (
            "the METADATA that the index serves for the requirement other-1.0-py3-none-any.whl does not have the "
            "stated hash",
        ),
        evidence=("md5=00", "md5=11"),
    ),
    Case(
        "WHL111", "the stated hash, and one that is not known here", lambda: stated(SERVED, sha256=SHA256, x9="0" * 32)
    ),
    Case(
        "WHL112",
        "a sorted copy",
        lambda: served(SERVED.replace("Name: demo\n", "") + "Name: demo\n"),
        ("the index serves METADATA with bytes that differ from the wheel's",),
        WARNING,
        evidence=("Version: 1.0\\n", "Name: demo\\n"),
    ),
    Case(
        "WHL112",
        "lines that end as on Windows",
        lambda: served(SERVED.replace("\n", "\r\n")),
        ("the index serves METADATA with bytes that differ from the wheel's",),
        WARNING,
    ),
    Case("WHL112", "the same bytes", lambda: served(SERVED)),
    Case(
        "WHL110",
        "a cp310 wheel that excludes Python 3.10",
        lambda: for_python(">=3.11", CP310),
        ("Requires-Python >=3.11 excludes Python 3.10, but this wheel is for Python 3.10",),
        WARNING,
        evidence=(">=3.11", f"demo-1.0-{CP310}.whl"),
    ),
    Case(
        "WHL110",
        "another Requires-Python on the index",
        lambda: for_python(">=3.10", CP310, ">=3.9"),
        ("Requires-Python differs between the index and the wheel",),
        WARNING,
        evidence=(">=3.9", ">=3.10"),
    ),
    Case("WHL110", "a wheel that excludes one patch release", lambda: for_python("!=3.10.7,>=3.10", CP310)),
    Case("WHL110", "a wheel for later Pythons only", lambda: for_python(">=3.13", "cp310-abi3-manylinux_2_28_x86_64")),
    Case("WHL110", "the same conditions in another order", lambda: for_python(">=3.9,<4", CP310, "<4, >=3.9")),
    Case(
        "WHL126",
        "a wheel for another Python and machine",
        lambda: requested("cp313-cp313-manylinux_2_28_aarch64", X86_64),
        ("the wheel is not built for cp312 x86_64 with glibc 2.39",),
        evidence=("cp313-cp313-manylinux_2_28_aarch64",),
    ),
    Case(
        "WHL126",
        "a Requires-Python without the requested Python",
        lambda: requested("py3-none-any", X86_64, ">=4"),
        ("the wheel requires Python >=4, not 3.12.16",),
        evidence=(">=4",),
    ),
    Case(
        "WHL126",
        "a Requires-Python without the requested patch release",
        lambda: requested("py3-none-any", replace(X86_64, patch=3), ">=3.12.4"),
        ("the wheel requires Python >=3.12.4, not 3.12.3",),
    ),
    Case("WHL126", "some patch releases of that Python", lambda: requested("py3-none-any", X86_64, "!=3.12.0,>=3.9")),
    Case("WHL126", "the stable ABI of an older Python", lambda: requested("cp39-abi3-manylinux2014_x86_64", X86_64)),
    Case("WHL126", "a malformed condition, as pip ignores it", lambda: requested("py3-none-any", X86_64, "three")),
]
