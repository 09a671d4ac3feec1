"""Which libcuda the loader takes: none, a stub, or one of cuda-compat."""

from collections.abc import Iterator
from typing import Any

from wheel_checks.commands import Command, Step, option, run
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.presence import gpus_of_build
from wheel_checks.facts.host.probes import CudaProbe, NvmlProbe
from wheel_checks.facts.host.software import CudaLibrary
from wheel_checks.model import Evidence, Finding, Fix, Severity, Unavailable, need
from wheel_checks.parsing import numbers
from wheel_checks.rules.host import other_makers
from wheel_checks.rules.host.cause import Layer, causes_in
from wheel_checks.rules.host.observed import TORCH_FAILS, in_container, library_path, of_driver, without_entries

_LDCONFIG = Command(("sudo", "ldconfig"))
WITHOUT_CUDA = ("cuda:*", *TORCH_FAILS)

cause = causes_in(Layer.USERSPACE)


def _kind(facts: HostFacts, path: str) -> str:
    """What the libcuda at ``path`` is: by the loader's facts, else by its folder."""
    known: tuple[CudaLibrary, ...] = () if isinstance(facts.loader, Unavailable) else facts.loader.cuda_libraries
    for library in known:
        # The name with 1 is a link: what is mapped has the version in its name.
        if path in {library.path, f"{library.path.removesuffix('.1')}.{library.version}"}:
            return library.kind
    if "/stubs/" in path:
        return "stub"
    return "compat" if "/compat/" in path else ""


def _who_named(facts: HostFacts, folder: str) -> Iterator[Evidence]:
    """Where the loader got a folder from."""
    for entry in library_path(facts):
        if entry.rstrip("/") == folder or folder.startswith(entry.rstrip("/") + "/"):
            yield Evidence("LD_LIBRARY_PATH", entry, "environment")


def _proof(facts: HostFacts) -> Iterator[Evidence]:
    for fact in facts.counterfactuals:
        if fact.variable.startswith("LD_LIBRARY_PATH") and fact.proves:
            value = f"cuInit {fact.after[0]}, {fact.after[1]} devices (with it: {fact.before[0]})"
            yield Evidence(f"without {fact.variable}", value, "the probe, again")


