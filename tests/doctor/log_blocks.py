"""What collect_env, nvidia-smi and package managers write, in the forms of torch 2.4 to 2.11."""

from __future__ import annotations

from collections.abc import Sequence

H100, A100, V100, RTX_5090, GH200 = (
    "NVIDIA H100 80GB HBM3",
    "NVIDIA A100-SXM4-80GB",
    "Tesla V100-SXM2-32GB",
    "NVIDIA GeForce RTX 5090",
    "NVIDIA GH200 480GB",
)


def collect_env(
    torch: str,
    cuda: str,
    gpus: Sequence[str] = (),
    driver: str = "No CUDA",
    *,
    available: bool = False,
    hip: str = "N/A",
    machine: str = "x86_64",
    system: str = "Ubuntu 22.04.5 LTS",
    python: str = "3.12.3",
    pip: Sequence[str] = (),
    columns: bool = False,
) -> str:
    """The report of ``python -m torch.utils.collect_env``; in ``columns`` as vLLM's."""
    numbered = [f"GPU {number}: {name}" for number, name in enumerate(gpus)]
    listed = "\n".join(["", *numbered, ""]) if len(gpus) > 1 else "".join(numbered) or "No CUDA"
    rows = {
        "PyTorch version": torch,
        "Is debug build": "False",
        "CUDA used to build PyTorch": cuda,
        "ROCM used to build PyTorch": hip,
        "OS": f"{system} ({machine})",
        "GCC version": "(Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0",
        "Clang version": "Could not collect",
        "CMake version": "version 3.31.4",
        "Libc version": "glibc-2.35",
        "Python version": f"{python} (main, Jan 17 2025, 18:03:48) [GCC 11.4.0] (64-bit runtime)",
        "Python platform": f"Linux-6.8.0-51-generic-{machine}-with-glibc2.35",
        "Is CUDA available": str(available),
        "CUDA runtime version": "Could not collect" if gpus else "No CUDA",
        "CUDA_MODULE_LOADING set to": "LAZY" if available else "N/A",
        "GPU models and configuration": listed,
        "Nvidia driver version": driver,
        "cuDNN version": "Could not collect",
        "Is XPU available": "False",
        "HIP runtime version": "N/A",
        "MIOpen runtime version": "N/A",
        "Is XNNPACK available": "True",
    }
    width = 29 if columns else 0
    report = [f"{name:<{width}}: {value}" for name, value in rows.items()]
    processor = ["", "CPU:", f"Architecture:                         {machine}", "CPU(s):    96", ""]
    packages = [f"[pip3] {row}" for row in pip] or ["[pip3] No relevant packages"]
    end = ["Versions of relevant libraries:", *packages, "[conda] Could not collect", ""]
    return "\n".join(["Collecting environment information...", *report, *processor, *end])


def nvidia_smi(driver: str, cuda: str, gpus: Sequence[str] = (H100,)) -> str:
    """The table of nvidia-smi, of a driver before 590; names are cut to its column."""
    rows = [
        f"|   {number}  {name[:27]:<27}    On |   00000000:0{number}:00.0 Off |                    0 |\n"
        "| N/A   32C    P0             69W /  700W |       4MiB /  81559MiB |      0%      Default |\n"
        "|                                         |                        |             Disabled |\n"
        "+-----------------------------------------+------------------------+----------------------+"
        for number, name in enumerate(gpus)
    ]
    head = [
        "Thu Nov 20 15:00:00 2025       ",
        "+-----------------------------------------------------------------------------------------+",
        f"| NVIDIA-SMI {driver:<22} Driver Version: {driver:<14} CUDA Version: {cuda:<8} |",
        "|-----------------------------------------+------------------------+----------------------+",
        "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |",
        "|=========================================+========================+======================|",
    ]
    return "\n".join([*head, *rows, ""])


def nvidia_smi_q(driver: str, cuda: str, gpu: str = H100) -> str:
    """The beginning of ``nvidia-smi -q``."""
    return "\n".join(
        [
            "==============NVSMI LOG==============",
            "",
            "Timestamp                                 : Thu Nov 20 15:00:00 2025",
            f"Driver Version                            : {driver}",
            f"CUDA Version                              : {cuda}",
            "",
            "Attached GPUs                             : 1",
            "GPU 00000000:01:00.0",
            f"    Product Name                          : {gpu}",
            "    Product Brand                         : NVIDIA",
            "",
        ]
    )


def pip_list(*rows: str, command: str = "pip list") -> str:
    """The table of ``pip list``: rows are "name version"."""
    pairs = [row.split(" ", 1) for row in rows]
    table = [f"{name:<24} {version}" for name, version in pairs]
    return "\n".join([f"$ {command}", f"{'Package':<24} Version", f"{'-' * 24} ----------", *table, ""])
