"""``wheelproof verify --depth links`` as a user runs it: a torch-like wheel, NVIDIA's wheels, and a missing one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run, Wheelproof
from tests.support.elf import AARCH64, Elf
from tests.support.range_server import RangeServer, Resource, fail, truncate
from tests.support.simple_index import simple_index
from tests.support.wheels import WheelBuilder

MACHINE = "manylinux_2_28_aarch64"
MODULE = "torch/_C.cpython-312-aarch64-linux-gnu.so"
MINORS = (12, 13)  # of the Pythons
RPATH = "$ORIGIN/../../nvidia/cu13/lib:$ORIGIN/../../nvidia/nccl/lib:$ORIGIN"
NVIDIA = {"nvidia-cublas": "13.1.0.3", "nvidia-cuda-runtime": "13.0.96", "nvidia-nccl-cu13": "2.28.9"}
FILES = {
    "nvidia-cublas": f"nvidia_cublas-13.1.0.3-py3-none-{MACHINE}.whl",
    "nvidia-cuda-runtime": f"nvidia_cuda_runtime-13.0.96-py3-none-{MACHINE}.whl",
    "nvidia-nccl-cu13": f"nvidia_nccl_cu13-2.28.9-py3-none-{MACHINE}.whl",
}
TORCH = f"torch-2.11.0-cp312-cp312-{MACHINE}.whl"
REQUIRES = [f'{name}=={version}; platform_system == "Linux"' for name, version in NVIDIA.items()]


def elf(soname: str = "", *needed: str, rpath: str = "") -> bytes:
    """A library as it must be on Grace: aligned to 64 KiB."""
    return Elf(machine=AARCH64, alignment=0x10000, soname=soname, needed=needed, rpath=rpath).build().data


def torch(requires: Sequence[str] = REQUIRES) -> WheelBuilder:
    built = WheelBuilder("torch", "2.11.0", f"cp312-cp312-{MACHINE}").metadata(requires=requires)
    built.add(MODULE, elf("", "libtorch_cuda.so", "libc.so.6", rpath="$ORIGIN/lib"))
    cuda = ("libc10.so", "libcublas.so.13", "libcudart.so.13", "libnccl.so.2", "libcuda.so.1", "libstdc++.so.6")
    built.add("torch/lib/libtorch_cuda.so", elf("libtorch_cuda.so", *cuda, rpath=RPATH))
    return built.add("torch/lib/libc10.so", elf("libc10.so", "libc.so.6"))


def nvidia(name: str) -> WheelBuilder:
    return WheelBuilder(name.replace("-", "_"), NVIDIA[name], f"py3-none-{MACHINE}").metadata(name=name)


def dependencies() -> dict[str, WheelBuilder]:
    cu13 = "nvidia/cu13/lib"
    cublas = nvidia("nvidia-cublas").add(f"{cu13}/libcublas.so.13", elf("libcublas.so.13", "libcublasLt.so.13"))
    cublas.add(f"{cu13}/libcublasLt.so.13", elf("libcublasLt.so.13", "libc.so.6"))
    cudart = nvidia("nvidia-cuda-runtime").add(f"{cu13}/libcudart.so.13", elf("libcudart.so.13", "libc.so.6"))
    nccl = nvidia("nvidia-nccl-cu13").add("nvidia/nccl/lib/libnccl.so.2", elf("libnccl.so.2", "libcudart.so.13"))
    return {"nvidia-cublas": cublas, "nvidia-cuda-runtime": cudart, "nvidia-nccl-cu13": nccl}


def index(*wheels: WheelBuilder, hidden: str = "") -> dict[str, bytes | Resource]:
    """An index of these and of NVIDIA's wheels, but for the hidden one."""
    shown = [wheel for name, wheel in dependencies().items() if name != hidden]
    found = simple_index(*wheels, *shown)
    return {path.replace("_", "-") if path.startswith("/simple") else path: body for path, body in found.items()}


def verify(files: Mapping[str, bytes | Resource | Path], wheelproof: Wheelproof, *arguments: str) -> Run:
    target = ("--platform", "aarch64", "--python", "3.12", "--depth", "links", "--format", "json")
    with RangeServer(files) as server:
        return wheelproof("verify", "--index-url", server.url("/simple"), *target, *arguments)


def subject_of(run: Run) -> dict[str, Any]:
    (subject,) = json.loads(run.out)["subjects"]
    found: dict[str, Any] = subject
    return found


