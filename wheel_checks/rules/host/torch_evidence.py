"""What the rules about wheels show of torch and of the GPUs."""

from collections.abc import Iterator

from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.software import TorchFiles
from wheel_checks.facts.host.tables import DriverCuda, host_gpus
from wheel_checks.model import Evidence, need


def installed_torch(facts: HostFacts) -> TorchFiles | None:
    """The torch on disk; the rule is skipped when it is unknown what is installed."""
    return need(facts.installed).torch


def version_file(torch: TorchFiles) -> Evidence:
    """What torch/version.py says."""
    build = f"cuda = {torch.cuda}" if torch.cuda else f"hip = {torch.hip}" if torch.hip else f"xpu = {torch.xpu}"
    accelerator = build if torch.cuda or torch.hip or torch.xpu else "cuda = None"
    return Evidence("torch", f"{torch.version}, {accelerator}", f"{torch.folder}/version.py")


def missing_library(torch: TorchFiles) -> Iterator[Evidence]:
    """That libtorch_cuda.so is missing, when it is."""
    if not torch.has_cuda_library:
        yield Evidence("missing", "libtorch_cuda.so", f"{torch.folder}/lib")


def code_list(torch: TorchFiles) -> Evidence:
    """The GPU code that torch says it has."""
    return Evidence("code", " ".join(torch.architectures) or "none", f"{torch.folder}/lib, torch's own list")


def gpu_names(facts: HostFacts) -> Evidence:
    """The GPUs, with their compute capabilities where they are known."""
    gpus = host_gpus(facts)
    names = dict.fromkeys(str(gpu.product) if gpu.sm else gpu.name for gpu in gpus)
    return Evidence("GPU", ", ".join(names) or "unknown product", gpus[0].source if gpus else "")


def driver_shown(driver: DriverCuda) -> Evidence:
    """The CUDA of the driver."""
    return Evidence("driver", f"CUDA {driver.version}", driver.source)
