"""``wheelproof verify --gpu --driver --cpu`` on an index of five variants, and what pip and uv of today take of it."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run, Wheelproof
from tests.support.range_server import RangeServer
from tests.support.variant_index import CPU, CU130, make_release, variant_pages

PLAIN = "demo-1.0-py3-none-any.whl"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RangeServer]:
    """The five variants, and the plain wheel."""
    with RangeServer(variant_pages(make_release(tmp_path))) as running:
        yield running


def verify(server: RangeServer, wheelproof: Wheelproof, *arguments: str) -> Run:
    return wheelproof("verify", "demo==1.0", "--index-url", server.url("/simple"), "--python", "3.12", *arguments)


def machines_of(run: Run) -> dict[str, dict[str, Any]]:
    """The subjects that are machines, by description."""
    found = [subject for subject in json.loads(run.out)["subjects"] if subject["kind"] == "machine"]
    return {subject["id"].removeprefix("demo==1.0 on "): subject for subject in found}


def test_each_machine_gets_its_variant_and_pip_takes_the_plain_wheel(
    server: RangeServer, wheelproof: Wheelproof
) -> None:
    run = verify(server, wheelproof, "--gpu", "GH200,GB200,H100,T4", "--driver", "535,580", "--format", "json")

    shown = {name: subject["facts"]["variant"] for name, subject in machines_of(run).items()}
    assert shown == {
        "GH200 (driver 535, aarch64)": "null",
        "GH200 (driver 580, aarch64)": "cu130_arm",
        "GB200 (driver 535, aarch64)": "null",
        "GB200 (driver 580, aarch64)": "cu130_arm",
        "H100 (driver 535, x86_64)": "cu126",
        "H100 (driver 580, x86_64)": "cu130",
        "T4 (driver 535, x86_64)": "cpu",
        "T4 (driver 580, x86_64)": "cpu",
    }
    assert {subject["facts"]["without_variants"] for subject in machines_of(run).values()} == {PLAIN}
    wheels = {s["id"]: s for s in json.loads(run.out)["subjects"] if s["kind"] == "wheel"}
    assert len(wheels) == 5
    for_cuda = wheels["demo-1.0-cp312-cp312-manylinux_2_28_x86_64-cu130.whl"]
    assert [product["name"] for product in for_cuda["facts"]["gpu_code"]["products"]] == ["H100"]
    metadata = [request for request in server.requests if request.path.endswith("-variants.json")]
    assert len(metadata) == 1


def test_a_machine_that_falls_through_is_reported_with_the_fix(server: RangeServer, wheelproof: Wheelproof) -> None:
    run = verify(server, wheelproof, "--gpu", "GB200", "--driver", "535", "--select", "WHL85", "--fail-on", "warning")

    assert run.status == 1
    assert "gets null (demo-1.0-py3-none-any-null.whl); installers without variant support take " + PLAIN in run.out
    assert "WHL851  GB200 (driver 535, aarch64) gets the variant null" in run.out
    assert "Update the driver to one that supports CUDA 13.0 (branch 580)." in run.out


def test_a_machine_without_a_gpu_is_described_by_its_cpu(server: RangeServer, wheelproof: Wheelproof) -> None:
    new = verify(server, wheelproof, "--cpu", "x86-64-v4", "--format", "json")
    old = verify(server, wheelproof, "--cpu", "x86-64-v2", "--format", "json")

    assert machines_of(new)["a machine without a GPU (x86-64-v4)"]["facts"]["variant"] == "cpu"
    assert machines_of(old)["a machine without a GPU (x86-64-v2)"]["facts"]["variant"] == "null"


def test_without_a_described_machine_the_choice_is_that_of_today(server: RangeServer, wheelproof: Wheelproof) -> None:
    run = verify(server, wheelproof, "--platform", "x86_64", "--format", "json")

    assert [subject["id"] for subject in json.loads(run.out)["subjects"]] == [PLAIN]


DOCUMENT = "demo-1.0-variants.json"
DESCRIBED = [("--gpu", "H100"), ("--gpu", "H100", "--driver", "none"), ("--cpu", "x86-64-v3")]


@pytest.mark.parametrize("described", DESCRIBED, ids=" ".join)
@pytest.mark.parametrize(
    ("document", "shown"),
    [
        (None, f"does not list {DOCUMENT}"),
        (b"<html>404</html>", f"{DOCUMENT} is not valid JSON"),
        (b"[]", f"{DOCUMENT} contains a JSON list"),
    ],
    ids=["missing", "html", "list"],
)
def test_variants_without_readable_metadata_are_no_pass(
    tmp_path: Path, wheelproof: Wheelproof, document: bytes | None, shown: str, described: tuple[str, ...]
) -> None:
    """The plain wheel is taken, which is not a variant: nothing but the choice itself meets the document."""
    folder = make_release(tmp_path)
    (folder / DOCUMENT).write_bytes(document or b"")
    with RangeServer(variant_pages(folder, without="" if document else DOCUMENT)) as server:
        run = verify(server, wheelproof, *described, "--format", "json")

    (machine,) = machines_of(run).values()
    assert machine["facts"]["file"] == PLAIN
    assert run.status == 1
    (told_of,) = [subject for subject in json.loads(run.out)["subjects"] if subject["kind"] == "variants-file"]
    results = {result["rule"]: result for result in told_of["results"]}
    assert (results["WHL811"]["outcome"], results["WHL812"]["outcome"]) == ("fail", "skip")
    assert shown in results["WHL811"]["message"]


def test_what_a_gpu_gets_is_undecided_without_readable_metadata(tmp_path: Path, wheelproof: Wheelproof) -> None:
    pages = variant_pages(make_release(tmp_path), without=DOCUMENT)
    with RangeServer(pages) as server:
        run = verify(server, wheelproof, "--gpu", "H100", "--select", "WHL851")

    assert run.status == 3
    assert (
        f"H100 (driver 580, x86_64) gets a wheel without a variant: {server.url('/simple')} does not list {DOCUMENT}"
        in (run.out)
    )


def test_metadata_is_judged_though_no_one_gets_a_variant_by_it(tmp_path: Path, wheelproof: Wheelproof) -> None:
    folder = make_release(tmp_path, CU130)
    metadata = json.loads((folder / DOCUMENT).read_text())
    metadata["variants"] = {}
    (folder / DOCUMENT).write_text(json.dumps(metadata))
    with RangeServer(variant_pages(folder)) as server:
        run = verify(server, wheelproof, "--gpu", "H100")

    assert run.status == 1
    assert "WHL812" in run.out


def test_variants_at_two_places_are_chosen_from_together(tmp_path: Path, wheelproof: Wheelproof) -> None:
    """pip uses all places: files on the second one only count, unless the two contradict each other."""
    places = []
    for number, variants in enumerate([(CPU,), (CPU, CU130)]):
        (tmp_path / str(number)).mkdir()
        places.append(make_release(tmp_path / str(number), *variants))
    where = ["--no-index", *(f"--find-links={place}" for place in places)]

    def h100() -> tuple[Run, dict[str, Any]]:
        run = wheelproof("verify", "demo", *where, "--python", "3.12", "--gpu", "H100", "--format", "json")
        return run, next(each for each in json.loads(run.out)["subjects"] if each["kind"] == "machine")

    assert h100()[1]["facts"]["variant"] == "cu130"
    metadata = json.loads((places[1] / DOCUMENT).read_text())
    metadata["variants"]["cpu"] = {"x86_64": {"level": ["v2"]}}
    (places[1] / DOCUMENT).write_text(json.dumps(metadata))
    run, machine = h100()
    assert machine["facts"]["variant"] == ""
    assert run.status == 3
    (undecided,) = [result for result in machine["results"] if result["outcome"] == "error"]
    assert undecided["rule"] == "WHL851"
    assert "contradict each other" in undecided["message"]


def test_a_folder_of_wheels_is_chosen_from_before_the_upload(tmp_path: Path, wheelproof: Wheelproof) -> None:
    folder = make_release(tmp_path)

    run = wheelproof(
        "verify", "demo", "--no-index", "--find-links", str(folder), "--python", "3.12", "--gpu", "GB200",
        "--format", "json",
    )  # fmt: skip

    (subject,) = [each for each in json.loads(run.out)["subjects"] if each["kind"] == "machine"]
    assert subject["facts"]["variant"] == "cu130_arm"
    assert subject["facts"]["preferred"] == ["cu130", "cu130_arm", "null"]
    assert subject["facts"]["passed_over"]["cu130"] == "it has no wheel for cp312 aarch64"


def test_a_platform_that_was_requested_counts_more_than_the_product(
    server: RangeServer, wheelproof: Wheelproof
) -> None:
    run = verify(server, wheelproof, "--gpu", "H100", "--platform", "aarch64", "--format", "json")

    (subject,) = machines_of(run).values()
    assert subject["facts"]["file"].endswith("aarch64-cu130_arm.whl")


def test_a_driver_that_the_table_does_not_have_describes_no_machine(
    server: RangeServer, wheelproof: Wheelproof
) -> None:
    assert not machines_of(verify(server, wheelproof, "--gpu", "H100", "--driver", "999", "--format", "json"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--gpu", "H100", "--driver", "580x"], "'580x' is not a driver"),
        (["--cpu", "v9"], "the CPU 'v9' is unknown"),
        (["--cpu", "Grace", "--platform", "x86_64"], "the CPU Grace is not among x86_64"),
    ],
)
def test_a_machine_that_is_unknown_is_wrong_usage(
    server: RangeServer, wheelproof: Wheelproof, arguments: list[str], message: str
) -> None:
    run = verify(server, wheelproof, *arguments)

    assert run.status == 2
    assert message in run.err


# The choices of today's installers


def download(server: RangeServer, folder: Path, *installer: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *installer, "--no-deps", "--index-url", server.url("/simple"), "demo==1.0"]
    return subprocess.run([*command, "--target", str(folder)], capture_output=True, text=True, check=False)


PIP = ("pip", "install", "--only-binary=:all:", "--platform", "manylinux_2_28_x86_64", "--python-version", "3.12")
UV = ("uv", "pip", "install", "--no-cache", "--python-platform", "x86_64-manylinux_2_28", "--python-version", "3.12")


@pytest.mark.parametrize("installer", [PIP, UV], ids=["pip", "uv"])
def test_pip_and_uv_take_the_plain_wheel(server: RangeServer, tmp_path: Path, installer: tuple[str, ...]) -> None:
    done = download(server, tmp_path / "target", *installer)

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "target/demo-1.0.dist-info/WHEEL").exists()
    assert not (tmp_path / "target/demo-1.0.dist-info/variant.json").exists()
    taken = [request.path for request in server.requests if request.path.endswith(".whl")]
    assert set(taken) == {f"/files/{PLAIN}"}


@pytest.mark.parametrize("installer", [PIP, UV], ids=["pip", "uv"])
def test_pip_and_uv_find_nothing_among_variants_alone(tmp_path: Path, installer: tuple[str, ...]) -> None:
    release = make_release(tmp_path, plain=False)
    with RangeServer(variant_pages(release)) as server:
        done = download(server, tmp_path / "target", *installer)

    assert done.returncode != 0
    assert not any(request.path.endswith(".whl") for request in server.requests)


def test_the_wheels_are_those_of_the_reference_tool(tmp_path: Path) -> None:
    """What make_variant writes is in them: the fixture is not our own invention."""
    release = make_release(tmp_path)

    for path in release.glob("*-cu1*.whl"):
        with zipfile.ZipFile(path) as wheel:
            described = json.loads(wheel.read("demo-1.0.dist-info/variant.json"))
            assert list(described["variants"]) == [path.stem.rpartition("-")[2]]
            assert wheel.read("demo/_C_cuda.so").startswith(b"\x7fELF")
