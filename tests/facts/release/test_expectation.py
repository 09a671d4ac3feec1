"""The expectation file of ``wheelproof release``: its content, and messages about wrong ones."""

from __future__ import annotations

import contextlib
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.tags import Tag
from packaging.version import Version

from tests.support.releases import expectation_text
from wheel_checks.errors import UsageError
from wheel_checks.facts.release.expectation import (
    Agreement,
    ExpectedMachines,
    ExpectedPython,
    parse_release_expectation,
    read_release_expectation,
)
from wheel_checks.facts.wheel.depth import Depth

TORCH = Path(__file__).parents[3] / "ci" / "release" / "torch.toml"
FULL = """\
project = "demo"
pythons = ["3.12", { python = "3.13t", versions = ">=2" }]
build-tags = ["", "3"]
sdist = true
yanked = true
same-metadata = "platform"
size-outlier = 1.2
depth = "links"
torch-abi = ">=2.9"
other-files = ["*.asc.zip"]

[[platform]]
name = "x86_64"
tags = ["manylinux_2_28_x86_64"]
accelerator = "cuda==13.0"
gpus = ["H100", "sm_120"]
max-size = "1GB"

[[platform]]
name = "aarch64"
tags = ["manylinux_2_28_aarch64"]
pythons = ["3.12"]
build-tags = [""]
versions = ">=2"

[[parity]]
platforms = ["x86_64", "aarch64"]
size-ratio = 1.5

[[ignore]]
rules = ["WHL103"]
files = "*macosx*"
reason = "renamed"
until = 2027-06-30

[hashes]
"demo-1.0.tar.gz" = "sha256:%s"
""" % ("AB" * 32)


def test_everything_that_it_can_say() -> None:
    expectation = parse_release_expectation(FULL.encode())

    assert (expectation.project, expectation.sdist, expectation.yanked) == ("demo", True, True)
    assert expectation.torch_abi == SpecifierSet(">=2.9")
    assert (expectation.metadata, expectation.depth) == (Agreement.PLATFORM, Depth.LINKS)
    assert (expectation.size_outlier, expectation.other_files) == (1.2, ("*.asc.zip",))
    x86, arm = expectation.platforms
    assert (str(x86.accelerator), x86.max_size, x86.build_tags) == ("cuda==13.0", 1_000_000_000, ("", "3"))
    assert [(gpu.name, gpu.sm) for gpu in x86.gpus] == [("H100", 90), ("sm_120", 120)]
    assert ([str(p) for p in x86.pythons], [str(p) for p in arm.pythons]) == (["3.12", "3.13t"], ["3.12"])
    assert (arm.build_tags, arm.accelerator, arm.max_size) == (("",), None, None)
    (parity,) = expectation.parity
    assert (parity.platforms, parity.size_ratio, parity.accelerator) == (("x86_64", "aarch64"), 1.5, True)
    (exemption,) = expectation.exemptions
    assert (exemption.rules, exemption.files, exemption.until) == (("WHL103",), "*macosx*", date(2027, 6, 30))
    assert expectation.hashes == {"demo-1.0.tar.gz": "ab" * 32}


@pytest.mark.parametrize(
    ("version", "platforms", "pythons", "parity"),
    [
        ("1.0", ["x86_64"], ["3.12"], 0),
        ("2.0", ["x86_64", "aarch64"], ["3.12", "3.13t"], 1),
        ("2.0rc1", ["x86_64", "aarch64"], ["3.12", "3.13t"], 1),
        ("2.0+cu130", ["x86_64", "aarch64"], ["3.12", "3.13t"], 1),
    ],
)
def test_what_is_expected_of_a_version(version: str, platforms: list[str], pythons: list[str], parity: int) -> None:
    expectation = parse_release_expectation(FULL.encode()).at(Version(version))

    assert [platform.name for platform in expectation.platforms] == platforms
    assert [str(python) for python in expectation.platform("x86_64").pythons] == pythons
    assert len(expectation.parity) == parity


def test_a_version_of_which_nothing_or_too_much_is_expected() -> None:
    with pytest.raises(UsageError, match=r"the expectation names no platform for demo 1\.0"):
        parse_release_expectation(expectation_text({"x86_64": {"versions": ">=2"}}).encode()).at(Version("1.0"))
    twice = expectation_text() + '[[platform]]\nname = "x86_64"\ntags = ["linux_x86_64"]'
    with pytest.raises(UsageError, match=r"the expectation has platform 'x86_64' twice for demo 1\.0"):
        parse_release_expectation(twice.encode()).at(Version("1.0"))


