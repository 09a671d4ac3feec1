"""The kernels' own tests need torch and triton, which the environment for development lacks.

``ci/develop.py heavy kernels`` runs them in ``.venv-kernels``; elsewhere they are not collected. ``suite/`` needs none.
"""

from __future__ import annotations

import os
from importlib.util import find_spec

collect_ignore_glob = ["test_*.py"]
if find_spec("torch") and find_spec("triton"):
    from tests.kernels.support import DEVICE

    collect_ignore_glob = []
    if DEVICE == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"  # Triton reads it when it is imported, by the test modules
