"""Packages without native code that stand for what they require: ``transformer-engine[core-cu13]``, ``jax[cuda13]``.

At depth links a stack is read for what was requested. Where that is a wheel without libraries, its import loads the
libraries of the packages that it requires, so these are read as if they had been requested.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

from wheel_checks.errors import WheelproofError
from wheel_checks.facts.accelerator.meaning import is_known_by_name
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.resolution import active_with_extras
from wheel_checks.model import Unavailable
from wheel_checks.sources.client import HttpClient
from wheelproof.stacks.packages import Pick
from wheelproof.wheels.judging import read_planned


def asked_through(asked: Iterable[Requirement], picks: Iterable[Pick], client: HttpClient) -> frozenset[NormalizedName]:
    """The packages that the pure wheels among the ``asked`` require, but for NVIDIA's own libraries.

    A wheel that cannot be read adds nothing: judging it reports why.
    """
    extras: dict[str, set[str]] = {}
    for requirement in asked:
        extras.setdefault(canonicalize_name(requirement.name), set()).update(requirement.extras)
    found: set[NormalizedName] = set()
    for pick in picks:
        name = pick.package.name
        if name in extras and pick.wheel is not None and pick.wheel.file_name.endswith("-none-any.whl"):
            found |= _required(pick, extras, client)
    return frozenset(name for name in found if not is_known_by_name(name))


def _required(pick: Pick, extras: Mapping[str, Iterable[str]], client: HttpClient) -> set[NormalizedName]:
    wheel = pick.wheel
    if wheel is None or wheel.target is None:
        return set()
    try:
        metadata = read_planned(wheel, Depth.QUICK, client).metadata
    except WheelproofError:
        return set()
    if isinstance(metadata, Unavailable):
        return set()
    active = active_with_extras(metadata.requirements, wheel.target.markers(), list(extras[pick.package.name]))
    return {canonicalize_name(requirement.name) for requirement in active}
