"""Results without those that say nothing about this host: a fact that is missing passes no rule. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from wheel_checks.facts.gpu.expected import CPU, HostExpectation
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.presence import may_have_gpu
from wheel_checks.model import CheckResult, Outcome, Unavailable
from wheel_checks.rules.host.cause import CAUSES, Layer
from wheelproof.doctor.diagnosis import KEEPS_FROM_A_GPU, matches

_OF_TORCH = (Layer.WHEEL, Layer.FILES, Layer.CODE, Layer.TRITON)
_OF_A_GPU = (
    Layer.HARDWARE,
    Layer.KERNEL,
    Layer.FABRIC,
    Layer.CONTAINER,
    Layer.USERSPACE,
    Layer.VISIBILITY,
    Layer.CODE,
    Layer.TRITON,
)


def only_asked(
    results: Sequence[CheckResult], facts: HostFacts, expected: HostExpectation | None
) -> tuple[CheckResult, ...]:
    """The results, as skipped where a rule passed because what it judges is not there, or is not expected.

    A rule about torch needs a torch, one about GPUs a GPU. Where a CPU is expected, what keeps torch from a GPU is no
    fault.
    """
    has_gpu = may_have_gpu(facts)
    installed = facts.installed
    has_torch = isinstance(installed, Unavailable) or installed.torch is not None
    of_cpu = expected is not None and expected.accelerator == CPU

    def judged(result: CheckResult) -> CheckResult:
        cause = CAUSES.get(result.rule)
        if cause is None:
            return result
        if result.outcome is Outcome.PASS and cause.layer in _OF_TORCH and not has_torch:
            return replace(result, outcome=Outcome.SKIP, message="torch is not installed")
        if result.outcome is Outcome.PASS and cause.layer in _OF_A_GPU and not has_gpu and cause.explains:
            return replace(result, outcome=Outcome.SKIP, message="no NVIDIA GPU was found")
        of_gpus_alone = cause.explains and all(matches(name, KEEPS_FROM_A_GPU) for name in cause.explains)
        if result.outcome is Outcome.FAIL and of_cpu and of_gpus_alone:
            return replace(result, outcome=Outcome.SKIP, message=f"a CPU is expected: {result.message}", fix=None)
        return result

    return tuple(map(judged, results))
