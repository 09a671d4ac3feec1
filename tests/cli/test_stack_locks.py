"""``wheelproof stack LOCK`` as a user runs it, with an index on loopback: no resolver is started."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run, Wheelproof
from tests.support.pairs import library
from tests.support.range_server import RangeServer
from tests.support.sdists import SourceBuilder
from tests.support.simple_index import simple_index
from tests.support.wheels import WheelBuilder, torch_like


def torch(accelerator: str, machine: str) -> WheelBuilder:
    wheel = torch_like(accelerator, "2.9.1", machine).metadata()
    if accelerator == "cuda":
        wheel.add("torch/lib/libtorch_cuda_linalg.so", library(machine, gpu=("sm_90",)))
    return wheel


CPU, CUDA, BASE = torch("cpu", "aarch64"), torch("cuda", "x86_64"), WheelBuilder("base", "1.0")
PURE = SourceBuilder("pure", "1.0")
FILES = simple_index(CPU, CUDA, BASE, PURE)


def digest(builder: WheelBuilder | SourceBuilder) -> str:
    return hashlib.sha256(builder.build()).hexdigest()


def wheels(server: RangeServer, *builders: WheelBuilder) -> str:
    rows = [f'{{ url = "{server.url(f"/files/{b.file_name}")}", hash = "sha256:{digest(b)}" }}' for b in builders]
    return f"wheels = [{', '.join(rows)}]"


def package(server: RangeServer, name: str, version: str, rest: str) -> str:
    registry = server.url("/simple")
    return f'[[package]]\nname = "{name}"\nversion = "{version}"\nsource = {{ registry = "{registry}" }}\n{rest}\n'


def uv_lock(*packages: str, names: str = "torch base") -> str:
    edges = ", ".join(f'{{ name = "{name}" }}' for name in names.split())
    root = f'[[package]]\nname = "mine"\nversion = "1"\nsource = {{ virtual = "." }}\ndependencies = [{edges}]\n'
    return "\n".join(['version = 1\nrevision = 3\nrequires-python = ">=3.11"\n', *packages, root])


def stack(
    wheelproof: Wheelproof, server: RangeServer, folder: Path, text: str, *arguments: str, name: str = "uv.lock"
) -> Run:
    (folder / name).write_text(text)
    where = ["--index-url", server.url("/simple")]
    return wheelproof("stack", str(folder / name), *where, "--python", "3.12", "--format", "json", *arguments)


def packages_of(run: Run) -> dict[str, dict[str, Any]]:
    report = json.loads(run.out)
    facts = next(s["facts"] for s in report["subjects"] if s["kind"] == "stack")
    return {row["package"]: row for row in facts["packages"]}


def failures(run: Run) -> dict[str, dict[str, Any]]:
    report = json.loads(run.out)
    return {r["rule"]: r for s in report["subjects"] for r in s["results"] if r["outcome"] in ("fail", "error")}


def test_the_files_of_the_lock_are_judged_for_each_machine(wheelproof: Wheelproof, tmp_path: Path) -> None:
    with RangeServer(dict(FILES)) as server:
        lock = uv_lock(
            package(server, "torch", "2.9.1", wheels(server, CPU, CUDA)),
            package(server, "base", "1.0", wheels(server, BASE)),
        )
        arm = stack(wheelproof, server, tmp_path, lock, "--platform", "aarch64", "--gpu", "GH200")
        intel = stack(wheelproof, server, tmp_path, lock, "--platform", "x86_64", "--gpu", "H100")
    assert (arm.status, packages_of(arm)["torch"]["accelerator"]) == (1, "cpu")
    found = failures(arm)["STK101"]
    assert (Path(found["location"]["file"]).name, found["location"]["line"]) == ("uv.lock", 5)
    assert (intel.status, packages_of(intel)["torch"]["accelerator"]) == (0, "cuda")


def test_a_hash_that_the_index_does_not_state(wheelproof: Wheelproof, tmp_path: Path) -> None:
    with RangeServer(dict(FILES)) as server:
        changed = wheels(server, BASE).replace(digest(BASE), "0" * 64)
        lock = uv_lock(package(server, "base", "1.0", changed), names="base")
        run = stack(wheelproof, server, tmp_path, lock, "--platform", "aarch64")
    assert run.status == 1
    assert "has a different hash on the index than in uv.lock" in failures(run)["STK112"]["message"]


def test_a_version_without_a_file_for_the_machine(wheelproof: Wheelproof, tmp_path: Path) -> None:
    with RangeServer(dict(FILES)) as server:
        lock = uv_lock(package(server, "torch", "2.9.1", wheels(server, CUDA)), names="torch")
        run = stack(wheelproof, server, tmp_path, lock, "--platform", "aarch64")
    assert run.status == 1
    assert "torch 2.9.1 has no file for cp312 aarch64" in failures(run)["STK110"]["message"]
    assert packages_of(run)["torch"]["distribution"] == "none"


def test_a_direct_address_of_a_wheel_for_another_machine(wheelproof: Wheelproof, tmp_path: Path) -> None:
    with RangeServer(dict(FILES)) as server:
        url = server.url(f"/files/{CUDA.file_name}")
        direct = (
            f'[[package]]\nname = "torch"\nversion = "2.9.1"\nsource = {{ url = "{url}" }}\n{wheels(server, CUDA)}\n'
        )
        run = stack(wheelproof, server, tmp_path, uv_lock(direct, names="torch"), "--platform", "aarch64")
    assert run.status == 1
    assert f"is the address of {CUDA.file_name}" in failures(run)["STK110"]["message"]


def test_an_index_that_only_the_lock_names_is_not_contacted(wheelproof: Wheelproof, tmp_path: Path) -> None:
    name = "torch-2.11.0%2Bcu130-cp312-cp312-manylinux_2_28_aarch64.whl"
    entry = (
        '[[package]]\nname = "torch"\nversion = "2.11.0+cu130"\n'
        'source = { registry = "https://user:secret@torch.example/whl" }\n'
        f'wheels = [{{ url = "https://torch.example/whl/{name}", hash = "sha256:{"1" * 64}" }}]\n'
    )
    with RangeServer(dict(FILES)) as server:
        run = stack(wheelproof, server, tmp_path, uv_lock(entry, names="torch"), "--platform", "aarch64")
    assert run.status == 3
    row = packages_of(run)["torch"]
    assert (row["version"], row["accelerator"], row["cuda"]) == ("2.11.0+cu130", "cuda", "13.0")
    assert "--trust-index torch.example" in failures(run)["STK113"]["message"]
    assert "secret" not in run.out + run.err


def test_a_path_out_of_the_tree_is_not_opened(wheelproof: Wheelproof, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / BASE.file_name).write_bytes(BASE.build())
    project = tmp_path / "tree"
    project.mkdir()
    path = f"../outside/{BASE.file_name}"
    entry = f'[[package]]\nname = "base"\nversion = "1.0"\nsource = {{ path = "{path}" }}\n'
    entry += f'wheels = [{{ filename = "{BASE.file_name}" }}]\n'
    with RangeServer(dict(FILES)) as server:
        run = stack(wheelproof, server, project, uv_lock(entry, names="base"), "--platform", "aarch64")
    assert run.status == 3
    assert "its path is outside the tree of the lock" in failures(run)["STK113"]["message"]


def test_a_lock_without_addresses_is_read_from_the_index(wheelproof: Wheelproof, tmp_path: Path) -> None:
    lock = (
        '[[package]]\nname = "base"\nversion = "1.0"\noptional = false\npython-versions = "*"\ngroups = ["main"]\n'
        f'files = [{{file = "{BASE.file_name}", hash = "sha256:{digest(BASE)}"}}]\n'
        '[metadata]\nlock-version = "2.1"\npython-versions = ">=3.11"\ncontent-hash = "0"\n'
    )
    with RangeServer(dict(FILES)) as server:
        run = stack(wheelproof, server, tmp_path, lock, "--platform", "aarch64", name="poetry.lock")
        count = len(server.requests)
        again = stack(wheelproof, server, tmp_path, lock, "--platform", "aarch64", name="poetry.lock")
        assert len(server.requests) == count  # its index entries are kept
    assert (run.status, again.status, packages_of(run)["base"]["verdict"]) == (0, 0, "pass")


def test_both_machines_are_judged_without_a_platform(wheelproof: Wheelproof, tmp_path: Path) -> None:
    with RangeServer(dict(FILES)) as server:
        lock = uv_lock(package(server, "base", "1.0", wheels(server, BASE)), names="base")
        run = stack(wheelproof, server, tmp_path, lock)
    stacks = [s["id"] for s in json.loads(run.out)["subjects"] if s["kind"] == "stack"]
    assert stacks == ["uv.lock on cp312 x86_64", "uv.lock on cp312 aarch64"]


@pytest.mark.parametrize(
    ("text", "arguments", "status", "message"),
    [
        ("version = 9", [], 3, "version is 9\n  expected: 1 (uv.lock)"),
        (uv_lock(names=""), ["--extra", "gpu"], 2, "uv.lock has no extra 'gpu'"),
        (uv_lock(names=""), ["-r", "requirements.txt"], 2, "uv.lock is a lock file, and must be checked alone"),
        (uv_lock(names="torch").replace('"torch" }', '"torch", marker = "((" }'), [], 3, "cannot be evaluated"),
        (uv_lock(names="torch"), [], 3, "torch is required, but the lock has no entry for it"),
    ],
)
def test_what_cannot_be_judged_is_one_sentence(
    wheelproof: Wheelproof, tmp_path: Path, text: str, arguments: list[str], status: int, message: str
) -> None:
    with RangeServer(dict(FILES)) as server:
        run = stack(wheelproof, server, tmp_path, text, "--platform", "aarch64", *arguments)
    assert run.status == status
    assert message in run.out + run.err
    assert "Traceback" not in run.err
