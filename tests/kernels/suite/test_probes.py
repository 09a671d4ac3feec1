"""The probes of the installation, and their faults, brought about: no compiler, a full disk, a broken torch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernels_smoke.suite.advice import shown
from kernels_smoke.suite.probes import compiler as probes_compiler
from kernels_smoke.suite.probes import installation as probes_installation

PYTHON = os.environ.get("WHEELPROOF_KERNELS_PYTHON", "")
ROOT = Path(__file__).resolve().parents[3]
Record = dict[str, Any]


def run(script: str, *, python: str = PYTHON, prefix: tuple[str, ...] = (), **environment: str) -> Any:
    """What ``script`` prints as JSON under ``python``, with this package and ``json`` at hand."""
    done = subprocess.run(
        [*prefix, python, "-c", f"import json\n{script}"],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def basic(device: str, target: str = "", before: str = "", **options: Any) -> dict[str, Record]:
    """The records of the basic probes, by name, asked in their own process."""
    script = f"""
{before}
from kernels_smoke.suite.probes import probing as probes
records = []
probes.basic(records.append, device={device!r}, target={target!r})
print(json.dumps({{record["name"]: record for record in records if record["kind"] == "probe"}}))
"""
    found: dict[str, Record] = run(script, **options)
    return found


# torch and triton


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Install a stand-in for a package: ``packages("torch", "source of its __init__.py", "line of METADATA", ...)``."""
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("torch", "triton", "triton.backends"):
        monkeypatch.delitem(sys.modules, name, raising=False)

    def install(name: str, source: str, *metadata: str) -> None:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(source)
        (tmp_path / f"{name}-1.dist-info").mkdir()
        (tmp_path / f"{name}-1.dist-info" / "METADATA").write_text(f"Name: {name}\nVersion: 1\n" + "\n".join(metadata))
        if name == "triton":
            (tmp_path / name / "backends").mkdir()
            (tmp_path / name / "backends" / "__init__.py").write_text("backends = {'nvidia': None, 'amd': None}")

    return install


def torch_source(version: str, cuda: str | None) -> str:
    return f"class version:\n    cuda, hip = {cuda!r}, None\n__version__ = {version!r}\n"


def test_a_cuda_build_and_the_triton_that_it_asks_for(packages: Callable[..., None]) -> None:
    packages("torch", torch_source("2.11.0+cu130", "13.0"), "Requires-Dist: triton==3.6.0; platform_system == 'Linux'")
    packages("triton", "__version__ = '3.6.0'")
    assert probes_installation.torch_build("cuda").message == "torch 2.11.0+cu130, built for CUDA 13.0"
    assert probes_installation.triton_version("cuda").message == "triton 3.6.0, as torch asks for"


@pytest.mark.parametrize(
    "requirement", ["triton (==3.6.0)", "triton == 3.6.0 ; python_version < '4'", "pytorch-triton==3.6.0+git1"]
)
def test_the_spellings_of_a_pin(packages: Callable[..., None], requirement: str) -> None:
    packages(
        "torch",
        torch_source("2.11.0", "13.0"),
        "Requires-Dist: triton-model-analyzer>=1",
        f"Requires-Dist: {requirement}",
    )
    packages("triton", "__version__ = '3.6.0+git2'")
    assert probes_installation.triton_version("cuda").outcome == "pass"


def test_a_triton_that_torch_did_not_ask_for_is_a_warning(packages: Callable[..., None]) -> None:
    packages("torch", torch_source("2.11.0", "13.0"), "Requires-Dist: triton==3.6.0")
    packages("triton", "__version__ = '3.7.1'")
    answer = probes_installation.triton_version("cuda")
    assert answer.outcome == "fail"
    assert answer.message.startswith("triton 3.7.1 is installed, and this torch asks for 3.6.0")
    assert answer.evidence["severity"] == "warning"
    assert [*map(shown, answer.fix)] == [f"{sys.executable} -m pip install triton==3.6.0"]


def test_a_cpu_build_is_wrong_only_where_a_gpu_is(packages: Callable[..., None]) -> None:
    packages("torch", torch_source("2.13.0+cpu", None))
    assert probes_installation.torch_build("interpret").outcome == "pass"
    answer = probes_installation.torch_build("cuda")
    assert answer.outcome == "fail"
    assert "is built for the CPU alone; there is an NVIDIA GPU" in answer.message
    assert [*map(shown, answer.fix)] == [f"wheelproof doctor --python {sys.executable}"]