@cause(
    "C10",
    "the driver's compute library is installed",
    explains=("cuda:-1", *TORCH_FAILS),
    why="The kernel module is loaded but the driver's compute library is not installed: drivers are split into "
    "packages, and the server driver without CUDA omits it. Intel's GPUs need Level Zero, in separate packages.",
    example="OSError: libcuda.so.1: cannot open shared object file: No such file or directory",
    fix="Install the compute libraries of the loaded driver's version.",
    sources="triton#2110",
    tested="facts; a machine without any libcuda",
)
def libcuda_missing(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The module runs, and libcuda cannot be loaded, outside of containers (there E01 and E08 say why)."""
    if gpus_of_build(facts):
        yield from other_makers.level_zero_missing(facts)
        return
    driver, cuda, loader = need(facts.driver), need(facts.cuda), need(facts.loader)
    if cuda.code != -1 or not driver.version or in_container(facts):
        return
    elsewhere = [lib for lib in loader.cuda_libraries if lib.name == "libcuda.so.1" and lib.kind == "driver"]
    if not need(facts.system).wsl:
        if elsewhere:
            message = f"libcuda.so.1 is in {elsewhere[0].path}, where the loader does not search"
            fix = Fix("Add the folder to the loader's configuration.", (_LDCONFIG,))
        else:
            message = f"driver {driver.version} is loaded, but its library libcuda.so.1 is not installed"
            library = of_driver(driver.version, "libnvidia-compute-{branch}")
            fix = Fix("Install it.", (run("sudo", "apt-get", "install", library), _LDCONFIG))
        yield Finding(message, (Evidence("dlopen", cuda.fault), Evidence("module", driver.version)), fix)


@cause(
    "C11",
    "libcuda.so.1 is the driver's, not the CUDA toolkit's stub",
    explains=("cuda:34", *WITHOUT_CUDA),
    why="The CUDA toolkit has a libcuda in a folder named stubs, to link against on hosts without a driver. When that "
    "folder is on the loader's path, every call returns an error.",
    example="CUDA driver is a stub library (34)",
    fix="Remove the stubs folder from LD_LIBRARY_PATH or from the loader's configuration.",
    sources="warp#219, numba#9732, numba#8985",
    tested="a stub library first on LD_LIBRARY_PATH, really loaded, and the fix applied",
)
def libcuda_stub(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The mapped libcuda is a stub, or says so."""
    cuda = need(facts.cuda)
    if cuda.code == 0 or (cuda.code != 34 and _kind(facts, cuda.library) != "stub"):
        return
    folder = cuda.library.rpartition("/")[0]
    named = list(_who_named(facts, folder))
    if named:
        fix = Fix("Remove the folder from LD_LIBRARY_PATH.", (without_entries(facts, {folder}),))
    else:
        fix = Fix("Remove the folder from the loader's configuration.", _out_of_configuration(folder or "stubs"))
    yield Finding(
        f"the loader uses the CUDA toolkit's libcuda stub instead of the driver's: {cuda.library or 'cuInit says so'}",
        (
            *_proof(facts),
            Evidence("mapped", cuda.library, "/proc/self/maps"),
            Evidence("cuInit", str(cuda.code)),
            *named,
        ),
        fix,
    )


def _compat(facts: HostFacts, code: int) -> tuple[CudaProbe, str] | None:
    """The probe and the folder, when the mapped libcuda is a compat one and cuInit gives ``code``."""
    cuda = need(facts.cuda)
    if cuda.code == code and _kind(facts, cuda.library) == "compat":
        return cuda, cuda.library.rpartition("/")[0]
    return None


def _out_of_configuration(folder: str) -> tuple[Step, ...]:
    """Which file names the folder, and what makes a change of it count: the line is for the user to delete."""
    search = run(
        "grep",
        "-rlF",
        option("--regexp", folder),
        "/etc/ld.so.conf",
        "/etc/ld.so.conf.d",
        note="shows the file that names it",
    )
    return search, Command(("sudo", "ldconfig"), "when the folder is no longer in that file")


def _drop_compat(facts: HostFacts, folder: str) -> Fix:
    if list(_who_named(facts, folder)):
        return Fix("Use the driver's own libcuda.", (without_entries(facts, {folder}),))
    summary = "Use the driver's own libcuda: delete the line with this folder from the loader's configuration."
    return Fix(summary, _out_of_configuration(folder or "compat"))


@cause(
    "C12",
    "the cuda-compat libcuda supports the kernel driver",
    explains=("cuda:803", *WITHOUT_CUDA),
    why="cuda-compat runs a newer CUDA on certain older drivers. With any other driver it fails at once.",
    example="Error 803: system has unsupported display driver / cuda driver combination",
    fix="Remove the compat folder from the loader's path, or install a newer driver.",
    sources="llm-d#706, nixl#441, NVIDIA's page on forward compatibility",
    tested="a stub in a compat folder that answers 803",
)
def compat_unsupported(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """803 of a compat libcuda."""
    if not (found := _compat(facts, 803)):
        return
    cuda, folder = found
    driver = need(facts.driver)
    yield Finding(
        f"cuda-compat in {folder} does not support driver {driver.version or 'of this kernel'} (803)",
        (
            *_proof(facts),
            Evidence("mapped", cuda.library, "/proc/self/maps"),
            Evidence("kernel driver", driver.version, "/sys/module/nvidia/version"),
            *_who_named(facts, folder),
        ),
        _drop_compat(facts, folder),
    )


@cause(
    "C13",
    "the GPU supports forward compatibility",
    explains=("cuda:804", *WITHOUT_CUDA),
    why="Forward compatibility is for data-centre GPUs, some RTX models and Jetson. On other GPUs cuda-compat fails; "
    "it also fails when the driver was updated without a reboot.",
    example="Error 804: forward compatibility was attempted on non supported HW",
    fix="Remove the compat folder from the loader's path; reboot when the driver was updated.",
    sources="faster-whisper#653, NVIDIA's page on forward compatibility",
    tested="a stub in a compat folder that answers 804",
)
def compat_on_other_hardware(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """804, whoever gave it."""
    cuda = need(facts.cuda)
    if cuda.code != 804:
        return
    folder = cuda.library.rpartition("/")[0]
    names = [gpu.name for gpu in facts.nvml.gpus] if isinstance(facts.nvml, NvmlProbe) else []
    evidence = [*_proof(facts), Evidence("mapped", cuda.library, "/proc/self/maps"), Evidence("cuInit", "804")]
    evidence += [Evidence("GPU", names[0], "NVML")] if names else []
    if _kind(facts, cuda.library) == "compat":
        fix = _drop_compat(facts, folder)
        message = f"cuda-compat in {folder} does not support this GPU{f' ({names[0]})' if names else ''} (804)"
    else:
        fix = Fix("The libraries are newer than the loaded module: reboot.", (Command(("sudo", "reboot")),))
        message = "the driver's libraries are newer than its loaded module (804), as after an update without a reboot"
    yield Finding(message, (*evidence, *_who_named(facts, folder)), fix)


@cause(
    "C14",
    "cuda-compat is newer than the installed driver",
    Severity.NOTE,
    why="A compat libcuda that is older than the driver's own adds nothing and removes features.",
    example="/usr/local/cuda-12.4/compat on LD_LIBRARY_PATH with driver 580",
    fix="Remove the compat folder from the loader's path.",
    sources="NVIDIA's page on forward compatibility",
    tested="facts",
)
def compat_unneeded(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The mapped libcuda is a compat one of an older version than the module."""
    cuda, driver = need(facts.cuda), need(facts.driver)
    if cuda.code or _kind(facts, cuda.library) != "compat" or not driver.version:
        return
    version = cuda.library.rpartition(".so.")[2]
    if version[:1].isdigit() and numbers(version) < numbers(driver.version):
        folder = cuda.library.rpartition("/")[0]
        yield Finding(
            f"cuda-compat {version} shadows the driver's own, newer libcuda {driver.version}",
            (Evidence("mapped", cuda.library), *_who_named(facts, folder)),
            _drop_compat(facts, folder),
        )
