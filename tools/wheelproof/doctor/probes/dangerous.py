"""The dangerous steps: NVML, CUDA, torch and one Triton kernel, each in a child with a deadline, all at once.

NVML and CUDA are asked by ctypes, and by the interpreter under diagnosis, so that the loader searches where it searches
for that interpreter's torch: the same variables, the same search path of the executable, the same C library. It is
started without site-packages (``-I -S``). When it cannot run such a program at all, our own interpreter asks.

When CUDA gives a bad answer, it is asked again without each variable that could be guilty, one at a time: that is the
proof.

Triton gets an empty cache next to the user's, which is removed afterwards. What libraries of NVIDIA's do by themselves
is not prevented: where device nodes are missing, they may start nvidia-modprobe, as every program that uses CUDA does.
"""

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.presence import shows_gpu
from wheel_checks.facts.host.probes import Counterfactual, CudaProbe, KernelProbe, NvmlProbe, TorchProbe
from wheel_checks.facts.host.visible import expected_devices
from wheel_checks.model import Unavailable
from wheel_checks.process import end_all
from wheel_checks.sources.regular_file import home_folder
from wheel_checks.sources.scratch_folder import scratch_folder
from wheelproof.doctor.answers import INSIDE, TORCH_PROGRAM, Answer
from wheelproof.doctor.children import TIME_IS_OVER, Budget, run_child
from wheelproof.doctor.probes.edited import edited_files, owner_of

NVML_SECONDS = 15.0
CUDA_SECONDS = 20.0  # a server with eight GPUs and no persistence daemon takes ten
EXPERIMENT_SECONDS = 10.0
TORCH_STEP_SECONDS = 25.0  # of each step after the import, which takes what is left
RESERVE = 2.0  # seconds that are left for the diagnosis

# Whose absence can change what cuInit gives. CUDA_DEVICE_ORDER and NVIDIA_* cannot: one only sorts, the others are read
# by the container runtime.
SUSPECTS = (
    "CUDA_VISIBLE_DEVICES",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "CUDA_MPS_PIPE_DIRECTORY",
    "CUDA_INJECTION64_PATH",
)
MOST_ENTRIES = 2  # of LD_LIBRARY_PATH that are tried alone

_LIKE_A_USER = 'import sys; file = sys.argv.pop(1); exec(compile(open(file, "rb").read(), file, "exec"))'
_NO_DRIVER = Unavailable("there is no NVIDIA GPU on the PCI bus, and no driver library")


class Answers(NamedTuple):
    """What the steps gave; the names are those of the fields of :class:`HostFacts`."""

    nvml: NvmlProbe | Unavailable
    cuda: CudaProbe | Unavailable
    counterfactuals: tuple[Counterfactual, ...]
    torch: TorchProbe | Unavailable
    kernel: KernelProbe | Unavailable


def read_dangerous(
    facts: HostFacts,
    *,
    environment: Mapping[str, str],
    budget: Budget,
    root: str = "/",
) -> Answers:
    """Take all steps with ``environment``, the user's own, whole.

    ``facts`` is what is known so far: the interpreter, the PCI bus, the driver, the device nodes. torch is imported
    without a GPU, too: one that cannot be imported would not work with a GPU either. Programs of another ``root``
    cannot be run.
    """
    if root != "/":
        elsewhere = Unavailable(f"{root} is not the running system, so nothing in it is run")
        return Answers(elsewhere, elsewhere, (), elsewhere, elsewhere)
    known = None if isinstance(facts.interpreter, Unavailable) else facts.interpreter.path
    runs = _Runs(known or sys.executable, environment, budget)
    gpu_shows = shows_gpu(facts)
    with ThreadPoolExecutor(4) as pool:
        try:
            nvml, cuda = pool.submit(runs.nvml), pool.submit(runs.cuda)
            torch = pool.submit(runs.torch) if known else None
            seen = nvml.result(), cuda.result()
            if not gpu_shows and all(_is_missing(probe) for probe in seen):
                seen = _NO_DRIVER, _NO_DRIVER
            experiments = () if _was_killed(seen[1]) else tuple(runs.counterfactuals(*seen))
            return Answers(*seen, experiments, *_torch_result(torch, facts))
        except BaseException:
            end_all()  # or the pool would wait for them
            raise


def _was_killed(probe: CudaProbe | Unavailable) -> bool:
    """Whether someone else has ended it: the user who interrupts us, or a system that is out of memory."""
    return not isinstance(probe, Unavailable) and probe.end.signal == "SIGKILL"


def _is_missing(probe: NvmlProbe | CudaProbe | Unavailable) -> bool:
    """Whether the loader finds no such library: where no GPU shows either, that is not a fault."""
    return not isinstance(probe, Unavailable) and probe.code == -1 and "No such file" in probe.fault