@pytest.mark.parametrize(
    ("version", "outcome"), [("2.5.1", "fail"), ("2.6.0", "pass"), ("2.11.0", "pass"), ("3.0", "pass")]
)
def test_the_oldest_torch(packages: Callable[..., None], version: str, outcome: str) -> None:
    packages("torch", torch_source(version, "13.0"))
    assert probes_installation.torch_build("cuda").outcome == outcome


def test_nothing_is_installed() -> None:
    bare = "import sys; sys.path[:] = [folder for folder in sys.path if 'site-packages' not in folder]"
    records = basic("cuda", "sm_90", python=sys.executable, before=bare)
    assert list(records) == ["torch", "triton"]
    for name, record in records.items():
        assert record["outcome"] == "error"
        assert record["message"] == f"{name} is not installed in this environment"
        assert [*map(shown, record["fix"])] == [f"wheelproof doctor --python {sys.executable}"]


def test_a_torch_whose_library_is_broken(packages: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    packages("torch", "raise OSError('libtorch_cuda.so: undefined symbol: ncclCommSplit')")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/nccl/lib")
    answer = probes_installation.torch_build("cuda")
    assert answer.outcome == "error"
    assert answer.message == (
        "torch is installed and cannot be imported: OSError: libtorch_cuda.so: undefined symbol: ncclCommSplit"
    )
    assert answer.evidence["LD_LIBRARY_PATH"] == "/opt/nccl/lib"
    assert "unset LD_LIBRARY_PATH" in shown(answer.fix[0])


def test_a_torch_that_lacks_another_package(packages: Callable[..., None]) -> None:
    packages("torch", "import a_package_that_is_not_there")
    answer = probes_installation.torch_build("cuda")
    assert answer.outcome == "error"
    assert "is installed and cannot be imported" in answer.message
    assert shown(answer.fix[0]) == f"{sys.executable} -m pip install a_package_that_is_not_there"


def test_a_torch_that_lacks_a_part_of_itself(packages: Callable[..., None]) -> None:
    packages("torch", "import torch.a_part")
    answer = probes_installation.torch_build("cuda")
    assert answer.outcome == "error"
    assert [*map(shown, answer.fix)] == [f"wheelproof doctor --python {sys.executable}"]


def test_a_torch_that_ends_the_program(packages: Callable[..., None]) -> None:
    packages("torch", "raise SystemExit('no AVX')")
    assert "SystemExit: no AVX" in probes_installation.torch_build("cuda").message


# The cache


def test_a_cache_that_works_is_left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "a" / "cache"))
    assert probes_installation.jit_cache().outcome == "pass"
    assert list((tmp_path / "a" / "cache").iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "folder"),
    [
        ({"TRITON_CACHE_DIR": "/one", "TRITON_HOME": "/two"}, "/one"),
        ({"TRITON_HOME": "/two"}, "/two/.triton/cache"),
        ({"HOME": "/three"}, "/three/.triton/cache"),
    ],
)
def test_where_the_cache_is(settings: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TRITON_CACHE_DIR", "TRITON_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert probes_installation.cache_folder() == Path(folder)


def test_a_cache_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "file" / "cache"))
    answer = probes_installation.jit_cache()
    assert answer.outcome == "fail"
    assert "cannot be written: Not a directory" in answer.message
    assert shown(answer.fix[0]).startswith("export TRITON_CACHE_DIR=")


CACHE = "from kernels_smoke.suite.probes import installation as p; print(json.dumps(p.jit_cache().__dict__))"


def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536)); {CACHE}"
    answer = run(limited, python=sys.executable, TRITON_CACHE_DIR=str(tmp_path))
    assert answer["outcome"] == "fail"
    assert "File too large" in answer["message"]
    assert list(tmp_path.iterdir()) == []


MOUNTS = {
    "read-only": ("-t tmpfs -o ro none", "Read-only file system"),
    "full": ("-t tmpfs -o size=64k none", "No space left on device"),
    "small": ("-t tmpfs -o size=8m none", "MiB left; the suite needs 64 MiB"),
    "not executable": ("-t tmpfs -o noexec none", "is mounted noexec"),
}


@pytest.mark.parametrize("kind", MOUNTS)
def test_a_cache_on_a_file_system_that_does_not_do(kind: str, tmp_path: Path) -> None:
    options, message = MOUNTS[kind]
    if subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True, timeout=60).returncode:
        pytest.skip("this user may not mount anything")
    prefix = ("unshare", "-m", "sh", "-c", f'mount {options} {tmp_path} && exec "$0" "$@"')
    answer = run(CACHE, python=sys.executable, prefix=prefix, TRITON_CACHE_DIR=str(tmp_path))
    assert answer["outcome"] == "fail"
    assert message in answer["message"]


