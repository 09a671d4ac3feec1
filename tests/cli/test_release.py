"""``wheelproof release`` as a release engineer runs it: folders, a real index on loopback, every format."""

from __future__ import annotations

import hashlib
import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import html5lib
import pytest

from tests.conftest import Run, Wheelproof
from tests.support.elf import Symbol
from tests.support.environments import library
from tests.support.range_server import RangeServer
from tests.support.simple_index import simple_index
from tests.support.wheels import WheelBuilder, torch_like

EXPECT = """\
project = "torch"
pythons = ["3.12", "3.13"]
resolve = false

[[platform]]
name = "x86_64"
tags = ["manylinux_2_28_x86_64"]
accelerator = "cuda"

[[platform]]
name = "aarch64"
tags = ["manylinux_2_28_aarch64"]
accelerator = "cuda"
"""
PARITY = '[[parity]]\nplatforms = ["x86_64", "aarch64"]\n'


def torch_wheel(
    kind: str = "cuda", version: str = "2.11.0", machine: str = "aarch64", python: str = "cp312"
) -> WheelBuilder:
    """A wheel whose extension module needs all of its libraries."""
    names = ["torch", "torch_cpu", "torch_python", "c10", "shm", *["torch_cuda", "c10_cuda"] * (kind == "cuda")]
    needed = [f"lib{name}.so" for name in names]
    extension = library("", needed, machine, rpath="$ORIGIN/lib", alignment=0x10000)
    wheel = torch_like(kind, version, machine, python)
    return wheel.add(f"torch/_C.cpython-3{python[3:]}-{machine}-linux-gnu.so", extension)


def torch(version: str = "2.11.0", arm: str = "cuda") -> list[WheelBuilder]:
    """A wheel for each cell; those for aarch64 are built for ``arm``."""
    machines = (("x86_64", "cuda"), ("aarch64", arm))
    return [torch_wheel(kind, version, machine, python) for machine, kind in machines for python in ("cp312", "cp313")]


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    """A folder with a whole torch 2.11.0 release."""
    folder = tmp_path / "dist"
    folder.mkdir()
    for wheel in torch():
        wheel.write(folder)
    return folder


def release(wheelproof: Wheelproof, *arguments: str | Path, expect: str = EXPECT) -> Run:
    """Run the command in the test's folder, with this expectation."""
    Path("release.toml").write_text(expect)
    return wheelproof("release", *map(str, arguments), "--expect", "release.toml")


def report_of(run: Run) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(run.out)
    return report


def failed(run: Run) -> dict[str, set[str]]:
    """The rules that failed, by subject."""
    return {
        subject["id"]: rules
        for subject in report_of(run)["subjects"]
        if (rules := {result["rule"] for result in subject["results"] if result["outcome"] == "fail"})
    }


def test_a_whole_release_ships(wheelproof: Wheelproof, dist: Path) -> None:
    run = release(wheelproof, dist)

    assert run.status == 0, run.out
    assert run.out.startswith("may be uploaded\nSHIP  torch 2.11.0: 4 of 4 cells filled by 4 files\n")
    assert "3.12    ok CUDA 13.0  ok CUDA 13.0\n" in run.out


def test_cpu_wheels_for_aarch64_stop_it(wheelproof: Wheelproof) -> None:
    with RangeServer(simple_index(*torch("2.10.0", arm="cpu"))) as server:
        run = release(
            wheelproof,
            "torch==2.10.0",
            "--index-url",
            server.url("/simple"),
            "--fail-on",
            "error",
            expect=EXPECT + PARITY,
        )

    assert run.status == 1
    answer, stop, parity, accelerator, *rest = run.out.splitlines()
    assert (
        answer == "must not be uploaded: x86_64 is CUDA 12.8 while aarch64 is CPU only; torch: the wheel is CPU only "
        "(2.10.0+cpu); expected cuda"
    )
    assert stop == "STOP  torch 2.10.0: 4 of 4 cells filled by 4 files"
    assert parity == "  error        REL110  x86_64 is CUDA 12.8 while aarch64 is CPU only"
    assert accelerator.startswith(
        "  error        REL103  the wheel is CPU only (2.10.0+cpu); expected cuda: torch-2.10.0-"
    )
    assert "3.12    ok CUDA 12.8  FAIL CPU only" in rest
    assert "WHL201" not in run.out


