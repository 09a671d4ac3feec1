"""Which GPUs a run tries, and what is kept of each. The parent's side; needs no torch."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from kernels_smoke.suite.advice import command
from kernels_smoke.suite.plan import Document
from kernels_smoke.suite.probes.answer import Answer
from kernels_smoke.suite.probes.answer import record as probe_record

VISIBLE = "CUDA_VISIBLE_DEVICES"
INSTANCE = "MIG-"  # what the UUID of a MIG instance begins with
EXCLUSIVE = "exclusive process"  # the compute mode in which a GPU takes one process at a time
PROHIBITED = "prohibited"  # the compute mode in which nothing may run on a GPU
BLOCKING = {"driver", "torch", "cuda_init"}  # probes without which every kernel would only fail again

Gpu = dict[str, Any]
Ask = Callable[[Mapping[str, str]], Mapping[str, Any]]  # the driver's answer in this environment


@dataclass
class GpuRun:
    """One GPU and the records of it. ``alone``: the run has no other, and its children see what the parent sees."""

    gpu: Gpu
    document: Document
    alone: bool = True

    @property
    def uuid(self) -> str:
        """``GPU-...``, or ``MIG-...``."""
        return str(self.gpu["uuid"])

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a child that uses this GPU and no other."""
        return {} if self.alone else {VISIBLE: self.uuid}

    @property
    def label(self) -> str:
        """``GPU 1 (NVIDIA H200, GPU-...)``."""
        return label(self.gpu)

    @property
    def may_go_on(self) -> bool:
        """False when CUDA itself does not work on it."""
        return may_go_on(self.document)


def label(gpu: Mapping[str, Any]) -> str:
    """``GPU 1 (NVIDIA H200, GPU-...)``."""
    return f"GPU {gpu['index']} ({gpu['name']}, {gpu['uuid']})"


def may_go_on(document: Document) -> bool:
    """False when CUDA itself does not work: every kernel would only say so again."""
    return not any(probe["outcome"] in {"fail", "error"} and probe["name"] in BLOCKING for probe in document.probes)


def chosen(
    answer: Mapping[str, Any], asked: Sequence[str], ask: Ask, environment: Mapping[str, str] = os.environ
) -> tuple[list[Gpu], list[dict[str, Any]]]:
    """The GPUs that are to be tried, and a probe for each that is missing. ``answer`` is the driver's.

    An item of ``asked`` is a number, as CUDA counts, or a UUID or its beginning. Without any, all GPUs are
    tried that CUDA sees, and every MIG instance that NVML lists where CUDA_VISIBLE_DEVICES is not set: CUDA shows a
    process only one of these.
    """
    seen: list[Gpu] = list(answer["gpus"])
    listed = answer.get("listed") or []
    if asked:
        return _asked(seen, asked, ask, environment)
    if not seen or VISIBLE in environment:
        return seen, []
    instances = [uuid for entry in listed for uuid in entry["instances"]]
    whole = [gpu for gpu in seen if not gpu["uuid"].startswith(INSTANCE)]
    found = _instances(instances, ask, environment)
    missing = [_missing(uuid, "CUDA does not open it") for uuid in instances if uuid not in {g["uuid"] for g in found}]
    known = {gpu["uuid"] for gpu in whole}
    for entry in listed:
        if entry["instances"] or entry["uuid"] in known:
            continue
        name = f"number {entry['index']} of NVML" + (f" ({entry['uuid']})" if entry["uuid"] else ", which is lost")
        missing.append(_missing(name, "NVML lists it, and CUDA does not see it"))
    chosen_ones = [*whole, *found] if instances else seen
    return _numbered(chosen_ones), missing


def _asked(
    seen: Sequence[Gpu], asked: Sequence[str], ask: Ask, environment: Mapping[str, str]
) -> tuple[list[Gpu], list[dict[str, Any]]]:
    found: list[Gpu] = []
    missing = []
    elsewhere = _instances([item for item in asked if item.startswith(INSTANCE)], ask, environment)
    for item in asked:
        number = item.isdecimal()
        same = [gpu for gpu in seen if (gpu["index"] == int(item) if number else gpu["uuid"].startswith(item))]
        same = same or [gpu for gpu in elsewhere if gpu["uuid"].startswith(item)]
        if len(same) != 1:
            there = ", ".join(f"{gpu['index']} ({gpu['uuid']})" for gpu in seen) or "none"
            why = f"{len(same)} begin so" if same else f"CUDA sees {there}"
            missing.append(_missing(item, why))
        found += [gpu for gpu in same[:1] if len(same) == 1 and gpu not in found]
    return _numbered(found), missing


def _instances(uuids: Sequence[str], ask: Ask, environment: Mapping[str, str]) -> list[Gpu]:
    """Those of these MIG instances that CUDA opens, each in a process that sees it alone."""
    if not uuids:
        return []
    with ThreadPoolExecutor(min(len(uuids), 8)) as threads:
        answers = threads.map(lambda uuid: ask({**environment, VISIBLE: uuid}), uuids)
        return [gpu | {"uuid": uuid} for uuid, answer in zip(uuids, answers, strict=True) for gpu in answer["gpus"][:1]]


def _numbered(gpus: Iterable[Gpu]) -> list[Gpu]:
    """GPUs with numbers that differ: instances are each number 0 in a process that sees them alone."""
    gpus = list(gpus)
    if len({gpu["index"] for gpu in gpus}) == len(gpus):
        return gpus
    return [gpu | {"index": number} for number, gpu in enumerate(gpus)]


def _missing(name: str, why: str) -> dict[str, Any]:
    return probe_record("gpus", Answer("error", f"GPU {name} could not be tried: {why}"))


def prohibited(gpu: Gpu) -> dict[str, Any] | None:
    """A probe that says that nothing may run on ``gpu``; None where something may."""
    if gpu["compute_mode"] != PROHIBITED:
        return None
    message = f"{label(gpu)} is in the compute mode 'prohibited': nothing may run on it"
    mode = command("sudo", "nvidia-smi", "-i", gpu["uuid"], "--compute-mode=DEFAULT")
    return probe_record("gpu", Answer("fail", message, {}, (mode, "or, where that is meant, name the others: --gpus")))
