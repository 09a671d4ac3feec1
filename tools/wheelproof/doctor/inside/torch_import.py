"""Imports torch as a user's program would, and lets it compute: on the GPU by itself, then by a Triton kernel.

Arguments: the seconds for everything, the seconds for each step after the import, and the file with the kernel ("" for
none). A step that takes longer ends the process with the Python stack of all threads on standard error, unlike a kill.
It is started by ``python -c`` in the root folder: sys.path is that of a user's ``python -c``.
"""

from __future__ import annotations

import faulthandler
import importlib.machinery
import importlib.util
import json
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, cast

MOST_WARNINGS = 8
LONGEST = 1200  # characters of a message
TRACE_LINES = 16
MOST_GPUS = 64  # whose names are reported
# Prefixes of variables that affect torch.
PREFIXES = ("CUDA_", "NVIDIA_", "HIP_", "ROCR_", "HSA_", "ZE_", "ONEAPI_", "LD_", "TRITON_", "TORCH_", "PYTORCH_")
STACKS = 1  # standard output: stacks follow the name of the step
MARGIN = 0.5  # seconds before the deadline at which the stack is still reported


def say(**what: object) -> None:
    """Print one line of the answer at once: the next step may be the last."""
    os.write(1, ("\nwheelproof: " + json.dumps(what) + "\n").encode())


def shown(error: BaseException) -> str:
    """The message of an exception, in one line."""
    return " ".join("".join(traceback.format_exception_only(type(error), error)).split())[:LONGEST]


class Steps:
    """The steps, one after another, each with a deadline."""

    def __init__(self, seconds: float, each: float) -> None:
        self.end = time.monotonic() + seconds - MARGIN
        self.each = each

    def take(self, name: str, step: Callable[[], Any], failed: str, seconds: float | None = None) -> Any:
        """The result of ``step``; None after an exception, which is reported as ``failed``."""
        given = min(max(0.1, self.end - time.monotonic()), seconds or self.each)
        faulthandler.dump_traceback_later(given, exit=True, file=STACKS)
        say(at=name, hurried=given < self.each)  # a step that is ended early does not count as hanging
        started = time.monotonic()
        try:
            return step()
        except BaseException as error:  # noqa: BLE001  # a module may well exit; that, too, is an answer
            below = error.__traceback__ and error.__traceback__.tb_next  # without this function itself
            trace = "".join(traceback.format_exception(type(error), error, below)).splitlines()
            say(**{failed: shown(error), "trace": "\n".join(trace[-TRACE_LINES:])[-4 * LONGEST :]})
            return None
        finally:
            say(step=[name, round(time.monotonic() - started, 3)])


def tell_warnings() -> None:
    """Report warnings, a few times each, instead of printing them."""
    warned: list[str] = []

    def tell(message: Warning | str, *_: object, **__: object) -> None:
        if len(warned) < MOST_WARNINGS and str(message) not in warned:
            warned.append(str(message))
            say(warning=str(message)[:LONGEST])

    warnings.simplefilter("default", UserWarning)
    warnings.showwarning = cast("Any", tell)


def say_changes() -> None:
    """Say which variables of accelerators and the loader the start of Python has changed, and the file that names them.

    /proc/self/environ has the variables with which the process was started.
    """
    try:
        with open("/proc/self/environ", "rb") as file:
            pairs = [part.partition(b"=") for part in file.read().split(b"\0") if part]
    except OSError:
        return
    before = {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
    names = sorted({name for name in (*before, *os.environ) if name.startswith(PREFIXES)})
    for name in names:
        if before.get(name) != os.environ.get(name):
            say(change=[name, before.get(name), os.environ.get(name), origin_of(name)])


def origin_of(variable: str) -> str:
    """The file of the start-up that names the variable: of the customize modules, then of the .pth files."""
    modules = (sys.modules.get(name) for name in ("sitecustomize", "usercustomize"))
    files = [str(getattr(module, "__file__", "")) for module in modules if module]
    for folder in sys.path:
        try:
            files += sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".pth"))
        except OSError:
            continue
    for file in filter(os.path.isfile, files):  # a pipe of that name would never end
        try:
            with open(file, "rb") as opened:
                if variable.encode() in opened.read(1 << 20):
                    return file
        except OSError:
            continue
    return ""


