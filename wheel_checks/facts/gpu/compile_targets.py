"""Names of GPUs for which kernels can be compiled: ``sm_100`` and GB200, ``gfx942`` and MI300X."""

from __future__ import annotations

import difflib
import re

from wheel_checks.data import load
from wheel_checks.errors import UsageError
from wheel_checks.facts.gpu.targets import parse_gpu, products

EXPECTED = "a product such as GB200 or MI300X, or a target such as sm_100 or gfx942"
_TARGET = re.compile(r"sm_\d{2,3}|gfx[0-9a-f]{3,4}", re.ASCII)
_MAKER = re.compile(r"^(?:amd)?(?:instinct)?")


def parse_target(text: str) -> str:
    """The compiler's name of a GPU: ``sm_100`` for "GB200" and "10.0", ``gfx942`` for "MI300X".

    A name of that form is taken as it is, also when the table of products does not know it: the compiler says whether
    it does. Raises UsageError, with the nearest names, for anything else.
    """
    name = text.strip()
    if _TARGET.fullmatch(name.lower()):
        return name.lower()
    amd = {product.lower(): row["target"] for row in load("products")["amd"] for product in row["products"]}
    key = _MAKER.sub("", re.sub(r"[^a-z0-9]", "", name.lower()))
    if key in amd:
        return str(amd[key])
    try:
        return f"sm_{parse_gpu(name).sm}"
    except UsageError as error:
        near = [product.upper() for product in difflib.get_close_matches(key, amd)]
        hint = f"did you mean {' or '.join(near)}?" if near else error.hint
        raise UsageError(error.what, expected=EXPECTED, hint=hint) from None


def products_of(target: str) -> tuple[str, ...]:
    """The products that are this target, by the name that they are best known by; none for one that is not known."""
    rows = load("products")["amd"]
    nvidia = tuple(product.name for product in products() if target == f"sm_{product.sm}")
    return nvidia or tuple(name for row in rows if row["target"] == target for name in row["products"])
