"""What the chunks need and no state decides: T and A of README.md, the WY representation of each, and the factors."""

import triton
import triton.language as tl

_FORGOTTEN = tl.constexpr(-104.0)  # exp of it, and of anything less, is 0 in float32


@triton.jit
def _bounds(cu_seqlens, sequence, tokens):
    """The first token of ``sequence``, and the first one behind it."""
    if cu_seqlens is None:
        begin = (sequence * 0).to(tl.int64)
        end = begin + tokens
    else:
        begin = tl.load(cu_seqlens + sequence).to(tl.int64)  # [1]
        end = tl.load(cu_seqlens + sequence + 1).to(tl.int64)  # [1]
    return begin, end


@triton.jit
def _first_slot(begin, sequence, CHUNK: tl.constexpr):
    """Where the chunks of a sequence begin in the workspace. No two sequences overlap: see README.md."""
    return begin // CHUNK + sequence


@triton.jit
def _sequence_of(slot, cu_seqlens, sequences, CHUNK: tl.constexpr):
    """The last sequence whose first slot is not behind ``slot``, by bisection."""
    low = slot * 0
    high = low + sequences
    while high - low > 1:
        middle = (low + high) // 2
        before = _first_slot(tl.load(cu_seqlens + middle).to(tl.int64), middle, CHUNK) <= slot  # [1]
        low = tl.where(before, middle, low)
        high = tl.where(before, high, middle)
    return low


@triton.jit
def _product(left, right_transposed):
    """``left`` times the transpose of ``right_transposed``, both [BLOCK, BLOCK], rounded to 11 bits.

    A thread holds of a result what it must hold of a left operand in 16 bits, and of the transpose of a right one. So
    nothing moves between threads from one product to the next.
    """
    return tl.dot(left.to(tl.float16), right_transposed.T.to(tl.float16))  # [BLOCK, BLOCK]


