"""Installed packages in real environments with small files, broken as real ones break."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.environments import Installed as Folder
from tests.support.environments import library
from tests.support.installation import compile_library, found, installed, interpreter, look
from tests.support.patients import MACHINE, NCCL, PLATFORM, TAG, Patient, nccl_wheel, torch_wheel, triton_wheel
from tests.support.wheels import WheelBuilder, torch_like
from wheel_checks.facts.host.software import Installed, Interpreter
from wheel_checks.facts.host.torch.timeline import replacement
from wheel_checks.model import Unavailable
from wheel_checks.sources.file_tree import FileTree
from wheelproof.doctor.probes.installation.file_findings import CUT_OFF, PRESENT
from wheelproof.doctor.probes.installation.installed import find_modules, read_installed_facts

KERNELS_PYTHON = os.environ.get("WHEELPROOF_KERNELS_PYTHON", "")  # read now: tests run without it in their environment
SUFFIX = f"cpython-{TAG.removeprefix('cp')}-{MACHINE}-linux-gnu.so"
OTHER = "aarch64" if MACHINE == "x86_64" else "x86_64"


def read(python: Interpreter, root: str = "/", **variables: str) -> Installed:
    facts = read_installed_facts(python, root, environ=variables)
    assert isinstance(facts, Installed), facts
    return facts


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    """An environment with torch, NCCL and Triton in which nothing is wrong."""
    return Patient.make(tmp_path / "env")


def site_packages(patient: Patient) -> str:
    return str(patient.installed.site_packages)


# A whole environment


def test_a_torch_is_known_by_its_files(patient: Patient) -> None:
    torch = installed(look(patient.python)).torch

    assert torch is not None
    assert torch.folder == f"{site_packages(patient)}/torch"
    assert (torch.version, torch.cuda, torch.hip, torch.xpu) == ("2.11.0+cu130", "13.0", "", "")
    assert torch.architectures == ("sm_80", "sm_90", "sm_100")
    assert torch.has_cuda_library
    assert torch.triton == "triton==3.6.0"
    assert torch.rpath == (f"{torch.folder}/lib", f"{site_packages(patient)}/nvidia/nccl/lib")


def test_nothing_is_found_where_nothing_is_wrong(patient: Patient) -> None:
    facts = look(patient.python)

    assert (installed(facts).findings, installed(facts).missing, installed(facts).unresolved) == ((), (), ())
    assert found(facts) == {}


def test_the_distributions_that_matter(patient: Patient) -> None:
    patient.installed.install(WheelBuilder("demo").metadata(requires=["numpy"]))
    patient.installed.install(WheelBuilder("xformers", "0.0.35").metadata(requires=["torch>=2.10", "numpy"]))

    packages = {package.name: package for package in installed(look(patient.python)).packages}

    assert list(packages) == ["nvidia-nccl-cu13", "torch", "triton", "xformers"]
    assert packages["torch"].requires == ("nvidia-nccl-cu13==2.28.9", "triton==3.6.0")
    assert packages["torch"].version == "2.11.0"  # METADATA hides the build,
    assert packages["torch"].build == "cu130"  # which version.py shows
    assert packages["xformers"].requires == ("torch>=2.10",)
    assert (packages["torch"].installer, packages["torch"].requested) == ("uv", True)


def test_who_shares_the_libraries_with_torch_is_known_so_that_they_are_no_orphans(patient: Patient) -> None:
    patient.installed.install(WheelBuilder("nvidia-cublas-cu12", "12.8.4.1"))
    patient.installed.install(
        WheelBuilder("jax-cuda12-plugin").metadata(requires=["jaxlib", "nvidia-cublas-cu12>=12.8"])
    )
    neighbour = look(patient.python)
    shutil.rmtree(next(patient.installed.site_packages.glob("jax*")))

    assert [p.name for p in installed(neighbour).packages if p.name.startswith("jax")] == ["jax-cuda12-plugin"]
    assert replacement(neighbour) is None
    orphaned = replacement(look(patient.python))
    assert orphaned is not None
    assert [package.name for package in orphaned.orphans] == ["nvidia-cublas-cu12"]


def test_where_a_distribution_came_from_without_the_password(patient: Patient) -> None:
    url = json.dumps({"url": "https://user:secret@files.example.org/demo.whl", "archive_info": {}})
    patient.installed.install(
        WheelBuilder("demo").metadata(requires=["torch"]), **{"direct_url.json": url, "INSTALLER": "PIP\n"}
    )

    demo = installed(look(patient.python)).named("demo")

    assert demo is not None
    assert "files.example.org/demo.whl" in demo.url
    assert "secret" not in demo.url
    assert demo.installer == "pip"


def test_the_time_is_that_of_record_which_installers_write(patient: Patient) -> None:
    record = patient.installed.site_packages / "torch-2.11.0.dist-info/RECORD"
    os.utime(record, (1_790_000_000, 1_790_000_000))
    os.utime(record.with_name("METADATA"), (1_000_000_000, 1_000_000_000))  # as old as a cache

    torch = installed(look(patient.python)).named("torch")

    assert torch is not None
    assert torch.installed == 1_790_000_000


def test_only_what_torch_needs_is_compared_with_the_disk(patient: Patient) -> None:
    patient.installed.install(WheelBuilder("demo").add("demo/__init__.py", "x"))
    patient.installed.install(WheelBuilder("sympy", "1.14.0").add("sympy/__init__.py", "x"))
    torch = patient.installed.site_packages / "torch-2.11.0.dist-info/METADATA"
    torch.write_text(torch.read_text() + "Requires-Dist: sympy>=1.13.3\nRequires-Dist: demo; extra == 'x'\n")
    patient.installed.remove("demo/__init__.py").remove("sympy/__init__.py")

    findings = [one for one in installed(look(patient.python)).findings if one.rule == "WHL702"]

    assert [finding.subject for finding in findings] == ["sympy"]


@pytest.mark.parametrize(
    ("marker", "triton"),
    [
        ('platform_machine == "%s"', "triton==3.6.0"),
        ('platform_machine == "not-%s"', ""),
        ('python_version < "3" and platform_machine == "%s"', ""),
    ],
)
def test_torch_s_requirement_of_triton_on_this_machine(tmp_path: Path, marker: str, triton: str) -> None:
    wheel = torch_wheel().metadata(requires=[f"triton==3.6.0; {marker % MACHINE}"])
    torch = installed(look(Patient.make(tmp_path / "env", wheel).python)).torch

    assert torch is not None
    assert torch.triton == triton


def test_an_environment_of_the_other_machine_below_a_root(tmp_path: Path) -> None:
    """The CPU wheel that the package index has for aarch64, whose METADATA does not show that."""
    folder = Folder(tmp_path, "opt/venv/lib/python3.12/site-packages").install(torch_like("cpu", "2.10.0", OTHER))
    (tmp_path / "opt/venv/bin").mkdir()
    shutil.copy(sys.executable, tmp_path / "opt/venv/bin/python3")
    folder.write("../../../pyvenv.cfg", "home = /usr/bin\nversion = 3.12.4\n")

    facts = read_installed_facts(Unavailable("not started"), str(tmp_path), environ={})

    assert isinstance(facts, Installed)
    assert facts.torch is not None
    assert (facts.torch.version, facts.torch.cuda, facts.torch.has_cuda_library) == ("2.10.0+cpu", "", False)
    assert facts.torch.folder == "/opt/venv/lib/python3.12/site-packages/torch"
    package = facts.named("torch")
    assert package is not None
    assert (package.version, package.build) == ("2.10.0", "cpu")


def test_the_build_strings_of_conda(patient: Patient) -> None:
    for name in ("pytorch-2.10.0-cpu_mkl_py312_h0.json", "cuda-version-12.8-h5.json", "zlib-1.3-0.json", "history"):
        patient.installed.write(f"../../../conda-meta/{name}", "{}")

    assert installed(look(patient.python)).conda == {"pytorch": "cpu_mkl_py312_h0", "cuda-version": "h5"}


def test_an_environment_without_torch(tmp_path: Path) -> None:
    facts = installed(look(Patient.make(tmp_path / "env", WheelBuilder()).python))

    assert (facts.torch, facts.packages, facts.modules, facts.conda) == (None, (), (), None)


# Where modules are found


def test_all_torches_in_the_order_of_the_search(
    patient: Patient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "torch.py").write_text("")
    other = Folder(tmp_path / "other").install(WheelBuilder("torch", "2.5.1").add("torch/__init__.py"))
    behind = Folder(tmp_path / "behind").write("torch/__init__.py", "")
    patient.installed.write("behind.pth", str(behind.folder))

    modules = installed(look(patient.python, PYTHONPATH=str(other.folder))).modules

    assert [(one.name, one.entry) for one in modules] == [
        ("torch", ""),
        ("torch", str(other.folder)),
        ("torch", site_packages(patient)),
        ("torch", str(behind.folder)),
        ("triton", site_packages(patient)),
    ]
    assert modules[0].path == str(tmp_path / "torch.py")


def test_what_an_import_takes_of_one_folder(tmp_path: Path) -> None:
    """As importlib does: a package before an extension module before a module; a mere folder counts for nothing."""
    folder = Folder(tmp_path).write("torch/notes.txt", "").write("torch.py", "").write(f"torch.{SUFFIX}", "")

    def taken() -> str:
        (module,) = find_modules(FileTree(), [str(tmp_path)], "")
        return module.path.removeprefix(f"{tmp_path}/")

    assert taken() == f"torch.{SUFFIX}"
    folder.remove(f"torch.{SUFFIX}")
    assert taken() == "torch.py"
    folder.write("torch/__init__.py", "")
    assert taken() == "torch/__init__.py"


def test_lib64_that_is_a_link_is_the_same_folder(patient: Patient) -> None:
    python = interpreter(look(patient.python))
    (patient.folder / "lib64").unlink(missing_ok=True)
    (patient.folder / "lib64").symlink_to("lib")
    linked = site_packages(patient).replace("/lib/", "/lib64/")

    facts = read(replace(python, search_path=(linked, *python.search_path)))

    assert [module.name for module in facts.modules] == ["torch", "triton"]
    assert [package.name for package in facts.packages].count("torch") == 1


# Files that are gone or damaged


def test_missing_files_are_named_libraries_first(patient: Patient) -> None:
    headers = [f"nvidia/cudnn/include/part{number}.h" for number in range(60)]
    wheel = WheelBuilder("nvidia_cudnn_cu13", "9.19.0.56").add("nvidia/cudnn/__init__.py", "x")
    for path in (*headers, "nvidia/cudnn/lib/libcudnn.so.9"):
        wheel.add(path, b"x")
    patient.installed.install(wheel).remove("nvidia/cudnn/include").remove("nvidia/cudnn/lib")

    (finding,) = (one for one in installed(look(patient.python)).findings if one.rule == "WHL702")

    assert (finding.subject, finding.count, len(finding.paths)) == ("nvidia-cudnn-cu13", 61, 50)
    assert finding.paths[0] == f"{site_packages(patient)}/nvidia/cudnn/lib/libcudnn.so.9"
    assert dict(finding.evidence)[PRESENT] == "1"


def test_a_needed_library_that_is_gone(patient: Patient) -> None:
    patient.installed.remove(NCCL)

    (library,) = installed(look(patient.python)).missing

    assert (library.soname, library.user, library.owner) == ("libnccl.so.2", "torch", "nvidia-nccl-cu13")
    assert library.needed_by == (f"{site_packages(patient)}/torch/lib/libtorch_cuda.so",)
    assert f"{site_packages(patient)}/{NCCL}" in library.searched


def test_a_library_that_is_cut_off_and_one_that_is_only_smaller(tmp_path: Path) -> None:
    """Stripped, patched and truncated files are the same to RECORD."""
    whole = compile_library(tmp_path / "libnccl.so.2", "int ncclMemFree(void) { return 0; }")
    wheel = WheelBuilder("nvidia_nccl_cu13", "2.28.9").add(NCCL, whole.read_bytes() + bytes(64))
    patient = Patient.make(tmp_path / "env", torch_wheel(), wheel, triton_wheel())

    patient.installed.write(NCCL, whole.read_bytes())
    (smaller,) = (one for one in installed(look(patient.python)).findings if one.rule == "WHL703")
    patient.installed.write(NCCL, whole.read_bytes()[:-400])
    (cut,) = (one for one in installed(look(patient.python)).findings if one.rule == "WHL703")

    assert CUT_OFF not in dict(smaller.evidence)
    assert dict(cut.evidence)[CUT_OFF].startswith(f"{site_packages(patient)}/{NCCL}: ")


def test_two_metadata_folders_and_what_pip_left(patient: Patient) -> None:
    patient.installed.write("torch-2.10.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: torch\nVersion: 2.10.0\n")
    patient.installed.write("~orch-2.9.0.dist-info/METADATA", "").write("~orch/__init__.py", "")

    findings = {one.rule: one for one in installed(look(patient.python)).findings}

    assert [Path(path).name for path in findings["WHL710"].paths] == [
        "torch-2.10.0.dist-info",
        "torch-2.11.0.dist-info",
    ]
    assert [Path(path).name for path in findings["WHL712"].paths] == ["~orch", "~orch-2.9.0.dist-info"]


def test_libraries_of_two_owners(patient: Patient) -> None:
    other = WheelBuilder("nvidia_nccl_cu12", "2.27.3").add(NCCL, library("libnccl.so.2", ["libm.so.6"], MACHINE))
    patient.installed.install(other)

    (shared,) = (one for one in installed(look(patient.python)).findings if one.rule == "WHL713")

    assert shared.paths == (f"{site_packages(patient)}/{NCCL}",)
    assert set(shared.distributions) == {"nvidia-nccl-cu12", "nvidia-nccl-cu13"}


# Modules that were compiled against torch

C10 = "namespace c10 { struct Error { Error(int); }; Error::Error(int) {} }"
C10_OF_ANOTHER = "namespace c10 { struct Error { Error(long); }; Error::Error(long) {} }"
EXTENSION = 'namespace c10 { struct Error { Error(int); }; } extern "C" void use() { c10::Error error(1); }'


def with_extension(tmp_path: Path, c10: str) -> Patient:
    """torch with this libc10.so, and an extension that was compiled against one with ``Error(int)``."""
    libc10 = compile_library(tmp_path / "libc10.so", C10, language="c++")
    folders = "$ORIGIN/../torch/lib"
    module = compile_library(tmp_path / "module.so", EXTENSION, needed=[libc10], rpath=folders, language="c++")
    compile_library(libc10, c10, language="c++")
    flash = WheelBuilder("flash_attn", "2.8.3", PLATFORM).metadata(requires=["torch"]).add("flash_attn/__init__.py")
    flash.add(f"flash_attn/_C.{SUFFIX}", module.read_bytes())
    torch = torch_wheel().add("torch/lib/libc10.so", libc10.read_bytes())
    patient = Patient.make(tmp_path / "env", torch, nccl_wheel(), triton_wheel(), flash)
    for name in ("libtorch_cpu.so", "libtorch_cuda.so", "libtorch_python.so"):
        compile_library(patient.installed.site_packages / "torch/lib" / name)
    return patient


def load(patient: Patient) -> str:
    """The real loader's message about the extension."""
    path = patient.installed.site_packages / f"flash_attn/_C.{SUFFIX}"
    try:
        ctypes.CDLL(str(path), mode=os.RTLD_NOW)
    except OSError as error:
        return str(error)
    return ""


