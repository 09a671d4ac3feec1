"""Advice: the right command for this installer, this interpreter, this driver and GPU."""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.version import Version
from uv import find_uv_bin

from tests.support.hosts import (
    grace,
    healthy,
    in_container,
    package,
    replaced,
    with_cpu_torch,
    with_packages,
    with_torch,
    without_driver,
)
from tests.support.real_environment import RealEnvironment, torch
from tests.support.wheels import WheelBuilder
from wheel_checks.data import load
from wheel_checks.facts.gpu.targets import Product, runs_on
from wheel_checks.facts.host.advice import new_environment, newer_driver, reinstall_torch, right_build
from wheel_checks.facts.host.commands import check_torch, install, uninstall
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.probes import CudaProbe
from wheel_checks.facts.host.software import IndexSetting
from wheel_checks.facts.host.torch.demands import demands_on
from wheel_checks.fixes.commands import in_words
from wheel_checks.fixes.goal import Goal
from wheel_checks.model import Unavailable

PYTHON = "/opt/env/bin/python"
PACKAGE_INDEX = "the package index"


# Which build


def host(
    cuda: int = 13000, gpu: tuple[int, int] = (9, 0), facts: HostFacts | None = None, version: str = ""
) -> HostFacts:
    """A host whose driver supports this CUDA, with one GPU, and perhaps another torch."""
    facts = replaced(facts or healthy(), "torch", computes="no kernel image is available for execution on the device")
    assert isinstance(facts.cuda, CudaProbe)
    seen = tuple(replace(one, name="GPU", capability=gpu) for one in facts.cuda.gpus)
    facts = replaced(facts, "cuda", driver_cuda=cuda, gpus=seen)
    build = version.partition("+")[2]
    return with_torch(facts, version, cuda=f"{build[2:4]}.{build[4:]}") if version else facts


def on_grace(version: str) -> HostFacts:
    return with_cpu_torch(grace(), version)


@pytest.mark.parametrize(
    ("facts", "backend", "requirements"),
    [
        (on_grace("2.10.0+cpu"), "cu130", "torch==2.10.0 torchvision==0.25.0 torchaudio==2.10.0"),
        (host(12080, facts=on_grace("2.10.0+cpu")), "cu128", "torch==2.10.0 torchvision==0.25.0 torchaudio==2.10.0"),
        (host(12080), "cu128", "torch==2.11.0 torchvision==0.26.0 torchaudio>=2.11.0"),
        (host(12020), "cu126", "torch==2.11.0 torchvision==0.26.0 torchaudio>=2.11.0"),
        (host(12080, version="2.15.0+cu132"), "cu126", "torch==2.14.1 torchvision>=0.29.1 torchaudio>=2.11.0"),
        (host(gpu=(7, 0)), "cu126", "torch==2.11.0 torchvision==0.26.0 torchaudio>=2.11.0"),
        (host(gpu=(6, 1), version="2.15.0+cu132"), "cu126", "torch==2.14.1 torchvision>=0.29.1 torchaudio>=2.11.0"),
        (
            host(gpu=(12, 0), version="2.9.1+cu126"),
            PACKAGE_INDEX,
            "torch==2.9.1 torchvision==0.24.1 torchaudio==2.9.1",
        ),
        (
            host(gpu=(11, 0), facts=grace(), version="2.9.1+cu128"),
            "cu130",
            "torch==2.9.1 torchvision==0.24.1 torchaudio==2.9.1",
        ),
        (host(12080, gpu=(11, 0), facts=grace()), "", ""),  # no build for CUDA 12 has code for Thor
        (host(gpu=(7, 5), facts=grace()), "", ""),
        (host(11040), "", ""),
    ],
    ids=[
        "CPU wheel on Grace",
        "CPU wheel on Grace, CUDA 12.8",
        "CUDA 12.8",
        "CUDA 12.2",
        "CUDA 12.8, torch 2.15",
        "V100",
        "GTX 1080 and torch 2.15",
        "RTX 5090",
        "Thor",
        "Thor, CUDA 12.8",
        "T4G",
        "CUDA 11.4",
    ],
)
def test_the_right_build(facts: HostFacts, backend: str, requirements: str) -> None:
    fix = reinstall_torch(facts)

    if not backend:
        assert not any("torch" in command for command in fix.lines)
        assert right_build(facts) is None
        return
    words = shlex.split(fix.lines[0])
    assert f"--torch-backend={backend}" in words or (
        backend == PACKAGE_INDEX and {"uv", "--reinstall-package=torch"} < set(words) and "backend" not in fix.lines[0]
    )
    assert [word for word in words if re.search("[=>]=", word) and not word.startswith("--")] == requirements.split()
    assert fix.commands[1] == check_torch(facts)


