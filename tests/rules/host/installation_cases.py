"""DOC200 to DOC223: an installation whose files are missing, mixed or damaged, and the loader's reaction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.rules.case import NOTE, WARNING, Case
from tests.support.hosts import (
    SITE_PACKAGES,
    cuda_fails,
    grace,
    healthy,
    kernel_fails,
    package,
    replaced,
    torch_import_fails,
    with_packages,
    with_variables,
    without_gpu,
)
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.probes import CRASHED, ChildEnd, Counterfactual, TorchProbe
from wheel_checks.facts.host.software import (
    CudaLibrary,
    FileFinding,
    Installed,
    Loader,
    MissingLibrary,
    ShadowModule,
    UnresolvedSymbol,
)
from wheel_checks.model import Unavailable

TORCH = f"{SITE_PACKAGES}/torch"
CUDNN, NVSHMEM = "nvidia-cudnn-cu13", "nvidia-nvshmem-cu13"
PYTHON = "/opt/env/bin/python"
TOOLKIT = "/usr/local/cuda/lib64"
NO_CUDNN = "ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory"
LIB64 = "/opt/env/lib64/python3.12/site-packages"
USER_SITE = "/home/user/.local/lib/python3.12/site-packages"
ERROR_OF_C10 = "_ZN3c105ErrorC2ENS_14SourceLocationESs"
NO_SUBLIBRARY = "RuntimeError: cuDNN error: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH"
GLIBCXX = "/lib64/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by /opt/env/libtriton.so)"
PAGES = "<jemalloc>: Unsupported system page size"
BOTH_NCCL = "nvidia-nccl-cu12 2.27.3 and nvidia-nccl-cu13 2.28.9 both contain libnccl.so.2"
ENGINE = "libcudnn_engines_tensor_ir.so.9"
OTHER_ENGINE = f"cuDNN 9.19.0 opens {ENGINE} from {TOOLKIT}/{ENGINE}, which is of 9.24.0"
OTHER_CUBLASLT = (
    f"the loader uses libcublasLt.so.13 from {TOOLKIT}/libcublasLt.so.13 instead of the one in nvidia-cublas 13.1.0.3"
)
OWN_TORCH = f"torch 2.11.0 (cu130) is installed in {SITE_PACKAGES}"
HIDES = "shadows the environment's own torch: torch 2.5.1"
MAY_BE = "which may be why it crashes (not tested without it)"
STATIC_TLS = f"ImportError: {TORCH}/lib/libgomp-d22c30c5.so.1.0.0: cannot allocate memory in static TLS block"


# Files that are gone or damaged


def found(facts: HostFacts, *findings: FileFinding, missing: tuple[MissingLibrary, ...] = ()) -> HostFacts:
    """The same with findings of the rules for installed wheels, and with libraries that nothing has."""
    return replaced(facts, "installed", findings=findings, missing=missing)


def lost(name: str, *files: str, present: int = 0) -> FileFinding:
    """Files of a distribution that are gone; ``files`` are in the folder of imports."""
    paths = tuple(f"{SITE_PACKAGES}/{file}" for file in files)
    evidence = (("missing", ", ".join(files)), ("present", str(present)))
    return FileFinding("WHL702", name, "error", f"{len(files)} files", evidence, "", paths, (name,), len(paths))


def needed(
    soname: str, *, owner: str = "", user: str = "torch", by: str = "torch/lib/libtorch_cuda.so"
) -> MissingLibrary:
    return MissingLibrary(soname, (f"{SITE_PACKAGES}/{by}",), user, owner)


def without_nvshmem(*files: str, sibling: str = "") -> HostFacts:
    """The files of nvidia-nvshmem-cu13 are gone as an uninstall takes them, and torch needs one."""
    names = files or ("nvidia/nvshmem/lib/libnvshmem_host.so.3", "nvidia/nvshmem/include/nvshmem.h")
    facts = without_gpu(healthy())
    facts = with_packages(facts, package(sibling, "3.4.5")) if sibling else facts
    return found(facts, lost(NVSHMEM, *names), missing=(needed("libnvshmem_host.so.3", owner=NVSHMEM),))


def without_cudnn() -> HostFacts:
    return found(
        torch_import_fails(healthy(), NO_CUDNN),
        lost(CUDNN, "nvidia/cudnn/lib/libcudnn.so.9", present=30),
        missing=(needed("libcudnn.so.9", owner=CUDNN),),
    )


def unmet(requirement: str) -> FileFinding:
    return FileFinding("WHL705", "torch", "error", "unmet", (("Requires-Dist", requirement),))


def drifted(facts: HostFacts, *, version: str = "2.27.5") -> HostFacts:
    """NCCL of another release than torch requires; "" if none."""
    name = "nvidia-nccl-cu13"
    facts = with_packages(facts, package(name, version)) if version else with_packages(facts, without=(name,))
    return replaced(facts, "installed", findings=(unmet(f'{name}==2.28.9; platform_system == "Linux"'),))


def both_nccl(facts: HostFacts, *, overwritten: bool = True) -> HostFacts:
    """nvidia-nccl-cu12 and -cu13 with the same path; the former was installed last, or the latter."""
    names, path = ("nvidia-nccl-cu12", "nvidia-nccl-cu13"), f"{SITE_PACKAGES}/nvidia/nccl/lib/libnccl.so.2"
    shared = FileFinding("WHL713", "/opt/env", "error", "", (), "", (path,), names, 1)
    wrong = FileFinding("WHL703", names[overwritten], "error", "", (), "", (path,), names, 1)
    return found(with_packages(facts, package("nvidia-nccl-cu12", "2.27.3")), shared, wrong)


def resized(*evidence: tuple[str, str]) -> FileFinding:
    path = f"{SITE_PACKAGES}/nvidia/cu13/lib/libcublasLt.so.13"
    return FileFinding("WHL703", "nvidia-cublas", "error", "", evidence, "", (path,), ("nvidia-cublas",), 1)


def cut_off() -> HostFacts:
    path = f"{SITE_PACKAGES}/nvidia/cu13/lib/libcublasLt.so.13"
    reason = "it has 1,000 bytes, and a segment ends at 9,000"
    sizes = ("nvidia/cu13/lib/libcublasLt.so.13", "1,000 bytes, RECORD says 9,000 bytes")
    again = FileFinding("WHL722", "/opt/env", "error", "x: damaged", (), "", (path,), ("nvidia-cublas",), 1)
    facts = replaced(without_gpu(healthy()), "loader", error=f"{path}: file too short")
    return found(facts, again, resized(sizes, ("cut off", f"{path}: {reason}")))


def for_another_machine() -> HostFacts:
    path = f"{TORCH}/lib/libc10.so"
    message = "torch/lib/libc10.so: it is for x86_64, but the environment is for aarch64"
    finding = FileFinding("WHL722", "/opt/env", "error", message, (), "", (path,), ("torch",), 1)
    return found(torch_import_fails(grace(), "ImportError: libc10.so: cannot open"), finding)


def left_over(facts: HostFacts, *names: str) -> HostFacts:
    paths = tuple(f"{SITE_PACKAGES}/{name}" for name in names)
    return found(facts, FileFinding("WHL712", "/opt/env", "warning", "", (), "", paths, (), len(paths)))


def two_folders(facts: HostFacts, *names: str) -> HostFacts:
    paths = tuple(f"{SITE_PACKAGES}/{name}" for name in names)
    return found(facts, FileFinding("WHL710", "/opt/env", "error", "", (), "", paths, ("torch",), len(paths)))


# Where things are searched


def not_started(fault: str, **variables: str) -> HostFacts:
    return with_variables(
        replaced(torch_import_fails(healthy(), "exit code 1"), "interpreter", fault=fault), **variables
    )


def torches(facts: HostFacts, *entries: str) -> HostFacts:
    """Torches in these entries of sys.path, in the order of the search; "" is the working directory."""
    folders = [entry or "/home/user/project" for entry in entries]
    modules = tuple(ShadowModule("torch", f"{f}/torch/__init__.py", e) for f, e in zip(folders, entries, strict=True))
    return replaced(facts, "installed", modules=modules)


def hidden_by(entry: str, version: str = "2.5.1", build: str = "cu124", **facts: HostFacts) -> HostFacts:
    """A torch in ``entry`` before the environment's own."""
    host = torches(facts.get("facts", healthy()), entry, SITE_PACKAGES)
    assert isinstance(host.installed, Installed)
    other = package("torch", version, folder=entry, build=build)
    host = replaced(host, "installed", packages=(other, *host.installed.packages))
    return replaced(host, "interpreter", user_site=USER_SITE)


