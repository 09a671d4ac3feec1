"""Facts that a log quotes: blocks of collect_env, nvidia-smi and package managers, of healthy and broken machines."""

# ruff: noqa: E501  # a case is one line

from __future__ import annotations

import re
import time

import pytest

from tests.doctor.log_blocks import (
    A100,
    GH200,
    H100,
    RTX_5090,
    V100,
    collect_env,
    nvidia_smi,
    nvidia_smi_q,
    pip_list,
)
from wheel_checks.facts.host.log.facts import parse_log
from wheel_checks.facts.host.log.host import host_of
from wheel_checks.fixes.commands import in_words
from wheel_checks.model import CheckResult, Outcome
from wheelproof.doctor.explain import explain


def _results(log: str) -> list[CheckResult]:
    return [result for result in explain(log.encode(), "a.log").subjects[0].results if result.outcome is Outcome.FAIL]


CPU = collect_env("2.9.1+cpu", "None", [H100], "580.95.05", pip=["numpy==2.3.1", "torch==2.9.1+cpu"])
HEALTHY = collect_env("2.11.0+cu130", "13.0", [H100], "580.95.05", available=True, pip=["torch==2.11.0"])
OLD_DRIVER = collect_env("2.11.0+cu130", "13.0", [A100, A100], "550.54.14", pip=["torch==2.11.0"])

CONDA = """# packages in environment at /opt/conda:
#
# Name                    Version                   Build  Channel
numpy                     2.3.1           py312h6a96f54_0    conda-forge
pytorch                   2.10.0          {build}    conda-forge
"""

ROCMINFO = """*******
Agent 2
*******
  Name:                    gfx942
  Uuid:                    GPU-1234
  Marketing Name:          AMD Instinct MI300X
  Vendor Name:             AMD
  Chip ID:                 29857(0x74a1)
  ISA Info:
    ISA 1
      Name:                    amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-
"""

