"""What goes wrong on a host, in the words that causes explain: derived from the facts, without any judgement."""

from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.probes import ChildEnd, CudaProbe, KernelProbe, NvmlProbe, TorchProbe
from wheel_checks.facts.host.software import Installed
from wheel_checks.facts.host.visible import expected_devices
from wheel_checks.model import Unavailable


def symptoms(facts: HostFacts) -> tuple[str, ...]:
    """The symptoms, in the order in which things depend on one another.

    - ``nvml:CODE``: nvmlInit's, -1 when the library cannot be loaded; ``nvml:no-device``
    - ``cuda:CODE``: cuInit's, -1 likewise; ``cuda:no-device``
    - ``cuda:fewer``: CUDA sees fewer GPUs than NVML, and fewer than CUDA_VISIBLE_DEVICES asks for
    - ``torch:missing``, ``torch:import``, ``torch:cpu-build``, ``torch:unavailable``, ``torch:init``, ``torch:compute``
    - ``triton:missing``, ``kernel:failed``
    - ``nvml:``, ``cuda:``, ``torch:`` and ``kernel:`` with ``hang`` or ``signal``
    """
    found: list[str] = []
    found += _of_nvml(facts.nvml)
    found += _of_cuda(facts.cuda, expected_devices(facts.nvml, facts.variables))
    found += _of_torch(facts.torch, facts.installed)
    found += _of_kernel(facts.kernel, facts)
    return tuple(dict.fromkeys(found))


def _of_end(name: str, end: ChildEnd) -> list[str]:
    if end.hang:
        return [f"{name}:hang"]
    return [f"{name}:signal"] if end.signal else []


def _of_nvml(probe: NvmlProbe | Unavailable) -> list[str]:
    if isinstance(probe, Unavailable):
        return []
    if ended := _of_end("nvml", probe.end):
        return ended
    if probe.code:
        return [f"nvml:{probe.code}"]
    return [] if probe.gpus else ["nvml:no-device"]


def _of_cuda(probe: CudaProbe | Unavailable, expected: int) -> list[str]:
    if isinstance(probe, Unavailable):
        return []
    if ended := _of_end("cuda", probe.end):
        return ended
    if probe.code:
        return [f"cuda:{probe.code}"]
    if not probe.gpus:
        return ["cuda:no-device"]
    return ["cuda:fewer"] if len(probe.gpus) < expected else []


def _of_torch(probe: TorchProbe | Unavailable, installed: Installed | Unavailable) -> list[str]:
    found = []
    if isinstance(installed, Installed):
        if installed.torch is None:
            found.append("torch:missing")
        elif not (installed.torch.cuda or installed.torch.hip or installed.torch.xpu):
            found.append("torch:cpu-build")
    if isinstance(probe, Unavailable):
        return found
    if ended := _of_end("torch", probe.end):
        return found + ended
    if not probe.imported:
        return found if "torch:missing" in found else [*found, "torch:import"]
    if probe.available is False:
        found.append("torch:unavailable")
    if probe.init_error:
        found.append("torch:init")
    if probe.computes:
        found.append("torch:compute")
    return found


def _of_kernel(probe: KernelProbe | Unavailable, facts: HostFacts) -> list[str]:
    found = ["triton:missing"] if facts.triton is None else []
    if isinstance(probe, Unavailable):
        return found
    return found + (_of_end("kernel", probe.end) or (["kernel:failed"] if probe.error else []))
