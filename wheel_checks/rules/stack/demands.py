"""Who demands a package: the evidence of most findings about a stack."""

from wheel_checks.facts.stack.facts import StackPackage
from wheel_checks.model import Evidence
from wheel_checks.phrases import summarised

_SHOWN = 6


def demands(package: StackPackage) -> tuple[Evidence, ...]:
    """The chain from what was asked for to this package, and who else demands it."""
    chain = "; ".join(map(str, package.chain))
    rest = [str(demand) for demand in package.demands if demand not in package.chain]
    found = (Evidence("demanded by", chain, "METADATA"),) if chain else ()
    return found + ((Evidence("also", summarised(rest, _SHOWN, separator="; "), "METADATA"),) if rest else ())
