"""What a compiled kernel is made of: registers, spills, shared memory, matrix instructions.

For NVIDIA it is read from the cubin with the tools of Triton's own wheel. Two choices need a reason:

- Spills are the stack frame less the local arrays that the PTX declares. ptxas keeps spilled registers in the frame,
  but not only them: libdevice's sine keeps the digits of pi there (28 bytes), and that is not a spill. The bytes of
  "spill stores" in ptxas's log count each store instruction, so that one register may count twice; the log is not kept
  in Triton's cache, either.
- nvdisasm takes a quarter of a second for any cubin, so only those are disassembled whose PTX has matrix instructions.
  When it does not know the architecture (that of triton 3.6 stops at sm_120), the PTX has to do.

For AMD everything is in the assembly text. Imports neither torch nor triton.
"""

import hashlib
import importlib.util
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

PATIENCE = 60.0  # seconds for one of the tools
FRAME_ALIGNMENT = 8  # bytes; a local array of 28 takes 32

# Matrix instructions in SASS: HMMA (Ampere), HGMMA (Hopper), UTCHMMA (Blackwell); Q is fp8, O fp4, I int8, D fp64.
_SASS = re.compile(r"\b((?:UTC)?[HQIDO]G?MMA)\b")
_PTX = re.compile(r"\b(wgmma\.mma_async|tcgen05\.mma|mma\.sync)(\.[\w.:]+)")
_PREFIXES = {"wgmma.mma_async": "{}GMMA", "tcgen05.mma": "UTC{}MMA", "mma.sync": "{}MMA"}
_FP4 = re.compile(r"kind::mxf4")
_FP8 = re.compile(r"e4m3|e5m2|f8f6f4")
_INT8 = re.compile(r"[su]8\b|kind::i8")


class UnreadableError(Exception):
    """A tool that reads machine code is missing, or does not understand it; the message says which and why."""


@dataclass(frozen=True)
class MachineCode:
    """Sizes are bytes, of one thread (``stack``, ``spills``), one block (``shared``), the whole file (``size``).

    A value is None when it could not be read, and ``unread`` says why. ``from_ptx`` says why ``instructions`` are
    derived from the PTX; "" when they are those of the machine code.
    """

    registers: int | None
    stack: int | None
    spills: int | None
    shared: int
    instructions: tuple[str, ...]
    size: int
    sha256: str
    unread: str = ""
    from_ptx: str = ""


def read(assembly: Mapping[str, Any], shared: int) -> MachineCode:
    """Read ``assembly``, what Triton keeps of a kernel by its form ("ptx", "cubin" or "amdgcn", "hsaco").

    ``shared`` are the bytes that Triton asks for at the launch; they are not in the machine code.
    """
    if "cubin" in assembly:
        return _read_nvidia(assembly["cubin"], assembly["ptx"], shared)
    return _read_amd(assembly["hsaco"], assembly["amdgcn"], shared)


def _read_nvidia(cubin: bytes, ptx: str, shared: int) -> MachineCode:
    registers = stack = spills = None
    unread = from_ptx = ""
    instructions = ptx_instructions(ptx)
    with tempfile.TemporaryDirectory(prefix="kernels-smoke-") as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin)
        try:
            registers, stack = resource_usage(_tool("cuobjdump", "--dump-resource-usage", str(path)))
            spills = max(0, stack - local_arrays(ptx))
        except UnreadableError as error:
            unread = str(error)
        if instructions:
            try:
                instructions = sass_instructions(_tool("nvdisasm", "--no-dataflow", "--print-code", str(path)))
            except UnreadableError as error:
                from_ptx = str(error)
    return MachineCode(registers, stack, spills, shared, instructions, len(cubin), _sha256(cubin), unread, from_ptx)


def _read_amd(hsaco: bytes, amdgcn: str, shared: int) -> MachineCode:
    """Scalar registers spill into lanes of vector registers, which costs no memory: only vector registers count."""
    registers = stack = spills = None
    unread = ""
    try:
        registers, stack = _amd_value(amdgcn, "vgpr_count"), _amd_value(amdgcn, "private_segment_fixed_size")
        spills = 4 * _amd_value(amdgcn, "vgpr_spill_count")
    except UnreadableError as error:
        unread = str(error)
    instructions = tuple(sorted(set(re.findall(r"\bv_mfma_\w+", amdgcn))))
    return MachineCode(registers, stack, spills, shared, instructions, len(hsaco), _sha256(hsaco), unread)


def _amd_value(amdgcn: str, name: str) -> int:
    found = re.search(rf"^\s*(?:- )?\.{name}:\s+(\d+)", amdgcn, re.MULTILINE)
    if not found:
        raise UnreadableError(f"the assembly for AMD does not say .{name}")
    return int(found[1])


