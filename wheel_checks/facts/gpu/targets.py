"""The GPUs that a piece of GPU code runs on, by NVIDIA's and AMD's rules of compatibility.

* Machine code for sm_XY runs on the same major version with the same or a higher minor one (CUDA Programming Guide,
  "Binary Compatibility"); on Tegra (Jetson Orin and older) only code for exactly that version runs, and nowhere else.
* With the suffix ``a`` it runs on exactly its own version; with ``f`` on its family, from its own version on
  ("Family-Specific Features", since CUDA 12.9).
* Code whose suffix is unknown ("sm_100?", a cubin without its compiler's note) runs on its own version;
  whether it runs on others is unknown.
* PTX for compute_XY is compiled by the driver at first use, for the same or any newer version; with ``a`` and ``f`` it
  is as restricted as machine code.

AMD's code objects are judged in ``amd.py``. Neither maker's code runs on the other's GPUs.

Families, Tegra products and renamed targets are in ``data/products.toml``.
"""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from wheel_checks.data import load
from wheel_checks.errors import UsageError
from wheel_checks.facts.gpu import amd
from wheel_checks.formats.gpu.code_object import UNKNOWN_SUFFIX
from wheel_checks.formats.gpu.fatbin import GpuCode, GpuEntry

How = Literal["native", "jit", "none", "unknown"]

_LABEL = re.compile(r"(sm|compute)_(\d{2,3})([af?]?)", re.ASCII)
_CAPABILITY = re.compile(r"(?:sm_?)?(\d{2,3})|(\d{1,2})\.(\d)", re.ASCII)
_MAKERS = re.compile(r"^(?:nvidia|geforce|tesla|amd|instinct|radeon)+")
_ALTERNATIVE = 0.02  # files are alternatives to others if there are so many, per file of these
_SUFFIX_ORDER = ("", "?", "f", "a")  # from the most general to the most specific


@dataclass(frozen=True, slots=True)
class Product:
    """A GPU: its ``name``, its compute capability as in sm_100, and the ``machine`` of the CPU next to it.

    ``machine`` is "x86_64" or "aarch64", for a card the usual one; "" when only a capability was requested. An AMD GPU
    has the target ``gfx`` ("gfx942") and no compute capability: ``sm`` is 0.
    """

    name: str
    sm: int
    machine: str = ""
    gfx: str = ""

    @property
    def capability(self) -> str:
        """The compute capability, "10.0", or the target of an AMD GPU, "gfx942"."""
        return self.gfx or _capability(self.sm)

    def __str__(self) -> str:
        return f"{self.name} ({self.capability})"


@dataclass(frozen=True, slots=True)
class RunsHow:
    """How code runs on a product: ``how`` is "native", "jit", "none", or "unknown" if not enough was read.

    ``label`` is the code that is loaded ("sm_100") or compiled ("compute_90"), or ""; ``why`` is a sentence.
    """

    how: How
    label: str
    why: str


def products() -> tuple[Product, ...]:
    """Every NVIDIA product of the table, in its order: by compute capability. Other names are omitted."""
    return tuple(Product(row["name"], row["capability"], row["machine"]) for row in load("products")["product"])


def amd_products() -> tuple[Product, ...]:
    """Every AMD product of the table, in its order."""
    return tuple(
        Product(name, 0, row["machine"], row["target"]) for row in load("products")["amd"] for name in row["products"]
    )


def parse_gpus(text: str) -> tuple[Product, ...]:
    """The products in a list such as "GB200,H100,sm_120", each once. Raises UsageError, see :func:`parse_gpu`."""
    return tuple(dict.fromkeys(parse_gpu(name) for name in text.split(",")))


