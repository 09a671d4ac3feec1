"""What is known about the GPUs that kernels are compiled for. Imports neither torch nor triton.

Collected 2026-11. Sources: NVIDIA, CUDA C++ Programming Guide 13.0, table of the technical specifications per compute
capability, as CCCL's ``cuda/__device/arch_traits.h`` has them in code (shared memory; one KiB of each block's is the
system's and not counted here), "CUDA GPU Compute Capability" (products), PTX ISA, release notes (the first CUDA whose
ptxas knows it); AMD, ROCm documentation, "AMD GPU specifications" (LDS, products). The instructions are those that
the ptxas of CUDA 12.8 to 13.4 gave for Triton's matrix products.
"""

import re
from dataclasses import dataclass

KIB = 1024


@dataclass(frozen=True)
class Target:
    """One architecture, by the name that compilers give it.

    - ``shared_bytes``: the most shared memory that one block can have.
    - ``half``, ``fp8``, ``fp4``: how the names of the fastest matrix instructions begin, for operands of 16 bits (or
      tf32), for fp8 (e4m3) and for fp4 with scales for blocks; "" where the matrix units have none.
    - ``lacks_fp8``: what its matrix units have instead of e4m3; "" where there is nothing to say.
    - ``rows``: the least rows of a tile for those; for smaller tiles, HMMA does.
    - ``cuda``: the first CUDA whose ptxas knows the architecture; "" for AMD.
    """

    name: str
    products: tuple[str, ...]
    shared_bytes: int
    half: str
    fp8: str = ""
    rows: int = 16
    cuda: str = ""
    fp4: str = ""
    lacks_fp8: str = ""

    @property
    def label(self) -> str:
        """``sm_103 (B300, GB300)``."""
        return f"{self.name} ({', '.join(self.products)})"


# AMD, ROCm documentation, "Data types and precision support": CDNA 3 has FNUZ fp8, of another bias, CDNA 4 OCP's.
FNUZ = "multiply e4m3fnuz, another format of 8 bits"

TARGETS = (
    Target("sm_80", ("A100", "A30"), 163 * KIB, "HMMA", cuda="11.0"),
    Target("sm_86", ("A10", "A40", "RTX 3090"), 99 * KIB, "HMMA", cuda="11.1"),
    Target("sm_87", ("Jetson Orin",), 163 * KIB, "HMMA", cuda="11.4"),
    Target("sm_89", ("L4", "L40S", "RTX 4090"), 99 * KIB, "HMMA", "QMMA", cuda="11.8"),
    Target("sm_90", ("H100", "H200", "GH200"), 227 * KIB, "HGMMA", "QGMMA", rows=64, cuda="11.8"),
    Target("sm_100", ("B200", "GB200"), 227 * KIB, "UTCHMMA", "UTCQMMA", rows=64, cuda="12.8", fp4="UTCOMMA"),
    Target("sm_103", ("B300", "GB300"), 227 * KIB, "UTCHMMA", "UTCQMMA", rows=64, cuda="12.9", fp4="UTCOMMA"),
    Target("sm_110", ("Jetson Thor",), 227 * KIB, "UTCHMMA", "UTCQMMA", rows=64, cuda="13.0", fp4="UTCOMMA"),
    Target("sm_120", ("RTX PRO 6000", "RTX 5090"), 99 * KIB, "HMMA", "QMMA", cuda="12.8", fp4="OMMA"),
    Target("sm_121", ("GB10",), 99 * KIB, "HMMA", "QMMA", cuda="12.9", fp4="OMMA"),
    Target("gfx90a", ("MI210", "MI250", "MI250X"), 64 * KIB, "v_mfma"),
    Target("gfx942", ("MI300A", "MI300X", "MI325X"), 64 * KIB, "v_mfma", lacks_fp8=FNUZ),
    Target("gfx950", ("MI350X", "MI355X"), 160 * KIB, "v_mfma", "v_mfma", fp4="v_mfma_scale"),
)


# The CUDA whose ptxas each Triton brings along, for sm_100 and newer.
BUNDLED = (("3.6.0", "12.9"), ("3.7.1", "13.1"), ("3.9.0", "13.4"))


def triton_for(target: Target | None) -> tuple[str, ...]:
    """What to give to `pip install` for a Triton that knows ``target``; the newest where none is known to."""
    enough = (version for version, cuda in BUNDLED if target and _number(cuda) >= _number(target.cuda or "0"))
    version = next(enough, "") if target else ""
    return (f"triton>={version}",) if version else ("--upgrade", "triton")


def known(name: str) -> Target | None:
    """What is known about the architecture ``name``; None for one that is newer than this table."""
    return next((target for target in TARGETS if target.name == name), None)


def resolve(text: str) -> str:
    """The architecture that ``text`` names: ``sm_100`` for GB200, and any ``sm_NN`` or ``gfxNNN`` for itself.

    An architecture need not be in the table: the compiler says whether it knows it. Raises ValueError for other names.
    """
    name = text.strip().lower()
    if re.fullmatch(r"sm_\d{2,3}|gfx[0-9a-f]{3,4}", name):
        return name
    for target in TARGETS:
        if _bare(name) in {_bare(product.lower()) for product in target.products}:
            return target.name
    products = ", ".join(product for target in TARGETS for product in target.products)
    raise ValueError(f"{text!r} names no GPU to compile for: expected sm_NN, gfxNNN, or one of {products}")


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _bare(name: str) -> str:
    return re.sub(r"[\s-]", "", name)