def test_cpu_wheels_for_aarch64_as_expected_ship(wheelproof: Wheelproof) -> None:
    cuda, cpu = 'accelerator = "cuda"', 'accelerator = "cpu"'
    expect = cpu.join(EXPECT.rsplit(cuda, 1))
    with RangeServer(simple_index(*torch("2.10.0", arm="cpu"))) as server:
        arguments = ("torch==2.10.0", "--index-url", server.url("/simple"), "--format", "json")
        run = release(wheelproof, *arguments, expect=expect)

    assert (run.status, failed(run)) == (0, {})


@pytest.mark.parametrize("requirement", ["torch==2.11.0", "torch>=2.10"])
@pytest.mark.parametrize("name", ["_ZN3c104hereEv", "_ZN3c104goneEv"])
def test_symbols_that_the_required_torch_does_not_export_stop_it(
    wheelproof: Wheelproof, tmp_path: Path, requirement: str, name: str
) -> None:
    tag = "cp312-cp312-manylinux_2_28_aarch64"
    symbols = [Symbol("PyInit__C"), Symbol(name, defined=False)]
    demo = WheelBuilder("demo", "1.0", tag).metadata(requires=[requirement])
    demo.add("demo/_C.cpython-312-aarch64-linux-gnu.so", library("", ["libc10.so"], symbols=symbols, alignment=0x10000))
    exported = library("libc10.so", ["libc.so.6"], symbols=[Symbol("_ZN3c104hereEv")])
    of_torch = WheelBuilder("torch", "2.11.0", tag).metadata().add("torch/lib/libc10.so", exported)
    of_torch.add("torch/_C.cpython-312-aarch64-linux-gnu.so", library("", ["libc10.so"], rpath="$ORIGIN/lib"))
    demo.write(tmp_path)
    expect = 'project = "demo"\npythons = ["3.12"]\n[[platform]]\nname = "aarch64"\ntags = ["manylinux_2_28_aarch64"]\n'

    with RangeServer(simple_index(of_torch)) as server:
        place = ("--index-url", server.url("/simple"), "--depth", "links", "--format", "json")
        run = release(wheelproof, tmp_path, *place, expect=expect)

    (wheel,) = (subject for subject in report_of(run)["subjects"] if subject["kind"] == "wheel")
    (judged,) = (result for result in wheel["results"] if result["rule"] == "WHL526")
    if name == "_ZN3c104hereEv":
        assert (run.status, judged["outcome"]) == (0, "pass")
    else:
        assert (run.status, judged["outcome"]) == (1, "fail")
        assert judged["message"].endswith(" needs c10::gone (_ZN3c104goneEv), which torch 2.11.0 does not export")


def test_a_missing_an_unexpected_and_a_foreign_file(wheelproof: Wheelproof, dist: Path) -> None:
    (dist / torch()[3].file_name).unlink()
    torch_wheel(python="cp311").write(dist)
    WheelBuilder("other").write(dist)

    run = release(wheelproof, dist, "--format", "json")

    assert run.status == 1
    assert failed(run) == {
        "torch 2.11.0": {"REL101"},
        "other-1.0-py3-none-any.whl": {"REL102"},
        torch_wheel(python="cp311").file_name: {"REL102"},
    }
    cells = {(cell["platform"], cell["python"]): cell for cell in report_of(run)["subjects"][0]["facts"]["cells"]}
    assert cells["aarch64", "3.13"]["verdict"] == "missing"
    assert cells["aarch64", "3.12"]["accelerator"] == "CUDA 13.0"


def test_a_file_that_was_replaced_on_the_index(wheelproof: Wheelproof, dist: Path) -> None:
    replaced = torch_wheel().add("torch/extra.py")
    with RangeServer(simple_index(replaced, *torch()[:2], torch()[3])) as server:
        arguments = ("--index-url", server.url("/simple"), "--format", "json")
        run = release(wheelproof, dist, "torch==2.11.0", *arguments)

    assert run.status == 1
    assert failed(run) == {replaced.file_name: {"REL105"}}


def test_a_list_of_hashes(wheelproof: Wheelproof, dist: Path) -> None:
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in dist.iterdir()}
    hashes = "[hashes]\n" + "".join(f'"{name}" = "{digest}"\n' for name, digest in digests.items())

    assert release(wheelproof, dist, expect=EXPECT + hashes).status == 0
    torch_wheel().add("torch/extra.py").write(dist)
    run = release(wheelproof, dist, "--format", "json", expect=EXPECT + hashes)
    assert failed(run) == {torch_wheel().file_name: {"REL105"}}


