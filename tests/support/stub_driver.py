"""A driver for the tests: real libcuda.so.1 and libnvidia-ml.so.1, compiled by gcc, that answer as variables say.

driver = build(tmp_path / "driver") # the folder, with libcuda.so.580.159.04 and its links environment =
variables(driver, STUB_CUINIT="802") # this environment, with the folder in LD_LIBRARY_PATH build(tmp_path / "stubs",
only="cuda", DEFAULT_CUINIT=34) # one that always fails

``stub_driver.c`` names the variables.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.compiling import compile_once

SOURCE = Path(__file__).with_suffix(".c")
SONAMES = {"cuda": "libcuda.so.1", "nvml": "libnvidia-ml.so.1"}
VERSION = "580.159.04"


def build(folder: Path, *, version: str = VERSION, only: str = "", **compiled_in: int) -> Path:
    """Compile both libraries (or ``only`` "cuda" or "nvml") into ``folder``, and give it back.

    Their files end in ``version`` as a driver's do, and the soname is a link to them; without a version the file itself
    has that name. ``compiled_in`` are defaults: DEFAULT_CUINIT, DEFAULT_NVML.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in [only] if only else SONAMES:
        compile_library(folder, name, version, compiled_in)
    return folder


def compile_library(folder: Path, name: str, version: str, compiled_in: dict[str, int]) -> None:
    """Compile the library ``name`` ("cuda", "nvml") into ``folder``."""
    soname = SONAMES[name]
    file = soname if not version else f"{soname.removesuffix('1')}{version}"
    options = ["-x", "c", "-O1", "-Wall", "-Werror", f"-D{name.upper()}", f"-Wl,-soname,{soname}"]
    options += [f"-D{key}={value}" for key, value in compiled_in.items()]
    options += [f'-DDRIVER="{version}"'] if version else []
    compile_once(folder / file, options, SOURCE.read_text(encoding="utf-8"))
    if version:
        (folder / soname).unlink(missing_ok=True)
        (folder / soname).symlink_to(file)


def variables(*folders: Path, **changed: str) -> dict[str, str]:
    """This process's environment with ``folders`` in LD_LIBRARY_PATH and these variables."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("CUDA_", "STUB_", "LD_"))}
    return {**clean, "LD_LIBRARY_PATH": ":".join(map(str, folders)), **changed}
