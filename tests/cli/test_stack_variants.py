"""``wheelproof stack --gpu`` where a package has variants: the real uv resolves, each described machine chooses."""

from __future__ import annotations

import json
from pathlib import Path

from tests.conftest import Wheelproof
from tests.support.range_server import RangeServer
from tests.support.simple_index import simple_index
from tests.support.variant_index import make_release, variant_pages
from tests.support.wheels import WheelBuilder


def test_each_machine_has_its_own_stack_with_its_variant(tmp_path: Path, wheelproof: Wheelproof) -> None:
    app = WheelBuilder("app", "2.0").metadata(requires=["demo==1.0"])
    with RangeServer(simple_index(app) | variant_pages(make_release(tmp_path))) as server:
        run = wheelproof(
            "stack", "app", "--index-url", server.url("/simple"), "--python", "3.12", "--format", "json",
            "--gpu", "GB200,H100", "--driver", "580", "--gpu", "T4",
        )  # fmt: skip

    subjects = json.loads(run.out)["subjects"]
    stacks = {subject["id"]: subject["facts"] for subject in subjects if subject["kind"] == "stack"}
    assert {name: facts["gpus"] for name, facts in stacks.items()} == {
        "app on cp312 aarch64, GB200 (driver 580, aarch64)": ["GB200"],
        "app on cp312 x86_64, H100 (driver 580, x86_64)": ["H100"],
        "app on cp312 x86_64, T4 (driver 580, x86_64)": ["T4"],
    }
    assert {name: [row["cuda"] for row in facts["packages"]] for name, facts in stacks.items()} == {
        "app on cp312 aarch64, GB200 (driver 580, aarch64)": ["", "13.0"],
        "app on cp312 x86_64, H100 (driver 580, x86_64)": ["", "13.0"],
        "app on cp312 x86_64, T4 (driver 580, x86_64)": ["", ""],
    }
    shown = {s["id"]: s["facts"]["variant"] for s in subjects if s["kind"] == "machine"}
    assert shown == {
        "demo==1.0 on GB200 (driver 580, aarch64)": "cu130_arm",
        "demo==1.0 on H100 (driver 580, x86_64)": "cu130",
        "demo==1.0 on T4 (driver 580, x86_64)": "cpu",
    }
    shared = [s["id"] for s in subjects if s["id"].startswith("app-")]  # once, though two machines have it
    assert shared == ["app-2.0-py3-none-any.whl (cp312 aarch64)", "app-2.0-py3-none-any.whl (cp312 x86_64)"]


def test_without_variants_a_gpu_changes_nothing_but_the_platform(wheelproof: Wheelproof) -> None:
    with RangeServer(simple_index(WheelBuilder("app", "2.0"))) as server:
        run = wheelproof(
            "stack", "app", "--index-url", server.url("/simple"), "--python", "3.12", "--format", "json",
            "--gpu", "GB200",
        )  # fmt: skip

    (stack, package) = json.loads(run.out)["subjects"]
    assert stack["id"] == "app on cp312 aarch64"
    assert package["id"] == "app-2.0-py3-none-any.whl"


def test_variants_without_metadata_are_no_sound_stack(tmp_path: Path, wheelproof: Wheelproof) -> None:
    app = WheelBuilder("app", "2.0").metadata(requires=["demo==1.0"])
    pages = variant_pages(make_release(tmp_path), without="demo-1.0-variants.json")
    with RangeServer(simple_index(app) | pages) as server:
        run = wheelproof(
            "stack", "app", "--index-url", server.url("/simple"), "--python", "3.12", "--format", "json",
            "--gpu", "GB200,H100",
        )  # fmt: skip

    assert run.status == 1
    subjects = json.loads(run.out)["subjects"]
    outcomes = [
        (subject["kind"], result["rule"], result["outcome"])
        for subject in subjects
        for result in subject["results"]
        if result["rule"] in ("WHL811", "WHL851")
    ]
    assert outcomes == [*[("machine", "WHL851", "error")] * 2, ("variants-file", "WHL811", "fail")]
