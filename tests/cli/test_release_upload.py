"""``wheelproof release`` on folders with one file that the public index refuses: STOP, and the sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Wheelproof
from tests.support.macho import mach_o
from tests.support.pe import ARM64, Pe
from tests.support.wheels import WheelBuilder, elf_stub

LINUX, MACOS, WINDOWS = (f"cp312-cp312-{tag}" for tag in ("manylinux_2_28_x86_64", "macosx_11_0_arm64", "win_amd64"))
EXPECT = 'project = "demo"\npythons = ["3.12"]\n[[platform]]\nname = "all"\ntags = ["*"]\n'


def stating(*fields: str, **metadata: str) -> WheelBuilder:
    return WheelBuilder().metadata(*fields, **metadata)


REFUSED = {
    "a linux tag": (
        WheelBuilder(tags="cp312-cp312-linux_x86_64"),
        "REL301",
        "the index rejects the platform tag linux_x86_64",
    ),
    "capitals": (WheelBuilder("Demo"), "REL302", "the file name starts with Demo; the index expects demo"),
    "a local version": (WheelBuilder(version="1.0+cu130"), "REL303", "the index rejects the local version 1.0+cu130"),
    "a private package": (stating("Classifier: Private :: X"), "REL304", "keeps the wheel off the index"),
    "an unknown classifier": (stating("Classifier: No :: Such"), "REL304", "the index has no classifier 'No :: Such'"),
    "a licence file": (stating("License-File: LICENSE"), "REL305", "License-File LICENSE is not in the wheel"),
    "two licences": (stating("License-Expression: MIT", "License: MIT"), "REL305", "License and License-Expression"),
    "a licence classifier": (
        stating("License-Expression: MIT", "Classifier: License :: OSI Approved :: MIT License"),
        "REL305",
        "(PEP 639)",
    ),
    "no SPDX expression": (stating("License-Expression: Mine"), "WHL106", "License-Expression"),
    "an expression before PEP 639": (
        stating("License-Expression: MIT", metadata_version="2.3"),
        "WHL106",
        "License-Expression introduced in metadata version 2.4",
    ),
    "a field twice": (stating("Summary: a", "Summary: b"), "REL306", "packaging cannot read Summary"),
    "an unknown field": (stating("Home-Url: https://example.org"), "REL306", "packaging cannot read Home-Url"),
    "a description": (stating("", "A\n=\n\n==  ==\na   b\n==  ==\ntoo wide\n==  ==\n"), "REL307", "does not render"),
    "a type of description": (stating("Description-Content-Type: text/html"), "WHL106", "Description-Content-Type"),
    "a direct reference": (
        stating("Requires-Dist: torch @ https://example.org/torch.whl"),
        "REL308",
        "the index rejects the direct reference to torch",
    ),
    "Requires-Python": (stating(requires_python="three"), "WHL106", "Requires-Python"),
    "a link without a label": (stating("Project-URL: https://example.org"), "REL309", "is not `label, address`"),
    "a long summary": (stating(f"Summary: {'x' * 513}"), "REL310", "the summary has 513 characters"),
    "too little content": (
        WheelBuilder().add("demo/zeros", bytes(65 << 20)),
        "REL311",
        "the unpacked contents are more than 50 times as large as the file",
    ),
    "a script that climbs": (
        WheelBuilder().dist_info_file("entry_points.txt", "[console_scripts]\n../demo = demo:main\n"),
        "REL312",
        "the index rejects the script name '../demo'",
    ),
    "ELF for macOS": (WheelBuilder(tags=MACOS).add("demo/core.so", elf_stub()), "WHL540", "1 file for Linux (ELF)"),
    "ELF for Windows": (WheelBuilder(tags=WINDOWS).add("demo/c.so", elf_stub()), "WHL540", "1 file for Linux (ELF)"),
    "Mach-O for Linux": (WheelBuilder(tags=LINUX).add("demo/c.so", mach_o()), "WHL540", "1 file for macOS (Mach-O)"),
    "Arm for x64": (
        WheelBuilder(tags=WINDOWS).add("demo/c.pyd", Pe(machine=ARM64).build().data),
        "WHL541",
        "1 file for aarch64 in a wheel for amd64",
    ),
    "a newer macOS": (
        WheelBuilder(tags=MACOS).add("demo/core.so", mach_o("arm64", (15, 0))),
        "WHL542",
        "1 file needs macOS 15.0 on arm64",
    ),
}


@pytest.mark.parametrize(("wheel", "rule", "sentence"), REFUSED.values(), ids=REFUSED)
def test_what_must_not_be_shipped_stops(
    tmp_path: Path, wheelproof: Wheelproof, wheel: WheelBuilder, rule: str, sentence: str
) -> None:
    wheel.write(tmp_path)
    (tmp_path / "release.toml").write_text(EXPECT)
    run = wheelproof("release", str(tmp_path), "--expect", str(tmp_path / "release.toml"), "--no-index")
    assert run.status == 1, run.out
    assert run.out.startswith("must not be uploaded: ")
    assert any("  error  " in line and rule in line and sentence in line for line in run.out.splitlines()), run.out


def test_an_index_that_takes_anything(tmp_path: Path, wheelproof: Wheelproof) -> None:
    WheelBuilder(version="1.0+cu130", tags="cp312-cp312-linux_x86_64").write(tmp_path)
    (tmp_path / "release.toml").write_text(f'upload-rules = "none"\n{EXPECT}')
    run = wheelproof("release", str(tmp_path), "--expect", str(tmp_path / "release.toml"))
    assert run.status == 0, run.out


def test_a_wheel_that_is_well_made_ships(tmp_path: Path, wheelproof: Wheelproof) -> None:
    wheel = stating(
        "Summary: fine",
        "License-Expression: MIT",
        "License-File: LICENSE",
        "Classifier: Typing :: Typed",
        "Project-URL: Source, https://example.org",
        "Author-Email: Jane <jane@example.org>",
        "",
        "Title\n=====\n\nText.",
    )
    wheel.add("demo-1.0.dist-info/licenses/LICENSE", b"MIT").add("demo/__init__.py", b"").write(tmp_path)
    (tmp_path / "release.toml").write_text(f'{EXPECT}accelerator = "cpu"\n')
    run = wheelproof("release", str(tmp_path), "--expect", str(tmp_path / "release.toml"), "--no-index")
    assert run.status == 0, run.out
    assert run.out.startswith("may be uploaded\nSHIP  demo 1.0")


def test_no_accelerator_fulfils_cpu_on_every_system(tmp_path: Path, wheelproof: Wheelproof) -> None:
    WheelBuilder(tags=MACOS).add("demo/core.so", mach_o()).write(tmp_path)
    WheelBuilder(tags=WINDOWS).add("demo/core.pyd", Pe().build().data).write(tmp_path)
    rows = [f'[[platform]]\nname = "{tag}"\ntags = ["{tag}"]\naccelerator = "cpu"\n' for tag in ("mac*", "win*")]
    (tmp_path / "release.toml").write_text("\n".join(['project = "demo"\npythons = ["3.12"]', *rows]))
    run = wheelproof("release", str(tmp_path), "--expect", str(tmp_path / "release.toml"))
    assert run.status == 0, run.out
    assert "2 of 2 cells filled by 2 files" in run.out
