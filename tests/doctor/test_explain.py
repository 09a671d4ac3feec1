"""Logs and their causes: many wordings of each, and unrelated failures that must not be recognised."""

# ruff: noqa: E501  # logs are quoted as they are

from __future__ import annotations

import io
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.rules.host.log_cases import FAULTS
from wheel_checks.data import load
from wheel_checks.facts.host.log.facts import LARGEST, LONGEST_LINE, parse_log
from wheel_checks.fixes.commands import Pipe
from wheel_checks.model import Outcome, Severity
from wheel_checks.report import FORMATS
from wheel_checks.rules.host.cause import Layer, rule_id
from wheel_checks.rules.host.log_texts import UNRECOGNISED, recognise, steps_of
from wheelproof.cli.main import main
from wheelproof.doctor.explain import explain

FRAGMENTS = [
    ("A01", 'File "train.py", line 3\n    raise AssertionError("Torch not compiled with CUDA enabled")'),
    ("A01", "[rank3]: RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you"),
    ("A03", "  Attempting uninstall: torch\n    Found existing installation: torch 2.9.1+cu128\n    Uninstalling torch-2.9.1+cu128:"),
    ("A03", "Uninstalled 2 packages in 1.2s\n - torch==2.9.1+cu128\n + torch==2.12.0"),
    ("A03", "ERROR: pip's dependency resolver does not currently take into account\nvllm 0.11.0 requires torch==2.8.0, but you have torch 2.9.1 which is incompatible."),
    ("A05", "UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 12080). Please update"),
    ("A05", "2026-11-02T08:10:11.123Z RuntimeError: CUDA driver version is insufficient for CUDA runtime version"),
    ("A07", "ERROR: Could not find a version that satisfies the requirement torch==2.9.0 (from versions: none)"),
    ("A07", "ERROR: No matching distribution found for torch"),
    ("A08", "ImportError: /lib64/libc.so.6: version `GLIBC_2.28' not found (required by /venv/torch/lib/libtorch_cpu.so)"),
    ("A08", "node: /lib/x86_64-linux-gnu/libc.so.6: version 'GLIBC_2.34' not found (required by node)"),
    ("A10", "RuntimeError: CUDA error: no kernel image is available for execution on the device"),
    ("G02", "UserWarning: NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation."),
    ("A15", "OSError: libtorch_cuda.so: cannot open shared object file: No such file or directory"),
    ("A16", "RuntimeError: THIS PROJECT 'nvidia-cusparse-cu13' IS DEPRECATED. Please use 'nvidia-cusparse'"),
    ("A17", "ERROR: No matching distribution found for nvidia-cudnn-cu12==9.1.0.70"),
    ("A18", "WARNING: The requested image's platform (linux/amd64) does not match the detected host platform (linux/arm64/v8)"),
    ("A18", "exec /usr/bin/python3: exec format error"),
    ("B01", "ImportError: libnvshmem_host.so.3: cannot open shared object file: No such file or directory"),
    ("B01", "web_1  | ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory"),
    ("B03", "ImportError: /e/torch/lib/../../nvidia/cusparse/lib/libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12"),
    ("B04", "ImportError: /opt/conda/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so: undefined symbol: ncclCommRegister"),
    ("B06", "ImportError: /venv/lib/libtorch_cuda.so: file too short"),
    ("B06", "OSError: /x/nvidia/cublas/lib/libcublasLt.so.12: invalid ELF header"),
    ("B08", "ModuleNotFoundError: No module named 'torch._C'"),
    ("B09", "WARNING: Ignoring invalid distribution ~orch (/usr/lib/python3/site-packages)"),
    ("B13", "RuntimeError: operator torchvision::nms does not exist"),
    ("B14", "RuntimeError: Detected that PyTorch and TorchAudio were compiled with different CUDA versions. PyTorch has CUDA version 12.8"),
    ("B15", "ImportError: flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx11"),
    ("B15", "undefined symbol: _ZNK2at10TensorBase8data_ptrIfEEPT_v"),
    ("B16", "ImportError: /opt/conda/lib/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by libtriton.so)"),
    ("B17", "ImportError: /venv/scikit_learn.libs/libgomp-d22c30c5.so.1.0.0: cannot allocate memory in static TLS block"),
    ("B18", "<jemalloc>: Unsupported system page size"),
    ("B19", "RuntimeError: cuDNN error: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH"),
    ("B20", "/venv/libcublas.so.12: undefined symbol: cublasLtHSHMatmulAlgoInit"),
    ("B23", "ImportError: libnvpl_lapack_lp64_gomp.so.0: cannot open shared object file: No such file or directory"),
    ("C02", "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver from"),
    ("C02", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver"),
    ("C02", "modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.8.0-60-generic"),
    ("C04", "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service"),
    ("C06", "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.95"),
    ("C06", "[  812.123456] NVRM: API mismatch: the client has the version 580.95.05, but"),
    ("C07", "Nov 20 15:00:01 node7 kernel: [   12.5] NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x62:0x40:2434)"),
    ("C08", "RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env variable"),
    ("C10", "OSError: libcuda.so.1: cannot open shared object file: No such file or directory"),
    ("C11", "RuntimeError: CUDA error: CUDA driver is a stub library"),
    ("C12", "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported display driver / cuda driver combination"),
    ("C13", "Error 804: forward compatibility was attempted on non supported HW"),
    ("C15", "stat: cannot open '/dev/nvidia0': Permission denied"),
    ("C16", "[ 5432.1] NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus."),
    ("C19", "$ nvidia-smi\nNo devices were found"),
    ("C20", "[100.0] NVRM: Xid (PCI:0009:01:00): 31, pid=5, Ch 8, MMU Fault: FAULT_PTE ACCESS_TYPE_VIRT_READ"),
    ("D01", "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized"),
    ("D02", "fabric manager NVIDIA GPU driver interface version 530.30.02 don't match with driver version 530.41.03. Please update"),
    ("D03", "nv-fabricmanager[88]: NV_WARN_NOTHING_TO_DO"),
    ("D07", "cuMemCreate failed: CUDA_ERROR_NOT_PERMITTED"),
    ("D08", "node3: [0] NCCL INFO MNNVL healthMask 0xa9"),
    ("D09", "misc/cudawrap.cc:33 NCCL WARN Cuda failure 802 'system not yet initialized'"),
    ("E01", "WARNING: The NVIDIA Driver was not detected.  GPU functionality will not be available."),
    ("E02", 'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].'),
    ("E03", "Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all"),
    ("E04", "Failed to initialize NVML: Unknown Error"),
    ("E06", "Failed to initialize NVML: Insufficient Permissions"),
    ("E09", "RuntimeError: CUDA error: OS call failed or operation not supported on this OS"),
    ("E13", "RuntimeError: DataLoader worker (pid 4242) is killed by signal: Bus error. It is possible that dataloader's workers"),
    ("E16", "RuntimeError: Error 805: MPS client failed to connect to the MPS control daemon or the MPS server"),
    ("F01", "RuntimeError: No CUDA GPUs are available"),
    ("F01", '{"log":"torch.AcceleratorError: CUDA error: invalid device ordinal\\n","stream":"stderr"}'),
    ("F04", 'RuntimeError: device >= 0 && device < num_gpus INTERNAL ASSERT FAILED at "CUDAContext.cpp":50'),
    ("F05", "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable"),
    ("F06", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of"),
    ("F08", "RuntimeError: CUDA error: uncorrectable ECC error encountered"),
    ("G03", "Found GPU0 NVIDIA GB10 which is of cuda capability 12.1."),
    ("H01", "[pod/train-0/main] RuntimeError: Failed to find C compiler. Please specify via CC environment variable."),
    ("H02", "/tmp/tmpabc/main.c:5:10: fatal error: Python.h: No such file or directory"),
    ("H03", "AssertionError: libcuda.so cannot found!"),
    ("H04", "FileNotFoundError: [Errno 2] No such file or directory: '/sbin/ldconfig'"),
    ("H05", "ptxas-blackwell fatal   : Value 'sm_107a' is not defined for option 'gpu-name'"),
    ("H07", "RuntimeError: Triton Error [CUDA]: device kernel image is invalid"),
    ("H08", "CUDA error 222: the provided PTX was compiled with an unsupported toolchain."),
    ("H09", "PermissionError: [Errno 13] Permission denied: '/.triton'"),
    ("H09", "OSError: [Errno 30] Read-only file system: '/home/app/.triton/cache'"),
    ("H10", "OSError: [Errno 116] Stale file handle: '/nfs/u/.triton/cache/ABC/k.json'"),
    ("H11", "ImportError: /tmp/.triton/cache/X/cuda_utils.so: failed to map segment from shared object: Operation not permitted"),
    ("H12", "PermissionError: [Errno 13] Permission denied: '/venv/triton/backends/nvidia/bin/ptxas'"),
    ("H14", "torch._inductor.exc.TritonMissing: Cannot find a working triton installation. Either the package is not installed"),
    ("H15", "ImportError: cannot import name 'AttrsDescriptor' from 'triton.backends.compiler' (/v/triton/backends/compiler.py)"),
    ("H15", "ModuleNotFoundError: No module named 'triton.ops'"),
    ("H18", "/usr/bin/ld: cannot find -lcuda: No such file or directory\ncollect2: error: ld returned 1 exit status"),
]  # fmt: skip

UNRELATED = [
    "Segmentation fault (core dumped)",
    "[ 99.1] nginx[812]: segfault at 0 ip 00007f sp 00007ffd error 4 in libc.so.6",
    "npm ERR! code ERESOLVE\nnpm ERR! ERESOLVE unable to resolve dependency tree",
    "E: Unable to locate package libfoo-dev\nE: Couldn't find any package by regex 'libfoo'",
    "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 1234 (apt)",
    "OSError: [Errno 28] No space left on device",
    "ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get local issuer",
    "curl: (60) SSL certificate problem: self-signed certificate in certificate chain",
    "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nKeyError: 'learning_rate'",
    "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x8 and 16x32)",
    "ValueError: Expected input batch_size (32) to match target batch_size (64).",
    "Warning  BackOff  2m (x9 over 4m)  kubelet  Back-off restarting failed container app in pod app-0",
    "0/12 nodes are available: 12 Insufficient nvidia.com/gpu. preemption: 0/12 nodes are available",
    "Failed to pull image \"registry/app:1\": rpc error: code = NotFound desc = failed to resolve reference",
    "ERROR: Could not find a version that satisfies the requirement flask-foo (from versions: none)",
    "ERROR: No matching distribution found for torchmetrics-extra==9",
    "ModuleNotFoundError: No module named 'tritonclient'",
    "ImportError: libGL.so.1: cannot open shared object file: No such file or directory",
    "ImportError: libffi.so.7: undefined symbol: ffi_type_pointer",
    "/usr/bin/ld: cannot find -lcudart_static_x\n/usr/bin/ld: cannot find -lssl",
    "fatal: unable to access 'https://example.org/': Could not resolve host: example.org",
    "slurmstepd: error: Detected 1 oom_kill event in StepId=12.0. Some of the step tasks have been OOM Killed.",
    "PermissionError: [Errno 13] Permission denied: '/data/out.txt'",
    "error: subprocess-exited-with-error\n  x Building wheel for pycocotools did not run successfully.",
]  # fmt: skip


@pytest.mark.parametrize(("catalogue", "text"), FRAGMENTS, ids=lambda value: value[:40])
def test_a_fragment_is_recognised_and_its_line_quoted(catalogue: str, text: str) -> None:
    report = explain(f"starting up\n{text}\ndone\n".encode(), "a.log")
    root = recognise(parse_log(f"starting up\n{text}\ndone\n".encode()))[0]
    assert root.entry["catalogue"][0] == catalogue
    assert report.exit_code == (0 if root.harmless else 1)
    first = report.subjects[0].results[0]
    assert (first.rule, first.message) == (rule_id(catalogue), root.says)
    assert first.evidence[0].value == root.quote
    assert root.quote
    assert rule_id(catalogue) in first.evidence[1].value
    assert first.fix is not None
    assert "{" not in first.message + first.fix.summary


@pytest.mark.parametrize("text", UNRELATED, ids=lambda value: value[:40])
def test_other_failures_are_not_recognised(text: str) -> None:
    report = explain(text.encode(), "a.log")
    assert recognise(parse_log(text.encode())) == ()
    (result,) = report.subjects[0].results
    assert report.exit_code == 3
    assert (result.rule, result.outcome) == (UNRECOGNISED, Outcome.ERROR)
    assert result.fix is not None
    assert result.fix.commands
    assert report.overview is not None
    assert "not recognised" in report.overview.headline


def test_there_are_as_many_fragments_as_promised() -> None:
    assert len({text for _, text in FRAGMENTS}) >= 60
    assert len(UNRELATED) >= 20


def test_the_table_is_well_formed() -> None:
    entries = load("log_texts")["entry"]
    assert not FAULTS, "\n".join(FAULTS)
    for entry in entries:
        assert Layer[entry["layer"]]
        assert all(re.fullmatch(r"[A-H]\d\d", name) for name in entry.get("catalogue", []))
        assert set(entry.get("instead_of", [])) <= {name for row in entries for name in row.get("catalogue", [])[:1]}
        groups = {name for text in entry["texts"] for name in re.compile(text).groupindex}
        named = set(re.findall(r"\{(\w+)\}", " ".join((entry["says"], entry["fix"]))))
        assert named <= groups | ({"faults"} if "health_mask" in entry else set())


def test_the_deepest_cause_comes_first_wherever_it_stands() -> None:
    text = (
        "RuntimeError: Failed to find C compiler\nRuntimeError: No CUDA GPUs are available\n"
        "[ 1.0] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"
    )
    report = explain(text.encode(), "a.log")
    messages = [result.message for result in report.subjects[0].results]
    assert messages[0] == "a GPU has fallen off the bus (Xid 79)"
    assert messages[2] == "also in this log: Triton or a build needs a C compiler, but none is installed"
    assert report.overview is not None
    assert "(line 3 of a.log), and 2 more" in report.overview.headline


@pytest.mark.parametrize(
    "prefix",
    [
        "2026-11-20T15:00:00.123456789Z ",
        "2026-11-20 15:00:00,123 ",
        "Nov 20 15:00:00 node-7 train.sh[123]: ",
        "[  812.123456] ",
        "web-1  | ",
        "[pod/train-0/main] ",
        "2026-11-20T15:00:00.1Z stderr F ",
        "[rank0]: ",
        "\x1b[31m",
        "\x1b]0;title\x07",
        "50%|#####     |\r",
        "(Worker pid=123, ip=10.0.0.1) ",
    ],
)
def test_what_stands_before_a_line_does_not_matter(prefix: str) -> None:
    (found,) = recognise(parse_log(f"{prefix}No devices were found\x1b[0m\r\n".encode() if "%" not in prefix else
                                   f"{prefix}CUDA driver is a stub library\r\n".encode()))  # fmt: skip
    assert found.line == 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_any_encoding_is_read(encoding: str) -> None:
    (found,) = recognise(parse_log("schön\nCUDA driver is a stub library\n".encode(encoding)))
    assert found.line == 2


def test_nothing_that_a_log_names_gets_into_a_command() -> None:
    table = {
        step for entry in load("log_texts")["entry"] for row in entry.get("commands", ()) for step in steps_of(row)
    }
    (good,) = recognise(parse_log(b"Permission denied: '/venv/bin/ptxas'"))
    (bad,) = recognise(parse_log(b"Permission denied: '/v/ptxas;rm -rf ~'"))

    assert "/venv/bin/ptxas" in good.says
    assert good.fix.commands == bad.fix.commands == ()
    for _, text in FRAGMENTS:
        assert table.issuperset(step for one in recognise(parse_log(text.encode())) for step in one.fix.commands)


def test_a_hostile_log_takes_bounded_time() -> None:
    line = b"NVRM: Xid (" * 40 + b"CUDA out of memory. Tried to allocate process " * 20
    data = b"\0\xff\x1b[" * 1000 + b"\n" + (line + b"\n") * 2000 + b"x" * 3_000_000 + b'\n{"' + b"[" * 100_000
    start = time.process_time()  # not of other processes
    log = parse_log(data)
    recognise(log)
    assert time.process_time() - start < 10
    assert max(map(len, log.text.split("\n"))) <= LONGEST_LINE


def test_a_log_that_is_too_long_is_cut_and_says_so() -> None:
    report = explain((b"a" * 999 + b"\n") * (LARGEST // 1000 + 1), "a.log")
    assert report.overview is not None
    assert report.overview.notes[0].startswith("Only the first 16 MiB were read")


class StandardInput:
    """Standard input that is a pipe, or a terminal."""

    def __init__(self, data: bytes, *, terminal: bool = False) -> None:
        self.buffer = io.BytesIO(data)
        self.isatty = lambda: terminal


def test_the_command_reads_standard_input_and_files(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(sys, "stdin", StandardInput(b"libcuda.so cannot found!\n"))
    assert main(["explain"]) == 1
    assert "TRITON_LIBCUDA_PATH" in capsys.readouterr().out
    (tmp_path / "a.log").write_text("all is well\n")
    assert main(["explain", str(tmp_path / "a.log"), "--format", "json"]) == 3
    assert '"recognised": false' in capsys.readouterr().out


@pytest.mark.parametrize("format_", FORMATS)
def test_every_format_has_it(format_: str, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "a.log").write_text("CUDA driver is a stub library\n")
    assert main(["explain", str(tmp_path / "a.log"), "--format", format_]) == 1
    shown = capsys.readouterr().out
    assert "stub" in shown
    assert "DOC311" in shown


def test_wrong_usage_is_reported(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(sys, "stdin", StandardInput(b"", terminal=True))
    assert main(["explain"]) == 2
    assert "no log to explain" in capsys.readouterr().err
    assert main(["explain", str(tmp_path / "none.log")]) == 2
    assert main(["explain", str(tmp_path)]) == 2
    assert main(["explain", "a\0b"]) == 2


def test_an_empty_log_is_not_recognised(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(sys, "stdin", StandardInput(b""))
    assert main(["explain"]) == 3
    assert "the log is empty" in capsys.readouterr().out


def test_a_health_mask_without_a_fault_is_harmless_and_hides_none() -> None:
    healthy = b"node17: [0] NCCL INFO MNNVL busId 0x0801000 cliqueId 0x7ffe state 3 healthMask 0x51aa\n"
    broken = healthy.replace(b"51aa", b"519a")

    harmless, both = explain(healthy, "log"), explain(healthy + broken, "log")

    assert [r.severity for r in harmless.subjects[0].results if r.outcome is Outcome.FAIL] == [Severity.NOTE]
    first = next(r for r in both.subjects[0].results if r.outcome is Outcome.FAIL)
    assert (first.severity, first.message) == (
        Severity.ERROR,
        "the NVLink fabric has a fault: health mask 0x519a (route: unhealthy)",
    )


@pytest.mark.parametrize(
    ("went", "came", "harmed"),
    [
        ("2.11.0", "2.12.0", False),
        ("2.11.0+cu130", "2.12.0+cu130", False),
        ("2.11.0+cu126", "2.11.0+cu130", False),
        ("2.9.1+cu128", "2.9.0", False),  # the package index has it for CUDA 12.8
        ("2.9.1+cu130", "2.9.1+cu128", True),
        ("2.9.1+cu128", "2.9.1+cpu", True),
        ("2.9.1", "2.9.1+cpu", True),
        ("2.9.1+rocm6.4", "2.9.1", True),
        ("2.9.1+cpu", "2.9.1", False),
    ],
)
def test_an_update_is_a_cause_only_where_it_takes_the_gpu_away(went: str, came: str, harmed: bool) -> None:
    pip = (
        f"Installing collected packages: torch\n  Attempting uninstall: torch\n"
        f"    Found existing installation: torch {went}\n    Uninstalling torch-{went}:\n"
        f"      Successfully uninstalled torch-{went}\nSuccessfully installed numpy-2.1.0 torch-{came}\n"
    )
    uv = f"Uninstalled 1 package in 1.2s\nInstalled 1 package in 3s\n - torch=={went}\n + torch=={came}\n"
    for log in (pip, uv):
        assert [one.rule for one in recognise(parse_log(log.encode()))] == (["DOC103"] if harmed else [])


def test_on_aarch64_the_package_index_had_builds_for_the_cpu_alone() -> None:
    lines = "Downloading torch-2.9.1-cp312-cp312-manylinux_2_28_aarch64.whl\n - torch==2.9.1+cu128\n + torch==2.9.1\n"
    assert [one.rule for one in recognise(parse_log(lines.encode()))] == ["DOC103"]
    assert recognise(parse_log(lines.replace("aarch64", "x86_64").encode())) == ()


@pytest.mark.parametrize("system", ["Ubuntu 24.04", "Rocky Linux 9", "openSUSE Leap 15.6", "Alpine Linux v3.20", ""])
def test_the_package_manager_is_that_of_the_log(system: str) -> None:
    (found,) = recognise(parse_log(f"OS: {system}\nRuntimeError: Failed to find C compiler.".encode()))
    program = {"Ubuntu": "apt-get", "Rocky": "dnf", "openSUSE": "zypper", "Alpine": "apk", "": "apt-get"}
    assert program[system.partition(" ")[0]] in str(found.fix.commands)


def test_no_command_chooses_a_torch() -> None:
    """A command names torch with its version, or reinstalls the installed one."""
    for entry in load("log_texts")["entry"]:
        for step in (step for row in entry.get("commands", ()) for step in steps_of(row)):
            for words in step.commands if isinstance(step, Pipe) else [getattr(step, "argv", ())]:
                if "install" in words:
                    assert not {"torch", "torchvision", "torchaudio"} & set(words) or "-r" in words, step


def test_what_is_left_out_is_no_pass(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "a.log").write_text("CUDA driver is a stub library\n")
    assert main(["explain", str(tmp_path / "a.log"), "--ignore", "DOC3"]) == 3
    assert "rules that match this log are disabled by --select, --ignore" in capsys.readouterr().out
    (tmp_path / "b.log").write_text("Found GPU0 NVIDIA GB10 which is of cuda capability 12.1.\n")
    assert main(["explain", str(tmp_path / "b.log")]) == 0