def with_user(*requires: str, name: str = "vllm", version: str = "2.13.0+cpu") -> HostFacts:
    """A CPU torch on an H200 server, and a distribution with these requirements."""
    facts = with_packages(with_cpu_torch(healthy(), version), without=("torchvision", "torchaudio"))
    return with_packages(facts, package(name, "0.20.0", requires=requires))


def test_the_release_that_an_installed_distribution_pins_is_taken() -> None:
    facts = with_user("torch==2.11.0", "torchaudio==2.11.0", 'torch==2.9.0; platform_machine == "aarch64"')
    fix = reinstall_torch(facts)

    assert fix.lines[0] == f"{PYTHON} -m pip install torch==2.11.0"
    assert fix.goal == Goal(fitting_torch=True)
    assert [str(one) for one in demands_on(facts, "torch")] == ["vllm 0.20.0 requires torch==2.11.0"]


@pytest.mark.parametrize("requires", ["torch<2.13,>=2.12.1", "torch~=2.12.1"])
def test_a_range_is_met(requires: str) -> None:
    assert reinstall_torch(with_user(requires)).lines[0].endswith("torch==2.12.1")


@pytest.mark.parametrize("requires", [("torch==2.99.0",), ("torch==2.11.0", "torch==2.10.0")])
def test_a_demand_that_no_known_build_meets_is_named_and_left_to_the_planner(requires: tuple[str, ...]) -> None:
    fix = reinstall_torch(with_user(*requires))

    assert fix.lines == (f"wheelproof doctor --python {PYTHON} --fix",)
    assert all(f"vllm 0.20.0 requires {one}" in fix.summary for one in requires)
    assert right_build(with_user(*requires)) is None


def test_extras_and_other_packages_demand_nothing_of_torch() -> None:
    facts = with_user('torch==2.11.0; extra == "old"', "triton==3.6.0")

    assert reinstall_torch(facts).lines[0].endswith("torch==2.13.0")


def test_libraries_that_another_package_requires_are_not_overwritten() -> None:
    """JAX for CUDA 12 has cuDNN at the paths of that for CUDA 13: torch is taken for CUDA 12, too."""
    jax = package("jax-cuda12-plugin", "0.9.0", requires=('nvidia-cudnn-cu12>=9.8; extra == "with-cuda"',))
    facts = with_packages(with_user("torch==2.11.0"), jax, package("nvidia-cudnn-cu12", "9.10.2.21"))

    assert "--torch-backend=cu128" in reinstall_torch(facts).lines[0]
    alone = with_packages(with_user("torch==2.13.0"), jax, package("nvidia-cudnn-cu12", "9.10.2.21"))
    assert "--torch-backend=cu126" in reinstall_torch(alone).lines[0]


@pytest.mark.parametrize(
    ("setting", "asks_the_planner"),
    [
        (IndexSetting("pip", "index", "https://mirror.example.org/simple", "/etc/pip.conf"), True),
        (IndexSetting("uv", "find-links", "file:///srv/wheels", "UV_FIND_LINKS"), True),
        (IndexSetting("uv", "declared-index", "https://mirror.example.org/simple", "pyproject.toml"), False),
        (IndexSetting("pip", "extra-index", "https://mirror.example.org/simple", "PIP_EXTRA_INDEX_URL"), False),
    ],
)
def test_no_command_leads_past_a_configured_index(setting: IndexSetting, asks_the_planner: bool) -> None:
    facts = replace(host(12080), indexes=(setting,))
    repaired = (f"wheelproof doctor --python {PYTHON} --fix",)

    assert (reinstall_torch(facts).lines == repaired) == asks_the_planner
    assert (tuple(map(in_words, install(facts, "torch==2.11.0", index="cu128"))) == repaired) == asks_the_planner


def test_a_forced_reinstall_with_dependencies_does_not_upgrade_them() -> None:
    (step,) = install(healthy(), "torch==2.11.0", force=True)

    assert in_words(step) == f"uv pip install --python {PYTHON} --reinstall-package=torch torch==2.11.0"


def test_companions_that_are_not_installed_are_not_brought() -> None:
    facts = with_packages(host(12080), without=("torchaudio", "torchvision"))

    assert shlex.split(reinstall_torch(facts).lines[0])[-1] == "torch==2.11.0"


def test_without_a_torch_the_newest_that_fits_is_taken_from_the_package_index() -> None:
    facts = with_packages(replaced(healthy(), "installed", torch=None), without=("torch", "torchvision", "torchaudio"))
    newest = load("torch_releases")["release"][-1]["version"]
    facts = replaced(facts, "cuda", driver_cuda=13020)

    assert reinstall_torch(facts).lines[0] == f"{PYTHON} -m pip install torch=={newest}"


