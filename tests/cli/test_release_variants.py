"""``wheelproof release`` on the five variants: a column for each label, and the machines that are promised."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run, Wheelproof
from tests.support.range_server import RangeServer
from tests.support.releases import expectation_text
from tests.support.variant_index import make_release, variant_pages
from wheel_checks.answers.questions import OF_A_MANYLINUX_TAG, OF_LIBRARIES, OF_THE_STABLE_ABI

X86, ARM, ANY = (["manylinux_2_28_x86_64"], ["manylinux_2_28_aarch64"], ["any"])
COLUMNS: dict[str, dict[str, Any]] = {
    "cu126": {"variant": "cu126", "tags": X86, "accelerator": "cuda==12.0"},
    "cu130": {"variant": "cu130", "tags": X86, "accelerator": "cuda==13.0"},
    "cu130-arm": {"variant": "cu130_arm", "tags": ARM, "accelerator": "cuda==13.0"},
    "cpu": {"variant": "cpu", "tags": X86},
    "null": {"variant": "null", "tags": ANY},
    "plain": {"tags": ANY},
}
JUDGED = ",".join(("REL", *OF_A_MANYLINUX_TAG, *OF_LIBRARIES, *OF_THE_STABLE_ABI))
SERVED = """
[[machine]]
gpus = ["GH200", "GB200", "H100"]
[[machine]]
gpus = ["H100"]
drivers = ["535"]
variant = "cu126"
"""


def release(wheelproof: Wheelproof, folder: Path, target: str, machines: str, *arguments: str) -> Run:
    """The release judged by the six columns and these machines; METADATA differs among variants."""
    path = folder / "demo.toml"
    path.write_text(expectation_text(COLUMNS, machines, same_metadata="none", resolve=False))
    return wheelproof("release", target, "--expect", str(path), "--select", JUDGED, *arguments)


def test_a_release_that_keeps_its_promises_ships(tmp_path: Path, wheelproof: Wheelproof) -> None:
    run = release(wheelproof, tmp_path, str(make_release(tmp_path)), SERVED, "--format", "json")

    assert run.status == 0, run.out
    whole = json.loads(run.out)["subjects"][0]["facts"]
    assert {cell["platform"]: len(cell["files"]) for cell in whole["cells"]} == dict.fromkeys(COLUMNS, 1)
    assert [machine["variant"] for machine in whole["machines"]] == ["cu130_arm", "cu130_arm", "cu130", "cu126"]


def test_a_machine_that_falls_through_stops_it(tmp_path: Path, wheelproof: Wheelproof) -> None:
    run = release(wheelproof, tmp_path, str(make_release(tmp_path)), '[[machine]]\ngpus = ["T4"]\n')

    assert run.status == 1
    assert "REL112  T4 (driver 580, x86_64) gets the variant cpu" in run.out


@pytest.mark.parametrize("label", ["cu126", "cu130_arm"])
def test_a_variant_that_is_missing_is_an_empty_column(tmp_path: Path, wheelproof: Wheelproof, label: str) -> None:
    folder = make_release(tmp_path)
    next(folder.glob(f"*-{label}.whl")).unlink()

    run = release(wheelproof, tmp_path, str(folder), SERVED)

    assert run.status == 1
    assert f"{label.replace('_', '-')} has no files for Python 3.12" in run.out
    assert "REL112" in run.out


def test_on_an_index_the_metadata_of_the_index_decides(tmp_path: Path, wheelproof: Wheelproof) -> None:
    folder = make_release(tmp_path)
    path = folder / "demo-1.0-variants.json"
    stale = json.loads(path.read_text())
    del stale["variants"]["cu130_arm"]
    path.write_text(json.dumps(stale))

    with RangeServer(variant_pages(folder)) as server:
        run = release(wheelproof, tmp_path, "demo==1.0", SERVED, "--index-url", server.url("/simple"))

    assert run.status == 1
    assert "GB200 (driver 580, aarch64) gets the variant null" in run.out


@pytest.mark.parametrize(
    ("document", "shown"),
    [(b"<html>404</html>", "is not valid JSON"), (None, "does not list demo-1.0-variants.json")],
    ids=["broken", "missing"],
)
def test_metadata_of_the_index_that_cannot_be_read_is_no_promise_kept(
    tmp_path: Path, wheelproof: Wheelproof, document: bytes | None, shown: str
) -> None:
    """The wheels describe themselves well; no installer reads them before it has chosen."""
    folder = make_release(tmp_path)
    path = folder / "demo-1.0-variants.json"
    path.write_bytes(document or b"")

    with RangeServer(variant_pages(folder, without="" if document else path.name)) as server:
        where = ("--index-url", server.url("/simple"), "--format", "json")
        promised = release(
            wheelproof, tmp_path, "demo==1.0", SERVED.partition('[[machine]]\ngpus = ["H100"]')[0], *where
        )
        judged = release(wheelproof, tmp_path, "demo==1.0", "", *where, "--select", "WHL811")

    assert promised.status == 3
    (undecided, *_) = [r for r in json.loads(promised.out)["subjects"][0]["results"] if r["outcome"] == "error"]
    assert (undecided["rule"], shown in undecided["message"]) == ("REL112", True)
    assert judged.status == 1
    (document_of,) = [each for each in json.loads(judged.out)["subjects"] if each["kind"] == "variants-file"]
    assert [result["rule"] for result in document_of["results"]] == ["WHL811"]


def test_a_broken_document_in_a_folder_is_no_promise_kept(tmp_path: Path, wheelproof: Wheelproof) -> None:
    folder = make_release(tmp_path)
    (folder / "demo-1.0-variants.json").write_text("{")

    run = release(wheelproof, tmp_path, str(folder), SERVED, "--select", "WHL811")

    assert run.status == 1
    assert "WHL811" in run.out
    assert "WHL811  demo-1.0-variants.json is not valid JSON" in run.out
    assert "gets no variant; expected cu126" in run.out


def test_what_is_expected_cannot_be_judged_without_metadata(tmp_path: Path, wheelproof: Wheelproof) -> None:
    """The machine that must get cu126 fails, although the other one cannot be judged."""
    folder = make_release(tmp_path)
    (folder / "demo-1.0-variants.json").write_text("{")

    run = release(wheelproof, tmp_path, str(folder), SERVED, "--format", "json")

    results = [r for r in json.loads(run.out)["subjects"][0]["results"] if r["rule"] == "REL112"]
    assert sorted(result["outcome"] for result in results) == ["error", "error", "error", "fail"]
    (failed,) = [result for result in results if result["outcome"] == "fail"]
    assert "demo-1.0-variants.json is not valid JSON" in failed["evidence"][0]["value"]
