"""The GPUs that a host is expected to have: ``--expect gpu``, ``--expect cpu``, ``--expect "4 x GB200"``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from wheel_checks.errors import UsageError
from wheel_checks.facts.gpu.targets import Product, parse_gpu

CPU, ANY = "cpu", "gpu"
_KINDS = (ANY, "cuda", "rocm", "xpu", CPU)
_FORM = re.compile(r"\s*(?:(?P<count>\d{1,5})\s*(?:[x×*]\s*|\s))?\s*(?P<what>\S(?:.*\S)?)\s*", re.IGNORECASE)  # noqa: RUF001  # people type both


@dataclass(frozen=True, slots=True)
class HostExpectation:
    """``accelerator`` is gpu (of any maker), cuda, rocm, xpu or cpu; ``count`` the number of GPUs, 0 for at least one;
    ``product`` the GPU that each of them is, None for any.
    """

    accelerator: str
    count: int = 0
    product: Product | None = None

    def __str__(self) -> str:
        if self.accelerator == CPU:
            return "a CPU"
        makers = {"cuda": "NVIDIA GPU", "rocm": "AMD GPU", "xpu": "Intel GPU"}
        name = self.product.name if self.product else makers.get(self.accelerator, "GPU")
        return f"{self.count} x {name}" if self.count else name

    def accepts(self, gpu: SeenGpu) -> bool | None:
        """Whether a GPU is an expected one; None if the known facts do not decide."""
        if gpu.accelerator and self.accelerator not in (ANY, gpu.accelerator):
            return False
        if self.product is None:
            return True if self.accelerator == ANY or gpu.accelerator else None
        if gpu.capability and gpu.capability != self.product.capability:
            return False
        return _is(self.product, gpu)


@dataclass(frozen=True, slots=True)
class SeenGpu:
    """A GPU by its ``name`` ("NVIDIA H200"), compute capability ("9.0"; "gfx942" of AMD's) and ``accelerator`` (cuda,
    rocm, xpu). ``device`` are its numbers on the PCI bus ("10de:2335").

    Unknown fields are "".
    """

    name: str
    capability: str = ""
    accelerator: str = ""
    device: str = ""

    def __str__(self) -> str:
        maker = {"rocm": "AMD GPU", "xpu": "Intel GPU"}.get(self.accelerator, "PCI device")
        named = self.name or (f"{maker} {self.device}" if self.device else "a GPU of unknown name")
        return f"{named} ({self.capability})" if self.capability else named


def _is(product: Product, gpu: SeenGpu) -> bool | None:
    """Whether a GPU of this name and capability is the product; None if undecided."""
    wanted, name = _words(product.name), _words(gpu.name)
    if "mig" in name:
        return False  # a slice of it
    if any(_are_alike(wanted, name[start:]) for start in range(len(name))):
        return True
    if wanted[0].startswith(("sm", "gfx")):  # expected by its target alone
        return True if gpu.capability else None
    return False if name else None


def parse_host_expectation(text: str) -> HostExpectation:
    """Parse ``gpu``, ``cpu``, ``rocm``, ``xpu``, ``GB200``, ``4 x GB200``, ``2 x gpu``. Raises UsageError."""
    match = _FORM.fullmatch(text)
    count, what = (match["count"], match["what"]) if match else (None, "")
    if not what or count == "0":
        raise UsageError(
            f"--expect {text!r} names neither a CPU nor a GPU", expected='a form such as gpu, cpu or "4 x GB200"'
        )
    kind = what.lower().removesuffix("s") if what.lower() == "gpus" else what.lower()
    if kind in _KINDS:
        if kind == CPU and count:
            raise UsageError(f"--expect {text!r} counts CPUs", expected="plain cpu")
        return HostExpectation(kind, int(count or 0))
    product = parse_gpu(what)
    return HostExpectation("rocm" if product.gfx else "cuda", int(count or 0), product)


def counted(gpus: Iterable[SeenGpu]) -> str:
    """Such as ``2 x NVIDIA H200, NVIDIA L4``; "no GPU" for none."""
    counts = Counter(str(replace(gpu, capability="")) for gpu in gpus)
    return ", ".join(f"{count} x {name}" if count > 1 else name for name, count in counts.items()) or "no GPU"


def mismatch(expected: HostExpectation, gpus: Sequence[SeenGpu]) -> str:
    """Why these are not the GPUs that are expected, as a sentence; "" when they are."""
    others = [gpu for gpu in gpus if expected.accepts(gpu) is False]
    enough = len(gpus) == expected.count if expected.count else bool(gpus)
    if enough and not others:
        return ""
    return f"expected: {expected}; found: {counted(gpus)}"


def _words(name: str) -> list[str]:
    return [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word]


def _are_alike(wanted: Sequence[str], words: Sequence[str]) -> bool:
    """Whether the words start with those of a product; the "50" of a series covers 5090, 5080, ..."""
    pairs = list(zip(wanted, words, strict=False))
    series = re.compile(r"\d\d")
    return len(pairs) == len(wanted) and all(
        one == other or (series.fullmatch(one) and len(other) == 4 and other.startswith(one)) for one, other in pairs
    )