def test_a_yanked_file_is_in_the_release(wheelproof: Wheelproof) -> None:
    wheels = torch()
    attributes = {wheels[0].file_name: 'data-yanked="broken"'}
    with RangeServer(simple_index(*wheels, attributes=attributes)) as server:
        arguments = ("torch==2.11.0", "--index-url", server.url("/simple"), "--format", "json")
        run = release(wheelproof, *arguments)
        allowed = release(wheelproof, *arguments, expect=f"yanked = true\n{EXPECT}")

    assert failed(run) == {wheels[0].file_name: {"REL106"}}
    assert (run.status, allowed.status) == (1, 0)


def test_a_find_links_folder_is_a_target_by_requirement(wheelproof: Wheelproof, dist: Path) -> None:
    run = release(wheelproof, "torch==2.11.0", "--no-index", "--find-links", str(dist))

    assert run.status == 0, run.out
    assert "SHIP  torch 2.11.0" in run.out


def test_an_exemption_holds_until_its_date(wheelproof: Wheelproof, dist: Path) -> None:
    torch_wheel(python="cp311").write(dist)
    entry = '[[ignore]]\nrules = ["REL102"]\nfiles = "*cp311*"\nreason = "tried out"\nuntil = '

    exempted = release(wheelproof, dist, "--format", "json", expect=f"{EXPECT}{entry}2999-12-31")
    expired = release(wheelproof, dist, "--format", "json", expect=f"{EXPECT}{entry}2000-01-01")

    assert (exempted.status, failed(exempted)) == (0, {})
    assert "ignored until 2999-12-31, tried out: the file is not expected" in exempted.out
    assert expired.status == 1
    assert failed(expired) == {"torch 2.11.0": {"REL111"}, torch_wheel(python="cp311").file_name: {"REL102"}}


def test_an_exempted_finding_leaves_no_claim_open(wheelproof: Wheelproof, tmp_path: Path) -> None:
    for wheel in torch("2.10.0", arm="cpu"):
        wheel.write(tmp_path)
    entry = '[[ignore]]\nrules = ["REL103", "REL110", "WHL203"]\nfiles = "*"\nreason = "known"\nuntil = 2999-12-31\n'

    assert release(wheelproof, tmp_path, expect=f"{EXPECT}{PARITY}").status == 1
    assert release(wheelproof, tmp_path, expect=f"{EXPECT}{PARITY}{entry}").status == 0


def test_a_wheel_that_cannot_be_read_stops_it_undecided(wheelproof: Wheelproof, dist: Path) -> None:
    files = simple_index(*torch())
    del files[f"/files/{torch()[0].file_name}"]
    with RangeServer(files) as server:
        run = release(wheelproof, "torch==2.11.0", "--index-url", server.url("/simple"))

    assert run.status == 3
    answer, title, *_ = run.out.splitlines()
    assert answer.startswith("must not be uploaded: something is not proven: ")
    assert title.startswith("STOP  torch 2.11.0")
    assert "not checked  WHL000" in run.out


def test_the_expectation_sets_the_least_depth(wheelproof: Wheelproof, dist: Path) -> None:
    def hashed(*arguments: str, expect: str) -> str:
        """How the comparison of contents with RECORD ended, which only depth full makes."""
        report = report_of(release(wheelproof, dist, *arguments, "--format", "json", expect=expect))
        (outcome,) = {r["outcome"] for s in report["subjects"] for r in s["results"] if r["rule"] == "WHL124"}
        return str(outcome)

    assert hashed(expect=EXPECT) == "skip"
    assert hashed("--depth", "full", expect=EXPECT) == "pass"
    assert hashed("--depth", "quick", expect=f'depth = "full"\n{EXPECT}') == "pass"


def test_without_compiled_files_nothing_must_be_read(wheelproof: Wheelproof, tmp_path: Path) -> None:
    WheelBuilder().add("demo/__init__.py").write(tmp_path)
    expect = 'project = "demo"\npythons = ["3.12"]\ndepth = "quick"\n[[platform]]\nname = "all"\ntags = ["any"]\n'

    run = release(wheelproof, tmp_path, "--format", "json", expect=expect)

    (answer,) = report_of(run)["summary"]["answers"]
    (loads,) = (claim for claim in answer["claims"] if claim["name"] == "loads")
    assert (run.status, answer["text"], loads["obligations"]) == (0, "may be uploaded", [])