def resource_usage(text: str) -> tuple[int, int]:
    """(registers, bytes of stack) of a thread, from ``cuobjdump --dump-resource-usage``. Raises UnreadableError."""
    found = re.search(r"\bREG:(\d+) STACK:(\d+)", text)
    if not found:
        raise UnreadableError(f"cuobjdump says nothing about registers: {text.strip()[-200:]}")
    return int(found[1]), int(found[2])


def local_arrays(ptx: str) -> int:
    """The bytes of a thread's stack frame that are arrays of the program."""
    sizes = re.findall(r"^\s*\.local\s+\.align\s+\d+\s+\.b8\s+\w+\[(\d+)\]", ptx, re.MULTILINE)
    return sum(-(-int(size) // FRAME_ALIGNMENT) * FRAME_ALIGNMENT for size in sizes)


def sass_instructions(sass: str) -> tuple[str, ...]:
    """The matrix instructions in disassembled machine code: ``("HGMMA",)``."""
    return tuple(sorted(set(_SASS.findall(sass))))


def ptx_instructions(ptx: str) -> tuple[str, ...]:
    """The matrix instructions in PTX, under the names that they get in machine code."""

    def name(instruction: str, rest: str) -> str:
        letter = (
            "O"
            if _FP4.search(rest)
            else "Q"
            if _FP8.search(rest)
            else "I"
            if _INT8.search(rest)
            else "D"
            if ".f64" in rest
            else "H"
        )
        return _PREFIXES[instruction].format(letter)

    return tuple(sorted({name(*found) for found in _PTX.findall(ptx)}))


Operands = Literal["fp4", "fp8", "half", "int8", "exact"]


@dataclass(frozen=True)
class Product:
    """One ``tl.dot`` or ``tl.dot_scaled`` of tiles, [rows, depth] by [depth, columns].

    ``operands`` are "fp4" (with scales for blocks, of ``tl.dot_scaled``), "fp8", "half" (16 bits, or 32 that are
    rounded), "int8", or "exact": 32 bits and more that must not be rounded, for which the matrix units are no use. A
    batch of products has 0 rows: it gets no wide instruction.
    """

    rows: int
    columns: int
    depth: int
    operands: Operands


_OPERAND = r"(?:tensor|!ttg\.memdesc)<(?P<{}>[\dx]+)x{}[,>]"
_DOT = re.compile(
    r"\b(?:tt\.dot(?:_scaled)?|ttng\.warp_group_dot) [^\n]*?: "
    + _OPERAND.format("left", r"(?P<type>\w+)")
    + r"[^\n]*? \* "
    + _OPERAND.format("right", r"\w+")
)
_ROUNDED = re.compile(r"inputPrecision = (?:tf32|tf32x3|bf16x3|bf16x6)\b")


def products(form: str) -> list[Product]:
    """The matrix products of a kernel, from its first intermediate form: Triton's ("ttir") or Gluon's ("ttgir").

    Those of ``tl.dot_scaled`` are among them; the depth of fp4 is in bytes, of two elements.
    """
    made = []
    for found in _DOT.finditer(form):
        *batch, rows, depth = (int(size) for size in found["left"].split("x"))
        columns = int(found["right"].split("x")[-1])
        made.append(Product(0 if batch else rows, columns, depth, _operands(found["type"], found[0])))
    return made


def _operands(element: str, product: str) -> Operands:
    if "= e2m1" in product:
        return "fp4"
    if element.startswith("f8"):
        return "fp8"
    if element == "i8":
        return "int8"
    return "half" if element in {"f16", "bf16"} or (element == "f32" and _ROUNDED.search(product)) else "exact"


def _tool(name: str, *arguments: str) -> str:
    """The output of one of Triton's tools. Raises UnreadableError."""
    path = _tool_path(name)
    try:
        done = subprocess.run([path, *arguments], capture_output=True, text=True, check=False, timeout=PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = error.strerror if isinstance(error, OSError) else f"no answer in {PATIENCE:.0f} s"
        raise UnreadableError(f"{path}: {reason}") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"]
        raise UnreadableError(f"{path}: {said[-1]}")
    return done.stdout


def _tool_path(name: str) -> str:
    """Where Triton looks for it: the variable TRITON_<NAME>_PATH, then its own folder."""
    spec = importlib.util.find_spec("triton")
    folder = Path(spec.origin).parent if spec and spec.origin else Path()
    return os.environ.get(f"TRITON_{name.upper()}_PATH") or str(folder / "backends" / "nvidia" / "bin" / name)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
