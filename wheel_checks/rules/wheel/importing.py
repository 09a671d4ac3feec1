"""Does the package itself let an import succeed?"""

from collections.abc import Iterable

from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.links.opened_first import by_module
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.model import Evidence, Finding, Fix, Location, need
from wheel_checks.registry import rule


@rule(
    "WHL532",
    "importing the package does not always raise an exception",
    why="A placeholder wheel reserves a name on an index and only says where the real package is. It installs, but "
    "every import of it fails.",
    example="torchcomms 0.0.1, whose __init__.py is `raise ImportError(...)`",
    fix="Install the package from its authors' own index.",
)
def raising(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """No exception is raised by a statement of the module itself, outside of any condition.

    Of several packages in one wheel one that can be imported is enough.
    """
    sources = need(wheel.sources)
    modules = by_module(sources.modules)
    raised = [modules[root] for root in sources.roots if root in modules and modules[root].raises]
    if raised and len(raised) == len(sources.roots):
        first = raised[0]
        evidence = (Evidence("raised", first.raises, f"{first.member} line {first.raised_at}"),)
        message = f"every import of {first.module} raises {first.raises}"
        yield Finding(
            message,
            evidence,
            Fix("Install the package from its authors' own index."),
            Location(first.member, line=first.raised_at),
        )