def parse_gpu(text: str) -> Product:
    """The product with this name ("GB200", "rtx 5090", "MI300X"), or any with this capability ("sm_100", "100", "10.0")
    or this target ("gfx942").

    Raises UsageError, with the nearest names, if the table has none.
    """
    names = _names()
    if product := names.get(_key(text)):
        return product
    number = _CAPABILITY.fullmatch(text.strip().lower())
    if number is None and (target := text.strip().lower()) in {product.gfx for product in amd_products()}:
        return Product(target, 0, "", target)
    if number is None:
        near = [names[key].name for key in difflib.get_close_matches(_key(text), names)]
        raise UsageError(
            f"unknown GPU {text.strip()!r}",
            expected="a product such as GB200 or MI300X, or a target such as sm_100, 10.0 or gfx942",
            hint=f"did you mean {' or '.join(near)}?" if near else "",
        )
    sm, table = int("".join(number.groups(""))), load("products")
    if sm not in table["capabilities"]:
        raise UsageError(
            f"no GPU of compute capability {_capability(sm)} is known as of {table['collected']}",
            expected=", ".join(map(_capability, table["capabilities"])),
        )
    return Product(f"sm_{sm}", sm)


def runs_on(code: Iterable[str | GpuEntry], product: Product) -> RunsHow:
    """How ``code``, entries or labels such as "sm_100a" and "compute_90", runs on ``product``.

    Of several that would run, machine code comes before PTX, then the nearest version, then the more specific suffix;
    NVIDIA does not publish the driver's order among them. Labels that no device runs ("lto_80") and unknown ones are
    ignored.
    """
    labels = dict.fromkeys(entry if isinstance(entry, str) else entry.label for entry in code)
    if product.gfx:
        return _runs_on_amd(labels, product)
    targets = [_Target(match[0], match[1], int(match[2]), match[3]) for match in map(_LABEL.fullmatch, labels) if match]
    running = [target for target in targets if not target.refuses(product.sm)]
    if running:
        best = max(running, key=_Target.preference)
        if best.is_ptx:
            return RunsHow("jit", best.label, f"{best.label} is compiled at first use on {product}")
        return RunsHow("native", best.label, f"{best.label} runs on {product}")
    if not targets:
        return RunsHow("none", "", f"no GPU code can run on {product}")
    if perhaps := [target.label for target in targets if target.may_run(product.sm)]:
        why = "it is unknown whether it is only for its own version: the compiler left no note"
        return RunsHow("unknown", "", f"{', '.join(sorted(perhaps))}: {why}")
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    for target in sorted(targets, key=lambda target: (target.is_ptx, target.sm, target.suffix)):
        reasons[target.refuses(product.sm)].append(target.label)
    summary = "; ".join(f"{', '.join(labels)}: {reason}" for reason, labels in reasons.items())
    return RunsHow("none", "", f"nothing runs on {product}: {summary}")


