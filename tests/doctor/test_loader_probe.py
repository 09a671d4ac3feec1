"""The loader: traces of the real one, and libraries opened by name, compiled by gcc and opened."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.environments import ld_cache
from tests.support.installation import compile_library, found, installed, interpreter, loader, look
from tests.support.patients import NCCL, Patient, nccl_wheel, torch_wheel, triton_wheel
from tests.support.stub_driver import build
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.host.software import CudaLibrary, Loader
from wheel_checks.model import Unavailable
from wheelproof.doctor.children import Budget
from wheelproof.doctor.probes.loader import _tidy, read_loader

KERNELS_PYTHON = os.environ.get("WHEELPROOF_KERNELS_PYTHON", "")  # read now: tests run without it in their environment
MACHINE = os.uname().machine
CACHE_FLAGS = {"x86_64": 0x0303, "aarch64": 0x0A03}[MACHINE]
RPATH = "$ORIGIN:$ORIGIN/../../nvidia/cu13/lib"
CUBLAS, CUBLASLT = "libcublas.so.13", "libcublasLt.so.13"


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    """torch, and cuBLAS next to it as NVIDIA's wheels have it: libcublas has DT_RUNPATH, torch's libraries DT_RPATH."""
    wheel = WheelBuilder("nvidia_cublas", "13.1.0.3")
    folder = tmp_path / "build"
    lt = compile_library(folder / CUBLASLT, "int cublasLtHSHMatmulAlgoInit(void) { return 1; }")
    cublas = compile_library(folder / CUBLAS, needed=[lt], runpath="$ORIGIN")
    nccl = compile_library(folder / "libnccl.so.2")
    torch = compile_library(folder / "libtorch_cuda.so", needed=[cublas], rpath=RPATH)
    for library in (lt, cublas):
        wheel.add(f"nvidia/cu13/lib/{library.name}", library.read_bytes())
    made = Patient.make(tmp_path / "env", torch_wheel(), nccl_wheel(), triton_wheel(), wheel)
    made.installed.write("torch/lib/libtorch_cuda.so", torch.read_bytes()).write(NCCL, nccl.read_bytes())
    return made


def site_packages(patient: Patient) -> str:
    return str(patient.installed.site_packages)


def read(root: Path, **variables: str) -> Loader:
    return read_loader(Unavailable("none"), Unavailable("none"), str(root), environ=variables)


# The trace


def test_the_loader_tells_where_it_finds_what_torch_needs(patient: Patient) -> None:
    loaded = loader(look(patient.python))

    assert loaded.resolved[CUBLAS] == f"{site_packages(patient)}/nvidia/cu13/lib/{CUBLAS}"
    assert loaded.resolved[CUBLASLT] == f"{site_packages(patient)}/nvidia/cu13/lib/{CUBLASLT}"
    assert loaded.resolved["libc.so.6"].startswith("/")
    assert loaded.error == ""


def test_library_path_does_not_matter_to_what_has_rpath_and_does_to_what_has_runpath(
    patient: Patient, tmp_path: Path
) -> None:
    """The catalogue's B21 and B20."""
    toolkit = tmp_path / "cuda/lib64"
    compile_library(toolkit / CUBLAS)
    harmless = look(patient.python, LD_LIBRARY_PATH=str(toolkit))
    compile_library(toolkit / CUBLASLT)
    shadowed = look(patient.python, LD_LIBRARY_PATH=str(toolkit))

    assert loader(harmless).resolved[CUBLAS] == f"{site_packages(patient)}/nvidia/cu13/lib/{CUBLAS}"
    assert loader(shadowed).resolved[CUBLASLT] == f"{toolkit}/{CUBLASLT}"
    assert found(harmless) == found(shadowed) == {}  # notes, while nothing fails


def test_what_torch_opens_first_is_loaded_when_the_others_need_it(patient: Patient, tmp_path: Path) -> None:
    """libtorch_global_deps.so brings another NCCL than the search of libtorch_cuda.so would find."""
    first = compile_library(tmp_path / "first/libnccl.so.2")
    deps = compile_library(tmp_path / "libtorch_global_deps.so", needed=[first], rpath=str(first.parent))
    user = compile_library(tmp_path / "libtorch_cuda.so", needed=[first], rpath="$ORIGIN/../../nvidia/nccl/lib")
    patient.installed.write("torch/lib/libtorch_cuda.so", user.read_bytes())
    without = loader(look(patient.python)).resolved["libnccl.so.2"]
    patient.installed.write("torch/lib/libtorch_global_deps.so", deps.read_bytes())

    assert without == f"{site_packages(patient)}/{NCCL}"
    assert loader(look(patient.python)).resolved["libnccl.so.2"] == str(first)