# The C compiler

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")


@needs_gcc
def test_a_compiler_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    answer = probes_compiler.c_compiler()
    assert answer.outcome == "pass", answer
    assert answer.evidence["compiler"] == shutil.which("gcc")


def test_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "apt-get").touch(mode=0o755)
    answer = probes_compiler.c_compiler()
    assert answer.outcome == "fail"
    assert answer.message.startswith("there is no C compiler (neither CC, nor gcc, nor clang)")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert [*map(shown, answer.fix)] == [
        "apt-get update  # as root",
        f"apt-get install -y gcc libc6-dev python{version}-dev  # as root",
    ]


@pytest.mark.parametrize("compiler", ["", "ccache gcc", "/no/such/compiler"])
def test_a_compiler_that_cannot_be_started(compiler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", compiler)
    answer = probes_compiler.c_compiler()
    assert answer.outcome == "fail"
    assert answer.message.startswith(f"the C compiler {compiler!r} does not run")
    assert shown(answer.fix[0]).startswith("unset CC")


@needs_gcc
def test_no_python_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(sysconfig, "get_paths", lambda scheme: {"include": str(tmp_path)})
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    answer = probes_compiler.c_compiler()
    assert answer.outcome == "fail"
    assert answer.message.startswith(f"Python.h is not in {tmp_path}")
    assert "Python.h: No such file" in answer.evidence["complaint"]


@needs_gcc
def test_a_compiler_without_the_c_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapper = tmp_path / "bare-gcc"
    wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("gcc")} -nostdinc "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("CC", str(wrapper))
    answer = probes_compiler.c_compiler()
    assert answer.outcome == "fail"
    assert "cannot build a Python module of three lines: " in answer.message
    assert "No such file or directory" in answer.message


@needs_gcc
def test_a_module_that_python_cannot_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapper = tmp_path / "other-gcc"
    wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("gcc")} "$@" -c\n')  # an object, as for another machine
    wrapper.chmod(0o755)
    monkeypatch.setenv("CC", str(wrapper))
    assert "cannot be loaded by this Python" in probes_compiler.c_compiler().message


# Tests that need torch and triton, and no GPU


@pytest.mark.kernels
def test_the_probes_of_the_interpreter() -> None:
    records = basic("interpret", TRITON_INTERPRET="1")
    assert {name: record["outcome"] for name, record in records.items()} == {
        "torch": "pass",
        "triton": "pass",
        "interpreter": "pass",
    }


