"""What the dangerous steps gave: each ran in a child with a deadline, and a hang or a signal is an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from wheel_checks.facts.host.start_up import NOTHING_SEEN, StartUp
from wheel_checks.phrases import plural

HUNG, CRASHED = -2, -3  # stand for the code of a CUDA probe that gave none


@dataclass(frozen=True, slots=True)
class ChildEnd:
    """How a child ended: ``signal`` ("SIGSEGV") or "" ; ``hang`` when it was killed at its deadline (``seconds``).

    ``waits_in`` is the kernel function in which a hanging child waited, when that can be read. ``output`` are the last
    lines that it wrote.
    """

    exit_code: int = 0
    signal: str = ""
    hang: bool = False
    seconds: float = 0.0
    waits_in: str = ""
    output: str = ""


@dataclass(frozen=True, slots=True)
class NvmlGpu:
    """One GPU as NVML sees it. A value that it does not support is None. Memory in bytes, power limit in milliwatts.

    ``fabric_state`` is 0 not supported, 1 not started, 2 in progress, 3 completed; ``fabric_health`` the mask and
    ``fabric_summary`` the one value (NVML 13) of :mod:`wheel_checks.facts.host.fabric_health`; ``fabric_status`` the
    nvmlReturn_t of the probe of the fabric, ``fabric_cluster`` the UUID (hex) and ``fabric_clique`` the number of the
    GPU's NVLink domain. ``processes`` are pids.

    Of ``nvlinks_total`` links ``nvlinks`` are up, the slowest of these at ``nvlink_speed`` (MB/s in one direction), and
    ``nvlinks_faulty`` had errors that are more than a repeated packet. ``pcie_generation`` is the highest that the GPU
    and its slot both have; the one in use is lower while the GPU is idle. ``pcie_width`` are the lanes in use, of
    ``pcie_width_most``. ``sm_clock`` is the highest clock in MHz, ``clock_reasons`` the mask of what keeps the clock
    low now (nvmlClocksEventReason*). ``ecc_uncorrected`` counts errors over the GPU's life, ``rows_uncorrected`` rows
    that were remapped after such errors.
    """

    index: int
    name: str
    uuid: str = ""
    compute_mode: int | None = None
    mig_enabled: bool | None = None
    mig_devices: int | None = None
    memory_total: int | None = None
    memory_free: int | None = None
    fabric_state: int | None = None
    fabric_health: int | None = None
    fabric_summary: int | None = None
    fabric_status: int | None = None
    fabric_clique: int | None = None
    fabric_cluster: str = ""
    remap_pending: bool | None = None
    remap_failure: bool | None = None
    error: int = 0
    processes: tuple[int, ...] = ()
    vbios: str = ""
    ecc_enabled: bool | None = None
    power_limit: int | None = None
    nvlinks: int | None = None
    nvlinks_total: int | None = None
    nvlink_speed: int | None = None
    nvlinks_faulty: int | None = None
    pcie_generation: int | None = None
    pcie_width: int | None = None
    pcie_width_most: int | None = None
    sm_clock: int | None = None
    clock_reasons: int | None = None
    ecc_corrected: int | None = None
    ecc_uncorrected: int | None = None
    rows_corrected: int | None = None
    rows_uncorrected: int | None = None
    gsp_firmware: str = ""


@dataclass(frozen=True, slots=True)
class NvmlProbe:
    """NVML: ``code`` of nvmlInit (0 good; -1 when the library cannot be loaded, ``fault`` says why).

    ``failed_at`` names the call that gave ``code`` when it was not nvmlInit, or in which the child hung or crashed.
    """

    end: ChildEnd
    code: int
    fault: str = ""
    library: str = ""
    driver_version: str = ""
    gpus: tuple[NvmlGpu, ...] = ()
    confidential_ready: bool | None = None
    failed_at: str = ""


@dataclass(frozen=True, slots=True)
class CudaGpu:
    """One device as CUDA sees it: ``capability`` is (9, 0)."""

    index: int
    name: str
    capability: tuple[int, int]
    uuid: str = ""
    memory_total: int = 0


@dataclass(frozen=True, slots=True)
class CudaProbe:
    """libcuda by ctypes: ``code`` is cuInit's, or -1 when the library cannot be loaded (``fault`` says why).

    ``library`` is the file that was mapped, ``driver_cuda`` cuDriverGetVersion (13000 for 13.0; 0 unknown).
    ``failed_at`` names the call that gave ``code`` when it was not cuInit, or in which the child hung or crashed.
    """

    end: ChildEnd
    code: int
    fault: str = ""
    library: str = ""
    driver_cuda: int = 0
    failed_at: str = ""
    gpus: tuple[CudaGpu, ...] = ()

    @property
    def outcome(self) -> tuple[int, int]:
        """The code (HUNG, CRASHED if none exists), and the number of devices."""
        if self.end.hang or self.end.signal:
            return HUNG if self.end.hang else CRASHED, 0
        return self.code, len(self.gpus)


@dataclass(frozen=True, slots=True)
class TorchProbe:
    """torch, imported in the target interpreter. ``error`` is what an exception of the import says, ``trace`` its end.

    ``available`` is torch.cuda.is_available(), None when it was not reached; ``init_error`` what torch.cuda.init()
    said; ``warnings`` what torch warned of. ``computes`` is "" when a small product was right on the first ``computed``
    GPUs, else what failed. ``failed_at`` is the step in which the child hung or crashed; ``trace`` then says where in
    Python that was. ``steps`` are the seconds of its steps. ``names`` are the GPUs that torch sees; ``device`` is
    "cuda" (also for ROCm) or "xpu". ``computes_on_cpu`` is as ``computes``, where there was no GPU to compute on.
    ``hurried`` is True where the time for everything was over during ``failed_at``, before that step had its own.
    ``edited`` are files of the traceback that are not those that were installed, by RECORD.
    """

    end: ChildEnd
    imported: bool
    version: str = ""
    cuda: str = ""
    path: str = ""
    available: bool | None = None
    devices: int = 0
    error: str = ""
    trace: str = ""
    init_error: str = ""
    computes: str | None = None
    warnings: tuple[str, ...] = ()
    failed_at: str = ""
    steps: Mapping[str, float] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    device: str = ""
    computes_on_cpu: str | None = None
    start: StartUp = NOTHING_SEEN
    edited: tuple[str, ...] = ()
    computed: int = 0
    hurried: bool = False


@dataclass(frozen=True, slots=True)
class KernelProbe:
    """One Triton kernel, compiled and run in the target interpreter: ``error`` is "" when its result was right."""

    end: ChildEnd
    error: str = ""
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """The CUDA probe again without one variable, or without the one ``entry`` of its list: what became of it.

    ``before`` and ``after`` are (code, devices), as :attr:`CudaProbe.outcome` has them. It proves the variable's guilt
    when before is bad and after is good.
    """

    variable: str
    value: str
    before: tuple[int, int]
    after: tuple[int, int]
    entry: str = ""

    @property
    def proves(self) -> bool:
        """True when CUDA works without the variable, and did not with it."""
        return self.after[0] == 0 and self.after[1] > 0 and (self.before[0] != 0 or self.before[1] < self.after[1])

    @property
    def label(self) -> str:
        """What was omitted: ``without CUDA_VISIBLE_DEVICES``, ``without /stubs in LD_LIBRARY_PATH``."""
        return f"without {self.entry} in {self.variable}" if self.entry else f"without {self.variable}"

    @property
    def summary(self) -> str:
        """Both outcomes: ``cuInit 0, 1 device (with it: 100)``."""
        return f"{_outcome_text('cuInit ', self.after)} (with it: {_outcome_text('', self.before)})"


def _outcome_text(call: str, outcome: tuple[int, int]) -> str:
    code, devices = outcome
    if code in {HUNG, CRASHED}:
        return "a hang" if code == HUNG else "a crash"
    return f"{call}{code}" if code else f"{call}0, {plural(devices, 'device')}"


Variables = Mapping[str, str]