def needs_of(subject: dict[str, Any]) -> dict[tuple[str, str], tuple[str, str]]:
    """(file, soname) to (status, wheel)."""
    needs = subject["facts"]["links"]["needs"]
    return {(n["elf"].rpartition("/")[2], n["needs"]): (n["status"], n["wheel"]) for n in needs}


def missing(subject: dict[str, Any]) -> dict[str, str]:
    """Each library of WHL521, and who needs it."""
    failed = [r for r in subject["results"] if r["rule"] == "WHL521" and r["outcome"] == "fail"]
    return {r["message"].partition(" ")[0]: r["evidence"][0]["value"] for r in failed}


def test_everything_is_resolved_but_the_driver_and_the_system(wheelproof: Wheelproof) -> None:
    run = verify(index(torch()), wheelproof, "torch==2.11.0")

    assert run.status == 0, run.out
    links = subject_of(run)["facts"]["links"]
    assert needs_of(subject_of(run)) == {
        ("_C.cpython-312-aarch64-linux-gnu.so", "libtorch_cuda.so"): ("resolved", TORCH),
        ("_C.cpython-312-aarch64-linux-gnu.so", "libc.so.6"): ("system", ""),
        ("libtorch_cuda.so", "libc10.so"): ("resolved", TORCH),
        ("libtorch_cuda.so", "libcublas.so.13"): ("resolved", FILES["nvidia-cublas"]),
        ("libtorch_cuda.so", "libcudart.so.13"): ("resolved", FILES["nvidia-cuda-runtime"]),
        ("libtorch_cuda.so", "libnccl.so.2"): ("resolved", FILES["nvidia-nccl-cu13"]),
        ("libtorch_cuda.so", "libcuda.so.1"): ("driver", ""),
        ("libtorch_cuda.so", "libstdc++.so.6"): ("system", ""),
        ("libc10.so", "libc.so.6"): ("system", ""),
        ("libcublas.so.13", "libcublasLt.so.13"): ("resolved", FILES["nvidia-cublas"]),
        ("libcublasLt.so.13", "libc.so.6"): ("system", ""),
        ("libcudart.so.13", "libc.so.6"): ("system", ""),
        ("libnccl.so.2", "libcudart.so.13"): ("resolved", FILES["nvidia-cuda-runtime"]),
    }
    assert links["wheels"] == [TORCH, *FILES.values()]
    assert (links["resolved_by"], links["absent"], links["unread"]) == ("exact pins of METADATA", [], [])


@pytest.mark.parametrize(
    ("hidden", "lost"),
    [
        ("nvidia-cublas", {"libcublas.so.13": "torch/lib/libtorch_cuda.so"}),
        (
            "nvidia-cuda-runtime",
            {
                "libcudart.so.13": f"torch/lib/libtorch_cuda.so, nvidia/nccl/lib/libnccl.so.2 of "
                f"{FILES['nvidia-nccl-cu13']}"
            },
        ),
        ("nvidia-nccl-cu13", {"libnccl.so.2": "torch/lib/libtorch_cuda.so"}),
    ],
)
@pytest.mark.parametrize("by", ["the index lacks it", "METADATA does not require it"])
def test_with_one_wheel_hidden_exactly_its_libraries_are_missing(
    wheelproof: Wheelproof, hidden: str, lost: dict[str, str], by: str
) -> None:
    if by == "the index lacks it":
        files = index(torch(), hidden=hidden)
    else:
        files = index(torch(requires=[text for text in REQUIRES if not text.startswith(hidden)]))

    run = verify(files, wheelproof, "torch==2.11.0")

    assert run.status == 1
    found = {soname: set(who.split(", ")) for soname, who in missing(subject_of(run)).items()}
    assert found == {soname: set(who.split(", ")) for soname, who in lost.items()}
    unfound = {key for key, (status, _) in needs_of(subject_of(run)).items() if status == "missing"}
    assert {soname for _, soname in unfound} == set(lost)
    absent = [item["name"] for item in subject_of(run)["facts"]["links"]["absent"]]
    assert absent == ([hidden] if by == "the index lacks it" else [])


