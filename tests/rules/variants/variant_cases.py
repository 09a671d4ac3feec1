"""WHL801 to WHL824: variant wheels, their index's statements, and whether they fulfil their claims."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.rules.case import NOTE, WARNING, Case
from tests.support.elf import AARCH64, X86_64, Elf
from tests.support.fatbin import fat_binary, section
from tests.support.variants import VariantWheel, document, variant
from tests.support.wheel_facts import facts_of
from tests.support.wheels import torch_like
from wheel_checks.facts.gpu.targets import parse_gpus
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.facts.wheel.variant import VariantIndex
from wheel_checks.formats.wheel.variant_metadata import parse_variant_metadata
from wheel_checks.model import Unavailable

MEMBER = "demo-1.0.dist-info/variant.json"
INDEX = "https://index.example.org/simple"
DOCUMENT = "demo-1.0-variants.json"
CU13 = "nvidia :: cuda_version_lower_bound :: 13.0"
CU126 = "nvidia :: cuda_version_lower_bound :: 12.6"
BELOW_13 = "nvidia :: cuda_version_upper_bound :: 13"
SM_90, SM_100 = "nvidia :: sm_arch :: 90_real", "nvidia :: sm_arch :: 100_real"
LEVEL_3 = "x86_64 :: level :: v3"


def named(file_name: str) -> WheelFacts:
    """The variant "cu13" in a file of another name."""
    return facts_of(variant("cu13", [CU13]).build(), file_name)


def described(label: str, content: Mapping[str, Any] | bytes) -> WheelFacts:
    """A wheel of this label with exactly this variant.json."""
    return facts_of(variant(label, described=content))


def beside(wheel: VariantWheel, made: Mapping[str, Any] | None) -> WheelFacts:
    """A variant wheel as an index with this document shows it; None for an index without a document."""
    return facts_of(wheel, read_variants=lambda: index(made))


def index(made: Mapping[str, Any] | bytes | None, **wheels: int) -> VariantIndex:
    """An index with this document, and so many wheels of each label ("plain" for those without)."""
    by_label = {
        "" if label == "plain" else label: tuple(f"demo-1.0-{label}{number}.whl" for number in range(count))
        for label, count in wheels.items()
    }
    if made is None:
        return VariantIndex(DOCUMENT, INDEX, Unavailable(f"{INDEX} lists no {DOCUMENT}"), listed=False, wheels=by_label)
    if isinstance(made, bytes):
        return VariantIndex(DOCUMENT, INDEX, Unavailable(f"{DOCUMENT} is not valid JSON"), listed=True, wheels=by_label)
    metadata = parse_variant_metadata(json.dumps(made).encode(), DOCUMENT)
    return VariantIndex(DOCUMENT, INDEX, metadata, listed=True, wheels=by_label)


def library(*labels: str, needed: Sequence[str] = (), machine: int = X86_64) -> bytes:
    """A library with GPU code for these targets that needs these libraries."""
    contents = {".nv_fatbin": section(fat_binary(*labels))} if labels else {}
    return Elf(machine=machine, needed=tuple(needed), contents=contents).build().data


def holding(
    properties: Sequence[str], *labels: str, needed: Sequence[str] = (), machine: int = X86_64, depth: Depth = Depth.GPU
) -> WheelFacts:
    """A variant that claims these properties and has one library."""
    wheel = variant("claimed", properties)
    wheel.add("demo/_C.so", library(*labels, needed=needed, machine=machine))
    return facts_of(wheel, depth=depth)


def marked(level: int, properties: Sequence[str]) -> WheelFacts:
    """A variant with a library that the linker marked to need this level of x86-64."""
    wheel = variant("claimed", properties).add("demo/_C.so", Elf(isa_needed=1 << (level - 1)).build().data)
    return facts_of(wheel, depth=Depth.LINKS)


def torch_variant(accelerator: str, *properties: str) -> WheelFacts:
    """A torch 2.11.0 for this accelerator (CUDA 13.0) that claims these properties."""
    wheel = torch_like(accelerator, "2.11.0", "x86_64")
    wheel.dist_info_file("variant.json", json.dumps(document({"claimed": properties})))
    return facts_of(wheel.build(), wheel.file_name.removesuffix(".whl") + "-claimed.whl")


CASES = [
    Case(
        "WHL601",
        "a variant without code for a GPU that it claims, and for one that it does not claim",
        lambda: holding([CU13, SM_90], "sm_100"),
        ("no code for H100 (9.0) in demo/_C.so, which has sm_100",),
        member="demo/_C.so",
        expectations={"gpus": parse_gpus("T4,H100")},
    ),
    Case(
        "WHL601",
        "a variant without code for a GPU that does not get it",
        lambda: holding([CU13, SM_100], "sm_100"),
        expectations={"gpus": parse_gpus("T4,GB200,GB300")},
    ),
    Case(
        "WHL801",
        "a label in capitals",
        lambda: named("demo-1.0-cp312-cp312-manylinux_2_28_x86_64-CU13.whl"),
        ("the variant label is 'CU13'; it must match [0-9a-z._]+",),
    ),
    Case(
        "WHL801",
        "a label of 300 characters",
        lambda: named(f"demo-1.0-cp312-cp312-manylinux_2_28_x86_64-{'x' * 300}.whl"),
        ("the file name has 347 bytes, 300 of them in the label; the limit of file systems is 255",),
    ),
    Case(
        "WHL801",
        "a label of 200 characters, and a build tag",
        lambda: named(f"demo-1.0-1-cp312-cp312-manylinux_2_28_x86_64-cu13.0_{'x' * 193}.whl"),
    ),
    Case(
        "WHL802",
        "no variant.json",
        lambda: described("cu13", b""),
        (f"the wheel has no {MEMBER}",),
        member=MEMBER,
    ),
    Case(
        "WHL802",
        "a variant.json that ends in the middle",
        lambda: described("cu13", b'{"variants": '),
        (
            f"{MEMBER} cannot be read: variant.json is not valid JSON: Expecting value: line 1 column 14 (char 13); "
            "expected variant metadata (PEP 825)",
        ),
    ),
    Case(
        "WHL802",
        "a revision that no one knows yet",
        lambda: described("cu13", document({"cu13": [CU13]}, schema="https://example.org/v9.json", more=1)),
        (
            "$schema is 'https://example.org/v9.json', an unknown revision; known are "
            "https://variants-schema.wheelnext.dev/v0.2.0.json, "
            "https://variants-schema.wheelnext.dev/peps/850/v0.2.0.json, "
            "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json, "
            "https://variants-schema.wheelnext.dev/peps/825/v0.1.0.json, "
            "https://variants-schema.wheelnext.dev/v0.0.3.json",
        ),
    ),
    Case(
        "WHL802",
        "a variant.json in a wheel without label",
        lambda: named("demo-1.0-cp312-cp312-manylinux_2_28_x86_64.whl"),
        (f"the wheel has {MEMBER}, but no variant label in its name: installers do not read it",),
        WARNING,
    ),
    Case("WHL802", "a null variant", lambda: facts_of(variant("null"))),
    Case(
        "WHL803",
        "a wheel that was renamed",
        lambda: named("demo-1.0-cp312-cp312-manylinux_2_28_x86_64-cu14.whl"),
        ("the label in the file name is 'cu14', but variant.json has 'cu13'",),
        evidence=("cu14", "'cu13'"),
    ),
    Case(
        "WHL803",
        "the document of the index in the wheel",
        lambda: described("cu13", document({"cu13": [CU13], "null": []})),
        ("variant.json describes 2 variants; expected only the wheel's own",),
    ),
    Case("WHL803", "its own label alone", lambda: facts_of(variant("cu13", [CU13]))),
    Case(
        "WHL804",
        "a value with a dash",
        lambda: facts_of(variant("sm_90", ["nvidia :: sm_arch :: 90-real"])),
        ("variants.'sm_90'.nvidia.'sm_arch': the value '90-real' does not match [a-z0-9_.]+",),
        member=MEMBER,
    ),
    Case(
        "WHL804",
        "values that are not sorted",
        lambda: facts_of(variant("gpus", [SM_90, SM_100])),
        ("variants.'gpus'.nvidia.'sm_arch' is '90_real, 100_real'; the values must be sorted",),
        WARNING,
    ),
    Case(
        "WHL804",
        "no properties under its own label",
        lambda: facts_of(variant("cpu")),
        ("variants.'cpu' has no properties; only the label 'null' may have none",),
    ),
    Case("WHL804", "sorted values", lambda: facts_of(variant("gpus", [SM_100, SM_90]))),
    Case(
        "WHL805",
        "a namespace without priority and provider",
        lambda: described("cu13", document({"cu13": [CU13]}, namespaces=["x86_64"])),
        (
            "default-priorities.namespace does not list 'nvidia', which variants use",
            "'nvidia' has no provider, so nothing can evaluate it",
        ),
    ),
    Case(
        "WHL805",
        "a provider that needs nothing to be installed, and has no list",
        lambda: described("cu13", document({"cu13": [CU13]}, providers={"nvidia": {"requires": []}})),
        ("providers.'nvidia' has none of them; expected exactly one of requires, static-properties, builtin",),
    ),
    Case(
        "WHL805",
        "a revision without providers",
        lambda: described(
            "cu13",
            document(
                {"cu13": [CU13]},
                providers=None,
                schema="https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
            ),
        ),
    ),
    Case(
        "WHL806",
        "an index without a document",
        lambda: beside(variant("cu13", [CU13]), None),
        (f"{INDEX} lists no {DOCUMENT}: installers skip the variant",),
    ),
    Case(
        "WHL806",
        "an index that lacks the label",
        lambda: beside(variant("cu13", [CU13]), document({"cu126": [CU126]})),
        (f"{DOCUMENT} does not list 'cu13'",),
        evidence=("'cu126'",),
    ),
    Case(
        "WHL806",
        "an index that claims another GPU",
        lambda: beside(variant("cu13", [CU13, SM_90]), document({"cu13": [CU13, SM_100]})),
        (f"{DOCUMENT} and the wheel disagree about the properties of 'cu13'",),
        evidence=(SM_90, SM_100),
    ),
    Case(
        "WHL806",
        "an index that orders the namespaces differently, and asks another provider",
        lambda: beside(
            variant("cu13", [CU13, LEVEL_3]),
            document(
                {"cu13": [CU13, LEVEL_3]},
                namespaces=["x86_64", "nvidia"],
                providers={"nvidia": {"builtin": "nvidia"}, "x86_64": {"requires": ["provider-variant-x86-64>=0.0.1"]}},
            ),
        ),
        (
            f"{DOCUMENT} and the wheel order the namespaces differently",
            f"{DOCUMENT} and the wheel state different providers of nvidia",
        ),
    ),
    Case(
        "WHL806",
        "an index with more variants and a longer list of namespaces",
        lambda: beside(
            variant("cu13", [CU13]),
            document({"cu13": [CU13], "v3": [LEVEL_3], "null": []}, namespaces=["nvidia", "x86_64"]),
        ),
    ),
    Case(
        "WHL811",
        "an index without a document",
        lambda: index(None, cu13=1),
        (f"{INDEX} lists no {DOCUMENT}",),
        evidence=(INDEX,),
    ),
    Case("WHL811", "a document that is not JSON", lambda: index(b"<html>"), (f"{DOCUMENT} is not valid JSON",)),
    Case(
        "WHL811",
        "a document without providers",
        lambda: index(document({"cu13": [CU13]}, providers=None)),
        ("'nvidia' has no provider, so nothing can evaluate it",),
    ),
    Case("WHL811", "a sound document", lambda: index(document({"cu13": [CU13], "null": []}), cu13=1)),
    Case(
        "WHL812",
        "two wheels that the document lacks",
        lambda: index(document({"null": []}), cu13=2, null=1, plain=1),
        (f"{DOCUMENT} does not list 'cu13': installers skip demo-1.0-cu130.whl, demo-1.0-cu131.whl",),
    ),
    Case(
        "WHL812",
        "labels without a wheel",
        lambda: index(document({"cu13": [CU13], "cu126": [CU126], "null": []}), null=1),
        (f"{DOCUMENT} lists 'cu13, cu126', but has no wheel for it",),
        WARNING,
    ),
    Case("WHL812", "a wheel for each label", lambda: index(document({"cu13": [CU13], "null": []}), cu13=2, null=1)),
    Case(
        "WHL813",
        "two labels for one thing",
        lambda: index(document({"cu13": [CU13], "cuda13": [CU13], "cu126": [CU126]})),
        (f"{DOCUMENT} states the same properties for 'cu13, cuda13'",),
        evidence=(CU13,),
    ),
    Case("WHL813", "one property more", lambda: index(document({"a": [CU13], "b": [CU13, SM_90], "null": []}))),
    Case(
        "WHL821",
        "CUDA 13 is claimed, and CUDA 12 needed",
        lambda: holding([CU13], needed=["libcudart.so.12", "libc.so.6"]),
        ("the variant claims CUDA 13.0 or later, but contains CUDA 12 (demo/_C.so needs libcudart.so.12)",),
        member=MEMBER,
        evidence=("CUDA 12: libcudart.so.12",),
    ),
    Case(
        "WHL821",
        "CUDA 12 is claimed, and version.py says 13.0",
        lambda: torch_variant("cuda", CU126, BELOW_13),
        ("the variant claims CUDA 12.6 or later, below CUDA 13, but contains CUDA 13.0 (version.py)",),
    ),
    Case(
        "WHL821",
        "CUDA 13 is claimed, and the requirements bring CUDA 12",
        lambda: facts_of(variant("cu13", [CU13]).metadata(requires=["nvidia-cuda-runtime-cu12==12.8.90"])),
        ("the variant claims CUDA 13.0 or later, but contains CUDA 12.8 (requirements)",),
    ),
    Case(
        "WHL821",
        "only an upper bound, which the content exceeds",
        lambda: holding([BELOW_13], needed=["libnvrtc.so.13"]),
        ("the variant claims below CUDA 13, but contains CUDA 13 (demo/_C.so needs libnvrtc.so.13)",),
    ),
    Case(
        "WHL821",
        "a CPU build",
        lambda: torch_variant("cpu", CU13),
        ("the variant claims CUDA 13.0 or later, but the wheel is CPU only",),
    ),
    Case(
        "WHL821",
        "a bound that is not a version",
        lambda: holding(["nvidia :: cuda_version_lower_bound :: thirteen"]),
        ("nvidia :: cuda_version_lower_bound :: thirteen is not a CUDA version",),
    ),
    Case(
        "WHL821",
        "a CUDA build that claims nothing of it",
        lambda: torch_variant("cuda", LEVEL_3),
        ("the wheel is CUDA 13.0, but claims no property of nvidia: machines without a GPU get it, too",),
        WARNING,
    ),
    Case(
        "WHL821",
        "a name with a number that is not a version of CUDA",
        lambda: holding([CU13], needed=[f"libcudart.so.{'9' * 5_000}", "libcublas.so.13"]),
    ),
    Case("WHL821", "CUDA 13.0 for CUDA 13", lambda: torch_variant("cuda", CU13)),
    Case("WHL821", "CUDA 12 for 12.6 and above", lambda: holding([CU126, BELOW_13], needed=["libcudart.so.12"])),
    Case("WHL821", "a CPU build that claims nothing of CUDA", lambda: torch_variant("cpu", LEVEL_3)),
    Case(
        "WHL822",
        "sm_100 is claimed, and the code stops at sm_90",
        lambda: holding([SM_100, SM_90], "sm_90"),
        ("the variant claims 100_real, but demo/_C.so has sm_90",),
        member="demo/_C.so",
        evidence=("nothing runs on sm_100 (10.0): sm_90: machine code for another major version",),
    ),
    Case(
        "WHL822",
        "PTX is claimed, and there is machine code alone",
        lambda: holding(["nvidia :: sm_arch :: 90_virtual"], "sm_90"),
        ("the variant claims 90_virtual, but demo/_C.so has sm_90",),
        evidence=("no GPU code can run on sm_90 (9.0)",),
    ),
    Case(
        "WHL822",
        "machine code is claimed, and there is PTX alone",
        lambda: holding([SM_90], "compute_90"),
        ("the variant claims 90_real, but demo/_C.so has compute_90",),
    ),
    Case(
        "WHL822",
        "no GPU code at all",
        lambda: holding([SM_90]),
        ("the variant claims 90_real, but contains no GPU code",),
        WARNING,
    ),
    Case(
        "WHL822",
        "a value that is no GPU",
        lambda: holding(["nvidia :: sm_arch :: hopper"], "sm_90"),
        ("nvidia :: sm_arch :: hopper is not a GPU architecture; expected for example 90_real or 90_virtual",),
    ),
    Case(
        "WHL822",
        "code for a GPU that is not claimed",
        lambda: holding([SM_90], "sm_75", "sm_90"),
        ("the wheel has code for sm_75, which the variant does not claim: installers do not select it for those GPUs",),
        NOTE,
        evidence=("sm_75, sm_90",),
    ),
    Case(
        "WHL822",
        "machine code of the same major version, and PTX for all later GPUs",
        lambda: holding(
            ["nvidia :: sm_arch :: 86_real", "nvidia :: sm_arch :: 90_virtual", SM_100],
            "sm_80",
            "sm_90",
            "sm_100",
            "compute_90",
        ),
    ),
    Case(
        "WHL823",
        "properties of x86_64 in a wheel for aarch64",
        lambda: facts_of(variant("v3", [LEVEL_3], tags="cp312-cp312-manylinux_2_28_aarch64")),
        ("the variant claims properties of x86_64, but the wheel is for aarch64",),
        evidence=("manylinux_2_28_aarch64",),
    ),
    Case(
        "WHL823",
        "a library for aarch64",
        lambda: holding([LEVEL_3], machine=AARCH64, depth=Depth.LINKS),
        ("the variant claims properties of x86_64, but demo/_C.so is for aarch64",),
        member="demo/_C.so",
    ),
    Case(
        "WHL823",
        "properties of both",
        lambda: facts_of(variant("both", [LEVEL_3, "aarch64 :: version :: 8.1a"])),
        ("the variant claims properties of x86_64 and aarch64 together: no machine has both",),
    ),
    Case(
        "WHL823",
        "a library that is marked for a higher level than is claimed",
        lambda: marked(3, ["x86_64 :: level :: v2", "x86_64 :: level :: v3"]),
        ("the variant is for x86-64-v2 and above, but demo/_C.so needs x86-64-v3",),
        member="demo/_C.so",
    ),
    Case(
        "WHL823",
        "a library that is marked, and no level claimed",
        lambda: marked(2, [CU13]),
        ("the variant is for x86-64-v1 and above, but demo/_C.so needs x86-64-v2",),
    ),
    Case("WHL823", "a library that is marked for the level that is claimed", lambda: marked(3, [LEVEL_3])),
    Case("WHL824", "a level that the linker marked", lambda: marked(3, [LEVEL_3])),
    Case("WHL823", "a library for x86_64", lambda: holding([LEVEL_3], depth=Depth.LINKS)),
    Case("WHL823", "a pure wheel", lambda: facts_of(variant("v3", [LEVEL_3], tags="py3-none-any"))),
    Case(
        "WHL824",
        "a namespace that we do not know, and the level of a CPU",
        lambda: facts_of(variant("v3", ["blas :: library :: mkl", CU13, LEVEL_3])),
        (
            "the namespace blas is unknown: only its provider can interpret its properties",
            "nothing in the wheel shows x86_64 :: level :: v3: machine code is not disassembled",
        ),
        NOTE,
        evidence=("blas :: library :: mkl",),
    ),
    Case("WHL824", "CUDA and GPUs", lambda: facts_of(variant("cu13", [CU13, SM_90]))),
]