def cpu_build_in(entry: str) -> HostFacts:
    """A CPU build in ``entry`` before the environment's own, and torch does not see the GPU."""
    files = replace(_torch_files(), folder=f"{entry}/torch", version="2.5.1+cpu", cuda="", architectures=())
    return replaced(hidden_by(entry, build="cpu"), "installed", torch=files)


def module_in_folder(name: str) -> HostFacts:
    path = f"/home/user/project/{name}.py"
    modules = (ShadowModule(name, path, ""), ShadowModule(name, f"{SITE_PACKAGES}/{name}/__init__.py", SITE_PACKAGES))
    return replaced(healthy(), "installed", modules=modules)


def elsewhere(folder: str, facts: HostFacts | None = None) -> HostFacts:
    """cuDNN in another folder of imports than torch, and the loader does not find it."""
    facts = with_packages(facts or torch_import_fails(healthy(), NO_CUDNN), package(CUDNN, "9.19.0.56", folder=folder))
    assert isinstance(facts.loader, Loader)
    return replaced(facts, "loader", resolved={**facts.loader.resolved, "libcudnn.so.9": ""})


# Extensions and companions


def with_flash(facts: HostFacts, *missing: MissingLibrary, symbols: int = 0) -> HostFacts:
    module = f"{SITE_PACKAGES}/flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so"
    unresolved = (UnresolvedSymbol(module, "flash-attn", ERROR_OF_C10, symbols),) if symbols else ()
    flash = package("flash-attn", "2.8.3", requires=("torch",))
    return replaced(with_packages(facts, flash), "installed", missing=missing, unresolved=unresolved)