def test_every_format(wheelproof: Wheelproof, dist: Path) -> None:
    assert report_of(release(wheelproof, dist, "--format", "json"))["command"] == "release"
    assert release(wheelproof, dist, "--format", "markdown").out.startswith(
        "## may be uploaded\n\n## SHIP  torch 2\\.11\\.0"
    )
    page = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(
        io.StringIO(release(wheelproof, dist, "--format", "html").out)
    )
    heat = page.find(".//table[@class='heat subjects']")
    rows = [row.findtext(".//a[@class='file']") for row in heat.findall("./tbody/tr")]
    assert rows == ["torch 2.11.0", *sorted(path.name for path in dist.iterdir())]
    quiet = page.find(".//details[@class='more quiet']")
    assert {"REL101", "REL103", "WHL202"} <= {row.findtext("./td") for row in quiet.iter("tr")}
    answer, title, *_ = release(wheelproof, dist, "-q").out.splitlines()
    assert answer == "may be uploaded"
    assert title.startswith("SHIP")


@pytest.mark.parametrize(
    ("arguments", "expect", "status", "message"),
    [
        (("torch==2.11.0",), "project = 1", 2, "project (line 1) is 1; expected a string"),
        (("torch==2.11.0",), EXPECT + "colour = 1", 2, "platform[1].colour (line 14) is not a known key"),
        (("other==1",), EXPECT, 2, "'other==1' is not a file of torch"),
        (("absent/",), EXPECT, 3, "there is no file absent"),
        (
            ("dist",),
            EXPECT + '[[ignore]]\nrules = ["WHL9"]\nfiles = "*"\nreason = "x"\nuntil = 2999-12-31',
            2,
            "no rule starts with 'WHL9'",
        ),
    ],
)
def test_wrong_usage(
    wheelproof: Wheelproof, arguments: tuple[str, ...], expect: str, status: int, message: str
) -> None:
    run = release(wheelproof, *arguments, expect=expect)

    assert (run.status, run.out) == (status, "")
    assert message in run.err


def test_a_folder_with_nothing_of_the_project(wheelproof: Wheelproof, tmp_path: Path) -> None:
    WheelBuilder("other").write(tmp_path)

    run = release(wheelproof, tmp_path)

    assert run.status == 3
    assert "no file of torch is in" in run.err


def test_the_members_of_many_wheels_are_not_kept(wheelproof: Wheelproof, tmp_path: Path) -> None:
    """Twenty wheels of two thousand members: the kept data of each is far smaller than its members."""
    pythons = [f"3.{minor}" for minor in range(10, 20)]
    expect = EXPECT.replace('["3.12", "3.13"]', json.dumps(pythons))
    folder = tmp_path / "many"
    folder.mkdir()
    for python in pythons:
        for machine in ("x86_64", "aarch64"):
            wheel = torch_wheel(machine=machine, python=f"cp{python.replace('.', '')}")
            for number in range(2_000):
                wheel.add(f"torch/include/header_{number}.h", b"")
            wheel.write(folder)
    tracemalloc.start()
    try:
        run = release(wheelproof, folder, expect=expect)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert run.status == 0, run.out
    assert peak < 24_000_000  # 16 MB; 36 MB if members were kept


# Can it be installed?

DEMO = """\
project = "demo"
pythons = ["3.12", "3.13t"]
[[platform]]
name = "Linux"
tags = ["manylinux_2_28_x86_64"]
[[platform]]
name = "Windows"
tags = ["win_amd64"]
[[platform]]
name = "macOS"
tags = ["macosx_*_arm64"]
"""
TAGS = [
    f"{python}-{tag}"
    for python in ("cp312-cp312", "cp313-cp313t")
    for tag in ("manylinux_2_28_x86_64", "win_amd64", "macosx_11_0_arm64")
]


def demo(folder: Path, *requires: str) -> Path:
    """A folder with a whole release of demo 1.0, which requires this."""
    folder.mkdir()
    for tags in TAGS:
        WheelBuilder(tags=tags).metadata(requires=requires).write(folder)
    return folder


def dependency(version: str, *tags: str) -> list[WheelBuilder]:
    return [WheelBuilder("dep", version, tag) for tag in tags]