def test_what_is_not_found_is_reported_next_to_what_is(patient: Patient) -> None:
    patient.installed.remove(f"nvidia/cu13/lib/{CUBLASLT}")

    loaded = loader(look(patient.python))

    assert loaded.resolved[CUBLASLT] == ""
    assert loaded.resolved[CUBLAS].endswith(CUBLAS)


@pytest.mark.parametrize("length", [60, 2_000, -400])
def test_a_library_that_is_cut_off(patient: Patient, length: int) -> None:
    """The loader names it, or dies of it; the files say which one it is in either case."""
    path = patient.installed.site_packages / "nvidia/cu13/lib" / CUBLASLT
    path.write_bytes(path.read_bytes()[:length])

    facts = look(patient.python)

    assert f"{CUBLASLT} of nvidia-cublas 13.1.0.3 cannot be loaded" in found(facts)["DOC206"]
    assert loader(facts).error or length == -400  # the end is the table of sections, which no loader reads


def test_a_version_that_libstdcxx_lacks_is_refused(patient: Patient, tmp_path: Path) -> None:
    """The real loader's words, of a library that was linked against a newer one."""
    newer = tmp_path / "newer"
    script = newer / "versions"
    newer.mkdir()
    script.write_text("GLIBCXX_9.9.99 { global: from_the_future; };\n")
    command = [
        "gcc",
        "-shared",
        "-fPIC",
        "-x",
        "c",
        "-",
        "-Wl,-soname,libstdc++.so.6",
        f"-Wl,--version-script={script}",
    ]
    source = "int from_the_future(void) { return 1; }"
    subprocess.run([*command, "-o", str(newer / "libstdc++.so.6")], input=source, text=True, check=True)
    user = "int from_the_future(void); int use(void) { return from_the_future(); }"
    torch = compile_library(tmp_path / "libtorch_cuda.so", user, needed=[newer / "libstdc++.so.6"])
    patient.installed.write("torch/lib/libtorch_cuda.so", torch.read_bytes())

    facts = look(patient.python)

    assert "version `GLIBCXX_9.9.99' not found" in loader(facts).error
    assert "libtorch_cuda.so needs GLIBCXX_9.9.99, which " in found(facts)["DOC216"]


def test_a_folder_that_ld_preload_cannot_name(tmp_path: Path) -> None:
    patient = Patient.make(tmp_path / "two words" / "env")

    assert loader(look(patient.python)).resolved["libnccl.so.2"] == f"{site_packages(patient)}/{NCCL}"


def test_the_user_s_own_preloads_stay(patient: Patient, tmp_path: Path) -> None:
    other = compile_library(tmp_path / "other" / CUBLAS)

    assert CUBLAS not in loader(look(patient.python, LD_PRELOAD=str(other))).resolved  # it is there from the start


def test_what_is_not_known_is_not_traced(patient: Patient) -> None:
    facts = look(patient.python)
    python, files = interpreter(facts), installed(facts)

    assert isinstance(read_loader(python, files, budget=Budget(0)), Loader)  # the trace may end before it is killed
    assert read_loader(Unavailable("x"), files).resolved == {}
    assert read_loader(python, Unavailable("x")).resolved == {}


@pytest.mark.kernels
def test_the_real_torch_of_the_kernels_lane() -> None:
    loaded = loader(look(KERNELS_PYTHON))

    assert loaded.resolved["libc10.so"].endswith("/torch/lib/libc10.so")
    assert "" not in loaded.resolved.values()
    assert loaded.error == ""


# The driver's libraries


def test_a_driver_in_library_path_is_known_by_its_version(tmp_path: Path) -> None:
    folder = build(tmp_path / "driver", version="580.159.04")

    libraries = read(Path("/"), LD_LIBRARY_PATH=f"/nowhere:{folder}").cuda_libraries

    assert [
        (one.name, one.version, one.kind, one.where) for one in libraries if one.path.startswith(str(tmp_path))
    ] == [
        ("libcuda.so.1", "580.159.04", "driver", "LD_LIBRARY_PATH"),
        ("libnvidia-ml.so.1", "580.159.04", "driver", "LD_LIBRARY_PATH"),
    ]