def test_an_index_of_pytorchs_that_is_configured_is_not_relied_on() -> None:
    """It may have the wrong build, and may be why the right one is not present: the build is named."""
    facts = with_packages(replaced(healthy(), "installed", torch=None), without=("torch", "torchvision", "torchaudio"))
    setting = IndexSetting("pip", "index", "https://index.example.org/whl/cpu", "PIP_INDEX_URL")

    command = reinstall_torch(replace(facts, indexes=(setting,))).lines[0]

    assert "--torch-backend=cu130" in command


def test_a_release_whose_gpu_code_is_not_known_is_only_kept() -> None:
    known = host(12080, facts=on_grace("2.8.0+cpu"))
    other_gpu = host(12080, (7, 5), facts=with_torch(grace(), "2.8.0", cuda="12.8", architectures=("sm_90",)))

    assert "torch==2.8.0" in reinstall_torch(known).lines[0]
    assert "it is unknown whether it has code for GPU" in reinstall_torch(known).summary
    assert right_build(other_gpu) is None


@pytest.mark.parametrize("driver", ["625.10", ""])
def test_an_unknown_driver_leaves_a_choice(driver: str) -> None:
    facts = replaced(host(0), "driver", version=driver)
    facts = replaced(replaced(facts, "nvml", driver_version=""), "loader", cuda_libraries=())

    fix = reinstall_torch(facts)

    assert [command.partition("  # ")[2] for command in fix.lines] == [
        "when nvidia-smi shows CUDA 13 or later",
        "when nvidia-smi shows CUDA 12",
        "afterwards",
    ]
    assert "--reinstall-package=torch" in fix.lines[0]  # of the package index, in place of the same release
    assert "--torch-backend=cu126" in fix.lines[1]
    assert ("625.10 is newer than the table" if driver else "none was found") in fix.summary


def test_a_host_without_a_driver_gets_the_choice_too() -> None:
    assert "unknown" in reinstall_torch(without_driver(healthy())).summary


def test_conda_is_told_the_cuda() -> None:
    facts = replaced(host(12080), "installed", conda={"pytorch": "cpu_generic_py312_h1"})

    fix = reinstall_torch(facts)

    assert fix.lines[0] == "env CONDA_OVERRIDE_CUDA=12.8 conda install --prefix /opt/env 'pytorch=*=*cuda*'"
    assert fix.commands[1:] == (check_torch(facts),)


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        (replaced(healthy(), "interpreter", libc=("musl", "1.2.5")), "musl"),
        (replaced(grace(), "interpreter", libc=("glibc", "2.17")), "glibc 2.17"),
        (replaced(healthy(), "interpreter", machine="ppc64le"), "ppc64le"),
        (replaced(grace(), "system", tegra="# R36 (release), REVISION: 4.3"), "Jetson"),
        (host(gpu=(7, 5), facts=grace()), "GPU (7.5)"),
    ],
)
def test_where_there_is_no_wheel_it_says_so(facts: HostFacts, says: str) -> None:
    fix = reinstall_torch(facts)

    assert says in fix.summary
    assert fix.lines == ()


def test_an_old_glibc_gets_the_last_release_for_it() -> None:
    facts = replaced(
        with_packages(healthy(), without=("torchvision", "torchaudio")), "interpreter", libc=("glibc", "2.26")
    )

    assert reinstall_torch(facts).lines[0] == f"{PYTHON} -m pip install torch==2.6.0"


def test_a_python_without_wheels_gets_an_environment() -> None:
    facts = replaced(healthy(), "interpreter", version="3.17.1")

    assert reinstall_torch(facts) == new_environment(facts, "3.12")
    assert new_environment(facts, "3.12").lines[:2] == (
        "uv venv --python 3.12 /home/user/torch-env",
        "uv pip install --python /home/user/torch-env/bin/python --torch-backend=cu130 torch==2.15.0",
    )


def test_nothing_known_at_all() -> None:
    assert reinstall_torch(HostFacts()).lines == ("uv pip install --python python3 --torch-backend=auto torch",)


def test_a_newer_driver_in_the_words_of_the_distribution() -> None:
    facts = healthy()

    packages = [
        newer_driver(facts)[0].argv[1:],
        newer_driver(host(gpu=(7, 0)))[0].argv[1:],  # a GPU without open modules
        newer_driver(replaced(facts, "system", os_id="rocky"))[0].argv[1:],
        newer_driver(replaced(facts, "system", os_id="debian"))[0].argv[1:],
    ]

    assert packages == [
        ("apt-get", "install", "nvidia-driver-580-server-open"),
        ("apt-get", "install", "nvidia-driver-580-server"),
        ("dnf", "install", "nvidia-open"),
        ("apt-get", "install", "nvidia-open"),
    ]
    assert newer_driver(replaced(facts, "system", os_id="arch")) == ()
    assert newer_driver(replaced(facts, "system", wsl=True)) == ()
    assert newer_driver(in_container(facts)) == ()