def test_a_wheel_whose_requirements_are_ranges_is_resolved_by_uv(wheelproof: Wheelproof) -> None:
    vision = WheelBuilder("torchvision", "0.29.1", f"cp312-cp312-{MACHINE}").metadata(requires=["torch>=2", "gone"])
    vision.add("torchvision/_C.so", elf("", "libtorch_cuda.so", "libc.so.6"))

    run = verify(index(torch(), vision), wheelproof, "torchvision==0.29.1")

    subject = subject_of(run)
    assert subject["facts"]["links"]["resolved_by"] == "uv"
    assert needs_of(subject)["_C.so", "libtorch_cuda.so"] == ("preload", TORCH)
    assert subject["facts"]["links"]["absent"] == [{"name": "gone", "why": "gone has no files"}]
    assert {r["rule"] for r in subject["results"] if r["outcome"] == "fail" and r["severity"] == "error"} == {"WHL524"}


def test_what_two_wheels_share_is_read_once(wheelproof: Wheelproof) -> None:
    wheels = [WheelBuilder("torch", "2.11.0", f"cp3{n}-cp3{n}-{MACHINE}").metadata(requires=REQUIRES) for n in MINORS]
    module = elf("", "libcublas.so.13", rpath="$ORIGIN/../nvidia/cu13/lib")
    for minor, wheel in zip(MINORS, wheels, strict=True):
        wheel.add(f"torch/_C.cpython-3{minor}-aarch64-linux-gnu.so", module)
    with RangeServer(index(*wheels)) as server:
        arguments = ("--python", "3.12", "--python", "3.13", "--platform", "aarch64", "--depth", "links", "--no-cache")
        run = wheelproof("verify", "torch==2.11.0", "--index-url", server.url("/simple"), *arguments)
        counts = Counter((request.path, request.range) for request in server.requests)

    assert run.status == 0, run.out
    of_nvidia = {key: number for key, number in counts.items() if "nvidia" in key[0] and key[1] != "bytes=-65536"}
    assert of_nvidia
    assert set(of_nvidia.values()) == {1}


@pytest.mark.parametrize("behaviour", [fail(500), truncate(50)], ids=["answers 500", "is cut short"])
def test_a_dependency_that_cannot_be_read_leaves_links_undecided_and_all_else_judged(
    wheelproof: Wheelproof, behaviour: Any
) -> None:
    files = index(torch())
    path = f"/files/{FILES['nvidia-nccl-cu13']}"
    body = files[path]
    assert isinstance(body, bytes)

    run = verify(files | {path: Resource(body, behave=[behaviour])}, wheelproof, "torch==2.11.0", "--deadline", "600")

    assert run.status == 3
    outcomes = {result["rule"]: result["outcome"] for result in subject_of(run)["results"]}
    assert (outcomes["WHL000"], outcomes["WHL521"], outcomes["WHL502"]) == ("error", "skip", "pass")


def test_explain_tells_the_search(wheelproof: Wheelproof) -> None:
    with RangeServer(index(torch())) as server:
        arguments = ("--platform", "aarch64", "--python", "3.12", "--depth", "links", "--explain", "libnccl.so.2")
        run = wheelproof("verify", "torch==2.11.0", "--index-url", server.url("/simple"), *arguments)

    assert run.status == 0
    assert (
        "torch/lib/libtorch_cuda.so needs libnccl.so.2: resolved: nvidia/nccl/lib/libnccl.so.2 of "
        f"{FILES['nvidia-nccl-cu13']} (RPATH of torch/lib/libtorch_cuda.so)"
    ) in " ".join(run.out.split())


def test_a_local_wheel_is_closed_over_the_index(wheelproof: Wheelproof, tmp_path: Path) -> None:
    path = torch().write(tmp_path)

    run = verify(index(), wheelproof, str(path))

    assert run.status == 0, run.out
    assert needs_of(subject_of(run))["libtorch_cuda.so", "libnccl.so.2"] == ("resolved", FILES["nvidia-nccl-cu13"])


def test_depth_quick_reads_no_library_and_says_so(wheelproof: Wheelproof) -> None:
    with RangeServer(index(torch())) as server:
        arguments = ("--platform", "aarch64", "--python", "3.12", "--format", "json")
        run = wheelproof("verify", "torch==2.11.0", "--index-url", server.url("/simple"), *arguments)
        assert not any("nvidia" in request.path for request in server.requests)

    outcomes = {result["rule"]: result["outcome"] for result in subject_of(run)["results"]}
    assert {outcomes[rule] for rule in ("WHL502", "WHL521", "WHL524")} == {"skip"}