def put(root: Path, path: str, size: int = 2 << 20) -> None:
    """A file of that size (a hole) below a root; a libcuda with a version gets its link."""
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as stream:
        stream.truncate(size)
    name, _, version = file.name.partition(".so.")
    if "." in version:
        (file.parent / f"{name}.so.1").symlink_to(file.name)


def test_every_libcuda_below_a_root_in_the_order_of_the_loader(tmp_path: Path) -> None:
    system = f"/usr/lib/{MACHINE}-linux-gnu"
    put(tmp_path, f"{system}/libcuda.so.570.124.06")
    put(tmp_path, "/usr/local/cuda-13.0/compat/libcuda.so.580.65.06")
    put(tmp_path, "/usr/local/cuda-13.0/targets/x86_64-linux/lib/stubs/libcuda.so.1")
    put(tmp_path, "/usr/lib/wsl/lib/libcuda.so.1", 160_000)
    put(tmp_path, "/opt/small/libcuda.so.1", 60_000)
    put(tmp_path, "/opt/large/libcuda.so.1")
    put(tmp_path, "/etc/ld.so.cache", 0)
    cache = ld_cache(("libcuda.so.1", f"{system}/libcuda.so.1", CACHE_FLAGS))
    (tmp_path / "etc/ld.so.cache").write_bytes(cache)

    loaded = read(tmp_path, LD_LIBRARY_PATH="/opt/small:/opt/large")

    assert [(one.path, one.version, one.kind, one.where) for one in loaded.cuda_libraries] == [
        ("/opt/small/libcuda.so.1", "", "stub", "LD_LIBRARY_PATH"),
        ("/opt/large/libcuda.so.1", "", "unknown", "LD_LIBRARY_PATH"),
        (f"{system}/libcuda.so.1", "570.124.06", "driver", "ld.so.cache"),
        ("/usr/lib/wsl/lib/libcuda.so.1", "", "driver", "known folder"),
        ("/usr/local/cuda-13.0/compat/libcuda.so.1", "580.65.06", "compat", "known folder"),
        ("/usr/local/cuda-13.0/targets/x86_64-linux/lib/stubs/libcuda.so.1", "", "stub", "known folder"),
    ]
    assert loaded.cached_libcuda


def test_what_else_lies_below_a_root(tmp_path: Path) -> None:
    put(tmp_path, "/sbin/ldconfig")
    put(tmp_path, "/etc/ld.so.preload", 0)
    (tmp_path / "etc/ld.so.preload").write_text("/opt/vgpu/libvgpu.so\n  /opt/hook.so\n")
    (tmp_path / "etc/ld.so.cache").write_bytes(b"no cache at all")

    loaded = read(tmp_path)

    assert (loaded.has_ldconfig, loaded.cached_libcuda, loaded.cuda_libraries) == (True, False, ())
    assert loaded.preload_file == "/opt/vgpu/libvgpu.so /opt/hook.so"
    assert not read(tmp_path / "etc").has_ldconfig


# What cuDNN opens

ENGINE = "libcudnn_engines_tensor_ir.so.9"
GRAPH = f"""
#include <dlfcn.h>
int opened(void) {{
    void *engine = dlopen("{ENGINE}", RTLD_NOW);
    return engine ? ((int (*)(void))dlsym(engine, "which"))() : 0;
}}
"""
OURS, OTHERS, NONE = 1, 2, 0


def with_cudnn(tmp_path: Path, *, complete: bool, **search: str) -> Patient:
    """cuDNN next to torch, whose graph library opens an engine by name; ``search`` is its rpath or runpath."""
    folder = tmp_path / "build"
    main = compile_library(folder / "libcudnn.so.9", 'const char *parts = "libcudnn_graph.so libcudnn_ops.so";')
    graph = compile_library(folder / "libcudnn_graph.so.9", GRAPH, **search)  # type: ignore[arg-type]
    engine = compile_library(folder / ENGINE, f"int which(void) {{ return {OURS}; }}")
    torch = compile_library(folder / "libtorch_cuda.so", needed=[main], rpath="$ORIGIN/../../nvidia/cudnn/lib")
    wheel = WheelBuilder("nvidia_cudnn_cu13", "9.19.0.56")
    for library in (main, graph, *([engine] if complete else [])):
        wheel.add(f"nvidia/cudnn/lib/{library.name}", library.read_bytes())
    patient = Patient.make(tmp_path / "env", torch_wheel(), nccl_wheel(), triton_wheel(), wheel)
    patient.installed.write("torch/lib/libtorch_cuda.so", torch.read_bytes())
    return patient


