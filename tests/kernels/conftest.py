"""The kernels' own tests need torch and triton, which the environment for development lacks.

``ci/develop.py kernels`` runs them in ``.venv-kernels``; elsewhere they are not collected. ``suite/`` needs neither.
"""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") and find_spec("triton") else ["test_*.py"]