@pytest.mark.kernels
def test_an_interpreter_without_numpy(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("raise ModuleNotFoundError(\"No module named 'numpy'\", name='numpy')")
    records = basic("interpret", TRITON_INTERPRET="1", PYTHONPATH=f"{tmp_path}:{ROOT}")
    assert "interpreter" not in records
    record = records["triton"]
    assert record["outcome"] == "error"
    assert record["message"] == (
        "triton is installed and cannot be imported: ModuleNotFoundError: No module named 'numpy'"
    )
    assert [*map(shown, record["fix"])] == [f"{PYTHON} -m pip install numpy"]


@pytest.mark.kernels
def test_an_interpreter_that_miscounts() -> None:
    script = """
from kernels_smoke.suite.probes import interpreter as p
class Unmasked:
    def __getitem__(self, grid):
        return lambda numbers, sums, count, BLOCK: sums.fill_(float(numbers.sum()))
p._sum_blocks = Unmasked()
print(json.dumps(p.interpreter().__dict__))
"""
    answer = run(script, TRITON_INTERPRET="1")
    assert answer["outcome"] == "fail"
    assert "and not to [8128.0, 24512.0, 12210.0]" in answer["message"]


@pytest.mark.kernels
def test_the_probes_of_a_compilation(tmp_path: Path) -> None:
    records = basic("none", "sm_90", TRITON_CACHE_DIR=str(tmp_path))
    assert {name: record["outcome"] for name, record in records.items()} == {
        "torch": "pass",
        "triton": "pass",
        "jit_cache": "pass",
        "ptxas": "pass",
    }
    assert records["ptxas"]["evidence"]["architecture"] == "sm_90a"
    assert "ptxas" not in basic("none", "gfx942", TRITON_CACHE_DIR=str(tmp_path))


@pytest.mark.kernels
def test_the_cache_is_where_triton_looks(tmp_path: Path) -> None:
    script = """
from pathlib import Path
from triton import knobs
from kernels_smoke.suite.probes.installation import cache_folder
print(json.dumps(Path(knobs.cache.dir) == cache_folder()))
"""
    assert run(script, TRITON_CACHE_DIR=str(tmp_path))
    assert run(script, TRITON_HOME=str(tmp_path))
    assert run(script, HOME=str(tmp_path))


@pytest.mark.kernels
def test_a_ptxas_that_does_not_know_the_gpu() -> None:
    record = basic("none", "sm_999")["ptxas"]
    assert record["outcome"] == "fail"
    assert "does not know sm_999a" in record["message"]
    assert shown(record["fix"][0]).startswith(f"wheelproof doctor --python {PYTHON}")
    assert shown(record["fix"][1]).startswith("export TRITON_PTXAS_BLACKWELL_PATH=")


@pytest.mark.kernels
@pytest.mark.parametrize(("mode", "first_fix"), [(0o644, "chmod +x "), (0o755, "")])
def test_a_ptxas_that_does_not_run(mode: int, first_fix: str, tmp_path: Path) -> None:
    """One lost its mode, as in an unpacked archive; the other prints a version and then fails."""
    tool = tmp_path / "ptxas"
    tool.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "release 12.8" || exit 1\n')
    tool.chmod(mode)
    record = basic("none", "sm_80", TRITON_PTXAS_PATH=str(tool))["ptxas"]
    assert record["outcome"] == "fail"
    assert record["message"].startswith("Triton's ptxas does not run")
    assert shown(record["fix"][0]).startswith(first_fix)


@pytest.mark.kernels
def test_a_gpu_without_a_driver_ends_the_probes_of_the_gpu() -> None:
    """CUDA cannot start here; later probes are skipped, with the reason."""
    script = """
from kernels_smoke.suite.probes import gpu as probes_gpu, probing as probes
records = []
probes._ask_gpu(records.append, {**probes_gpu.BASIC})
print(json.dumps([(record["name"], record.get("outcome"), record.get("message")) for record in records]))
"""
    begin, first, *others = run(script, CUDA_VISIBLE_DEVICES="")
    assert begin == ["cuda_init", None, None]
    assert first[:2] in (["cuda_init", "fail"], ["cuda_init", "error"])
    assert others == [
        [name, "skip", "not tried, because cuda_init left CUDA unusable"]
        for name in ("allocation", "copies", "streams_and_events", "cuda_graph")
    ]


@pytest.mark.kernels
def test_a_crash_on_the_gpu_ends_the_probes_and_a_mere_failure_does_not() -> None:
    script = """
from kernels_smoke.suite.probes import probing as probes
from kernels_smoke.suite.probes.answer import Answer
def fails(): raise RuntimeError("cuDNN error: CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED")
def crashes(): raise RuntimeError("CUDA error: an illegal memory access was encountered")
def works(): return Answer("pass", "")
records = []
probes._ask_gpu(records.append, {"fails": fails, "works": works, "crashes": crashes, "more": works})
print(json.dumps([(record["name"], record["outcome"]) for record in records if record["kind"] == "probe"]))
"""
    assert run(script) == [["fails", "fail"], ["works", "pass"], ["crashes", "fail"], ["more", "skip"]]


@pytest.mark.kernels
def test_what_errors_of_cuda_mean() -> None:
    script = """
import torch
from kernels_smoke.suite.probes.gpu import failure
said = [
    RuntimeError("The NVIDIA driver on your system is too old (found version 12040). Please update"),
    RuntimeError("Unexpected error from cudaGetDeviceCount(). Did you run ... Error 803: system has unsupported ..."),
    RuntimeError("Unexpected error from cudaGetDeviceCount(). Did you run ... Error 802: system not yet initialized"),
    torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 64.00 MiB."),
    RuntimeError("something new"),
]
print(json.dumps([(answer.outcome, answer.message, answer.fix) for answer in map(failure, said)]))
"""
    old, mismatch, not_ready, taken, new = run(script)
    assert old[0] == "fail"
    assert old[1].startswith("the NVIDIA driver runs CUDA up to 12.4, and this torch is built for CUDA")
    assert mismatch[0] == "fail"
    assert "is of another version than the kernel module" in mismatch[1]
    assert "nvidia-fabricmanager" in shown(not_ready[2][0])
    assert taken[0] == "error"
    assert taken[1].startswith("the GPU's memory is taken by others")
    assert new[:2] == ["fail", "RuntimeError: something new"]


@pytest.mark.kernels
def test_which_gpus_a_torch_has_code_for() -> None:
    wanted = [
        ((9, 0), ["sm_80", "sm_90"], True),
        ((9, 0), ["sm_80", "sm_86"], False),
        ((9, 0), ["sm_80", "compute_80"], True),
        ((10, 3), ["sm_90", "sm_100"], True),
        ((10, 0), ["sm_103"], False),
        ((10, 3), ["sm_100a"], False),
        ((10, 3), ["sm_100f"], True),
        ((10, 3), ["sm_103a"], True),
        ((12, 1), ["sm_90", "compute_90a"], False),
        ((12, 1), ["sm_120", "compute_120"], True),
        ((8, 0), ["compute_90"], False),
        ((8, 0), [], False),
    ]
    cases = [(capability, built_for) for capability, built_for, _ in wanted]
    script = f"""
from kernels_smoke.suite.probes.gpu import covered
print(json.dumps([covered(capability, built_for) for capability, built_for in {cases!r}]))
"""
    assert run(script) == [covers for _, _, covers in wanted]


@pytest.mark.kernels
def test_a_checksum_sees_a_bit_and_an_exchange() -> None:
    script = """
import torch
from kernels_smoke.suite.probes.gpu import checksum
numbers = torch.arange(1 << 20, dtype=torch.int32)
flipped, exchanged = numbers.clone(), numbers.clone()
flipped[777] ^= 1 << 30
exchanged[[5, 6]] = exchanged[[6, 5]]
print(json.dumps([checksum(numbers), checksum(numbers.clone()), checksum(flipped), checksum(exchanged)]))
"""
    right, again, flipped, exchanged = run(script)
    assert right == again
    assert len({right, flipped, exchanged}) == 3


@pytest.mark.kernels
def test_products_and_convolutions_are_held_to_their_precision() -> None:
    """On the CPU: the right ones pass, and TF32, which has 10 bits after the point, does not."""
    script = """
import torch
from kernels_smoke.suite.probes.libraries import cublas, cudnn
answers = [cublas("cpu"), cudnn("cpu")]
def tf32(tensor):
    return (tensor.view(torch.int32) & ~0x1FFF).view(torch.float32) if tensor.dtype == torch.float32 else tensor
product, convolution = torch.Tensor.__matmul__, torch.nn.functional.conv2d
torch.Tensor.__matmul__ = lambda left, right: product(tf32(left), tf32(right))
torch.nn.functional.conv2d = lambda images, filters: convolution(tf32(images), tf32(filters))
answers += [cublas("cpu"), cudnn("cpu")]
print(json.dumps([(answer.outcome, answer.message, answer.fix) for answer in answers]))
"""
    product, convolution, coarse_product, coarse_convolution = run(script, NVIDIA_TF32_OVERRIDE="1")
    assert product[0] == convolution[0] == "pass"
    assert coarse_product[0] == coarse_convolution[0] == "fail"
    assert coarse_product[1].startswith("cuBLAS is off against float64: fp32: ")
    assert shown(coarse_product[2][0]).startswith("unset NVIDIA_TF32_OVERRIDE")


REDUCE = """
from kernels_smoke.suite.probes.nccl import all_reduce
print(json.dumps(all_reduce({world}, backend={backend!r}, device="cpu", what="it", deadline={deadline}).__dict__))
"""


@pytest.mark.kernels
def test_processes_that_reduce_together() -> None:
    answer = run(REDUCE.format(world=2, backend="gloo", deadline=60), GLOO_SOCKET_IFNAME="lo")
    assert answer["outcome"] == "pass", answer
    assert answer["message"].startswith("it: all-reduce over 2 GPUs at ")


@pytest.mark.kernels
def test_processes_that_do_not_come_to_an_end() -> None:
    answer = run(REDUCE.format(world=2, backend="gloo", deadline=0.2), GLOO_SOCKET_IFNAME="lo")
    assert answer["outcome"] == "fail"
    assert answer["message"] == "an all-reduce over 2 GPUs with it did not end within 0.2 s; silent: ranks 0, 1"


@pytest.mark.kernels
def test_a_process_that_fails_ends_the_others() -> None:
    answer = run(REDUCE.format(world=1, backend="no_such_backend", deadline=60))
    assert answer["outcome"] == "fail"
    assert answer["message"].startswith("an all-reduce over 1 GPUs with it failed on rank 0: ")
    assert "no_such_backend" in answer["evidence"]["rank 0"].lower()