def _torch_result(
    future: Future[tuple[TorchProbe | Unavailable, KernelProbe | Unavailable]] | None, facts: HostFacts
) -> tuple[TorchProbe | Unavailable, KernelProbe | Unavailable]:
    if future is not None:
        return future.result()
    reason = facts.interpreter if isinstance(facts.interpreter, Unavailable) else Unavailable("no interpreter is known")
    return reason, reason


@dataclass(frozen=True)
class _Runs:
    """The steps in children, by this interpreter, in this environment, within this time."""

    python: str
    environment: Mapping[str, str]
    budget: Budget

    def nvml(self) -> NvmlProbe | Unavailable:
        answer = self._ask("nvml.py", NVML_SECONDS, self.environment)
        return answer if isinstance(answer, Unavailable) else answer.as_nvml()

    def cuda(self) -> CudaProbe | Unavailable:
        answer = self._ask("cuda.py", CUDA_SECONDS, self.environment)
        return answer if isinstance(answer, Unavailable) else answer.as_cuda()

    def torch(self) -> tuple[TorchProbe | Unavailable, KernelProbe | Unavailable]:
        with _private_cache(self.environment) as environment:
            deadline = self.budget.left - RESERVE
            if deadline <= 0:
                return TIME_IS_OVER, TIME_IS_OVER
            command = [self.python, "-B", "-c", _LIKE_A_USER, str(INSIDE / TORCH_PROGRAM)]
            command += [f"{deadline:.1f}", f"{TORCH_STEP_SECONDS:g}", str(INSIDE / "kernel.py")]
            answer = Answer(*run_child(command, deadline=deadline, environment=environment))
        torch = answer.as_torch()
        if torch.trace and not torch.imported:
            torch = replace(torch, edited=edited_files(torch.trace))
        changes = tuple(replace(one, owner=owner_of(one.origin)) for one in torch.start.changes)
        if changes:
            torch = replace(torch, start=replace(torch.start, changes=changes))
        return torch, answer.as_kernel()

    def counterfactuals(self, nvml: NvmlProbe | Unavailable, cuda: CudaProbe | Unavailable) -> Iterator[Counterfactual]:
        """CUDA again without each suspect; nothing when its answer was good."""
        if isinstance(cuda, Unavailable):
            return
        code, devices = before = cuda.outcome
        if not code and devices and devices >= expected_devices(nvml, self.environment):
            return
        trials = list(_trials(self.environment))
        with ThreadPoolExecutor(max(1, len(trials))) as pool:
            answers = pool.map(lambda trial: self._ask("cuda.py", EXPERIMENT_SECONDS, trial[2]), trials)
            for (name, entry, _), answer in zip(trials, answers, strict=True):
                if not isinstance(answer, Unavailable):
                    yield Counterfactual(name, self.environment[name], before, answer.as_cuda().outcome, entry)

    def _ask(self, program: str, seconds: float, environment: Mapping[str, str]) -> Answer | Unavailable:
        """Run a program of the folder ``inside`` by the interpreter, or by ours when that cannot even begin."""
        for python in dict.fromkeys((self.python, sys.executable)):
            deadline = self.budget.step(seconds)
            if not deadline:
                return TIME_IS_OVER
            command = [python, "-I", "-S", "-B", str(INSIDE / program)]
            answer = Answer(*run_child(command, deadline=deadline, environment=environment))
            if answer.began or answer.end.hang or answer.end.signal:
                break
        return answer


def _trials(environment: Mapping[str, str]) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """A variable, "" or the one entry of it that is meant, and the environment without that."""
    entries = environment.get("LD_LIBRARY_PATH", "").split(":")
    suspicious = list(dict.fromkeys(entry for entry in entries if _is_suspicious(entry)))
    for entry in suspicious[:MOST_ENTRIES]:
        if rest := ":".join(other for other in entries if other != entry):
            yield "LD_LIBRARY_PATH", entry, {**environment, "LD_LIBRARY_PATH": rest}
    for name in SUSPECTS:
        if environment.get(name) or (name == "CUDA_VISIBLE_DEVICES" and name in environment):
            yield name, "", {key: value for key, value in environment.items() if key != name}


def _is_suspicious(entry: str) -> bool:
    """A folder of stubs or of compatibility libraries, or any with its own libcuda."""
    return bool(entry) and ("stubs" in entry or "compat" in entry or os.path.lexists(Path(entry, "libcuda.so.1")))


@contextlib.contextmanager
def _private_cache(environment: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """The environment with an empty cache for Triton, in place of the user's own, that vanishes afterwards.

    What is wrong with that place (read-only, noexec, full) shows anyway. Where no folder can be made, Triton gets
    the user's cache, and fails as it would for the user.
    """
    home = environment.get("TRITON_HOME") or home_folder(environment)
    place = Path(environment.get("TRITON_CACHE_DIR") or Path(home, ".triton", "cache")).absolute()
    existing = next((folder for folder in (place, *place.parents) if os.path.isdir(folder)), Path("/"))
    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(scratch_folder(where=existing))
        except OSError:
            yield environment
        else:
            yield {**environment, "TRITON_CACHE_DIR": str(folder)}