def runtime_12(file: str, user: str = "flash-attn") -> MissingLibrary:
    return needed("libcudart.so.12", user=user, by=file)


def vision(
    version: str = "0.26.0", requires: str = "torch==2.11.0", build: str = "cu130", name: str = "torchvision"
) -> HostFacts:
    return with_packages(healthy(), package(name, version, requires=(requires,), build=build))


OF_TORCH_FOR_CUDA = needed("libc10_cuda.so", user="flash-attn", by="flash_attn_2_cuda.abi3.so")


def for_the_cpu(facts: HostFacts | None = None, **builds: str) -> HostFacts:
    """A torch for the CPU; its companions too, but those with another build."""
    return _of_build(facts, {"torchvision": "cpu", "torchaudio": "cpu", **builds}, version="2.11.0+cpu")


def for_rocm(**builds: str) -> HostFacts:
    """A torch for ROCm; its companions too, but those with another build."""
    builds = {"torchvision": "rocm6.4", "torchaudio": "rocm6.4", **builds}
    return _of_build(None, builds, version="2.11.0+rocm6.4", hip="6.4.43482")


def _of_build(facts: HostFacts | None, builds: dict[str, str], **changed: Any) -> HostFacts:
    facts = without_gpu(facts or vision())
    assert not isinstance(facts.installed, Unavailable)
    assert facts.installed.torch is not None
    torch = replace(facts.installed.torch, cuda="", has_cuda_library=False, **changed)
    packages = tuple(replace(one, build=builds.get(one.name, one.build)) for one in facts.installed.packages)
    return replaced(facts, "installed", torch=torch, packages=packages)


def nvpl(owner: str = "") -> HostFacts:
    return found(without_gpu(grace()), missing=(needed("libnvpl_lapack_lp64_gomp.so.0", owner=owner),))


# The loader


def refused(facts: HostFacts) -> HostFacts:
    evidence = (("needs", "GLIBCXX_3.4.32"), ("defines", "GLIBCXX_3.4.30"))
    paths = ("/lib64/libstdc++.so.6", f"{TORCH}/lib/libtorch_cpu.so")
    return found(facts, FileFinding("WHL723", "/opt/env", "error", "", evidence, "", paths, (), 2))


def preloading(facts: HostFacts, value: str, *, after: tuple[int, int] | None = None) -> HostFacts:
    """LD_PRELOAD, and CUDA's result without it."""
    tried = (Counterfactual("LD_PRELOAD", value, (CRASHED, 0), after),) if after else ()
    return replace(with_variables(facts, LD_PRELOAD=value), counterfactuals=tried)


def crashing(output: str = "") -> HostFacts:
    return cuda_fails(healthy(), 0, end=ChildEnd(-11, signal="SIGSEGV", output=output))


def parts(*others: CudaLibrary, facts: HostFacts | None = None) -> HostFacts:
    own = CudaLibrary(
        "libcudnn_ops.so.9", f"{SITE_PACKAGES}/nvidia/cudnn/lib/libcudnn_ops.so.9", "", "bundled", "next to torch", 1
    )
    return replaced(facts or without_gpu(healthy()), "loader", cudnn=(own, *others))


def engine(version: str, where: str = "LD_LIBRARY_PATH") -> CudaLibrary:
    return CudaLibrary(ENGINE, f"{TOOLKIT}/{ENGINE}", version, "other", where, 1)


def taken(soname: str, path: str, facts: HostFacts | None = None, **variables: str) -> HostFacts:
    facts = with_variables(facts or without_gpu(healthy()), **variables)
    assert isinstance(facts.loader, Loader)
    return replaced(facts, "loader", resolved={**facts.loader.resolved, soname: path})


def not_computing(says: str) -> HostFacts:
    return replaced(healthy(), "torch", computes=says)