def test_a_module_of_another_torch_lacks_the_symbol_that_the_loader_lacks(tmp_path: Path) -> None:
    patient = with_extension(tmp_path, C10_OF_ANOTHER)
    facts = look(patient.python)

    (symbol,) = installed(facts).unresolved

    assert (symbol.distribution, symbol.count) == ("flash-attn", 1)
    assert f"undefined symbol: {symbol.symbol}" in load(patient)
    assert "c10::Error" in found(facts)["DOC215"]


def test_a_module_of_this_torch_lacks_nothing(tmp_path: Path) -> None:
    patient = with_extension(tmp_path, C10)

    assert installed(look(patient.python)).unresolved == ()
    assert load(patient) == ""


def test_nothing_is_reported_of_symbols_next_to_a_damaged_torch(tmp_path: Path) -> None:
    patient = with_extension(tmp_path, C10_OF_ANOTHER)
    patient.installed.write("torch/lib/libc10.so", b"\x7fELF")

    assert installed(look(patient.python)).unresolved == ()


# Whatever is on the disk, it is an answer


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("torch-2.11.0.dist-info/METADATA", b"\xff\xfe\0" * 1000),
        ("torch-2.11.0.dist-info/RECORD", b'"unclosed\n' * 100),
        ("torch-2.11.0.dist-info/direct_url.json", b"[" * 100_000),
        ("torch/version.py", b"__version__ = (" * 1000),
        ("torch/version.py", b"__version__ = 3\ncuda = ''\n"),
        ("torch/lib/libtorch_cuda.so", b"\x7fELF\x02\x01\x01" + b"\xff" * 200),
        ("torch/lib/libtorch_python.so", b""),
        ("demo-1.0.egg-info", b"Name: \xff\nVersion: x\n"),
        ("pyvenv.cfg", b"\0"),
    ],
)
def test_strange_files_are_no_crash(patient: Patient, path: str, content: bytes) -> None:
    patient.installed.write(path, content)

    facts = installed(look(patient.python))

    assert facts.torch is not None
    assert facts.named("nvidia-nccl-cu13") is not None


def test_strange_folders_are_no_crash(patient: Patient, tmp_path: Path) -> None:
    (patient.installed.site_packages / "torch/loop").symlink_to(patient.installed.site_packages / "torch")
    (patient.installed.site_packages / "nvidia/nowhere.so").symlink_to(tmp_path / "nowhere")
    os.mkfifo(patient.installed.site_packages / "nvidia/pipe.so")
    python = interpreter(look(patient.python))
    path = ("", "/nowhere", "/dev/null", "\0", *python.search_path)

    facts = read(replace(python, search_path=path, working_directory=""))

    assert facts.torch is not None


@pytest.mark.kernels
def test_the_real_torch_of_the_kernels_lane() -> None:
    facts = look(KERNELS_PYTHON)
    torch = installed(facts).torch
    script = "import torch, json; print(json.dumps([torch.__version__, torch.version.cuda or '', torch.__file__]))"
    done = subprocess.run([KERNELS_PYTHON, "-c", script], capture_output=True, text=True, check=True, cwd="/")
    version, cuda, file = json.loads(done.stdout)

    assert torch is not None
    assert (torch.version, torch.cuda, f"{torch.folder}/__init__.py") == (version, cuda, file)
    assert installed(facts).missing == ()
    assert found(facts) == {}