# Name, log, the rule of the first cause, the quote in its first line of evidence, and its first installation.
BROKEN = [
    ("a CPU build next to a GPU", CPU, "DOC102", "PyTorch version: 2.9.1+cpu", "--torch-backend"),
    (
        "the CPU wheel of aarch64",
        collect_env("2.10.0+cpu", "None", [GH200], "550.54.15", machine="aarch64", pip=["torch==2.10.0"]),
        "DOC101",
        "PyTorch version: 2.10.0+cpu",
        "--torch-backend=cu126",
    ),
    (
        "a CPU build in pip list, a GPU in nvidia-smi",
        pip_list("numpy 2.3.1", "torch 2.11.0+cpu", "torchvision 0.26.0+cpu")
        + "$ nvidia-smi\n"
        + nvidia_smi("550.54.14", "12.4"),
        "DOC102",
        "2.11.0+cpu",
        "torch==2.11.0 torchvision==0.26.0",
    ),
    (
        "a driver for CUDA 12",
        OLD_DRIVER,
        "DOC105",
        "PyTorch version: 2.11.0+cu130",
        "--torch-backend=cu126 torch==2.11.0",
    ),
    (
        "a driver for CUDA 12, in vLLM's columns",
        collect_env("2.11.0+cu130", "13.0", [A100], "550.54.14", columns=True),
        "DOC105",
        "PyTorch version",
        "--torch-backend=cu126 torch==2.11.0",
    ),
    (
        "a driver for CUDA 12 in nvidia-smi -q",
        pip_list("torch 2.11.0+cu130", command="uv pip list") + nvidia_smi_q("535.183.01", "12.2"),
        "DOC105",
        "2.11.0+cu130",
        "--torch-backend=auto",
    ),
    (
        "a driver for CUDA 12 in one line",
        "torch 2.11.0+cu130\nDriver Version: 550.54.14 CUDA Version: 12.4\nGPU 0: NVIDIA L4 (UUID: GPU-1f)\n",
        "DOC105",
        "torch 2.11.0+cu130",
        "--torch-backend=auto",
    ),
    (
        "a Blackwell and a build before it",
        collect_env("2.6.0+cu124", "12.4", [RTX_5090], "575.64.03", available=True, pip=["torch==2.6.0"]),
        "DOC702",
        "PyTorch version: 2.6.0+cu124",
        "--torch-backend=cu128",
    ),
    (
        "a Volta and a build after it",
        collect_env("2.11.0+cu130", "13.0", [V100], "580.95.05", available=True),
        "DOC701",
        "PyTorch version: 2.11.0+cu130",
        "--torch-backend=cu126 torch==2.11.0",
    ),
    (
        "Thor and a build for CUDA 12.8",
        collect_env("2.9.1+cu128", "12.8", ["NVIDIA Thor"], "580.00", machine="aarch64", available=True),
        "DOC111",
        "PyTorch version: 2.9.1+cu128",
        "--torch-backend=cu130 torch==2.9.1",
    ),
    (
        "companions of another release",
        collect_env(
            "2.11.0+cu130", "13.0", [H100], "580.95.05", available=True, pip=["torch==2.11.0", "torchvision==0.25.0"]
        ),
        "DOC213",
        "torchvision==0.25.0",
        "torchvision==0.26.0",
    ),
    (
        "companions of another release, without a GPU",
        pip_list("torch 2.9.1", "torchaudio 2.8.0"),
        "DOC213",
        "torchaudio",
        "torchaudio==2.9.1",
    ),
    (
        "a ROCm build on an NVIDIA GPU",
        "$ pip list | grep torch\ntorch 2.9.1+rocm6.4\n$ nvidia-smi\n" + nvidia_smi("580.95.05", "13.0"),
        "DOC115",
        "torch 2.9.1+rocm6.4",
        "--torch-backend=auto --reinstall-package=torch torch==2.9.1",
    ),
    (
        "a Blackwell and a build of an old release",
        collect_env("2.5.1+cu124", "12.4", [RTX_5090], "575.64.03", available=True, python="3.10.12"),
        "DOC702",
        "PyTorch version: 2.5.1+cu124",
        "--torch-backend=cu128",
    ),
    (
        "a Blackwell and a pip build in an environment of conda",
        collect_env("2.6.0+cu124", "12.4", [RTX_5090], "575.64.03", available=True, pip=["torch==2.6.0"]).replace(
            "[conda] Could not collect",
            "[conda] numpy     2.1.2    py312h58c1407_0    conda-forge\n[conda] torch     2.6.0+cu124    pypi_0    pypi",
        ),
        "DOC702",
        "PyTorch version: 2.6.0+cu124",
        "--torch-backend=cu128",
    ),
    (
        "a CPU build in pip show",
        "Name: torch\nVersion: 2.11.0+cpu\nSummary: Tensors and Dynamic neural networks\n"
        + nvidia_smi("580.95.05", "13.0"),
        "DOC102",
        "Version: 2.11.0+cpu",
        "--torch-backend=auto --reinstall-package=torch torch==2.11.0",
    ),
    (
        "a CPU build of conda",
        CONDA.format(build="cpu_generic_py312_h4a3044f_0") + nvidia_smi("550.54.14", "12.4"),
        "DOC114",
        "cpu_generic_py312_h4a3044f_0",
        "CONDA_OVERRIDE_CUDA=12.4 conda install 'pytorch=2.10.0=*cuda*'",
    ),
    (
        "a CUDA build on an AMD GPU",
        collect_env("2.9.1+cu128", "12.8", python="3.12.3") + ROCMINFO,
        "DOC115",
        "PyTorch version: 2.9.1+cu128",
        "--torch-backend=rocm",
    ),
    (
        "NumPy 2 and a torch before it",
        collect_env("2.2.2+cu121", "12.1", [A100], "550.54.14", available=True, pip=["numpy==2.1.0", "torch==2.2.2"]),
        "DOC902",
        "PyTorch version: 2.2.2+cu121",
        "numpy<2",
    ),
]