SOME = st.sampled_from


@given(
    SOME((healthy(), grace(), HostFacts(), without_driver(healthy()))),
    st.integers(-1, 20_000),
    st.tuples(SOME(range(5, 14)), SOME(range(10))),
    SOME(("3.8.1", "3.12.3", "3.13.0", "3.20.0", "", "x.y", "3")),
    SOME(("2.10.0+cpu", "2.11.0+cu130", "2.99.0", "", "not a version", "2.6.0+cu124")),
    SOME((("glibc", "2.39"), ("glibc", "2.17"), ("glibc", "?"), ("musl", "1.2"), ("", ""))),
)
def test_any_host_gets_an_answer_and_no_build_that_it_cannot_run(
    facts: HostFacts, cuda: int, gpu: tuple[int, int], python: str, version: str, libc: tuple[str, str]
) -> None:
    if isinstance(facts.cuda, CudaProbe) and not isinstance(facts.interpreter, Unavailable):
        facts = replaced(replaced(facts, "interpreter", version=python, libc=libc), "cuda", driver_cuda=cuda)
        seen = tuple(replace(one, capability=gpu) for one in healthy().cuda.gpus)  # type: ignore[union-attr]
        facts = with_torch(replaced(facts, "cuda", gpus=seen), version)

    fix, build = reinstall_torch(facts), right_build(facts)

    assert fix.summary
    for command in fix.lines:
        assert shlex.split(command, comments=True)
        assert "://" not in command
    if build is not None and cuda > 0:
        assert Version(build.cuda).major <= cuda // 1000
        assert not build.code or runs_on(build.code, Product("GPU", gpu[0] * 10 + gpu[1])).how != "none"


# The tables, and the real installers


def test_every_release_has_wheels_for_both_machines_and_an_increasing_version() -> None:
    releases = load("torch_releases")["release"]
    versions = [Version(row["version"]) for row in releases]

    assert versions == sorted(versions)
    for row in releases:
        assert row["x86_64"]["pythons"]
        assert row["aarch64"]["pythons"]
        for name in ("torchvision", "torchaudio"):
            Requirement(f"{name}{row[name]}")


def test_builds_of_the_package_index_have_a_row_with_their_code() -> None:
    """Of every CUDA build of the package index the table has the GPU code, under its name on PyTorch's own index."""
    rows = load("torch_releases")["index_build"]
    for build in load("torch_builds")["build"]:
        if build["accelerator"] == "cuda":
            version = Version(build["version"])
            own = [
                row
                for row in rows
                if (row["machine"], row["cuda"]) == (build["machine"], build["cuda"])
                and Version(row["first"]) <= version <= Version(row.get("last", "99"))
            ]
            assert len(own) == 1, build


@pytest.mark.parametrize("backend", sorted({row["backend"] for row in load("torch_releases")["index_build"]}))
def test_uv_knows_every_build_by_its_name(backend: str) -> None:
    """Asked with nothing to install, uv only looks at its options."""

    def asked(name: str) -> int:
        command = [find_uv_bin(), "pip", "compile", "-", "--offline", "--quiet", f"--torch-backend={name}"]
        return subprocess.run(command, input=b"", capture_output=True, check=False).returncode

    assert asked(backend) == 0
    assert asked("cu999") != 0


@pytest.mark.parametrize("with_pip", [False, True], ids=["uv", "pip"])
def test_a_real_installer_replaces_a_build_of_the_same_release(tmp_path: Path, with_pip: bool) -> None:
    """Both installers call torch 2.10.0+cpu satisfied when torch==2.10.0 is requested; ``force`` gets the other one."""
    environment = RealEnvironment(tmp_path, with_pip=with_pip)
    cpu = environment.index("whl/cpu", torch("2.10.0+cpu", "cpu", ""))
    cuda = environment.index(
        "whl/cu126", torch("2.10.0+cu126", "cu126", "12.6", "triton"), WheelBuilder("triton", "3.6.0")
    )
    environment.follow(*install(environment.facts(), "torch==2.10.0", index=cpu))

    environment.follow(*install(environment.facts(), "torch==2.10.0", index=cuda))
    assert environment.torch() == "2.10.0+cpu"
    environment.follow(*install(environment.facts(), "torch==2.10.0", force=True, no_deps=True, index=cuda))
    assert environment.torch() == "2.10.0+cu126"
    assert not list(environment.site_packages.glob("triton-*"))
    environment.follow(*install(environment.facts(), "torch==2.10.0", force=True, index=cuda))
    assert list(environment.site_packages.glob("triton-*"))

    environment.follow(uninstall(environment.facts(), "torch", "triton"))
    assert not list(environment.site_packages.glob("t*-*.dist-info"))