NATIVE = [
    "cp312-cp312-manylinux_2_28_x86_64",
    "cp312-cp312-win_amd64",
    "cp312-cp312-macosx_14_0_arm64",
    "cp313-cp313-manylinux_2_28_x86_64",
    "cp313-cp313-win_amd64",
    "cp313-cp313-macosx_14_0_arm64",
]
THREADS = [tag.replace("cp313-cp313", "cp313-cp313t") for tag in NATIVE[3:]]


@pytest.mark.parametrize(
    ("index", "requires", "status", "expected"),
    [
        (
            dependency("1.0", "py3-none-any"),
            "dep>=2",
            1,
            "on Linux, Windows and macOS (Python 3.12) no versions satisfy the requirements of the release",
        ),
        ([], "dep", 1, "on Linux, Windows and macOS (Python 3.12) dep has no file, but the release requires it"),
        (
            dependency("1.0", *NATIVE[:1], *NATIVE[2:], *THREADS),
            "dep",
            1,
            "on Windows (Python 3.12) dep has no file",
        ),
        (dependency("1.0", *NATIVE), "dep", 3, "dep 1.0 has no file for cp313t x86_64"),
        (dependency("1.1", *NATIVE) + dependency("1.0", *NATIVE, *THREADS), "dep", 0, "may be uploaded"),
        (
            dependency("1.0", "cp312-cp312-win_amd64"),
            "dep; sys_platform == 'win32' and python_version < '3.13'",
            0,
            "SHIP",
        ),
        (
            [WheelBuilder("dep").metadata(requires=["demo==1.0"])],
            "dep; python_version < '3.13'",
            0,
            "SHIP",
        ),
    ],
    ids=["version", "nothing", "no Windows", "no free threads", "an older one with free threads", "marker", "circle"],
)
def test_what_the_wheels_require_is_resolved_for_every_cell(
    tmp_path: Path, wheelproof: Wheelproof, index: list[WheelBuilder], requires: str, status: int, expected: str
) -> None:
    folder = demo(tmp_path / "dist", requires)
    with RangeServer(simple_index(*index)) as server:
        run = release(wheelproof, folder, "--index-url", server.url("/simple"), expect=DEMO)
    assert expected in run.out
    assert run.status == status


OTHERS = """\
project = "demo"
pythons = ["3.12"]
[[platform]]
name = "musl"
tags = ["musllinux_1_2_x86_64"]
[[platform]]
name = "Windows x86"
tags = ["win32"]
[[platform]]
name = "universal"
tags = ["macosx_*_universal2"]
"""
OTHER_PLATFORMS = ("musllinux_1_2_x86_64", "win32", "macosx_10_13_universal2")


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        (("musllinux_1_2_x86_64", "win32", "macosx_11_0_arm64", "macosx_10_13_x86_64"), "may be uploaded"),
        (("musllinux_1_1_x86_64", "win32", "macosx_11_0_universal2"), "may be uploaded"),
        (("manylinux_2_17_x86_64", "win32", "macosx_11_0_universal2"), "on musl (Python 3.12) dep has no file"),
        (
            ("musllinux_1_2_x86_64", "win_amd64", "macosx_11_0_universal2"),
            "on Windows x86 (Python 3.12) dep has no file",
        ),
        (
            ("musllinux_1_2_x86_64", "win32", "macosx_11_0_arm64"),
            "on universal (Python 3.12) dep has no file",
        ),
    ],
)
def test_requirements_are_resolved_for_musl_and_for_both_machines_of_a_universal_wheel(
    tmp_path: Path, wheelproof: Wheelproof, tags: tuple[str, ...], expected: str
) -> None:
    for platform in OTHER_PLATFORMS:
        WheelBuilder(tags=f"cp312-cp312-{platform}").metadata(requires=["dep"]).write(tmp_path)
    index = dependency("1.0", *(f"cp312-cp312-{platform}" for platform in tags))
    with RangeServer(simple_index(*index)) as server:
        run = release(wheelproof, tmp_path, "--index-url", server.url("/simple"), expect=OTHERS)
    assert expected in run.out, run.out
    assert run.status == (0 if expected == "may be uploaded" else 1)


