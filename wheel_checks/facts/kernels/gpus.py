"""What the suite says of each GPU: which one it is, what was measured, who else uses it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from wheel_checks.data import load
from wheel_checks.model import Unavailable

INSTANCE = "MIG-"
"""What the UUID of a MIG instance starts with."""


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that computes on a GPU; ``memory_bytes`` is None where NVML does not say it."""

    pid: int = 0
    name: str = ""
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class GpuState:
    """What NVML says of a GPU at one moment; None and () is what it did not say.

    ``power_limit_watts`` may be set below that of the product, ``power_default_watts``. ``held_down_by`` are the
    reasons for which the GPU holds its clocks down. ``processes``, ``utilization_percent`` and ``memory_used_bytes``
    are what others do on it, before the suite uses it.
    """

    sm_clock_mhz: int | None = None
    sm_clock_limit_mhz: int | None = None
    memory_clock_mhz: int | None = None
    power_watts: int | None = None
    power_limit_watts: int | None = None
    power_default_watts: int | None = None
    temperature_celsius: int | None = None
    held_down_by: tuple[str, ...] = ()
    processes: tuple[GpuProcess, ...] = ()
    utilization_percent: int | None = None
    memory_used_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU that was tried: ``target`` is its compute capability as in sm_90, ``index`` its number for CUDA.

    ``state`` is that before the run.
    """

    name: str = ""
    target: str = ""
    index: int = 0
    uuid: str = ""
    multiprocessors: int | None = None
    memory_bytes: int | None = None
    state: GpuState = GpuState()

    @property
    def label(self) -> str:
        """``GPU 1 (NVIDIA H200, GPU-...)``."""
        return f"GPU {self.index} ({', '.join(filter(None, (self.name, self.uuid)))})"

    @property
    def is_instance(self) -> bool:
        """Whether this is a part of a GPU (MIG)."""
        return self.uuid.startswith(INSTANCE)


@dataclass(frozen=True, slots=True)
class Calibration:
    """The rates that this GPU reached in this run: bytes per second and operations per second, None if not measured.

    ``gpu`` is its state while it multiplied.
    """

    bandwidth: float | None = None
    bf16: float | None = None
    fp8: float | None = None
    gpu: GpuState = GpuState()


@dataclass(frozen=True, slots=True)
class Rates:
    """Bytes a second of copies, and the microseconds of the CPU for one call of each kernel from Python."""

    host_to_device: float | None = None
    device_to_host: float | None = None
    device_to_device: float | None = None
    launch_microseconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Soak:
    """Sustained load: operations a second at both ends, the part that was lost (``fall``), wrong results of those
    that were ``compared``, and the states of the GPU.
    """

    asked_seconds: float = 0.0
    first: float = 0.0
    last: float = 0.0
    lowest: float = 0.0
    fall: float = 0.0
    wrong: int = 0
    compared: int = 0
    held_down_by: tuple[str, ...] = ()
    hottest_celsius: int | None = None
    before: GpuState = GpuState()
    after: GpuState = GpuState()


@dataclass(frozen=True, slots=True)
class Reading:
    """What was measured of the GPU with the UUID ``gpu``."""

    gpu: str = ""
    calibration: Calibration | None = None
    rates: Rates | None = None
    soak: Soak | None = None


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """One GPU of a run, and what was measured of it."""

    gpu: Gpu
    reading: Reading

    def numbers(self) -> dict[str, float]:
        """All rates by name, as they are compared between hosts: bytes and operations a second."""
        found: dict[str, float | None] = {}
        if calibration := self.reading.calibration:
            found |= {"copy": calibration.bandwidth, "bf16": calibration.bf16, "fp8": calibration.fp8}
        if rates := self.reading.rates:
            found |= {"host to device": rates.host_to_device, "device to host": rates.device_to_host}
        if soak := self.reading.soak:
            found["sustained bf16"] = soak.last
        return {name: value for name, value in found.items() if value}


@dataclass(frozen=True, slots=True)
class Product:
    """What a product reaches, by ``data/gpu_rates.toml``: the lowest and the highest rate of each kind.

    ``measured``: by healthy GPUs; otherwise by its data sheet.
    """

    name: str
    measured: bool
    rates: Mapping[str, tuple[float, float]]
    multiprocessors: int | None
    memory: float | None
    source: str

    @property
    def with_article(self) -> str:
        """``an H200``, ``a GB200``."""
        return f"{'an' if self.name[:1] in 'AEFHILMNORSX8' else 'a'} {self.name}"

    def least(self, kind: str) -> float:
        """The rate below which a GPU of this product is not as it should be."""
        table = load("gpu_rates")
        lowest = self.rates[kind][0]
        if self.measured:
            return lowest * float(table["fails_below"])
        return lowest * float(table["warns_below" if kind == "bandwidth" else "warns_below_matrix"])


def product_of(gpu: Gpu) -> Product | Unavailable:
    """The product that ``gpu`` is, by its name; not that of an instance, which is a part of one."""
    if gpu.is_instance:
        return Unavailable("a MIG instance is a part of a GPU, whose rates depend on its size")
    return _products().get(gpu.name) or Unavailable(f"the table has no rates for {gpu.name or 'this GPU'}")


@cache
def _products() -> dict[str, Product]:
    return {name: _product(row) for row in load("gpu_rates")["gpu"] for name in row["names"]}


def _product(row: Mapping[str, Any]) -> Product:
    rates = {kind: (row[kind][0], row[kind][1]) for kind in ("bandwidth", "bf16", "fp8") if kind in row}
    measured = bool(row.get("measured"))
    return Product(row["product"], measured, rates, row.get("multiprocessors"), row.get("memory"), row["source"])
