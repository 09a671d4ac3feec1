"""DOC601 to DOC608: variables and states of a GPU that hide it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.rules.case import NOTE, WARNING, Case
from tests.support.hosts import (
    GIB,
    cuda_fails,
    healthy,
    hgx,
    in_container,
    kernel_fails,
    replaced,
    with_variables,
    without_gpu,
)
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.probes import Counterfactual, CudaProbe, NvmlProbe
from wheel_checks.model import Unavailable

VISIBLE = "CUDA_VISIBLE_DEVICES"
BUSY = "AcceleratorError: CUDA error: CUDA-capable device(s) is/are busy or unavailable"
OUT_OF_MEMORY = "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB."
ECC = "AcceleratorError: CUDA error: uncorrectable ECC error encountered"


def hides(
    value: str, after: tuple[int, int] | None = (0, 1), facts: HostFacts | None = None, **fields: Any
) -> HostFacts:
    """cuInit 100 with this value, and ``after`` without it (None: that was not tried)."""
    facts = with_variables(cuda_fails(facts or healthy(), 100), CUDA_VISIBLE_DEVICES=value)
    trials = () if after is None else (Counterfactual(VISIBLE, value, (100, 0), after),)
    return replace(facts, counterfactuals=trials, **fields)


def hides_nothing() -> HostFacts:
    """Someone keeps programs off a GPU that is not there; the libcuda of a toolkit gives 100."""
    facts = hides("", None)
    return replace(without_gpu(facts), cuda=facts.cuda)


def shows(value: str, devices: int) -> HostFacts:
    """A board of eight GPUs; CUDA sees some with this value."""
    facts = with_variables(hgx(), CUDA_VISIBLE_DEVICES=value)
    assert isinstance(facts.cuda, CudaProbe)
    trial = Counterfactual(VISIBLE, value, (0, devices), (0, 8))
    return replaced(replace(facts, counterfactuals=(trial,)), "cuda", gpus=facts.cuda.gpus[:devices])


def gpus(facts: HostFacts, **fields: Any) -> HostFacts:
    """The same with these fields in all GPUs of NVML."""
    assert isinstance(facts.nvml, NvmlProbe)
    return replaced(facts, "nvml", gpus=tuple(replace(gpu, **fields) for gpu in facts.nvml.gpus))


def one_of(facts: HostFacts) -> HostFacts:
    """CUDA sees the first GPU only."""
    assert isinstance(facts.cuda, CudaProbe)
    return replaced(facts, "cuda", gpus=facts.cuda.gpus[:1])


def fails(says: str, **fields: Any) -> HostFacts:
    """A GPU with these fields, on which torch cannot compute."""
    return replaced(gpus(healthy(), **fields), "torch", computes=says)


CASES = [
    Case(
        "DOC601",
        "it is empty, and without it CUDA works",
        lambda: hides("", variables_origin={VISIBLE: "/home/user/.bashrc:12"}),
        says=("CUDA_VISIBLE_DEVICES is empty, which hides every GPU from CUDA",),
        evidence=("cuInit 0, 1 device (with it: 100)", '""'),
    ),
    Case(
        "DOC601",
        "it is -1",
        lambda: hides("-1"),
        says=('CUDA_VISIBLE_DEVICES is "-1", which hides every GPU from CUDA',),
    ),
    Case(
        "DOC601",
        "a scheduler says that there aren't any",
        lambda: hides("NoDevFiles"),
        says=('CUDA_VISIBLE_DEVICES is "NoDevFiles", which hides every GPU from CUDA',),
    ),
    Case(
        "DOC601",
        "without it there is another error, which lies deeper",
        lambda: hides("", (802, 0)),
        says=("CUDA_VISIBLE_DEVICES is empty, which hides every GPU from CUDA",),
        evidence=("cuInit 802 (with it: 100)",),
    ),
    Case(
        "DOC601",
        "nothing was tried, and there is a GPU",
        lambda: hides("", None),
        says=("CUDA_VISIBLE_DEVICES is empty, which hides every GPU from CUDA",),
    ),
    Case("DOC601", "it is empty, and CUDA finds no GPU without it either", lambda: hides("", (100, 0))),
    Case("DOC601", "it is empty on a machine without a GPU and without a driver", hides_nothing),
    Case(
        "DOC601", "CUDA fails for another reason", lambda: with_variables(cuda_fails(healthy(), 802), **{VISIBLE: ""})
    ),
    Case("DOC601", "it names the GPU", lambda: with_variables(healthy(), CUDA_VISIBLE_DEVICES="0")),
    Case("DOC601", "it is not set, and CUDA finds no GPU", lambda: cuda_fails(healthy(), 100)),
    Case(
        "DOC601",
        "the platform hides what it has given (E12)",
        lambda: with_variables(in_container(hides("")), NVIDIA_VISIBLE_DEVICES="all"),
    ),
    Case(
        "DOC602",
        "there is no such GPU",
        lambda: hides("1"),
        says=('CUDA_VISIBLE_DEVICES is "1", which selects no GPU: GPU 1 does not exist, only 0 does',),
        evidence=("0 GPUs",),
    ),
    Case(
        "DOC602",
        "the list ends in the middle",
        lambda: shows("0,9,1", 1),
        says=(
            'CUDA_VISIBLE_DEVICES is "0,9,1", but CUDA ignores it from "9" on: GPU 9 does not exist, only 0 to 7 do',
        ),
        evidence=("1 GPU", "cuInit 0, 8 devices (with it: 0, 1 device)"),
    ),
    Case(
        "DOC602",
        "a GPU is there twice",
        lambda: hides("0,0"),
        says=('CUDA_VISIBLE_DEVICES is "0,0", which selects no GPU: "0" occurs twice, which makes the list invalid',),
    ),
    Case(
        "DOC602",
        "the UUID is another machine's",
        lambda: hides("GPU-deadbeef"),
        says=('CUDA_VISIBLE_DEVICES is "GPU-deadbeef", which selects no GPU: no GPU has such a UUID',),
    ),
    Case(
        "DOC602",
        "the name means nothing to CUDA",
        lambda: hides("cuda:0"),
        says=(
            'CUDA_VISIBLE_DEVICES is "cuda:0", which selects no GPU: "cuda:0" is neither the number nor the UUID of '
            "a GPU",
        ),
    ),
    Case(
        "DOC602",
        "the MIG device is gone, as only the experiment shows",
        lambda: hides("MIG-6b1d"),
        says=('CUDA_VISIBLE_DEVICES is "MIG-6b1d", but CUDA finds no such device',),
    ),
    Case("DOC602", "a part of the GPUs is meant", lambda: shows("3,5", 2)),
    Case(
        "DOC602",
        "a GPU too many is named, and all that there are work",
        lambda: with_variables(healthy(), **{VISIBLE: "0,1"}),
    ),
    Case("DOC602", "the beginning of a UUID is enough", lambda: with_variables(healthy(), **{VISIBLE: "GPU-0e1f"})),
    Case("DOC602", "it is empty, which is another matter", lambda: hides("")),
    Case("DOC602", "it is right, and CUDA fails anyway", lambda: hides("0", (100, 0))),
    Case(
        "DOC603",
        "the only GPU",
        lambda: gpus(cuda_fails(healthy(), 100), mig_enabled=True, mig_devices=0),
        says=("GPU 0 (NVIDIA H200): in MIG mode without instances, and therefore invisible to CUDA",),
        evidence=("MIG enabled, 0 MIG devices",),
    ),
    Case(
        "DOC603",
        "a part of the GPUs",
        lambda: one_of(gpus(hgx(2), mig_enabled=True, mig_devices=0)),
        says=(
            "GPU 0 (NVIDIA H200), GPU 1 (NVIDIA H200): in MIG mode without instances, and therefore invisible to CUDA",
        ),
    ),
    Case("DOC603", "it has instances", lambda: gpus(healthy(), mig_enabled=True, mig_devices=2)),
    Case(
        "DOC603",
        "CUDA fails for another reason",
        lambda: gpus(cuda_fails(healthy(), 802), mig_enabled=True, mig_devices=0),
    ),
    Case("DOC603", "MIG is off", lambda: gpus(cuda_fails(healthy(), 100), mig_enabled=False, mig_devices=0)),
    Case(
        "DOC604",
        "two GPUs in instances, and CUDA shows one",
        lambda: one_of(gpus(hgx(2), mig_enabled=True, mig_devices=3)),
        says=("MIG is enabled: CUDA shows a process one of 6 MIG devices",),
        severity=WARNING,
        evidence=("3 MIG devices",),
    ),
    Case(
        "DOC604",
        "torch trips over the number",
        lambda: fails("RuntimeError: device < num_gpus INTERNAL ASSERT FAILED", mig_enabled=True, mig_devices=2),
        says=("MIG is enabled: CUDA shows a process one of 2 MIG devices",),
        severity=WARNING,
    ),
    Case("DOC604", "one instance is used, and works", lambda: gpus(healthy(), mig_enabled=True, mig_devices=7)),
    Case(
        "DOC604",
        "the process names its MIG device",
        lambda: with_variables(one_of(gpus(hgx(2), mig_enabled=True, mig_devices=3)), CUDA_VISIBLE_DEVICES="MIG-6b1d"),
    ),
    Case("DOC604", "CUDA shows fewer GPUs, and MIG is off", lambda: one_of(hgx(2))),
    Case(
        "DOC605",
        "another process has it",
        lambda: fails(BUSY, compute_mode=3, processes=(4711,)),
        says=("GPU 0 (NVIDIA H200) is in compute mode EXCLUSIVE_PROCESS, and held by process 4711",),
        evidence=("EXCLUSIVE_PROCESS", BUSY),
    ),
    Case(
        "DOC605",
        "no one may use it",
        lambda: replace(
            gpus(healthy(), compute_mode=2), torch=Unavailable("not started"), kernel=Unavailable("not started")
        ),
        says=("GPU 0 (NVIDIA H200) is in compute mode PROHIBITED: no process may use it",),
    ),
    Case("DOC605", "it is exclusive, and ours", lambda: gpus(healthy(), compute_mode=3, processes=(1,))),
    Case("DOC605", "torch fails otherwise", lambda: fails(OUT_OF_MEMORY, compute_mode=3)),
    Case("DOC605", "busy or unavailable, in the mode for all", lambda: fails(BUSY, compute_mode=0)),
    Case(
        "DOC606",
        "one process holds it all",
        lambda: fails(OUT_OF_MEMORY, memory_total=141 * GIB, memory_free=300 << 20, processes=(4711, 4712)),
        says=("GPU 0 (NVIDIA H200) is full: 300 MiB of 144384 MiB are free; process 4711, 4712",),
        evidence=("300 MiB", "4711,4712"),
    ),
    Case(
        "DOC606",
        "no one is to be seen",
        lambda: gpus(kernel_fails(healthy(), "OutOfMemoryError: CUDA out of memory."), memory_free=0),
        says=(
            "GPU 0 (NVIDIA H200) is full: 0 MiB of 144384 MiB are free; processes that are not listed here (of "
            "another container?)",
        ),
    ),
    Case("DOC606", "it is full, and torch computes", lambda: gpus(healthy(), memory_free=200 << 20, processes=(1,))),
    Case("DOC606", "out of memory, with plenty free", lambda: fails(OUT_OF_MEMORY)),
    Case("DOC606", "it does not say its memory", lambda: fails(OUT_OF_MEMORY, memory_total=None, memory_free=None)),
    Case(
        "DOC607",
        "a GPU that shares the machine's memory",
        lambda: gpus(healthy(), name="NVIDIA GB10", memory_total=None, memory_free=None),
        says=("harmless: NVML does not report a memory size for GPU 0 (NVIDIA GB10), which uses the host's memory",),
        severity=NOTE,
        evidence=("3 (NVML_ERROR_NOT_SUPPORTED: this GPU does not support it)",),
    ),
    Case("DOC607", "a GPU that shows", healthy),
    Case("DOC607", "a GPU that is lost says nothing at all", lambda: gpus(healthy(), memory_total=None, error=15)),
    Case(
        "DOC608",
        "a reset is due",
        lambda: gpus(healthy(), remap_pending=True),
        says=("GPU 0 (NVIDIA H200) has memory errors, and row remapping is pending: reset the GPU",),
        severity=WARNING,
        evidence=("pending",),
    ),
    Case(
        "DOC608",
        "the GPU is broken, and torch says so",
        lambda: fails(ECC, remap_pending=True, remap_failure=True),
        says=("GPU 0 (NVIDIA H200) has memory errors, and row remapping has failed: replace the GPU",),
        evidence=("failure",),
    ),
    Case("DOC608", "no row is bad", healthy),
    Case("DOC608", "the GPU cannot remap", lambda: gpus(healthy(), remap_pending=None, remap_failure=None)),
    Case("DOC608", "torch fails for another reason", lambda: fails(BUSY, remap_pending=True)),
]
