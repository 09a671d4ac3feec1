"""Who brought a torch that does not fit."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from wheel_checks.data import load
from wheel_checks.facts.host.advice import reinstall_torch, right_build
from wheel_checks.facts.host.commands import repair, uninstall
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.software import Package, TorchFiles
from wheel_checks.facts.host.torch.choice import machine_of, public
from wheel_checks.facts.host.torch.demands import shares_paths
from wheel_checks.facts.host.torch.fit import cuda_major, gpus_without_code, misfit, torch_package
from wheel_checks.facts.host.torch.origin import automatic_settings, newest_release, origin, outbid_index
from wheel_checks.facts.host.torch.timeline import Replacement, asked_for, history, replacement
from wheel_checks.model import Evidence, Finding, Fix
from wheel_checks.phrases import summarised
from wheel_checks.rules.host.cause import Layer, causes_in
from wheel_checks.rules.host.torch_evidence import code_list, gpu_names, installed_torch, version_file

HARM = ("torch:cpu-build", "torch:unavailable", "torch:init", "torch:compute", "triton:missing")
SHOWN = 6  # rows of a timeline, and names in a list

cause = causes_in(Layer.WHEEL, HARM)


@cause(
    "A03",
    "no other package has replaced torch",
    why="When a package pins torch, the installer replaces the installed torch by the package index's wheel: on "
    "aarch64 perhaps a CPU build, elsewhere a build for another CUDA. The libraries of the previous build remain as "
    "traces.",
    example="pip install whisperx: Attempting uninstall: torch; torch.cuda.is_available() was True before",
    fix="Reinstall the right build of the same release; next time use --no-deps or a constraints file.",
    sources="pytorch#160162, pyannote-audio#1675, WhisperJAV#334, xformers#1193",
    tested="facts; a real pip and uv with their own indexes, on one of which a package pins torch",
)
def replaced_by_a_dependency(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A torch that does not fit, next to what only another torch needs."""
    torch, before = installed_torch(facts), replacement(facts)
    if torch is None or before is None or origin(facts) != "A03":
        return
    when = f", which was installed {before.installation.time}" if before.installation else ""
    message = f"torch {torch.version}{when}"
    if before.pinned_by:
        together = " together with" if before.installation else ", required by"
        message += f"{together} {' and '.join(_pinning(package, text) for package, text in before.pinned_by[:SHOWN])}"
    message += f", has replaced another build; it {misfit(facts)}"
    yield Finding(message, tuple(_traces(facts, torch, before)), _bring_back(facts, before))


def _pinning(package: Package, requirement: str) -> str:
    return f"{package.name} {package.version} ({requirement.partition(';')[0].strip()})"


def _traces(facts: HostFacts, torch: TorchFiles, before: Replacement) -> Iterator[Evidence]:
    yield version_file(torch)
    if before.orphans:
        names = [package.name for package in before.orphans]
        value = f"{len(names)}: {summarised(names, SHOWN)}"
        yield Evidence("no longer required by any distribution", value, "Requires-Dist of every distribution")
    for companion in before.companions:
        value = f"{companion.version} is built for {companion.build}"
        yield Evidence(companion.name, value, f"{companion.folder}/{companion.name}")
    package = torch_package(facts)
    if package and asked_for(package) is False:
        yield Evidence("requested", "no: another package required it", "REQUESTED is absent from torch's dist-info")
    yield from (Evidence(time, brought, "times of the dist-info folders") for time, brought in history(facts)[-SHOWN:])
    yield gpu_names(facts)


def _bring_back(facts: HostFacts, before: Replacement) -> Fix:
    """The right build; libraries that the former one left, and whose files the new one's share, go first."""
    fix, build = reinstall_torch(facts), right_build(facts)
    commands = fix.commands
    names = [package.name for package in before.orphans if shares_paths(package.name)]
    if build and names and not any(name.endswith(f"-cu{cuda_major(build.cuda)}") for name in names):
        commands = (*[uninstall(facts, *names)] * (repair(facts) not in commands), *commands)
    guard = "a constraints file that pins this torch (pip -c, UV_CONSTRAINT)"
    if before.pinned_by:
        guard = f"--no-deps for {before.pinned_by[0][0].name}, or with {guard}"
    if build and build.backend:
        guard += f"; with uv, UV_TORCH_BACKEND={build.backend} is enough"
    return replace(fix, summary=f"{fix.summary} Next time, install with {guard}.", commands=commands)


@cause(
    "A04",
    "no extra index competes with the package index for torch",
    why="--extra-index-url adds an index: pip selects the highest version of all. As soon as the package index has a "
    "newer release than PyTorch's index for one CUDA, that release is selected, with another CUDA or none.",
    example="PIP_EXTRA_INDEX_URL ends in /whl/cu128, and pip selects torch 2.12.0 instead of 2.11.0+cu128",
    fix="Use the index for torch only: --index-url, or uv with --torch-backend or an explicit index.",
    sources="WhisperJAV#334",
    tested="facts; a real pip and uv with two indexes",
)
def outbid(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A build of the package index that does not fit, next to an extra index with another."""
    torch = installed_torch(facts)
    if torch is None or origin(facts) != "A04" or (found := outbid_index(facts, torch)) is None:
        return
    (setting, backend), fix = found, reinstall_torch(facts)
    newest = newest_release(backend, machine_of(facts))
    dated = f"table of {load('torch_releases')['collected']}"
    offered = (Evidence("offered", f"torch {newest}+{backend}", dated),) if newest else ()
    yield Finding(
        f"torch {public(torch.version)} of the package index was selected, not the {backend} build of the extra index "
        f"({setting.source}): the highest version has priority; it {misfit(facts)}",
        (version_file(torch), Evidence(f"{setting.tool} {setting.name}", setting.value, setting.source), *offered),
        replace(
            fix, summary=f"Remove the extra index from {setting.source}, and select the build instead. {fix.summary}"
        ),
    )


@cause(
    "A13",
    "uv has selected a build with code for the GPU",
    explains=("torch:compute",),
    why="uv's --torch-backend=auto considers only the driver. A new driver with an old GPU (V100, GTX 10) gets a build "
    "for CUDA 13, which has no code for that GPU.",
    example="uv pip install torch --torch-backend=auto on a V100 with driver 580",
    fix="Set --torch-backend=cu126, and install torch before 2.15.",
    sources="uv#14742, unsloth PR5876, uv's source",
    tested="facts; no such GPU",
)
def chosen_by_driver_alone(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """It was installed by uv, which was asked to choose, for CUDA 13, and the GPU is older than Turing."""
    torch = installed_torch(facts)
    if torch is None or origin(facts) != "A13":
        return
    names = ", ".join(str(gpu.product) for gpu in gpus_without_code(facts, torch))
    settings = (Evidence(f"{one.tool} {one.name}", one.value, one.source) for one in automatic_settings(facts))
    yield Finding(
        f"uv selected torch {torch.version}, which has no code for {names}: --torch-backend=auto considers the driver, "
        "not the GPU",
        (version_file(torch), code_list(torch), Evidence("INSTALLER", "uv", "torch's dist-info"), *settings),
        reinstall_torch(facts),
    )