def another_cudnn(folder: Path, version: str = "9.24.0") -> Path:
    file = compile_library(
        folder / f"libcudnn_engines_tensor_ir.so.{version}", f"int which(void) {{ return {OTHERS}; }}", soname=ENGINE
    )
    (folder / ENGINE).symlink_to(file.name)
    return folder


def really_opened(patient: Patient, **variables: str) -> int:
    graph = patient.installed.site_packages / "nvidia/cudnn/lib/libcudnn_graph.so.9"
    script = f"import ctypes; print(ctypes.CDLL({str(graph)!r}).opened())"
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **variables}, capture_output=True, check=True
    )
    return int(done.stdout)


def engine_of(loaded: Loader) -> CudaLibrary | None:
    return next((part for part in loaded.cudnn if part.name == ENGINE), None)


@pytest.mark.parametrize(
    ("search", "complete", "path", "opens"),
    [
        ({"runpath": "$ORIGIN"}, True, False, OURS),
        ({"runpath": "$ORIGIN"}, True, True, OTHERS),
        ({"runpath": "$ORIGIN"}, False, True, OTHERS),
        ({"runpath": "$ORIGIN"}, False, False, NONE),
        ({"rpath": "$ORIGIN"}, True, True, OURS),
        ({"rpath": "$ORIGIN"}, False, True, OTHERS),
    ],
)
def test_the_engine_that_cudnn_gets_is_the_one_that_is_reported(
    tmp_path: Path, search: dict[str, str], complete: bool, path: bool, opens: int
) -> None:
    patient = with_cudnn(tmp_path, complete=complete, **search)
    other = another_cudnn(tmp_path / "cuda/lib64")
    variables = {"LD_LIBRARY_PATH": str(other)} if path else {}
    facts = look(patient.python, **variables)
    loaded = engine_of(loader(facts))

    assert really_opened(patient, **variables) == opens
    assert (loaded.kind if loaded else None) == {OURS: "bundled", OTHERS: "other", NONE: None}[opens]
    assert ("DOC219" in found(facts)) == (opens == OTHERS)
    if loaded and opens == OTHERS:
        assert (loaded.path, loaded.version, loaded.where) == (f"{other}/{ENGINE}", "9.24.0", "LD_LIBRARY_PATH")


def test_another_cudnn_of_the_same_release_is_no_finding(tmp_path: Path) -> None:
    patient = with_cudnn(tmp_path, complete=True, runpath="$ORIGIN")
    other = another_cudnn(tmp_path / "cuda/lib64", "9.19.0")

    assert found(look(patient.python, LD_LIBRARY_PATH=str(other))) == {}


def test_a_part_that_cudnn_does_not_open_is_not_reported(tmp_path: Path) -> None:
    """Newer releases have more parts: that an older one has them not is not a fault."""
    patient = with_cudnn(tmp_path, complete=True, runpath="$ORIGIN")
    folder = another_cudnn(tmp_path / "cuda/lib64", "9.19.0")
    compile_library(folder / "libcudnn_ext.so.9")

    parts = loader(look(patient.python, LD_LIBRARY_PATH=str(folder))).cudnn

    assert {part.name for part in parts} == {"libcudnn_graph.so.9", ENGINE}


def test_a_path_is_shown_without_the_folders_that_it_leaves_again(tmp_path: Path) -> None:
    (tmp_path / "real/lib").mkdir(parents=True)
    (tmp_path / "elsewhere/lib").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real/away").symlink_to(tmp_path / "elsewhere/lib")

    assert _tidy(f"{tmp_path}/link/lib/../libm.so") == f"{tmp_path}/link/libm.so"  # as it was searched
    assert _tidy(f"{tmp_path}/link/away/../libm.so") == f"{tmp_path}/elsewhere/libm.so"  # `away` leads elsewhere
