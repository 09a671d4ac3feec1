"""Whether kernels can be written in Gluon, the language below Triton's, which has warp specialisation."""

import triton

from kernels_smoke.launch import architecture

# Gluon is experimental, and its functions change: these are the versions of Triton that our kernels compile with.
GLUON = triton.__version__.startswith(("3.6.", "3.7."))


def hopper_gluon() -> bool:
    """True when what is launched now runs on Hopper (sm_90), and kernels in Gluon compile."""
    return GLUON and architecture().number == 90