def _runs_on_amd(labels: Iterable[str], product: Product) -> RunsHow:
    refused = {label: amd.refuses(label, product.gfx) for label in labels}
    running = [label for label, reason in refused.items() if not reason]
    if running:
        best = max(running, key=lambda label: (not amd.is_generic(label), label))
        return RunsHow("native", best, f"{best} runs on {product}")
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    for label, reason in sorted(refused.items()):
        reasons[reason].append(label)
    if not reasons:
        return RunsHow("none", "", f"no GPU code can run on {product}")
    summary = "; ".join(f"{', '.join(labels)}: {reason}" for reason, labels in reasons.items())
    return RunsHow("none", "", f"nothing runs on {product}: {summary}")


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many of the compiled files (containers) that matter for a GPU have code for it: ``running`` of ``files``."""

    running: int
    files: int

    @property
    def share(self) -> float:
        """0 to 1; 1 if no file is known."""
        return self.running / self.files if self.files else 1.0

    def __str__(self) -> str:
        return f"{self.running:,} of {self.files:,} compiled files"


def coverage(code: GpuCode, product: Product) -> Coverage:
    """The compiled files of a library that have code for a product, among those that are meant for it.

    Files for single architectures alone (sm_90a, sm_100f) are meant for these, and so are files for one major version
    if others are for the product's alone, and files for newer GPUs alone if others have machine code for the product:
    the library chooses between them, as cuBLASLt. Of files of these kinds alone, those for the product's major version
    count, if there are any.
    """
    known = ((labels, count) for labels, count in code.containers.items() if any(map(_is_loaded, labels)))
    files = [_CompiledFiles(labels, count, product) for labels, count in known]
    is_specific = not any(of.runs and not of.is_specific for of in files)  # the code that runs
    alternatives = [of for of in files if of.runs and of.is_for_one and of.is_for_product]
    own = sum(of.count for of in alternatives if is_specific or not of.is_specific)
    others = sum(of.count for of in files if not of.runs and of.is_for_one)
    are_chosen = own > 0 and own >= _ALTERNATIVE * others
    native = sum(of.count for of in files if of.is_native)
    is_built_for_it = native > 0 and native >= _ALTERNATIVE * sum(of.count for of in files)
    meant_for_others = [
        of
        for of in files
        if of.is_specific or (not of.runs and ((are_chosen and of.is_for_one) or (is_built_for_it and of.is_for_newer)))
    ]
    general = [of for of in files if of not in meant_for_others]
    if not any(of.runs for of in general):
        general += [of for of in files if of.is_specific and of.runs and general]
    counted = general or [of for of in files if of.is_for_product] or files
    return Coverage(sum(of.count for of in counted if of.runs), sum(of.count for of in counted))


def _is_loaded(label: str) -> bool:
    """False for code of the device linker ("lto_75"), of which cuFFT has thousands of files."""
    return bool(_LABEL.fullmatch(label)) or label.startswith("gfx")


class _CompiledFiles:
    """``count`` compiled files of a library with the same ``labels``, and what these mean for a product."""

    def __init__(self, labels: frozenset[str], count: int, product: Product) -> None:
        self.count = count
        how = runs_on(labels, product).how
        self.runs, self.is_native = how in ("native", "jit"), how == "native"
        targets = [match for match in map(_LABEL.fullmatch, labels) if match]
        self.is_specific = bool(targets) and all(match[3] for match in targets)
        majors = {int(match[2]) // 10 for match in targets if match[1] == "sm"}
        majors = majors or {int(match[2]) // 10 for match in targets}
        self.is_for_one = len(majors) == 1
        self.is_for_newer = bool(targets) and all(int(match[2]) > product.sm for match in targets)
        self.is_for_product = product.sm // 10 in majors


@dataclass(frozen=True, slots=True)
class _Target:
    label: str
    prefix: str
    sm: int
    suffix: str

    @property
    def is_ptx(self) -> bool:
        return self.prefix == "compute"

    def preference(self) -> tuple[bool, int, int]:
        """Sort key for code that runs on one device: the last is the best."""
        return not self.is_ptx, self.sm, _SUFFIX_ORDER.index(self.suffix)

    def may_run(self, device: int) -> bool:
        """True when it runs on a device of this capability unless it has a suffix, which is unknown."""
        return self.suffix == UNKNOWN_SUFFIX and not replace(self, suffix="").refuses(device)

    def refuses(self, device: int) -> str:
        """Why this does not run on a device of this capability, as in 100; "" when it does."""
        own = {row["old"]: row["new"] for row in load("products")["renamed"]}.get(self.sm, self.sm)
        if self.suffix in ("a", UNKNOWN_SUFFIX):
            return "" if device == own else "only for exactly its own version"
        if self.suffix == "f":
            return "" if device in _family(own) else "only for its own family"
        if self.is_ptx:
            return "" if device >= self.sm else "PTX for newer GPUs"
        if device // 10 != own // 10:
            return "machine code for another major version"
        if device != own and not _tegra().isdisjoint({device, own}):
            return "machine code is not interchangeable between Tegra and other GPUs"
        return "" if device >= own else "machine code for newer GPUs"


def _family(sm: int) -> tuple[int, ...]:
    """The capabilities on which code for this one with the suffix ``f`` runs; past the table's horizon only its own."""
    families = (row["members"] for row in load("products")["family"])
    return next((tuple(member for member in family if member >= sm) for family in families if sm in family), (sm,))


def _tegra() -> set[int]:
    return {row["capability"] for row in load("products")["tegra"]}


@cache
def _names() -> dict[str, Product]:
    """Products by key, under all of their names."""
    return {_key(product.name): product for product in amd_products()} | {
        _key(name): Product(name, row["capability"], row["machine"])
        for row in load("products")["product"]
        for name in (row["name"], *row.get("aliases", ()))
    }


def _key(name: str) -> str:
    """A name without common variations: "NVIDIA GeForce RTX 5090" is "rtx5090"."""
    return _MAKERS.sub("", re.sub(r"[^a-z0-9]", "", name.lower()))


def _capability(sm: int) -> str:
    return f"{sm // 10}.{sm % 10}"