# Name and log: nothing in it is a cause.
HARMLESS = [
    ("healthy", HEALTHY),
    ("healthy, CUDA 12", collect_env("2.8.0+cu128", "12.8", [A100] * 8, "570.133.20", available=True, pip=["torch==2.8.0", "torchvision==0.23.0"])),
    ("healthy, within CUDA 12", collect_env("2.8.0+cu128", "12.8", [A100], "535.183.01", available=True)),
    ("healthy, in vLLM's columns", collect_env("2.7.1+cu126", "12.6", [A100], "560.35.05", available=True, columns=True)),
    ("healthy, GB200", collect_env("2.11.0+cu130", "13.0", ["NVIDIA GB200"] * 4, "580.95.05", available=True, machine="aarch64")),
    ("no GPU", collect_env("2.11.0+cu130", "13.0", pip=["torch==2.11.0"])),
    ("no GPU, a CPU build", collect_env("2.11.0+cpu", "None", pip=["torch==2.11.0+cpu", "torchvision==0.26.0+cpu"])),
    ("an old driver with cuda-compat", collect_env("2.11.0+cu130", "13.0", [A100], "550.54.14", available=True)),
    ("a GPU that torch does not see, all else well", collect_env("2.11.0+cu130", "13.0", [H100], "580.95.05")),
    ("a display card next to the GPU", collect_env("2.11.0+cu130", "13.0", ["NVIDIA GeForce RTX 4090", "NVIDIA GeForce GT 1030"], "580.95.05", available=True)),
    ("a broken machine, then a healthy one", f"{CPU}\nOn the other machine it works:\n{HEALTHY}"),
    ("a driver that was updated", f"{OLD_DRIVER}\nAfter the update:\n{HEALTHY}"),
    ("a torch that was replaced", f"{CPU}\n - torch==2.9.1+cpu\n + torch==2.9.1+cu128\n"),
    ("a torch that pip replaces", f"{CPU}\nSuccessfully installed torch-2.9.1+cu128\n"),
    ("two machines, by their prompts", "me@laptop:~$ pip list\ntorch 2.11.0+cpu\nme@gpu01:~$ nvidia-smi\n" + nvidia_smi("550.54.14", "12.4")),
    ("a requirements file", "$ cat requirements.txt\ntorch==2.11.0+cpu\ntorchvision==0.25.0\n" + nvidia_smi("550.54.14", "12.4")),
    ("rows of a diff", "+torch==2.11.0+cpu\n-torch==2.11.0\n" + nvidia_smi("550.54.14", "12.4")),
    ("nvidia-smi alone", nvidia_smi("580.95.05", "13.0", [H100] * 8)),
    ("a nightly build", collect_env("2.12.0.dev20260101+cu130", "13.0", [V100], "580.95.05", available=True)),
    ("a build from source", collect_env("2.9.0a0+git1a2b3c", "12.8", [V100], "580.95.05", available=True, pip=["torchvision==0.25.0"])),
    ("a GPU past the table", collect_env("2.11.0+cu130", "13.0", ["NVIDIA Z999"], "580.95.05", available=True)),
    ("a driver past the table", collect_env("2.11.0+cu130", "13.0", [H100], "999.10")),
    ("NumPy 2 and a torch for it", collect_env("2.3.0+cu121", "12.1", [A100], "550.54.14", available=True, pip=["numpy==2.0.0", "torch==2.3.0"])),
    ("a CUDA build of conda", CONDA.format(build="cuda129_generic_py312_h4a3044f_0") + nvidia_smi("550.54.14", "12.4")),
    ("a build of another publisher, whose code is not known", collect_env("2.8.0", "12.8", ["Tesla P100-PCIE-16GB"], "580.95.05", available=True)),
    ("a ROCm build on an AMD GPU", collect_env("2.9.1+rocm6.4", "N/A", hip="6.4.43484", available=True).replace("configuration: No CUDA", "configuration: AMD Instinct MI300X (gfx942:sramecc+:xnack-)")),
    ("a bug report of vLLM about something else", collect_env("2.7.0+cu126", "12.6", ["NVIDIA L4"], "550.127.05", available=True, columns=True, pip=["numpy==2.2.6", "torch==2.7.0", "torchaudio==2.7.0", "torchvision==0.22.0"]) + "KeyError: 'layers.0.mlp'\n"),
    ("a server, then a laptop", nvidia_smi("550.54.14", "12.4", [A100]) + collect_env("2.11.0+cu130", "13.0", pip=["torch==2.11.0"])),
    ("a laptop, then a server", collect_env("2.11.0+cu130", "13.0", pip=["torch==2.11.0"]) + nvidia_smi("550.54.14", "12.4", [A100])),
    ("a CPU build that conda replaces", f"{CPU}\nThe following NEW packages will be INSTALLED:\n  pytorch  2.10.0-cuda129_py312\n"),
    ("an AMD GPU next to an NVIDIA GPU that torch uses", HEALTHY + ROCMINFO),
    ("a build for the CPU on an AMD GPU", collect_env("2.9.1+cpu", "None") + ROCMINFO),
    ("a log that computes", pip_list("torch 2.11.0+cu130") + nvidia_smi("550.54.14", "12.4") + "node:1:1 [0] NCCL INFO Bootstrap\n"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "log", "rule", "quote", "command"), BROKEN, ids=[case[0] for case in BROKEN])
