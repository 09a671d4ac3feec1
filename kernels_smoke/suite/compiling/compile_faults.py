"""What can be wrong with a kernel that was compiled for a GPU that is not here.

A fault is ``{"fault": its kind, "message": one sentence, "fix": [a command as data or a sentence, ...]}``.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import triton

from kernels_smoke.suite.advice import Advice, pip
from kernels_smoke.suite.compiling import machine_code, targets
from kernels_smoke.suite.compiling.ahead_of_time import Function, RefusedError
from kernels_smoke.suite.compiling.machine_code import MachineCode, Product
from kernels_smoke.suite.compiling.targets import Target
from kernels_smoke.suite.model import Kernel

Fault = dict[str, Any]

TAIL = 2000  # characters of what a compiler said that are kept as evidence
WIDE_ROWS = 64  # the least rows of a tile for wgmma and tcgen05.mma
WIDE_WARPS = (4, 8)  # with which Triton uses both


def _fault(kind: str, message: str, *fixes: Advice) -> Fault:
    return {"fault": kind, "message": message, "fix": list(fixes)}


# What the compiler refuses


def refusal(error: RefusedError, target: str) -> Fault:
    """Why ``error`` came: the architecture lacks something, the compiler does not know it, or anything else."""
    raised = _raised(error)
    return _unsupported(raised, target) or _unknown(raised, error.said, target) or _refused(raised, error.said)


def last_words(error: RefusedError) -> str:
    """The end of what Triton raised, and before it those lines of the compilers that name an error, each once."""
    told = (line for line in error.said.splitlines() if _TELLING.search(line))
    return "\n".join([*dict.fromkeys(told), _raised(error).strip()[-TAIL:]])[-2 * TAIL :]


def _raised(error: RefusedError) -> str:
    return f"{type(error.__cause__).__name__}: {error.__cause__}"


def _unsupported(raised: str, target: str) -> Fault | None:
    known = targets.known(target)
    if known and not known.fp8 and "type fp8e4nv not supported in this architecture" in raised:
        return _fault("unsupported", f"{known.label} has no fp8 (e4m3) arithmetic")
    return None


_PTXAS_TOO_OLD = re.compile(r"Value '\w+' is not defined for option 'gpu-name'|Unsupported \.version")
_LLVM_TOO_OLD = re.compile(r"computeCapability not supported|unsupported target: '\w+'|is not a recognized processor")


def _unknown(raised: str, said: str, target: str) -> Fault | None:
    known = targets.known(target)
    name = known.label if known else target
    newer = pip("install", *targets.triton_for(known))
    if _PTXAS_TOO_OLD.search(raised):
        tool = re.search(r"Repro command: \S*?([\w-]+) ", raised)
        variable = f"TRITON_{(tool[1] if tool else 'ptxas').upper().replace('-', '_')}_PATH"
        needed = f"that of CUDA {known.cuda} or newer" if known else "that of a newer CUDA"
        return _fault(
            "unknown_to_ptxas",
            f"the ptxas that triton {triton.__version__} uses does not know {name}: it takes {needed}",
            newer,
            f"Or let {variable} name {needed}: it compiles then, without what this Triton lacks for the architecture.",
        )
    if _LLVM_TOO_OLD.search(said):
        return _fault("unknown_to_ptxas", f"triton {triton.__version__} does not know {name}", newer)
    return None


_TELLING = re.compile(r"\berror\b|\bAssertion\b|\bERROR\b|\bfatal\b")
_ERROR = re.compile(r"^(?:ptxas.*\b(?:error|fatal)\s+: |\S*\s*error: |LLVM ERROR: )", re.MULTILINE)


def _refused(raised: str, said: str) -> Fault:
    """With the line that says most: the first error of ptxas or LLVM, else the last line of what Triton raised."""
    told = f"{raised}\n{said}"
    found = _ERROR.search(told)
    line = told[found.end() :].splitlines()[0] if found else raised.strip().splitlines()[-1]
    return _fault("refused", f"it does not compile: {line.strip()}")


# What is wrong with the machine code


def faults_of(
    kernel: Kernel, function: Function, code: MachineCode, target: str, *, timed: bool, multiplies: bool
) -> list[Fault]:
    """All faults of one function.

    ``timed``: its speed matters, so it must not spill (the odd shapes that are there to be right may); ``multiplies``:
    it is to use the matrix units.
    """
    return [
        *_ignored_error(function),
        *(_spills(code, kernel.spills.get(target, 0)) if timed else ()),
        *_shared_memory(code, targets.known(target)),
        *(_matrix_instructions(function, code, targets.known(target)) if multiplies else ()),
    ]


def _ignored_error(function: Function) -> Iterator[Fault]:
    """LLVM may report an error and continue, and Triton then takes what came out for good (seen with 3.9.0)."""
    for line in function.said.splitlines():
        if line.startswith("error:"):
            yield _fault("refused", f"LLVM reported an error, which Triton did not heed: {line}")
            return


def _spills(code: MachineCode, accepted: int) -> Iterator[Fault]:
    if code.spills is not None and code.spills > accepted:
        message = f"{code.spills:,} bytes of each thread's registers spill to memory, {accepted:,} are accepted"
        yield _fault("spills", message, "Give each thread fewer elements: more warps, a smaller tile, fewer stages.")


def _shared_memory(code: MachineCode, target: Target | None) -> Iterator[Fault]:
    if target and code.shared > target.shared_bytes:
        message = f"a block takes {code.shared:,} bytes of shared memory; {target.label} has {target.shared_bytes:,}"
        yield _fault("shared_memory", message, "Choose a smaller tile or fewer stages for this architecture.")


def must_multiply(kernel: Kernel, functions: Sequence[Function]) -> list[Function]:
    """Which of the functions of one case must use the matrix units: those with products, or all when none has one."""
    if not kernel.matrix_instructions:
        return []
    return [function for function in functions if _products(function)] or list(functions)


def _products(function: Function) -> list[Product]:
    forms = function.compiled.asm
    return machine_code.products(forms["ttir"] if "ttir" in forms else forms["ttgir"])


def _matrix_instructions(function: Function, code: MachineCode, target: Target | None) -> Iterator[Fault]:
    if not _products(function):
        yield _fault("matrix_instructions", "it multiplies no matrices: there is no tl.dot in it")
        return
    products = [product for product in _products(function) if product.operands != "exact"]
    if products and not code.instructions:
        yield _fault("matrix_instructions", "it multiplies matrices without the instructions for it")
    elif target:
        for product in products:
            fastest = _fastest(product, target, function.compiled.metadata.num_warps)
            if not any(name.startswith(fastest) for name in code.instructions):
                tile = f"{product.rows} x {product.columns} x {product.depth} ({product.operands})"
                used = " and ".join(code.instructions)
                message = (
                    f"a product of tiles of {tile} is made of {used}; {target.name} has {fastest}, which is faster"
                )
                yield _fault("matrix_instructions", message, "A newer Triton may know how to use it.")
                return


def _fastest(product: Product, target: Target, warps: int) -> str:
    """How the name of the fastest instruction begins that Triton can use for this product; "" where any will do."""
    name = {"fp4": target.fp4, "fp8": target.fp8, "half": target.half}.get(product.operands, "")
    least = 32 if product.operands == "fp8" else 16
    whole = product.rows % WIDE_ROWS == 0 and product.columns % 16 == 0 and product.depth >= least
    wide = product.rows >= WIDE_ROWS and whole and warps in WIDE_WARPS
    return name if target.rows < WIDE_ROWS or wide else ""


# What is worth knowing of sound code


def conversion(function: Function, target: str) -> str:
    """That fp8 operands are multiplied as wider ones, since the GPU's matrix units lack e4m3; "" when they are not.

    Triton converts them without a warning, and such a product takes at least twice as long as one of fp8.
    """
    known = targets.known(target)
    if known is None or known.fp8 or not any(product.operands == "fp8" for product in _products(function)):
        return ""
    converts = f"Triton {triton.__version__} converts fp8 (e4m3) operands to 16 bits"
    return f"{converts} for {known.name}: its matrix units {known.lacks_fp8 or 'have no fp8'}"
