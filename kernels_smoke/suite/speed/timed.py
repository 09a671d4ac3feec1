"""What is timed, judged: in the very shapes and memory in which it is timed."""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from kernels_smoke.suite.correctness.draw import POISON, Draw
from kernels_smoke.suite.correctness.guards import guarded
from kernels_smoke.suite.correctness.judge import compared, written_by
from kernels_smoke.suite.model import Kernel, Tensors
from kernels_smoke.suite.speed.timing import InputSet

PART = 2**25  # elements of a result that are judged at once: float64 copies of them take a few gigabytes
LAUNCHES = (4, 256)  # at least and at most, whose results must have the same bits
SECONDS = 0.03  # that all but the least number of launches take together, with their comparisons
QUEUED = 4  # launches whose comparisons are read at once


@dataclass
class Judged:
    """What the first launch wrote, judged by the checks of the kernel; every other launch is held to its bits.

    ``message`` says what is wrong, and ``outputs`` what the checks measured.
    """

    kernel: Kernel
    module: ModuleType
    sets: Sequence[InputSet]
    before: dict[str, torch.Tensor]  # the inputs that are changed, as they were drawn
    wrote: dict[str, torch.Tensor]
    outputs: dict[str, dict[str, Any]]
    message: str

    def after(self) -> str:
        """What is wrong with what the timed launches left; empty when every set has the bits of the first launch.

        What was modified in place is not what it was, and what is returned is gone, so such a kernel is launched once
        more instead.
        """
        if self.before or self.kernel.returns:
            return self._repeated(self.sets[:1], "behind the timed launches")
        for number, each in enumerate(self.sets):
            if message := self._differing(each.outputs, f"the timed launches on set {number} of {len(self.sets)}"):
                return message
        return ""

    def restore(self) -> None:
        """Give the sets the values back that they had before all launches."""
        for each in self.sets:
            for name, value in self.before.items():
                each.inputs[name].copy_(value)

    def launch(self, each: InputSet) -> dict[str, torch.Tensor]:
        """Launch once, from what was drawn and into poison, and return all that was written."""
        for name, value in self.before.items():
            each.inputs[name].copy_(value)
        for output in each.outputs.values():
            if output.numel():
                (output if output.ndim else output.reshape(1)).view(torch.uint8).fill_(POISON)
        returned = self.kernel.launch(self.module, each.inputs, each.outputs)
        return written_by(self.kernel, each.inputs, each.outputs, returned)

    def repeat(self) -> str:
        """Launch on every set, and again on all of them while there is time; what is wrong when bits differ."""
        until = time.monotonic() + SECONDS
        queued: list[tuple[str, str, torch.Tensor]] = []
        for number in range(1, max(LAUNCHES[1], len(self.sets))):
            if number >= max(LAUNCHES[0], len(self.sets)) and time.monotonic() > until:
                break
            each, what = self.sets[number % len(self.sets)], f"launch {number + 1}, on equal inputs,"
            if not self.kernel.repeatable:
                if message := self._repeated([each], what):
                    return message
                continue
            written = self.launch(each)
            queued += [(what, name, differing(tensor, self.wrote[name])) for name, tensor in written.items()]
            if number % QUEUED == 0 and (message := _first(queued)):
                return message
        return _first(queued)

    def _repeated(self, sets: Sequence[InputSet], what: str) -> str:
        for each in sets:
            if message := self._differing(self.launch(each), what):
                return message
        return ""

    def _differing(self, written: Tensors, what: str) -> str:
        for name, tensor in written.items():
            if not self.kernel.repeatable:
                if message := str(self.kernel.checks[name](tensor, self.wrote[name])["message"]):
                    return f"{name}: {what} wrote something else than the first launch: {message}"
            elif message := _first([(what, name, differing(tensor, self.wrote[name]))]):
                return message
        return ""


def judge_timed(kernel: Kernel, module: ModuleType, sets: Sequence[InputSet]) -> Judged:
    """Launch ``kernel`` on ``sets``, which hold equal inputs, and judge all that it writes there.

    The first launch is compared with the reference, every element of it, in parts of ``PART`` elements. Those on the
    other sets, and some more on the same, must write the same bits: all kernels here promise that, having no atomics.
    One from outside that does not promise it must write the same within its tolerance.
    """
    first = sets[0]
    before = {name: first.inputs[name].clone() for name in (*kernel.modifies, *kernel.scratch)}
    reference = kernel.reference(first.inputs)
    judged = Judged(kernel, module, sets, before, {}, {}, "")
    with _guarded(first) if kernel.returns else contextlib.nullcontext():
        written = judged.launch(first)
    judged.outputs = compared(kernel, first.inputs, reference, written, elements=PART)
    del reference
    judged.wrote = {name: tensor.clone() for name, tensor in written.items()}
    faults = [f"{name}: {result['message']}" for name, result in judged.outputs.items() if result["message"]]
    judged.message = "; ".join(faults) or judged.repeat()
    judged.restore()
    return judged


def _guarded(first: InputSet) -> contextlib.AbstractContextManager[object]:
    """Poison what the kernel allocates itself: what it does not write must not be what an earlier run left there."""
    device = next((value.device.type for value in first.inputs.values() if isinstance(value, torch.Tensor)), "cpu")
    guards: contextlib.AbstractContextManager[object] = guarded(Draw(0, device))
    return guards


def differing(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """In how many words two tensors of a shape differ; on their device, so that the next launch need not wait.

    Words have eight bytes where that divides the memory of both, and one where not.
    """
    flat = [tensor.contiguous().reshape(-1).view(torch.uint8) for tensor in (one, other)]
    if not any(each.numel() % 8 or each.storage_offset() % 8 for each in flat):
        flat = [each.view(torch.int64) for each in flat]
    return torch.count_nonzero(flat[0] != flat[1])


def _first(queued: list[tuple[str, str, torch.Tensor]]) -> str:
    """What is wrong with the first of these results (launch, name, words that differ); forgets them."""
    counts = torch.stack([count for _, _, count in queued]).tolist() if queued else []
    found = next((each for each in zip(counts, queued, strict=True) if each[0]), None)
    queued.clear()
    if found is None:
        return ""
    count, (what, name, _) = found
    return f"{name}: {what} wrote other bits than the first launch, in {count} words"