def say_modules(before: set[str]) -> None:
    """Say which modules of the standard library were searched for on sys.path since ``before``."""
    folder = os.path.dirname(os.path.realpath(os.__file__))
    found = []
    for name in sorted(set(sys.modules) - before):
        file = getattr(sys.modules[name], "__file__", None) or ""
        if "." not in name and "site-packages" not in file and os.path.realpath(file).startswith(folder + os.sep):
            found.append(name)
    say(standard=found)


def say_extensions() -> None:
    """Report the Pythons for which the extension module of torch is built, and the suffixes that this one imports."""
    found = []
    for folder in sys.path:
        try:
            names = os.listdir(os.path.join(folder, "torch"))
        except OSError:
            continue
        found = sorted(name for name in names if name.startswith("_C.") and name.endswith(".so"))
        break
    say(extensions=found, suffixes=importlib.machinery.EXTENSION_SUFFIXES)


def import_torch() -> Any:
    """The module; its version, CUDA and path are reported."""
    import torch  # the step under test

    cuda = torch.version.cuda or ""
    say(imported=True, version=str(torch.__version__), cuda=cuda, path=str(torch.__file__))
    return torch


def compute(torch: Any, device: str) -> str:
    """A product of whole numbers, on the device and by another way: "" when both are the same, else the difference."""
    numbers = (torch.arange(64 * 64) % 13).reshape(64, 64).float()
    if device == "cpu":
        difference = numbers @ numbers - (numbers[:, :, None] * numbers[None, :, :]).sum(1)
    else:
        moved = numbers.cuda() if device == "cuda" else numbers.to(device)  # the first GPU as most programs ask for it
        difference = (moved @ moved).cpu() - numbers @ numbers
    wrong_by = difference.abs().max().item()
    return f"the product of two matrices is wrong by {wrong_by:g}" if wrong_by else ""


def gpus_of(torch: Any) -> tuple[str, Any]:
    """The name of the device and its module: CUDA's, which is ROCm's, too, or Intel's."""
    xpu = getattr(torch, "xpu", None)
    if torch.version.cuda or torch.version.hip or xpu is None or not xpu.is_available():
        return "cuda", torch.cuda
    return "xpu", xpu


def names_of(module: Any) -> list[str]:
    """The names of its GPUs, in the order of torch; none if it cannot say."""
    try:
        return [str(module.get_device_name(index)) for index in range(min(module.device_count(), MOST_GPUS))]
    except (AttributeError, RuntimeError):
        return []


def run_kernel(torch: Any, file: str) -> str:
    """The fault that the kernel in ``file`` reports; "" if its result was right."""
    spec = importlib.util.spec_from_file_location("wheelproof_kernel", file)
    if spec is None or spec.loader is None:
        return file + " is no Python module"
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return str(module.check(torch, "cuda"))


def main(seconds: float, each: float, kernel: str) -> None:
    """All steps, until one gives nothing to continue with."""
    faulthandler.enable(STACKS)
    tell_warnings()
    steps = Steps(seconds, each)
    say_changes()
    before = set(sys.modules)
    torch = steps.take("import torch", import_torch, "error", seconds)
    say_modules(before)
    if torch is None:
        say_extensions()
        return
    device, module = gpus_of(torch)
    available = steps.take(f"torch.{device}.is_available()", module.is_available, "init_error")
    say(available=available, device=device)
    if torch.version.cuda or torch.version.hip:
        steps.take("torch.cuda.init()", torch.cuda.init, "init_error")
    if not available:
        outcome = steps.take("a product on the CPU", lambda: compute(torch, "cpu"), "computes_on_cpu")
        if outcome is not None:
            say(computes_on_cpu=outcome)
        return
    devices = steps.take(f"torch.{device}.device_count()", module.device_count, "init_error") or 0
    say(devices=devices)
    for index in range(min(max(devices, 1), MOST_GPUS)):
        place = device if index == 0 else f"{device}:{index}"
        outcome = steps.take(
            "a product on the GPU" + f" {index}" * bool(index), partial(compute, torch, place), "computes"
        )
        if outcome is not None:
            say(computes=f"GPU {index}: {outcome}" if outcome and index else outcome, computed=index + 1)
        if outcome != "":
            break
    say(names=steps.take("the names of the GPUs", lambda: names_of(module), "init_error"))
    if kernel:
        outcome = steps.take("a Triton kernel", lambda: run_kernel(torch, kernel), "kernel")
        if outcome is not None:
            say(kernel=outcome)


main(float(sys.argv[1]), float(sys.argv[2]), sys.argv[3])
faulthandler.cancel_dump_traceback_later()
say(done=True)
os._exit(0)  # teardown of libraries is not tested