@triton.jit
def _invert(lower, lower_t, BLOCK: tl.constexpr):
    """The inverse of I + ``lower`` [BLOCK, BLOCK], which is strictly lower triangular, and the inverse's transpose.

    Blocks on the diagonal are inverted, and two neighbours joined to one of double the size, until one is left.
    """
    down = tl.arange(0, BLOCK)[:, None]
    across = tl.arange(0, BLOCK)[None, :]
    identity = tl.where(down == across, 1.0, 0.0)
    inverse = identity - tl.where(down // 2 == across // 2, lower, 0.0)
    inverse_t = identity - tl.where(down // 2 == across // 2, lower_t, 0.0)
    for level in tl.static_range(1, 4):
        if 1 << level < BLOCK:
            neighbours = (down >> level != across >> level) & (down >> (level + 1) == across >> (level + 1))
            joint = _product(inverse, tl.where(neighbours, lower_t, 0.0))  # [BLOCK, BLOCK]
            inverse, inverse_t = inverse - _product(joint, inverse_t), inverse_t - _product(inverse_t, joint)
    return inverse, inverse_t


@triton.jit
def _inverse_norm(products, epsilon, NORMALIZE: tl.constexpr):
    """What divides rows by sqrt(their squared norms + ``epsilon``), from their ``products`` [BLOCK, BLOCK]; or 1."""
    factor = tl.full((products.shape[0],), 1.0, tl.float32)
    if NORMALIZE:
        o_t = tl.arange(0, products.shape[0])
        squares = tl.sum(tl.where(o_t[:, None] == o_t[None, :], products, 0.0), axis=1)
        factor = tl.rsqrt(squares + epsilon)
    return factor


@triton.jit(do_not_specialize=["sequences"])
def _prepare_kernel(  # noqa: C901, PLR0912, PLR0915  # the branches are unrolled
    q, k, log_decay, beta, cu_seqlens, squares, factors, tokens, sequences,
    q_stride, q_head_stride, k_stride, k_head_stride, log_decay_stride, beta_stride, scale, epsilon,
    VALUE_HEADS: tl.constexpr, GROUP: tl.constexpr, K: tl.constexpr, CHUNK: tl.constexpr, BLOCK: tl.constexpr,
    NORMALIZE: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # All that does not depend on the state, for one chunk, in blocks of tokens, and the value heads of one key head.
    blocks: tl.constexpr = CHUNK // BLOCK
    program = tl.program_id(0).to(tl.int64)
    slot = program // (VALUE_HEADS // GROUP)
    key_head = program % (VALUE_HEADS // GROUP)
    sequence = slot * 0
    if cu_seqlens is not None:
        sequence = _sequence_of(slot, cu_seqlens, sequences, CHUNK)
    begin, end = _bounds(cu_seqlens, sequence, tokens)
    first = begin + (slot - _first_slot(begin, sequence, CHUNK)) * CHUNK
    o_t = tl.arange(0, BLOCK)
    o_k = tl.arange(0, K)[None, :]
    down = o_t[:, None]
    across = o_t[None, :]
    q += first * q_stride + key_head * q_head_stride
    k += first * k_stride + key_head * k_head_stride
    beta += first * beta_stride
    log_decay += first * log_decay_stride

    # Queries and keys stay as they are: what would divide them by their norms becomes part of the factors.
    keys: tl.tuple = ()
    k_factors: tl.tuple = ()
    q_factors: tl.tuple = ()
    kk: tl.tuple = ()
    qk: tl.tuple = ()
    for i in tl.static_range(blocks):
        row = (i * BLOCK + o_t).to(tl.int64)
        present = row < end - first
        b_k = tl.load(k + row[:, None] * k_stride + o_k, mask=present[:, None], other=0.0)  # [BLOCK, K]
        b_q = tl.load(q + row[:, None] * q_stride + o_k, mask=present[:, None], other=0.0)  # [BLOCK, K]
        k_factor = _inverse_norm(tl.dot(b_k, b_k.T), epsilon, NORMALIZE)
        q_factor = _inverse_norm(tl.dot(b_q, b_q.T), epsilon, NORMALIZE) * scale
        keys += (b_k,)
        k_factors += (k_factor,)
        q_factors += (q_factor,)
        for j in tl.static_range(i + 1):
            kk += (tl.dot(b_k, keys[j].T) * k_factor[:, None] * k_factors[j][None, :],)  # [BLOCK, BLOCK]
            qk += (tl.dot(b_q, keys[j].T) * q_factor[:, None] * k_factors[j][None, :],)  # [BLOCK, BLOCK]

    dtype = squares.dtype.element_ty
    for number in tl.range(0, GROUP, loop_unroll_factor=2):  # two heads do not wait for each other
        head = key_head * GROUP + number
        tile = slot * VALUE_HEADS + head
        line = factors + tile * 4 * CHUNK + o_t
        o_square = squares + 2 * tile * CHUNK * CHUNK + down * CHUNK + across
        g_last = 0.0
        sums: tl.tuple = ()
        betas: tl.tuple = ()
        for i in tl.static_range(blocks):
            row = (i * BLOCK + o_t).to(tl.int64)
            present = row < end - first
            b_beta = tl.load(beta + head + row * beta_stride, mask=present, other=0.0).to(tl.float32)  # [BLOCK]
            b_g = tl.load(log_decay + head + row * log_decay_stride, mask=present, other=0.0)  # [BLOCK]
            # Behind the last token G stays as it is. Stronger decays would leave nothing of small ones behind them.
            b_g = tl.cumsum(tl.maximum(b_g.to(tl.float32), _FORGOTTEN), axis=0) + g_last  # [BLOCK], G
            g_last = tl.sum(tl.where(o_t == BLOCK - 1, b_g, 0.0), axis=0)
            sums += (b_g,)
            betas += (b_beta,)
        tl.store(factors + tile * 4 * CHUNK + 3 * CHUNK, tl.exp(g_last))  # [1]
        inverses_t: tl.tuple = ()  # transposed
        for i in tl.static_range(blocks):
            b_g = sums[i]
            tl.store(line + i * BLOCK, tl.exp(b_g) * k_factors[i])  # [BLOCK]
            tl.store(line + CHUNK + i * BLOCK, tl.exp(b_g) * q_factors[i])  # [BLOCK]
            tl.store(line + 2 * CHUNK + i * BLOCK, tl.exp(g_last - b_g) * k_factors[i])  # [BLOCK]
            row_of_n: tl.tuple = ()
            for j in tl.static_range(blocks):
                place = o_square + i * BLOCK * CHUNK + j * BLOCK
                if j > i:
                    tl.store(place, tl.zeros((BLOCK, BLOCK), dtype))  # [BLOCK, BLOCK]
                    tl.store(place + CHUNK * CHUNK, tl.zeros((BLOCK, BLOCK), dtype))  # [BLOCK, BLOCK]
                else:
                    # A difference of sums of logarithms is never above zero where it counts; exp of each alone would
                    # overflow.
                    gamma = b_g[:, None] - sums[j][None, :]
                    if i == j:
                        gamma = tl.where(down >= across, gamma, float("-inf"))
                    gamma = tl.exp(gamma)  # [BLOCK, BLOCK]
                    b_n = kk[i * (i + 1) // 2 + j] * gamma * betas[i][:, None]  # [BLOCK, BLOCK], N
                    tl.store(place + CHUNK * CHUNK, (qk[i * (i + 1) // 2 + j] * gamma).to(dtype))  # [BLOCK, BLOCK], A
                    row_of_n += (b_n,)
            gamma = tl.exp(tl.where(down < across, b_g[None, :] - b_g[:, None], float("-inf")))  # [BLOCK, BLOCK]
            lower_t = kk[i * (i + 1) // 2 + i] * gamma * betas[i][None, :]  # [BLOCK, BLOCK], N transposed
            # Row by row of the blocks: X_ii = (I + N_ii)^-1, X_ij = -X_ii (N_ij X_jj + ... + N_i,i-1 X_i-1,j).
            lower = tl.where(down > across, row_of_n[i], 0.0)
            diagonal, diagonal_t = _invert(lower, lower_t, BLOCK)  # [BLOCK, BLOCK], X_ii
            for j in tl.static_range(i + 1):
                b_t, transposed = diagonal, diagonal_t
                if j < i:
                    below_t = tl.zeros((BLOCK, BLOCK), tl.float32)
                    for m in tl.static_range(j, i):
                        below_t += _product(inverses_t[m * (m + 1) // 2 + j], row_of_n[m])  # [BLOCK, BLOCK]
                    b_t = -_product(diagonal, below_t)  # [BLOCK, BLOCK]
                    transposed = -_product(below_t, diagonal)  # [BLOCK, BLOCK]
                inverses_t += (transposed,)
                b_t = (b_t * betas[j][None, :]).to(dtype)  # [BLOCK, BLOCK], T
                tl.store(o_square + i * BLOCK * CHUNK + j * BLOCK, b_t)
