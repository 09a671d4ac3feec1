"""How a rule of the doctor registers: as a rule, and as a possible cause of what the user sees."""

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from wheel_checks.model import Severity
from wheel_checks.registry import Check, rule

KIND = "host"


class Layer(enum.IntEnum):
    """How deep a cause is. Of two causes that explain the same symptom, the deeper one is the root."""

    HARDWARE = 10
    KERNEL = 20  # kernel, its modules, firmware
    FABRIC = 30  # NVSwitch fabric, IMEX, confidential computing
    CONTAINER = 40  # container, scheduler, sandbox, device permissions
    USERSPACE = 50  # libcuda and its siblings
    VISIBILITY = 60  # variables and modes that hide devices
    PYTHON = 70  # the interpreter and where it imports from
    WHEEL = 80  # the wrong build of torch
    FILES = 90  # an installation that is broken or mixed
    CODE = 100  # GPU code that is not for this GPU
    TRITON = 110


@dataclass(frozen=True, slots=True)
class Cause:
    """What a finding of a rule explains.

    ``explains`` are symptoms (see ``wheel_checks.facts.host.log.symptoms``); a name that ends in ``:*`` stands for all
    that begin so. ``certain`` is False where the finding is a conclusion and not an observation. ``tested`` says how
    far the rule could be tested without the hardware.
    """

    catalogue: str
    layer: Layer
    explains: tuple[str, ...]
    certain: bool = True
    tested: str = ""


CAUSES: dict[str, Cause] = {}  # by rule id


def rule_id(catalogue: str) -> str:
    """The rule of an entry of the catalogue: A01 is DOC101, H18 is DOC818."""
    return f"DOC{'ABCDEFGH'.index(catalogue[0]) + 1}{catalogue[1:]}"


def cause(
    catalogue: str,
    title: str,
    severity: Severity = Severity.ERROR,
    *,
    layer: Layer,
    explains: tuple[str, ...] = (),
    why: str,
    example: str,
    fix: str,
    sources: str,
    tested: str,
    certain: bool = True,
) -> Callable[[Check], Check]:
    """Register the decorated pure function ``(facts: HostFacts, expectations) -> findings``.

    ``catalogue`` is its entry in the catalogue ("A01"), ``sources`` where the failure was described
    ("pytorch#168065, uv#15446"), ``tested`` what its tests are made of, and what no test could reach.
    """
    identity = rule_id(catalogue)
    CAUSES[identity] = Cause(catalogue, layer, explains, certain, tested)
    described = re.split(r"[,;] (?![^(]*\))", sources)
    return rule(
        identity, title, severity, why=why, example=example, fix=fix, kind=KIND, sources=described, tested=tested
    )


def causes_in(layer: Layer, explains: tuple[str, ...] = ()) -> Callable[..., Callable[[Check], Check]]:
    """:func:`cause` for a module whose causes lie in ``layer`` and explain these symptoms, if none says otherwise."""
    return partial(cause, layer=layer, explains=explains)
