"""Decode the output and exit status of the programs in ``inside`` into facts."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from wheel_checks.facts.host.probes import ChildEnd, CudaGpu, CudaProbe, KernelProbe, NvmlGpu, NvmlProbe, TorchProbe
from wheel_checks.facts.host.start_up import StartUp, VariableChange
from wheel_checks.model import Unavailable
from wheelproof.doctor.children import TIME_IS_OVER

INSIDE = Path(__file__).parent / "inside"
TORCH_PROGRAM = "torch_import.py"
KERNEL_STEP = "a Triton kernel"  # its name in torch_import.py
MARK = "wheelproof: "


@dataclass(frozen=True)
class ChildOutput:
    """The exit status and output of a child."""

    end: ChildEnd
    output: bytes

    @cached_property
    def messages(self) -> list[dict[str, Any]]:
        """The messages, in order."""
        lines = self.output.decode(errors="replace").splitlines()
        found = []
        for line in lines:
            if line.startswith(MARK):
                with contextlib.suppress(ValueError):  # the last line of a child that was killed may be half a line
                    found.append(json.loads(line.removeprefix(MARK)))
        return found

    @cached_property
    def values(self) -> dict[str, Any]:
        """All messages merged; later values win."""
        return {name: value for message in self.messages for name, value in message.items()}

    def each(self, name: str) -> Iterator[Any]:
        """The values of all messages with this name."""
        return (message[name] for message in self.messages if name in message)

    @property
    def began(self) -> bool:
        """Whether the program was started at all: a Python without ctypes fails earlier."""
        return bool(self.messages)

    @property
    def died(self) -> bool:
        """Whether it hung, or was ended by a signal."""
        return self.end.hang or bool(self.end.signal)

    @property
    def code(self) -> int:
        """The code; -1 when the program ended without any, 0 when it hung or crashed before it had one."""
        return int(self.values.get("code", 0 if self.died else -1))

    @property
    def fault(self) -> str:
        """The message of the loader, or the end of a program without a code."""
        if "fault" in self.values or "code" in self.values or self.died:
            return str(self.values.get("fault", ""))
        return f"the program exited with code {self.end.exit_code}: {_last_line(self.end.output)}"

    @property
    def failed_at(self) -> str:
        """The call that failed, hung or crashed."""
        return str(self.values.get("at", "start") if self.died else self.values.get("failed_at", ""))

    def as_nvml(self) -> NvmlProbe:
        """The answer of nvml.py."""
        return NvmlProbe(
            self.end,
            self.code,
            self.fault,
            self.values.get("library", ""),
            self.values.get("driver_version", ""),
            tuple(self._nvml_gpus),
            self.values.get("confidential_ready"),
            self.failed_at,
        )

    @property
    def _nvml_gpus(self) -> Iterator[NvmlGpu]:
        health = {more["index"]: more for more in self.each("health")}
        for gpu in self.each("gpu"):
            processes = tuple(gpu.get("processes", ()))
            yield NvmlGpu(**{**gpu, **health.get(gpu["index"], {}), "processes": processes})

    def as_cuda(self) -> CudaProbe:
        """The answer of cuda.py."""
        return CudaProbe(
            self.end,
            self.code,
            self.fault,
            self.values.get("library", ""),
            self.values.get("driver_cuda", 0),
            self.failed_at,
            tuple(CudaGpu(**{**gpu, "capability": tuple(gpu["capability"])}) for gpu in self.each("gpu")),
        )

    def as_torch(self) -> TorchProbe:
        """The part of torch: a hang or a crash in the kernel is not its fault."""
        reported = {name: value for one in self.messages if "kernel" not in one for name, value in one.items()}
        steps = dict(self.each("step"))
        end = self._honest_end
        if reported.get("at") == KERNEL_STEP:
            steps.pop(KERNEL_STEP, None)
            end = ChildEnd(seconds=round(sum(steps.values()), 3))
        hurried = end.hang and bool(reported.get("hurried"))
        if hurried:
            end = ChildEnd(seconds=end.seconds)
        broke = hurried or end.hang or bool(end.signal) or bool(end.exit_code)
        if broke and not (hurried or end.hang or end.signal):  # a library has ended the process
            exited = f"the process exited with code {end.exit_code}: {_last_line(end.output)}"
            reported["init_error" if reported.get("imported") else "error"] = exited
        return TorchProbe(
            end,
            reported.get("imported", False),
            reported.get("version", ""),
            reported.get("cuda", ""),
            reported.get("path", ""),
            reported.get("available"),
            reported.get("devices", 0),
            reported.get("error", ""),
            self._stack if broke else reported.get("trace", ""),
            reported.get("init_error", ""),
            reported.get("computes"),
            tuple(self.each("warning")),
            reported.get("at", "start") if broke else "",
            steps,
            tuple(reported.get("names") or ()),
            reported.get("device", ""),
            reported.get("computes_on_cpu"),
            StartUp(
                tuple(VariableChange(*change) for change in self.each("change")),
                *(tuple(reported.get(name) or ()) for name in ("standard", "extensions", "suffixes")),
            ),
            computed=reported.get("computed", 0),
            hurried=hurried,
        )

    def as_kernel(self) -> KernelProbe | Unavailable:
        """The part of the kernel; Unavailable when it was never reached."""
        if self.values.get("at") != KERNEL_STEP:
            no_gpu = self.values.get("available") is False
            return Unavailable("torch sees no GPU" if no_gpu else "torch did not reach that step")
        end = self._honest_end
        if end.hang and self.values.get("hurried"):
            return TIME_IS_OVER
        if not self.values.get("done"):
            error = "" if end.hang or end.signal else f"the process exited with code {end.exit_code}"
            return KernelProbe(end, error, self._stack)
        message = next((message for message in self.messages if "kernel" in message), {})
        seconds = dict(self.each("step")).get(KERNEL_STEP, 0.0)
        end = replace(end, seconds=seconds, output=end.output if message.get("kernel") else "")
        return KernelProbe(end, message.get("kernel", ""), message.get("trace", ""))

    @property
    def _honest_end(self) -> ChildEnd:
        """The end; the program's own watchdog ends a hanging step with exit code 1."""
        text = self._after_last_message
        return replace(self.end, hang=True) if "Timeout (" in text and not self.values.get("done") else self.end

    @property
    def _after_last_message(self) -> str:
        return self.output.decode(errors="replace").rpartition(MARK)[2].partition("\n")[2]

    @property
    def _stack(self) -> str:
        """The Python stack of the thread that runs our program, innermost first, without Python's import machinery."""
        threads = self._after_last_message.split("\n\n")
        ours = next((thread for thread in threads if TORCH_PROGRAM in thread), "")
        frames = [line.strip() for line in ours.splitlines() if line.startswith("  File")]
        return "\n".join(line for line in frames if "<frozen" not in line and TORCH_PROGRAM not in line)


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2]