def test_a_block_of_a_broken_machine_has_a_cause(name: str, log: str, rule: str, quote: str, command: str) -> None:
    first, *others = _results(log)
    assert (first.rule, others) == (rule, [])
    lines = [item for item in first.evidence if re.fullmatch(r"line \d+", item.label)]
    assert any(quote in item.value for item in lines)
    numbered = dict(enumerate(log.splitlines(), 1))
    assert all(" ".join(numbered[int(item.label[5:])].split()) == " ".join(item.value.split()) for item in lines)
    assert first.fix is not None
    assert command in "\n".join(in_words(step) for step in first.fix.commands)
    assert not any(re.search(r"[<{][a-z]+[>}]", in_words(step)) for step in first.fix.commands)


@pytest.mark.parametrize(("name", "log"), HARMLESS, ids=[case[0] for case in HARMLESS])
def test_a_block_of_a_healthy_machine_has_none(name: str, log: str) -> None:
    report = explain(log.encode(), "a.log")
    assert [result.message for result in _results(log)] == []
    assert report.exit_code == 3


def test_a_cause_that_a_text_names_is_named_once_with_the_lines_of_both() -> None:
    error = "RuntimeError: The NVIDIA driver on your system is too old (found version 12040). Please update your GPU driver\n"
    (only,) = _results(OLD_DRIVER + error)
    assert only.rule == "DOC105"
    quotes = [item.value for item in only.evidence]
    assert error.strip() in quotes
    assert "Nvidia driver version: 550.54.14" in quotes


def test_the_deeper_cause_comes_first() -> None:
    error = "RuntimeError: operator torchvision::nms does not exist\n"
    assert [result.rule for result in _results(OLD_DRIVER + error)] == ["DOC105", "DOC213"]


def test_of_a_log_that_contradicts_itself_the_last_machine_counts() -> None:
    assert [result.rule for result in _results(f"{HEALTHY}\nAfter the downgrade:\n{OLD_DRIVER}")] == ["DOC105"]
    host = host_of(parse_log((CPU + nvidia_smi("470.82.01", "11.4", ["Tesla K80"])).encode()))
    assert host is None  # the K80 is of another machine, whose torch is not shown


def test_the_package_manager_is_that_of_the_system() -> None:
    rocky = collect_env("2.11.0+cu130", "13.0", [A100], "550.54.14", system="Rocky Linux 9.5 (Blue Onyx)")
    (found,) = _results(rocky)
    assert found.fix is not None
    assert "`sudo dnf install nvidia-open`" in found.fix.summary


def test_nothing_of_a_log_is_in_a_command() -> None:
    hostile = collect_env(
        "2.11.0+cu130", "13.0", ["NVIDIA $(reboot)"], "550.54.14", python="3.12.3;reboot", pip=["torch==2.11.0;reboot"]
    )
    for log in (hostile, hostile.replace("550.54.14", "550.54.14;reboot"), hostile.replace("+cu130", "+cu130;reboot")):
        for result in _results(log):
            assert not any("reboot" in in_words(step) for step in (result.fix.commands if result.fix else ()))


@pytest.mark.parametrize(
    "line",
    [
        "torch==2.9.1+cpu\n",
        "PyTorch version: 2.9.1+cpu\nOS: x\n",
        "GPU 0: NVIDIA H100\n",
        "Successfully installed torch-2\n",
    ],
)
def test_a_log_of_nothing_but_blocks_is_read_in_a_time_that_its_size_sets(line: str) -> None:
    log = parse_log((line * (1 << 20))[: 1 << 20].encode())
    start = time.process_time()
    host_of(log)
    assert time.process_time() - start < 3
