"""What the dangerous steps gave: each ran in a child with a deadline, and a hang or a signal is an answer."""

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
    """One GPU as NVML reports it. A value that it does not support is None."""

    index: int  # of NVML
    name: str  # of the product
    uuid: str = ""  # of the GPU
    compute_mode: int | None = None  # nvmlComputeMode_t
    mig_enabled: bool | None = None  # whether MIG mode is on
    mig_devices: int | None = None  # number of MIG devices
    memory_total: int | None = None  # bytes
    memory_free: int | None = None  # bytes
    fabric_state: int | None = None  # 0 not supported, 1 not started, 2 in progress, 3 completed
    fabric_health: int | None = None  # mask of :mod:`wheel_checks.facts.host.fabric_health`
    fabric_summary: int | None = None  # single value of the health, from NVML 13 on
    fabric_status: int | None = None  # nvmlReturn_t of the probe of the fabric
    fabric_clique: int | None = None  # number of its NVLink domain
    fabric_cluster: str = ""  # UUID of its NVLink domain, in hex
    remap_pending: bool | None = None  # whether a row remapping is pending
    remap_failure: bool | None = None  # whether a row remapping failed
    error: int = 0  # nvmlReturn_t of opening it; 0 if it worked
    processes: tuple[int, ...] = ()  # pids
    vbios: str = ""  # version
    ecc_enabled: bool | None = None  # whether ECC is on
    power_limit: int | None = None  # milliwatts
    nvlinks: int | None = None  # number of links that are up
    nvlinks_total: int | None = None  # number of links
    nvlink_speed: int | None = None  # of the slowest link that is up: MB/s in one direction
    nvlinks_faulty: int | None = None  # links with errors that are more than a repeated packet
    pcie_generation: int | None = None  # highest that GPU and slot both have; idle GPUs use a lower one
    pcie_width: int | None = None  # lanes in use
    pcie_width_most: int | None = None  # lanes of the GPU
    sm_clock: int | None = None  # highest clock, MHz
    clock_reasons: int | None = None  # mask of what lowers the clock now (nvmlClocksEventReason*)
    ecc_corrected: int | None = None  # errors over the life of the GPU
    ecc_uncorrected: int | None = None  # errors over the life of the GPU
    rows_corrected: int | None = None  # rows remapped after corrected errors
    rows_uncorrected: int | None = None  # rows remapped after uncorrected errors
    gsp_firmware: str = ""  # version


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
    """torch, imported in the target interpreter."""

    end: ChildEnd  # how the child ended
    imported: bool  # whether the import succeeded
    version: str = ""  # torch.__version__
    cuda: str = ""  # torch.version.cuda
    path: str = ""  # torch.__file__
    available: bool | None = None  # torch.cuda.is_available(); None if it was not reached
    devices: int = 0  # number of GPUs
    error: str = ""  # message of the import's exception
    trace: str = ""  # end of the traceback, or where Python was in ``failed_at``
    init_error: str = ""  # message of torch.cuda.init()
    computes: str | None = None  # "" if a small product was right on the first ``computed`` GPUs, else what failed
    warnings: tuple[str, ...] = ()  # of torch
    failed_at: str = ""  # step in which the child hung or crashed
    steps: Mapping[str, float] = field(default_factory=dict)  # seconds by step
    names: tuple[str, ...] = ()  # of the GPUs that torch sees
    device: str = ""  # "cuda" (also for ROCm) or "xpu"
    computes_on_cpu: str | None = None  # as ``computes``, if there was no GPU
    start: StartUp = NOTHING_SEEN  # how its import started
    edited: tuple[str, ...] = ()  # files of the traceback that differ from RECORD
    computed: int = 0  # number of GPUs that computed
    hurried: bool = False  # whether the total time was over during ``failed_at``


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