@pytest.mark.parametrize(
    ("requires", "expected"),
    [
        (('dep; extra == "fast"', 'dep<2; extra == "old"'), ""),
        (('dep==2; extra == "fast"', 'dep<2; extra == "old"'), ""),  # they contradict each other, and may
        (('dep==3; extra == "fast"', "dep"), "no versions satisfy the requirements of the extra fast of the release"),
        (('gone; extra == "fast"',), "gone has no file, but the extra fast of the release requires it"),
        (
            ('demo[old]; extra == "fast"', 'gone; extra == "old"'),
            "gone has no file, but the extra fast of the release requires it",
        ),
        (('gone; extra == "fast" and sys_platform == "win32"',), ""),
    ],
)
def test_an_extra_that_cannot_be_installed_is_a_warning(
    tmp_path: Path, wheelproof: Wheelproof, requires: tuple[str, ...], expected: str
) -> None:
    platform = "manylinux_2_28_x86_64"
    built = WheelBuilder(tags=f"cp312-cp312-{platform}")
    built.metadata("Provides-Extra: fast", "Provides-Extra: old", requires=requires).write(tmp_path)
    index = [*dependency("1.0", "py3-none-any"), *dependency("2.0", "py3-none-any")]
    expect = f'project = "demo"\npythons = ["3.12"]\n[[platform]]\nname = "Linux"\ntags = ["{platform}"]\n'
    with RangeServer(simple_index(*index)) as server:
        place = ("--index-url", server.url("/simple"), "--format", "json")
        run = release(wheelproof, tmp_path, *place, expect=expect)
    found = [result for subject in report_of(run)["subjects"] for result in subject["results"]]
    warnings = [r["message"] for r in found if r["rule"] == "REL113" and r["outcome"] == "fail"]
    assert run.status == 0
    assert any(expected in message for message in warnings) == bool(expected)
    assert bool(warnings) == bool(expected)


def test_the_platforms_that_are_named_are_judged_alone(tmp_path: Path, wheelproof: Wheelproof) -> None:
    folder = demo(tmp_path / "dist", "dep; sys_platform == 'linux'")
    (folder / "demo-1.0-cp312-cp312-macosx_11_0_arm64.whl").write_bytes(b"no wheel")
    arguments = (folder, "--no-index", "--platform")
    windows = release(wheelproof, *arguments, "win_amd64", expect=DEMO)
    assert windows.status == 0, windows.out
    assert "2 of 2 cells filled by 2 files" in windows.out
    assert release(wheelproof, *arguments, "macosx_14_0_arm64", expect=DEMO).status == 1
    assert release(wheelproof, *arguments, "x86_64", expect=DEMO).status == 3  # dep is not resolved
    none = release(wheelproof, *arguments, "win_arm64", expect=DEMO)
    assert none.status == 2
    assert "the expectation has no platform for --platform" in none.err


def test_without_an_index_it_is_not_proven_that_the_release_can_be_installed(
    tmp_path: Path, wheelproof: Wheelproof
) -> None:
    folder = demo(tmp_path / "dist", "dep")
    run = release(wheelproof, folder, "--no-index", expect=DEMO)
    assert run.status == 3
    assert "not proven that the release can be installed on every platform: no index is used" in run.out
    assert release(wheelproof, folder, "--no-index", expect=f"resolve = false\n{DEMO}").status == 0
    for wheel in dependency("1.0", "py3-none-any"):
        wheel.write(tmp_path)
    assert release(wheelproof, folder, "--no-index", "--find-links", tmp_path, expect=DEMO).status == 0


def test_an_expected_version_that_is_not_known_stops(tmp_path: Path, wheelproof: Wheelproof) -> None:
    """The wheel shows CUDA 12, and not which."""
    folder = tmp_path / "dist"
    folder.mkdir()
    tags = "cp312-cp312-manylinux_2_28_x86_64"
    uses = library("", ["libcudart.so.12"], "x86_64", runpath="$ORIGIN", contents={".nv_fatbin": bytes(16)})
    wheel = WheelBuilder(tags=tags).add("demo/_C.so", uses)
    wheel.add("demo/libcudart.so.12", library("libcudart.so.12", machine="x86_64")).write(folder)
    expect = f'project = "demo"\npythons = ["3.12"]\n[[platform]]\nname = "x86_64"\ntags = ["{tags[12:]}"]\n'
    run = release(wheelproof, folder, expect=f'{expect}accelerator = "cuda==12.8"\n')
    assert run.status == 3
    assert "not proven: expected cuda==12.8, but the wheel states only version 12" in run.out
    assert "STOP  demo 1.0" in run.out
    assert release(wheelproof, folder, expect=f'{expect}accelerator = "cuda==12.*"\n').status == 0