@pytest.mark.parametrize(
    ("python", "tag", "accepted"),
    [
        (ExpectedPython((3, 12)), Tag("cp312", "cp312", "any"), True),
        (ExpectedPython((3, 12)), Tag("cp312", "none", "macosx_11_0_arm64"), True),
        (ExpectedPython((3, 12)), Tag("cp38", "abi3", "win_amd64"), True),
        (ExpectedPython((3, 12)), Tag("py3", "none", "any"), True),
        (ExpectedPython((3, 12)), Tag("cp313", "cp313", "any"), False),
        (ExpectedPython((3, 13)), Tag("cp313", "cp313t", "any"), False),
        (ExpectedPython((3, 13), free_threaded=True), Tag("cp313", "cp313t", "any"), True),
        (ExpectedPython((3, 13), free_threaded=True), Tag("cp38", "abi3", "any"), False),
    ],
)
def test_the_tags_that_install_on_a_python(python: ExpectedPython, tag: Tag, *, accepted: bool) -> None:
    assert python.accepts(tag) is accepted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "project is missing; expected a string"),
        ("project = 'demo'", "platform is missing; expected one [[platform]] for each platform of the release"),
        (expectation_text(pythons=[]), "platform[0].pythons (line 3) is missing, here and at the top"),
        (expectation_text(pythons=["2.7"]), "pythons[0] (line 2) is wrong: the Python '2.7' is unknown"),
        (
            expectation_text({"x": {"tags": []}}),
            "platform[0].tags (line 5) is []; expected a list of strings that is not empty",
        ),
        (
            expectation_text({"x": {"accelerator": "gpu"}}),
            "platform[0].accelerator (line 6) is wrong: 'gpu' does not name an accelerator; expected cuda, rocm, "
            "xpu, cpu",
        ),
        (
            expectation_text({"x": {"gpus": ["H1000"]}}),
            "platform[0].gpus[0] (line 6) is wrong: unknown GPU 'H1000'",
        ),
        (expectation_text({"x": {"max_size": "big"}}), "platform[0].max-size (line 6) is wrong: 'big' is not a size"),
        (expectation_text({"x": {"versions": "2.x"}}), "versions (line 6) is wrong: '2.x' is not a set of versions"),
        (expectation_text({"x": {"max-sise": "1GB"}}), "max-sise (line 6) is not a known key"),
        (
            expectation_text(depth="deep"),
            "depth (line 3) is 'deep'; expected one of quick, links, gpu, full",
        ),
        (
            expectation_text(same_metadata="some"),
            "same-metadata (line 3) is 'some'; expected one of all, platform, none",
        ),
        (expectation_text(more='[[parity]]\nplatforms = ["x86_64", "arm"]'), "parity[0].platforms (line 10) has 'arm'"),
        (
            expectation_text(more='[[parity]]\nplatforms = ["x86_64", "x86_64"]'),
            "parity[0].platforms (line 10) compares a platform with itself",
        ),
        (
            expectation_text(more='[[ignore]]\nrules = ["WHL103"]\nfiles = "*"\nuntil = 2027-06-30'),
            "ignore[0].reason (line 9) is missing",
        ),
        (expectation_text(more='[hashes]\n"a.whl" = "12"'), "hashes.'a.whl' (line 10) is wrong: '12' is not a sha256"),
        ("project = \n", "the expectation is not valid TOML: Invalid value (at line 1, column 11)"),
    ],
)
def test_what_is_wrong_is_told_with_key_and_line(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_release_expectation(text.encode())

    assert said in str(caught.value)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file or directory"):
        read_release_expectation(tmp_path / "absent.toml")
    path = tmp_path / "latin1.toml"
    path.write_bytes(b"project = 'demo'\n# caf\xe9\n")
    with pytest.raises(UsageError, match=r"is not UTF-8 \(line 2\)"):
        read_release_expectation(path)


@pytest.mark.parametrize("version", ["2.10.0", "2.11.0", "2.12.1", "2.15.0", "3.0"])
def test_the_example_for_torch_expects_cuda_on_both_architectures(version: str) -> None:
    expectation = read_release_expectation(TORCH).at(Version(version))

    accelerators = {platform.name: platform.accelerator for platform in expectation.platforms}
    assert [a.accelerator for name in ("x86_64", "aarch64") if (a := accelerators[name])] == ["cuda", "cuda"]
    assert set(accelerators) == {"x86_64", "aarch64", "Windows", "macOS"}


@settings(max_examples=150)
@given(st.lists(st.tuples(st.integers(0, len(FULL) - 1), st.text(max_size=8), st.integers(0, 40)), max_size=5))
def test_a_damaged_file_is_read_or_refused(patches: list[tuple[int, str, int]]) -> None:
    text = FULL
    for offset, patch, removed in patches:
        text = text[:offset] + patch + text[offset + removed :]
    with contextlib.suppress(UsageError):
        assert parse_release_expectation(text.encode()).at(Version("2.0")).platforms


def test_variants_are_columns_and_machines_are_promised() -> None:
    text = expectation_text({"x86_64": {"variant": "cu130", "accelerator": "cuda"}})
    text += '\n[[machine]]\ngpus = ["H100", "T4"]\ndrivers = ["535", "580"]\nvariant = "cu130"\n'
    text += '[[machine]]\ncpu = "grace"\n'

    expectation = parse_release_expectation(text.encode())

    assert expectation.platforms[0].variant == "cu130"
    first, second = expectation.machines
    assert ([gpu.name for gpu in first.gpus], first.drivers, first.variant) == (["H100", "T4"], ("535", "580"), "cu130")
    assert second == ExpectedMachines((), cpu="Grace")


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ("", "is missing, and so is cpu; expected gpus = "),
        ('gpus = ["H1000"]', "machine[0].gpus[0] (line 7) is wrong: unknown GPU 'H1000'"),
        ('gpus = ["H100"]\ndrivers = ["58"]', "machine[0].drivers[0] (line 8) is wrong: the driver '58' is unknown"),
        ('cpu = "x86-64-v3"\ndrivers = ["580"]', "drivers (line 8) has no effect without gpus"),
        ('gpus = ["H100"]\nvariant = "CU13"', "variant (line 8) is wrong: 'CU13' is not a variant label"),
    ],
)
def test_a_machine_that_nobody_knows_is_a_fault(keys: str, fault: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_release_expectation(expectation_text({"x86_64": {}}, f"[[machine]]\n{keys}").encode())

    assert fault in str(caught.value)
