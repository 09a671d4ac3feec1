"""Kernels are compiled in environments without NumPy, such as a matrix's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# Imports every module of kernels_smoke without NumPy, and prints failing ones.
PROGRAM = """
import importlib, pkgutil, sys, warnings
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "numpy":
            raise ModuleNotFoundError("No module named 'numpy'", name="numpy")
sys.meta_path.insert(0, Missing())
warnings.simplefilter("ignore")
import kernels_smoke
for module in pkgutil.walk_packages(kernels_smoke.__path__, "kernels_smoke."):
    try:
        module.name.endswith("__main__") or importlib.import_module(module.name)
    except ModuleNotFoundError:
        print(module.name)
"""


def test_only_what_interprets_needs_numpy() -> None:
    root = Path(__file__).parents[2]
    compiled = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=root, env=compiled, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (0, ["kernels_smoke.suite.probes.interpreter"]), done.stderr
