"""Names of GPUs for which kernels can be compiled: ``sm_100`` and GB200, ``gfx942`` and MI300X."""

import re

from wheel_checks.errors import UsageError
from wheel_checks.facts.gpu.targets import amd_products, parse_gpu, products

EXPECTED = "a product such as GB200 or MI300X, or a target such as sm_100 or gfx942"
_TARGET = re.compile(r"sm_\d{2,3}|gfx[0-9a-f]{3,4}", re.ASCII)


def parse_target(text: str) -> str:
    """The compiler's name of a GPU: ``sm_100`` for "GB200" and "10.0", ``gfx942`` for "MI300X".

    A name of that form is taken as it is, also when the table of products does not know it: the compiler says whether
    it does. Raises UsageError, with the nearest names, for anything else.
    """
    name = text.strip()
    if _TARGET.fullmatch(name.lower()):
        return name.lower()
    try:
        product = parse_gpu(name)
    except UsageError as error:
        raise UsageError(error.what, expected=EXPECTED, hint=error.hint) from None
    return product.gfx or f"sm_{product.sm}"


def products_of(target: str) -> tuple[str, ...]:
    """The products that are this target, by the name that they are best known by; none for one that is unknown."""
    return tuple(
        product.name for product in (*products(), *amd_products()) if target == (product.gfx or f"sm_{product.sm}")
    )
