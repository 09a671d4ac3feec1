"""SwiGLU, the device function that both kernels with it share."""

import triton
import triton.language as tl


@triton.jit
def _silu_and_mul(gate, up):
    # gate / (1 + exp(-gate)) * up. The square of an inverse root is as exact as a division and takes fewer
    # instructions, of which there are nearly too many here to keep up with the memory.
    gate = gate.to(tl.float32)
    inverse_root = tl.rsqrt(1.0 + tl.exp(-gate))
    return gate * (inverse_root * inverse_root) * up.to(tl.float32)
