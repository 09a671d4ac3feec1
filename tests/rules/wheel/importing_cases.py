"""WHL532: packages whose source shows that their import always fails."""

from __future__ import annotations

from tests.rules.case import Case
from tests.support.wheel_facts import facts_of
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.facts import WheelFacts


def package(source: str, *, other: str = "") -> WheelFacts:
    built = WheelBuilder("demo", "0.0.1", "py3-none-any").add("demo/__init__.py", source)
    if other:
        built.add("demo_runtime/__init__.py", other)
    return facts_of(built, depth=Depth.LINKS)


CASES = [
    Case(
        "WHL532",
        "a name that is held on an index",
        lambda: package("import os\n\nraise ImportError('demo is on its own index')\n"),
        ("every import of demo raises ImportError: demo is on its own index",),
        member="demo/__init__.py",
        line=3,
        evidence=("ImportError: demo is on its own index",),
    ),
    Case(
        "WHL532",
        "an exception under a condition",
        lambda: package("import sys\nif sys.version_info < (3, 9):\n    raise ImportError('too old')\n"),
    ),
    Case("WHL532", "an exception that is caught", lambda: package("try:\n    raise OSError\nexcept OSError: pass\n")),
    Case("WHL532", "one of two packages", lambda: package("raise ImportError\n", other="VALUE = 1\n")),
]
