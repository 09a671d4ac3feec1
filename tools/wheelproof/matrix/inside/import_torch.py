"""Import torch in the place of a cell and describe it on standard output as a JSON object.

Runs under the interpreter of the cell, from CPython 3.8 on, with the standard library and torch alone. A failing import
is reported as "error"; a crash by the exit status.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from typing import Any

SCHEMA = "wheelproof.import/1"


def describe() -> dict[str, Any]:
    """Machine and Python, and the facts of torch and triton, or their errors."""
    facts: dict[str, Any] = {
        "schema": SCHEMA,
        "machine": platform.machine(),
        "python": platform.python_version(),
        "executable": sys.executable,
        "libc": " ".join(platform.libc_ver()),
        "error": "",
    }
    try:
        import torch  # its failure is an answer
    except BaseException as error:  # noqa: BLE001  # a broken installation may raise anything, SystemExit too
        facts["error"] = f"{type(error).__name__}: {error}"
        return facts
    flags = getattr(torch._C, "_cuda_getArchFlags", None)  # noqa: SLF001  # get_arch_list() says nothing without a GPU
    facts["torch"] = {
        "version": str(torch.__version__),
        "path": str(torch.__file__),
        "cuda": torch.version.cuda,
        "hip": getattr(torch.version, "hip", None),
        "xpu": getattr(torch.version, "xpu", None),
        "gpu_code": (flags() or "").split() if flags else [],
        "cuda_available": bool(torch.cuda.is_available()),
    }
    facts["triton"] = _triton_version()
    return facts


def _triton_version() -> str | None:
    """The version of Triton's metadata: importing it proves nothing here, and takes seconds under emulation."""
    from importlib import metadata  # after torch, so that its time does not count as torch's

    try:
        return metadata.version("triton")
    except metadata.PackageNotFoundError:
        return None


def main() -> None:
    """Write the answer, and nothing that torch prints, to standard output."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    json.dump(describe(), answer)
    answer.write("\n")
    answer.close()


if __name__ == "__main__":
    main()
