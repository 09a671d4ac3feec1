#!/usr/bin/env python3
"""An nvidia-smi for `benchmarks/doctor.py`: it answers queries of the rivals with values of the stub driver."""

from __future__ import annotations

import os
import sys

DRIVER = "580.159.04"
FIELDS = {
    "index": "0",
    "name": "NVIDIA H200",
    "uuid": "GPU-00000000-0000-4000-8000-000000000000",
    "memory.total": "143771 MiB",
    "driver_version": DRIVER,
    "compute_cap": "9.0",
}


def main() -> int:
    """Print the answer to one question."""
    version = int(os.environ.get("STUB_CUDA_VERSION", "13000"))
    cuda = f"{version // 1000}.{version % 1000 // 10}"
    query = next((word.partition("=")[2] for word in sys.argv[1:] if word.startswith("--query-gpu=")), "")
    if query:
        print(", ".join(FIELDS.get(name, "[N/A]") for name in query.split(",")))
    elif "-x" in sys.argv:
        print(
            f"<nvidia_smi_log><driver_version>{DRIVER}</driver_version><cuda_version>{cuda}</cuda_version>"
            f"<attached_gpus>1</attached_gpus><gpu><product_name>{FIELDS['name']}</product_name></gpu></nvidia_smi_log>"
        )
    elif "-L" in sys.argv:
        print(f"GPU 0: {FIELDS['name']} (UUID: {FIELDS['uuid']})")
    else:
        print(f"| NVIDIA-SMI {DRIVER}    Driver Version: {DRIVER}    CUDA Version: {cuda} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
