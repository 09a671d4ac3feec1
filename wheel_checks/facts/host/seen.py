"""The GPUs that a host has, to be held against those that it is expected to have."""

from wheel_checks.facts.gpu.expected import SeenGpu
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.other_gpus import kfd_gpus
from wheel_checks.facts.host.presence import gpus_of_build
from wheel_checks.facts.host.probes import TorchProbe
from wheel_checks.model import Unavailable


def gpus_of(facts: HostFacts) -> tuple[SeenGpu, ...] | Unavailable:
    """The GPUs as torch sees them; where it sees none, as CUDA, NVML, the PCI bus and amdkfd show them.

    A GPU of Intel's counts where torch is built for it: nearly every laptop has one.

    Unavailable when none of these could be read.
    """
    probe, cuda, nvml, pci = facts.torch, facts.cuda, facts.nvml, facts.pci
    by_cuda = () if isinstance(cuda, Unavailable) else cuda.gpus
    capabilities = {gpu.name: f"{gpu.capability[0]}.{gpu.capability[1]}" for gpu in by_cuda}
    if isinstance(probe, TorchProbe) and probe.available and probe.names:
        accelerator = "xpu" if probe.device == "xpu" else "cuda" if probe.cuda else "rocm"
        return tuple(SeenGpu(name, capabilities.get(name, ""), accelerator) for name in probe.names)
    if by_cuda:
        return tuple(SeenGpu(gpu.name, capabilities[gpu.name], "cuda") for gpu in by_cuda)
    if not isinstance(nvml, Unavailable) and nvml.gpus:
        return tuple(SeenGpu(gpu.name, accelerator="cuda") for gpu in nvml.gpus)
    if isinstance(pci, Unavailable):
        return pci
    own = [
        SeenGpu(one.name, accelerator="cuda", device=f"{one.vendor}:{one.device}") for one in pci if one.is_nvidia_gpu
    ]
    own += [SeenGpu("", one.target, "rocm", f"1002:{one.device}") for one in kfd_gpus(facts)]
    intel = [one for one in gpus_of_build(facts) if one.maker == "Intel"]
    return (*own, *(SeenGpu("", accelerator="xpu", device=f"8086:{one.device}") for one in intel))
