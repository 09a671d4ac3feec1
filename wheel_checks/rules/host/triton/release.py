"""Triton is installed, once, and in the release that torch was made for."""

import re
from collections.abc import Iterator
from typing import Any

from wheel_checks.facts.host.commands import install, uninstall
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.presence import gpus_of_build, may_have_gpu
from wheel_checks.facts.host.torch.fit import is_cpu_build, torch_files
from wheel_checks.facts.host.triton_use import (
    release_for_torch,
    weight,
)
from wheel_checks.goal import Goal
from wheel_checks.model import Evidence, Finding, Fix, Severity, Unavailable, need
from wheel_checks.parsing import requirement_or_none, version_or_none
from wheel_checks.rules.host.cause import Layer, causes_in

WRONG_API = r"ImportError|cannot import|AttributeError|TypeError|unexpected keyword|positional argument|ModuleNotFound"

cause = causes_in(Layer.FILES, ("kernel:failed", "torch:import"))


@cause(
    "H14",
    "Triton is installed",
    explains=("triton:missing", "kernel:failed"),
    why="torch.compile and many packages need Triton. The metadata of torch for aarch64 up to 2.10 does not require "
    "it, and an installation without dependencies omits it.",
    example="torch._inductor.exc.TritonMissing: Cannot find a working triton installation",
    fix="Install exactly the release that torch requires.",
    sources="pytorch#143406",
    tested="environments without it; facts",
)
def triton_missing(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """No triton/, a torch for a GPU, and maybe one."""
    torch = torch_files(facts)
    if (
        need(facts.triton) is not None
        or torch is None
        or is_cpu_build(torch)
        or not (may_have_gpu(facts) or gpus_of_build(facts))
    ):
        return
    of_others = bool(torch.hip or torch.xpu)  # whose Triton is on PyTorch's index alone
    if of_others and not torch.triton:
        return
    release = release_for_torch(torch.version)
    wanted = torch.triton or (f"triton=={release}" if release else "triton")
    told_by = "METADATA of torch" if torch.triton else "table of Triton's releases; METADATA of torch has none"
    yield Finding(
        f"Triton is not installed, but torch {torch.version} needs {wanted} for torch.compile and kernels",
        (Evidence("requirement", wanted, told_by), Evidence("torch", torch.folder)),
        Fix("Install it.", install(facts, wanted, index=torch.version.partition("+")[2]))
        if of_others
        else Fix("Install it.", install(facts, wanted), Goal(wanted=(wanted,))),
    )


@cause(
    "H15",
    "Triton is the release that torch requires",
    why="torch's compiler uses Triton's internals, which change with every release. Its metadata pins the matching "
    "one, and a later installation of another package may replace it.",
    example="ImportError: cannot import name 'AttrsDescriptor' from 'triton.backends.compiler'",
    fix="Install the pinned release.",
    sources="ComfyUI#7106",
    tested="facts",
)
def wrong_release(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The version of triton/ is outside of torch's own requirement."""
    triton, torch = need(facts.triton), torch_files(facts)
    if triton is None or torch is None or not torch.triton or len(triton.owners) > 1:
        return
    required, version = requirement_or_none(torch.triton), version_or_none(triton.version)
    if required and version and not required.specifier.contains(version, prereleases=True):
        yield Finding(
            f"Triton is {triton.version}, but torch {torch.version} requires {torch.triton}",
            (
                Evidence("triton", triton.version, triton.folder),
                Evidence("requirement", torch.triton, "METADATA of torch"),
            ),
            Fix("Install the version that torch requires.", install(facts, torch.triton), Goal(wanted=(torch.triton,))),
            severity=_or_note(facts),
        )


def _or_note(facts: HostFacts) -> Severity:
    """An error when torch or the kernel fails to import or call something, else a note: it may be fine."""
    broken = not isinstance(facts.torch, Unavailable) and bool(facts.torch.error)
    return Severity.ERROR if broken or weight(facts, WRONG_API) is Severity.ERROR else Severity.NOTE


@cause(
    "H16",
    "one distribution owns the folder triton/",
    why="triton, pytorch-triton and their builds for other GPUs all install the folder triton/. The one installed last "
    "has overwritten files of the other, and removing one breaks both. This is inferred: the mechanism is that of the "
    "NVIDIA libraries that share paths.",
    example="triton 3.6.0 and pytorch-triton-rocm 3.5.1 are both installed",
    fix="Uninstall all of them, then install the one that torch requires.",
    sources="the mechanism of sglang PR31035",
    tested="RECORDs on a fake root; facts",
    certain=False,
)
def two_owners(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """Several RECORDs list triton/__init__.py."""
    triton, torch = need(facts.triton), torch_files(facts)
    if triton is None or len(triton.owners) < 2:
        return
    wanted = torch.triton if torch and torch.triton else "triton"
    kept = next((name for name in triton.owners if re.match(rf"{re.escape(name)}\b(?!-)", wanted)), "")
    gone = tuple(name for name in triton.owners if name != kept)
    goal = Goal(intact=(kept,), gone=gone) if kept else Goal(wanted=(wanted,), gone=gone)
    yield Finding(
        f"{' and '.join(triton.owners)} both own the folder triton/, whose files are a mixture",
        (Evidence("triton/__init__.py", triton.version, triton.folder), Evidence("RECORD", ", ".join(triton.owners))),
        Fix(
            "Remove all of them, then install the one that torch requires.",
            (uninstall(facts, *triton.owners), *install(facts, wanted)),
            goal,
        ),
        severity=_or_note(facts),
    )
