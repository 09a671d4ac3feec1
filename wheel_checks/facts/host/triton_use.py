"""How Triton works on this host: which ptxas it takes for a GPU, and what the kernel that was tried said."""

import re

from packaging.version import Version

from wheel_checks.data import load
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.presence import may_have_gpu
from wheel_checks.facts.host.probes import KernelProbe
from wheel_checks.facts.host.software import Ptxas, TritonFacts
from wheel_checks.facts.host.tables import HostGpu, host_gpus
from wheel_checks.model import Evidence, Severity, Unavailable

ARCHITECTURE_SPECIFIC = 90  # from this SM on Triton compiles for sm_90a and the like


def kernel_words(facts: HostFacts) -> str:
    """Everything that the failed kernel said; "" when none was tried, or it worked."""
    probe = facts.kernel
    if isinstance(probe, Unavailable) or not kernel_failed(facts):
        return ""
    return f"{probe.error}\n{probe.trace}\n{probe.end.output}"


def kernel_failed(facts: HostFacts) -> bool:
    """Whether a kernel was tried and did not give the right result."""
    probe = facts.kernel
    return isinstance(probe, KernelProbe) and bool(probe.error or probe.end.signal or probe.end.hang)


def weight(facts: HostFacts, words: str) -> Severity | None:
    """How much something matters that breaks kernels with these ``words`` (a pattern).

    An error when the kernel that was tried said so; a note when none could be tried on a machine with a GPU, or it said
    something else; None when a kernel works, or there is no GPU to run one on.
    """
    if isinstance(facts.kernel, KernelProbe) and not kernel_failed(facts):
        return None
    if kernel_failed(facts):
        return Severity.ERROR if re.search(words, kernel_words(facts)) else Severity.NOTE
    return Severity.NOTE if may_have_gpu(facts) else None


def kernel_error(facts: HostFacts) -> tuple[Evidence, ...]:
    """What the failed kernel said, as evidence; nothing when it worked or was not tried."""
    probe = facts.kernel
    if isinstance(probe, Unavailable) or not probe.error:
        return ()
    return (Evidence("kernel", probe.error, "a Triton kernel that was tried"),)


def triton_gpus(facts: HostFacts) -> tuple[HostGpu, ...]:
    """The GPUs of a known compute capability, each capability once."""
    return tuple({gpu.sm: gpu for gpu in host_gpus(facts) if gpu.sm}.values())


def target(sm: int) -> str:
    """What Triton gives to ptxas as --gpu-name for a GPU: sm_89, sm_90a."""
    return f"sm_{sm}{'a' if sm >= ARCHITECTURE_SPECIFIC else ''}"


def role_for(triton: TritonFacts, sm: int) -> str:
    """Which of its two ptxas Triton takes for a GPU; "" when its source did not say."""
    if triton.blackwell_from < 0:
        return ""
    return "ptxas-blackwell" if triton.blackwell_from and sm >= triton.blackwell_from else "ptxas"


def variable_of(role: str) -> str:
    """The variable that puts another ptxas in this role: TRITON_PTXAS_BLACKWELL_PATH for ptxas-blackwell."""
    return f"TRITON_{role.upper().replace('-', '_')}_PATH"


def ptxas_for(triton: TritonFacts, sm: int) -> Ptxas | None:
    """The ptxas that Triton runs for a GPU: the variable's when it answers, else its own; None when that is unknown."""
    role = role_for(triton, sm)
    named = [one for one in triton.ptxas if one.role == variable_of(role) and one.version]
    own = [one for one in triton.ptxas if one.role == role]
    return next(iter((*named, *own)), None)


def release_that_knows(sm: int) -> tuple[str, str] | None:
    """The first Triton release whose ptxas knows a GPU, and the torch that requires it; None if none is known."""
    table = load("triton_releases")
    for first in (Version(row["ptxas"]) for row in table["gpu"] if row["sm"] == sm):
        for row in table["release"]:
            if Version(row["blackwell" if sm >= row["blackwell_from"] else "ptxas"]) >= first:
                return row["version"], row["torch"][0]
    return None


def release_for_torch(version: str) -> str:
    """The Triton that belongs to a torch release ("2.11.0+cu130" gives "3.6.0"), "" beyond the table."""
    branch = ".".join(version.split(".")[:2])
    return next((row["version"] for row in load("triton_releases")["release"] if branch in row["torch"]), "")
