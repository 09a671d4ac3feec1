"""``wheelproof verify`` of variant wheels, in folders and on an index, as a user runs it."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from variantlib.commands.generate_index_json import generate_index_json
from variantlib.commands.make_variant import _make_variant
from variantlib.models.variant import VariantProperty
from variantlib.pyproject_toml import VariantPyProjectToml

from tests.conftest import Run, Wheelproof
from tests.support.elf import Elf
from tests.support.fatbin import fat_binary, section
from tests.support.range_server import RangeServer, Resource
from tests.support.simple_index import simple_index
from tests.support.variants import PROVIDERS, VariantWheel, document, variant
from tests.support.wheels import WheelBuilder

CU13 = ["nvidia :: cuda_version_lower_bound :: 13.0", "nvidia :: sm_arch :: 100_real", "nvidia :: sm_arch :: 90_real"]
DOCUMENT = "demo-1.0-variants.json"
TAGS = "cp312-cp312-manylinux_2_28_x86_64"
MOST_REQUESTS, MOST_BYTES = 2, 50_000  # that variants may add to the verdict of a release


def cuda_wheel(
    label: str = "cu13", properties: Sequence[str] = CU13, *, soname: str = "libcudart.so.13"
) -> VariantWheel:
    """A variant with code for sm_90 and sm_100 that needs this CUDA runtime."""
    code = section(fat_binary("sm_90", "sm_100"))
    library = Elf(needed=(soname,), runpath="$ORIGIN/libs", contents={".nv_fatbin": code}).build().data
    wheel = variant(label, properties)
    wheel.add("demo/_C.so", library).add(f"demo/libs/{soname}", Elf(soname=soname).build().data)
    return wheel


def index(
    *wheels: WheelBuilder, made: Mapping[str, Any] | bytes | None, digest: str = ""
) -> dict[str, bytes | Resource]:
    """An index of these wheels and this document; None for an index without one."""
    files = simple_index(*wheels)
    if made is not None:
        page = files["/simple/demo/"]
        assert isinstance(page, Resource)
        link = f'<a href="../../files/{DOCUMENT}{f"#sha256={digest}" * bool(digest)}">{DOCUMENT}</a>'.encode()
        files["/simple/demo/"] = Resource(page.body + link, content_type="text/html")
        files[f"/files/{DOCUMENT}"] = made if isinstance(made, bytes) else json.dumps(made, indent=4).encode()
    return files


def verify(files: Mapping[str, bytes | Resource], wheelproof: Wheelproof, *arguments: str) -> Run:
    with RangeServer(files) as server:
        where = ("--index-url", server.url("/simple"), "--all-files", "--format", "json")
        return wheelproof("verify", "demo==1.0", *where, *arguments)


def failed(run: Run) -> dict[str, list[str]]:
    """The messages of what failed, by rule."""
    found: dict[str, list[str]] = {}
    for subject in json.loads(run.out)["subjects"]:
        for result in subject["results"]:
            if result["outcome"] != "pass" and result["outcome"] != "skip":
                found.setdefault(result["rule"], []).append(result["message"])
    return found


def test_sound_variants_on_an_index_pass(wheelproof: Wheelproof) -> None:
    plain = WheelBuilder("demo", "1.0", TAGS)
    files = index(cuda_wheel(), variant("null"), plain, made=document({"cu13": CU13, "null": []}))

    run = verify(files, wheelproof, "--depth", "gpu")

    assert failed(run) == {}
    assert run.status == 0
    subjects = {subject["id"]: subject for subject in json.loads(run.out)["subjects"]}
    assert subjects[f"demo-1.0-{TAGS}-cu13.whl"]["facts"]["variant"]["properties"] == CU13
    assert subjects[DOCUMENT]["headline"] == "2 variants, PEP 850, format 0.2.0, as variantlib 0.2.2 writes it"
    assert subjects[DOCUMENT]["facts"]["labels"] == {"cu13": CU13, "null": []}


def test_false_claims_are_found_with_evidence(wheelproof: Wheelproof) -> None:
    claims = [CU13[0], "nvidia :: sm_arch :: 100_real", "nvidia :: sm_arch :: 120_real"]
    wheel = cuda_wheel("cu13", claims, soname="libcudart.so.12")

    run = verify(index(wheel, made=document({"cu13": claims})), wheelproof, "--depth", "gpu")

    assert run.status == 1
    assert failed(run) == {
        "WHL821": ["the variant claims CUDA 13.0 or later, but contains CUDA 12 (demo/_C.so needs libcudart.so.12)"],
        "WHL822": [
            "the variant claims 120_real, but demo/_C.so has sm_90, sm_100",
            "the wheel has code for sm_90, which the variant does not claim: installers do not select it for those "
            "GPUs",
        ],
    }


def test_a_release_of_many_variants_costs_one_request_more_than_its_wheels(wheelproof: Wheelproof) -> None:
    labels = [f"cu13_{number}" for number in range(8)]
    listed = {label: [*CU13, f"x86_64 :: level :: v{label[-1]}"] for label in labels}
    listed |= {f"other_{number}": [*CU13, f"blas :: library :: b{number}"] for number in range(60)}
    wheels = [variant(label, listed[label]) for label in labels]
    plain = [variant(label, listed[label]) for label in labels]
    for number, wheel in enumerate(plain):  # the same members, and no label
        wheel.label, wheel.tags = "", f"cp3{number}-cp3{number}-manylinux_2_28_x86_64"

    with_variants = json.loads(verify(index(*wheels, made=document(listed)), wheelproof).out)["summary"]
    without = json.loads(verify(index(*plain, made=None), wheelproof).out)["summary"]

    assert with_variants["requests"] - without["requests"] <= MOST_REQUESTS
    assert with_variants["bytes_read"] - without["bytes_read"] <= MOST_BYTES


@pytest.mark.parametrize(
    ("made", "digest", "shown"),
    [
        (None, "", f"does not list {DOCUMENT}"),
        (b"<html>404</html>", "", f"{DOCUMENT} is not valid JSON: Expecting value"),
        (b"[" * 200_000, "", f"{DOCUMENT} is nested too deeply to be read; expected an object of five levels"),
        (b" " * 5_000_000, "", f"{DOCUMENT} is too large; expected at most 4,194,304 bytes"),
        (
            document({f"v{number}": CU13[:1] for number in range(10_000)}),
            "",
            f"{DOCUMENT} lists 10,000 variants; expected at most 5,000",
        ),
        (document({"cu13": CU13}), "ab" * 32, f"{DOCUMENT} has the SHA-256"),
    ],
    ids=["missing", "html", "deep", "large", "ten-thousand", "changed"],
)
def test_a_document_that_cannot_be_read_is_one_sentence(
    wheelproof: Wheelproof, made: Mapping[str, Any] | bytes | None, digest: str, shown: str
) -> None:
    run = verify(index(cuda_wheel(), made=made, digest=digest), wheelproof)

    assert run.status == 1
    (message,) = failed(run)["WHL811"]
    assert shown in message


def test_a_wheel_and_its_index_that_contradict_each_other(wheelproof: Wheelproof) -> None:
    files = index(cuda_wheel(), made=document({"cu13": CU13[:1], "cu126": CU13[:1]}))

    found = failed(verify(files, wheelproof))

    assert found["WHL806"] == [f"{DOCUMENT} and the wheel disagree about the properties of 'cu13'"]
    assert found["WHL812"] == [f"{DOCUMENT} lists 'cu126', but has no wheel for it"]
    assert found["WHL813"] == [f"{DOCUMENT} states the same properties for 'cu13, cu126'"]


def test_libraries_that_were_not_read_are_not_reported_as_for_the_cpu(wheelproof: Wheelproof) -> None:
    level = ["x86_64 :: level :: v2"]
    wheel = variant("cpu", level).add("demo/_C.so", Elf(isa_needed=1 << 2).build().data)
    files = index(wheel, made=document({"cpu": level}))

    shown = {}
    for depth in ("quick", "links"):
        run = verify(files, wheelproof, "--depth", depth, "--select", "WHL823")
        shown[depth] = [result for s in json.loads(run.out)["subjects"] for result in s["results"]]

    (quick,), (links,) = shown["quick"], shown["links"]
    assert (quick["outcome"], "--depth links" in quick["message"]) == ("skip", True)
    assert (links["outcome"], "needs x86-64-v3" in links["message"]) == ("fail", True)


def test_selected_rules_are_those_that_run(wheelproof: Wheelproof) -> None:
    files = index(cuda_wheel(soname="libcudart.so.12"), made=None)

    run = verify(files, wheelproof, "--select", "WHL806", "--depth", "links")

    assert set(failed(run)) == {"WHL806"}


def test_what_the_reference_tool_makes_is_sound(tmp_path: Path, wheelproof: Wheelproof) -> None:
    project = {
        "variant": {
            "default-priorities": {"namespace": ["nvidia", "x86_64"]},
            "providers": {name: PROVIDERS[name] for name in ("nvidia", "x86_64")},
        }
    }
    folder = tmp_path / "variants"
    folder.mkdir()
    library = Elf(needed=("libcudart.so.13",), contents={".nv_fatbin": section(fat_binary("sm_90", "sm_100"))}).build()
    cuda = WheelBuilder("demo", "1.0", TAGS).add("demo/_C.so", library.data).write(tmp_path)
    (tmp_path / "cpu").mkdir()
    cpu = WheelBuilder("demo", "1.0", TAGS).add("demo/_C.so", Elf().build().data).write(tmp_path / "cpu")
    for properties in ([*CU13, "x86_64 :: level :: v3"], CU13, []):
        _make_variant(
            cuda if properties else cpu,
            folder,
            is_null_variant=not properties,
            properties=[VariantProperty.from_str(text) for text in properties],
            validate_properties=False,
            variant_info=VariantPyProjectToml(project),
        )
    generate_index_json(["-d", str(folder)])

    run = wheelproof(
        "verify", str(folder), "--format", "json", "--ignore", "WHL824", "--depth", "gpu", "--ignore", "WHL5"
    )

    assert failed(run) == {}
    kinds = [subject["kind"] for subject in json.loads(run.out)["subjects"]]
    assert kinds == ["wheel", "wheel", "wheel", "variants-file"]
    assert all("variant.json" in zipfile.ZipFile(path).namelist()[-2] for path in folder.glob("*.whl"))