CASES = [
    Case(
        "DOC200",
        "PYTHONHOME of another Python",
        lambda: not_started("it exited with code 1: No module named 'encodings'", PYTHONHOME="/opt/python3.9"),
        (f"{PYTHON} cannot be started: it exited with code 1: No module named 'encodings'",),
        evidence=("/opt/python3.9",),
    ),
    Case(
        "DOC200",
        "a .pth file that hangs",
        lambda: not_started("it did not answer within 10 s"),
        (f"{PYTHON} cannot be started: it did not answer within 10 s",),
    ),
    Case(
        "DOC200",
        "a release that is too old",
        lambda: not_started("it is older than Python 3.8"),
        (f"{PYTHON} cannot be started: it is older than Python 3.8",),
    ),
    Case("DOC200", "it ran", healthy),
    Case("DOC200", "a Python for another machine", lambda: not_started("exit code 127: [Errno 8] Exec format error")),
    Case("DOC200", "a preloaded jemalloc", lambda: not_started(f"it was killed by SIGABRT: {PAGES}")),
    # B01
    Case(
        "DOC201",
        "an uninstall took NVSHMEM",
        without_nvshmem,
        (
            f"2 files of {NVSHMEM} 3.4.5 are missing, in paths shared with nvidia-nvshmem of another CUDA: "
            "uninstalling either package deletes them for both",
        ),
        evidence=("libnvshmem_host.so.3, nvshmem.h", "libtorch_cuda.so"),
    ),
    Case(
        "DOC201",
        "the other one is installed still",
        lambda: without_nvshmem(sibling="nvidia-nvshmem-cu12"),
        (
            f"2 files of {NVSHMEM} 3.4.5 are missing, in paths shared with nvidia-nvshmem-cu12: uninstalling either "
            "package deletes them for both",
        ),
        evidence=("nvidia-nvshmem-cu12 3.4.5",),
    ),
    Case("DOC201", "a library alone is gone", lambda: without_nvshmem("nvidia/nvshmem/lib/libnvshmem_host.so.3")),
    Case("DOC201", "headers alone are gone", lambda: without_nvshmem("nvidia/nvshmem/include/nvshmem.h")),
    Case(
        "DOC201",
        "a package with its own folder",
        lambda: found(
            healthy(), lost("nvidia-cublas", "nvidia/cu13/lib/libcublas.so.13", "nvidia/cu13/include/cublas.h")
        ),
    ),
    # B02
    Case(
        "DOC202",
        "libcudnn.so.9 was deleted",
        without_cudnn,
        (f"1 file of {CUDNN} 9.19.0.56 is missing, although its metadata lists it as installed",),
        evidence=("libcudnn.so.9", "libtorch_cuda.so"),
    ),
    Case(
        "DOC202",
        "an engine that cuDNN opens by name, on a machine without a GPU",
        lambda: found(without_gpu(healthy()), lost(CUDNN, "nvidia/cudnn/lib/libcudnn_cnn.so.9", present=30)),
        (f"1 file of {CUDNN} 9.19.0.56 is missing, although its metadata lists it as installed",),
    ),
    Case(
        "DOC202",
        "a module of a requirement of torch's, which the import names",
        lambda: found(
            torch_import_fails(healthy(), "ModuleNotFoundError: No module named 'sympy'"),
            lost("sympy", "sympy/__init__.py"),
        ),
        ("1 file of sympy is missing, although its metadata lists it as installed",),
    ),
    Case(
        "DOC202",
        "a library that torch computes without",
        lambda: found(healthy(), lost("nvidia-cusolver", "nvidia/cu13/lib/libcusolverMg.so.12", present=9)),
        ("1 file of nvidia-cusolver 12.0.4.66 is missing, although its metadata lists it as installed",),
        severity=NOTE,
    ),
    Case(
        "DOC202",
        "headers that an image build has trimmed",
        lambda: found(healthy(), lost(CUDNN, "nvidia/cudnn/include/cudnn.h", present=20)),
    ),
    Case("DOC202", "what B01 reports", without_nvshmem),
    # B03
    Case(
        "DOC203",
        "NCCL of another release, and a symbol that is missing",
        lambda: drifted(torch_import_fails(healthy(), "ImportError: undefined symbol: ncclCommWindowRegister")),
        ("torch 2.11.0 requires nvidia-nccl-cu13==2.28.9, but 2.27.5 is installed",),
        evidence=("wanted ==2.28.9, 2.27.5",),
    ),
    Case(
        "DOC203",
        "NCCL is not installed, and nowhere",
        lambda: replaced(drifted(without_gpu(healthy()), version=""), "installed", missing=(needed("libnccl.so.2"),)),
        ("torch 2.11.0 requires nvidia-nccl-cu13==2.28.9, but no version is installed",),
        evidence=("libnccl.so.2",),
    ),
    Case(
        "DOC203",
        "another release with which torch computes",
        lambda: drifted(healthy()),
        ("torch 2.11.0 requires nvidia-nccl-cu13==2.28.9, but 2.27.5 is installed",),
        severity=NOTE,
    ),
    Case("DOC203", "what is required is there", healthy),
    Case("DOC203", "Triton, which H15 reports", lambda: found(healthy(), unmet("triton==3.6.0"))),
    # B04
    Case(
        "DOC204",
        "NCCL for CUDA 12 was installed over that for CUDA 13",
        lambda: both_nccl(torch_import_fails(healthy(), "ImportError: undefined symbol: ncclMemFree")),
        (BOTH_NCCL + ": the files of nvidia-nccl-cu13 are overwritten",),
        evidence=("libnccl.so.2", "nvidia-nccl-cu13"),
    ),
    Case(
        "DOC204",
        "both are installed, and torch computes",
        lambda: both_nccl(healthy()),
        (BOTH_NCCL + ": the files of nvidia-nccl-cu13 are overwritten",),
        severity=NOTE,
    ),
    Case(
        "DOC204",
        "the one that torch requires came last",
        lambda: both_nccl(without_gpu(healthy()), overwritten=False),
        (BOTH_NCCL,),
        severity=NOTE,
    ),
    Case("DOC204", "one of them", healthy),
    # B05
    Case(
        "DOC205",
        "an extension for CUDA 12 next to torch for CUDA 13",
        lambda: with_flash(healthy(), runtime_12("flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so")),
        (
            "flash-attn 2.8.3 is built for CUDA 12, but torch 2.11.0+cu130 for CUDA 13.0: "
            "flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so needs libcudart.so.12, which is not found",
        ),
    ),
    Case(
        "DOC205",
        "one library for each CUDA, of which the package opens one",
        lambda: with_flash(healthy(), runtime_12("flash_attn/libflash_cuda128.so")),
    ),
    Case(
        "DOC205",
        "an extension for CUDA next to torch for the CPU",
        lambda: for_the_cpu(with_flash(healthy(), OF_TORCH_FOR_CUDA)),
        (
            "flash-attn 2.8.3 is built for CUDA, but torch 2.11.0+cpu for the CPU: flash_attn_2_cuda.abi3.so needs "
            "libc10_cuda.so, which is not found",
        ),
    ),
    Case(
        "DOC205",
        "a runtime that is missing next to torch for the CPU",
        lambda: for_the_cpu(with_flash(healthy(), runtime_12("flash_attn_2_cuda.abi3.so"))),
    ),
    Case("DOC205", "torch's own libraries", lambda: with_flash(healthy(), runtime_12("torch/_C.so", user="torch"))),
    Case(
        "DOC205",
        "a library whose number is not that of CUDA",
        lambda: with_flash(healthy(), needed("libcufft.so.11", user="flash-attn", by="flash/_C.abi3.so")),
    ),
    # B06
    Case(
        "DOC206",
        "libcublasLt was cut off",
        cut_off,
        (
            "libcublasLt.so.13 of nvidia-cublas 13.1.0.3 cannot be loaded: it has 1,000 bytes, and a segment ends at "
            "9,000",
        ),
        evidence=("1,000 bytes, RECORD says 9,000 bytes",),
    ),
    Case(
        "DOC206",
        "a library of the other CPU",
        for_another_machine,
        ("libc10.so of torch 2.11.0 cannot be loaded: it is for x86_64, but the environment is for aarch64",),
    ),
    Case(
        "DOC206",
        "a library that was stripped, and is whole",
        lambda: found(healthy(), resized(("x", "of another size"))),
    ),
    # B07
    Case(
        "DOC207",
        "a torch of the user's hides that of the environment",
        lambda: hidden_by(USER_SITE),
        (f"the user's site-packages ({USER_SITE}) {HIDES} (cu124) is imported, and {OWN_TORCH}",),
        severity=WARNING,
        evidence=(f"torch 2.5.1 (cu124), {USER_SITE}/torch/__init__.py",),
    ),
    Case(
        "DOC207",
        "PYTHONPATH brings a CPU build, and the environment's own is for CUDA",
        lambda: with_variables(cpu_build_in("/shared/lib"), PYTHONPATH="/shared/lib"),
        (f"PYTHONPATH (/shared/lib) {HIDES} (cpu) is imported, and {OWN_TORCH}",),
    ),
    Case(
        "DOC207",
        "a torch of the user's, and a GPU that CUDA does not see",
        lambda: hidden_by(USER_SITE, facts=cuda_fails(healthy(), 802)),
        (f"the user's site-packages ({USER_SITE}) {HIDES} (cu124) is imported, and {OWN_TORCH}",),
        severity=NOTE,
    ),
    Case(
        "DOC207",
        "another folder's torch, whose import fails",
        lambda: hidden_by("/opt/other", facts=torch_import_fails(healthy(), "ImportError: cannot import name 'x'")),
        (f"/opt/other {HIDES} (cu124) is imported, and {OWN_TORCH}",),
    ),
    Case("DOC207", "the environment's own comes first", lambda: torches(healthy(), SITE_PACKAGES, USER_SITE)),
    Case("DOC207", "one torch", healthy),
    # B08
    Case(
        "DOC208",
        "torch.py in the working directory",
        lambda: module_in_folder("torch"),
        ("/home/user/project/torch.py is imported instead of torch: the working directory comes first",),
        evidence=(f"{SITE_PACKAGES}/torch/__init__.py",),
    ),
    Case(
        "DOC208",
        "triton.py in the working directory",
        lambda: module_in_folder("triton"),
        ("/home/user/project/triton.py is imported instead of Triton: the working directory comes first",),
    ),
    Case("DOC208", "the working directory has none", healthy),
    Case(
        "DOC208",
        "a torch that was built where it lies",
        lambda: replaced(
            torches(healthy(), "", SITE_PACKAGES),
            "installed",
            torch=replace(_torch_files(), folder="/home/user/project/torch"),
        ),
    ),
    # B09
    Case(
        "DOC209",
        "~orch, and no torch",
        lambda: replaced(left_over(healthy(), "~orch", "~orch-2.10.0.dist-info"), "installed", torch=None),
        ("an interrupted uninstall left ~orch, ~orch-2.10.0.dist-info",),
    ),
    Case(
        "DOC209",
        "~orch next to a torch that works",
        lambda: left_over(healthy(), "~orch"),
        ("an interrupted uninstall left ~orch",),
        severity=NOTE,
    ),
    Case("DOC209", "nothing is left over", healthy),
    # B10
    Case(
        "DOC210",
        "two dist-info folders of torch",
        lambda: two_folders(healthy(), "torch-2.10.0.dist-info", "torch-2.11.0.dist-info"),
        ("torch has 2 dist-info folders: torch-2.10.0.dist-info, torch-2.11.0.dist-info",),
        severity=WARNING,
        evidence=("2.11.0+cu130",),
    ),
    Case(
        "DOC210",
        "two, and the import fails",
        lambda: two_folders(
            torch_import_fails(healthy(), "AttributeError"), "torch-2.10.0.dist-info", "torch-2.11.0.dist-info"
        ),
        ("torch has 2 dist-info folders: torch-2.10.0.dist-info, torch-2.11.0.dist-info",),
    ),
    Case("DOC210", "two of something else", lambda: two_folders(healthy(), "demo-1.0.dist-info", "demo-2.0.dist-info")),
    # B11
    Case(
        "DOC211",
        "torch under lib, cuDNN under lib64",
        lambda: elsewhere(LIB64),
        (
            f"torch is in {SITE_PACKAGES}, but {CUDNN} is in /opt/env/lib64/python3.12/site-packages: lib64 is not a "
            "link to lib",
        ),
        evidence=("libcudnn.so.9",),
    ),
    Case(
        "DOC211",
        "torch opens them itself",
        lambda: elsewhere(LIB64, healthy()),
        (
            f"torch is in {SITE_PACKAGES}, but {CUDNN} is in /opt/env/lib64/python3.12/site-packages: lib64 is not a "
            "link to lib",
        ),
        severity=NOTE,
    ),
    Case("DOC211", "a folder of another prefix", lambda: elsewhere("/bazel/cudnn/site-packages")),
    # B12
    Case(
        "DOC212",
        "a folder for each distribution",
        lambda: elsewhere("/bazel/cudnn/site-packages"),
        (f"the loader does not find libcudnn.so.9 from {TORCH}/lib: {CUDNN} is in /bazel/cudnn/site-packages",),
        evidence=("libcudnn.so.9", "/bazel/cudnn/site-packages"),
    ),
    Case(
        "DOC212",
        "a torch for the libraries of an installed toolkit, which the loader does not know",
        lambda: found(
            with_packages(torch_import_fails(healthy(), NO_CUDNN), without=(CUDNN,)), missing=(needed("libcudnn.so.9"),)
        ),
        (f"the loader does not find libcudnn.so.9 from {TORCH}/lib",),
    ),
    Case(
        "DOC212",
        "torch opens them itself",
        lambda: elsewhere("/bazel/cudnn/site-packages", healthy()),
        (f"the loader does not find libcudnn.so.9 from {TORCH}/lib: {CUDNN} is in /bazel/cudnn/site-packages",),
        severity=NOTE,
    ),
    Case("DOC212", "a deleted library, which B02 reports", without_cudnn),
    Case("DOC212", "all are found", healthy),
    # B13
    Case(
        "DOC213",
        "torchvision for torch 2.10",
        lambda: vision("0.25.0", "torch==2.10.0"),
        ("torchvision 0.25.0 requires torch==2.10.0, but torch 2.11.0+cu130 is installed",),
        evidence=("requires torch==2.10.0", "2.11.0+cu130"),
    ),
    Case("DOC213", "the one that belongs to it", vision),
    Case(
        "DOC213",
        "another package that pins torch",
        lambda: with_packages(healthy(), package("x", "1", requires=("torch==2.9",))),
    ),
    # B14
    Case(
        "DOC214",
        "torchaudio for another CUDA",
        lambda: vision("2.11.0", build="cu128", name="torchaudio"),
        ("torchaudio 2.11.0 is built for CUDA 12.8, but torch 2.11.0+cu130 for CUDA 13.0",),
    ),
    Case(
        "DOC214",
        "torchvision for the CPU",
        lambda: vision(build="cpu"),
        ("torchvision 0.26.0 is built for the CPU, but torch 2.11.0+cu130 for CUDA 13.0",),
    ),
    Case(
        "DOC214",
        "torchvision for the CPU, where no GPU is",
        lambda: without_gpu(vision(build="cpu")),
        ("torchvision 0.26.0 is built for the CPU, but torch 2.11.0+cu130 for CUDA 13.0",),
        severity=WARNING,
    ),
    Case(
        "DOC214",
        "torchvision for CUDA next to a torch for the CPU",
        lambda: for_the_cpu(torchvision="cu130"),
        ("torchvision 0.26.0 is built for CUDA 13.0, but torch 2.11.0+cpu for the CPU",),
    ),
    Case(
        "DOC214",
        "torchaudio for CUDA next to a torch for the CPU",
        lambda: for_the_cpu(torchaudio="cu130"),
        ("torchaudio 2.11.0 is built for CUDA 13.0, but torch 2.11.0+cpu for the CPU",),
    ),
    Case("DOC214", "both for the CPU", for_the_cpu),
    Case(
        "DOC214",
        "torchvision for CUDA next to a torch for ROCm",
        lambda: for_rocm(torchvision="cu130"),
        ("torchvision 0.26.0 is built for CUDA 13.0, but torch 2.11.0+rocm6.4 for ROCm 6.4",),
    ),
    Case("DOC214", "torchvision of the same ROCm", for_rocm),
    Case("DOC214", "torchvision of the same major version", lambda: vision(build="cu132")),
    Case("DOC214", "torchaudio for the CPU", lambda: vision("2.11.0", build="cpu", name="torchaudio")),
    Case("DOC214", "torchaudio that does not say", lambda: vision("2.11.0", build="", name="torchaudio")),
    # B15
    Case(
        "DOC215",
        "an extension of another torch",
        lambda: with_flash(healthy(), symbols=3),
        (
            "flash-attn 2.8.3 was compiled against another torch: flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so "
            f"needs c10::Error::Error ({ERROR_OF_C10}) and 2 more, which torch 2.11.0+cu130 does not define",
        ),
        evidence=(ERROR_OF_C10,),
    ),
    Case("DOC215", "all symbols are there", lambda: with_flash(healthy())),
    # B16
    Case(
        "DOC216",
        "Triton's library is refused",
        lambda: kernel_fails(healthy(), f"ImportError: {GLIBCXX}"),
        ("libtriton.so needs GLIBCXX_3.4.30, which /lib64/libstdc++.so.6 does not have",),
    ),
    Case(
        "DOC216",
        "torch's library will be refused",
        lambda: refused(without_gpu(healthy())),
        ("libtorch_cpu.so needs GLIBCXX_3.4.32, which /lib64/libstdc++.so.6 does not have",),
    ),
    Case("DOC216", "torch was imported anyway", lambda: refused(healthy())),
    # B17
    Case(
        "DOC217",
        "libgomp came too late",
        lambda: torch_import_fails(grace(), STATIC_TLS),
        ("libgomp-d22c30c5.so.1.0.0 was loaded too late: the block for static thread-local storage is full",),
        evidence=("glibc 2.39",),
    ),
    Case("DOC217", "another failure", lambda: torch_import_fails(grace(), NO_CUDNN)),
    # B18
    Case(
        "DOC218",
        "a preloaded jemalloc ends every program",
        lambda: with_variables(
            replace(grace(), cuda=Unavailable("x"), torch=TorchProbe(ChildEnd(-6, "SIGABRT", output=PAGES), False)),
            LD_PRELOAD="/usr/lib/libjemalloc.so.2",
        ),
        ("jemalloc is built for smaller pages than the kernel has",),
        evidence=("65,536 bytes", PAGES),
    ),
    Case(
        "DOC218",
        "a preloaded jemalloc that works",
        lambda: with_variables(grace(), LD_PRELOAD="/usr/lib/libjemalloc.so.2"),
    ),
    # B19
    Case(
        "DOC219",
        "an engine of another cuDNN comes from LD_LIBRARY_PATH",
        lambda: with_variables(parts(engine("9.24.0")), LD_LIBRARY_PATH=TOOLKIT),
        (OTHER_ENGINE,),
        severity=WARNING,
    ),
    Case(
        "DOC219",
        "a part that the wheel lacks, and cuDNN refuses the system's",
        lambda: parts(engine("9.24.0", "ld.so.cache"), facts=not_computing(NO_SUBLIBRARY)),
        (f"{OTHER_ENGINE}: its own folder lacks that sublibrary",),
    ),
    Case("DOC219", "the same release", lambda: parts(engine("9.19.0"))),
    Case("DOC219", "its own parts alone", parts),
    # B20
    Case(
        "DOC220",
        "cublasLt of an installed toolkit",
        lambda: taken(
            "libcublasLt.so.13",
            f"{TOOLKIT}/libcublasLt.so.13",
            torch_import_fails(healthy(), "ImportError: libcublas.so.13: undefined symbol: cublasLtHSHMatmulAlgoInit"),
            LD_LIBRARY_PATH=f"/opt/lib:{TOOLKIT}",
        ),
        (OTHER_CUBLASLT,),
    ),
    Case(
        "DOC220",
        "cublasLt of an installed toolkit, with which torch computes",
        lambda: taken("libcublasLt.so.13", f"{TOOLKIT}/libcublasLt.so.13", healthy(), LD_LIBRARY_PATH=TOOLKIT),
        (OTHER_CUBLASLT,),
        severity=NOTE,
    ),
    Case("DOC220", "a library of the system's", lambda: taken("libstdc++.so.6", "/opt/lib/libstdc++.so.6")),
    Case(
        "DOC220",
        "a library of which no distribution is installed",
        lambda: taken("libcudss.so.0", f"{TOOLKIT}/libcudss.so.0"),
    ),
    # B21
    Case(
        "DOC221",
        "a toolkit in LD_LIBRARY_PATH",
        lambda: with_variables(healthy(), LD_LIBRARY_PATH=TOOLKIT),
        (f"harmless: LD_LIBRARY_PATH names {TOOLKIT}, but torch's 15 NVIDIA libraries are loaded from elsewhere",),
        severity=NOTE,
    ),
    Case("DOC221", "the driver's stubs", lambda: with_variables(healthy(), LD_LIBRARY_PATH=f"{TOOLKIT}/stubs")),
    Case(
        "DOC221",
        "a library that does come from there",
        lambda: taken("libcublasLt.so.13", f"{TOOLKIT}/libcublasLt.so.13", LD_LIBRARY_PATH=TOOLKIT),
    ),
    Case("DOC221", "no variable", healthy),
    # B22
    Case(
        "DOC222",
        "CUDA works without it",
        lambda: preloading(crashing(), "/opt/hooks/libhook.so", after=(0, 1)),
        ("LD_PRELOAD loads /opt/hooks/libhook.so into every program; CUDA works without it",),
        evidence=("/opt/hooks/libhook.so", "cuInit 0, 1 device (with it: a crash)"),
    ),
    Case(
        "DOC222",
        "a hook for CUDA, and a crash before any experiment",
        lambda: preloading(crashing(), "/opt/hooks/libcuda_hook.so"),
        (f"LD_PRELOAD loads /opt/hooks/libcuda_hook.so into every program, {MAY_BE}",),
        severity=NOTE,
    ),
    Case(
        "DOC222",
        "/etc/ld.so.preload",
        lambda: replaced(crashing(), "loader", preload_file="/opt/vgpu/libvgpu.so"),
        (f"/etc/ld.so.preload loads /opt/vgpu/libvgpu.so into every program, {MAY_BE}",),
        severity=NOTE,
    ),
    Case(
        "DOC222",
        "it crashes without it, too",
        lambda: preloading(crashing(), "/opt/libcuda_hook.so", after=(CRASHED, 0)),
    ),
    Case(
        "DOC222",
        "a preloaded allocator, and all is well",
        lambda: with_variables(healthy(), LD_PRELOAD="libjemalloc.so.2"),
    ),
    # B23
    Case(
        "DOC223",
        "NVPL is nowhere",
        nvpl,
        (
            "torch 2.11.0+cu130 needs libnvpl_lapack_lp64_gomp.so.0, which is not found and which its metadata does "
            "not require",
        ),
        evidence=("libtorch_cuda.so",),
    ),
    Case("DOC223", "NVPL is installed, and its file gone", lambda: nvpl(owner="nvpl-lapack")),
    Case("DOC223", "all is found", grace),
]


def _torch_files() -> Any:
    installed = healthy().installed
    assert isinstance(installed, Installed)
    return installed.torch
