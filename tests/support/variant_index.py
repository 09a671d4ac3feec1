"""A local index of one small package in five variants and one plain wheel, made with the reference tool.

make_release(tmp_path)                      # the folder: six wheels and demo-1.0-variants.json
variant_pages(folder)                       # the same as an index for RangeServer
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from variantlib.commands.generate_index_json import generate_index_json
from variantlib.commands.make_variant import make_variant

from tests.support.elf import AARCH64, X86_64, Elf
from tests.support.fatbin import fat_binary, section
from tests.support.range_server import Resource
from tests.support.wheels import WheelBuilder

PYPROJECT = """\
[variant.default-priorities]
namespace = ["nvidia", "aarch64", "x86_64"]

[variant.providers.nvidia]
requires = ["nvidia-variant-provider>=0.0.1"]
plugin-api = "nvidia_variant_provider.plugin:NvidiaVariantPlugin"

[variant.providers.x86_64]
requires = ["provider-variant-x86-64"]

[variant.providers.aarch64]
requires = ["provider-variant-aarch64"]
"""


@dataclass(frozen=True)
class Made:
    """One variant: its label, its claims, its platform, and the GPU code and libraries of its one ELF file."""

    label: str
    properties: tuple[str, ...] = ()
    machine: str = "x86_64"
    code: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    requires: tuple[str, ...] = field(default=())

    @property
    def tags(self) -> str:
        """The null variant is for every machine."""
        return f"cp312-cp312-manylinux_2_28_{self.machine}" if self.properties else "py3-none-any"


def cuda(label: str, lower: str, *sms: int, machine: str = "x86_64", upper: str = "") -> Made:
    """A variant for CUDA from ``lower`` on with machine code for these capabilities, and all that it claims."""
    major = lower.partition(".")[0]
    bounds = [f"nvidia :: cuda_version_lower_bound :: {lower}"]
    bounds += [f"nvidia :: cuda_version_upper_bound :: {upper}"] if upper else []
    return Made(
        label,
        (*bounds, *(f"nvidia :: sm_arch :: {sm}_real" for sm in sms)),
        machine,
        tuple(f"sm_{sm}" for sm in sms),
        (f"libcudart.so.{major}",),
        (f"nvidia-cuda-runtime-cu12=={lower}.*" if major == "12" else f"nvidia-cuda-runtime=={lower}.*",),
    )


CPU = Made("cpu", ("x86_64 :: level :: v3",))
NULL = Made("null")
CU126 = cuda("cu126", "12.0", 80, 90, upper="13")
CU130 = cuda("cu130", "13.0", 90, 100, 120)
CU130_ARM = cuda("cu130_arm", "13.0", 90, 100, machine="aarch64")
FIVE = (CPU, NULL, CU126, CU130, CU130_ARM)


def make_release(folder: Path, *made: Made, plain: bool = True, version: str = "1.0") -> Path:
    """A folder below ``folder`` with the wheels of these variants (default: the five) and the metadata of the index.

    With ``plain`` a wheel without a label is next to them, which installers of today take.
    """
    release, raw = folder / "release", folder / "raw"
    release.mkdir(exist_ok=True)
    raw.mkdir(exist_ok=True)
    pyproject = folder / "pyproject.toml"
    pyproject.write_text(PYPROJECT)
    for each in made or FIVE:
        path = _wheel(each, version).write(raw)
        kind = ["--null-variant"] if not each.properties else ["--variant-label", each.label, "-p", *each.properties]
        make_variant(
            [f"--file={path}", f"--output-directory={release}", f"--pyproject-toml={pyproject}",
             "--skip-plugin-validation", *kind]
        )  # fmt: skip
    if plain:
        _wheel(NULL, version).write(release)
    generate_index_json(["-d", str(release)])
    return release


def variant_pages(release: Path, *, without: str = "") -> dict[str, bytes | Resource]:
    """The folder as a simple index (PEP 503), for :class:`RangeServer`; ``without`` names a file to omit."""
    files: dict[str, bytes | Resource] = {}
    links = []
    for path in sorted(release.iterdir()):
        if path.name == without:
            continue
        data = path.read_bytes()
        files[f"/files/{path.name}"] = data
        links.append(f'<a href="../../files/{path.name}#sha256={hashlib.sha256(data).hexdigest()}">{path.name}</a>')
    return {**files, "/simple/demo/": Resource("<br/>\n".join(links).encode(), content_type="text/html")}


def _wheel(made: Made, version: str) -> WheelBuilder:
    wheel = WheelBuilder("demo", version, made.tags).metadata(requires=made.requires)
    wheel.add("demo/__init__.py", b"")
    if made.properties:
        contents: Mapping[str, bytes] = {".nv_fatbin": section(fat_binary(*made.code))} if made.code else {}
        machine = AARCH64 if made.machine == "aarch64" else X86_64
        name = "demo/_C_cuda.so" if made.code else "demo/_C.so"
        wheel.add(name, Elf(machine=machine, needed=made.needed, runpath="$ORIGIN", contents=contents).build().data)
        for needed in made.needed:
            wheel.add(f"demo/{needed}", Elf(machine=machine, soname=needed).build().data)
    return wheel
