"""Whether kernels can be written in Gluon, the language below Triton's, which has warp specialisation."""

from __future__ import annotations

import triton

from kernels_smoke.launching.checks import architecture

# Gluon is experimental, and its functions change: these are the versions of Triton that our kernels compile with.
GLUON = triton.__version__.startswith(("3.6.", "3.7."))


def hopper_gluon() -> bool:
    """True if the current GPU is Hopper (sm_90), and kernels in Gluon compile."""
    return GLUON and architecture().number == 90
